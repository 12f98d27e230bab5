"""The classes Structure (the atoms of a file, in its order) and Topology (their bonded terms and types)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential.errors import InputError, UsageError, check_unmasked, listed_words
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.nonbonded import LazyNonbonded

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Names = NDArray[np.str_]


def _frozen(array: ArrayLike, dtype: Any, name: str) -> NDArray[Any]:
    try:
        result = np.asarray(array, dtype=dtype, order="C")
    except (TypeError, ValueError):
        what = "text" if dtype is np.str_ else "numbers"
        raise UsageError(name, f"an array of {what} is needed, not {type(array).__name__}") from None
    if result.flags.writeable:
        result = result.view()
        result.setflags(write=False)
    return result


#: Largest plausible charge of an atom, e; larger ones come from damaged files, and their squares could overflow.
LARGEST_CHARGE = 1e9

#: Largest plausible coordinate, A; sums and surfaces lose their digits with larger ones, which come from damaged files.
LARGEST_COORDINATE = 1e8


@dataclass(frozen=True, eq=False)
class Topology:
    """Bonded terms and atom types of a structure, as listed in a PSF or prmtop file.

    All index arrays contain 0-based indices of the structure's atoms.

    Parameters
    ----------
    source : str
        Format of the file: ``psf``, ``prmtop``, ``tpr`` ...
    bonds : (M, 2) int64
        Pairs of atoms.
    angles : (M, 3) int64
        The second atom is the vertex.
    dihedrals, impropers : (M, 4) int64
        Four atoms per term.
    cross_terms : (M, 8) int64
        Two dihedrals per term (CMAP).
    donors, acceptors : (M, 2) int64
        Pairs of a hydrogen-bond donor or acceptor and its hydrogen or antecedent; -1 means "none", as in a PSF.
    types : (N,) str
        Atom types, empty strings where unknown.
    masses : (N,) float64, u
        Masses of the atoms.
    title : sequence of str
        Title lines of the file, which are written with the topology.
    flags : sequence of str
        Words on the first line of a PSF (EXT, CMAP, XPLOR, ...).
    extra : dict
        Further data of the file's format that are needed to write the file again. An array has one row per atom, but
        none for atoms appended later. ``terms`` is a dictionary of index arrays (M, k), with -1 for "none", and
        ``term_values`` one of (M, ...) arrays that belong to the terms of the same name.
    nonbonded : LazyNonbonded or None
        Nonbonded parameters, if the file has them; :func:`vmdpotential.nonbonded` returns
        these or those of separate force-field files.

    Examples
    --------
    >>> structure = vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz")
    >>> structure.topology.source
    'psf'
    >>> structure.topology.masses.sum() > 1e5  # u
    np.True_
    """

    source: str
    types: Names
    masses: Floats
    bonds: Integers
    angles: Integers = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    dihedrals: Integers = field(default_factory=lambda: np.zeros((0, 4), np.int64))
    impropers: Integers = field(default_factory=lambda: np.zeros((0, 4), np.int64))
    cross_terms: Integers = field(default_factory=lambda: np.zeros((0, 8), np.int64))
    donors: Integers = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    acceptors: Integers = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    title: Sequence[str] = ()
    flags: Sequence[str] = ()
    extra: dict[str, Any] = field(default_factory=dict)
    nonbonded: LazyNonbonded | None = None

    #: Names of the index arrays, in the order of a PSF.
    TERMS = ("bonds", "angles", "dihedrals", "impropers", "donors", "acceptors", "cross_terms")

    def __repr__(self) -> str:
        return f"Topology({len(self.types)} atoms and {len(self.bonds)} bonds, {self.source})"

    def take(self, atoms: Integers) -> Topology:
        """Return the topology of the selected atoms (increasing indices), without terms that involve others."""
        count = len(self.types)
        new = np.full(count + 1, -2, np.int64)
        new[atoms] = np.arange(len(atoms))
        new[-1] = -1  # index -1 ("none") stays
        terms = {}
        for name in self.TERMS:
            renumbered = new[getattr(self, name)]
            terms[name] = renumbered[(renumbered > -2).all(1)]
        extra = {
            key: value[atoms[atoms < len(value)]] if isinstance(value, np.ndarray) else value
            for key, value in self.extra.items()
        }
        extra["terms"], extra["term_values"] = {}, dict(self.extra.get("term_values", {}))
        for name, index in self.extra.get("terms", {}).items():
            renumbered = new[index]
            keep = (renumbered > -2).all(1)
            extra["terms"][name] = renumbered[keep]
            if name in extra["term_values"]:
                extra["term_values"][name] = extra["term_values"][name][keep]
        nonbonded = self.nonbonded and self.nonbonded.take(atoms)
        return replace(
            self, types=self.types[atoms], masses=self.masses[atoms], extra=extra, nonbonded=nonbonded, **terms)


@dataclass(frozen=True, eq=False)
class ListedBonds:
    """Bonds that a structure file lists (CONECT records), mostly those of ligands and lipids: no complete topology.

    Parameters
    ----------
    pairs : (B, 2) int64
        Indices of two atoms; a pair may be repeated, once for each further order of its bond.
    """

    pairs: Integers

    def take(self, atoms: Integers, count: int) -> ListedBonds:
        """Return the bonds among selected atoms of `count`, renumbered."""
        new = np.full(count, -1, np.int64)
        new[atoms] = np.arange(len(atoms))
        pairs = new[self.pairs]
        return ListedBonds(pairs[(pairs >= 0).all(1)])


@dataclass(frozen=True, eq=False)
class Structure:
    """Atoms with their coordinates, names, residues and, if known, charges, cell and topology.

    Parameters
    ----------
    positions : (N, 3) float64, A
        Coordinates.
    atom_names, residue_names, chain_ids, segment_ids, elements : (N,) str
        Names and symbols as in the file, without blanks around them; empty where the file has none.
    residue_ids : (N,) int64
        Residue numbers, decoded if the file has hybrid-36 numbers; they may repeat where a file's numbers wrap.
    residue_index : (N,) int64
        0-based index of each atom's residue, increasing along the file. Use this, never
        `residue_ids`, to distinguish residues.
    insertion_codes : (N,) str
        Insertion codes of the residues; empty where there are none.
    charges : (N,) float64, e, or None
        Partial charges; None if they have not been assigned.
    hetero : (N,) bool
        Whether the atom's record in the file is HETATM.
    occupancies, b_factors : (N,) float64
        Occupancies and B factors; 1 and 0 where the file has none.
    cell : Cell or None
        Periodic cell; None without one.
    topology : Topology or None
        Bonds and atom types.
    title : str
        Title of the file.
    sources : tuple of str
        Names of the files that were read.
    state : str
        Which of several states of the same atoms this is, such as ``frame 20, 40 ps``; empty if there is one only.
    charge_source : str
        Origin of the charges, for reports; empty if they are the topology's.
    radii : (N,) float64, A, or None
        Atomic radii of the file (PQR, prmtop), for methods that need the molecule's volume; NaN where unknown.
    whole : Structure or None
        The structure from which these atoms were selected; a force field is chosen by all of its atoms, and templates
        are matched to its complete residues.
    whole_rows : (N,) int64 or None
        Indices of these atoms in `whole`.
    groups : mapping of str to (K,) int64
        Atom indices of the groups of an index file, by the groups' names.
    velocities : (N, 3) float64, A/ps, or None
        Velocities, if the coordinate file has them.
    origins : (N,) int64 or None
        For a completed structure, the index in the original structure of the atom that each atom is, or was added to;
        selections by index refer to the original structure.
    listed_bonds : ListedBonds or None
        Bonds of the CONECT records of a PDB file, which are written again.
    planes : (float, float) or None
        Heights, A, of the two planes of a membrane across z that the file marked by atoms which are left out.

    Raises
    ------
    InputError
        When the lengths of arrays differ or a coordinate is not finite; the message names the atom.

    Examples
    --------
    >>> structure = vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz")
    >>> len(structure), round(structure.net_charge)
    (23558, -11)
    >>> protein = structure.take(vp.select(structure, "protein").nonzero()[0])
    >>> protein.residue_count
    159
    """

    positions: Floats
    atom_names: Names
    residue_names: Names
    residue_ids: Integers
    residue_index: Integers
    chain_ids: Names = None  # type: ignore[assignment]  # filled with blanks below
    segment_ids: Names = None  # type: ignore[assignment]
    elements: Names = None  # type: ignore[assignment]
    insertion_codes: Names = None  # type: ignore[assignment]
    charges: Floats | None = None
    hetero: NDArray[np.bool_] = None  # type: ignore[assignment]
    occupancies: Floats = None  # type: ignore[assignment]
    b_factors: Floats = None  # type: ignore[assignment]
    cell: Cell | None = None
    topology: Topology | None = None
    title: str = ""
    sources: tuple[str, ...] = ()
    state: str = ""
    charge_source: str = ""
    whole: Structure | None = None
    whole_rows: Integers | None = None
    groups: Mapping[str, Integers] = field(default_factory=dict)
    radii: Floats | None = None
    velocities: Floats | None = None
    origins: Integers | None = None
    listed_bonds: ListedBonds | None = None
    planes: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        for name, value in vars(self).items():
            check_unmasked(value, f"{name.replace('_', ' ')} of {self.where}")
        if self.cell is not None and not isinstance(self.cell, Cell):
            raise UsageError("cell", f"a Cell is needed, not {type(self.cell).__name__}",
                             "make it by Cell.from_parameters")
        positions = _frozen(self.positions, np.float64, "positions")
        if positions.size % 3 or not positions.ndim:
            raise UsageError("positions", f"an array (N, 3) is needed, not {positions.shape}")
        put(self, "positions", positions.reshape(-1, 3))
        count = len(self.positions)
        for name in ("atom_names", "residue_names", "chain_ids", "segment_ids", "elements", "insertion_codes"):
            value = getattr(self, name)
            put(self, name, _frozen(np.full(count, "") if value is None else value, np.str_, name))
        for name, dtype, default in (
            ("residue_ids", np.int64, 0),
            ("residue_index", np.int64, 0),
            ("hetero", np.bool_, False),
            ("occupancies", np.float64, 1.0),
            ("b_factors", np.float64, 0.0),
        ):
            value = getattr(self, name)
            put(self, name, _frozen(np.full(count, default) if value is None else value, dtype, name))
        for name in ("charges", "radii", "velocities"):
            if getattr(self, name) is not None:
                put(self, name, _frozen(getattr(self, name), np.float64, name))
        where = self.where
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray) and len(value) != count:
                raise InputError(f"{where}: {len(value)} {name.replace('_', ' ')} for {count} atoms")
        if (atom := find_implausible_position(self.positions)) is not None:
            raise InputError(f"{where}: atom {atom + 1} ({self.label(atom)}) has coordinates that are "
                             f"{describe_position(self.positions[atom])}", "repair or remove it")
        if self.charges is not None:
            bad = np.flatnonzero(~np.isfinite(self.charges))
            if len(bad):
                raise InputError(
                    f"{where}: atom {bad[0] + 1} ({self.label(int(bad[0]))}) has a charge that is not a number",
                    "repair the topology"
                )

    @classmethod
    def from_mdanalysis(cls, atoms: Any) -> Structure:
        """Return the atoms of an AtomGroup or Universe of MDAnalysis; see :mod:`vmdpotential.molecule.conversions`."""
        from vmdpotential.molecule import conversions

        return conversions.from_mdanalysis(atoms)

    def to_mdanalysis(self) -> Any:
        """Return a Universe of MDAnalysis with these atoms."""
        from vmdpotential.molecule import conversions

        return conversions.to_mdanalysis(self)

    @classmethod
    def from_biotite(cls, atoms: Any) -> Structure:
        """Return the atoms of an AtomArray of biotite; see :mod:`vmdpotential.molecule.conversions`."""
        from vmdpotential.molecule import conversions

        return conversions.from_biotite(atoms)

    def to_biotite(self) -> Any:
        """Return an AtomArray of biotite with these atoms."""
        from vmdpotential.molecule import conversions

        return conversions.to_biotite(self)

    @classmethod
    def from_parmed(cls, structure: Any) -> Structure:
        """Return the atoms of a Structure of ParmEd; see :mod:`vmdpotential.molecule.conversions`."""
        from vmdpotential.molecule import conversions

        return conversions.from_parmed(structure)

    def to_parmed(self) -> Any:
        """Return a Structure of ParmEd with these atoms."""
        from vmdpotential.molecule import conversions

        return conversions.to_parmed(self)

    @classmethod
    def from_gemmi(cls, structure: Any) -> Structure:
        """Return the atoms of a Structure (the first model) of gemmi; see :mod:`vmdpotential.molecule.conversions`."""
        from vmdpotential.molecule import conversions

        return conversions.from_gemmi(structure)

    def to_gemmi(self) -> Any:
        """Return a Structure of gemmi with these atoms."""
        from vmdpotential.molecule import conversions

        return conversions.to_gemmi(self)

    @classmethod
    def from_openmm(cls, topology: Any, positions: Any, system: Any = None) -> Structure:
        """Return the atoms of a Topology of OpenMM, with the charges of a System; see :meth:`from_mdanalysis`."""
        from vmdpotential.molecule import conversions

        return conversions.from_openmm(topology, positions, system)

    def to_openmm(self) -> tuple[Any, Any]:
        """Return a Topology of OpenMM with these atoms, and their positions as a Quantity."""
        from vmdpotential.molecule import conversions

        return conversions.to_openmm(self)

    def __len__(self) -> int:
        return len(self.positions)

    def __repr__(self) -> str:
        charge = "no charges" if self.charges is None else f"net charge {round(self.charges.sum(), 6) + 0.0:+.4g} e"
        source = f" of {', '.join(name.rpartition('/')[2] for name in self.sources)}" if self.sources else ""
        return (f"Structure({len(self)} atoms in {self.residue_count} residues{source}, {charge}, "
                f"{'no cell' if self.cell is None else f'cell {self.cell}'})")

    def _repr_png_(self) -> bytes | None:
        """Return the picture that notebooks show."""
        import vmdpotential

        picture: bytes | None = vmdpotential.thumbnail(self) if len(self) else None
        return picture

    def label(self, atom: int) -> str:
        """Return residue name, residue number and atom name of one atom, for messages."""
        return f"{self.residue_names[atom]}{self.residue_ids[atom]}:{self.atom_names[atom]}"

    @property
    def where(self) -> str:
        """Name of the file that was read, for messages; ``structure`` if there is none."""
        return self.sources[0] if self.sources else "structure"

    @cached_property
    def residue_starts(self) -> Integers:
        """(R + 1,) indices of the first atom of every residue, then N."""
        if not len(self):
            return np.zeros(1, np.int64)
        changes = np.flatnonzero(np.diff(self.residue_index)) + 1
        return np.concatenate([[0], changes, [len(self)]]).astype(np.int64)

    @property
    def residue_of(self) -> Integers:
        """(N,) residue of every atom, as an index into :attr:`residue_starts`."""
        return np.repeat(np.arange(self.residue_count), np.diff(self.residue_starts))

    @property
    def residue_count(self) -> int:
        """Number of residues."""
        return len(self.residue_starts) - 1

    @property
    def net_charge(self) -> float:
        """Sum of the charges, e.

        Raises
        ------
        InputError
            When the structure has no charges.
        """
        return float(self.known_charges.sum())

    @property
    def known_charges(self) -> Floats:
        """Charges, (N,) e; InputError is raised if there are none, or implausibly large ones."""
        if self.charges is None:
            raise InputError(f"{self.where}: has no charges", "give a file that has them as {topology}")
        if len(self) and not max(-self.charges.min(), self.charges.max()) <= LARGEST_CHARGE:  # nor NaN
            atom = int(np.argmin(np.abs(self.charges) <= LARGEST_CHARGE))
            raise InputError(f"{self.where}: the charge of {self.label(atom)} is {self.charges[atom]:g} e",
                             "correct it")
        return self.charges

    def require_whole_cell(self, hint: str) -> None:
        """Raise InputError if the atoms are a crystal's asymmetric unit, not the whole content of its cell."""
        if self.cell is not None and not self.cell.whole:
            raise InputError(f"{self.where}: is the asymmetric unit of a crystal ({self.cell.space_group})",
                             f"{hint}; if the file contains the whole cell, set its space group to P 1")

    def group(self, name: str) -> Integers:
        """Return the atom indices (K,) of a group of the index file; raise ValueError if no group has this name."""
        if name not in self.groups:
            known = listed_words(self.groups, 200) or "there is no index file"
            raise ValueError(f"there is no index group '{name}' ({known})")
        return self.groups[name]

    def take(self, atoms: ArrayLike) -> Structure:
        """Return a structure of the selected atoms, given as increasing indices or a mask (N,)."""
        index = np.asarray(atoms)
        if index.dtype == bool:
            index = np.flatnonzero(index)
        fields = {
            name: value[index] for name, value in vars(self).items()
            if isinstance(value, np.ndarray) and name != "residue_starts"
        }
        if len(index):
            fields["residue_index"] = np.concatenate([[0], np.cumsum(np.diff(fields["residue_index"]) != 0)])
        topology = self.topology.take(index) if self.topology is not None else None
        groups = {name: np.flatnonzero(np.isin(index, rows)) for name, rows in self.groups.items()}
        bonds = self.listed_bonds and self.listed_bonds.take(index, len(self))
        return replace(self, topology=topology, groups=groups, listed_bonds=bonds, **fields)

    def part(self, atoms: ArrayLike) -> Structure:
        """Return the selected atoms as :meth:`take` does, with a reference to this structure (`whole`)."""
        rows = np.arange(len(self))[np.asarray(atoms)]
        return replace(self.take(rows), whole=self, whole_rows=rows)

    def with_charges(self, charges: ArrayLike) -> Structure:
        """Return the same atoms with other charges, (N,) e."""
        return replace(self, charges=np.asarray(charges, np.float64))


def find_implausible_position(positions: NDArray[Any]) -> int | None:
    """Return the first atom of positions (N, 3), A, with a coordinate that is no number or implausibly large."""
    if not positions.size or max(-positions.min(), positions.max()) <= LARGEST_COORDINATE:  # not for NaN
        return None
    return int(np.argmin((np.abs(positions) <= LARGEST_COORDINATE).all(1)))


def describe_position(position: NDArray[Any]) -> str:
    """Return what is wrong with an implausible position, for errors."""
    return f"beyond {LARGEST_COORDINATE:g} A" if np.isfinite(position).all() else "not numbers"


def atom_label(structure: Structure, atom: int, whole_residue: bool) -> str:
    """Return the name of a residue or an atom in tables, e.g. ``A/LEU10`` or ``A/LEU10/CA``."""
    where = str(structure.chain_ids[atom] or structure.segment_ids[atom])
    residue = f"{structure.residue_names[atom]}{structure.residue_ids[atom]}{structure.insertion_codes[atom]}"
    return "/".join(filter(None, (where, residue, "" if whole_residue else str(structure.atom_names[atom]))))
