"""OpenMM force fields (.xml), applied by OpenMM (extra ``forcefields``) to atoms with names, and residues or bonds."""

from __future__ import annotations

import hashlib
import io
import pickle
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from vmdpotential import cache, memory, units
from vmdpotential.arrays import Floats, Integers
from vmdpotential.errors import InputError, listed_words, shorten_text
from vmdpotential.extras import load_optional
from vmdpotential.io.files.text import reading_file
from vmdpotential.molecule import elements
from vmdpotential.molecule import nonbonded as molecule_nonbonded
from vmdpotential.molecule.nonbonded import Nonbonded, lennard_jones, lorentz_berthelot, positions_of, unique_pairs
from vmdpotential.molecule.structure import Structure

from . import openmm_files
from .openmm_system import is_system

#: kJ/mol in kcal/mol; kJ/mol nm^6 and nm^12 in kcal/mol A^6 and A^12.
_ENERGY = 1 / units.CALORIE
_C6, _C12 = 1e6 * _ENERGY, 1e12 * _ENERGY

#: Forces that have no nonbonded pairs: bonded forces, thermostats, barostats and the like.
_NOT_PAIRS = {
    "HarmonicBondForce", "HarmonicAngleForce", "PeriodicTorsionForce", "RBTorsionForce", "CMAPTorsionForce",
    "CustomAngleForce", "CustomTorsionForce", "CustomExternalForce", "CMMotionRemover", "AndersenThermostat",
    "MonteCarloBarostat", "MonteCarloAnisotropicBarostat", "MonteCarloMembraneBarostat", "MonteCarloFlexibleBarostat",
}
#: Energy functions of the forces that ``<LennardJonesForce>`` makes (types with special pairs, NBFIX; 1-4 pairs).
_TABLE = "acoef(type1, type2)/r^12 - bcoef(type1, type2)/r^6;"
_BONDS14 = re.compile(r"([0-9.e+-]+)\*epsilon\*\(\(sigma/r\)\^12-\(sigma/r\)\^6\)")

#: Classes of the objects that a System may consist of.
_CLASSES = {
    "System", "NonbondedForce", "CustomNonbondedForce", "CustomBondForce", *_NOT_PAIRS,
    *(f"{kind}{n}DFunction" for kind in ("Continuous", "Discrete") for n in (1, 2, 3)),
}

#: Bytes that OpenMM needs for each atom to create a system: 1,400 to 1,600 for water, more for larger molecules.
_BYTES = 2500

#: Longest bond, A, from one residue of a chain to the next.
_LONGEST = 2.5


def nonbonded(structure: Structure, files: Sequence[Path], scripts: bool = False) -> Nonbonded:
    """Return the nonbonded parameters of atoms by an OpenMM force field.

    Parameters
    ----------
    structure : Structure
        With bonds, or with residues and atoms of standard names.
    files : sequence of Path
        Force-field files, also by the names of those installed with OpenMM, such as ``amber14-all.xml``; or a System
        (written by ``XmlSerializer``).
    scripts : bool
        Whether Python code in a force field may run.

    Raises
    ------
    InputError
        When a file cannot be read or contains code, residues have no template (the message lists them), or the force
        field has other nonbonded terms than charges and Lennard-Jones.
    MemoryPlanError
        When OpenMM's system of these atoms does not fit into memory.
    BackendError
        When OpenMM is not installed.
    """
    load_optional("openmm", f"{files[0]}: OpenMM's force fields", "forcefields")
    from openmm import XmlSerializer, app

    names = ", ".join(str(path) if len(path.parts) < 3 else path.name for path in files)
    system = next((path for path in files if is_system(path)), None)
    if system is not None:
        if len(files) > 1:
            raise InputError(f"{system}: is a whole System and cannot be combined with other files", "give it alone")
        with reading_file(system):
            text = openmm_files.system(system, _CLASSES)
            return _of_system(XmlSerializer.deserialize(text), f"OpenMM System {names}")
    memory.require(_BYTES * len(structure), f"OpenMM's system of {len(structure)} atoms",
                   "take fewer atoms, or parameters of another kind: a prmtop, a TPR, or a PSF with CHARMM's files")
    force_field = app.ForceField()
    parts = openmm_files.force_field(files, scripts)
    entry = _entry(structure, parts, names)
    if not scripts and (kept := cache.read(entry, "parameters")):
        return cast(Nonbonded, pickle.loads(kept))
    with reading_file(files[0]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _load(force_field, parts)
    with reading_file(Path(", ".join(map(str, files)))), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        topology = _topology(elements.fill_elements(structure))
        try:
            system = force_field.createSystem(topology, rigidWater=False, removeCMMotion=False)
        except ValueError:
            unmatched = Counter(residue.name for residue in force_field.getUnmatchedResidues(topology))
            if not unmatched:
                raise
            text = listed_words([f"{name} ({number})" for name, number in unmatched.most_common()], 120)
            raise InputError(f"no template matches the residues {text}",
                             "add their hydrogens, or give force fields that have them") from None
        except KeyError as error:
            raise InputError(
                f"has no Lennard-Jones for the type {error.args[0]}", "give the file that has it") from None
        result = _of_system(system, f"OpenMM {names}")
    cache.write(entry, pickle.dumps(result), "parameters")
    return result


def _entry(structure: Structure, parts: Sequence[openmm_files.ForceFieldFile], names: str) -> str:
    """Return the name in the cache of what the force field gives these atoms, which takes OpenMM seconds to find."""
    from openmm import version

    bonds = structure.topology and structure.topology.bonds.tobytes()
    cell = structure.cell and structure.cell.vectors.tobytes()
    atoms = [getattr(structure, name).tobytes() for name in (
        "positions", "atom_names", "residue_names", "chain_ids", "segment_ids", "residue_ids", "elements",
        "residue_starts")]
    programs = [Path(file).read_bytes() for file in (__file__, molecule_nonbonded.__file__)]
    key = [version.version, names, [part.text for part in parts], atoms, bonds, cell, programs]
    return hashlib.sha256(pickle.dumps(key)).hexdigest()


def _load(force_field: Any, parts: Sequence[openmm_files.ForceFieldFile]) -> None:
    try:
        force_field.loadFile(tuple(io.StringIO(part.text) for part in parts))
    except Exception as error:  # OpenMM's parser raises any exception
        reason = str(error).rpartition('": ')[2].split("\n")[0]
        names = ", ".join(str(part.path) for part in parts)
        raise InputError(f"{names}: is not a force field of OpenMM ({shorten_text(reason, 100)})",
                         "write it again") from None


def _topology(structure: Structure) -> Any:
    """Return a structure as an OpenMM topology, with OpenMM's names of residues and atoms."""
    from openmm import Vec3, app, unit

    app.PDBFile._loadNameReplacementTables()
    result = app.Topology()
    starts = structure.residue_starts
    ends = _chain_ends(structure)
    chain = None
    symbols = {symbol: _element(symbol) for symbol in np.unique(structure.elements).tolist()}
    for r, (start, stop) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
        if chain is None or ends[r]:
            chain = result.addChain(str(structure.chain_ids[start]))
        name = str(structure.residue_names[start])
        name = app.PDBFile._residueNameReplacements.get(name, name)
        others = app.PDBFile._atomNameReplacements.get(name, {})
        residue = result.addResidue(name, chain, str(structure.residue_ids[start]))
        for atom, symbol in zip(structure.atom_names[start:stop].tolist(), structure.elements[start:stop].tolist(),
                                strict=True):
            result.addAtom(others.get(atom, atom), symbols[symbol], residue)
    if structure.topology is not None and len(structure.topology.bonds):
        hydrogen = structure.elements == "H"
        bonds = structure.topology.bonds
        atoms = list(result.atoms())
        # rigid water may have bonds between hydrogens, which OpenMM's templates do not have
        for i, j in unique_pairs(bonds[~hydrogen[bonds].all(1)], len(structure)).tolist():
            result.addBond(atoms[i], atoms[j])
    else:
        result.createStandardBonds()
        result.createDisulfideBonds([Vec3(*place) / 10 for place in structure.positions.tolist()] * unit.nanometer)
    return result


def _element(symbol: str) -> Any:
    """Return OpenMM's element, or None for an unknown symbol, such as that of a site without mass."""
    from openmm.app.element import Element

    try:
        return Element.getBySymbol(symbol)
    except KeyError:
        return None


def _chain_ends(structure: Structure) -> Any:
    """Return a mask of the residues that begin a chain: it has another name, or the bond to it would be too long."""
    starts = structure.residue_starts
    first = starts[:-1]
    ends = np.zeros(len(first), bool)
    for names in (structure.chain_ids, structure.segment_ids):
        ends[1:] |= names[first[1:]] != names[first[:-1]]
    for tail, head in (("C", "N"), ("O3'", "P")):
        linking = np.full((2, len(first) + 1), -1)  # atoms of each residue that bind to the next, and the one before
        for row, name in enumerate((tail, head)):
            atoms = np.flatnonzero(structure.atom_names == name)
            linking[row, structure.residue_index[atoms]] = atoms
        i, j = linking[0, :-2], linking[1, 1:-1]
        gap = structure.positions[i] - structure.positions[j]
        if structure.cell is not None:
            gap = structure.cell.minimum_image(gap)
        ends[1:] |= (i >= 0) & (j >= 0) & ((gap * gap).sum(1) > _LONGEST**2)
    return ends


def _of_system(system: Any, source: str) -> Nonbonded:
    forces: dict[str, Any] = {}
    for force in system.getForces():
        kind = type(force).__name__
        known = kind in ("NonbondedForce", "CustomNonbondedForce", "CustomBondForce") and kind not in forces
        if known and kind == "CustomNonbondedForce":
            known = force.getEnergyFunction() == _TABLE
        if known and kind == "CustomBondForce":
            known = _BONDS14.fullmatch(force.getEnergyFunction()) is not None
        if not known and kind not in _NOT_PAIRS:
            raise InputError(f"defines a {kind}, which is not a Coulomb or Lennard-Jones energy of pairs",
                             "leave out the file that adds it, or compute it with OpenMM")
        forces[kind] = force
    if "NonbondedForce" not in forces:
        raise InputError("has no charges and Lennard-Jones parameters", "give the files that have them")
    plain = forces["NonbondedForce"]
    if plain.getNumParticleParameterOffsets() or plain.getNumExceptionParameterOffsets():
        raise InputError("has charges or Lennard-Jones parameters that change with a global parameter (offsets)",
                         "compute it with OpenMM")
    charges, own = _particles(forces["NonbondedForce"])
    table = forces.get("CustomNonbondedForce")
    special = np.zeros(len(charges))
    if table is not None:
        special = np.array([table.getParticleParameters(i)[0] for i in range(len(charges))])
    rows, types = np.unique(np.column_stack([own, special]), axis=0, return_inverse=True)
    c6, c12 = lorentz_berthelot(rows[:, 0], rows[:, 1])
    if table is not None:
        kinds = rows[:, 2].astype(np.int64)
        for name, target, factor in (("acoef", c12, _C12), ("bcoef", c6, _C6)):
            functions = [table.getTabulatedFunctionName(k) for k in range(table.getNumTabulatedFunctions())]
            width, _, values = table.getTabulatedFunction(functions.index(name)).getFunctionParameters()
            target += np.array(values).reshape(-1, width)[np.ix_(kinds, kinds)] * factor
    names = []
    with np.errstate(all="ignore"):
        sigmas = (np.diagonal(c12) / np.diagonal(c6)) ** (1 / 6)
        epsilons = np.diagonal(c6) ** 2 / (4 * np.diagonal(c12))
    for sigma, epsilon in zip(np.nan_to_num(sigmas), np.nan_to_num(epsilons), strict=True):
        names.append(f"sigma {sigma:.5g} epsilon {epsilon:.5g}")
    exclusions, pairs14, c6_14, c12_14, products = _exceptions(forces, len(charges))
    return Nonbonded(
        source=source, names=tuple(names), types=types.reshape(-1).astype(np.int64), c6=c6, c12=c12,
        exclusions=exclusions, pairs14=pairs14, c6_14=c6_14, c12_14=c12_14,
        charges14=_factors(products, charges[pairs14].prod(1)),
    )


def _value(quantity: Any) -> float:
    """Return a quantity as a number in its own unit, which in forces is e, nm or kJ/mol."""
    return float(quantity.value_in_unit(quantity.unit))


def _particles(force: Any) -> tuple[Floats, Floats]:
    """Return charges (N,), e, and sigma, A, and epsilon, kcal/mol, (N, 2); sigma is 0 where epsilon is 0."""
    results = [force.getParticleParameters(i) for i in range(force.getNumParticles())]
    values = np.array([[_value(part) for part in parts] for parts in results]).reshape(-1, 3) * (1, 10, _ENERGY)
    values[values[:, 2] == 0, 1] = 0
    return values[:, 0], values[:, 1:]


def _exceptions(forces: dict[str, Any], count: int) -> tuple[Integers, Integers, Floats, Floats, Floats]:
    """Return exclusions, 1-4 pairs, and c6, c12 and the product of the charges (e^2) of the 1-4 pairs."""
    force = forces["NonbondedForce"]
    results = [force.getExceptionParameters(k) for k in range(force.getNumExceptions())]
    pairs = np.sort(np.array([entry[:2] for entry in results], np.int64).reshape(-1, 2), axis=1)
    values = np.array([[_value(part) for part in entry[2:]] for entry in results]).reshape(-1, 3) * (1, 10, _ENERGY)
    exclusions = unique_pairs(pairs, count)
    where = positions_of(pairs, exclusions, count)
    products, c6, c12 = (np.zeros(len(exclusions)) for _ in range(3))
    products[where] = values[:, 0]
    c6[where], c12[where] = lennard_jones(values[:, 1], values[:, 2])
    table, bonds = forces.get("CustomNonbondedForce"), forces.get("CustomBondForce")
    if table is not None and table.getNumExclusions() != len(exclusions):
        raise InputError("excludes other pairs from charges than from Lennard-Jones", "compute it with OpenMM")
    if bonds is not None:
        factor = float(_BONDS14.fullmatch(bonds.getEnergyFunction())[1]) / 4  # type: ignore[index]
        entries = [bonds.getBondParameters(k) for k in range(bonds.getNumBonds())]
        own = np.array([entry[2] for entry in entries]).reshape(-1, 2) * (10, factor * _ENERGY)
        rows = positions_of(np.sort([entry[:2] for entry in entries], axis=1).reshape(-1, 2), exclusions, count)
        for target, more in zip((c6, c12), lennard_jones(own[:, 0], own[:, 1]), strict=True):
            np.add.at(target, rows, more)
    is14 = (products != 0) | (c12 != 0)
    return exclusions, exclusions[is14], c6[is14], c12[is14], products[is14]


def _factors(products: Floats, plain: Floats) -> Floats:
    """Return the scale factors of products of charges; for a product of 0, the median of the other pairs."""
    known = plain != 0
    factors = np.divide(products, plain, out=np.ones_like(plain), where=known)
    if known.any():
        factors[~known] = np.median(factors[known])
    return factors


def ion_parameters(path: Path, ions: Structure, types: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return sigma, A, and epsilon, kcal/mol, of the types of some ions; raises the errors of :func:`nonbonded`."""
    table = nonbonded(ions, [path])
    return {kind: (float(table.sigma[row]), float(table.epsilon[row]))
            for kind, row in zip(types, table.types.tolist(), strict=True)}
