"""Stated errors of fields, energies, forces and ions against sums written out in numpy, in 30 systems.

``python tests/support/stated_systems.py --tolerance 1e-4`` prints for each system the stated errors and how many times
as large the actual ones are, and ends with 1 where one is more than 1.3 times the stated one. Structures are from the
wheels of openmmtools and MDAnalysisTests, and random charges in cells of all shapes.
"""

import argparse
import itertools
import sys
import warnings
from pathlib import Path

import numpy as np
from ewald import shortest_vectors
from helpers import TOOLS, charges_at, rms
from scipy.special import erfc

from vmdpotential import io
from vmdpotential.engines import get_engine
from vmdpotential.engines.cpu import CpuEngine
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.nonbonded import Nonbonded
from vmdpotential.plugins.fields.field import field_at
from vmdpotential.plugins.fields.sites import FieldSites
from vmdpotential.plugins.pairs.energy import InteractionEnergyPlan
from vmdpotential.plugins.pairs.options import EnergyOptions
from vmdpotential.sums.points import request_at, sum_at
from vmdpotential.units import coulomb_constant

#: How much more than the stated error the actual one may be.
MORE = 1.3

#: Places where sums are written out, of those of a system.
WRITTEN_OUT = 100

OPENMMTOOLS = {
    "tryptophan zipper": "trpzip2-explicit/trpzip2.prmtop", "water": "waterbox/watbox216.prmtop",
    "cucurbituril, viologen": "cb7-viologen/leap/complex-explicit.prmtop",
    "cucurbituril": "cb7-b2/complex-explicit.prmtop",
    "alanine dipeptide": "alanine-dipeptide-explicit/alanine-dipeptide.prmtop",
    "methanol": "methanol-box/methanol-box.prmtop", "DHFR": "dhfr/JAC.prmtop",
    "lysozyme, open": "T4-lysozyme-L99A-implicit/complex.prmtop",
    "receptor, open": "T4-lysozyme-L99A-implicit/receptor.prmtop",
    "cucurbituril, open": "cb7-b2/complex-vacuum.prmtop",
    "viologen, open": "cb7-viologen/leap/complex-vacuum.prmtop",
}
PQR = {"thrombin, open": "1A2C.pqr", "adenylate kinase, open": "adk_open.pqr"}
SYNTHETIC = {  # cell, atoms, mean charge
    "cube": ((30, 30, 30), 800, 0.0), "box": ((24, 31, 47), 900, 0.0),
    "triclinic": ((28, 33, 30, 70, 100, 115), 700, 0.0),
    "slanted": ((32, 36, 40, 65, 72, 80), 900, 0.0), "hexagonal": ((35, 35, 28, 90, 90, 120), 700, 0.0),
    "octahedron": ((34, 34, 34, 109.4712, 109.4712, 109.4712), 700, 0.0),
    "dodecahedron": ((33, 33, 33, 60, 60, 90), 600, 0.0), "needle": ((11, 13, 90), 500, 0.0),
    "plate": ((50, 48, 9), 700, 0.0), "slanted plate": ((48, 50, 12, 80, 75, 100), 700, 0.0),
    "charged": ((30, 32, 34), 600, 0.1), "charged triclinic": ((30, 32, 34, 75, 85, 110), 600, 0.05),
    "charged needle": ((10, 12, 70), 300, 0.1), "sparse": ((80, 70, 90), 200, 0.0), "dense": ((18, 19, 20), 1500, 0.0),
    "open": (None, 900, 0.0), "open, charged": (None, 700, 0.1),
}


def amber(path):
    """Return positions, charges and vectors or None of an Amber topology with its coordinates."""
    import parmed

    match = next(each for end in (".crd", ".inpcrd", ".rst7") if (each := path.with_suffix(end)).exists())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = parmed.load_file(str(path), str(match))
    charges = np.array([atom.charge for atom in loaded.atoms])
    vectors = None if loaded.box is None else np.diag(np.asarray(loaded.box[:3], np.float64))  # all are right-angled
    return np.asarray(loaded.coordinates, np.float64), charges, vectors


def systems(*names):
    """Yield name, positions, charges, and vectors of the cell or None, of all systems or those of these names."""
    import MDAnalysisTests
    folder = TOOLS
    for name, file in OPENMMTOOLS.items():
        if names and name not in names:
            continue
        positions, charges, vectors = amber(folder / file)
        yield name, positions, charges, None if name.endswith("open") else vectors
    for name, file in PQR.items():
        read = io.read_structure(Path(MDAnalysisTests.__file__).parent / "data" / file)
        yield name, read.positions, read.known_charges, None
    for seed, (name, (cell, count, mean)) in enumerate(SYNTHETIC.items()):
        random = np.random.default_rng(seed)
        vectors = None if cell is None else Cell.from_parameters(*cell).vectors
        positions = random.uniform(0, 1, (count, 3)) @ (np.diag([40.0, 30, 35]) if vectors is None else vectors)
        charges = random.normal(0, 0.5, count)
        yield name, positions, charges - charges.mean() + mean, vectors


def written_out(points, positions, charges, vectors):
    """Return potential and field (4, P), e/A and e/A^2, without atoms that are at the points themselves."""
    result = np.zeros((4, len(points)))
    radius = np.inf if vectors is None else min(
        np.linalg.norm(np.array(n) @ vectors) for n in itertools.product(range(-3, 4), repeat=3) if any(n)) / 2
    alpha = 0.0 if vectors is None else 4.6 / radius
    for n, point in enumerate(points):
        d = point - positions
        d = d if vectors is None else shortest_vectors(d, vectors)
        r = np.sqrt((d * d).sum(1))
        here = r < 1e-6
        r[here] = 1.0
        near = np.where(here, 0.0, erfc(alpha * r) / r)
        slope = np.where(here, 0.0, near / r**2 + 2 * alpha / np.sqrt(np.pi) * np.exp(-((alpha * r) ** 2)) / r**2)
        result[0, n] = near @ charges - 2 * alpha / np.sqrt(np.pi) * charges[here].sum()
        result[1:, n] = (slope * charges) @ d
    if vectors is None:
        return result
    volume, inverse = abs(np.linalg.det(vectors)), np.linalg.inv(vectors)
    count = np.ceil(2 * 4.6 * alpha * np.linalg.norm(vectors, axis=1) / (2 * np.pi)).astype(int)
    axes = [np.arange(-n, n + 1) for n in count]
    k = np.stack(np.meshgrid(*axes, indexing="ij"), -1) @ (2 * np.pi * inverse.T)
    k2 = (k**2).sum(-1)
    k2[tuple(count)] = np.inf
    weight = 4 * np.pi / volume * np.exp(-k2 / (4 * alpha**2)) / k2

    def waves(places):
        fractions = places @ inverse
        return [np.exp(2j * np.pi * np.outer(part, n)) for part, n in zip(fractions.T, axes, strict=True)]

    to_x, to_y, to_z = waves(points)
    x, y, z = waves(-positions)
    for row, plane in enumerate(weight):
        factor = plane * ((y * (charges * x[:, row])[:, None]).T @ z)
        for part, scale in enumerate([1.0, *(-1j * k[row, ..., d] for d in range(3))]):
            result[part] += (to_x[:, row] * ((to_y @ (scale * factor)) * to_z).sum(1)).real
    result[0] -= np.pi * charges.sum() / (volume * alpha**2)
    return result


def nothing(count):
    """Return parameters of atoms without Lennard-Jones, exclusions and pairs of three bonds."""
    zero, none = np.zeros((1, 1)), np.zeros((0, 2), np.int64)
    return Nonbonded("none", ("X",), np.zeros(count, np.int64), zero, zero, none, none, *np.zeros((3, 0)))


def compared(positions, charges, vectors, tolerance, seed=0):
    """Yield what is stated, its error, and the actual one."""
    random, cell = np.random.default_rng(seed), None if vectors is None else Cell(vectors)
    structure, count = charges_at(positions, charges, cell), len(positions)
    few = np.sort(random.choice(count, min(600, count // 2), replace=False))
    rows = np.sort(random.choice(len(few), min(WRITTEN_OUT, len(few)), replace=False))
    volts, kcal = coulomb_constant("V"), coulomb_constant("kcal/mol/e")

    def actual(values, expected, everywhere):
        return rms(values - expected) / rms(everywhere)

    places = FieldSites.atoms(few, [str(n) for n in few])
    fields = field_at(structure, places, tolerance=tolerance)
    exact = volts * written_out(positions[few[rows]], positions, charges, vectors)
    yield "potential", fields.relative_errors[0], actual(fields.potential[0, 0, rows], exact[0], fields.potential)
    yield "field", fields.relative_errors[1], actual(fields.field[0, 0, rows].T, exact[1:], fields.field)
    others = np.ones(count, bool)
    others[few] = False
    between = InteractionEnergyPlan(structure, nothing(count), ~others, others,
                                    EnergyOptions(cutoff=9.0, tolerance=tolerance),
                      forces=True)
    result = between.run(positions, cell)
    exact = kcal * charges[few[rows]] * written_out(positions[few[rows]], positions[others], charges[others], vectors)
    yield "energy", between.error or 0.0, actual(result.coulomb[rows], exact[0], result.coulomb)
    yield "forces", between.error_forces or 0.0, actual(result.forces[rows].T, exact[1:], result.forces)
    sites = positions[random.choice(count, 1000)] + 2.5 * random.normal(size=(1000, 3))
    _, ions, errors = sum_at(request_at(sites, positions, charges, cell, tolerance=tolerance), positions, charges,
                             get_engine("cpu"))
    rows = np.sort(random.choice(1000, WRITTEN_OUT, replace=False))
    exact = written_out(sites[rows], positions, charges, vectors)[0]
    yield "ions", 0.0 if errors is None else errors.largest, actual(ions.values()[rows], exact, ions.values())


#: An error below this is rounding, of sums that state none.
ROUNDING = 1e-7


def main():
    """Compare, print, and end with 1 where an error is more than stated."""
    # so that open systems of few atoms take a mesh
    CpuEngine.costs = CpuEngine.costs._replace(point_pair=1.0, point_pair_field=1.0)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tolerance", type=float, default=1e-4)
    options = parser.parse_args()
    worst = 0.0
    for name, *system in systems():
        words = []
        for what, stated, actual in compared(*system, options.tolerance):
            ratio = actual / max(stated, ROUNDING)
            worst = max(worst, ratio)
            words.append(f"{what} {stated:.1e} x {ratio:.2f}")
            assert stated <= options.tolerance
        print(f"{name} ({len(system[0])} atoms): {', '.join(words)}", flush=True)
    print(f"largest ratio of the actual error to the stated one: {worst:.2f}")
    sys.exit(int(worst > MORE))


if __name__ == "__main__":
    main()
