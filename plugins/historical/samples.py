"""Boxes of water with the parameters of pair sums, for measurements, and a check of their forces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.engines import Engine
from vmdpotential.interactions import reaction_field
from vmdpotential.interactions.program import evaluate_all
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.samples import water_box
from vmdpotential.units import coulomb_constant

from ..pairs import lennard_jones
from ..pairs.in_range import Atoms
from ..pairs.pair_terms import CHARGES_RULE, GEOMETRIC_RULE, PairPotential, PairTerm
from .lists import ListedPairs
from .polynomial import ewald_polynomial

#: TIP3P's sigma, A, and epsilon, kcal/mol, of oxygen; masses of the atoms, u.
SIGMA, EPSILON = 3.15061, 0.1521
MASSES = (15.9994, 1.008, 1.008)

#: Product of Ewald's splitting parameter beta and the cutoff: at the cutoff 1e-5 of the interaction remains.
BETA_CUTOFF = 3.12

#: Names of the pair potentials for condensed systems.
POTENTIALS = ("rf", "ewald")


@dataclass(frozen=True, eq=False)
class WaterBox:
    """Periodic cube of water molecules.

    Parameters
    ----------
    atoms : Atoms
        Atoms with charges and Lennard-Jones parameters of oxygen (geometric rule); pairs within a molecule are
        excluded.
    masses : (N,) float64, u
    cell : Cell
    """

    atoms: Atoms
    masses: Floats
    cell: Cell


def water(edge: float) -> WaterBox:
    """Return a cube of TIP3P water with an edge length in A, see :func:`vmdpotential.molecule.samples.water_box`."""
    positions, charges = water_box(edge)
    count = len(charges) // 3
    oxygen = np.tile([1.0, 0.0, 0.0], count)
    c6, c12 = 4 * EPSILON * SIGMA**6, 4 * EPSILON * SIGMA**12
    first = 3 * np.arange(count)[:, None]
    exclusions = np.concatenate([first + pair for pair in ([0, 1], [0, 2], [1, 2])], axis=1).reshape(-1, 2)
    atoms = Atoms(
        positions,
        {"charge": charges * np.sqrt(coulomb_constant("kcal/mol/e")), "root_a6": oxygen * np.sqrt(6 * c6),
         "root_a12": oxygen * np.sqrt(12 * c12)},
        exclusions=np.ascontiguousarray(exclusions))
    return WaterBox(atoms, np.tile(MASSES, count), Cell.from_parameters(edge, edge, edge))


def potential(name: str, cutoff: float) -> PairPotential:
    """Return Lennard-Jones with a conductor's reaction field (``rf``) or Ewald's real-space part (``ewald``)."""
    if name == "rf":
        coulomb = reaction_field.INTERACTION.bind(cutoff=cutoff, permittivity=0.0)
    else:
        coulomb = ewald_polynomial(cutoff, BETA_CUTOFF / cutoff)
    return PairPotential((PairTerm("coulomb", coulomb, CHARGES_RULE),
                          PairTerm("lennard_jones", lennard_jones.INTERACTION.bind().truncated(cutoff),
                                   GEOMETRIC_RULE)))


def useful(atoms: int, volume: float, cutoff: float) -> float:
    """Return the mean number of pairs within a cutoff (A), each counted once, at uniform density in a volume (A^3).

    The pair of an atom with itself counts half, as in published benchmarks.
    """
    return 0.5 * atoms * (atoms / volume * 4 / 3 * np.pi * cutoff**3 + 1)


def check_forces(engine: Engine, seed: int) -> Iterator[tuple[str, float, float]]:
    """Yield relative errors of forces in water and their limits, for `verify`."""
    for name in POTENTIALS:
        yield f"forces of pairs in range, {name}", error_of_forces(engine, name), 5e-6


def error_of_forces(engine: Engine, name: str) -> float:
    """Return the relative rms error of forces in water against an explicit sum over all pairs in their nearest images.
    """
    box, cutoff = water(18.6), 9.0
    atoms, law = box.atoms, potential(name, cutoff)
    result = ListedPairs(engine, law, box.cell).run(atoms).forces
    d = box.cell.minimum_image((atoms.positions[:, None] - atoms.positions).reshape(-1, 3))
    d = d.reshape(len(atoms), len(atoms), 3)
    r2 = (d * d).sum(2)
    included = np.ones(r2.shape, bool)
    assert atoms.exclusions is not None
    included[tuple(atoms.exclusions.T)] = included[tuple(atoms.exclusions.T[::-1])] = False
    np.fill_diagonal(r2, np.inf)
    total = np.zeros_like(r2)
    for excluded, mask in ((False, included), (True, ~included)):
        scaled = law.scaled(excluded=excluded)
        inputs: dict[str, Any] = {f"{side}.{n}": values[index] for n, values in atoms.parameters.items()
                  for side, index in (("i", (slice(None), None)), ("j", (None, slice(None))))}
        inputs |= dict(zip(scaled.program.parameters, scaled.values, strict=True))
        within = mask & (r2 < cutoff**2)
        r2_safe = np.where(within, r2, 1.0)
        slope = evaluate_all(scaled.program, inputs | {"r2": r2_safe, "rinv": 1 / np.sqrt(r2_safe)})[0]
        total += np.where(within, slope, 0.0)
    exact = (total[..., None] * d).sum(1)
    error = float(np.sqrt(((result - exact) ** 2).mean() / (exact**2).mean()))
    return error
