"""Readers and writers of structures, topologies and maps, chosen by a file's suffix or content.

Structures are PDB, mmCIF, GRO and PQR files, and the atoms of cube and Molden files; topologies are PSF, Amber prmtop
and GROMACS .top files; coordinates alone are Amber's rst7, inpcrd and NetCDF restarts. MDAnalysis reads further formats
(TPR, TRR, DCD, ...).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from vmdpotential import registry
from vmdpotential.errors import InputError, UsageError
from vmdpotential.io.files import output, recognise
from vmdpotential.io.files import text as files
from vmdpotential.io.structures.merge import merge_topology, place_atoms
from vmdpotential.molecule import elements
from vmdpotential.molecule.conversions import StructureLike, as_structure
from vmdpotential.molecule.structure import Structure

__all__ = [
    "check_formats", "merge_topology", "open_map", "read_map", "read_structure", "read_topology", "write_map",
    "write_structure", "write_structures",
]

#: Kinds of files that have no coordinates.
_TOPOLOGIES = ("psf", "prmtop", "gromacs-topology")


def __getattr__(name: str) -> Any:
    if name in ("open_map", "read_map", "write_map"):
        return getattr(import_module("vmdpotential.io.maps"), name)
    raise AttributeError(f"module 'vmdpotential.io' has no attribute '{name}'")


def read_structure(path: str | Path, topology: str | Path | None = None) -> Structure:
    """Return the structure of a file, with the names, charges and bonds of a topology if one is given.

    Parameters
    ----------
    path : Path
        Structure or coordinates, plain or compressed (.gz, .bz2). The suffix determines the format, or the content
        if the suffix is missing or unknown (Amber's ``prmtop``, ``inpcrd``). ``-`` is standard input.
    topology : Path, optional
        PSF, prmtop, PQR, TPR or another file with the same atoms in the same order. Names, residues,
        segments, charges and bonds are taken from it; see :func:`merge_topology`.

    Returns
    -------
    Structure
        In the file's atom order, positions in A.

    Raises
    ------
    InputError
        When a file cannot be read, `path` has no coordinates, or the two files differ in their atoms.
    MemoryPlanError
        When reading takes more memory than there is.
    BackendError
        When the format needs MDAnalysis, which is not installed.

    Examples
    --------
    >>> structure = vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz")
    >>> round(structure.net_charge), structure.topology.source
    (-11, 'psf')
    """
    path = files.buffered_stream(path)
    with files.reading_file(path):
        kind = _kind_of_structure(path, topology is not None)
        if topology is None:
            return elements.fill_elements(_read_whole(path, kind))
    named_atoms = elements.fill_elements(read_topology(topology))
    with files.reading_file(path):
        if kind == "amber-coordinates":
            positions, cell, velocities = registry.get("structure_reader", kind)(path)
            named_atoms = replace(named_atoms, velocities=velocities)
        elif kind == "frames":
            from vmdpotential.io.trajectories.frames import read_frame

            positions, cell = read_frame(path, len(named_atoms))
        else:
            structure = _read_whole(path, kind)
    if kind in ("amber-coordinates", "frames"):
        return place_atoms(positions, cell, str(path), named_atoms)
    return merge_topology(structure, named_atoms)


def read_first_frame(path: Path, trajectory: Path, length_unit: str | None = None) -> Structure | None:
    """Return a topology's atoms with the coordinates of a trajectory's first frame.

    Returns None if `path` is not a topology without coordinates (PSF, prmtop or .top).
    """
    path, trajectory = files.buffered_stream(path), files.buffered_stream(trajectory)
    if recognise.kind_of(path) not in _TOPOLOGIES:
        return None
    from vmdpotential.io.trajectories.frames import Trajectory

    named_atoms = elements.fill_elements(read_topology(path))
    frame = next(iter(Trajectory(trajectory, len(named_atoms), slice(1), length_unit=length_unit)))
    return place_atoms(frame.positions, frame.cell, str(trajectory), named_atoms)


def _kind_of_structure(path: Path, has_topology: bool) -> str:
    """Return the kind of a coordinate file (:func:`vmdpotential.io.files.recognise.kind_of`).

    Raises InputError for a topology, and for a file of coordinates alone unless a topology is given with it.
    """
    kind = recognise.kind_of(path)
    if kind in _TOPOLOGIES:
        raise InputError(
            f"{path}: a topology has no coordinates", "give the coordinate file, and this one as {topology}")
    if not has_topology and kind in ("amber-coordinates", "frames"):
        raise InputError(
            f"{path}: has coordinates only, without names and charges", "give a file with names as {topology}")
    return kind


def _read_whole(path: Path, kind: str) -> Structure:
    structure: Structure = registry.get("structure_reader", kind)(path)
    return structure


def read_topology(path: str | Path) -> Structure:
    """Return the names, residues, charges and bonds of a topology file, for :func:`merge_topology` with coordinates.

    Parameters
    ----------
    path : Path
        PSF, prmtop, PQR, TPR or a structure file with charges.

    Returns
    -------
    Structure
        In the file's atom order, with the file's positions if it has any.

    Raises
    ------
    InputError
        When the file cannot be read or has coordinates only.
    BackendError
        When the format needs MDAnalysis, which is not installed.
    """
    path = files.buffered_stream(path)
    with files.reading_file(path):
        kind = recognise.kind_of(path)
        if kind in ("amber-coordinates", "frames"):
            raise InputError(f"{path}: has coordinates only and is not a topology",
                             "give a PSF, prmtop, TPR or PQR file")
        return _read_whole(path, "mdanalysis-topology" if kind == "mdanalysis" else kind)


def write_structure(structure: StructureLike, path: str | Path, force: bool = False) -> None:
    """Write a structure in the format of the file's suffix; if that fails, nothing is written.

    Parameters
    ----------
    structure : Structure or path
        The atoms.
    path : Path
        ``.pdb``, ``.cif``, ``.pqr``, ``.gro`` or ``.rst7``; or ``.psf``, ``.top`` or ``.prmtop`` for the topology
        alone, of which the last two need a structure that was read with a topology of the same format. ``.gz`` may
        follow each suffix.
    force : bool
        Whether an existing file may be replaced.

    Raises
    ------
    UsageError
        For another suffix, an existing file, or a structure that the format cannot hold.
    OutputError
        When the file cannot be written.

    Examples
    --------
    >>> structure = vp.read_structure("data/1hvr.pdb.gz")
    >>> vp.write_structure(structure, "1hvr.cif.gz")
    >>> len(vp.read_structure("1hvr.cif.gz")) == len(structure)
    True
    """
    structure = as_structure(structure)
    write_structures(structure, [path], force)


def write_structures(
    structure: Structure, paths: Sequence[str | Path], force: bool = False,
    companions: Mapping[Path, Callable[[Path], None]] | None = None, names: Sequence[Path] | None = None,
) -> None:
    """Write a structure to several files: all of them or, when one fails, none (see :func:`write_structure`).

    `companions` maps the paths of files to be written together with these to the functions that write them. `names`
    are the paths whose suffixes choose the formats (:func:`vmdpotential.io.files.output.named`), by default `paths`.
    """
    targets = [Path(path) for path in paths]
    others = dict(companions or {})
    names = targets if names is None else names
    check_formats(structure, names)
    with output.writing_files([*targets, *others], force, [*names, *others]) as temporary:
        for path, write in zip(temporary[len(targets):], others.values(), strict=True):
            write(path)
        for path, target in zip(temporary, names, strict=False):
            try:
                registry.get("structure_writer", files.format_suffix(target)).write(structure, path)
            except (InputError, UsageError) as error:  # the message should name the requested, not the temporary file
                error.text = error.text.replace(str(path), str(target))
                raise


def can_be_written(path: Path) -> bool:
    """Return whether structures can be written in the format of a file's suffix."""
    return files.format_suffix(path) in registry.available("structure_writer")


def check_formats(structure: Structure, paths: Sequence[str | Path]) -> None:
    """Raise the errors that writing a structure to these files would raise, before any work is done.

    Raises
    ------
    UsageError
        When a suffix is unknown, or the format cannot hold the structure (no bonds for a PSF, names
        or coordinates too wide for a PDB).
    ChargeError
        When one of the files is a PQR or PSF, and the structure has no charges.
    """
    for path in map(Path, paths):
        suffix = ".prmtop" if path.name.lower() == "prmtop" else files.format_suffix(path)
        if suffix not in registry.known("structure_writer") or path.suffix.lower() == ".bz2":
            raise UsageError("", f"{path}: structures cannot be written in this format",
                             f"name it {', '.join(registry.available('structure_writer'))}, each also with .gz")
        registry.get("structure_writer", suffix).check(structure, path)
