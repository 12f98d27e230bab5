"""The definition of a sum over pairs, written out in float64: what every engine is held against; and of distances."""

from itertools import product
from types import SimpleNamespace

import numpy as np

from vmdpotential.interactions.program import evaluate_all
from vmdpotential.molecule.cell import Cell
from vmdpotential.plugins.pairs.in_range import PairResult


def reference(potential, atoms, cell, others=None):
    """Return the sum over pairs of atoms, or of atoms and others, with all images: forces and energies.

    An excluded pair is its nearest image.
    """
    second = atoms if others is None else others
    x, y = (a.positions if cell is None else cell.wrap(a.positions) for a in (atoms, second))
    result, other = _empty(potential, atoms), _empty(potential, second)
    out = _nearest_of_excluded(atoms, x, cell) if others is None else {}
    for shift in _shifts(potential, x, y, cell):
        d = x[:, None] - (y + shift @ (np.eye(3) if cell is None else cell.vectors))
        r2 = (d * d).sum(-1)
        near = r2 < (np.inf if potential.cutoff is None else potential.cutoff**2)
        if others is None and not shift.any():
            np.fill_diagonal(near, False)
        left_out = np.zeros_like(near)
        for i, j in out.get(tuple(shift), ()):
            left_out[i, j] = True
        for excluded in (False, True):
            i, j = np.nonzero(near & (left_out == excluded))
            if len(i):
                _add(potential, atoms, second, i, j, d[i, j], r2[i, j], excluded, result, other)
    return result if others is None else PairResult(result.forces, result.energies, other)


def _empty(potential, atoms):
    n = len(atoms)
    return PairResult(np.zeros((n, 3)), np.zeros((n, len(potential.terms))))


def _shifts(potential, x, y, cell):
    """Return the images (S, 3) of y, in lattice vectors, that may be in range of x."""
    if cell is None:
        return np.zeros((1, 3), int)
    heights = 1 / np.linalg.norm(np.linalg.inv(cell.vectors), axis=0)
    most = np.ceil(potential.cutoff / heights + 1).astype(int)
    return np.stack(np.meshgrid(*(np.arange(-n, n + 1) for n in most), indexing="ij"), -1).reshape(-1, 3)


def _nearest_of_excluded(atoms, x, cell):
    """Return by image of j the pairs (i, j) that are left out."""
    actual = {}
    for i, j in () if atoms.exclusions is None else atoms.exclusions:
        shift = np.zeros(3, int)
        if cell is not None:
            d = x[i] - x[j]
            shift = np.rint(cell.fractional(d - cell.minimum_image(d))).astype(int)
        actual.setdefault(tuple(shift), []).append((i, j))
        actual.setdefault(tuple(-shift), []).append((j, i))
    return actual


def _add(potential, atoms, second, i, j, d, r2, excluded, result, other):
    """Add what atoms j do to atoms i, and, where they are others, what these do to them."""
    mine = {name: atoms.parameters[name][i] for name in potential.atoms}
    theirs = {name: second.parameters[name][j] for name in potential.atoms}
    tables = {name: atoms.tables[name][atoms.types[i], second.types[j]] for name in potential.tables}
    sides = [(result, i, mine, theirs, 1)] + ([] if second is atoms else [(other, j, theirs, mine, -1)])
    for into, place, own, of, sign in sides:
        slope = _slopes(potential, r2, own, of, tables, excluded)
        np.add.at(into.forces, place, sign * slope[:, None] * d)
        np.add.at(into.energies, place, _energies(potential, r2, own, of, tables, excluded).T / 2)


def _slopes(potential, r2, i, j, tables, excluded):
    scaled = potential.scaled(("slope",), excluded=excluded)
    inputs = {f"i.{n}": v for n, v in i.items()} | {f"j.{n}": v for n, v in j.items()}
    inputs |= {f"pair.{n}": v for n, v in tables.items()} | {"r2": r2, "rinv": 1 / np.sqrt(r2)}
    inputs |= dict(zip(scaled.program.parameters, scaled.values, strict=True))
    return evaluate_all(scaled.program, inputs)[0] + 0 * r2


def _energies(potential, r2, i, j, tables, excluded):
    """Return the energies (terms, pairs), by the functions of the pages themselves."""
    actual = np.zeros((len(potential.terms), len(r2)))
    for n, term in enumerate(potential.terms):
        page = term.bound.interaction
        radial = page.excluded if excluded else page.radial
        if radial is not None:
            actual[n] = term.value(radial, r2, 1 / np.sqrt(r2), *(SimpleNamespace(**p) for p in (i, j, tables)),
                                  term.bound.values)
    return actual


def distances(positions, others, cell, reach, bins):
    """Return the histogram by all pairs and all images within reach."""
    second = positions if others is None else others
    shifts = [(0, 0, 0)]
    if cell is not None:
        cell = Cell(cell.reduced)  # the same lattice, with fewer images to look at
        fraction = cell.fractional(np.concatenate([positions, second]))
        heights = 1 / np.linalg.norm(np.linalg.inv(cell.vectors), axis=0)
        shifts = product(*(range(-n, n + 1) for n in np.ceil(reach / heights + np.ptp(fraction, axis=0)).astype(int)))
    result = np.zeros(bins, int)
    for shift in shifts:
        d = np.linalg.norm(positions[:, None] - second - (0 if cell is None else shift @ cell.vectors), axis=2)
        if others is None and not any(shift):
            d = d[~np.eye(len(d), dtype=bool)]
        result += np.bincount((d[d < reach] * (bins / reach)).astype(int), minlength=bins)[:bins]
    return result if others is not None else result // 2


def apart(x, y, soft=0.0):
    """Return the vectors between all pairs, and the distances, infinite for an atom and itself."""
    d = x[:, None] - y
    r = np.sqrt((d * d).sum(2) + soft**2)
    if x is y:
        np.fill_diagonal(r, np.inf)
    return d, r


def coulomb_by_hand(x, q, others=None):
    """Return half of the Coulomb energies of each charge's pairs, and the forces."""
    y, p = others or (x, q)
    d, r = apart(x, y)
    energy = q[:, None] * p / r
    return energy.sum(1) / 2, ((energy / r**2)[..., None] * d).sum(1)
