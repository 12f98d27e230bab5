"""Zarr maps: a folder of compressed blocks, which may be larger than memory, in several resolutions.

The format is Zarr version 3 with the metadata of OME-Zarr 0.5, which napari and Neuroglancer read. Array ``0`` is the
map, (z, y, x) float32; arrays ``levels/1``, ``levels/2`` ... hold every 2nd, 4th ... node of it along each axis. Arrays
``x``, ``y`` and ``z``, in angstrom, are the coordinates that xarray reads; as it accepts only one size of an axis in a
group, coarser levels have a group of their own. Coarser levels are subsampled, not averaged, so that the first node of
every level is the first node of the map, and all levels have the same translation. Scale and translation are in
angstrom. A block has 16 x 128 x 128 values, 1 MiB; a shard (a file) has 8 blocks and is 16 planes thick. Several
processes may write different shards at the same time. Unit and provenance are the attribute ``vmdpotential``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from vmdpotential import extras, memory, progress
from vmdpotential.errors import BackendError, InputError
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.grid.stored import StoredGrid
from vmdpotential.io.files import text as files
from vmdpotential.io.maps.mapformat import (
    MapFormat,
    check_header,
    exact_lattice,
    map_title,
    provenance_entries,
    read_whole,
    write_layers,
)

#: Values of a block along z, y and x, and the blocks of a shard along each.
BLOCK, BLOCKS = (16, 128, 128), (1, 4, 2)

#: Most points of the coarsest level.
COARSEST = 2**21

_UNITS = {"angstrom": 1.0, "picometer": 0.01, "nanometer": 10.0, "micrometer": 1e4, "": 1.0}
_KEY = "vmdpotential"


def library() -> Any:
    """Return the package zarr.

    Raises
    ------
    BackendError
    """
    zarr = extras.load_optional("zarr", "Zarr maps", "large", "use .mrc or .dx")
    if int(zarr.__version__.split(".")[0]) < 3:
        raise BackendError(f"Zarr maps need zarr 3, not {zarr.__version__}", extras.install_command("large"))
    return zarr


class ZarrWriter:
    """Writer of a map to a folder, slab by slab (:class:`vmdpotential.sums.slabs.Sink` defines the order of calls).

    Slabs begin at multiples of 16 planes. They may be written in any order and by several processes, each with its
    own writer for the folder, after one of these has called :meth:`begin`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, lattice: Lattice) -> None:
        """Create the folder and the array of a map; former content is removed."""
        if self.path.is_dir():
            shutil.rmtree(self.path)
        group = library().create_group(str(self.path), zarr_format=3)
        _create(group, _level(0), lattice)
        for d, name in enumerate("xyz"):
            axis = group.create_array(name, shape=(lattice.shape[d],), dtype="<f8", dimension_names=[name])
            axis[:] = lattice.origin[d] + lattice.spacing[d] * np.arange(lattice.shape[d])
            axis.attrs["units"] = "angstrom"

    def put(self, start: int, values: NDArray[np.float32]) -> None:
        """Write the planes (nx, ny, n) from `start` on along z."""
        _write(library().open_group(str(self.path), mode="r+")["0"], start, values.transpose(2, 1, 0))

    def finish(self, grid: Grid) -> None:
        """Write the coarser levels, unit and provenance; the values of `grid` are not used."""
        group = library().open_group(str(self.path), mode="r+")
        lattice = grid.lattice
        steps = [1]
        while lattice.every(steps[-1]).size > COARSEST:
            steps.append(2 * steps[-1])
            _coarsen(group[_level(len(steps) - 2)],
                     _create(group, _level(len(steps) - 1), lattice.every(steps[-1])))
            progress.report_progress("coarser levels of the map", len(steps) / (len(steps) + 1))
        progress.report_progress("coarser levels of the map", 1.0)
        group.attrs.update({"ome": {"version": "0.5", "multiscales": [multiscale(grid, steps)]},
                            _KEY: provenance_entries(grid)})


def multiscale(grid: Grid, steps: list[int]) -> dict[str, Any]:
    """Return the OME-Zarr metadata of levels that hold every n-th node along each axis, for each n of `steps`."""
    lattice = grid.lattice
    translation = {"type": "translation", "translation": lattice.origin[::-1].tolist()}
    datasets = [{"path": _level(level), "coordinateTransformations": [
        {"type": "scale", "scale": (lattice.spacing[::-1] * step).tolist()}, translation]}
        for level, step in enumerate(steps)]
    return {
        "name": map_title(grid), "axes": [{"name": name, "type": "space", "unit": "angstrom"} for name in "zyx"],
        "datasets": datasets, "type": "subsampling",
        "metadata": {"description": "level n holds the nodes of level 0 whose indices are multiples of 2^n"},
    }


def _level(number: int) -> str:
    return f"levels/{number}" if number else "0"


def _create(group: Any, name: str, lattice: Lattice) -> Any:
    from zarr.codecs import BloscCodec

    shape = lattice.shape[::-1]
    chunks = tuple(min(n, most) for n, most in zip(shape, BLOCK, strict=True))
    shards = tuple(c * min(many, -(-n // c)) for n, c, many in zip(shape, chunks, BLOCKS, strict=True))
    return group.create_array(name, shape=shape, dtype="<f4", chunks=chunks, shards=shards, fill_value=0.0,
                              compressors=BloscCodec(cname="zstd", clevel=1, shuffle="shuffle"),
                              dimension_names=["z", "y", "x"])


def _write(array: Any, start: int, values: NDArray[np.float32]) -> None:
    """Write planes (n, ny, nx), one shard at a time, as zarr keeps the shards that it writes in memory."""
    if start % array.shards[0]:
        raise ValueError(f"a slab begins at a multiple of {array.shards[0]} planes, not at {start}")
    for low, high in _boxes((0, 0, 0), values.shape, array.shards):
        part = np.ascontiguousarray(values[tuple(map(slice, low, high))], "<f4")
        array[start + low[0] : start + high[0], low[1] : high[1], low[2] : high[2]] = part


def _coarsen(fine: Any, coarse: Any) -> None:
    """Fill an array with every second node of a finer one, which is read by blocks; shards are written whole."""
    for low, high in _boxes((0, 0, 0), coarse.shape, coarse.shards):
        shard = np.empty(np.subtract(high, low), np.float32)
        for first, last in _boxes(low, high, coarse.chunks):
            block = tuple(slice(a - c, b - c) for a, b, c in zip(first, last, low, strict=True))
            shard[block] = fine[tuple(slice(2 * a, 2 * b, 2) for a, b in zip(first, last, strict=True))]
        coarse[tuple(map(slice, low, high))] = shard


def _boxes(low: Sequence[int], high: Sequence[int],
           size: Sequence[int]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield the first and the exclusive last indices of boxes of a size that fill the box from `low` to `high`."""
    for first in product(*map(range, low, high, size)):
        yield first, tuple(min(a + n, b) for a, n, b in zip(first, size, high, strict=True))


def open_zarr(path: Path) -> StoredGrid:
    """Return the map of an OME-Zarr folder of any program, whose values are read in parts.

    Raises
    ------
    InputError
        When the path is not such a folder, or its axes are not x, y and z, or it states no scales.
    """
    zarr = library()
    if path.is_file():
        raise InputError(f"{path}: is a file, and a Zarr map is a folder", "give it the suffix of its format")
    if not path.exists():
        raise FileNotFoundError(path)
    if not any((path / name).is_file() for name in ("zarr.json", ".zattrs")):
        raise InputError(f"{path}: has no Zarr metadata (zarr.json), so it is not a Zarr map", "copy the whole folder")
    group = zarr.open(str(path), mode="r")
    attributes = dict(group.attrs)
    images = attributes.get("ome", attributes).get("multiscales")
    if not isinstance(group, zarr.Group) or not images:
        raise InputError(f"{path}: states no axes and scales as OME-Zarr does", "name a folder with 'multiscales'")
    image = images[0]
    arrays = [group[dataset["path"]] for dataset in image["datasets"]]
    located = [_place(path, image, dataset, array)
                    for dataset, array in zip(image["datasets"], arrays, strict=True)]
    lattice, order, index = located[0]
    for array in arrays:
        if array.dtype.kind not in "fiu":
            raise InputError(f"{path}: its values are not numbers")
        block = int(np.prod(array.chunks)) * array.dtype.itemsize
        if block > 2**24:
            memory.require(3 * block, f"reading {path}", "write it in smaller blocks", 0)
    # use only levels whose nodes are nodes of the finest level
    levels = {1: arrays[0]}
    for (coarse, *_), array in zip(located[1:], arrays[1:], strict=True):
        step = int(np.rint((coarse.spacing / lattice.spacing)[0]))
        same = lattice.every(max(step, 1))
        if (same.shape == coarse.shape and np.allclose(same.spacing, coarse.spacing, rtol=1e-9)
                and np.allclose(same.origin, coarse.origin, atol=1e-6 * lattice.spacing.min())):
            levels[step] = array
    header = attributes.get(_KEY, {})
    known = {str(name): unquote(str(text), errors="surrogateescape") for name, text in header.items()}
    check_header(path, known)

    def read(low: NDArray[np.int64], high: NDArray[np.int64], step: int) -> NDArray[np.float32]:
        with files.reading_file(path):
            best = max(n for n in levels if step % n == 0 and not (low % n).any())
            selection: list[Any] = list(index)
            for d, axis in enumerate(order):
                selection[axis] = slice(int(low[d]) // best, -(-int(high[d]) // best), step // best)
            try:
                values = np.asarray(levels[best][tuple(selection)], np.float32)
            except MemoryError:  # a damaged header of a block may state any size
                raise InputError(f"{path}: its blocks of values do not fit into memory",
                                 "copy it again, or write it with smaller blocks") from None
            return values.transpose(np.argsort(np.argsort(order)))

    return StoredGrid(exact_lattice(lattice, known), known or {"quantity": ""}, read, str(path))


def _place(path: Path, image: Mapping[str, Any], dataset: Mapping[str, Any],
           array: Any) -> tuple[Lattice, list[int], list[Any]]:
    """Return the lattice of an array, the numbers of its axes x, y and z, and an index into all its axes."""
    names = [axis["name"].lower() for axis in image["axes"]]
    if len(names) != array.ndim or any(names.count(name) != 1 for name in "xyz"):
        raise InputError(f"{path}: has the axes {', '.join(names)}; a map has x, y and z")
    order = [names.index(name) for name in "xyz"]
    index: list[Any] = [0] * array.ndim
    if any(n > 1 for axis, n in enumerate(array.shape) if axis not in order):
        raise InputError(f"{path}: contains several maps (axes {', '.join(names)})", "keep one channel and time")
    scale, translation = np.ones(array.ndim), np.zeros(array.ndim)
    for step in [*dataset.get("coordinateTransformations", ()), *image.get("coordinateTransformations", ())]:
        if step["type"] == "scale":
            scale, translation = scale * step["scale"], translation * step["scale"]
        elif step["type"] == "translation":
            translation = translation + step["translation"]
    units = [_UNITS.get(image["axes"][axis].get("unit") or "") for axis in order]
    if None in units:
        raise InputError(f"{path}: its axes are in {image['axes'][order[0]].get('unit')}", "write them in angstrom")
    factors = np.array(units, np.float64)
    nx, ny, nz = (int(array.shape[axis]) for axis in order)
    return Lattice(translation[order] * factors, scale[order] * factors, (nx, ny, nz)), order, index


ZARR = MapFormat(lambda path: read_whole(path, open_zarr(path)),
                 lambda path, grid: write_layers(ZarrWriter(path), grid, BLOCK[0]),
                 lambda path, lattice: library(), open_zarr, ZarrWriter)
