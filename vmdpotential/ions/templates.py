"""Ions of several atoms: what a template says of them, how they are turned, and the waters that are in their way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vmdpotential.errors import InputError, UsageError
from vmdpotential.ions.counts import Species
from vmdpotential.ions.edit import IonNames
from vmdpotential.ions.potential import quiet
from vmdpotential.ions.sites import Candidates, Floats, Integers, Sites, nearest
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.elements import masses
from vmdpotential.molecule.names import IONS, WATERS
from vmdpotential.molecule.structure import Structure

#: By how much the charges of a template may miss an integer, e: what rounding leaves. It is taken off all atoms alike.
ROUNDING = 0.01

#: How many turns of an ion are tried.
TURNS = 48

#: A water goes where its oxygen is nearer to an atom of an ion, A: one heavier than hydrogen, as solvating programs
#: do it, and hydrogen, which a water may be bound to (at 1.7 A and farther).
CLEAR, CLEAR_HYDROGEN = 2.4, 1.5


@dataclass(frozen=True, eq=False)
class Template:
    """An ion of several atoms.

    Parameters
    ----------
    names : tuple of A IonNames
        Its atoms, with their charges.
    positions : (A, 3) float64, A
        From its centre, the mean of them.
    bonds : (B, 2) int64
    """

    names: tuple[IonNames, ...]
    positions: Floats
    bonds: Integers

    @property
    def charges(self) -> Floats:
        """(A,) e"""
        return np.array([atom.charge for atom in self.names], np.float64)

    @property
    def species(self) -> Species:
        """The ion as it is counted and placed."""
        return Species(self.names[0].residue, round(float(self.charges.sum())),
                       float(np.sqrt((self.positions**2).sum(1)).max()))


def template_of(name: str, structure: Structure) -> Template:
    """Return the template of an ion from a structure with charges, of that ion alone.

    Parameters
    ----------
    name : str
        What the ion is called, in files too.
    structure : Structure
        Its atoms; bonds and types of its topology.

    Raises
    ------
    UsageError
        When the name is one that ions of one atom, or waters, have.
    InputError
        When there are no charges, they do not add up to that of an ion, or atoms lie on each other.
    """
    where = structure.sources[0] if structure.sources else f"the template of {name}"
    if name.upper() in IONS or name.upper() in WATERS or not name.isalnum():
        raise UsageError("ion_template", "is not a possible name for an ion of several atoms",
                         "choose another, such as SO4",
                         value=name)
    charges = structure.known_charges
    net = round(float(charges.sum()))
    rest = float(charges.sum()) - net
    if not net or abs(rest) > ROUNDING:
        raise InputError(f"{where}: its charges add up to {charges.sum():+.4f} e, and not to an ion's",
                         "give a file of the ion alone, with charges")
    apart = structure.positions[:, None] - structure.positions
    if len(structure) > 1 and np.sqrt((apart**2).sum(-1))[np.triu_indices(len(structure), 1)].min() < 0.1:
        raise InputError(f"{where}: two atoms have the same position", "give a file with coordinates")
    topology = structure.topology
    types = structure.atom_names if topology is None else np.where(
        topology.types == "", structure.atom_names, topology.types)
    mass = masses(structure)
    atoms = tuple(
        IonNames(name, str(structure.atom_names[row]), str(types[row]), str(structure.elements[row]),
                 float(mass[row]), float(charges[row]) - rest / len(structure))
        for row in range(len(structure)))
    bonds = np.zeros((0, 2), np.int64) if topology is None else np.array(topology.bonds, np.int64)
    return Template(atoms, structure.positions - structure.positions.mean(0), bonds)


def turned(sites: Sites, templates: Mapping[str, Template], candidates: Candidates, method: str, factor: float,
           seed: int) -> list[Floats]:
    """Return the positions of the atoms of every ion placed, (A, 3) A each.

    Of :data:`TURNS` random ones, ions of several atoms take that of lowest energy with the solute and all other
    ions, which count as charges at their centres; with ``random`` the first, and with ``monte-carlo`` one by its
    Boltzmann factor.

    Parameters
    ----------
    sites : Sites
    templates : mapping
        By the names of species.
    candidates : Candidates
    method : str
        How the sites were chosen.
    factor : float
        Coulomb's constant over kT and the dielectric constant, A/e^2.
    seed : int
    """
    from scipy.spatial.transform import Rotation

    atoms = [position[None] for position in sites.positions]
    several = [row for row, ion in enumerate(sites.species) if ion.name in templates]
    if not several:
        return atoms
    random = np.random.default_rng([seed, 1])
    trials = []
    for row in several:
        template = templates[sites.species[row].name]
        rotations = Rotation.from_quat(random.normal(size=(TURNS, 4))).as_matrix()
        trials.append(sites.positions[row] + template.positions @ rotations)
    chosen = [0] * len(several)
    if method != "random":
        points = np.asfortranarray(np.concatenate([trial.reshape(-1, 3) for trial in trials]))
        owner = np.repeat(several, [trial[..., 0].size for trial in trials])
        potential = candidates.potential_at(points)
        for row, ion in enumerate(sites.species):
            own = np.zeros(len(points))
            with quiet():
                candidates.pair.add(points, sites.positions[row], float(ion.charge), own)
            potential += np.where(owner == row, 0.0, own)
        for place, row in enumerate(several):
            charges = templates[sites.species[row].name].charges
            energy = potential[owner == row].reshape(TURNS, -1) @ charges
            if method == "monte-carlo":
                weight = np.exp(-factor * (energy - energy.min()))
                chosen[place] = int(random.choice(TURNS, p=weight / weight.sum()))
            else:
                chosen[place] = int(energy.argmin())
    for row, trial, turn in zip(several, trials, chosen, strict=True):
        atoms[row] = trial[turn]
    return atoms


def in_the_way(oxygens: Floats, ions: Sequence[tuple[Template, Floats]], cell: Cell | None) -> Integers:
    """Return the rows of the waters whose oxygens (W, 3) overlap with ions, which are at some positions each."""
    if not ions:
        return np.zeros(0, np.int64)
    light = np.concatenate([[atom.element == "H" for atom in template.names] for template, _ in ions])
    atoms = np.concatenate([positions for _, positions in ions])
    near = (nearest(oxygens, atoms[~light], cell, CLEAR) < CLEAR) | (
        nearest(oxygens, atoms[light], cell, CLEAR_HYDROGEN) < CLEAR_HYDROGEN)
    return np.flatnonzero(near).astype(np.int64)
