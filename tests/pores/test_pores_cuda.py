"""Edges, ions and sources of pores and of a voltage on a GPU, on the host, against the CPU's."""

from dataclasses import replace

import numpy as np
import pytest

from vmdpotential.engines import get_engine
from vmdpotential.engines.cuda import CudaEngine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.plugins.continuum.equation import Problem
from vmdpotential.plugins.continuum.lattices import enclosing_lattice
from vmdpotential.plugins.continuum.molecule import Continuum, Membrane
from vmdpotential.plugins.continuum.node_potential import NodePotential
from vmdpotential.plugins.continuum.pores import find_pores
from vmdpotential.plugins.pores.check import ATOM, tube
from vmdpotential.surfaces.region import Surface


@pytest.mark.parametrize("kappa", [0.0, 0.127])
def test_equation_in_a_pore_is_that_of_the_cpu(gpu, monkeypatch, kappa):
    arrays = Surface.arrays  # the same distances to the last bit
    monkeypatch.setattr(Surface, "arrays", lambda surface, lattice, ion, engine, layers=1: tuple(
        None if each is None else engine.array(each)
        for each in arrays(surface, lattice, ion, get_engine("cpu"), layers)))
    wall = tube(4.0, 16.0, 1.6)
    radii, charges = np.full(len(wall), ATOM), np.zeros(len(wall))
    charges[::29] = 0.3
    slab = Membrane(-6.2, 6.1, 2.0, find_pores(wall, radii, 1.4, -6.2, 6.1), 4.0)
    assert slab.pores is not None
    tubular = Continuum(wall, charges, radii, 560.0, 2.0, 78.5, 1.4, 2.0, kappa, np.zeros((0, 2)), slab)
    lattice, _, depth = enclosing_lattice(Lattice((-11.0, -11.1, -12.2), np.full(3, 1.0), (23, 24, 25)))
    found = []
    for engine in (get_engine("cpu"), CudaEngine()):
        with engine.room(0):
            problem = Problem(tubular, lattice, depth, NodePotential("cpu"), engine)
            problem.charge(charges)
            before = problem.host(problem.sources).copy()
            problem.correct()
            found.append([*(np.array(problem.host(each)) for each in (problem.k2, *problem.edges)), before,
                          problem.host(problem.sources)])
    assert {"open_edges", "add_applied_flows", "raise_potential"} <= gpu.used
    for expected, actual in zip(*found, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4 * max(1e-9, np.abs(expected).max()))
    closed = Problem(replace(tubular, membrane=Membrane(-6.2, 6.1, 2.0)), lattice, depth, NodePotential("cpu"),
                     get_engine("cpu"))
    assert np.count_nonzero(closed.edges[0] != found[0][1]) > 100
