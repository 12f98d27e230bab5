"""Atoms in cells, for the CPU engine."""

import numpy as np
import pytest
from messages import naming

from vmdpotential import memory
from vmdpotential.errors import MemoryPlanError
from vmdpotential.sums import cells


@pytest.mark.parametrize(("count", "size", "cutoff", "parts"), [(1, 0, 5, 3), (500, 30, 7, 2), (4000, 200, 3, 3)])
def test_every_atom_is_in_its_cell(count, size, cutoff, parts):
    positions = np.random.default_rng(1).uniform(-7, size - 7, (count, 3)) if size else np.ones((1, 3))
    result = cells.sort(positions, cutoff, parts)
    assert sorted(result.order) == list(range(count))
    assert len(result.start) == result.shape.prod() + 1
    number = np.repeat(np.arange(result.shape.prod()), np.diff(result.start))
    corner = np.stack(np.unravel_index(number, result.shape), 1) * result.side + result.low
    inside = positions[result.order] - corner
    assert (inside > -1e-9).all()
    assert (inside < result.side * (1 + 1e-9)).all()
    same = number[1:] == number[:-1]
    assert (np.diff(result.order)[same] > 0).all()  # in their own order


def test_cells_are_larger_where_most_would_be_empty():
    result = cells.sort(np.array([[0.0, 0, 0], [1e4, 1e4, 1e4]]), 1.0, 3)
    assert result.side > 50
    assert result.shape.prod() < 2**21


def test_cells_that_do_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr(memory, "limit", lambda **_: 1000)
    with naming(MemoryPlanError, "1 A"):
        cells.sort(np.array([[0.0, 0, 0], [9, 9, 9]]), 1.0, 3)
