"""Zarr: what other programs read in them, and parts of maps."""

import json
import os
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import zarr
from map_files import PROVENANCE, make

from vmdpotential.errors import InputError
from vmdpotential.frontend import cli
from vmdpotential.grid import stored
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.grid.means import mean_over_planes
from vmdpotential.grid.planes import Plane, values_on
from vmdpotential.grid.stored import StoredGrid
from vmdpotential.io import maps
from vmdpotential.io.maps import open_map, read_map, write_map
from vmdpotential.molecule.cell import Cell
from vmdpotential.plugins.formats import omezarr
from vmdpotential.plugins.web import content

LARGE = [".zarr", ".mrc"]


@pytest.fixture
def small_levels(monkeypatch):
    """Several resolutions of small maps."""
    monkeypatch.setattr(omezarr, "COARSEST", 500)


# --- what others read ----------------------------------------------------------------------------


def test_zarr_is_ome_zarr(tmp_path, small_levels):
    grid = make(shape=(21, 150, 19))
    write_map(grid, tmp_path / "m.ome.zarr")
    text = json.loads((tmp_path / "m.ome.zarr" / "zarr.json").read_text())
    assert (text["zarr_format"], text["node_type"]) == (3, "group")
    ome = text["attributes"]["ome"]
    assert ome["version"] == "0.5"
    image, = ome["multiscales"]
    assert image["axes"] == [{"name": name, "type": "space", "unit": "angstrom"} for name in "zyx"]
    assert len(image["datasets"]) == 4
    group = zarr.open_group(str(tmp_path / "m.ome.zarr"), mode="r")
    zyx = grid.values.transpose(2, 1, 0)
    for level, dataset in enumerate(image["datasets"]):
        scale, translation = dataset["coordinateTransformations"]
        assert (scale["type"], translation["type"]) == ("scale", "translation")
        assert scale["scale"] == [1.25 * 2**level, 0.75 * 2**level, 0.5 * 2**level]
        assert translation["translation"] == [7.5, 4, -3]  # of the first node, at every level
        array = group[dataset["path"]]
        assert array.metadata.dimension_names == ("z", "y", "x")
        assert array.dtype == np.float32
        assert array.shards is not None
        np.testing.assert_array_equal(array[:], zyx[:: 2**level, :: 2**level, :: 2**level])
    ours = text["attributes"]["vmdpotential"]
    assert (ours["unit"], ours["temperature"], ours["method"]) == ("kT/e", "298.15", "cutoff")


def test_ome_zarr_of_another_program(tmp_path):
    """Other axes, a channel, nanometers, and levels that are means of blocks, whose nodes are elsewhere."""
    values = np.random.default_rng(1).normal(size=(1, 8, 6, 4)).astype("f8")  # c, x, y, z
    group = zarr.create_group(str(tmp_path / "m.zarr"))
    group.create_array("s0", data=values, chunks=(1, 4, 4, 4))
    group.create_array("s1", data=np.zeros((1, 4, 3, 2)))
    axes = [{"name": "c", "type": "channel"}, *({"name": n, "type": "space", "unit": "nanometer"} for n in "xyz")]
    group.attrs["ome"] = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": [
        {"path": "s0", "coordinateTransformations": [
            {"type": "scale", "scale": [1, 0.1, 0.2, 0.3]}, {"type": "translation", "translation": [0, 1, 2, 3]}]},
        {"path": "s1", "coordinateTransformations": [
            {"type": "scale", "scale": [1, 0.2, 0.4, 0.6]},
            {"type": "translation", "translation": [0, 1.05, 2.1, 3.15]}]}],
        "coordinateTransformations": [{"type": "scale", "scale": [1, 2, 2, 2]}]}]}
    grid = read_map(tmp_path / "m.zarr")
    np.testing.assert_allclose(grid.lattice.spacing, [2, 4, 6])
    np.testing.assert_allclose(grid.lattice.origin, [20, 40, 60])
    np.testing.assert_array_equal(grid.values, values[0].astype(np.float32))
    np.testing.assert_array_equal(
        open_map(tmp_path / "m.zarr", 0).window((0, 0, 0), (8, 6, 4), 2).values, grid.values[::2, ::2, ::2])


def test_what_is_no_large_map(tmp_path):
    (tmp_path / "empty.zarr").mkdir()
    (tmp_path / "text.zarr").write_text("x")
    for name, message in (("empty.zarr", "no Zarr metadata"), ("text.zarr", "is a file"), ("none.zarr", "no such")):
        with pytest.raises(InputError, match=message):
            read_map(tmp_path / name)


# --- parts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", LARGE)
def test_parts_of_a_stored_map(tmp_path, monkeypatch, small_levels, suffix):
    grid = make(shape=(40, 50, 33), provenance=replace(PROVENANCE, cell=None))
    write_map(grid, tmp_path / f"m{suffix}")
    actual = open_map(tmp_path / f"m{suffix}", 0)
    assert isinstance(actual, StoredGrid)
    assert actual.header() == grid.header()
    np.testing.assert_array_equal(actual.values, grid.values)
    for low, high, step in (((3, 4, 5), (30, 40, 20), 1), ((4, 4, 8), (30, 41, 21), 2), ((1, 2, 3), (40, 50, 33), 4)):
        part, expected = actual.window(low, high, step), grid.window(low, high, step)
        np.testing.assert_array_equal(part.values, expected.values)
        np.testing.assert_array_equal(part.lattice.origin, expected.lattice.origin)
        np.testing.assert_array_equal(part.lattice.spacing, expected.lattice.spacing)
        assert part.provenance == grid.provenance
    monkeypatch.setattr(stored, "WINDOW_NODES", 3000)  # many windows
    points = np.random.default_rng(1).uniform(grid.lattice.origin - 1, grid.lattice.last + 1, (300, 3))
    np.testing.assert_allclose(actual.sample(points), grid.sample(points), rtol=1e-9, atol=1e-9)
    assert np.isnan(actual.sample(points)).any()
    for plane in (Plane.across(2, 10.0), Plane.through(points.mean(0), (1, 1, 0.3))):
        np.testing.assert_allclose(values_on(actual, plane)[0], values_on(grid, plane)[0], rtol=1e-9, atol=1e-9)
    for axis in range(3):
        of_found, of_grid = (mean_over_planes(item, axis)[1] for item in (actual, grid))
        np.testing.assert_allclose(of_found, of_grid, rtol=1e-6, atol=1e-6)
    again = open_map(tmp_path / f"m{suffix}", grid.lattice.size)
    assert not isinstance(again, StoredGrid)  # small ones are read as ever


@pytest.mark.slow
def test_a_slice_reads_what_its_plane_needs(tmp_path, monkeypatch):
    """One layer of blocks of ten, once for all that a figure asks of it."""
    grid = make(shape=(64, 64, 160), spacing=0.5, origin=(0, 0, 0))
    write_map(grid, tmp_path / "m.zarr")
    read = []
    monkeypatch.setattr(stored, "WINDOW_NODES", 1000)
    monkeypatch.setattr(maps, "open_map", partial(open_map, whole=0))
    window = StoredGrid._window

    def noted(self, low, high, step=1):
        read.append((int(low[2]), int(high[2])))
        return window(self, low, high, step)

    monkeypatch.setattr(StoredGrid, "_window", noted)
    assert cli.main(f"slice {tmp_path}/m.zarr --plane z=40.1 -o {tmp_path}/m.png --dpi 60".split()) == 0
    assert {n for part in read for n in range(*part)} <= set(range(78, 84))
    once = len(read)
    result = open_map(tmp_path / "m.zarr", 0)
    read.clear()
    for _ in range(3):
        values_on(result, Plane.across(2, 40.1))
    assert len(read) == once


def test_view_takes_a_coarser_level(tmp_path, monkeypatch, small_levels):
    grid = make(shape=(60, 61, 62), spacing=0.5, origin=(0, 0, 0))
    write_map(grid, tmp_path / "m.zarr")
    result = open_map(tmp_path / "m.zarr", 0)
    around = np.array([[5.0, 5, 5], [25, 25, 25]])
    part = content.cut(result, around, 3.0, 8000)
    assert part.lattice.spacing.tolist() == [2.0] * 3
    np.testing.assert_array_equal(part.values, grid.values[4:57:4, 4:57:4, 4:57:4])
    assert part.lattice.origin.tolist() == [2.0] * 3
    # a map in memory keeps its own points, and far from the atoms all of it is taken
    assert content.cut(grid, around, 3.0, 8000).lattice.spacing.tolist() == [0.5] * 3
    assert content.cut(result, around + 100, 3.0, 10**6).lattice.shape == (60, 61, 62)
    assert content.map_content(result, "m", around, 3.0, 1000)["thinned"]


@pytest.mark.parametrize("suffix", [".zarr", ".mrc"])
def test_values_that_are_not_finite_are_found_in_parts(tmp_path, suffix):
    grid = make(shape=(20, 20, 20))
    write_map(grid, tmp_path / f"m{suffix}")
    if suffix == ".mrc":
        with open(tmp_path / "m.mrc", "r+b") as file:
            file.seek(-4, os.SEEK_END)
            file.write(np.float32(np.nan).tobytes())
    else:
        array = zarr.open_group(str(tmp_path / "m.zarr"))["0"]
        array[19, 19, 18:] = np.inf, -np.inf  # their sum would be a warning of numpy
    result = open_map(tmp_path / f"m{suffix}", 0)
    result.window((0, 0, 0), (20, 20, 18))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError):
            result.window((0, 0, 0), (20, 20, 20))


def test_a_zarr_map_opens_in_xarray_with_its_coordinates(tmp_path):
    import xarray

    lattice = Lattice(np.array([-8.0, -9, -10]), np.array([0.6, 0.7, 0.8]), (130, 140, 150))
    grid = Grid(lattice, np.random.default_rng(3).normal(size=lattice.shape).astype(np.float32), "kT/e", 298.15)
    write_map(grid, tmp_path / "map.zarr")
    opened = xarray.open_zarr(tmp_path / "map.zarr", consolidated=False)
    values = opened["0"]
    assert values.dims == ("z", "y", "x")
    for d, axis in enumerate("xyz"):
        np.testing.assert_allclose(opened[axis], lattice.origin[d] + lattice.spacing[d] * np.arange(lattice.shape[d]))
    at = grid.sample(np.array([[1.3, 2.2, 3.1]]))
    np.testing.assert_allclose(values.interp(x=1.3, y=2.2, z=3.1), at[0], rtol=1e-5)
    assert (tmp_path / "map.zarr" / "levels" / "1").is_dir()


def test_the_content_tells_the_format(tmp_path):
    write_map(make(), tmp_path / "m.zarr")
    (tmp_path / "m.zarr").rename(tmp_path / "other")
    assert read_map(tmp_path / "other").provenance == PROVENANCE


def test_profile_of_a_slanted_cell_in_parts(tmp_path, monkeypatch):
    cell = tuple(Cell.from_parameters(20, 20, 30, 90, 90, 60).vectors.ravel().tolist())
    grid = make(shape=(60, 40, 70), spacing=(0.5, 0.5, 0.5), provenance=replace(PROVENANCE, cell=cell))
    write_map(grid, tmp_path / "m.zarr")
    monkeypatch.setattr(stored, "WINDOW_NODES", 16 * 60 * 40)
    result = open_map(tmp_path / "m.zarr", 0)
    assert len(list(result.slabs())) == 5
    for axis in (0, 2):
        of_found, of_grid = (mean_over_planes(item, axis)[1] for item in (result, grid))
        np.testing.assert_allclose(of_found, of_grid, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("suffix", LARGE)
def test_maps_read_in_parts_are_added_and_subtracted(tmp_path, suffix):
    grid = make(shape=(8, 7, 6))
    write_map(grid, tmp_path / f"m{suffix}")
    stored_map = open_map(tmp_path / f"m{suffix}", 0)
    for difference in (stored_map - grid, grid - stored_map, stored_map - stored_map):
        np.testing.assert_allclose(difference.values, 0, atol=1e-5)
    np.testing.assert_allclose((2 * stored_map + stored_map).values, 3 * grid.values, rtol=1e-5)
    other = make(shape=(5, 5, 5))
    assert (stored_map - other).lattice.shape == (8, 7, 6)
