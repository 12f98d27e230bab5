"""The shell program and the declared parameters behind it."""

import json
import logging
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
from messages import naming

from vmdpotential import cache, progress, registry
from vmdpotential.engines import automatic_engine
from vmdpotential.errors import BackendError, CheckError, TaskError, UsageError
from vmdpotential.frontend import cli, messages
from vmdpotential.kernels import launch
from vmdpotential.parameters import Command, Option, Report

ION = "ATOM 1 C X 1 0.0 0.0 0.0 1.0 1.0\n"


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


def helped(capsys, *words):
    with pytest.raises(SystemExit) as ended:
        cli.main([*words, "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_help_names_no_methods_of_2007_which_can_be_used_by_their_names(capsys):
    words = " ".join(helped(capsys, "map").split())
    assert "--tcl" not in words
    assert re.search(r"--method auto\|direct\|cutoff\|pme\|ewald\|msm\|(apbs\|)?pb summation", words)
    (method,) = (p for p in registry.get("command", "map").parameters if p.name == "method")
    assert method.convert("largebin") == "largebin"
    with pytest.raises(UsageError):
        method.convert("largest")


def test_commands_for_structures_and_maps_come_first(capsys):
    names = re.findall(r"^    (\w+)", helped(capsys), re.MULTILINE)
    assert names[: names.index("devices")] == [
        "map", "slice", "surface", "average", "compare", "complementarity", "density", "profile",
        "field", "ionize", "live", "orbital", "energy", "forces", "rdf", "patches", "born", "prepare", "probe",
        "titrate", "view"]


def test_devices_names_no_parameter_of_python(capsys, monkeypatch):
    monkeypatch.setattr("vmdpotential.engines._reason", "")
    automatic_engine.cache_clear()
    monkeypatch.setitem(registry._entries["engine"], "cuda", Broken())
    assert cli.main(["devices"]) == 0
    automatic_engine.cache_clear()
    report = capsys.readouterr().out
    assert report.count("no driver; use the engine cpu") == 2
    assert "engine=" not in report


@pytest.mark.parametrize("chosen", ["", "baseline"])
def test_devices_names_the_instruction_set(chosen):
    output = subprocess.run([sys.executable, "-m", "vmdpotential", "devices", "--json"], check=True, text=True,
                            capture_output=True, env=os.environ | {launch.VARIABLE: chosen}).stdout
    hardware = json.loads(output)["engines"]["cpu"]["hardware"]
    assert (chosen or launch.describe_vectors().split()[0]) in hardware
    assert (launch.VARIABLE in hardware) == bool(chosen)


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
    ({}, "name: a value is needed"),
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
    ({"name": "x", "size": "9" * 999 + "?"}, r"^size=9{39}\.\.\.9{37}\?: a number is needed"),
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
    with naming(TypeError, "lacks Annotated"):
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


@pytest.mark.parametrize(("name", "line", "tcl"), [
    ("value", "--box-size 'two words': is wrong", "-box_size {two words}: is wrong"),
    ("task", "{loud} is data; use --loud with --no-loud, --box-size or --box-size 2",
     "{loud} is data; use -loud with -loud False, -box_size or -box_size 2"),
    ("variable", "VMDPOTENTIAL_THREADS=x: a whole number is needed; leave it out", None),
    ("foreign", "debye_length=-1: must be above 0", "debye_length=-1: must be above 0"),
    ("positional", "name: another is needed", None),
])
@pytest.mark.usefixtures("speaker")
def test_parameters_are_spelled_as_a_shell_and_as_vmd_have_them(name, line, tcl, capsys):
    cli.main(["speak", name])
    assert capsys.readouterr().err == f"{WARNING}vmdpotential: {line}\n"
    assert not logging.getLogger("vmdpotential").handlers
    if tcl:
        cli.main(["speak", name, "--tcl"])
        assert capsys.readouterr().err == (
            f"warning: 50 % of {{box_size}} is too low; set -box_size 3 or -name\nvmdpotential: {tcl}\n")


def test_a_warning_is_given_once_in_a_run_and_again_in_the_next():
    log, told = logging.getLogger("vmdpotential.test"), []
    for _ in range(2):
        with messages.warnings(told.append, lambda name, value: name):
            for model in (1, 1, 2):
                log.warning("model %d has a placeholder for a cell", model)
    assert told == [f"model {model} has a placeholder for a cell" for model in (1, 2, 1, 2)]


@pytest.mark.usefixtures("speaker")
def test_a_failing_command_prints_one_json_object(capsys):
    assert cli.main(["speak", "task", "--json"]) == 3
    out, err = capsys.readouterr()
    hint = "use {loud} with {loud False}, {box_size} or {box_size 2}"
    assert json.loads(out) == {"error": {
        "parameter": "", "value": "", "text": "{loud} is data", "hint": hint}}
    assert "use --loud with" in err
    cli.main(["speak", "variable", "--json"])
    assert json.loads(capsys.readouterr().out) == {"error": {
        "parameter": "VMDPOTENTIAL_THREADS", "value": "x", "text": "a whole number is needed", "hint": "leave it out"}}
    assert cli.main(["speak", "check", "--json"]) == 3
    data = json.loads(capsys.readouterr().out)
    assert (data["passed"], data["report"], data["error"]["text"]) == (1, ["a: good"], "1 of 2 failed")
    assert cli.main(["speak", "memory", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["error"]["text"] == "out of memory"
    assert cli.main(["speak", "--json"]) == 2  # before the command is known to be one
    assert "required: NAME" in json.loads(capsys.readouterr().out)["error"]["text"]


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
    with progress.listen_to_progress(progress.Terminal(stream)):
        for step in range(11):  # one second
            clock[0] += 0.1
            progress.report_progress("short", step / 10)
        assert stream.text == ""
        for step in range(101):  # fifty seconds
            clock[0] += 0.5
            progress.report_progress("long", step / 100)
    lines = stream.text.splitlines()
    assert lines[0].startswith("long:   5 %")
    assert lines[-1] == "long: 50.0 s"
    assert 5 <= len(lines) <= 7
    progress.report_progress("no one listens", 0.5)


@pytest.mark.parametrize("live", [False, True])
def test_work_that_reports_its_beginning_only_is_shown(live):
    """A compilation, or the sum of another package, says nothing until it ends."""
    written = threading.Event()

    class Noticed(Stream):
        def write(self, text):
            super().write(text)
            written.set()

    stream = Noticed(live=live)
    terminal = progress.Terminal(stream, delay=0.02)
    with progress.listen_to_progress(terminal):
        progress.report_progress(progress.COMPILING, 0.0)
        assert written.wait(20)
    terminal.close()
    assert f"{progress.COMPILING} ..." in stream.text


def test_a_log_has_no_more_lines_for_much_work_than_for_long(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    stream = Stream(live=False)
    with progress.listen_to_progress(progress.Terminal(stream)):
        for step in range(200):  # as many kernels, of five seconds each, and what is done with them
            for seconds, label in ((5.0, progress.COMPILING), (3.0, f"verify, {step % 7}")):
                for part in range(10):
                    progress.report_progress(label, part / 10)
                    clock[0] += seconds / 10
                progress.report_progress(label, 1.0)
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


def test_help_has_no_placeholders():
    """Messages have them, ``{spacing}``, which an interface replaces; help is the same everywhere."""
    placeholder = re.compile(r"\{[a-z_]+( [^{}]*)?\}")
    assert not [(name, p.name) for name in registry.available("command")
                for p in registry.get("command", name).parameters if placeholder.search(p.option.help)]


def test_an_unknown_command_is_named_as_a_shell_has_it(capsys):
    assert cli.main(["surfaces", "a.pdb"]) == 2
    line = capsys.readouterr().err
    assert "command surfaces" in line
    assert "'surface'" in line
    assert "command=" not in line
