"""Energies of sites by the Poisson-Boltzmann equation: in the molecule less in water, and between sites."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress
from vmdpotential.engines import Engine, get_engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions.screened_coulomb import WATER_PERMITTIVITY
from vmdpotential.kernels import threads
from vmdpotential.units import DEFAULT_TEMPERATURE, coulomb_constant, debye_length

from ..continuum.lattices import aligned_lattice
from ..continuum.molecule import Continuum
from ..continuum.solution import TwoLattices, solve_charge_sets
from .sites import TitratedStructure

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Margin of lattices around atoms, A.
MARGIN = 4.0

#: Factor on the root of the squares of atoms' errors: these partly have the same sign. Of the intrinsic pKa values of
#: lysozyme at 1 A, nine of ten then differ by less than the stated error from those at 0.5 A.
ERROR_FACTOR = 1.6

#: Distance, A, below which two charges are those of one atom.
SAME = 0.1


@dataclass(frozen=True)
class Solvent:
    """The continuum: permittivities, the salt, and the lattice.

    Parameters
    ----------
    inside, outside : float
        Relative permittivities of the molecule and of the water.
    salt : float, M
        Concentration of a 1:1 salt.
    temperature : float, K
    spacing : float, A
    probe, ion_radius : float, A
        Radius of the probe of the molecular surface, and distance of the ions from an atom's surface.
    """

    inside: float = 20.0
    outside: float = WATER_PERMITTIVITY
    salt: float = 0.1
    temperature: float = DEFAULT_TEMPERATURE
    spacing: float = 1.0
    probe: float = 1.4
    ion_radius: float = 2.0

    @property
    def constant(self) -> float:
        """The potential of 1 e at 1 A in vacuum, kT/e."""
        return coulomb_constant("kT/e", self.temperature)

    def around(self, positions: Floats, radii: Floats) -> Continuum:
        """Return atoms without charges in this solvent."""
        kappa = 1 / debye_length(self.salt, self.temperature, self.outside) if self.salt else 0.0
        return Continuum(positions, np.zeros(len(radii)), radii, self.constant, self.inside, self.outside, self.probe,
                         self.ion_radius, kappa, np.zeros((0, 2)))


class ChargeChange(NamedTuple):
    """A change of the charges of some atoms: of the state of a site (`site`) from its neutral one."""

    site: int
    atoms: Integers
    charges: Floats
    #: Atoms of the model compound.
    model: Integers


class SiteEnergies(NamedTuple):
    """Energies of changes of charges (K,), kT.

    Parameters
    ----------
    desolvation : (K,) float64
        With the model compound's own charges, in the molecule less in water.
    background : (K,) float64
        With all other charges of the neutral molecule.
    between : (K, K) float64
        Between changes of different sites, symmetric; 0 for those of one site.
    errors : (K,) float64
        Of the first two, from two lattices.
    asymmetry : float
        Largest difference between the energy of two changes and that of the same in the other order, halved.
    """

    desolvation: Floats
    background: Floats
    between: Floats
    errors: Floats
    asymmetry: float


def changes_of(titrated: TitratedStructure) -> list[ChargeChange]:
    """Return the changes of all states of all sites."""
    return [ChargeChange(n, site.atoms, state.charges, site.model)
            for n, site in enumerate(titrated.sites) for state in site.states]


def site_energies(positions: Floats, radii: Floats, neutral: Floats, changes: list[ChargeChange], solvent: Solvent,
                  engine: Engine) -> SiteEnergies:
    """Return the energies of changes of charges, each in the molecule less in its model compound in water.

    The equation is solved once for each change in the molecule, and once in its model compound, which has the same
    nodes, so that errors of the lattice cancel. By reciprocity the potentials of the changes suffice: that of the
    permanent charges is not needed.

    Parameters
    ----------
    positions : (N, 3) float64, A
    radii : (N,) float64, A
    neutral : (N,) float64, e
        The charges of the neutral molecule.
    changes : list of ChargeChange
    solvent : Solvent
    engine : Engine

    Raises
    ------
    TaskError
        When a solution does not converge.
    """
    count, atoms = len(changes), len(positions)
    lattice, ratio = Lattice.around(positions, solvent.spacing, MARGIN), 2
    sets = np.zeros((count, atoms))
    for row, change in zip(sets, changes, strict=True):
        np.add.at(row, change.atoms, change.charges)
    desolvation, background, coulomb = np.zeros(count), np.zeros(count), _coulomb(positions, sets, solvent)
    between, errors = np.zeros((count, count)), np.zeros((count, atoms))  # errors by atom
    solved = solve_charge_sets(solvent.around(positions, radii), lattice, engine, iter(sets), energies=True)
    for k, (change, both) in enumerate(zip(changes, solved, strict=True)):
        reaction, error = _reactions(both)
        model = np.isin(np.arange(atoms), change.model)
        own, others = np.where(model, neutral, 0.0) + 0.5 * sets[k], np.where(model, 0.0, neutral)
        desolvation[k], background[k] = own @ reaction, others @ (reaction + coulomb[k])
        between[k] = sets @ (reaction + coulomb[k])
        errors[k] = (own + others) * error
        ratio = both.ratio
        progress.report_progress("pKa values", 0.8 * (k + 1) / count)
    compounds: dict[bytes, list[int]] = {}
    for k, change in enumerate(changes):
        compounds.setdefault(change.model.tobytes(), []).append(k)
    for rows in compounds.values():  # which have too few nodes for a GPU, or for several threads
        model_atoms = changes[rows[0]].model
        small = solvent.around(positions[model_atoms], radii[model_atoms])
        nodes = aligned_lattice(Lattice.around(small.positions, solvent.spacing, MARGIN), lattice, ratio)
        with threads.sharing(threads.count()):
            solutions = solve_charge_sets(small, nodes, get_engine("cpu"), iter(sets[rows][:, model_atoms]),
                                          energies=True)
            for k, both in zip(rows, solutions, strict=True):
                reaction, error = _reactions(both)
                own = neutral[model_atoms] + 0.5 * sets[k][model_atoms]
                desolvation[k] -= own @ reaction
                errors[k, model_atoms] -= own * error
    site_of = np.array([change.site for change in changes])
    between[site_of[:, None] == site_of] = 0.0
    return SiteEnergies(desolvation, background, 0.5 * (between + between.T),
                        ERROR_FACTOR * np.linalg.norm(errors, axis=1),
                        0.5 * float(np.abs(between - between.T).max(initial=0.0)))


def _reactions(solved: TwoLattices) -> tuple[Floats, Floats]:
    """Return the reaction potentials (N,), kT/e, and their errors with signs, from two lattices."""
    return solved.reaction, solved.reaction_errors().expected


def _coulomb(positions: Floats, sets: Floats, solvent: Solvent) -> Floats:
    """Return the potentials (K, N), kT/e, of sets of charges (K, N) in a medium of the molecule's permittivity."""
    from scipy.spatial.distance import cdist

    charged = np.flatnonzero(sets.any(0))
    r = cdist(positions[charged], positions)
    inverse = np.where(r > SAME, 1 / np.maximum(r, SAME), 0.0)
    result: Floats = (solvent.constant / solvent.inside) * (sets[:, charged] @ inverse)
    return result
