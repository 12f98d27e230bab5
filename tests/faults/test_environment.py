"""What surrounds a run: streams that are full or closed, locales, threads, variables of other programs."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from vmdpotential.errors import Message
from vmdpotential.frontend import cli, messages
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.io.maps import write_map

PROGRAM = [sys.executable, "-m", "vmdpotential"]

pytestmark = pytest.mark.slow  # each starts a program or two

full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
shell = pytest.mark.skipif(os.name == "nt", reason="needs a shell that closes streams")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = np.arange(216, dtype=np.float32).reshape(6, 6, 6)
    write_map(Grid(Lattice((0, 0, 0), 1.0, (6, 6, 6)), values, "kT/e"), "map.npz")
    return tmp_path


@shell
@pytest.mark.parametrize("redirected", [pytest.param("2>/dev/full", marks=full), "2>&-", ">&- 2>&-",
                                        pytest.param(">/dev/full 2>/dev/full", marks=full)])
def test_the_exit_code_is_kept_without_a_stderr(redirected, here):
    for words, code in (("slice none.dx", 2), ("slice map.npz -o none/a.png", 3), ("slice none.dx --json", 2)):
        done = subprocess.run(f"{' '.join(PROGRAM)} {words} {redirected}", shell=True, stdout=subprocess.PIPE)
        assert done.returncode == code
    # warnings go nowhere either, and work goes on
    code = ("import logging, sys; from vmdpotential.frontend import messages, cli\n"
            "with cli._streams(), messages.warnings(cli._to_stderr, str):\n"
            "    logging.getLogger('vmdpotential.x').warning('word')\nsys.exit(5)")
    assert subprocess.run(f'{sys.executable} -c "{code}" {redirected}', shell=True).returncode == 5


@shell
def test_in_the_locale_c(here):
    """The angstrom sign is escaped, and a file's name has the bytes that it has."""
    done = subprocess.run([*PROGRAM, "slice", "map.npz", "-o", "é.svg"], capture_output=True, env=os.environ | {
        "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith("é.svg: 89 x".encode())
    assert rb"z = 3 \xc5, " in done.stdout
    assert (here / "é.svg").exists()


@pytest.mark.parametrize("backend", ["module://nowhere.backend", "widget", "nonsense"])
def test_backends_that_are_not_installed(backend, here):
    code = ("import os, sys; from vmdpotential.frontend import cli\n"
            "code = cli.main(['slice', 'map.npz', '-o', 'a.png', '--dpi', '50'])\n"
            "assert os.environ['MPLBACKEND'] == sys.argv[1]; sys.exit(code)")
    done = subprocess.run([sys.executable, "-c", code, backend], capture_output=True, text=True,
                          env=os.environ | {"MPLBACKEND": backend})
    assert (done.returncode, done.stderr) == (0, "")


def test_a_backend_that_is_installed_stays_chosen():
    code = ("from vmdpotential import figures; figures.prepare(); import matplotlib\n"
            "print(matplotlib.rcParams['backend'])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env=os.environ | {"MPLBACKEND": "svg"})
    assert done.stdout == "svg\n", done.stderr


def test_main_leaves_signals_and_streams_as_they_were(here, capsys):
    """Also in a thread, where no one may set a handler."""
    numbers = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    before = [signal.getsignal(number) for number in numbers], sys.stdout.errors, sys.stderr.errors
    codes = []

    def work():
        codes.append(cli.main(["slice", "map.npz", "--dpi", "50"]))
        codes.append(cli.main(["slice", "none.dx"]))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    work()
    assert codes == [0, 2, 0, 2]
    assert ([signal.getsignal(number) for number in numbers], sys.stdout.errors, sys.stderr.errors) == before
    assert "Traceback" not in capsys.readouterr().err


def test_warnings_have_parameters_as_each_interface_spells_them(caplog):
    log = logging.getLogger("vmdpotential.test")
    report = []
    with messages.warnings(report.append, lambda name, value: f"--{name}" + value and f"--{name}={value}"):
        log.warning(Message("%s: {cutoff 5} or {cutoff x}"), "{data}")
    assert report == ["{data}: --cutoff=5 or --cutoff=x"]
    log.warning(Message("%s: {cutoff} of %g %%"), "{data}", 3)
    assert caplog.messages[-1] == "{data}: cutoff of 3 %"


def test_packages_that_do_not_load_are_one_line(monkeypatch, capsys):
    def broken(*_):
        raise ImportError("libz.so: failed to map segment")

    monkeypatch.setattr(cli, "run", broken)
    assert cli.main(["slice", "map.npz", "--json"]) == 4
    out, err = capsys.readouterr()
    assert err == "vmdpotential: a package cannot be loaded (libz.so: failed to map segment); " \
                  "install it again, or see 'ulimit -v'\n"
    assert "failed to map" in json.loads(out)["error"]["text"]
