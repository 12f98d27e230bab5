"""Charges of the particles of an OpenMM System (.xml, written by ``XmlSerializer``).

OpenMM is not needed for this. The file contains no names; only masses, charges and the kinds of forces are read.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from vmdpotential.errors import InputError, UsageError
from vmdpotential.io.files.numbers import parse_real
from vmdpotential.io.files.text import first_bytes, format_suffix, read_bytes, reading_file
from vmdpotential.molecule.elements import atom_masses
from vmdpotential.molecule.structure import LARGEST_CHARGE, Structure

#: Forces whose charges are not one number for each atom.
_OTHER_CHARGES = ("DrudeForce", "AmoebaMultipoleForce")

#: Largest difference between masses of a residue, u. Masses of residues are compared, not of atoms, because hydrogen
#: mass repartitioning only moves mass between bonded atoms.
_MASS = 0.6


@dataclass
class System:
    """Masses, charges and kinds of forces of a System.

    Parameters
    ----------
    masses : list of float
        Masses of the particles, u.
    charges : list of float
        Charges of the particles, e.
    forces : list of str
        Kinds of the forces.
    sites : int
        Number of virtual sites, whose positions follow from those of other particles.
    offsets : int
        Number of charges that depend on a global parameter.
    """

    masses: list[float] = field(default_factory=list)
    charges: list[float] = field(default_factory=list)
    forces: list[str] = field(default_factory=list)
    sites: int = 0
    offsets: int = 0


def is_system(path: Path) -> bool:
    """Return whether a path is a regular file that contains a System, by its suffix and its first bytes."""
    if format_suffix(path) != ".xml" or not path.is_file():
        return False
    with reading_file(path):
        return b"<System" in first_bytes(path, 4096)


def with_charges(structure: Structure, path: Path) -> Structure:
    """Return a structure with the charges of a System, whose particles are its atoms in the same order.

    Raises
    ------
    InputError
        When the file cannot be read, does not have one charge for each atom, or has other atoms.
    UsageError
        When the structure already has charges.
    """
    if structure.charges is not None:
        raise UsageError("charges", "the atoms already have charges, from their topology or a viewer", "leave it out",
                         value=str(path))
    with reading_file(path):
        system = _read(path)
        charges = np.array(system.charges)
        _check(system, path)
        whole = structure if structure.whole is None else structure.whole
        rows = slice(None) if structure.whole_rows is None else structure.whole_rows
        where = Path(structure.sources[0]).name if structure.sources else "the structure"
        if len(charges) != len(whole):
            without = len(charges) - system.sites == len(whole)
            raise InputError(
                f"{path}: is a System of {len(charges)} particles"
                f"{f', {system.sites} of them virtual sites' if system.sites else ''}, and {where} has {len(whole)} "
                f"atoms{' without these sites' if without else ''}",
                "give the structure from which it was made, as OpenMM writes it, with all particles")
        _compare(whole, np.array(system.masses), path, where)
    sites = f", {system.sites} virtual sites" if system.sites else ""
    return replace(structure, charges=charges[rows], charge_source=f"OpenMM System {path.name}{sites}")


def _read(path: Path) -> System:
    system = System()
    within: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        parent = within[-1] if within else ""
        if name == "Particle" and parent == "Particles":
            if len(within) == 2:  # System, Particles
                system.masses.append(parse_real(attributes["mass"]))
            elif system.forces and system.forces[-1] == "NonbondedForce":
                system.charges.append(parse_real(attributes["q"]))
        elif name == "Force" and parent == "Forces":
            system.forces.append(attributes.get("type", ""))
        elif len(within) == 3 and parent == "Particle":  # a virtual site is an element within a particle
            system.sites += 1
        elif parent == "ParticleOffsets" and parse_real(attributes.get("q", "0")):
            system.offsets += 1
        within.append(name)

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: within.pop()
    try:
        parser.Parse(read_bytes(path, 5), True)
    except expat.ExpatError as error:
        raise InputError(f"{path}: is not XML ({error})", "write it again with OpenMM's XmlSerializer") from None
    except KeyError as error:
        raise InputError(f"{path}: line {parser.CurrentLineNumber}: a particle without its {error.args[0]}",
                         "write it again with OpenMM's XmlSerializer") from None
    return system


def _check(system: System, path: Path) -> None:
    """Raise InputError unless there is one fixed charge for each particle."""
    other = next((kind for kind in _OTHER_CHARGES if kind in system.forces), "")
    if other:
        raise InputError(f"{path}: has a {other}, so its charges are not fixed charges of atoms",
                         "give charges of a force field without polarisation")
    count = system.forces.count("NonbondedForce")
    if count != 1 or len(system.charges) != len(system.masses):
        raise InputError(f"{path}: has {count} NonbondedForces, and charges of {len(system.charges)} of its "
                         f"{len(system.masses)} particles", "give a System with one that has them all")
    if system.offsets:
        raise InputError(f"{path}: {system.offsets} of its charges change with a parameter (particle offsets)",
                         "write the System with fixed charges, without offsets")
    good = np.abs(system.charges) < LARGEST_CHARGE  # False for NaN
    if not good.all():
        raise InputError(f"{path}: the charge of particle {int(np.argmin(good))} is not a possible charge")


def _compare(structure: Structure, system: Any, path: Path, where: str) -> None:
    """Raise InputError when masses of residues differ, because the atoms are others or in another order."""
    own = atom_masses(structure)
    starts = structure.residue_starts[:-1]
    if not len(starts):
        return
    sums = np.add.reduceat(own, starts), np.add.reduceat(system, starts)
    # compare only residues with the same massless atoms: virtual sites and fixed atoms have no mass in a System
    known = np.minimum.reduceat(((own > 0) == (system > 0)).astype(np.int8), starts) > 0
    wrong = np.flatnonzero(known & (abs(sums[0] - sums[1]) > _MASS))
    if len(wrong):
        atom = int(starts[wrong[0]])
        raise InputError(
            f"{path}: its particles from {atom + 1} on weigh {sums[1][wrong[0]]:.1f} u, and the residue "
            f"{structure.label(atom)} of {where} {sums[0][wrong[0]]:.1f} u: other atoms, or another order",
            "give the structure from which it was made, as OpenMM writes it")
