"""Random systems, changed in ways that must not change the answer, or change it in a known way.

    python tests/support/metamorphic.py --count 1000 --seed 7      # maps, points and ions; says what is violated

A map is compared with that of the same charges moved, turned, in another order, wrapped, in a supercell, in other
vectors of the same lattice, in two parts that add up, with the other sign, and scaled. Ions must go to the same waters.
Both maps may be off by the tolerance that was asked for, so that they may differ by twice as much.
"""

import argparse
import sys
from dataclasses import replace

import numpy as np

from vmdpotential import place_ions, potential_at, potential_map
from vmdpotential.errors import NoRoomError, TaskError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure

#: Two results that are each within a tolerance; a little more, since the error is measured at some of the points.
TWICE = 2.3

#: Relative rms of sums pair by pair, whose values are float32.
EXACT = {"single": 5e-6, "compensated": 1e-6, "double": 1e-6}

#: Points farther than this from every charge, A, have to keep the tolerance too; where there are this many.
AWAY, ENOUGH = 2.0, 100


def random_cell(rng, low, high):
    """Return a cell of any shape that is not too flat, of any direction in space."""
    while True:
        angles = rng.uniform(58, 122, 3) if rng.random() < 0.7 else (90, 90, 90)
        try:
            cell = Cell.from_parameters(*rng.uniform(low, high, 3), *angles)
        except Exception:  # these angles close no cell
            continue
        if np.linalg.norm(cell.reduced, axis=1).min() > 0.75 * low and cell.volume > 0.4 * low**3:
            return cell


def rotation(rng):
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q * np.linalg.det(q)


def unimodular(rng):
    """Return integers (3, 3) of determinant 1, which make other vectors of the same lattice."""
    matrix = np.eye(3, dtype=int)
    for _ in range(rng.integers(1, 4)):
        i, j = rng.permutation(3)[:2]
        matrix[i] += rng.choice([-1, 1]) * matrix[j]
    return matrix


def molecules(positions, charges, sizes, cell, solute=0):
    """Return a structure of molecules; those after the first `solute` atoms are waters."""
    residue = np.repeat(np.arange(len(sizes)), sizes)
    water = np.arange(len(positions)) >= solute
    names = np.where(water, np.resize(["OH2", "H1", "H2"], len(positions)) if not solute % 3 else
                     np.roll(np.resize(["OH2", "H1", "H2"], len(positions)), solute % 3), "C1")
    return Structure(positions, names, np.where(water, "TIP3", "LIG"), residue + 1, residue, charges=charges, cell=cell)


def waters_at(rng, oxygens):
    """Return positions (3 N, 3) and charges of TIP3P molecules in random orientations."""
    axes = np.stack([rotation(rng) for _ in oxygens])
    shape = 0.9572 * np.array([[np.cos(a), np.sin(a), 0] for a in np.radians([52.26, -52.26])])
    atoms = oxygens[:, None] + np.concatenate([np.zeros((len(oxygens), 1, 3)), shape @ axes], 1)
    return atoms.reshape(-1, 3), np.tile([-0.834, 0.417, 0.417], len(oxygens))


def random_charges(rng, periodic):
    """Return a structure of charges and waters at random places, and its cell or None."""
    cell = random_cell(rng, 9, 22) if periodic else None
    vectors = np.diag(rng.uniform(8, 25, 3)) if cell is None else cell.vectors
    solute, waters = int(rng.integers(1, 60)), int(rng.integers(1, 50))
    places, charges = waters_at(rng, rng.uniform(-0.5, 1, (waters, 3)) @ vectors)
    positions = np.concatenate([rng.uniform(-0.5, 1, (solute, 3)) @ vectors, places])
    charges = np.concatenate([rng.normal(size=solute), charges])
    if rng.random() < 0.5:
        charges[:solute] -= charges[:solute].mean()
    charges[0] += 0.5  # never all zero
    return molecules(positions, charges, [1] * solute + [3] * waters, cell, solute)


def solvated(rng, periodic):
    """Return charges in a box of water."""
    cell = random_cell(rng, 18, 26) if periodic else None
    vectors = np.diag(rng.uniform(18, 26, 3)) if cell is None else cell.vectors
    counts = np.maximum(1, np.round(np.linalg.norm(vectors, axis=1) / 3.3)).astype(int)
    nodes = np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), -1).reshape(-1, 3)
    places = ((nodes + 0.5) / counts) @ vectors + rng.uniform(-0.6, 0.6, (len(nodes), 3))
    solute = int(rng.integers(2, 12))  # one neutral atom would leave all sites equal
    charges = rng.normal(size=solute)
    charges += (rng.integers(-6, 7) - charges.sum()) / solute
    places = rng.permutation(places)
    water, water_charges = waters_at(rng, places[solute:])
    return molecules(np.concatenate([places[:solute], water]), np.concatenate([charges, water_charges]),
                     [1] * solute + [3] * (len(places) - solute), cell, solute)


# ---- what is done to a system: (structure, lattice, vectors' own rotation, factor) ---------------------------------


def turned(structure, matrix):
    """Return the structure turned, or mirrored, with its cell."""
    cell = None if structure.cell is None else Cell(structure.cell.vectors @ matrix)
    return replace(structure, positions=structure.positions @ matrix, cell=cell)


def wrapped(rng, structure):
    """Return the structure with every residue moved by a lattice vector."""
    steps = rng.integers(-2, 3, (structure.residue_index.max() + 1, 3))[structure.residue_index]
    return replace(structure, positions=structure.positions + steps @ structure.cell.vectors)


def other_vectors(rng, structure):
    return replace(structure, cell=Cell(unimodular(rng) @ structure.cell.vectors))


def supercell(rng, structure):
    """Return the structure and its image in a cell of twice the volume."""
    axis = rng.integers(3)
    factors = np.ones((3, 1))
    factors[axis] = 2
    positions = np.concatenate([structure.positions, structure.positions + structure.cell.vectors[axis]])
    return molecules(positions, np.tile(structure.charges, 2), np.ones(len(positions), int),
                     Cell(structure.cell.vectors * factors), len(positions))


def permuted(rng, structure):
    """Return the structure with its residues in another order, and what was where."""
    starts = structure.residue_starts
    order = rng.permutation(len(starts) - 1)
    atoms = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in order])
    index = np.repeat(np.arange(len(order)), np.diff(starts)[order])
    moved = structure.take(atoms)
    return replace(moved, residue_index=index)


def axes_swapped(rng):
    """Return a turn that leaves the axes along each other: places for x, y, z, and their signs."""
    return rng.permutation(3), rng.choice([-1, 1], 3)


def swap(values, order, signs):
    """Return maps (..., nx, ny, nz) after :func:`axes_swapped`."""
    first = values.ndim - 3
    values = values.transpose(*range(first), *(first + order))
    return np.flip(values, [first + d for d in range(3) if signs[d] < 0])


def swapped_lattice(lattice, order, signs):
    low, high = lattice.origin[order] * signs, lattice.last[order] * signs
    return Lattice(np.minimum(low, high), lattice.spacing[order], tuple(np.array(lattice.shape)[order]))


# ---- maps -----------------------------------------------------------------------------------------------------


def options_of(rng, periodic):
    """Return a way to make a map, and the relative error it may have."""
    method = str(rng.choice(["pme", "msm", "auto", "cutoff", "cutoff-mesh"] + ([] if periodic else ["direct"])))
    precision = str(rng.choice(["single", "compensated", "double"]))
    options = {"method": method.split("-")[0], "precision": precision, "field": bool(rng.random() < 0.4),
               "tolerance": float(10 ** rng.uniform(-4.5, -2)), "boundary": "periodic" if periodic else "open",
               "engine": "cpu"}
    if options["method"] == "auto":
        options["medium"] = "explicit"  # no continuum, which has no tolerance on a given grid
    if options["method"] == "cutoff":
        options["cutoff"] = float(rng.uniform(3, 14))
        options["algorithm"] = "mesh" if method == "cutoff-mesh" else "pair"
    exact = method in ("direct", "cutoff")
    return options, 1.5 * EXACT[precision] if exact else TWICE * options["tolerance"], exact


def values_of(structure, lattice, options):
    """Return the potential, and the field where it is asked for, (1 or 4, nx, ny, nz) in float64."""
    grid = potential_map(structure, lattice=lattice, unit="V", **options)
    return np.array([grid.values, *(part.values for part in grid.field or ())], np.float64)


def worst(values, expected, allowed, away):
    """Return the largest of the errors over what is allowed: of potential and field, everywhere and away."""
    result = 0.0
    for part, (a, b) in {"potential": (values[:1], expected[:1]), "field": (values[1:], expected[1:])}.items():
        for name, chosen in (("", slice(None)), (" away", away)):
            if len(a) and chosen is not None:
                size = np.sqrt(np.mean(b[:, chosen] ** 2)) if name else np.sqrt(np.mean(b**2))
                error = np.sqrt(np.mean((a - b)[:, chosen] ** 2)) if name else np.sqrt(np.mean((a - b) ** 2))
                # the field of exact sums has one figure less
                more = 10 if part == "field" and allowed < 1e-4 else 1
                result = max(result, error / (more * allowed * size))
    return result


def check_map(rng):
    """Return what is violated by a random map, and a word on the system."""
    periodic = bool(rng.random() < 0.55)
    structure = random_charges(rng, periodic)
    options, allowed, exact = options_of(rng, periodic)
    spacing = rng.uniform(0.4, 1.6, 3)
    shape = tuple(rng.integers(6, 12, 3))
    lattice = Lattice(rng.uniform(-6, 10, 3), spacing, shape)
    name = f"map {options} {len(structure)} atoms, cell {structure.cell and structure.cell.parameters}"
    try:
        base = values_of(structure, lattice, options)
    except TaskError as error:
        return [], f"refused: {error}"
    points = np.stack(np.meshgrid(*lattice.axes(), indexing="ij"), -1)
    apart = points.reshape(-1, 1, 3) - structure.positions
    apart = apart if structure.cell is None else structure.cell.minimum_image(apart)
    away = (np.sqrt((apart**2).sum(-1)).min(1) > AWAY).reshape(shape)
    away = None if exact or away.sum() < ENOUGH or away.mean() < 0.3 else away
    shift = rng.uniform(-40, 40, 3)
    order, signs = axes_swapped(rng)
    part = rng.random(len(structure)) < 0.5
    factor = float(rng.uniform(0.01, 50))

    def change(**fields):
        return values_of(replace(structure, **fields), lattice, options)

    def halves():
        first, second = np.where(part, structure.charges, 0), np.where(part, 0, structure.charges)
        return change(charges=first) + change(charges=second)

    def axes():
        matrix = np.zeros((3, 3))
        matrix[order, np.arange(3)] = signs
        result = values_of(turned(structure, matrix), swapped_lattice(lattice, order, signs), options)
        if len(result) > 1:
            vectors = result[1:] * signs[:, None, None, None]
            result = np.concatenate([result[:1], vectors[np.argsort(order)]])
        back = np.argsort(order)
        return swap(result, back, signs[back])

    relations = {
        "translate": lambda: values_of(replace(structure, positions=structure.positions + shift),
                                       replace(lattice, origin=lattice.origin + shift), options),
        "turn": axes,
        "permute": lambda: values_of(permuted(rng, structure), lattice, options),
        "superpose": halves,
        "sign": lambda: -change(charges=-structure.charges),
        "scale": lambda: change(charges=factor * structure.charges) / factor,
    }
    if periodic:
        relations |= {
            "wrap": lambda: values_of(wrapped(rng, structure), lattice, options),
            "supercell": lambda: values_of(supercell(rng, structure), lattice, options),
            "other vectors": lambda: values_of(other_vectors(rng, structure), lattice, options),
        }
    violated = []
    for relation, make in relations.items():
        try:
            actual = make()
        except TaskError:  # it says so, and may: the tolerance was just within reach
            if exact:
                violated.append(f"{relation}: refused")
            continue
        # two halves may each be larger than their sum
        size = worst(actual, base, allowed * (4 if relation == "superpose" else 1), away)
        if not size <= 1:
            violated.append(f"{relation}: {size:.2f} of what is allowed")
    return [f"{name}: {text}" for text in violated], name


# ---- points ---------------------------------------------------------------------------------------------------


def check_points(rng):
    """Return what is violated by the exact potential at points, and a word on the system."""
    periodic = bool(rng.random() < 0.6)
    structure = random_charges(rng, periodic)
    points = rng.uniform(-20, 30, (40, 3))
    matrix, shift = rotation(rng), rng.uniform(-40, 40, 3)

    def at(system, places=points):
        return potential_at(system, places, method="direct", unit="V", engine="cpu",
                            boundary="periodic" if periodic else "open")

    base = at(structure)
    relations = {
        "translate": lambda: at(replace(structure, positions=structure.positions + shift), points + shift),
        "turn": lambda: at(turned(structure, matrix), points @ matrix),
        "permute": lambda: at(permuted(rng, structure)),
        "sign": lambda: -at(replace(structure, charges=-structure.charges)),
        "superpose": lambda: sum(at(replace(structure, charges=np.where(mask, structure.charges, 0)))
                                 for mask in (structure.charges > 0, structure.charges <= 0)),
    }
    if periodic:
        relations |= {
            "wrap": lambda: at(wrapped(rng, structure)),
            "supercell": lambda: at(supercell(rng, structure)),
            "other vectors": lambda: at(other_vectors(rng, structure)),
            "points in another cell": lambda: at(structure, points + rng.integers(-2, 3, points.shape)
                                                 @ structure.cell.vectors),
        }
    name = f"points, {len(structure)} atoms, cell {structure.cell and structure.cell.vectors.tolist()}"
    violated = []
    for relation, make in relations.items():
        error = np.sqrt(np.mean((make() - base) ** 2) / np.mean(base**2))
        if not error < 1e-7:
            violated.append(f"{name}: {relation}: {error:.1e}")
    return violated, name


# ---- ions -----------------------------------------------------------------------------------------------------


def check_ions(rng):
    """Return what is violated by the ions of a random solvated system, and a word on it."""
    periodic = bool(rng.random() < 0.7)
    structure = solvated(rng, periodic)
    matrix, shift = rotation(rng), rng.uniform(-40, 40, 3)
    options = {"ions": {"SOD": int(rng.integers(0, 6)), "MG": int(rng.integers(0, 3)), "CLA": int(rng.integers(1, 7))},
               "from_solute": float(rng.uniform(0, 5)), "between": float(rng.uniform(0, 6)), "engine": "cpu"}
    name = f"ions {options}, {len(structure)} atoms, cell {structure.cell and structure.cell.vectors.tolist()}"

    def ions(system):
        placed = sorted(place_ions(system, **options).ions, key=lambda ion: ion.order)
        return [(ion.name, ion.water) for ion in placed], np.array([
            (ion.energy, ion.final_energy, ion.solute_distance or 0.0, ion.ion_distance or 0.0) for ion in placed])

    try:
        where, figures = ions(structure)
    except NoRoomError as error:
        return [], f"refused: {error}"
    relations = {
        "translate": lambda: replace(structure, positions=structure.positions + shift),
        "turn": lambda: turned(structure, matrix),
        "permute": lambda: permuted(rng, structure),
    }
    if periodic:
        relations |= {
            "wrap": lambda: wrapped(rng, structure),
            "other vectors": lambda: other_vectors(rng, structure),
        }
    violated = []
    for relation, make in relations.items():
        sites, result = ions(make())
        if sites != where:
            violated.append(f"{name}: {relation}: other sites, energies {result[:, 0].sum():.6f} for "
                            f"{figures[:, 0].sum():.6f} kcal/mol")
        elif abs(result - figures).max() > 2e-3:
            violated.append(f"{name}: {relation}: figures off by {abs(result - figures).max():.1e}")
    return violated, name


CHECKS = {"maps": check_map, "points": check_points, "ions": check_ions}


def run(kind, seed):
    """Return what a system of a kind violates, each line with how to make it again, and why it was refused or ''."""
    try:
        violated, name = CHECKS[kind](np.random.default_rng([seed, list(CHECKS).index(kind)]))
    except Exception as error:  # none may come out
        violated, name = [repr(error)], ""
    return [f"--only {kind} --count 1 --seed {seed}: {text}" for text in violated], (
        f"{kind}, seed {seed}: {name}" if name.startswith("refused") else "")


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python tests/support/metamorphic.py", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100, help="systems, of all kinds in turn")
    parser.add_argument("--seed", type=int, default=0, help="of the first; the others count on")
    parser.add_argument("--only", choices=CHECKS, help="one kind")
    parser.add_argument("--verbose", action="store_true", help="say which systems were refused, and why")
    options = parser.parse_args(arguments)
    kinds = [options.only] if options.only else list(CHECKS)
    bad = refused = 0
    for number in range(options.count):
        violated, skipped = run(kinds[number % len(kinds)], options.seed + number)
        refused += bool(skipped)
        if skipped and options.verbose:
            print(skipped)
        bad += bool(violated)
        for line in violated:
            print(line, flush=True)
    print(f"{options.count} systems from seed {options.seed}, {refused} refused, {bad} with a violation")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
