"""Older processors: every kind of sum is the same."""

import os
import platform
import subprocess
import sys

import numpy as np
import pytest

from vmdpotential import registry
from vmdpotential.grid.lattice import Lattice
from vmdpotential.kernels.launch import load_library

SUMS = """
import sys
import numpy as np
from vmdpotential import registry
from vmdpotential.plugins.continuum.multigrid import MultigridSolver
from vmdpotential.surfaces.region import Surface
from vmdpotential.engines import get_engine
from vmdpotential.sums.potential_sum import PotentialSum, prepare_sum
from vmdpotential.plugins.ions.ewald_pair import EwaldPair
from vmdpotential.sums.cpu.nearby import cutoff_at_points
from vmdpotential.grid.lattice import Lattice, Points
from vmdpotential.interactions import ewald
from vmdpotential.plugins.pairs.pair_terms import CHARGES_RULE, PairPotential, PairTerm
from vmdpotential.kernels.launch import describe_vectors
from vmdpotential.molecule.cell import Cell
from vmdpotential.plugins.historical import samples
from vmdpotential.plugins.historical.lists import ListedPairs
from vmdpotential.plugins.historical.polynomial import ewald_polynomial
from vmdpotential.plugins.pairs.all_pairs import sum_coulomb
from vmdpotential.plugins.pairs.in_range import Atoms
from vmdpotential.splitting.mesh import over_cell

engine = get_engine("cpu")
coulomb, shifted = (registry.get("interaction", name) for name in ("coulomb", "shifted_coulomb"))
lattice = Lattice(np.full(3, 1.1), np.full(3, 0.8), (13, 14, 15))
cell = Cell(np.diag([13.0, 14.0, 15.0]))
rng = np.random.default_rng(5)
positions, charges = rng.uniform(0, 13, (150, 3)), rng.normal(size=150)
positions[0] = lattice.points()[700]
charges -= charges.mean()
points = rng.uniform(0, 13, (50, 3))
short = shifted.bind(cutoff=5.0)

def one():
    values = np.zeros(len(points))
    EwaldPair(cell).add(np.asfortranarray(points), positions[1], -2.0, values)
    return values

def run(*work, **options):
    result = prepare_sum(engine, PotentialSum(lattice, *work, **options)).run(positions, charges)
    return result.values() if result.field() is None else np.stack([result.values(), *result.field()])

def continuum(ions):
    shape = (33, 25, 45)  # of the coarsest level 9 x 7 x 12 nodes, fewer than a vector has, and an even number
    random = np.random.default_rng(6)
    edges, potential = random.uniform(2, 78, (3, *shape)).astype(np.float32), np.zeros(shape, np.float32)
    k2 = np.full(shape, 0.3, np.float32)
    sources = np.zeros(shape, np.float32)
    sources.ravel()[20000] = 300.0
    MultigridSolver(engine, *edges, k2, ions, 3).solve(potential, sources, 1e-6)
    return potential

def split(smooth):
    return prepare_sum(engine, PotentialSum.split(lattice, smooth)).run(positions, charges).values()

def pairs(bound, cell=None, precision="single"):
    potential = PairPotential((PairTerm("charges", bound, CHARGES_RULE),))
    listed = ListedPairs(engine, potential, cell, precision, energy=True)
    return listed.run(Atoms(positions, {"charge": charges})).forces

def water():
    # potentials and precisions whose terms are summed in one loop
    box, forces = samples.water(18.7), []
    for name, precision in (("rf", "single"), ("ewald", "single"), ("rf", "double")):
        work = ListedPairs(engine, samples.potential(name, 9.0), box.cell, precision, energy=precision == "double")
        forces.append(work.run(box.atoms).forces)
    return np.stack(forces)

def surface():
    distances, ions = Surface(positions[:60], np.full(60, 1.5), 1.4).with_ions(lattice, 2.0)
    return np.stack([np.clip(distances, -0.8, 0.8), ions])

sums = {
    "one": one,
    "surface": surface,
    "direct": lambda: run(coulomb.bind()),
    "slope": lambda: run(short, precision="double", field=True),
    "periodic": lambda: run(short, cell, precision="double", field=True),
    "points": lambda: prepare_sum(engine, PotentialSum(Points(points), coulomb.bind())).run(
        positions, charges).values(),
    "near": lambda: cutoff_at_points(points, positions, charges, short, cell)[0],
    "all_pairs": lambda: sum_coulomb(engine, positions, charges)[1],
    "in_range": lambda: pairs(ewald_polynomial(5.0, 0.6), cell),
    "in_range_together": water,
    "in_range_double": lambda: pairs(ewald.INTERACTION.bind(cutoff=5.0, beta=0.6), cell, "double"),
    "pme": lambda: split(over_cell(cell, 1.0, 6, 4.0)),
    "linear": lambda: continuum(np.zeros((0, 2))),
    "full": lambda: continuum(np.array([(1.0, 0.5), (-1.0, 0.5)])),
}
np.savez(sys.argv[1], **{name: sums[name]() for name in sys.argv[2:] or sums})
print(describe_vectors())
"""

#: Relative rms difference that each sum may have.
TOLERANCES = {"points": 1e-13, "near": 1e-13, "one": 1e-13, "direct": 1e-6, "slope": 1e-7, "periodic": 1e-7,
              "pme": 1e-6, "surface": 1e-6, "linear": 1e-5, "full": 1e-5, "all_pairs": 1e-12, "in_range": 1e-5,
              "in_range_double": 1e-12, "in_range_together": 1e-5}


def run(code, folder, *names, **environment):
    out = folder / "sums.npz"
    done = subprocess.run([sys.executable, "-c", code, out, *names], env=os.environ | environment, capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    return dict(np.load(out)), done.stdout.strip(), done.stderr


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    sums, said, err = run(SUMS, tmp_path_factory.mktemp("vectors"))
    assert "vectors of" in said
    assert not err
    return sums


def relative_rms(values, reference):
    return np.sqrt(((values - reference) ** 2).mean() / (reference**2).mean())


def definition(points, positions, charges, bound):
    r = np.maximum(np.linalg.norm(points[:, None] - positions, axis=2), 0.01)
    return (charges * bound(r)).sum(1)


@pytest.mark.slow
@pytest.mark.parametrize(("instructions", "floats"), [("baseline", 4), ("avx2", 8)])
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="other processors have one instruction set")
def test_all_sums_are_the_same_on_older_processors(instructions, floats, vectors, tmp_path):
    if instructions == "avx2" and not load_library().supported_instruction_set():
        pytest.skip("this processor has no AVX2")
    sums, said, err = run(SUMS, tmp_path, *TOLERANCES, VMDPOTENTIAL_VECTORS=instructions)
    assert said.startswith(f"{instructions} vectors of {floats} floats")
    assert not err
    for name, tolerance in TOLERANCES.items():
        assert relative_rms(sums[name], vectors[name]) < tolerance, name
    # and what is defined in one line
    lattice = Lattice(np.full(3, 1.1), np.full(3, 0.8), (13, 14, 15))
    rng = np.random.default_rng(5)
    positions, charges = rng.uniform(0, 13, (150, 3)), rng.normal(size=150)
    positions[0] = lattice.points()[700]
    charges -= charges.mean()
    coulomb, short = registry.get("interaction", "coulomb").bind(), registry.get("interaction", "shifted_coulomb")
    for actual, bound in ((sums["direct"], coulomb), (sums["slope"][0], short.bind(cutoff=5.0))):
        reference = definition(lattice.points(), positions, charges, bound).reshape(lattice.shape)
        assert relative_rms(actual, reference) < 1e-6
