"""The errors that energies, forces, fields and ions state, against sums written out in numpy, in 6 of 30 systems."""

import pytest
import stated_systems
from helpers import slow

from vmdpotential.engines.cpu import CpuEngine
from vmdpotential.molecule.cell import Cell, same_cell

NAMES = ["box", "triclinic", "charged needle", "slanted plate", "open, charged", "alanine dipeptide"]


@pytest.mark.parametrize(("name", "tolerance"), slow(
    [(name, 1e-4) for name in NAMES] + [(name, 1e-5) for name in ("box", "triclinic", "alanine dipeptide")],
    [(name, 1e-4) for name in NAMES[2:]] + [(name, 1e-5) for name in ("box", "triclinic", "alanine dipeptide")]))
def test_actual_errors_are_those_stated(name, tolerance, monkeypatch):
    # so that open systems of few atoms take a mesh
    monkeypatch.setattr(CpuEngine, "costs", CpuEngine.costs._replace(point_pair=1.0, point_pair_field=1.0))
    (system,) = [system for named, *system in stated_systems.systems(name) if named == name]
    for what, stated, actual in stated_systems.compared(*system, tolerance):
        assert stated <= tolerance, what
        assert actual < stated_systems.MORE * max(stated, stated_systems.ROUNDING), what


def test_cells_are_compared_by_one_rule():
    cell, other = (Cell.from_parameters(20, 21, 22 + change) for change in (0, 1e-6))
    assert same_cell(cell, cell)
    assert same_cell(None, None)
    assert not same_cell(cell, other)
    assert not same_cell(cell, None)
    assert same_cell(cell, other, 1e-6)
