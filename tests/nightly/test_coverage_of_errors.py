"""Standard errors of binding energies over frames of molecular dynamics: one half of it within those of the other."""

import MDAnalysis
import numpy as np
import openmm
import pytest
from helpers import TOOLS
from openmm import app, unit

from vmdpotential import energy, read_structure

pytestmark = pytest.mark.nightly
TERMS = ("lennard_jones", "coulomb", "screening", "total")


def frames_of_dynamics(path, count, steps, temperature):
    """Write frames of alanine dipeptide in implicit water, and return the structure."""
    folder = TOOLS / "alanine-dipeptide-gbsa"
    topology = app.AmberPrmtopFile(str(folder / "alanine-dipeptide.prmtop"))
    system = topology.createSystem(nonbondedMethod=app.NoCutoff, implicitSolvent=app.OBC2, constraints=app.HBonds)
    integrator = openmm.LangevinMiddleIntegrator(temperature, 2 / unit.picosecond, 0.002)
    integrator.setRandomNumberSeed(1)
    platform = openmm.Platform.getPlatformByName("CPU")
    simulation = app.Simulation(topology.topology, system, integrator, platform, {"Threads": "1"})
    start = app.AmberInpcrdFile(str(folder / "alanine-dipeptide.crd"))
    simulation.context.setPositions(start.positions)
    simulation.minimizeEnergy(maxIterations=100)
    simulation.context.setVelocitiesToTemperature(temperature, 1)
    simulation.step(5000)
    universe = MDAnalysis.Universe.empty(topology.topology.getNumAtoms(), trajectory=True)
    with MDAnalysis.Writer(str(path), len(universe.atoms)) as writer:
        for _ in range(count):
            simulation.step(steps)
            places = simulation.context.getState(getPositions=True).getPositions(asNumpy=True)
            universe.atoms.positions = places.value_in_unit(unit.angstrom)
            writer.write(universe.atoms)
    return read_structure(folder / "alanine-dipeptide.crd", topology=folder / "alanine-dipeptide.prmtop")


@pytest.mark.parametrize(("temperature", "within", "twice"), [(700, 0.6, 0.88), (300, 0.5, 0.8)])
def test_halves_of_a_trajectory_agree_within_their_errors(tmp_path, temperature, within, twice):
    """At 700 K conformations change within picoseconds; at 300 K a half of 40 ps has not seen all of them."""
    pieces, half = 16, 200
    structure = frames_of_dynamics(tmp_path / "frames.dcd", 2 * pieces * half, 100, temperature)
    rows = [energy(structure, tmp_path / "frames.dcd", frames=f"{n * half}:{(n + 1) * half}",
                   between=("(ACE)", "(NME)"), solvent="gb").data["solvent"][0] for n in range(2 * pieces)]
    means, errors, intervals = (np.array([[row[name + suffix] for name in TERMS] for row in rows], float).reshape(
        pieces, 2, -1) for suffix in ("", "_error", "_interval"))
    known = np.isfinite(errors).all(1)
    apart = abs(means[:, 0] - means[:, 1])[known]
    one, wide = (np.hypot(*values.swapaxes(0, 1))[known] for values in (errors, intervals))
    assert known.mean() > 0.6
    assert np.mean(apart < one) > within
    assert np.mean(apart < 2 * one) > twice
    assert np.mean(apart < wide) > 0.9
    assert np.median(apart / one) > 0.2  # the errors are not too large, either
