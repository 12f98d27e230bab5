"""Conversion of structures from and to objects of MDAnalysis, biotite, ParmEd, OpenMM and gemmi.

Names, numbers, elements, coordinates and the cell are converted, and bonds and partial charges if the object has them.
Formal charges (biotite, gemmi) are no partial charges and are left out. Only missing elements are guessed, by the same
rules as for files without elements.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential import extras
from vmdpotential.errors import InputError, UsageError
from vmdpotential.molecule import elements, residues
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Floats, Integers, Names, Structure, Topology

#: One nanometre, A.
NANOMETRE = 10.0


def from_mdanalysis(atoms: Any) -> Structure:
    """Return the atoms of an AtomGroup or Universe of MDAnalysis, at their present positions.

    Parameters
    ----------
    atoms : MDAnalysis.AtomGroup or MDAnalysis.Universe
    """
    atoms = atoms.atoms

    def attribute(name: str, default: Any = None) -> Any:
        try:
            return np.array(getattr(atoms, name))
        except AttributeError:  # MDAnalysis' NoDataError is a subclass
            return default

    if attribute("positions") is None:
        raise InputError("the AtomGroup has no positions", "open its Universe with coordinates")
    numbers = np.full(len(atoms.universe.atoms), -1)
    numbers[atoms.indices] = np.arange(len(atoms))
    try:
        bonds = numbers[np.array(atoms.bonds.indices, np.int64).reshape(-1, 2)]
        bonds = bonds[(bonds >= 0).all(1)]
    except AttributeError:
        bonds = None
    box, records = atoms.dimensions, attribute("record_types")
    return _structure(
        attribute("positions"), attribute("names"), attribute("resnames"), attribute("resids"),
        np.array(atoms.resindices), "MDAnalysis", bonds, attribute("masses"), attribute("types"),
        cell=None if box is None or not np.any(box[:3]) else Cell.from_parameters(*map(float, box)),
        chain_ids=attribute("chainIDs"), segment_ids=attribute("segids"), insertion_codes=attribute("icodes"),
        elements=attribute("elements"), charges=attribute("charges"), occupancies=attribute("occupancies"),
        b_factors=attribute("tempfactors"), radii=attribute("radii"), title=str(atoms.universe.filename or ""),
        hetero=None if records is None else records == "HETATM")


def to_mdanalysis(structure: Structure) -> Any:
    """Return a Universe of MDAnalysis with the atoms of a structure, rotated if its cell is not in standard frame."""
    package = extras.load_optional("MDAnalysis", "objects of MDAnalysis", "traj")
    return universe_of(package, structure)


def from_biotite(atoms: Any) -> Structure:
    """Return the atoms of an AtomArray of biotite, with charges if it has the annotation ``partial_charge``.

    Parameters
    ----------
    atoms : biotite.structure.AtomArray
    """
    if atoms.coord.ndim != 2:
        raise UsageError("structure", "is a stack of models", "give one of them, such as stack[0]")

    def annotation(name: str) -> Any:
        return atoms.get_annotation(name) if name in atoms.get_annotation_categories() else None

    changed = np.zeros(atoms.array_length(), bool)
    for name in ("chain_id", "res_id", "ins_code", "res_name"):
        values = atoms.get_annotation(name)
        changed[1:] |= values[1:] != values[:-1]
    return _structure(
        atoms.coord, atoms.atom_name, atoms.res_name, atoms.res_id, np.cumsum(changed), "biotite",
        None if atoms.bonds is None else atoms.bonds.as_array()[:, :2].astype(np.int64),
        cell=None if atoms.box is None else Cell(atoms.box), chain_ids=atoms.chain_id,
        insertion_codes=atoms.ins_code, elements=np.char.capitalize(atoms.element.astype(np.str_)), hetero=atoms.hetero,
        charges=annotation("partial_charge"), occupancies=annotation("occupancy"), b_factors=annotation("b_factor"))


def to_biotite(structure: Structure) -> Any:
    """Return an AtomArray of biotite with the atoms of a structure, and its charges as ``partial_charge``."""
    package = extras.load_optional("biotite.structure", "objects of biotite", "prepare")
    atoms = package.AtomArray(len(structure))
    atoms.coord = structure.positions.astype(np.float32)
    atoms.chain_id = np.where(structure.chain_ids == "", structure.segment_ids, structure.chain_ids)
    atoms.res_id, atoms.res_name = structure.residue_ids, structure.residue_names
    atoms.ins_code, atoms.hetero = structure.insertion_codes, structure.hetero
    atoms.atom_name, atoms.element = structure.atom_names, np.char.upper(elements.fill_elements(structure).elements)
    atoms.set_annotation("occupancy", structure.occupancies)
    atoms.set_annotation("b_factor", structure.b_factors)
    if structure.charges is not None:
        atoms.set_annotation("partial_charge", structure.charges)
    if structure.cell is not None:
        atoms.box = structure.cell.vectors.astype(np.float32)
    if structure.topology is not None:
        atoms.bonds = package.BondList(len(structure), structure.topology.bonds)
    return atoms


def from_parmed(structure: Any) -> Structure:
    """Return the atoms of a Structure of ParmEd.

    Parameters
    ----------
    structure : parmed.Structure
    """
    atoms = list(structure.atoms)
    residue_rows = {id(residue): n for n, residue in enumerate(structure.residues)}
    if structure.coordinates is None:
        raise InputError("the ParmEd structure has no coordinates", "load it with them")
    charges = np.array([atom.charge for atom in atoms], float)
    box = structure.box
    return _structure(
        structure.coordinates, [atom.name for atom in atoms], [atom.residue.name for atom in atoms],
        [atom.residue.number for atom in atoms], [residue_rows[id(atom.residue)] for atom in atoms], "ParmEd",
        [(bond.atom1.idx, bond.atom2.idx) for bond in structure.bonds], [atom.mass for atom in atoms],
        [str(atom.type) for atom in atoms],
        cell=None if box is None or not np.any(np.asarray(box)[:3]) else Cell.from_parameters(*map(float, box)),
        chain_ids=[atom.residue.chain for atom in atoms], segment_ids=[atom.residue.segid for atom in atoms],
        insertion_codes=[atom.residue.insertion_code for atom in atoms],
        elements=_symbols([atom.atomic_number for atom in atoms]), charges=charges if charges.any() else None,
        title=str(structure.title or ""))


def to_parmed(structure: Structure) -> Any:
    """Return a Structure of ParmEd with the atoms, bonds and charges of a structure, without parameters."""
    package = extras.load_optional("parmed", "objects of ParmEd", "forcefields")
    made = package.Structure()
    symbols, masses = elements.fill_elements(structure).elements.tolist(), elements.atom_masses(structure).tolist()
    charges = np.zeros(len(structure)) if structure.charges is None else structure.charges
    topology, starts = structure.topology, set(structure.residue_starts.tolist())
    for n in range(len(structure)):
        kind = "" if topology is None else str(topology.types[n])
        atom = package.Atom(name=str(structure.atom_names[n]), atomic_number=_number(symbols[n]),
                            charge=float(charges[n]), mass=masses[n], type=kind)
        if n in starts:
            residue = package.Residue(str(structure.residue_names[n]), int(structure.residue_ids[n]),
                                      str(structure.chain_ids[n]), str(structure.insertion_codes[n]),
                                      str(structure.segment_ids[n]))
            made.residues.append(residue)
        residue.add_atom(atom)
        made.atoms.append(atom)
    for a, b in [] if topology is None else topology.bonds.tolist():
        made.bonds.append(package.Bond(made.atoms[a], made.atoms[b]))
    made.coordinates, made.box = _in_standard_frame(structure)
    return made


def from_openmm(topology: Any, positions: Any, system: Any = None) -> Structure:
    """Return the atoms of a Topology of OpenMM, with charges if a System with a NonbondedForce is given.

    Parameters
    ----------
    topology : openmm.app.Topology
    positions : (N, 3) Quantity, or numbers in nm
    system : openmm.System, optional
    """
    unit = extras.load_optional("openmm.unit", "objects of OpenMM", "forcefields")
    if positions is None:
        raise InputError("the Topology of OpenMM has no positions", "give them, such as those of its PDBFile")

    def numbers(values: Any, name: str) -> Any:
        return values.value_in_unit(getattr(unit, name)) if unit.is_quantity(values) else values

    atoms, charges = list(topology.atoms()), None
    forces = [] if system is None else [each for each in system.getForces() if type(each).__name__ == "NonbondedForce"]
    if forces:
        charges = [numbers(forces[0].getParticleParameters(n)[0], "elementary_charge") for n in range(len(atoms))]
    vectors, ids = topology.getPeriodicBoxVectors(), [atom.residue.id for atom in atoms]
    return _structure(
        NANOMETRE * np.array(numbers(positions, "nanometer"), float), [atom.name for atom in atoms],
        [atom.residue.name for atom in atoms],
        ids if all(text.lstrip("-").isdigit() for text in ids) else [atom.residue.index + 1 for atom in atoms],
        [atom.residue.index for atom in atoms], "OpenMM", [(a.index, b.index) for a, b in topology.bonds()],
        cell=None if vectors is None else Cell(NANOMETRE * np.array(numbers(vectors, "nanometer"), float)),
        chain_ids=[atom.residue.chain.id for atom in atoms],
        insertion_codes=[atom.residue.insertionCode.strip() for atom in atoms],
        elements=["" if atom.element is None else atom.element.symbol for atom in atoms], charges=charges)


def to_openmm(structure: Structure) -> tuple[Any, Any]:
    """Return a Topology of OpenMM with the atoms of a structure, and their positions as a Quantity."""
    app = extras.load_optional("openmm.app", "objects of OpenMM", "forcefields")
    unit = extras.load_optional("openmm.unit", "objects of OpenMM", "forcefields")
    topology, symbols, atoms = app.Topology(), elements.fill_elements(structure).elements.tolist(), []
    starts, chain, residue = set(structure.residue_starts.tolist()), None, None
    names = np.where(structure.chain_ids == "", structure.segment_ids, structure.chain_ids).tolist()
    for n in range(len(structure)):
        if chain is None or names[n] != names[n - 1]:
            chain = topology.addChain(names[n])
        if n in starts:
            residue = topology.addResidue(str(structure.residue_names[n]), chain, str(structure.residue_ids[n]),
                                          str(structure.insertion_codes[n]))
        element = app.Element.getBySymbol(symbols[n]) if symbols[n] else None
        atoms.append(topology.addAtom(str(structure.atom_names[n]), element, residue))
    for a, b in _known_bonds(structure).tolist():
        topology.addBond(atoms[a], atoms[b])
    if structure.cell is not None:
        topology.setPeriodicBoxVectors(structure.cell.standard / NANOMETRE * unit.nanometer)
    return topology, _in_standard_frame(structure)[0] / NANOMETRE * unit.nanometer


def _known_bonds(structure: Structure) -> Integers:
    """Return the bonds (B, 2) of a structure's topology, or those that its file lists."""
    if structure.topology is not None:
        return structure.topology.bonds
    if structure.listed_bonds is not None:
        return np.unique(structure.listed_bonds.pairs, axis=0)
    return np.zeros((0, 2), np.int64)


def from_gemmi(structure: Any) -> Structure:
    """Return the atoms of the first model of a Structure of gemmi; one alternate location of each residue is kept.

    Parameters
    ----------
    structure : gemmi.Structure
    """
    rows = [(chain.name, residue, atom) for chain in structure[0] for residue in chain for atom in residue]
    chains = np.array([chain for chain, _, _ in rows], np.str_)
    within, group = [residue for _, residue, _ in rows], [atom for _, _, atom in rows]
    numbers = np.array([residue.seqid.num for residue in within])
    codes = np.array([residue.seqid.icode.strip() for residue in within], np.str_)
    names, residue_names = [atom.name for atom in group], np.array([residue.name for residue in within], np.str_)
    occupancies = np.array([atom.occ for atom in group])
    changed = np.ones(len(rows), bool)
    changed[1:] = (chains[1:] != chains[:-1]) | (numbers[1:] != numbers[:-1]) | (codes[1:] != codes[:-1])
    locations = np.array([atom.altloc.strip("\0 ") for atom in group], np.str_)
    kept = residues.alternates(locations, np.array(names, np.str_), occupancies, changed)
    index = np.zeros(len(rows), np.int64)
    index[kept] = np.cumsum(residues.boundaries(changed, residue_names, kept))
    index = np.maximum.accumulate(index)  # atoms that are left out do not separate others
    cell = structure.cell if structure.cell.is_crystal() else None
    group_name = structure.spacegroup_hm or "P 1"
    made = _structure(
        np.array([atom.pos.tolist() for atom in group]).reshape(-1, 3), names, residue_names, numbers,
        index, "gemmi", None,
        cell=None if cell is None else Cell.from_parameters(*cell.parameters, space_group=group_name), chain_ids=chains,
        segment_ids=[residue.subchain or residue.segment for residue in within], insertion_codes=codes,
        elements=["" if atom.element.name == "X" else atom.element.name for atom in group], occupancies=occupancies,
        b_factors=[atom.b_iso for atom in group], hetero=[residue.het_flag == "H" for residue in within],
        title=structure.name)
    return made if kept.all() else made.take(kept)


def to_gemmi(structure: Structure) -> Any:
    """Return a Structure of gemmi with the atoms of a structure."""
    import gemmi

    made, model, (positions, _) = gemmi.Structure(), gemmi.Model(1), _in_standard_frame(structure)
    made.name = structure.title
    if structure.cell is not None:
        made.cell = gemmi.UnitCell(*structure.cell.parameters)
        made.spacegroup_hm = structure.cell.space_group or "P 1"
    symbols = elements.fill_elements(structure).elements.tolist()
    chains = np.where(structure.chain_ids == "", structure.segment_ids, structure.chain_ids).tolist()
    chain = gemmi.Chain(chains[0] if chains else "")
    for n, (first, last) in enumerate(zip(structure.residue_starts[:-1], structure.residue_starts[1:], strict=True)):
        if n and chains[first] != chain.name:
            model.add_chain(chain)
            chain = gemmi.Chain(chains[first])
        residue = gemmi.Residue()
        residue.name = str(structure.residue_names[first])
        residue.seqid = gemmi.SeqId(int(structure.residue_ids[first]), str(structure.insertion_codes[first]) or " ")
        residue.het_flag = "H" if structure.hetero[first] else "A"
        for row in range(first, last):
            atom = gemmi.Atom()
            atom.name, atom.element = str(structure.atom_names[row]), gemmi.Element(symbols[row] or "X")
            atom.pos = gemmi.Position(*positions[row].tolist())
            atom.occ, atom.b_iso = float(structure.occupancies[row]), float(structure.b_factors[row])
            residue.add_atom(atom)
        chain.add_residue(residue)
    model.add_chain(chain)
    made.add_model(model)
    return made


_TEXTS = ("chain_ids", "segment_ids", "elements", "insertion_codes")

#: Type of structures that functions accept: a Structure, a file, or a convertible object (see :func:`as_structure`).
StructureLike = Structure | str | Path | object

#: Converter and a required attribute of objects, by the package of their class.
_CONVERTERS = {"MDAnalysis": (from_mdanalysis, "atoms"), "biotite": (from_biotite, "coord"),
               "parmed": (from_parmed, "residues"), "gemmi": (from_gemmi, "spacegroup_hm")}

#: Package that reads files; it is above this one, and named by its path, as in the registry.
_FILES = "vmdpotential.io"


def as_structure(item: StructureLike) -> Structure:
    """Return a Structure as it is or that of a result, read a file, or convert an object of MDAnalysis, biotite ...

    Raises
    ------
    InputError
        For a file that cannot be read.
    UsageError
        For other objects.
    """
    if isinstance(item, Structure):
        return item
    if isinstance(item, (str, Path)):
        read: Structure = import_module(_FILES).read_structure(item)
        return read
    if isinstance(held := getattr(item, "structure", None), Structure):  # a completed structure, placed ions ...
        return held
    package = type(item).__module__.partition(".")[0]
    if package in _CONVERTERS and hasattr(item, _CONVERTERS[package][1]):
        return _CONVERTERS[package][0](item)
    if package == "openmm" and hasattr(item, "topology") and hasattr(item, "positions"):  # PDBFile, Modeller ...
        return from_openmm(item.topology, item.positions)
    raise UsageError("structure", "is no file, no Structure, and no object of MDAnalysis, biotite, ParmEd, OpenMM or "
                     "gemmi", value=type(item).__name__)


def _structure(positions: ArrayLike, names: ArrayLike, residue_names: ArrayLike, numbers: ArrayLike | None,
               index: ArrayLike, source: str, bonds: ArrayLike | None, masses: ArrayLike | None = None,
               types: ArrayLike | None = None, **others: Any) -> Structure:
    """Return a structure whose residues begin where `index` changes, with guesses for missing elements."""
    changes = np.asarray(index, np.int64)
    count = len(changes)
    rows = np.concatenate([[0], np.cumsum(changes[1:] != changes[:-1])]) if count else changes
    others = {name: np.array(value, np.str_) if name in _TEXTS else value
              for name, value in others.items() if value is not None}
    blank = np.full(count, "")
    made = elements.fill_elements(Structure(
        np.asarray(positions, np.float64), _names(names, blank), _names(residue_names, blank),
        np.zeros(count, np.int64) if numbers is None else np.array(numbers, np.int64), rows, **others))
    if bonds is None:
        return made
    topology = Topology(
        source, _names(types, blank), elements.atom_masses(made) if masses is None else np.array(masses, np.float64),
        np.asarray(bonds, np.int64).reshape(-1, 2))
    return replace(made, topology=topology, charge_source=f"{source} object" if made.charges is not None else "")


def _names(values: ArrayLike | None, blank: Names) -> Names:
    return blank if values is None else np.array(values, np.str_)


def _symbols(numbers: list[int]) -> list[str]:
    import gemmi

    return [gemmi.Element(number).name if number > 0 else "" for number in numbers]


def _number(symbol: str) -> int:
    import gemmi

    return int(gemmi.Element(symbol).atomic_number) if symbol else 0


def universe_of(package: Any, structure: Structure) -> Any:
    """Return a Universe of MDAnalysis, the imported `package`, with the same atoms in the same order."""
    starts, count = structure.residue_starts[:-1], len(structure)
    names = structure.segment_ids if (structure.segment_ids != "").any() else structure.chain_ids
    segments, segment_of = np.unique(names[starts], return_inverse=True)
    universe = package.Universe.empty(
        count, len(starts), len(segments), trajectory=True, residue_segindex=segment_of.reshape(-1),
        atom_resindex=structure.residue_of)
    topology = structure.topology
    symbols = elements.fill_elements(structure).elements
    types = symbols if topology is None or not (topology.types != "").any() else topology.types
    values: dict[str, Any] = {
        "names": _objects(structure.atom_names), "elements": _objects(symbols), "types": _objects(types),
        "chainIDs": _objects(structure.chain_ids), "masses": elements.atom_masses(structure),
        "tempfactors": structure.b_factors, "occupancies": structure.occupancies,
        "record_types": _objects(np.where(structure.hetero, "HETATM", "ATOM")),
        "resnames": _objects(structure.residue_names[starts]), "resids": structure.residue_ids[starts],
        "resnums": structure.residue_ids[starts], "icodes": _objects(structure.insertion_codes[starts]),
        "segids": np.array([name or "SYSTEM" for name in segments.tolist()], object),
    }
    if structure.charges is not None:
        values["charges"] = structure.charges
    for name, value in values.items():
        universe.add_TopologyAttr(name, value)
    if topology is not None and len(topology.bonds):
        universe.add_TopologyAttr("bonds", topology.bonds)
    universe.atoms.positions, universe.dimensions = _in_standard_frame(structure)
    return universe


def _objects(names: Names) -> NDArray[Any]:
    """Return names as an array of Python strings, as MDAnalysis stores them; equal names share one string."""
    different, inverse = np.unique(names, return_inverse=True)
    result: NDArray[Any] = different.astype(object)[inverse.reshape(-1)]
    return result


def _in_standard_frame(structure: Structure) -> tuple[Floats, Any]:
    """Return positions (N, 3), A, rotated with the cell into its standard orientation, and lengths and angles."""
    cell = structure.cell
    if cell is None or not cell.whole:
        return structure.positions, None
    if not cell.rotated:
        return structure.positions, cell.parameters
    return structure.positions @ np.linalg.inv(cell.vectors) @ cell.standard, cell.parameters
