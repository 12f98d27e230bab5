"""CMAP: Chimera's HDF5 maps in several resolutions, which ChimeraX opens without reading the whole file.

The layout is Chimera's: the group ``/Chimera/image1`` has the attributes ``step``, ``origin`` (x, y, z; A) and
``cell_angles``, and the datasets ``data_zyx`` (the map, (z, y, x) float32) and ``data_zyx_2``, ``data_zyx_4`` ...
(every 2nd, 4th ... node along each axis, beginning with the first), each with the attribute ``subsample_spacing``.
Blocks of 1 MiB are not compressed, as that would need plugins of HDF5. Unit and provenance are text (bytes) in the
dataset ``vmdpotential``.

The file is written with h5py. The package cmapfile needs the whole map in memory and interpolates the coarser ones,
which shifts their nodes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import extras, progress
from vmdpotential.errors import InputError
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.grid.stored import StoredGrid
from vmdpotential.io.files import text as files
from vmdpotential.io.maps.mapformat import (
    FORMAT_MARK,
    check_header,
    exact_lattice,
    header_lines,
    map_title,
    parse_header,
    write_layers,
)

#: Values of a block along z, y and x.
BLOCK = (16, 128, 128)

#: Most points of the coarsest level.
COARSEST = 2**21

_IMAGE, _DATA, _HEADER = "Chimera/image1", "data_zyx", "vmdpotential"


def library() -> Any:
    """Return the package h5py.

    Raises
    ------
    BackendError
    """
    return extras.load_optional("h5py", "CMAP files", "large", "use .mrc or .dx")


class _ErrorKeepingFile:
    """A file for HDF5 that keeps errors of writing in `error`: raised within HDF5, they would crash it on closing."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self.error: OSError | None = None

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)
        while len(rest) and self.error is None:
            rest = rest[self._try(self.file.write, rest) :]
        return size

    def truncate(self, size: int) -> int:
        self._try(self.file.truncate, size)
        return size

    def _try(self, operation: Callable[[Any], int], argument: Any) -> int:
        try:
            return 0 if self.error is not None else operation(argument)
        except OSError as error:
            self.error = error
            return 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


@contextlib.contextmanager
def _writing(path: Path, mode: str) -> Iterator[Any]:
    """Open an HDF5 file for writing; raises OSError when the disk is full."""
    with path.open("w+b" if mode == "w" else "r+b", buffering=0) as raw:
        file = _ErrorKeepingFile(raw)
        try:
            with library().File(file, mode) as hdf5:
                yield hdf5
        finally:
            if file.error is not None:
                raise file.error


class CmapWriter:
    """Writer of a map slab by slab (:class:`vmdpotential.sums.slabs.Sink` defines the order of calls)."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, lattice: Lattice) -> None:
        """Create the file; former content is removed."""
        with _writing(self.path, "w") as file:
            image = file.create_group(_IMAGE)
            image.attrs["step"] = lattice.spacing
            image.attrs["origin"] = lattice.origin
            image.attrs["cell_angles"] = np.full(3, 90.0)
            _create(image, _DATA, lattice)

    def put(self, start: int, values: NDArray[np.float32]) -> None:
        """Write the planes (nx, ny, n) from `start` on along z."""
        with _writing(self.path, "r+") as file:
            data = file[_IMAGE][_DATA]
            for z in range(0, values.shape[2], BLOCK[0]):  # so that only a few planes are copied
                part = values[:, :, z : z + BLOCK[0]].transpose(2, 1, 0)
                data[start + z : start + z + len(part)] = np.ascontiguousarray(part)

    def finish(self, grid: Grid) -> None:
        """Write the coarser levels, unit and provenance; the values of `grid` are not used."""
        lattice = grid.lattice
        with _writing(self.path, "r+") as file:
            image = file[_IMAGE]
            image.attrs["name"] = map_title(grid)
            fine, step = image[_DATA], 2
            while lattice.every(step // 2).size > COARSEST:
                coarse = _create(image, f"{_DATA}_{step}", lattice.every(step))
                coarse.attrs["subsample_spacing"] = np.full(3, step)
                for z in range(0, coarse.shape[0], BLOCK[0] // 2):
                    planes = fine[2 * z : 2 * z + BLOCK[0]]
                    coarse[z : z + BLOCK[0] // 2] = planes[::2, ::2, ::2]
                    progress.report_progress("coarser levels of the map", min(0.999, z / coarse.shape[0]))
                fine, step = coarse, 2 * step
            progress.report_progress("coarser levels of the map", 1.0)
            image[_HEADER] = np.frombuffer("\n".join(header_lines(grid, 2**30)).encode("ascii"), np.uint8)


def _create(image: Any, name: str, lattice: Lattice) -> Any:
    shape = lattice.shape[::-1]
    return image.create_dataset(name, shape, "<f4", chunks=tuple(map(min, shape, BLOCK)), fillvalue=0.0)


def write_cmap(path: Path, grid: Grid) -> None:
    """Write a map from memory."""
    write_layers(CmapWriter(path), grid, BLOCK[0])


def open_cmap(path: Path) -> StoredGrid:
    """Return the map of a CMAP file, whose values are read in parts.

    Raises
    ------
    InputError
        When the file is not a CMAP file or contains several maps, or when its map is skewed or rotated.
    """
    h5py = library()
    with _opened(path) as file:
        images: dict[str, list[Any]] = {}

        def visit(name: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset) and item.ndim == 3 and item.dtype.kind in "fiu" and item.size:
                images.setdefault(item.parent.name, []).append(item)

        file.visititems(visit)
        if len(images) != 1:
            raise InputError(f"{path}: contains {len(images)} maps",
                             "keep one" if images else "give an HDF5 file of maps")
        name, arrays = next(iter(images.items()))
        image = file[name]
        whole = [array for array in arrays if "subsample_spacing" not in array.attrs]
        if not whole:
            raise InputError(f"{path}: contains only coarser levels of a map", "write it again")
        angles = np.asarray(image.attrs.get("cell_angles", (90, 90, 90)), np.float64)
        rotation = float(np.asarray(image.attrs.get("rotation_angle", 0.0)))
        if (np.abs(angles - 90) > 1e-3).any() or abs(rotation) > 1e-5:
            state = f"cell angles are {' '.join(f'{x:g}' for x in angles)}" if not rotation else \
                f"rotation is {rotation:g} degrees"
            raise InputError(f"{path}: its {state}; a map has axes along x, y and z",
                             "resample it, in ChimeraX by: volume resample")
        nz, ny, nx = whole[0].shape
        lattice = Lattice(np.asarray(image.attrs.get("origin", np.zeros(3)), np.float64),
                          np.asarray(image.attrs.get("step", np.ones(3)), np.float64), (nx, ny, nz))
        text = bytes(image[_HEADER][:]).decode("latin-1") if _HEADER in image else ""
        levels = {1: whole[0].name}
        if text.startswith(FORMAT_MARK):  # other programs interpolate coarser levels, which shifts their nodes
            for array in arrays:
                step = {int(n) for n in array.attrs.get("subsample_spacing", (1,))}
                if len(step) == 1 and lattice.every(max(step)).shape == array.shape[::-1]:
                    levels[max(step)] = array.name
    header = parse_header(text.split("\n"))
    check_header(path, header)

    def read(low: NDArray[np.int64], high: NDArray[np.int64], step: int) -> NDArray[np.float32]:
        with files.reading_file(path), _opened(path) as file:
            best = max(n for n in levels if step % n == 0 and not (low % n).any())
            (i, j, k), (p, q, r) = (low // best).tolist(), (-(-high // best)).tolist()
            data, every = file[levels[best]], step // best
            if every == 1:
                return np.asarray(data[k:r, j:q, i:p], np.float32).transpose(2, 1, 0)
            # HDF5 is slow with steps along all axes, so planes are read one by one, and only their needed part
            planes = [np.asarray(data[n, j:q, i:p][::every, ::every], np.float32) for n in range(k, r, every)]
            return np.stack(planes).transpose(2, 1, 0)

    return StoredGrid(exact_lattice(lattice, header), header or {"quantity": ""}, read, str(path))


def _opened(path: Path) -> Any:
    try:
        return library().File(path, "r")
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno:
            raise
        raise InputError(f"{path}: is not an HDF5 file, or is damaged", "copy it again, or write it again") from None
