"""Small random systems against sums written out in float64: ``python -m fuzz --systems 500 --seed 7``.

Charges of all sizes, neutral or not, dipoles, atoms on top of each other and without charge, in open, triclinic and
flat cells, on lattices of any spacing: maps and potentials at points by every method must be right within the error
that they state. Relations that hold for any system (``metamorphic``) are checked for maps, points and ions. Balls of
low permittivity in water, with several charges, have the potential and the energy of J. G. Kirkwood's series, which are
linear in the charges, reciprocal, and do not depend on place and direction. The binding of two molecules is that of
their exchange, and a voltage across an empty slab is linear. What cannot be done is refused in one
sentence; nothing is NaN, warns or crashes.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.special import eval_legendre

from vmdpotential import energy, potential_at, potential_map, solvation_energy
from vmdpotential.errors import VmdpotentialError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure
from vmdpotential.units import coulomb_constant, debye_length

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))  # python -m fuzz has no path of tests
import ewald
import metamorphic

Rng = np.random.Generator
#: How much larger than stated an actual error may be, which is stated for some of the nodes; the same for errors from
#: two lattices, of which one of ten is larger than stated.
MORE, MORE_IN_CONTINUUM = 1.5, 2.0
#: Relative errors that are not stated: of sums whose values are float32, and of the constant of Coulomb's law.
ROUNDING = 3e-5
#: What rounding leaves of terms of float32 that cancel, relative to the largest that their sum could be.
CANCELLED = 1e-7
#: Relative differences of two solutions of one equation on one lattice.
SOLVED = 2e-3
WATER = 78.5


def system(rng: Rng) -> Structure:
    """Return charges at random places in a cell or none."""
    periodic, count = rng.random() < 0.6, int(10 ** rng.uniform(0, 2.4))
    cell = None
    if periodic:
        cell = metamorphic.random_cell(rng, 7, 24)
        if rng.random() < 0.2:  # flat or long
            cell = Cell(cell.vectors * rng.permutation([1.0, 1.0, rng.uniform(1.5, 4)])[:, None])
    vectors = np.diag(10 ** rng.uniform(0, 1.7, 3)) if cell is None else cell.vectors
    positions = rng.uniform(-0.7, 1.2, (count, 3)) @ vectors + rng.choice([0, 0, 300]) * rng.normal(size=3)
    charges = rng.normal(size=count) * 10 ** rng.choice([0.0, 0.0, 0.0, -4.0, 2.0])
    kind = rng.integers(6)
    if kind == 0:
        charges[: count // 2] = 0
    if kind == 1:  # dipoles
        half = count // 2
        positions[half : 2 * half] = positions[:half] + 10 ** rng.uniform(-2, 0) * rng.normal(size=(half, 3))
        charges[half : 2 * half] = -charges[:half]
    if kind == 2:  # on top of each other
        positions[: count // 3] = positions[-1]
    if kind == 3:
        charges[:] = charges[0]
    if rng.random() < 0.4:
        charges -= charges.mean()
    return metamorphic.molecules(positions, charges, [1] * count, cell, count)


def exact(structure: Structure, points: np.ndarray, screening: float) -> np.ndarray:
    """Return the potential, e/A, at points, and the distance to the nearest charge."""
    if structure.cell is not None:
        return ewald.with_field(points, structure.positions, structure.known_charges, structure.cell.vectors)[0]
    r = np.maximum(np.linalg.norm(points[:, None] - structure.positions, axis=2), 1e-9)
    return (np.exp(-screening * r) / r) @ structure.known_charges


def nearest(structure: Structure, points: np.ndarray) -> np.ndarray:
    apart = points[:, None] - structure.positions
    if structure.cell is not None:
        return ewald.shortest(apart, structure.cell.vectors).min(1)
    return np.linalg.norm(apart, axis=2).min(1)


def check_sums(rng: Rng) -> Iterator[str]:
    """Yield what is wrong with a map and potentials at points of a random system."""
    structure = system(rng)
    periodic = structure.cell is not None
    options = {"engine": "cpu", "boundary": "periodic" if periodic else "open", "unit": "kT/e",
               "method": str(rng.choice(["auto", "pme", "direct", "pme"]))}
    screening = 0.0
    if not periodic and rng.random() < 0.3:
        salt = float(10 ** rng.uniform(-3, 0))
        options |= {"screened": salt, "method": "direct"}
        screening = 1 / debye_length(salt, 298.15, WATER)
    size = structure.positions.max(0) - structure.positions.min(0)
    lattice = Lattice(structure.positions.min(0) + rng.uniform(-1, 1, 3) * (size + 2), 10 ** rng.uniform(-1.3, 0.7, 3),
                      tuple(int(n) for n in rng.integers(2, 11, 3)))
    tolerance = float(10 ** rng.uniform(-5, -2))
    points = lattice.points()
    unit = coulomb_constant("kT/e") / (WATER if screening else 1.0)
    right, apart = unit * exact(structure, points, screening), nearest(structure, points)
    away = apart > 0.05  # of nodes on top of atoms, what is shown depends on the definition
    cell = structure.cell and structure.cell.parameters
    name = f"{options} {len(structure)} atoms, {cell}, tolerance {tolerance:.1e}"
    if options["method"] != "direct":
        options["tolerance"] = tolerance
    if not screening:
        options["medium"] = "explicit"
    grid = potential_map(structure, lattice=lattice, **options)
    values = np.asarray(grid.values, np.float64).ravel()
    if not np.isfinite(values).all():
        yield f"map {name}: not finite"
    stated = max(tolerance, grid.provenance.error or 0.0)
    total = np.sqrt(np.mean(values**2))
    error = np.sqrt(np.mean((values - right)[away] ** 2)) if away.any() else 0.0
    most = unit * np.abs(structure.known_charges).sum() / max(0.05, apart.min())
    if error > (MORE * stated + ROUNDING) * total + CANCELLED * most:
        yield f"map {name}: {error / total:.1e} wrong, stated {stated:.1e}"
    if screening:
        return
    places = points[rng.permutation(len(points))[:30]] + rng.uniform(-1, 1, 3)
    right, apart = unit * exact(structure, places, 0.0), nearest(structure, places)
    method = str(rng.choice(["direct", "pme", "auto"]))
    values = potential_at(structure, places, method=method, unit="kT/e", engine="cpu", boundary=options["boundary"],
                          **({} if method == "direct" else {"tolerance": tolerance}))
    away, total = apart > 0.05, np.sqrt(np.mean(values**2))
    error = np.sqrt(np.mean((values - right)[away] ** 2)) if away.any() else 0.0
    if not np.isfinite(values).all() or error > (MORE * tolerance + ROUNDING) * total:
        yield f"points by {method} {name}: {error / total:.1e} wrong"


# ---- balls in water -------------------------------------------------------------------------------------------


def kirkwood(points: np.ndarray, places: np.ndarray, charges: np.ndarray, radius: float, inside: float
             ) -> tuple[np.ndarray, np.ndarray]:
    """Return the potential outside of a ball around the origin, and the reaction potential at its charges, e/A.

    J. G. Kirkwood, J. Chem. Phys. 2 (1934) 351, without ions.
    """
    r, s = np.linalg.norm(points, axis=1), np.linalg.norm(places, axis=1)
    degrees = np.arange(60)
    factor = (2 * degrees + 1) / (WATER * (degrees + 1) + inside * degrees)
    cosines = (points @ places.T) / np.outer(r, np.maximum(s, 1e-12))
    mutual = (places @ places.T) / np.maximum(np.outer(s, s), 1e-24)
    own = (degrees + 1) * (inside - WATER) / (WATER * (degrees + 1) + inside * degrees) / inside
    outer, reaction = np.zeros(len(points)), np.zeros(len(places))
    for n in degrees:
        outer += factor[n] * (s**n * eval_legendre(n, cosines) / r[:, None] ** (n + 1)) @ charges
        reaction += own[n] * (np.outer(s, s) ** n * eval_legendre(n, mutual) / radius ** (2 * n + 1)) @ charges
    return outer, reaction


def check_continuum(rng: Rng) -> Iterator[str]:
    """Yield what is wrong with the potential and the energies of a ball with several charges in water."""
    radius, inside, count = rng.uniform(2, 7), float(rng.choice([1.0, 2.0, 4.0, 20.0])), int(rng.integers(1, 7))
    places = rng.normal(size=(count, 3))
    places *= (rng.uniform(0, 0.75, count) * radius / np.linalg.norm(places, axis=1))[:, None]
    charges = rng.normal(size=count) * 10 ** rng.choice([0.0, 0.0, 1.0, -3.0])
    spacing, centre = float(rng.uniform(0.4, 1.0)), rng.uniform(-30, 30, 3)
    name = f"ball of {radius:.2f} A, {count} charges, inside {inside}, spacing {spacing:.2f}"

    def ball(where: np.ndarray, values: np.ndarray, at: np.ndarray) -> Structure:
        everything = np.concatenate([np.zeros((1, 3)), where]) + at
        made = metamorphic.molecules(everything, np.array([0.0, *values]), [1] * (count + 1), None, count + 1)
        return replace(made, radii=np.array([radius, *np.zeros(count)]))

    parameters = {"salt": 0.0, "inside": inside}
    half = int(np.ceil((radius + 5.0) / spacing))
    lattice = Lattice(centre - half * spacing, spacing, (2 * half + 1,) * 3)

    def mapped(structure: Structure, lattice: Lattice) -> tuple[np.ndarray, float]:
        grid = potential_map(structure, lattice=lattice, method="pb", parameters=parameters, unit="kT/e", engine="cpu")
        return np.asarray(grid.values, np.float64).ravel(), grid.provenance.error

    unit = coulomb_constant("kT/e")
    points = lattice.points() - centre
    outside = np.linalg.norm(points, axis=1) > radius
    outer, reaction = kirkwood(points[outside], places, charges, radius, inside)
    values, stated = mapped(ball(places, charges, centre), lattice)
    size, error = np.sqrt(np.mean(outer**2)) * unit, np.sqrt(np.mean((values[outside] - unit * outer) ** 2))
    if not error < MORE_IN_CONTINUUM * stated * size:
        yield f"map {name}: {error / size:.1e} wrong, stated {stated:.1e}"
    found = solvation_energy(ball(places, charges, centre), spacing=spacing, parameters=parameters, engine="cpu")
    right = 0.5 * coulomb_constant("kcal/mol/e") * charges @ reaction
    if not abs(found.total - right) < MORE_IN_CONTINUUM * found.error:
        yield f"energy {name}: {found.total:.4g} for {right:.4g}, stated {found.error:.1g}"
    # what must not change it
    quarter = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    shift, factor = rng.uniform(-20, 20, 3), float(rng.choice([-1.0, 3.0]))
    turned = replace(lattice, origin=lattice.origin + shift)
    moved = mapped(ball(places @ quarter.T, charges, centre + shift), turned)[0].reshape(lattice.shape)
    back = np.flip(moved, 0).transpose(1, 0, 2).ravel()
    apart = np.sqrt(np.mean((back - values)[outside] ** 2) / np.mean(values[outside] ** 2))
    if not apart < max(SOLVED, 0.5 * stated):
        yield f"turned and moved, {name}: other by {apart:.1e}"
    scaled, _ = mapped(ball(places, factor * charges, centre), lattice)
    if not np.sqrt(np.mean((scaled / factor - values) ** 2)) < SOLVED * np.sqrt(np.mean(values**2)):
        yield f"{factor} times the charges, {name}: not as many times the potential"
    if count > 1:
        first, second = np.zeros(count), np.zeros(count)
        first[0] = second[1] = 1.0
        both, one, other = (solvation_energy(ball(places, each, centre), spacing=spacing, parameters=parameters,
                                             engine="cpu") for each in (first + second, first, second))
        mutual = both.total - one.total - other.total  # of one charge in the other's potential, twice half of it
        shared = kirkwood(points[:1], places, first, radius, inside)[1][1] * coulomb_constant("kcal/mol/e")
        if not abs(mutual - shared) < MORE_IN_CONTINUUM * (both.error + one.error + other.error):
            yield f"reciprocity, {name}: {mutual:.4g} for {shared:.4g}"


def check_answers(rng: Rng) -> Iterator[str]:
    """Yield what is wrong with the binding of two random molecules, and with a voltage across an empty slab."""
    counts = rng.integers(2, 9, 2)
    places = [rng.uniform(-4, 4, (count, 3)) + shift for count, shift in zip(counts, (0.0, rng.uniform(3, 12, 3)),
                                                                              strict=True)]
    charges = rng.normal(size=counts.sum())
    made = metamorphic.molecules(np.concatenate(places), charges, [*counts], None, len(charges))
    made = replace(made, radii=rng.uniform(1.0, 2.0, len(made)))
    first = np.arange(len(made)) < counts[0]
    solvent = {"solvent": "gb"} if rng.random() < 0.5 else {"solvent": "pb", "spacing": 1.0}
    one, other = (energy(made, between=pair, by="residue", engine="cpu", **solvent)
                  for pair in ((first, ~first), (~first, first)))
    totals = [result.to_dataframe()["total"].sum() for result in (one, other)]
    size = np.abs(one.to_dataframe()[["coulomb", "screening", "desolvation"]].to_numpy()).sum()
    if not abs(totals[0] - totals[1]) < 1e-4 * size + 1e-6:
        yield f"binding by {solvent} of {counts} atoms: {totals[0]:.6g}, exchanged {totals[1]:.6g}"
    volts, thickness, centre = rng.uniform(-0.3, 0.3), rng.uniform(10, 60), rng.uniform(-20, 20)
    z = rng.uniform(-80, 80, 20)
    nothing = replace(metamorphic.molecules(np.zeros((1, 3)), np.zeros(1), [1], None, 1), radii=np.zeros(1))
    found = potential_at(nothing, np.outer(z, [0, 0, 1]), method="pb", unit="V",
                         parameters={"salt": 0.0, "membrane": thickness, "membrane_centre": centre, "voltage": volts})
    exact = volts * np.clip(0.5 - (z - centre) / thickness, 0, 1)
    if not np.abs(found - exact).max() < 1e-4 * abs(volts) + 1e-9:
        yield f"{volts:.3g} V across an empty slab of {thickness:.3g} A: {np.abs(found - exact).max():.2g} V wrong"


def _metamorphic(kind: str) -> Callable[[Rng], Iterator[str]]:
    return lambda rng: iter(metamorphic.CHECKS[kind](rng)[0])


CHECKS: dict[str, Callable[[Rng], Iterator[str]]] = {
    "sums": check_sums, "continuum": check_continuum, "more sums": check_sums,
    **{kind: _metamorphic(kind) for kind in metamorphic.CHECKS}, "answers": check_answers}


def check(seed: int, index: int) -> tuple[str, list[str], str]:
    """Return the kind of a system, what is wrong with it, and why it was refused, if it was."""
    kind = list(CHECKS)[index % len(CHECKS)]
    wrong, refused = [], ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            for text in CHECKS[kind](np.random.default_rng([seed, index])):
                wrong.append(text)
        except VmdpotentialError as error:
            refused = str(error)
            if len(refused) > 300 or not refused.isprintable():
                wrong.append(f"message {refused!a}")
        except Exception as error:
            wrong.append(repr(error))
    return kind, wrong, refused


def run(seed: int, count: int, only: int | None = None) -> int:
    """Check systems, or one of these again; return the number of those with a violation."""
    violations = 0
    reasons: dict[str, int] = {}
    for index in range(count) if only is None else (only,):
        kind, wrong, refused = check(seed, index)
        violations += bool(wrong)
        for line in wrong:
            print(f"--only {index}: {kind}: {line}", flush=True)
        if refused:
            reasons[refused.split(";")[0][:70]] = reasons.get(refused.split(";")[0][:70], 0) + 1
    for reason, times in sorted(reasons.items()):
        print(f"refused {times} times: {reason}")
    return violations
