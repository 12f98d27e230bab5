"""Topologies that MDAnalysis reads (extra ``traj``): GROMACS' TPR, ITP and TOP, MOL2 and others."""

from __future__ import annotations

import contextlib
import functools
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Integers
from vmdpotential.errors import InputError
from vmdpotential.io.files.text import buffered_stream
from vmdpotential.io.mdanalysis import cell_of, checked, reading
from vmdpotential.molecule.nonbonded import LazyNonbonded
from vmdpotential.molecule.structure import Names, Structure, Topology

from . import gromacs_folder, tpr_nonbonded

#: Suffixes of GROMACS' topologies, for which MDAnalysis has to be given the format (it takes ``.top`` for Amber's).
_GROMACS = (".top", ".itp")


def read_topology(path: str | Path) -> Structure:
    """Read a topology for which this package has no reader of its own.

    Parameters
    ----------
    path : str or Path
        TPR, ITP or TOP of GROMACS, MOL2, or another format that MDAnalysis reads.

    Returns
    -------
    Structure
        With the charges, positions and cell of the file; positions are zero if the file has none.

    Raises
    ------
    InputError
        When the file is missing, or MDAnalysis cannot read it.
    BackendError
        When MDAnalysis is not installed.
    """
    return _read(buffered_stream(path))[0]


def read_structure(path: str | Path) -> Structure:
    """Read a file that holds both topology and coordinates, like a TPR; see :func:`read_topology`.

    Raises
    ------
    InputError
        Also when the file holds no coordinates, or the installed MDAnalysis cannot read them.
    """
    structure, has_positions = _read(buffered_stream(path))
    if not has_positions:
        raise InputError(
            f"{path}: has no coordinates that MDAnalysis can read",
            "name a file that has them (GRO, PDB) as the structure and this one as {topology}",
        )
    return structure


def _read(path: Path) -> tuple[Structure, bool]:
    """Return the structure, and whether its positions are from the file."""
    with reading(path):
        import MDAnalysis

        options = {"topology_format": "ITP", "infer_system": True} if path.suffix.lower() in _GROMACS else {}
        with tpr_nonbonded.collecting(path) as kept, _preprocessed(path) as plain:
            universe = MDAnalysis.Universe(str(plain), **options)
        atoms = universe.atoms
        count = len(atoms)
        if not count:
            raise InputError(f"{path}: has no atoms")
        attributes = {attribute.attrname for attribute in universe._topology.attrs}

        def text(name: str) -> Names:
            values = getattr(atoms, name) if name in attributes else np.full(count, "")
            return np.array([str(value).strip() for value in values])

        positions = np.zeros((count, 3))
        cell = None
        has_positions = getattr(universe, "trajectory", None) is not None and hasattr(atoms, "positions")
        if has_positions:
            positions, cell = checked(atoms.positions, path), cell_of(universe.dimensions, path)
        terms: dict[str, Any] = {
            name: _indices(universe, name, size) if name in attributes else np.zeros((0, size), np.int64)
            for name, size in (("bonds", 2), ("angles", 3), ("dihedrals", 4), ("impropers", 4))
        }
        types = text("types")
        topology = Topology(
            source="tpr" if path.suffix.lower() == ".tpr" else "mdanalysis",
            types=types,
            masses=tpr_nonbonded.shortest_decimals(atoms.masses) if "masses" in attributes else np.zeros(count),
            title=(f" REMARKS topology of {path.name}",),
            cross_terms=_cross_terms(atoms, {name: kind.cross_terms for name, kind in kept.molecules.items()
                                             if len(kind.cross_terms)}),
            nonbonded=_nonbonded(atoms, kept, types, path),
            **terms,
        )
        if not ((topology.masses >= 0) & np.isfinite(topology.masses)).all():
            raise InputError(f"{path}: contains impossible masses")
        chains = text("chainIDs")
        new_residue = np.diff(atoms.resindices, prepend=atoms.resindices[:1]) != 0
        structure = Structure(
            positions=positions, atom_names=text("names"), residue_names=text("resnames"),
            residue_ids=np.array(atoms.resids, np.int64) if "resids" in attributes else None,  # type: ignore[arg-type]
            residue_index=np.cumsum(new_residue),
            segment_ids=_segments(text("segids")),
            # for a TPR, MDAnalysis gives names of molecules here
            chain_ids=np.where(np.char.str_len(chains) == 1, chains, ""),
            # for GROMACS' topologies MDAnalysis guesses elements from atom types; names are more reliable
            elements=None if options else text("elements"),  # type: ignore[arg-type]
            insertion_codes=text("icodes"),
            charges=tpr_nonbonded.shortest_decimals(atoms.charges) if "charges" in attributes else None,
            cell=cell, topology=topology if "bonds" in attributes else None, sources=(str(path),),
        )
    return structure, has_positions


@contextlib.contextmanager
def _preprocessed(path: Path) -> Iterator[Path]:
    """Yield the path of the file, or of a preprocessed copy of a GROMACS topology.

    MDAnalysis looks for included files in one folder only.
    """
    if path.suffix.lower() not in _GROMACS:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="vmdpotential-") as folder:
        copy = Path(folder, path.name)
        copy.write_text("".join(f"{line.text}\n" for line in gromacs_folder.read_lines(path)), encoding="utf-8")
        yield copy


def _nonbonded(atoms: Any, kept: tpr_nonbonded.TprParameters, types: Names, path: Path) -> LazyNonbonded | None:
    """Return the Lennard-Jones parameters, exclusions and 1-4 pairs of a TPR."""
    if kept.general is None:
        return None
    first = np.flatnonzero(np.diff(np.asarray(atoms.molnums), prepend=-1))
    names = np.asarray(atoms.moltypes)[first].astype(str)
    return LazyNonbonded(functools.partial(kept.nonbonded, names, first, types, str(path)))


def _cross_terms(atoms: Any, kept: dict[str, Integers]) -> Integers:
    """Return the cross-terms (M, 8) of all molecules: the two dihedrals of the five atoms of each."""
    if not kept:
        return np.zeros((0, 8), np.int64)
    numbers = np.asarray(atoms.molnums)
    first = np.flatnonzero(np.diff(numbers, prepend=-1))
    names = np.asarray(atoms.moltypes)[first]
    results = [kept[str(name)] + start for name, start in zip(names, first, strict=True) if str(name) in kept]
    return np.concatenate(results)[:, [0, 1, 2, 3, 1, 2, 3, 4]] if results else np.zeros((0, 8), np.int64)


def _indices(universe: Any, name: str, size: int) -> Integers:
    indices: NDArray[Any] = np.array(getattr(universe, name).indices, np.int64)
    return indices.reshape(-1, size)


def _segments(names: Names) -> Names:
    """Return segment names of at most 8 letters; MDAnalysis calls those of a TPR like ``seg_0_Protein_chain_A``."""
    unique, inverse = np.unique(names, return_inverse=True)
    full = [re.sub(r"^seg_\d+_", "", name) for name in unique]
    full = ["" if name == "SYSTEM" else name for name in full]  # MDAnalysis' name if the file has no segments
    short = [re.sub(r"\s", "_", name)[:8].rstrip("_") for name in full]
    for i, name in enumerate(short):
        if short.count(name) > 1 and name:
            short[i] = f"{name[:5]}{i + 1}"
    return np.array(short)[inverse.reshape(-1)]
