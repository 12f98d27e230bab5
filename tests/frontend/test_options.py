"""The shell's options: headings of the help, examples that run, and further names."""

import gzip
import importlib.util
import itertools
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import MDAnalysis
import numpy as np
import pytest
from helpers import TOOLS, shell
from MDAnalysisTests.datafiles import DCD, PSF

from vmdpotential import registry
from vmdpotential.errors import UsageError
from vmdpotential.frontend.arguments import FEW, HEADINGS, OTHER, build_parser, headings, join_negative_values

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = registry.available("command")
EXAMPLES = [line for name in COMMANDS for line in registry.get("command", name).examples]

#: Examples that are only parsed: they change the user's files, wait for frames, or take longer than a test may.
PARSED = ("mcp ", "install", "live", "completion", "verify", "benchmark", "devices --clear-cache")

#: Those that take more than half a second.
SLOW = ("average", "field", "energy", "probe", "batch", "surface", "view", "born",
        "prepare", "complementarity", "patches", "slice", "orbital", "map protein", "compare", "ionize", "titrate")


def parsed(line):
    """Return the checked values of the parameters in a line of a shell."""
    words = shlex.split(line.partition(" > ")[0])
    command = registry.get("command", words[0]).for_arguments(words[1:])
    values = vars(build_parser(words).parse_args(join_negative_values(words)))
    known = {parameter.name: parameter for parameter in command.parameters}
    return {name: known[name].convert(value) for name, value in values.items() if name in known}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files that examples name."""
    folder = tmp_path_factory.mktemp("examples")
    for name, source in (("protein", "gbsa"), ("system", "explicit")):
        for kind in ("pdb", "prmtop"):
            shutil.copy(TOOLS / f"alanine-dipeptide-{source}" / f"alanine-dipeptide.{kind}", folder / f"{name}.{kind}")
    # what is around the inhibitor, where both chains meet
    entry = gzip.decompress((ROOT / "data" / "1hvr.pdb.gz").read_bytes()).decode().splitlines(keepends=True)
    near = {*range(22, 33), *range(45, 56), *range(78, 89)}
    (folder / "entry.pdb").write_text("".join(
        line for line in entry if not line.startswith(("ATOM", "ANISOU")) or int(line[22:26]) in near))
    # a dipeptide in the marks of a membrane
    marks = [f"HETATM{n:5d}  N   DUM  {n:4d}    {x:8.3f}{y:8.3f}{z:8.3f}\n" for n, (x, y, z) in enumerate(
        itertools.product((-9, 9), (-9, 9), (-5, 5)), 900)]
    (folder / "channel.pdb").write_text("".join(marks) + (folder / "protein.pdb").read_text())
    shutil.copy(PSF, folder / "kinase.psf")
    shutil.copy(DCD, folder / "kinase.dcd")
    data = Path(importlib.util.find_spec("iodata").origin).parent / "test" / "data"
    shutil.copy(data / "h2o_psi4_1.3.2_6-31G_d_cart.molden", folder / "molecule.molden")
    system = MDAnalysis.Universe(folder / "system.prmtop", TOOLS / "alanine-dipeptide-explicit/alanine-dipeptide.crd",
                                 format="INPCRD")
    with MDAnalysis.Writer(str(folder / "trajectory.xtc"), len(system.atoms)) as writer:
        rng, start = np.random.default_rng(1), system.atoms.positions
        system.dimensions = MDAnalysis.Universe(folder / "system.pdb").dimensions
        for _ in range(3):
            system.atoms.positions = start + rng.normal(0, 0.05, start.shape)
            writer.write(system.atoms)
    (folder / "structures").mkdir()
    shutil.copy(folder / "protein.pdb", folder / "structures")
    (folder / "structures.csv").write_text("structure,trajectory,between\nsystem.prmtop,trajectory.xtc,protein water\n")
    package = folder / "node_modules" / "3dmol"
    (package / "build").mkdir(parents=True)
    (package / "build" / "3Dmol-min.js").write_text("var $3Dmol={createViewer:0};\n")
    (package / "LICENSE").write_text("BSD")
    (package / "package.json").write_text('{"version": "2.5.5"}')
    return folder


@pytest.mark.parametrize("line", EXAMPLES)
def test_examples_are_parsed(line):
    assert parsed(line) is not None


@pytest.mark.parametrize("line", [
    pytest.param(line, marks=[pytest.mark.slow] * line.startswith(SLOW)) for line in EXAMPLES
    if not line.startswith(PARSED)])
def test_examples_run(line, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.delenv("VMDPOTENTIAL_3DMOL", raising=False)
    inputs, _, output = line.partition(" -o ")
    for name, salt in (("potential.dx", 0.15), ("first.dx", 0.15), ("second.dx", 0.5)):
        if name in inputs and not Path(name).exists():
            assert shell(capsys, "map", "protein.pdb", "--screened", salt, "--spacing", 1, "-o", name)[0] == 0
    written = Path(output.split()[0]) if output else None
    if written is not None and written.is_file():
        written.unlink()
    if line.startswith("born"):  # at fewer places
        line = line.replace(" --positions 20", "") + " --positions 3"
    code, _, err = shell(capsys, *shlex.split(line))
    assert code == 0, err
    assert written is None or written.exists() or list(folder.glob(f"{written.stem}.*"))


def test_each_command_has_two_examples_of_its_own():
    for name in COMMANDS:
        examples = registry.get("command", name).examples
        assert len(set(examples)) == 2, name
        assert all(line.split()[0] == name for line in examples)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_headings_and_examples(name, capsys):
    with pytest.raises(SystemExit):
        shell(capsys, name, "--help")
    text, command = capsys.readouterr().out, registry.get("command", name)
    titles = re.findall(r"^([a-z ]+):$", text, re.MULTILINE)
    assert titles == [*headings(command), "help and reports", "examples"]
    for parameter in command.parameters:
        assert f"--{parameter.flag}" in text or parameter.option.positional
    for line in command.examples:
        assert f"vmdpotential {line}\n" in text
    assert "(default )" not in text
    options = [parameter for parameter in command.parameters if not parameter.option.positional]
    assert max(map(len, headings(command).values())) <= 20
    assert OTHER not in headings(command)
    assert len(options) <= FEW or "execution" in titles or "output" in titles


def test_every_ordered_heading_is_that_of_an_option():
    declared = {parameter.option.heading for name in COMMANDS for parameter in registry.get("command", name).parameters}
    assert set(HEADINGS) <= declared


def test_further_names_of_options_are_the_options(capsys, folder, monkeypatch):
    for name in COMMANDS:
        command = registry.get("command", name)
        words = [word for p in command.parameters for word in (p.name, *p.option.aliases)]
        assert len(set(words)) == len(words)
    assert parsed("map x.pdb --ionic-strength 0.15 --dielectric-constant 80")["screened"] == 0.15
    assert parsed("surface x.pdb y.dx --probe-radius 1.2 --color-range -3,3")["probe"] == 1.2
    with pytest.raises(UsageError) as caught:
        registry.get("command", "map")(structure=folder / "protein.pdb", ionic_strength=-1, output=folder / "no.dx")
    assert caught.value.parameter == "screened"
    monkeypatch.chdir(folder)
    values = []
    for option in ("--screened", "--ionic-strength"):
        code, out, _ = shell(capsys, "map", "protein.pdb", option, 0.2, "--spacing", 3, "-o", "a.dx", "--force",
                             "--json")
        assert code == 0
        values.append([json.loads(out)[key] for key in ("minimum", "maximum", "medium")])
    assert values[0] == values[1]


def test_lists_of_reports_are_short_unless_all_is_asked_for(capsys, folder, monkeypatch):
    monkeypatch.chdir(folder)
    line = ("ionize system.pdb --ions Na+=20,Cl-=20 --site random --seed 3 --from-solute 3 --between 3 --no-refine "
            "--dry-run")
    short, full = (shell(capsys, *shlex.split(line), *more)[1].splitlines() for more in ([], ["--verbose"]))
    ions = [[text for text in lines if re.match(r" *(NA|CL) +-?[\d.]+ ", text)] for lines in (short, full)]
    assert [len(result) for result in ions] == [3, 40]
    assert ions[0] == ions[1][:3]
    assert len(short) == len(full) - 40 + 3 + 1  # how many more there are
    report = json.loads(shell(capsys, *shlex.split(line), "--json")[1])
    assert len(report["ions"]) == 40
    assert len(report["report"]) == len(short)


def completed(script, *words):
    """Return what bash offers for the last word."""
    text = (f"source {script}; COMP_WORDS=(vmdpotential {' '.join(words)}); COMP_CWORD={len(words)}; "
            "_shtab_vmdpotential; printf '%s\\n' \"${COMPREPLY[@]}\"")
    return subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True).stdout.split()


def test_completion_in_bash(tmp_path, capsys, monkeypatch):
    code, out, _ = shell(capsys, "completion", "bash")
    assert code == 0
    script = tmp_path / "completion.sh"
    script.write_text(out)
    (tmp_path / "system.psf").touch()
    monkeypatch.chdir(tmp_path)
    assert completed(script, "ioni") == ["ionize"]
    assert completed(script, "map", "--ionic") == ["--ionic-strength"]
    assert completed(script, "map", "--method", "p") == ["pme", "pb"]
    assert completed(script, "map", "x.pdb", "--topology", "sys") == ["system.psf"]
    assert set(completed(script, "")) >= set(COMMANDS)


@pytest.mark.parametrize("name", ["zsh", "fish", "tcsh", "powershell"])
def test_completion_of_other_shells_has_the_options(name, capsys):
    code, out, _ = shell(capsys, "completion", name)
    assert code == 0
    assert "ionize" in out
    assert "ionic-strength" in out


def test_completion_names_the_package_that_it_needs(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert shell(capsys, "completion", "bash")[0] == 4


@pytest.mark.parametrize("words", [["map", "in.pdb", "--output", "-n.dx"], ["map", "in.pdb", "--output"]])
def test_a_value_that_looks_like_an_option_is_explained(words):
    """By the text of argparse's error, which has no class of its own."""
    with pytest.raises(UsageError) as caught:
        build_parser(words).parse_args(words)
    assert "./-name" in str(caught.value)
