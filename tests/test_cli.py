"""The shell program and the declared parameters behind it."""

import json
import logging
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest

from vmdpotential import cache, progress, registry
from vmdpotential.engines import automatic
from vmdpotential.errors import BackendError, CheckError, TaskError, UsageError
from vmdpotential.frontend import cli
from vmdpotential.parameters import Command, Option, Report

ION = "ATOM 1 C X 1 0.0 0.0 0.0 1.0 1.0\n"


def program(*arguments, **options):
    return subprocess.run([sys.executable, "-m", "vmdpotential", *map(str, arguments)], capture_output=True, text=True,
                          **options)


@pytest.fixture
def ion(tmp_path):
    path = tmp_path / "ion.pqr"
    path.write_text(ION)
    return path


def test_json_is_one_object_on_stdout(ion, tmp_path, capsys):
    assert cli.main(["map", str(ion), "-o", str(tmp_path / "a.dx"), "--json", "--padding", "1"]) == 0
    out, err = capsys.readouterr()
    data = json.loads(out)
    assert data["shape"] == [5, 5, 5]
    assert data["net_charge"] == 1
    assert all(line.startswith(("direct sum", progress.COMPILING)) for line in err.splitlines())  # progress


def test_negative_numbers_are_values(ion, tmp_path, capsys):
    assert cli.main(["map", str(ion), "-o", str(tmp_path / "a.dx"), "--padding", "-3"]) == 2
    assert "--padding -3: must be at least 0 A" in capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "text"), [
    (["map"], "required: STRUCTURE"),
    (["map", "x.pdb", "--spacing", "nan", "-o", "m.dx"], "--spacing nan: a finite number is needed"),
    (["ionise"], "(did you mean 'ionize'?)"),
    (["map", "x.pdb", "--spcing", "1"], "unrecognized arguments: --spcing 1 (did you mean '--spacing'?)"),
    (["map", "x.pdb", "--method", "pm", "-o", "m.dx"], "(did you mean 'pme'?)"),
    (["map", "https://x.org/a.pdb", "-o", "m.dx"], "https://x.org/a.pdb: an address is not supported"),
    (["map", "x.pdb", "--no-such"], "unrecognized arguments: --no-such"),
    (["benchmark", "--repeats", "1.5"], "--repeats 1.5: a whole number is needed"),
    (["map", "", "-o", "m.dx"], "structure: is empty; give a value, or leave it out"),
])
def test_wrong_usage_is_one_line_and_exit_code_2(arguments, text, capsys):
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("vmdpotential: ")
    assert err.count("\n") == 1
    assert text in err


def test_help_states_units_defaults_and_exit_codes():
    done = program("map", "--help")
    assert done.returncode == 0
    words = " ".join(done.stdout.split())
    assert "--spacing SPACING largest distance between grid points" in words
    assert "exit codes: 0 done; 2 invalid option" in words
    assert "[default: none]" not in words
    assert "--tcl" not in words
    # not those of 2007, which can be used by their names
    assert re.search(r"--method auto\|direct\|cutoff\|pme\|ewald\|pb(\|apbs)?\|msm(\|apbs)? summation", words)
    (method,) = (p for p in registry.get("command", "map").parameters if p.name == "method")
    assert method.convert("largebin") == "largebin"
    with pytest.raises(UsageError, match=r"choose one of auto, direct, cutoff, pme, ewald, pb(, apbs)?, msm(, apbs)?$"):
        method.convert("largest")


def test_commands_for_structures_and_maps_stand_first():
    names = re.findall(r"^    (\w+)", program("--help").stdout, re.MULTILINE)
    assert names[: names.index("devices")] == [
        "map", "ionize", "slice", "surface", "compare", "average", "profile", "field", "energy", "forces", "rdf",
        "density", "probe", "orbital", "live", "view", "prepare", "batch"]


def test_devices_names_no_parameter_of_python(capsys, monkeypatch):
    monkeypatch.setattr("vmdpotential.engines._reason", "")
    automatic.cache_clear()
    monkeypatch.setitem(registry._entries["engine"], "cuda", Broken())
    assert cli.main(["devices"]) == 0
    automatic.cache_clear()
    report = capsys.readouterr().out
    assert report.count("no driver; use the engine cpu") == 2
    assert "engine=" not in report


def test_devices_clears_the_kernels(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("VMDPOTENTIAL_CACHE", str(tmp_path / "cache"))
    cache.forget()
    (cache.folder("cpu") / "entry").write_bytes(b"x" * 3_000_000)
    (tmp_path / "cache" / "notes").write_text("a user's")
    assert cli.main(["devices", "--clear-cache", "--json"]) == 0
    kernels = json.loads(capsys.readouterr().out)["kernels"]
    assert (kernels["removed"], kernels["bytes"]) == (3_000_000, 0)
    assert not list((tmp_path / "cache").rglob("entry"))
    assert (tmp_path / "cache" / "notes").exists()
    cache.forget()


@pytest.mark.slow
def test_interrupted_work_exits_130_and_leaves_nothing(tmp_path):
    # so many points that it cannot be done before the interrupt
    structure = tmp_path / "many.pqr"
    lines = [f"ATOM {n} C X {n} {n % 50}.1 {n // 50}.2 0.3 1.0 1.0" for n in range(2500)]
    structure.write_text("\n".join(lines) + "\n")
    output = tmp_path / "map.dx"
    command = [sys.executable, "-m", "vmdpotential", "map", str(structure), "-o", str(output), "--spacing", "0.15",
               "--method", "direct"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as process:
        line = process.stderr.readline()  # progress comes after two seconds of work
        assert line.startswith("direct sum:")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.strip().splitlines()[-1] == "vmdpotential: interrupted"
    assert out == ""
    assert os.listdir(tmp_path) == ["many.pqr"]


def test_a_closed_pipe_is_no_error():
    command = '"$0" -m vmdpotential map --help | true'
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command, sys.executable], capture_output=True, text=True)
    assert done.stderr == ""


class Broken:
    """An engine that does not work."""

    def check(self):
        raise BackendError("no driver", "use {engine cpu}")


def sample(
    name: Annotated[str, Option("a name", positional=True)],
    size: Annotated[float, Option("a size", unit="A", above=0)] = 1.0,
    files: Annotated[tuple[Path, ...], Option("some files")] = (),
    loud: Annotated[bool, Option("shout")] = False,
    seed: Annotated[int | None, Option("a seed", low=0)] = None,
) -> Report:
    """Test parameters.

    Raises
    ------
    UsageError
        Never.
    """
    return Report([], {"name": name, "size": size, "files": files, "loud": loud, "seed": seed})


COMMAND = Command.of(sample)


def test_values_arrive_as_text_or_objects():
    data = COMMAND(name="x", size="2.5", files=["a", Path("b")], loud="yes", seed="3").data
    assert data == {"name": "x", "size": 2.5, "files": (Path("a"), Path("b")), "loud": True, "seed": 3}
    assert COMMAND(name="x", size=2, files="one").data["files"] == (Path("one"),)
    assert COMMAND(name="x", seed="none").data["seed"] is None
    data = COMMAND(name=3, size=np.float32(0.5), loud=1, seed=np.int64(4)).data
    assert data == {"name": "3", "size": 0.5, "files": (), "loud": True, "seed": 4}
    assert [type(data[name]) for name in ("size", "loud", "seed")] == [float, bool, int]


@pytest.mark.parametrize(("values", "text"), [
    ({}, "name: the command sample needs a value"),
    ({"name": "x", "width": 1}, "width: sample has no such parameter"),
    ({"name": "x", "size": 0}, "size=0: must be above 0 A"),
    ({"name": "x", "size": None}, "a value is needed"),
    ({"name": "x", "loud": "maybe"}, "write yes or no"),
    ({"name": "x", "seed": -1}, "at least 0"),
    ({"name": "x", "seed": 1.5}, "seed: int is needed, not float"),
    *(({"name": "x", name: value}, f"{name}: is empty; give a value, or leave it out")
      for name, value in (("seed", ""), ("size", " "), ("files", ""), ("files", ["a", ""]), ("loud", ""))),
    ({"name": ""}, "name: is empty"),
    ({"name": "x", "size": "1_0"}, "size=1_0: a number is needed"),
    ({"name": "x", "size": "9" * 999 + "?"}, r"^size=9{77}\.\.\.: a number is needed"),
    ({"name": "x", "size": [1]}, "size: float is needed, not list"),
    ({"name": "x", "files": 5}, "files: Path is needed, not int"),
])
def test_wrong_values_are_named(values, text):
    with pytest.raises(UsageError, match=text) as caught:
        COMMAND(**values)
    assert caught.value.parameter == ([*values] or ["name"])[-1]


def test_description_ends_before_the_sections():
    assert COMMAND.summary == "Test parameters"
    assert COMMAND.description == "Test parameters."


def test_a_parameter_without_declaration_is_a_mistake_of_the_programmer():
    with pytest.raises(TypeError, match="lacks Annotated"):
        Command.of(lambda x: None)


def speak(
    name: Annotated[str, Option("a name", positional=True)],
    box_size: Annotated[float, Option("a size", unit="A")] = 1.0,
    loud: Annotated[bool, Option("shout")] = False,
) -> Report:
    """Fail in the way that is asked for."""
    logging.getLogger("vmdpotential.test").warning("%s is too low; set {box_size 3} or {name}", "50 % of {box_size}")
    match name:
        case "check":
            raise CheckError("1 of 2 failed", Report(["a: good"], {"passed": 1}))
        case "task":
            raise TaskError("{loud} is data", "use {loud} with {loud False}, {box_size} or {box_size 2}")
        case "variable":
            raise UsageError("VMDPOTENTIAL_THREADS", "a whole number is needed", "leave it out", value="x")
        case "foreign":
            raise UsageError("debye_length", "must be above 0", value="-1")
        case "memory":
            raise MemoryError
        case "positional":
            raise UsageError("name", "another is needed")
    raise UsageError("box_size", "is wrong", value="two words")


@pytest.fixture
def speaker(monkeypatch):
    monkeypatch.setitem(registry._entries["command"], "speak", Command.of(speak))


WARNING = "50 % of {box_size} is too low; set --box-size 3 or name\n"


@pytest.mark.parametrize(("name", "line"), [
    ("value", "--box-size 'two words': is wrong"),
    ("task", "{loud} is data; use --loud with --no-loud, --box-size or --box-size 2"),
    ("variable", "VMDPOTENTIAL_THREADS=x: a whole number is needed; leave it out"),
    ("foreign", "debye_length=-1: must be above 0"),
    ("positional", "name: another is needed"),
])
@pytest.mark.usefixtures("speaker")
def test_parameters_are_spelled_as_a_shell_has_them(name, line, capsys):
    cli.main(["speak", name])
    assert capsys.readouterr().err == f"{WARNING}vmdpotential: {line}\n"
    assert not logging.getLogger("vmdpotential").handlers


@pytest.mark.parametrize(("name", "line"), [
    ("value", "-box_size two words: is wrong"),
    ("task", "{loud} is data; use -loud with -loud False, -box_size or -box_size 2"),
    ("foreign", "debye_length=-1: must be above 0"),
])
@pytest.mark.usefixtures("speaker")
def test_parameters_are_spelled_as_vmd_has_them(name, line, capsys):
    cli.main(["speak", name, "--tcl"])
    assert capsys.readouterr().err == (
        f"warning: 50 % of {{box_size}} is too low; set -box_size 3 or -name\nvmdpotential: {line}\n")


@pytest.mark.usefixtures("speaker")
def test_a_failing_command_prints_one_json_object(capsys):
    assert cli.main(["speak", "task", "--json"]) == 3
    out, err = capsys.readouterr()
    hint = "use {loud} with {loud False}, {box_size} or {box_size 2}"
    assert json.loads(out) == {"error": {
        "parameter": "", "value": "", "text": "{loud} is data", "hint": hint, "cure": hint}}
    assert "use --loud with" in err
    cli.main(["speak", "variable", "--json"])
    assert json.loads(capsys.readouterr().out) == {"error": {
        "parameter": "VMDPOTENTIAL_THREADS", "value": "x", "text": "a whole number is needed", "hint": "leave it out",
        "cure": "leave it out"}}
    assert cli.main(["speak", "check", "--json"]) == 3
    data = json.loads(capsys.readouterr().out)
    assert (data["passed"], data["report"], data["error"]["text"]) == (1, ["a: good"], "1 of 2 failed")
    assert cli.main(["speak", "memory", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["error"]["text"] == "out of memory"
    assert cli.main(["speak", "--json"]) == 2  # before the command is known to be one
    assert "required: NAME" in json.loads(capsys.readouterr().out)["error"]["text"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_an_error_as_json_on_a_full_disk_is_still_told():
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "vmdpotential", "map", "no.pdb", "-o", "m.dx", "--json"],
                              stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "vmdpotential: no.pdb: there is no such file; check its name and folder\n"


class Stream:
    def __init__(self, live):
        self.text, self.live = "", live

    def write(self, text):
        self.text += text

    def flush(self):
        pass

    def isatty(self):
        return self.live


def test_progress_is_silent_for_short_work_and_shown_for_long(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    stream = Stream(live=False)
    with progress.listening(progress.Terminal(stream)):
        for step in range(11):  # one second
            clock[0] += 0.1
            progress.report("short", step / 10)
        assert stream.text == ""
        for step in range(101):  # fifty seconds
            clock[0] += 0.5
            progress.report("long", step / 100)
    lines = stream.text.splitlines()
    assert lines[0].startswith("long:   5 %")
    assert lines[-1] == "long: 50.0 s"
    assert 5 <= len(lines) <= 7
    progress.report("no one listens", 0.5)


def test_a_log_has_no_more_lines_for_much_work_than_for_long(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    stream = Stream(live=False)
    with progress.listening(progress.Terminal(stream)):
        for step in range(200):  # as many kernels, of five seconds each, and what is done with them
            for seconds, label in ((5.0, progress.COMPILING), (3.0, f"verify, {step % 7}")):
                for part in range(10):
                    progress.report(label, part / 10)
                    clock[0] += seconds / 10
                progress.report(label, 1.0)
    assert 1600 / 30 < len(stream.text.splitlines()) < 2.1 * 1600 / 10


def test_an_error_does_not_continue_a_progress_line(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    stream = Stream(live=True)
    terminal = progress.Terminal(stream)
    terminal.close()
    assert stream.text == ""
    for step in range(5):
        clock[0] += 1
        terminal("sum", step / 100)
    assert not stream.text.endswith("\n")
    terminal.close()
    assert stream.text.endswith("\n")
    terminal("sum", 1.0)
    terminal.close()
    assert stream.text.count("\n") == 2
