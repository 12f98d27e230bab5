"""Structures from the options of a command: reading, missing atoms, and frames."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import replace
from pathlib import Path

from vmdpotential.errors import ChargeError, IncompleteError, InputError, UsageError, VmdpotentialError, count_of
from vmdpotential.io.files.cellfile import with_cell
from vmdpotential.io.files.several import frame_chosen
from vmdpotential.io.trajectories.atom_order import check_order
from vmdpotential.io.trajectories.frames import Frames, Trajectory
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure
from vmdpotential.preparation.charged import complete_structure

log = logging.getLogger(__name__)


def read_source(structure: Path | Structure, topology: Path | None, cell: Cell | None = None,
         index: Path | None = None, trajectory: Path | Frames | None = None, frame: int | None = None,
         length_unit: str | None = None) -> Structure:
    """Return the structure of a file or of a viewer, with the cell and the groups that a user gave.

    A topology without coordinates gets those of the first frame of the trajectory. If a `frame` is given, which
    :func:`at_frame` then applies, there is no warning that the first one of several is used.

    Raises
    ------
    UsageError
        For a topology in addition to a viewer's structure.
    InputError
        When a file cannot be read.
    """
    from vmdpotential.io import read_first_frame, read_structure

    if not isinstance(structure, Structure):
        first = None
        if topology is None and isinstance(trajectory, Path):
            first = read_first_frame(structure, trajectory, length_unit)
        with contextlib.nullcontext() if frame is None else frame_chosen():
            structure = first or read_structure(structure, topology=topology)
    elif topology is not None:
        raise UsageError("topology", "it is only used for structures read from a file")
    if index is not None:
        from vmdpotential.io.files.ndx import read_groups

        structure = replace(structure, groups=read_groups(index, len(structure)))
    return with_cell(structure, cell)


def complete_for_display(structure: Structure, prepare: str, ph: float) -> tuple[Structure, list[str]]:
    """Return a structure with missing atoms added, for display, and a line on what was added, if anything.

    A structure that only lacks charges is returned unchanged; so is one that cannot be completed, with a warning.
    """
    from vmdpotential.molecule.charges import charges_and_report

    if prepare == "never" or structure.charges is not None or structure.topology is not None:
        return structure, []
    try:
        charges_and_report(structure, "auto", "auto", [])
    except IncompleteError as error:
        try:
            result, report = complete_structure(structure, error, force_field="auto", water="auto", charges=[], ph=ph)
        except VmdpotentialError as reason:
            log.warning("%s: is shown without its missing atoms (%s)", structure.where, reason.text[:200])
        else:
            return result, [report.prepared]
    except ChargeError:
        pass
    return structure, []


def at_frame(structure: Structure, source: Path | Structure, trajectory: Path | None, frame: int | None,
             cell: Cell | None, length_unit: str | None = None) -> Structure:
    """Return a structure at a frame of a trajectory or of its own file, with the frame's cell unless a user gave one.

    Raises
    ------
    UsageError
        For a frame of a viewer's structure, or the unit of a trajectory where there is none.
    InputError
        When the frames cannot be read or have other atoms, or there is no frame of this number.
    """
    if trajectory is None and length_unit is not None:
        raise UsageError("length_unit", "a trajectory is needed", "give its file as {trajectory}", value=length_unit)
    if trajectory is None and frame is None:
        return structure
    path = trajectory or source
    if isinstance(path, Structure):
        raise UsageError("frame", "a frame is read from a file, and a viewer's structure has none",
                         "give {trajectory}")
    check_order(path, structure)
    number = frame or 0
    try:
        chosen = next(iter(Trajectory(path, len(structure), slice(number, number + 1 or None),
                                      length_unit=length_unit)))
    except InputError:
        count = len(Trajectory(path, len(structure), length_unit=length_unit).numbers())
        if -count <= number < count:
            raise
        raise UsageError("frame", f"{path} has {count_of(count, 'frame')}, numbered from 0",
                         value=str(number)) from None
    return replace(structure, positions=chosen.positions, cell=cell or chosen.cell or structure.cell,
                   sources=(*structure.sources, f"{path} frame {chosen.number}"),
                   state=f"frame {chosen.number}" + ("" if chosen.time is None else f", {chosen.time:g} ps"))
