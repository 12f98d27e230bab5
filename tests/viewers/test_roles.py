"""Viewers treat parameters by what they are declared to be, whatever their names."""

from __future__ import annotations

import runpy
from ast import parse
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest

import vmdpotential as vp
from vmdpotential.figures.colours import standard_limit
from vmdpotential.parameters import Command, Option, Report
from vmdpotential.plugins.viewers import adapters
from vmdpotential.plugins.viewers.display import surface_options

ROOT = Path(__file__).parents[2]


def named(
    atoms: Annotated[Path | vp.Structure, Option("structure file", positional=True)],
    bonds: Annotated[Path | None, Option("names of the atoms", viewer=False, role="topology")] = None,
    unit_of_life: Annotated[str, Option("assembly", role="assembly")] = "",
    crystal: Annotated[str, Option("cell", choices=("no", "cell"), role="expansion")] = "no",
    picture: Annotated[Path | None, Option("figure", written=True)] = None,
    again: Annotated[bool, Option("replace it", viewer=False, role="overwriting")] = False,
    force: Annotated[bool, Option("a force", viewer=False)] = False,
) -> Report:
    """Draw."""
    return Report([], {})


def test_a_viewer_offers_what_is_declared():
    command = Command.of(named)
    assert [p.name for p in adapters.offered_parameters(command)] == [
        "atoms", "bonds", "unit_of_life", "crystal", "picture", "again"]
    assert adapters.to_file(command)
    assert [p.name for p in command.parameters if adapters.is_topology(command, p)] == ["bonds"]


def test_copies_are_requested_by_any_name(peptide):
    command = Command.of(named)
    assert adapters.copies(command, {}, peptide) is None
    assert adapters.copies(command, {"crystal": None, "assembly": "1"}, peptide) is None
    with pytest.raises(vp.UsageError) as error:
        adapters.copies(command, {"unit_of_life": "1"}, peptide)  # without the file that lists it
    assert error.value.parameter == "assembly"


def test_the_medium_does_not_fold_the_colours():
    """It is in front of all dialogs, and no option of the command's own."""
    def drawn(structure: Annotated[Path | vp.Structure, Option("structure", positional=True)],
              around: Annotated[str, Option("medium", front=True, role="medium")] = "water") -> Report:
        return Report([], {})

    assert all(p.option.front for p in surface_options(Command.of(drawn, draws="surface")) if p.name != "surface_of")


@pytest.mark.parametrize(("derived", "quantity"), [("difference", "phi"), ("deviation", "phi"), ("error", "phi")])
def test_values_derived_from_a_potential_have_colours_of_their_own(derived, quantity):
    lattice = vp.Lattice([0, 0, 0], [1, 1, 1], (3, 3, 3))
    grid = vp.Grid(lattice, np.ones((3, 3, 3), np.float32), "kT/e", 298.15)
    grid = replace(grid, provenance=replace(grid.provenance, medium_kind="water", quantity="standard potential"))
    assert standard_limit(grid) == 5
    assert standard_limit(grid + grid) == 5
    assert standard_limit(grid - grid) is None
    changed = replace(grid, provenance=replace(grid.provenance, quantity=quantity, derived=derived))
    assert standard_limit(changed) is None
    assert vp.Grid.from_header(lattice, grid.values, changed.header()).provenance.derived == derived


@pytest.mark.parametrize("code", [
    "any(p.name == 'output' for p in parameters)", "parameter.name in ('assembly', 'expand')",
    "grid.provenance.quantity.startswith(('difference', 'standard'))", "grid.provenance.quantity == 'difference'",
    "engine.name != 'cuda'", "_NAMES = ('atoms', 'radii')\nx = parameter.name in _NAMES"])
def test_decisions_by_names_are_found(code):
    decisions = runpy.run_path(str(ROOT / "scripts" / "check-decisions"), run_name="script")["decisions"]
    assert len([*decisions(parse(code))]) == 1
    assert not [*decisions(parse("parameter.option.role == 'topology'\nparameter.name in values"))]
