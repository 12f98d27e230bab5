"""The float64 reference of the full potential against lattice constants, a Gaussian Ewald sum and OpenMM."""

import ewald
import numpy as np
import pytest
from helpers import relative_rms, slow

from vmdpotential.engines import get_engine
from vmdpotential.errors import MemoryPlanError
from vmdpotential.methods.reference import full_potential
from vmdpotential.molecule.cell import Cell

ENGINE = get_engine("cpu")
#: Potential at a unit charge from its own images and a neutralising background, times the edge of the
#: cubic cell: e.g. B. R. A. Nijboer, Th. W. Ruijgrok, J. Stat. Phys. 53, 361 (1988).
WIGNER = -2.837297479480620

ROTATION = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
CELLS = {
    "cube": Cell.from_parameters(21, 21, 21),
    "box": Cell.from_parameters(20, 22, 24),
    "turned box": Cell(np.diag([20.0, 22.0, 24.0]) @ ROTATION),
    "truncated octahedron": Cell.from_parameters(22, 22, 22, 70.5287794, 109.4712206, 70.5287794),
    "hexagonal": Cell.from_parameters(18, 18, 26, 90, 90, 120),
    "triclinic": Cell.from_parameters(20, 24, 22, 80, 75, 100),
    "skewed": Cell(np.array([[15.0, 0, 0], [37.0, 16, 0], [-24.0, 25, 17]])),
    "plate": Cell.from_parameters(4, 30, 33),
    "needle": Cell.from_parameters(5, 4, 60, 80, 95, 70),
    "left-handed": Cell(np.diag([20.0, 22.0, -24.0])),
    "small": Cell.from_parameters(1.1, 1.2, 1.3, 85, 80, 95),
}


def random_case(cell, count=40, seed=0):
    """Return points, and charges with a net charge, inside and outside a cell."""
    rng = np.random.default_rng(seed)
    positions = (3 * rng.random((count, 3)) - 1) @ cell.vectors
    return rng.random((30, 3)) @ cell.vectors, positions, rng.normal(size=count) + 0.1


@pytest.mark.parametrize("name", slow(CELLS, set(CELLS) - {"cube", "skewed", "needle"}))
def test_periodic_is_a_gaussian_ewald_sum(name):
    points, positions, charges = random_case(CELLS[name])
    values = full_potential(points, positions, charges, CELLS[name], ENGINE)
    assert relative_rms(values, ewald.with_field(points, positions, charges, CELLS[name].vectors)[0]) < 2e-9


@pytest.mark.parametrize(("crystal", "madelung", "distance", "ions"), [
    ("NaCl", -1.7475645946331822, 0.5, [[i, j, k] for i in (0, 0.5) for j in (0, 0.5) for k in (0, 0.5)]),
    ("CsCl", -1.7626747730709883, np.sqrt(0.75), [[0, 0, 0], [0.5, 0.5, 0.5]]),
])
def test_madelung_constants(crystal, madelung, distance, ions):
    # the ion itself left out, whose images and background are known
    edge = 5.6402
    ions = np.array(ions)
    charges = (-1.0) ** (2 * ions).sum(1)
    cell = Cell.from_parameters(edge, edge, edge)
    others = full_potential(np.zeros((1, 3)), ions[1:] * edge, charges[1:], cell, ENGINE)[0]
    assert (others * edge + WIGNER) * distance == pytest.approx(madelung, rel=1e-9)


def test_waves_that_do_not_fit_are_refused(monkeypatch):
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "10k")
    with pytest.raises(MemoryPlanError):
        full_potential(np.zeros((1, 3)), np.ones((1, 3)), np.ones(1), CELLS["cube"], ENGINE)
