"""Formats of trajectories: each opens a file, of which any frame can then be read.

XTC, GRO and files of models are read by this package, others by MDAnalysis (extra ``traj``): TRR and DCD by its file
classes, because its readers would leave files of their own next to a TRR, and print tracebacks for a damaged DCD.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import InputError
from vmdpotential.io import mdanalysis
from vmdpotential.io.files.text import first_bytes
from vmdpotential.io.structures import gro, mmcif, pdb
from vmdpotential.io.trajectories import dcd, xdr
from vmdpotential.io.trajectories.source import FrameSource, RawFrame, TrajectoryFormat
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure

if TYPE_CHECKING:
    from vmdpotential.io.trajectories.frames import Trajectory

#: Positions (N, 3), A, and cell.
_Model = tuple[NDArray[np.float64], Cell | None]
#: Unit of time of a DCD in ps.
AKMA = 4.888821e-2


def _scaled(values: Any, trajectory: Trajectory, length: float) -> NDArray[Any]:
    """Return a copy of positions in A, in the type that a trajectory keeps."""
    result = np.array(values, trajectory.dtype(values), order="C")
    if length != 1:
        result *= result.dtype.type(length)
    return result


def size_check(path: Path) -> Callable[[int], None]:
    """Return a function that raises InputError for the number of a frame if the file has shrunk since.

    Reading missing pages of a file that is mapped into memory would end the process.
    """
    size = path.stat().st_size

    def check(number: int) -> None:
        if path.stat().st_size < size:
            raise xdr.vanished_frame(path, number)

    return check


@contextlib.contextmanager
def _open_xtc(path: Path, trajectory: Trajectory) -> Iterator[FrameSource]:
    starts, dtype = trajectory.index, np.float32 if trajectory.single else np.float64
    with open(path, "rb") as file:
        def read(number: int) -> RawFrame:
            positions, box, time = xdr.read_xtc(path, file, int(starts[number]), trajectory.atoms, number, dtype)
            return positions, mdanalysis.box_of(box, path), time

        yield FrameSource(len(starts), trajectory.atoms, read)


@contextlib.contextmanager
def _open_trr(path: Path, trajectory: Trajectory) -> Iterator[FrameSource]:
    from MDAnalysis.lib.formats.libmdaxdr import TRRFile

    starts = trajectory.index  # checked before the library, which trusts the file, reads the first frame on opening
    with TRRFile(str(path)) as file:
        file.set_offsets(starts)

        def read(number: int) -> RawFrame:
            file.seek(number)
            try:
                step = file.read()
            except StopIteration:
                raise xdr.vanished_frame(path, number) from None
            if not step.hasx:
                raise InputError(f"{path}: frame {number} contains no positions", "choose other {frames}")
            box = np.array(step.box, np.float64) * 10  # nm to A
            return _scaled(step.x, trajectory, 10), mdanalysis.box_of(box, path), float(step.time)

        yield FrameSource(len(starts), trajectory.atoms, read)


@contextlib.contextmanager
def _open_gro(path: Path, trajectory: Trajectory) -> Iterator[FrameSource]:
    starts, ends = trajectory.index, [*trajectory.index[1:].tolist(), None]
    yield FrameSource(len(starts), trajectory.atoms, lambda number: gro.read_frame(
        path, int(starts[number]), ends[number], trajectory.atoms))


@contextlib.contextmanager
def _open_models(path: Path, trajectory: Trajectory) -> Iterator[FrameSource]:
    models = trajectory.index
    yield FrameSource(len(models), next((len(positions) for positions, _ in models
                                         if len(positions) != trajectory.atoms), trajectory.atoms),
                      lambda number: (models[number][0].copy(), models[number][1], None))


@contextlib.contextmanager
def _open_dcd(path: Path, trajectory: Trajectory) -> Iterator[FrameSource]:
    from MDAnalysis.lib.formats.libdcd import DCDFile

    dcd.check_markers(path)
    with DCDFile(str(path)) as file:
        header, version = file.header, dcd.version(path)
        step, shape = header["nsavc"] * header["delta"] * AKMA, (header["natoms"], 3)
        timed = np.isfinite(step) and step > 0

        def read(number: int) -> RawFrame:
            try:
                file.seek(number)
                entry = file.read()
            except StopIteration:
                raise xdr.vanished_frame(path, number) from None
            if entry.xyz.shape != shape:
                raise InputError(f"{path}: frame {number} has {' x '.join(map(str, entry.xyz.shape))} numbers, where "
                                 f"{shape[0]} atoms have {shape[0]} x 3",
                                 "write it without a fourth coordinate or fixed atoms")
            time = header["istart"] * header["delta"] * AKMA + number * step if timed else None
            return entry.xyz, mdanalysis.cell_of(dcd.cell_of(entry.unitcell, version), path), time

        yield FrameSource(len(file), header["natoms"], read)


@contextlib.contextmanager
def _open_other(path: Path, trajectory: Trajectory) -> Iterator[FrameSource]:
    if path.suffix.lower() in (".coor", ".namdbin"):  # MDAnalysis would allocate memory for the number in the header
        counts = [int.from_bytes(first_bytes(path, 4), order) for order in ("little", "big")]
        mdanalysis.check_atoms(path, trajectory.atoms if trajectory.atoms in counts else counts[0], trajectory.atoms)
    with mdanalysis.opened(path, n_atoms=trajectory.atoms) as reader:
        check, (length, in_ps) = size_check(path), mdanalysis.scales(reader, path, trajectory.length_unit)

        def read(number: int) -> RawFrame:
            check(number)
            with mdanalysis.quiet():
                entry = reader[number]
            time = entry.data.get("time")
            return (_scaled(entry.positions, trajectory, length), mdanalysis.cell_of(entry.dimensions, path, length),
                    None if time is None or in_ps is None else time * in_ps)

        yield FrameSource(int(reader.n_frames), reader.n_atoms, read)


def _offsets(starts: Callable[[Path, int], Iterator[int]]) -> Callable[[Path, int], NDArray[np.int64]]:
    return lambda path, atoms: np.array(list(starts(path, atoms)), np.int64)


def _models(read: Callable[[Path], Iterator[Structure]]) -> Callable[[Path, int], list[_Model]]:
    return lambda path, atoms: [(model.positions, model.cell) for model in read(path)]


XTC = TrajectoryFormat(_open_xtc, _offsets(lambda path, atoms: xdr.frames(path, atoms, True)), "nm",
                       mdanalysis.plain_file)
TRR = TrajectoryFormat(_open_trr, _offsets(lambda path, atoms: xdr.frames(path, atoms, False)), "nm")
GRO = TrajectoryFormat(_open_gro, _offsets(gro.frames), "nm", mdanalysis.plain_file)
PDB = TrajectoryFormat(_open_models, _models(lambda path: pdb.read_models(path)), "angstrom",
                       mdanalysis.converted_errors)
MMCIF = TrajectoryFormat(_open_models, _models(mmcif.read_models), "angstrom", mdanalysis.converted_errors)
DCD = TrajectoryFormat(_open_dcd, unit="angstrom")
OTHER = TrajectoryFormat(_open_other)
