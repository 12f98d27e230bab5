"""The bundle's wheel, what the real toolshed makes of it, and its help."""

import configparser
import re
import sys
import tomllib
import zipfile
from email.parser import Parser
from html.parser import HTMLParser
from pathlib import Path

import core
import pytest

import vmdpotential
from vmdpotential import registry
from vmdpotential.frontend.declarations import in_front
from vmdpotential.plugins.viewers.adapters import offered_parameters, viewer_commands
from vmdpotential.plugins.viewers.display import surface_options

ROOT = Path(__file__).resolve().parents[2]
BUNDLE = ROOT / "plugins" / "chimerax"
COMMANDS = [command.name for command in viewer_commands(pytest.fail)]


def test_wheel_holds_code_and_help_and_says_what_it_needs(wheel):
    with zipfile.ZipFile(wheel) as opened:
        packed = set(opened.namelist())
        (name,) = [name for name in packed if name.endswith("METADATA")]
        metadata = Parser().parsestr(opened.read(name).decode())
    expected = {f"chimerax/vmdpotential/{path.relative_to(BUNDLE / 'src')}" for path in (BUNDLE / "src").rglob("*.*")
                if path.suffix in (".py", ".html")}
    assert {name for name in packed if ".dist-info" not in name} == expected
    assert metadata["Name"] == "ChimeraX-VMDPotential"
    assert metadata["Version"] == vmdpotential.__version__
    requirements = [text.replace(" ", "") for text in metadata.get_all("Requires-Dist")]
    assert requirements == ["ChimeraX-Core>=1.9", f"vmdpotential>={vmdpotential.__version__}"]


def test_toolshed_finds_the_bundle_and_its_commands(session):
    bundle = session.toolshed.find_bundle("ChimeraX-VMDPotential", session.logger)
    assert bundle.version == vmdpotential.__version__
    assert bundle.package_name == "chimerax.vmdpotential"
    assert {command.name for command in bundle.commands} == {f"potential {name}" for name in COMMANDS}
    for command in bundle.commands:
        declared = registry.get("command", command.name.removeprefix("potential "))
        assert command.synopsis == declared.summary


@pytest.mark.parametrize("name", COMMANDS)
def test_usage_lists_every_option_with_unit_and_default(session, name):
    from chimerax.core.commands import cli

    text = cli.usage(session, f"potential {name}")
    command = registry.get("command", name)
    for parameter in command.parameters:
        first, *others = parameter.name.split("_")
        keyword = first + "".join(word.capitalize() for word in others)
        offered = parameter.option.viewer or parameter.required or parameter.name in ("topology", "frames")
        if not offered and parameter.name != "force":
            assert f"[{keyword} _" not in text
        elif offered and not parameter.required:
            assert f"[{keyword} _" in text
            assert parameter.option.help in text or parameter.name == "frames"  # of which a viewer has loaded ones
            if parameter.option.unit:
                assert f"({parameter.option.unit}" in text
    assert command.summary in text
    assert ("[force _" in text) == (name in ("complementarity", "slice", "surface", "view"))


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_page_that_begins_with_the_essentials(session, name):
    """What it makes, an example and its important keywords; agents read the beginning only."""
    from chimerax.core.commands import cli
    from chimerax.core.toolshed import get_help_directories

    assert f"user/commands/potential_{name}.html" in cli.html_usage(session, f"potential {name}")
    pages = [Path(folder, f"user/commands/potential_{name}.html") for folder in get_help_directories()]
    (page,) = [page for page in pages if page.exists()]
    text = page.read_text(encoding="utf-8")
    command = registry.get("command", name)
    shown = re.findall(r"<dt><b>(\w+)</b>", text[:2000])
    assert "<pre>" in text[:2000]
    offered = [parameter for parameter in offered_parameters(command) if not parameter.required]
    important = [parameter for parameter in offered if in_front(command, parameter)]
    assert len(shown) >= min(3, len(important))
    every = re.findall(r"<dt><b>(\w+)</b>", text)
    assert {word.lower() for word in every} == {
        parameter.name.replace("_", "") for parameter in (*offered, *surface_options(command))}


def test_the_overview_has_every_command():
    anchors = set()

    class Anchors(HTMLParser):
        def handle_starttag(self, tag, attrs):
            anchors.update(value for key, value in attrs if key == "id")

    Anchors().feed((BUNDLE / "src/docs/user/commands/potential.html").read_text(encoding="utf-8"))
    assert {*COMMANDS} <= anchors


def test_examples_of_the_help_are_understood(session, ions, do, tmp_path, monkeypatch):
    """Their models 2 and 3 are maps here; ChimeraX parses the lines without running them."""
    from chimerax.core.commands import Command

    for _ in range(2):
        do("potential map #1:NA,CL spacing 2 boundary open medium explicit surface false")
    monkeypatch.chdir(tmp_path)
    for name in ("system.psf", "system.prmtop", "amber14-all.xml", "benzene.molden"):
        (tmp_path / name).touch()
    page = (BUNDLE / "src/docs/user/commands/potential.html").read_text(encoding="utf-8")
    lines = [line for text in re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL) for line in text.splitlines()]
    assert {line.split()[1] for line in lines} == {*COMMANDS}
    for line in lines:
        Command(session).run(line, log_only=True)


def test_the_package_ships_the_bundle():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    globs = setup["options.package_data"]["vmdpotential.plugins"].replace(",", "\n").split()
    packed = {path for pattern in globs for path in (ROOT / "plugins").glob(pattern)}
    files = {path for path in BUNDLE.rglob("*") if path.suffix in (".py", ".toml", ".html", ".md", ".png")}
    assert files - packed == set()
    assert tomllib.loads((BUNDLE / "pyproject.toml").read_text())["project"]["version"] == vmdpotential.__version__


def in_a_process(home, code, tmp_path):
    """Run code with `session` and `run` in a process of its own; return what it prints."""
    (tmp_path / "ion.pdb").write_text(
        "HETATM    1 NA   NA  A   1       0.000   0.000   0.000  1.00  0.00          NA\nEND\n")
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import pathlib, core\n"
        "session = core.start(pathlib.Path(sys.argv[2]))\n"
        "from chimerax.core.commands import run\n"
        "from chimerax.core.errors import UserError\n"
        "from chimerax.pdb import open_pdb\n"
        "session.models.add(open_pdb(session, sys.argv[3], 'ion')[0])\n" + code)
    return core.run(sys.executable, "-c", program, Path(__file__).parent, home, tmp_path / "ion.pdb", cwd=tmp_path)


@pytest.mark.parametrize(("package", "hint"), [
    ("vmdpotential", "ChimeraX's Python has no package 'vmdpotential'; "
                     "'vmdpotential install chimerax' in a shell prints how to install it"),
    ("gemmi", "ChimeraX's Python has no package 'gemmi', which vmdpotential needs; type: pip install gemmi"),
])
def test_missing_package_is_one_line_with_a_hint(home, tmp_path, package, hint):
    output = in_a_process(home, f"sys.modules[{package!r}] = None\n" + (
        "try:\n    run(session, 'potential map #1 spacing 5')\n"
        "except UserError as error:\n    print('UserError', error)\n"), tmp_path)
    (line,) = [line for line in output.splitlines() if line.startswith("UserError")]
    assert line == f"UserError potential map: {hint}"


def test_commands_of_other_packages(home, tmp_path):
    output = in_a_process(home, r"""
import logging
from pathlib import Path
from typing import Annotated
from vmdpotential import registry
from vmdpotential.errors import TaskError
from vmdpotential.parameters import Command, Option, Report
from vmdpotential.molecule.structure import Structure

def number_of_atoms(
    structure: Annotated[Path | Structure, Option("structure file", positional=True)],
    least_charge: Annotated[float, Option("that counts", unit="e", low=0)] = 0.0,
    also_ions: Annotated[bool, Option("count ions too")] = True,
) -> Report:
    "Count atoms."
    logging.getLogger("vmdpotential.maps").warning("%s: --no; {least_charge} sets\nanother", "{structure}")
    if least_charge > 1:
        raise TaskError("npm install\n --prefix '{structure}' -o x",
                        "use {least_charge 1}, {also_ions no}, another {structure} or {debye_length}")
    return Report([f"{len(structure)} atoms from {least_charge:g} e"], {})

registry.register("command", "count", Command.of(number_of_atoms, "count"))
registry.register("command", "broken", "no_such_module:command")
from chimerax.core.commands import cli
cli.usage(session, "potential map")
print(cli.usage(session, "potential count"))
run(session, "potential count #1 leastCharge 0.5")
for charge in (-1, 2):
    try:
        run(session, f"potential count #1 leastCharge {charge}")
    except UserError as error:
        print("UserError", error)
""", tmp_path)
    assert "[leastCharge _a number: that counts (e); default 0.0_]" in output
    assert "1 atoms from 0.5 e" in output
    assert "the command 'broken' is left out: " in output
    assert "No module named 'no_such_module'" in output
    assert "UserError potential count: leastCharge -1: must be at least 0 e" in output
    # data is left as it is, and what is no keyword of the command too
    assert "potential count: {structure}: --no; leastCharge sets another" in output
    assert ("UserError potential count: npm install\\n --prefix '{structure}' -o x; use leastCharge 1, alsoIons "
            "false, another structure or debye_length\n") in output
