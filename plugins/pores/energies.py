"""The free energy of an ion at points in and around a molecule, by the Poisson-Boltzmann equation.

It is the energy of the molecule with the ion, less those of the molecule and of the ion in water. All three are solved
on lattices that are in the same place around the ion, so that errors of the lattice cancel; the energy of the ion in
water is then the same for all points. The fine lattice is around the ion only, and atoms farther away have the reaction
potential of the coarse one, which the fine solution has corrected.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import repeat
from typing import NamedTuple

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Lattice

from ..continuum.molecule import Continuum
from ..continuum.node_potential import NodePotential
from ..continuum.solution import TwoLattices, solve_charge_sets
from ..continuum.stated_errors import ReactionErrors, combine_errors

#: How far the fine lattice reaches beyond the surface of the ion, A, and the place of the ion between nodes, in
#: spacings: not on a node or a face, where errors are special.
AROUND, OFF_NODE = 7.0, np.array([0.27, 0.13, 0.41])

#: Smallest distance, A, for the potential of a charge in a charge.
SMALLEST = 0.1

#: Added to the stated error of each energy, kT: what the tolerances of solutions leave of differences.
SMALLEST_ERROR = 0.02


class Ion(NamedTuple):
    """An ion: its charge, e, and the radius of its ball, A."""

    charge: float
    radius: float


class IonEnergy(NamedTuple):
    """The free energy of an ion at a point, less that in water, kT."""

    #: Its sum, and the error of that.
    total: float
    error: float
    #: The part that is there without the molecule's charges: what the ion loses of its surroundings' response.
    desolvation: float
    #: What the molecule's charges add: twice half of their potential, and the change of their own response.
    interaction: float
    #: What a voltage across the membrane adds: all charges times its potential, less the molecule's without the ion.
    voltage: float


def ion_energies(molecule: Continuum, points: Floats, ion: Ion, spacing: float, engine: Engine) -> Iterator[IonEnergy]:
    """Yield the energies of an ion at points (P, 3), A, in the continuum of a molecule.

    Parameters
    ----------
    molecule : Continuum
        Of the linear equation and with a sharp surface. Its pores are those without the ion. With a voltage, the ion
        in water is in the solution above.
    points : (P, 3) float64, A
    ion : Ion
    spacing : float, A
    engine : Engine

    Raises
    ------
    TaskError
        When a solution does not converge.
    """
    total = NodePotential(engine.name)
    charged = bool(molecule.charges.any())
    bulk: _Reaction | None = None
    raised, applied = molecule, molecule.applied
    if molecule.membrane is not None:
        molecule = replace(molecule, membrane=replace(molecule.membrane, voltage=0.0))
    for point in points:
        lattice = _lattice(point, ion, spacing)
        if bulk is None:
            alone = replace(molecule, positions=point[None], charges=np.array([ion.charge]),
                            radii=np.array([ion.radius]), membrane=None)
            bulk = _Reaction(TwoLattices(alone, lattice, engine, total))
        both = replace(molecule, positions=np.concatenate([molecule.positions, point[None]]),
                       charges=np.append(np.zeros(len(molecule.charges)), ion.charge),
                       radii=np.append(molecule.radii, ion.radius))
        sets = [both.charges, *([np.append(molecule.charges, 0.0)] if charged else [])]
        own, *others = map(_Reaction, solve_charge_sets(both, lattice, engine, sets, repeat(total)))
        half = 0.5 * ion.charge
        desolvation = half * float(own.values[-1] - bulk.values[-1])
        signed = np.zeros(len(both.charges))
        signed[-1] = half * (own.errors[-1] - bulk.errors[-1])
        interaction = 0.0
        if charged:
            charges = molecule.charges
            distances = np.maximum(np.linalg.norm(molecule.positions - point, axis=1), SMALLEST)
            interaction = float(charges @ (own.values[:-1]
                                           + molecule.constant / molecule.inside * ion.charge / distances))
            signed[:-1] += charges * own.errors[:-1]
            with_ball = others[0]
            without = _Reaction(TwoLattices(molecule, lattice, engine, total))
            interaction += float(0.5 * charges @ (with_ball.values[:-1] - without.values))
            signed[:-1] += 0.5 * charges * (with_ball.errors[:-1] - without.errors)
        voltage = 0.0
        if applied is not None:
            nothing = np.zeros(len(both.charges))
            with_ball = _Reaction(TwoLattices(replace(both, charges=nothing, membrane=raised.membrane), lattice, engine,
                                              total))
            voltage = ion.charge * float(with_ball.values[-1] + applied.at(point[2:])[0])
            signed[-1] += ion.charge * with_ball.errors[-1]
            if charged:
                without = _Reaction(TwoLattices(raised.with_charges(nothing[:-1]), lattice, engine, total))
                voltage += float(molecule.charges @ (with_ball.values[:-1] - without.values))
                signed[:-1] += molecule.charges * (with_ball.errors[:-1] - without.errors)
        error = float(np.hypot(combine_errors(signed, molecule.probe < spacing), SMALLEST_ERROR))
        yield IonEnergy(desolvation + interaction + voltage, error, desolvation, interaction, voltage)


class _Reaction:
    """Reaction potentials at all atoms, kT/e, and their errors with signs; of the coarse lattice beyond the fine."""

    def __init__(self, solved: TwoLattices) -> None:
        c, fine = solved.continuum, solved.fine.lattice
        near = ((c.positions >= fine.origin) & (c.positions <= fine.last)).all(1)
        coarse, self.values = solved.coarse_reaction(), solved.far.reaction()
        if near.any():
            self.values[near] = solved.fine.reaction(rows=np.flatnonzero(near))
        self.errors = ReactionErrors(c, fine, solved.ratio, coarse - self.values).expected


def _lattice(point: Floats, ion: Ion, spacing: float) -> Lattice:
    """Return a lattice around an ion, which is at the same place between its nodes for every point."""
    half = int(np.ceil((ion.radius + AROUND) / spacing))
    return Lattice(point - spacing * (half + OFF_NODE), np.full(3, spacing), (2 * half + 2,) * 3)
