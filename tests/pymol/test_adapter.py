"""How a declared command becomes a command of PyMOL, shown with a small command of the test's own."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
from messages import Words, naming
from pymol import CmdException

from vmdpotential import registry
from vmdpotential.errors import TaskError
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option, Report
from vmdpotential.plugins.pymol import commands

calls = []


def survey(
    structure: Annotated[Path | Structure, Option("atoms to look at", positional=True)],
    spacing: Annotated[float, Option("distance of lattice points", unit="A", above=0)] = 2.0,
    limits: Annotated[tuple[str, ...], Option("named limits")] = (),
    fast: Annotated[bool, Option("be quick")] = False,
    mode: Annotated[str, Option("what to do", choices=("plain", "fail", "interrupt", "memory"))] = "plain",
    table: Annotated[Path | None, Option("table to read")] = None,
    force: Annotated[bool, Option("replace files", viewer=False)] = False,
) -> Report:
    """Survey the atoms.

    A map of x + y + z is made.

    Raises
    ------
    TaskError
    """
    calls.append({"structure": structure, "spacing": spacing, "limits": limits, "fast": fast, "table": table,
                  "force": force})
    if mode == "fail":
        logging.getLogger("vmdpotential.maps").warning("%s: --no; {spacing} sets\nanother", "{fast}")
        raise TaskError("npm install\n --prefix '{spacing}' -o x",
                        "use a larger {spacing}, {fast no} or another {structure}")
    if mode == "interrupt":
        raise KeyboardInterrupt
    if mode == "memory":
        raise MemoryError
    lattice = Lattice.around(structure.positions, spacing, 2)
    grid = Grid(lattice, lattice.points().sum(1).reshape(lattice.shape), unit="V")
    return Report([f"{len(structure)} atoms surveyed"], {}, {"grid": grid, "structure": structure})


def compare(
    maps: Annotated[tuple[Path | Grid, ...], Option("maps to compare", positional=True)],
) -> Report:
    """Compare maps."""
    calls.append({"maps": maps})
    return Report([f"{len(maps)} maps compared"], {})


@pytest.fixture
def survey_cmd(cmd):
    calls.clear()
    for function in (survey, compare):
        adapted = commands.adapt(Command.of(function, draws="surface"))
        cmd.extend(adapted.__name__, adapted)
    cmd.fragment("ala")
    return cmd


def test_defaults(survey_cmd, do):
    output = do("potential_survey")
    assert "10 atoms surveyed" in output
    assert len(output.splitlines()) == 3  # PyMOL prints what is said of an atom, for every atom
    (call,) = calls
    call.pop("structure")
    assert call == {"spacing": 2.0, "limits": (), "fast": False, "table": None, "force": False}
    assert survey_cmd.get_names() == ["ala", "survey", "survey_ramp", "survey_legend", "survey_surface",
                                      "survey_group"]


def test_arguments_are_converted_by_the_declaration(survey_cmd, do):
    do('potential_survey name CA+CB, box, 0.5, [SOD=11,CLA=2], fast=on, table="a file\'s name, and more.psf"')
    (call,) = calls
    assert call["structure"].atom_names.tolist() == ["CA", "CB"]
    assert (call["spacing"], call["limits"], call["fast"]) == (0.5, ("SOD=11,CLA=2",), True)
    assert call["table"] == Path("a file's name, and more.psf")
    assert "box" in survey_cmd.get_names()


def test_python_call_with_numbers(survey_cmd):
    run = survey_cmd.keyword["potential_survey"][0]
    report = run("ala", spacing=0.75, fast=True, _self=survey_cmd)
    assert report.objects["grid"].lattice.spacing.tolist() == [0.75] * 3
    assert calls[-1]["fast"] is True


@pytest.mark.parametrize(("line", "message"), [
    ("potential_survey all, spacing=abc", "Error: spacing=abc: a number is needed"),
    ("potential_survey all, spacing=-1", "Error: spacing=-1: must be above 0 A"),
    ("potential_survey all, fast=maybe", "Error: fast=maybe: write yes or no"),
    ("potential_survey all, mode=other",
     "Error: mode=other: is unknown; choose one of plain, fail, interrupt, memory"),
    ("potential_survey resn XYZ", "Error: selection 'resn XYZ' has no atoms in this state; load a structure"),
    ("potential_survey all, ala", "Error: name=ala: the object ala exists"),
    ("potential_survey mode=fail",
     "Error: npm install\\n --prefix '{spacing}' -o x; use a larger spacing, fast=no or another selection"),
    ("potential_survey mode=memory", "Error: out of memory; use a larger spacing, fewer atoms or a lower dpi"),
    ("potential_survey all, a, 1, b, no, plain, c, d, e, f, g, h, i, 1, j",
     "too many positional arguments for potential_survey"),
    ("potential_survey force=1", "force"),
    ("potential_survey all, spacig=1", "Error: spacig=1: potential_survey has no such argument; did you mean spacing?"),
    ('potential_survey all, table=""', "Error: table=\"\": a value is needed; leave it out for its default"),
    ("potential_survey all, limits=[]", "Error: limits=[]: a value is needed; leave it out for its default"),
    ("potential_survey all, quiet=abc", "Error: quiet=abc: "),
    ("potential_survey all, _self=3", "Error: _self=3: is PyMOL's own argument; leave it out"),
    ("potential_survey ala or", "Error: selection 'ala or' is not in PyMOL's language of selections"),
    ("potential_compare", "Error: maps: a value is needed"),
    ("potential_compare ala", "Error: object 'ala' is not a map"),
    ("potential_compare no/such.dx", "Error: 'no/such.dx' is neither a map object nor a file"),
])
def test_wrong_use_is_one_line(survey_cmd, do, line, message):
    output = do(line)
    assert message in output
    assert "Traceback" not in output
    assert sum("Error" in text for text in output.splitlines()) == 1
    assert survey_cmd.get_names() == ["ala"]  # nothing is left behind


def test_warnings_are_told_with_pymols_arguments(survey_cmd, do, capfd):
    output = do("potential_survey mode=fail")
    assert " warning: {fast}: --no; spacing sets another" in output
    assert output.count("sets another") == 1
    logging.getLogger("vmdpotential.maps").warning("of another command")
    assert "warning: of another command" not in capfd.readouterr().out


def test_errors_are_pymols_own_class(survey_cmd):
    with naming(CmdException, Words.NOT_POSITIVE):
        survey_cmd.keyword["potential_survey"][0](spacing="0", _self=survey_cmd)


def test_interrupt_passes(survey_cmd):
    with pytest.raises(KeyboardInterrupt):
        survey_cmd.keyword["potential_survey"][0](mode="interrupt", _self=survey_cmd)


def test_help_and_usage_show_every_argument(survey_cmd, do):
    text = do("help potential_survey")
    for expected in ("DESCRIPTION", "Survey the atoms.", "A map of x + y + z is made.", "USAGE", "ARGUMENTS",
                     "selection = selection of atoms: atoms to look at {default: all}",
                     "spacing = number: distance of lattice points (A) {default: 2.0}",
                     "mode = plain, fail, interrupt, memory: what to do {default: plain}"):
        assert expected in text
    assert "force" not in text
    assert "Raises" not in text
    assert "potential_survey [ selection [, name [, spacing" in do("potential_survey ?")


def odd(
    structure: Annotated[Path | Structure, Option("atoms", positional=True)],
    set: Annotated[str, Option("as a command of PyMOL")] = "",
    lambda_: Annotated[str, Option("as a word of Python")] = "",
    quiet: Annotated[str, Option("as an argument of every command")] = "",
    selection: Annotated[str, Option("as another")] = "",
) -> Report:
    """Take names that mean something else."""
    return Report([f"{len(structure)} atoms, {set}, {lambda_}, {quiet}, {selection}"], {})


def test_names_that_python_or_pymol_have_taken(cmd, do):
    odd_parameters = Command.of(odd)
    names = {"lambda_": "lambda"}
    command = replace(odd_parameters, function=lambda **given: odd(**{
        {"lambda": "lambda_"}.get(name, name): value for name, value in given.items()}),
        parameters=tuple(replace(p, name=names.get(p.name, p.name)) for p in odd_parameters.parameters))
    command = replace(command, name="odd")
    adapted = commands.adapt(command)
    cmd.extend(adapted.__name__, adapted)
    cmd.fragment("ala")
    assert "10 atoms, a=b, c, d, e" in do("potential_odd ala, set=a=b, lambda_=c, quiet_=d, selection_=e")


def test_the_camera_stays(survey_cmd, do):
    survey_cmd.zoom("ala", 20)
    survey_cmd.turn("x", 30)
    view = survey_cmd.get_view()
    assert "Error" not in do("potential_survey all, isosurface=5, surface=yes, cut=z=0")
    assert survey_cmd.get_view() == view


def test_completion(cmd):
    cmd.fragment("ala", "peptide")
    complete, what, end = cmd.auto_arg[0]["potential_map"]
    assert (what, end) == ("selection", ", ")
    assert "peptide" in complete().keywords
    assert cmd._parser.complete("potential_map pep") == "potential_map peptide, "


def test_result_is_replaced_and_others_are_kept(survey_cmd, do):
    do("potential_survey all, m")
    first = survey_cmd.get_volume_field("m").shape
    do("potential_survey all, m, 1")
    assert survey_cmd.get_volume_field("m").shape > first
    assert survey_cmd.count_states("m") == 1
    assert survey_cmd.get_names() == ["ala", "m", "m_ramp", "m_legend", "m_surface", "m_group"]


def test_maps_go_in_as_grids_with_their_unit_or_as_files(survey_cmd, do, tmp_path):
    do("potential_survey ala, one", "potential_survey ala, two, 0.7")
    path = tmp_path / "it's a file.dx"
    path.write_text("")
    assert "3 maps compared" in do(f'potential_compare one two "{path}"')
    first, second, file = calls[-1]["maps"]
    assert file == path
    for typed in (f'"{path}"', f'[ "{path}" ]', f'maps="{path}"'):
        assert "1 maps compared" in do(f"potential_compare {typed}")
        assert calls[-1]["maps"] == (path,)
    assert second.unit == "V"
    for grid in (first, second):
        # x + y + z at the points where PyMOL says that they are
        expected = grid.lattice.points().sum(1).reshape(grid.lattice.shape)
        np.testing.assert_allclose(grid.values, expected, atol=1e-5)


def test_broken_command_of_another_package_is_left_out(cmd, monkeypatch, capfd):
    monkeypatch.setitem(registry._entries["command"], "broken", "no_such_module:command")
    assert "potential_map" in commands.register(cmd)
    assert "'broken' is left out" in capfd.readouterr().out
