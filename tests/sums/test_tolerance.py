"""Maps to a tolerance, on real systems, against programs and sums that know nothing of meshes."""

from functools import cache
from importlib import resources

import fmm3dpy
import numpy as np
import pytest
from helpers import TOOLS
from scipy.spatial import cKDTree

from vmdpotential.engines import get_engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.io import read_structure
from vmdpotential.maps import potential_map
from vmdpotential.molecule.charges import charges_and_report
from vmdpotential.sums import accuracy
from vmdpotential.sums.reference import full_potential
from vmdpotential.units import coulomb_constant

DEMO = resources.files("data")
TESTDATA = resources.files("MDAnalysisTests") / "data"
LIPIDS = resources.files("openmm") / "app" / "data"
SYSTEMS = {
    "protein": (DEMO / "dhfr.pdb.gz", DEMO / "dhfr.psf.gz"),
    "dna": (TOOLS / "dna_dodecamer_explicit" / "inpcrd", TOOLS / "dna_dodecamer_explicit" / "prmtop"),
    "membrane": (LIPIDS / "POPC.pdb", None),
    "triclinic": (TESTDATA / "adk_oplsaa.gro", TESTDATA / "adk_oplsaa.tpr"),
}
#: Nightly an open boundary, for which a cell does not matter, around the largest system.
CASES = [pytest.param(system, boundary, marks=[] if system == "dna" else pytest.mark.slow if (system, boundary) != (
    "triclinic", "open") else pytest.mark.nightly) for system in SYSTEMS for boundary in ("open", "periodic")]
TOLERANCES = [1e-2, 1e-3, 1e-4, 1e-5]


@cache
def structure(system):
    result, _ = charges_and_report(read_structure(*SYSTEMS[system]), "auto")
    return result


@cache
def places(system):
    """Return a lattice through the system, some of its points, and some that are within 1 A of an atom."""
    # a spacing that no mesh has, so that nodes fall on lattice points nowhere
    lattice = Lattice.around(structure(system).positions, 2.3, 2.0)
    rng = np.random.default_rng(11)
    distance, _ = cKDTree(structure(system).positions).query(lattice.points(), distance_upper_bound=1.0)
    # nearer than 0.01 A the potential is what we say it is, which other programs do not know
    sets = np.flatnonzero(distance > 0.01), np.flatnonzero((distance > 0.01) & (distance < 1.0))
    chosen = (rng.choice(nodes, count) for nodes, count in zip(sets, (1500, 800), strict=True))
    return lattice, *(np.stack(np.unravel_index(nodes, lattice.shape), -1) for nodes in chosen)


@cache
def exact(system, boundary):
    """Return the potential (e/A) at the two sets of points."""
    atoms, (lattice, *sets) = structure(system), places(system)
    points = lattice.points(np.concatenate(sets))
    if boundary == "periodic":
        values = full_potential(points, atoms.positions, atoms.known_charges, atoms.cell, get_engine("cpu")).values()
    else:
        out = fmm3dpy.lfmm3d(eps=1e-9, sources=atoms.positions.T, charges=atoms.known_charges, targets=points.T, pgt=1)
        values = 4 * np.pi * out.pottarg
    return np.split(values, [len(sets[0])])


@cache
def distances(system, boundary):
    """Return the distances of the first set's points to the nearest atom, A."""
    atoms, (lattice, first, _) = structure(system), places(system)
    positions = atoms.positions
    if boundary == "periodic":
        positions, _ = atoms.cell.images_in_box(positions, lattice.origin - 3, lattice.last + 3)
    return cKDTree(positions).query(lattice.points(first))[0]


# away from charges, where the potential is a hundredth, the best levels have errors of 2e-5 to 5e-5 in some systems
@pytest.mark.parametrize(("method", "tolerance"), [
    *(("pme", tolerance) for tolerance in TOLERANCES), *(("msm", tolerance) for tolerance in TOLERANCES[:3])])
@pytest.mark.parametrize(("system", "boundary"), CASES)
def test_error_is_below_the_tolerance(system, boundary, method, tolerance):
    lattice, *sets = places(system)
    made = potential_map(structure(system), method=method, boundary=boundary, tolerance=tolerance, lattice=lattice,
                         unit="V", engine="cpu")
    assert made.provenance.method == method
    assert max(made.provenance.error, made.provenance.error_away) <= tolerance
    for indices, expected in zip(sets, exact(system, boundary), strict=True):
        values = made.values[tuple(indices.T)] / coulomb_constant("V")
        assert np.sqrt(np.mean((values - expected) ** 2) / np.mean(expected**2)) <= tolerance
    # where people look: 2 A from every atom, where the potential is small
    indices, expected = sets[0], exact(system, boundary)[0]
    far = distances(system, boundary)
    away = accuracy.Sample(indices, expected[None], np.ones(len(far)), far).away
    error = made.values[tuple(indices[away].T)] / coulomb_constant("V") - expected[away]
    assert np.sqrt(np.mean(error**2) / np.mean(expected[away] ** 2)) <= 1.2 * tolerance
