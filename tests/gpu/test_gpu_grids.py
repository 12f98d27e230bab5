"""Orbitals and densities of atoms on a GPU, against the CPU engine, on maps of many points."""

from dataclasses import replace
from importlib import resources

import numpy as np
import pytest
from helpers import charges_at

from vmdpotential.grid.lattice import Lattice
from vmdpotential.io.trajectories.frames import LoadedFrames
from vmdpotential.molecule.cell import Cell
from vmdpotential.plugins.densities.over_frames import DensityOptions, plan_density
from vmdpotential.plugins.densities.quantities import CountedAtoms
from vmdpotential.plugins.orbitals.evaluate import density_map, orbital_map
from vmdpotential.plugins.orbitals.read import read_wavefunction

pytestmark = pytest.mark.gpu

DATA = resources.files("iodata.test.data")


@pytest.mark.parametrize("name", ["o2_cc_pvtz_cart.fchk", "h2o_sto3g.fchk", "he_spdfgh_orbital.wfn"])
def test_orbitals_are_those_of_the_cpu(engine, name):
    wavefunction = read_wavefunction(DATA / name)
    lattice = Lattice.around(wavefunction.positions, 0.1, 4.0)
    for make in (lambda by: orbital_map(wavefunction, lattice, 0, engine=by),
                 lambda by: density_map(wavefunction, lattice, engine=by)):
        actual, expected = make(engine.name), make("cpu")
        assert (actual.provenance.engine, expected.provenance.engine) == (engine.name, "cpu")
        assert np.abs(actual.values - expected.values).max() < 1e-5 * max(1, np.abs(expected.values).max())


@pytest.mark.parametrize("smear", [0.0, 1.0])
@pytest.mark.parametrize("periodic", [False, True])
def test_densities_are_those_of_the_cpu(engine, smear, periodic):
    rng = np.random.default_rng(2)
    cell = Cell.from_parameters(48, 50, 46, 80, 75, 70) if periodic else None
    frames = [(rng.uniform(0, 50, (11084, 3)), cell) for _ in range(30)]
    structure, rows = charges_at(frames[0][0], np.zeros(11084), cell), np.arange(11084)
    counted = CountedAtoms("charge", "e/A^3", rows, rng.normal(size=len(rows)), None, "")
    results = []
    for name in (engine.name, engine.name, "cpu"):
        planning = plan_density(structure, LoadedFrames("frames", frames), counted, DensityOptions(
            smear=smear, engine=name, boundary="periodic" if periodic else "open"),
            alignment={"group": None, "name": "", "rotate": False}, statistics=("mean", "std"))
        planning = replace(planning, size=5)
        results.append(planning.merge(planning.run()).grids)
    for word in ("mean", "std"):
        once, again, theirs = (grids[word].values for grids in results)
        assert np.array_equal(once, again)  # in whatever order atoms came
        assert np.abs(once - theirs).max() < 1e-6 * np.abs(theirs).max()
