"""Rigid hydrogens of amino acids, those on CH, CH2 and planar NH, against other programs, with why places differ."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from vmdpotential.io import read_structure, write_structure
from vmdpotential.molecule.structure import Structure
from vmdpotential.plugins.preparation.components import AMINO_ACIDS

#: Chain, residue and atom.
Key = tuple[str, str, str]
Places = dict[Key, np.ndarray]
#: Further apart than this, A, two places differ.
FAR = 0.1
#: Torsion from which planes of a peptide count as different, degrees.
TWIST = 8.0


@dataclass(frozen=True)
class Compared:
    """A hydrogen: how far two places are apart (A), as they are and at the same length of the bond, and why."""

    label: str
    name: str
    plain: float
    alike: float
    reason: str


def protein(structure: Structure) -> Structure:
    """Return the standard amino acids of a structure, without hydrogens and cell."""
    standard = np.isin(structure.residue_names, list(AMINO_ACIDS))
    return replace(structure.take(standard & ~np.isin(structure.elements, ["H", "D"])), cell=None)


def keys(structure: Structure) -> list[Key]:
    """Return the key of every atom."""
    return [(str(chain), f"{number}{code}", str(name)) for chain, number, code, name in zip(
        structure.chain_ids, structure.residue_ids, structure.insertion_codes, structure.atom_names, strict=True)]


def of_pdb2pqr(structure: Structure) -> tuple[Structure | None, str]:
    """Return pdb2pqr's structure of a protein, or why it fails."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "in.pdb"), Path(folder, "out.pqr")
        write_structure(structure, source)
        done = subprocess.run(
            [sys.executable, "-m", "pdb2pqr", "--ff", "AMBER", "--keep-chain", "--titration-state-method", "propka",
             "--with-ph", "7.0", "--nodebump", source, result], capture_output=True, text=True)
        if not result.exists():
            return None, (done.stderr.strip().splitlines() or ["?"])[-1]
        return read_structure(result), ""


def of_modeller(made: Structure, charges: bool = True) -> tuple[Places, list[str | None]]:
    """Return places by OpenMM's Modeller and the states it chooses; it is given the heavy atoms as completed here."""
    import random

    from openmm import Platform, app, unit

    random.seed(1)  # it begins with places at random
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "in.pdb")
        write_structure(replace(made.take(made.elements != "H"), cell=None), source)
        file = app.PDBFile(str(source))
    text = (Path(app.__file__).parent / "data" / "amber14" / "protein.ff14SB.xml").read_text()
    if not charges:  # which in vacuum pull the hydrogens of amides by up to 15 degrees
        text = re.sub(r'charge="[^"]*"', 'charge="0"', text)
    modeller = app.Modeller(file.topology, file.positions)
    states = modeller.addHydrogens(app.ForceField(io.StringIO(text)), 7.0, platform=Platform.getPlatform("Reference"))
    positions = np.array(modeller.positions.value_in_unit(unit.angstrom))
    return _by_key(modeller.topology, positions), states


def by_bonded_terms(made: Structure) -> Places:
    """Return where the bonds, angles and torsions of Amber's ff14SB alone have the hydrogens; heavy atoms stay."""
    import openmm
    from openmm import app, unit

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "in.pdb")
        write_structure(replace(made, cell=None), source)
        file = app.PDBFile(str(source))
    system = app.ForceField("amber14/protein.ff14SB.xml").createSystem(file.topology)
    for n in reversed(range(system.getNumForces())):
        if isinstance(system.getForce(n), openmm.NonbondedForce | openmm.CMMotionRemover):
            system.removeForce(n)
    for atom in file.topology.atoms():
        if atom.element.symbol != "H":
            system.setParticleMass(atom.index, 0)
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(file.positions)
    openmm.LocalEnergyMinimizer.minimize(context, 0.01)
    positions = context.getState(positions=True).getPositions(asNumpy=True).value_in_unit(unit.angstrom)
    return _by_key(file.topology, positions)


def _by_key(topology: object, positions: np.ndarray) -> Places:
    return {(atom.residue.chain.id, atom.residue.id + atom.residue.insertionCode.strip(), atom.name): place
            for atom, place in zip(topology.atoms(), positions, strict=True)}


def compared(made: Structure, theirs: Places, minimum: Places) -> list[Compared]:
    """Compare the rigid hydrogens of a prepared protein with others' places.

    Parameters
    ----------
    made : Structure
    theirs : Places
        Of heavy atoms too.
    minimum : Places
        By :func:`by_bonded_terms`.
    """
    names = keys(made)
    heavy = np.flatnonzero(made.elements != "H")
    tree = cKDTree(made.positions[heavy])
    _, nearest = tree.query(made.positions)
    on: dict[int, list[int]] = {}
    for row in np.flatnonzero(made.elements == "H").tolist():
        on.setdefault(int(heavy[nearest[row]]), []).append(row)
    others: dict[tuple[str, str], list[np.ndarray]] = {}
    for key, place in theirs.items():
        if key[2].startswith("H"):
            others.setdefault(key[:2], []).append(place)
    result = []
    for holder, rows in on.items():
        centre = made.positions[holder]
        near = [int(heavy[k]) for k in tree.query_ball_point(centre, 1.95) if heavy[k] != holder]
        if len(near) < 2 or made.elements[holder] not in ("C", "N") or made.residue_names[holder] not in AMINO_ACIDS:
            continue
        there = theirs.get(names[holder])
        close = [place for place in others.get(names[holder][:2], []) if np.linalg.norm(place - centre) < 1.3]
        moved = there is None or any(np.linalg.norm(theirs[names[k]] - made.positions[k]) > 0.01
                                     for k in (holder, *near) if names[k] in theirs)
        for row in rows:
            name, label = names[row][2], made.label(holder)
            if moved or len(close) != len(rows):
                result.append(Compared(label, name, np.nan, np.nan, "built otherwise" if moved else "another state"))
                continue
            ours = made.positions[row] - centre
            place = min(close, key=lambda atom: np.linalg.norm(atom - made.positions[row])) - centre
            plain, alike = np.linalg.norm(place - ours), np.linalg.norm(_as_long(place, ours) - ours)
            reason = "" if alike < FAR else _reason(made, holder, near, _as_long(place, ours), ours,
                                                    _as_long(minimum[names[row]] - centre, ours), set(theirs), names)
            result.append(Compared(label, name, float(plain), float(alike), reason))
    return result


def _as_long(arm: np.ndarray, other: np.ndarray) -> np.ndarray:
    return arm * np.linalg.norm(other) / np.linalg.norm(arm)


def _reason(made: Structure, holder: int, near: list[int], theirs: np.ndarray, ours: np.ndarray, minimum: np.ndarray,
            known: set[Key], names: list[Key]) -> str:
    if made.elements[holder] == "N" and any(names[k] not in known for k in near):
        return "no residue before it there"
    far, farther = np.linalg.norm(ours - minimum), np.linalg.norm(theirs - minimum)
    if far < FAR:
        return ("farther than ours from where the bonds of Amber's ff14SB have it" if farther > far else
                "on the other side of where the bonds of Amber's ff14SB have it")
    return "a peptide that is not planar" if abs(twist(made, holder)) > TWIST else ""


def twist(made: Structure, nitrogen: int) -> float:
    """Return by how much the torsion of a peptide's bond differs from that of a planar one, degrees; 0 of others."""
    if made.atom_names[nitrogen] != "N":
        return 0.0
    here = made.positions[nitrogen]
    own = made.residue_index == made.residue_index[nitrogen]
    alpha = made.positions[own & (made.atom_names == "CA")]
    near = np.flatnonzero((made.atom_names == "C") & ~own & (np.linalg.norm(made.positions - here, axis=1) < 1.7))
    if not len(near) or not len(alpha):
        return 0.0
    before = made.residue_index == made.residue_index[near[0]]
    oxygen = made.positions[before & (made.atom_names == "O")]
    carbon = made.positions[near[0]]
    axis = (here - carbon) / np.linalg.norm(here - carbon)
    bond, chain = oxygen[0] - carbon, alpha[0] - here
    bond, chain = bond - bond @ axis * axis, chain - chain @ axis * axis
    angle = np.degrees(np.arctan2(np.cross(bond, chain) @ axis, bond @ chain))
    return float((angle + 90) % 180 - 90)
