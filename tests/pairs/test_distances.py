"""Histograms of distances: against all pairs with all images written out, and closed forms."""


import numpy as np
import pytest
from helpers import refused
from pairs import distances

from vmdpotential.engines import get_engine
from vmdpotential.molecule.cell import Cell
from vmdpotential.plugins.pairs.distances import count_distances

CELLS = {
    "open": None,
    "box": Cell(np.diag([9.0, 11.0, 13.0])),
    "triclinic": Cell(np.array([[9.0, 0, 0], [3, 8, 0], [-2, 4, 7]])),
    "not reduced": Cell(np.array([[9.0, 0, 0], [31, 8, 0], [-20, 14, 7]])),
    "large": Cell(np.array([[30.0, 0, 0], [13, 28, 0], [-12, 9, 27]])),
    "tiny": Cell(np.array([[2.0, 0, 0], [0.5, 3, 0], [0, 0, 2.5]])),
}


@pytest.fixture
def engine():
    """The CPU's: no other has these sums yet."""
    return get_engine("cpu")


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("count", [1, 40])
def test_histograms_are_the_distances(engine, name, count):
    cell = CELLS[name]
    rng = np.random.default_rng(count)
    count, spread = (min(count, 8), 3) if name == "tiny" else (count, 12)
    positions, others = (rng.uniform(-spread, spread, (n, 3)) for n in (count, count // 2 + 1))
    for reach in (4.0, 7.0):
        for second in (None, others):
            result = count_distances(engine, positions, second, cell, reach, 37)
            assert result.dtype == np.int64
            assert (result == distances(positions, second, cell, reach, 37)).all()


def test_edges_of_ranges_belong_to_the_next(engine):
    line = np.zeros((7, 3))
    line[:, 2] = np.arange(7)
    assert count_distances(engine, line, None, None, 5.0, 5).tolist() == [0, 6, 5, 4, 3]
    assert count_distances(engine, line, line.copy(), None, 5.0, 5).tolist() == [7, 12, 10, 8, 6]
    cell = Cell(np.diag([40.0, 40.0, 7.0]))
    assert count_distances(engine, line, None, cell, 4.0, 8).tolist() == [0, 0, 7, 0, 7, 0, 7, 0]


def test_many_atoms_count_each_pair_once(engine, monkeypatch):
    """In a box shorter than twice the reach as in a long one; and all that there are where the reach is beyond all."""
    rng = np.random.default_rng(7)
    positions, cell = rng.uniform(0, 30, (3000, 3)), Cell(np.diag([30.0, 25.0, 14.0]))
    split = rng.random(3000) < 0.3
    counts = []
    for threads in "14":
        monkeypatch.setenv("VMDPOTENTIAL_THREADS", threads)
        for here in (None, cell):
            whole = count_distances(engine, positions, None, here, 9.0, 50)
            a, b = positions[split], positions[~split]
            parts = [count_distances(engine, a, None, here, 9.0, 50), count_distances(engine, b, None, here, 9.0, 50),
                     count_distances(engine, a, b, here, 9.0, 50)]
            assert (sum(parts) == whole).all()
            counts.append(whole)
    assert (counts[0] == counts[2]).all()
    assert (counts[1] == counts[3]).all()
    assert count_distances(engine, positions, None, None, 60.0, 3).sum() == 3000 * 2999 // 2
    moved = positions + rng.integers(-3, 4, (3000, 3)) @ cell.vectors
    assert np.abs(count_distances(engine, moved, None, cell, 9.0, 50) - counts[1]).sum() <= 4  # by rounding
    # atoms everywhere: as many as the volume has
    shell = 4 / 3 * np.pi * np.diff((np.arange(51) * 9 / 50) ** 3)
    assert counts[1].sum() == pytest.approx(3000**2 / 2 / cell.volume * shell.sum(), rel=0.05)


def test_places_far_apart_and_nothing(engine):
    far = np.array([[0.0, 0, 0], [0.5, 0, 0], [1e7, 0, 0], [1e7, 0, 0.25]])
    assert count_distances(engine, far, None, None, 1.0, 4).tolist() == [0, 1, 1, 0]
    assert count_distances(engine, np.zeros((5, 3)), None, None, 1.0, 2).tolist() == [10, 0]
    assert count_distances(engine, np.zeros((0, 3)), None, None, 1.0, 2).tolist() == [0, 0]
    assert count_distances(engine, far, np.zeros((0, 3)), None, 1.0, 2).tolist() == [0, 0]
    with refused("positions"):
        count_distances(engine, np.array([[np.nan, 0, 0]]), None, None, 1.0, 2)
    with refused("range"):
        count_distances(engine, far, None, None, 0.0, 2)
