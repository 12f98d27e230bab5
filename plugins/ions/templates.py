"""Ions of several atoms: their templates, their rotation, and the waters with which they overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vmdpotential.arrays import Floats, Integers
from vmdpotential.errors import InputError, UsageError
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.elements import atom_masses
from vmdpotential.molecule.names import ION_RESIDUES, WATER_RESIDUES
from vmdpotential.molecule.structure import Structure

from .counts import IonSpecies
from .edit import IonNames
from .potential import quiet_sums
from .sites import CandidateSites, ChosenSites, nearest_distances

#: Largest deviation of a template's charge from an integer, e, which rounding causes; it is removed from all atoms
#: equally.
ROUNDING = 0.01

#: Number of rotations of an ion that are tried.
TURNS = 48

#: Distances, A, of a water's oxygen below which it overlaps with a heavy atom of an ion, as in programs that solvate,
#: and with a hydrogen, which may form a hydrogen bond with the water (1.7 A and more).
CLEAR_DISTANCE, CLEAR_HYDROGEN_DISTANCE = 2.4, 1.5


@dataclass(frozen=True, eq=False)
class IonTemplate:
    """Ion of several atoms.

    Parameters
    ----------
    names : tuple of A IonNames
        Names and charges of its atoms.
    positions : (A, 3) float64, A
        Positions relative to their mean, the ion's centre.
    bonds : (B, 2) int64
    """

    names: tuple[IonNames, ...]
    positions: Floats
    bonds: Integers

    @property
    def charges(self) -> Floats:
        """(A,) charges of the atoms, e."""
        return np.array([atom.charge for atom in self.names], np.float64)

    @property
    def species(self) -> IonSpecies:
        """Species of the ion, with its total charge and radius."""
        return IonSpecies(self.names[0].residue, round(float(self.charges.sum())),
                       float(np.sqrt((self.positions**2).sum(1)).max()))


def template_of(name: str, structure: Structure) -> IonTemplate:
    """Return the template of an ion from a structure with charges that contains only the ion.

    Parameters
    ----------
    name : str
        Name of the ion, also in files.
    structure : Structure
        Atoms of the ion, and bonds and types if there is a topology.

    Raises
    ------
    UsageError
        If the name belongs to an ion of one atom or to water.
    InputError
        If there are no charges, they do not add up to an integer other than 0, or two atoms coincide.
    """
    where = structure.sources[0] if structure.sources else f"the template of {name}"
    if name.upper() in ION_RESIDUES or name.upper() in WATER_RESIDUES or not name.isalnum():
        raise UsageError("ion_template", "is not a valid name for an ion of several atoms",
                         "choose another, such as SO4", value=name)
    charges = structure.known_charges
    net = round(float(charges.sum()))
    rest = float(charges.sum()) - net
    if not net or abs(rest) > ROUNDING:
        raise InputError(f"{where}: its charges add up to {charges.sum():+.4f} e, which is not the charge of an ion",
                         "give a file of the ion alone, with charges")
    apart = structure.positions[:, None] - structure.positions
    if len(structure) > 1 and np.sqrt((apart**2).sum(-1))[np.triu_indices(len(structure), 1)].min() < 0.1:
        raise InputError(f"{where}: two atoms have the same position", "give a file with coordinates")
    topology = structure.topology
    types = structure.atom_names if topology is None else np.where(
        topology.types == "", structure.atom_names, topology.types)
    mass = atom_masses(structure)
    atoms = tuple(
        IonNames(name, str(structure.atom_names[row]), str(types[row]), str(structure.elements[row]),
                 float(mass[row]), float(charges[row]) - rest / len(structure))
        for row in range(len(structure)))
    bonds = np.zeros((0, 2), np.int64) if topology is None else np.array(topology.bonds, np.int64)
    return IonTemplate(atoms, structure.positions - structure.positions.mean(0), bonds)


def rotate_templates(sites: ChosenSites, templates: Mapping[str, IonTemplate], candidates: CandidateSites, method: str,
                     factor: float,
            seed: int) -> list[Floats]:
    """Return the positions (A, 3), A, of the atoms of every placed ion, after rotating those of several atoms.

    Of :data:`TURNS` random rotations the one with the lowest energy with the solute and all other ions is chosen, where
    other ions count as charges at their centres; with ``random`` it is the first, and with ``monte-carlo`` one by
    Boltzmann factors.

    Parameters
    ----------
    sites : Sites
    templates : mapping
        Templates by the names of species.
    candidates : Candidates
    method : str
        Method by which the sites were chosen.
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
            ion_potential = np.zeros(len(points))
            with quiet_sums():
                candidates.pair.add(points, sites.positions[row], float(ion.charge), ion_potential)
            potential += np.where(owner == row, 0.0, ion_potential)
        for number, row in enumerate(several):
            charges = templates[sites.species[row].name].charges
            energy = potential[owner == row].reshape(TURNS, -1) @ charges
            if method == "monte-carlo":
                weight = np.exp(-factor * (energy - energy.min()))
                chosen[number] = int(random.choice(TURNS, p=weight / weight.sum()))
            else:
                chosen[number] = int(energy.argmin())
    for row, trial, rotation in zip(several, trials, chosen, strict=True):
        atoms[row] = trial[rotation]
    return atoms


def overlapping_waters(oxygens: Floats, ions: Sequence[tuple[IonTemplate, Floats]], cell: Cell | None) -> Integers:
    """Return the indices of the waters whose oxygens (W, 3) overlap with ions, given by template and positions."""
    if not ions:
        return np.zeros(0, np.int64)
    light = np.concatenate([[atom.element == "H" for atom in template.names] for template, _ in ions])
    atoms = np.concatenate([positions for _, positions in ions])
    near = (nearest_distances(oxygens, atoms[~light], cell, CLEAR_DISTANCE) < CLEAR_DISTANCE) | (
        nearest_distances(oxygens, atoms[light], cell, CLEAR_HYDROGEN_DISTANCE) < CLEAR_HYDROGEN_DISTANCE)
    return np.flatnonzero(near).astype(np.int64)
