"""The shell program is interrupted: nothing is left behind or lost."""

import os
import shlex
import signal
import subprocess
import sys

import pytest
from broken_inputs import PROGRAM, check, outputs

from vmdpotential import progress
from vmdpotential.frontend import cli


@pytest.mark.parametrize(("command", "label"), [
    ("map in/ion.pqr -o out.dx --method direct", "direct sum"),
    ("map in/ion.pqr -o out.dx", "writing the map"),
    ("slice in/good.dx -o out.png", "reading the map"),
    ("ionize in/box.pdb --ions SOD=3 -o out.pdb -o out.cif --table out.csv", "placing ions"),
])
@pytest.mark.parametrize("existing", [False, True])
def test_interrupted_in_the_middle(command, label, existing, here, monkeypatch, capfd):
    class Interrupt(progress.Terminal):
        def __call__(self, what, fraction):
            seen.append(what)
            if label in what:
                raise KeyboardInterrupt

    seen = []
    monkeypatch.setattr(progress, "Terminal", Interrupt)
    words = command.split()
    if existing:
        for path in outputs(words):
            path.write_text("precious")
        words.append("--force")
    check(130, "interrupted", cli.main(words), *capfd.readouterr())
    assert sorted(os.listdir(here)) == sorted(["in", *(map(str, outputs(words)) if existing else [])]), seen
    assert all(path.read_text() == "precious" for path in outputs(words) if existing)


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_by_a_signal(sent, here):
    def handlers():
        # a shell's background jobs ignore SIGINT, and can be ended nevertheless
        signal.signal(signal.SIGINT, signal.SIG_DFL if sent == signal.SIGINT else signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which may be ignored, by nohup

    atoms = "".join(f"ATOM {n} C X {n} {n % 50}.1 {n // 50}.2 0.3 1.0 1.0\n" for n in range(2500))
    (here / "many.pqr").write_text(atoms)
    (here / "m.dx").write_text("precious")
    command = [*PROGRAM, *shlex.split("map many.pqr -o m.dx --force --method direct --spacing 0.15")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          preexec_fn=handlers) as process:
        assert process.stderr.readline().startswith("direct sum:")  # after two seconds of work
        process.send_signal(sent)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "vmdpotential: interrupted"
    assert (here / "m.dx").read_text() == "precious"
    assert sorted(os.listdir(here)) == ["in", "m.dx", "many.pqr"]


FINDER = """
class Finder:
    asked = 0
    def find_spec(self, name, *rest):
        if name.startswith("{name}"):
            Finder.asked += 1
            if Finder.asked == 1:
                raise KeyboardInterrupt
            raise AttributeError("partially initialized module")
sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize("start", [
    FINDER.format(name="vmdpotential.frontend"), FINDER.format(name="vmdpotential.commands"),
    "from vmdpotential.frontend import cli\ncli.run = lambda words: exec('raise KeyboardInterrupt')"],
    ids=["of the program", "of a command", "within exec"])
def test_interrupted_during_an_import(start, tmp_path):
    """None may be tried again; and after an interrupt within exec(), ``python -m`` would end by SIGINT."""
    (tmp_path / "program.py").write_text(f"{start}\nfrom vmdpotential.__main__ import main\nsys.exit(main())")
    if "import sys" not in start:
        (tmp_path / "program.py").write_text("import sys\n" + (tmp_path / "program.py").read_text())
    done = subprocess.run([sys.executable, "-m", "program", "map", "missing.pdb", "-o", "m.dx"], cwd=tmp_path,
                          capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "vmdpotential: interrupted\n")


def test_a_hangup_that_is_ignored_stays_so(capsys):
    """As nohup asks."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert cli.main(["plugins"]) == 0
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert "map" in capsys.readouterr().out


EARLY = """
import os, signal, sys, time
from vmdpotential.__main__ import main
from vmdpotential.frontend import cli

def hook(frame, event, argument):
    global seen  # calls and returns since the compiled module began to be loaded
    seen += seen > 0 or getattr(argument, "__name__", "") == "create_dynamic"
    if seen == killed:
        os.kill(os.getpid(), signal.SIGINT)

def start(words):
    global seen
    seen = 0
    sys.setprofile(hook)
    import gemmi
    sys.setprofile(None)
    time.sleep(60)

cli.run = start
for killed in (5, 20, 200, 600, 1500, 4000):
    if not (child := os.fork()):
        sys.exit(main())
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=sys.stderr)
"""


@pytest.mark.slow
def test_interrupted_while_a_compiled_module_starts():
    """Which calls Python, and aborts the process if that raises KeyboardInterrupt."""
    done = subprocess.run([sys.executable, "-c", EARLY], capture_output=True, text=True, timeout=120)
    assert done.stderr.splitlines() == ["vmdpotential: interrupted", "130"] * 6
