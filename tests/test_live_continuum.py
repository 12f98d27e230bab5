"""Live maps in water of a real protein: moved atoms, other states of protonation, and mutations, without a viewer."""

from dataclasses import replace

import numpy as np
import pytest
from structure_files import MDA

from vmdpotential import potential_map, read_structure
from vmdpotential.commands.live import command as live
from vmdpotential.commands.map import command as map_
from vmdpotential.molecule.selection import is_protein

OPTIONS = {"method": "pb", "radii": "auto+mbondi2", "spacing": 2.0, "padding": 6.0}


@pytest.fixture(scope="module")
def bpti():
    """BPTI as X rays show it: heavy atoms alone."""
    entry = read_structure(MDA / "mmcif" / "5PTI.cif.gz")
    return dry(entry, is_protein(entry) & ~np.isin(entry.elements, ["H", "D"]))


def dry(structure, rows):
    return replace(structure.part(rows), whole=None, whole_rows=None, cell=None)


def net(report):
    return float(report.objects["structure"].charges.sum())


def at_once(structure, shift, lattice):
    """Return the map of a completed structure that is moved."""
    return potential_map(replace(structure, positions=structure.positions + shift), lattice=lattice, method="pb",
                         radii="auto+mbondi2")


def alike(grid, other, limit):
    assert grid.lattice.shape == other.lattice.shape
    difference = grid.values - other.values
    return np.sqrt(np.mean(difference**2)) < limit * np.sqrt(np.mean(other.values**2))


@pytest.mark.slow
def test_states_of_protonation(bpti):
    charges = []
    for ph in (2.0, 7.0):
        report, made = live(structure=bpti, ph=ph, **OPTIONS), map_(structure=bpti, ph=ph, **OPTIONS)
        charges.append(net(report))
        assert "continuum" in report.objects["grid"].provenance.medium
        assert alike(report.objects["grid"], made.objects["grid"], 1e-5)
        shift = [0.7, -0.4, 0.2]  # hydrogens move with their atoms
        result = report.objects["live"].update(bpti.positions + shift)
        assert alike(result, at_once(report.objects["structure"], shift, result.lattice), 1e-4)
    assert charges[1] == pytest.approx(6, abs=0.01)
    assert charges[0] > 10  # its acids are neutral
