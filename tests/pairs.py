"""The definition of a sum over pairs, written out in float64: what every engine is held against."""

from types import SimpleNamespace

import numpy as np

from vmdpotential.engines.pairs import PairResult
from vmdpotential.interactions.tracing import evaluate_all


def reference(potential, atoms, cell, others=None):
    """Return the sum over pairs of atoms, or of atoms and others, with all images: forces, energies, virial, jerks.

    An excluded pair is its nearest image; a cutoff is that of the softened distance, as all that a distance is in.
    """
    second = atoms if others is None else others
    result, other = _empty(potential, atoms), _empty(potential, second)
    excluded = _nearest_of_excluded(atoms, cell) if others is None else {}
    for shift in _shifts(potential, atoms, second, cell):
        for i in range(len(atoms)):
            d = atoms.positions[i] - (second.positions + shift @ (np.eye(3) if cell is None else cell.vectors))
            r2 = (d * d).sum(1) + potential.softening**2
            near = r2 < (np.inf if potential.cutoff is None else potential.cutoff**2)
            if others is None and not shift.any():
                near[i] = False
            out = np.array([excluded.get((i, j)) == tuple(shift) for j in range(len(second))]) & near
            _add(potential, atoms, second, i, np.flatnonzero(near & ~out), d, r2, False, result, other)
            _add(potential, atoms, second, i, np.flatnonzero(out), d, r2, True, result, other)
    if others is None:
        result.virial[:] /= 2  # every pair has come twice
        return result
    return PairResult(result.forces, result.energies, result.virial, result.jerks, other)


def _empty(potential, atoms):
    n = len(atoms)
    return PairResult(np.zeros((n, 3)), np.zeros((n, len(potential.terms))), np.zeros((3, 3)),
                      None if atoms.velocities is None else np.zeros((n, 3)))


def _shifts(potential, atoms, second, cell):
    """Return the images (S, 3) of second atoms, in lattice vectors, that may be in range of an atom."""
    if cell is None:
        return np.zeros((1, 3), int)
    fraction = np.concatenate([cell.fractional(atoms.positions), cell.fractional(second.positions)])
    heights = 1 / np.linalg.norm(np.linalg.inv(cell.vectors), axis=0)
    most = np.ceil(potential.cutoff / heights + np.ptp(fraction, axis=0)).astype(int)
    return np.stack(np.meshgrid(*(np.arange(-n, n + 1) for n in most), indexing="ij"), -1).reshape(-1, 3)


def _nearest_of_excluded(atoms, cell):
    """Return by (i, j) which image of j is left out for i."""
    found = {}
    for i, j in () if atoms.exclusions is None else atoms.exclusions:
        shift = np.zeros(3, int)
        if cell is not None:
            d = atoms.positions[i] - atoms.positions[j]
            shift = np.rint(cell.fractional(d - cell.minimum_image(d))).astype(int)
        found[int(i), int(j)], found[int(j), int(i)] = tuple(shift), tuple(-shift)
    return found


def _add(potential, atoms, second, i, j, d, r2, excluded, result, other):
    """Add what atoms j do to atom i, and, where they are others, what i does to them."""
    if not len(j):
        return
    d, r2 = d[j], r2[j]
    mine = {name: np.full(len(j), atoms.parameters[name][i]) for name in potential.atoms}
    theirs = {name: second.parameters[name][j] for name in potential.atoms}
    tables = {name: atoms.tables[name][atoms.types[i], second.types[j]] for name in potential.tables}
    slope, bend = _slopes(potential, r2, mine, theirs, tables, excluded)
    energies = _energies(potential, r2, mine, theirs, tables, excluded)
    result.forces[i] += slope @ d
    result.energies[i] += energies.sum(1) / 2
    result.virial[:] += (d * slope[:, None]).T @ d
    if result.jerks is not None:
        v = atoms.velocities[i] - second.velocities[j]
        result.jerks[i] += slope @ v + (2 * bend * (d * v).sum(1)) @ d
    if second is atoms:
        return
    slope, bend = _slopes(potential, r2, theirs, mine, tables, excluded)
    other.forces[j] -= slope[:, None] * d
    other.energies[j] += _energies(potential, r2, theirs, mine, tables, excluded).T / 2
    if result.jerks is not None:
        other.jerks[j] -= slope[:, None] * v + (2 * bend * (d * v).sum(1))[:, None] * d


def _slopes(potential, r2, i, j, tables, excluded):
    scaled = potential.scaled(("slope", "bend"), excluded=excluded)
    inputs = {f"i.{n}": v for n, v in i.items()} | {f"j.{n}": v for n, v in j.items()}
    inputs |= {f"pair.{n}": v for n, v in tables.items()} | {"r2": r2, "rinv": 1 / np.sqrt(r2)}
    inputs |= dict(zip(scaled.program.parameters, scaled.values, strict=True))
    slope, bend = evaluate_all(scaled.program, inputs)
    return slope + 0 * r2, bend + 0 * r2


def _energies(potential, r2, i, j, tables, excluded):
    """Return the energies (terms, pairs), by the functions of the pages themselves."""
    found = np.zeros((len(potential.terms), len(r2)))
    for n, term in enumerate(potential.terms):
        page = term.bound.interaction
        radial = page.excluded if excluded else page.radial
        if radial is not None:
            found[n] = term.value(radial, r2, 1 / np.sqrt(r2), *(SimpleNamespace(**p) for p in (i, j, tables)),
                                  term.bound.values)
    return found
