"""Densities over frames against numpy's histograms, MDAnalysis, and numbers of atoms; sites; the command."""

import csv
import json
from dataclasses import replace

import MDAnalysis
import numpy as np
import pytest
from helpers import shell
from MDAnalysis.analysis.density import DensityAnalysis
from MDAnalysisTests import datafiles

from vmdpotential import io
from vmdpotential.errors import InputError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.io.trajectories.frames import LoadedFrames, Trajectory
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.selection import select
from vmdpotential.molecule.structure import Structure
from vmdpotential.plugins.densities import counting
from vmdpotential.plugins.densities.over_frames import DensityOptions, plan_density
from vmdpotential.plugins.densities.quantities import counted_atoms
from vmdpotential.plugins.densities.sites import find_sites

NOTHING = {"group": None, "name": "", "rotate": False}
OXYGENS = "//*/(SOL)/OW"
TRICLINIC = Cell.from_parameters(14, 15, 16, 70, 65, 80)


def atoms(positions, cell=None, element="O"):
    count = len(positions)
    return Structure(np.array(positions, float), np.full(count, element), np.full(count, "XYZ"), np.arange(count),
                     np.arange(count), elements=np.full(count, element), cell=cell)


def density(structure, frames, of="number", unit="auto", chosen=None, statistics=("mean", "std", "sem"), size=0,
            bulk=None, **options):
    mask = np.ones(len(structure), bool) if chosen is None else chosen
    plan = {name: options.pop(name) for name in ("alignment", "fixed_cell", "lattice") if name in options}
    planning = plan_density(structure, frames, counted_atoms(structure, mask, of, unit),
                            DensityOptions(**{"boundary": "open", "bulk": bulk, **options}), statistics=statistics,
                            **{"alignment": NOTHING, **plan})
    return planning, planning.merge(replace(planning, size=size or planning.size).run())


def edges(lattice):
    return [np.append(axis, axis[-1] + h) - h / 2 for axis, h in zip(lattice.axes(), lattice.spacing, strict=True)]


@pytest.fixture(scope="module")
def adk():
    structure = io.read_structure(datafiles.GRO)
    return structure, Trajectory(datafiles.XTC, len(structure), single=True), select(structure, OXYGENS)


@pytest.mark.slow
def test_counts_are_those_of_a_histogram_and_of_mdanalysis(adk):
    structure, frames, oxygens = adk
    universe = MDAnalysis.Universe(datafiles.GRO, datafiles.XTC)
    theirs = DensityAnalysis(universe.select_atoms("resname SOL and name OW"), delta=1.0, gridcenter=[40.0, 40.0, 30.0],
                             xdim=50.0, ydim=48.0, zdim=52.0)
    theirs.run()
    result = theirs.results.density
    lattice = Lattice(np.array([e[0] for e in result.edges]) + 0.5, np.ones(3), result.grid.shape)
    _, ours = density(structure, frames, chosen=oxygens, lattice=lattice)
    assert np.abs(ours.grids["mean"].values - result.grid).max() < 1e-7  # of counts over 10, in float32
    counts = [np.histogramdd(frame.positions[oxygens], edges(lattice))[0] for frame in frames]
    assert np.array_equal(ours.grids["mean"].values, np.mean(counts, axis=0).astype(np.float32))
    assert np.abs(ours.grids["std"].values - np.std(counts, axis=0)).max() < 1e-6


@pytest.mark.parametrize("cell", [Cell.from_parameters(10, 12, 9), TRICLINIC])
def test_every_image_counts_once(cell, engine):
    rng = np.random.default_rng(1)
    frames = [(rng.uniform(-30, 40, (300, 3)), cell) for _ in range(4)]
    planning, result = density(atoms(frames[0][0], cell), LoadedFrames("frames", frames), boundary="periodic",
                               spacing=1.0,
                              engine=engine.name)
    lattice = planning.work.lattice
    low, high = (np.array([edge[k] for edge in edges(lattice)]) for k in (0, -1))
    counts = [np.histogramdd(cell.images_in_box(positions, low, high)[0], edges(lattice))[0] for positions, _ in frames]
    assert np.abs(result.grids["mean"].values - np.mean(counts, axis=0) / lattice.spacing.prod()).max() < 1e-6
    if cell.orthogonal:
        assert result.total == 300


def test_a_cell_that_changes_keeps_fractions(engine):
    rng = np.random.default_rng(2)
    fractions = rng.uniform(size=(500, 3))
    cells = [Cell.from_parameters(10 * s, 11 * s, 12 / s) for s in (1.0, 1.03, 0.96)]
    frames = [(fractions @ cell.vectors, cell) for cell in cells]
    _, result = density(atoms(frames[0][0], cells[0]), LoadedFrames("frames", frames), boundary="periodic", spacing=1.0,
                       engine=engine.name)
    mean = np.mean([cell.vectors for cell in cells], axis=0)
    grid = result.grids["mean"]
    assert grid.lattice.spacing * grid.lattice.shape == pytest.approx(np.diagonal(mean))
    assert grid.values.sum() * grid.lattice.spacing.prod() == pytest.approx(500, rel=1e-5)
    assert result.grids["std"].values.max() < 1e-6  # each atom at one node in all frames
    sheared = [(fractions @ cell.vectors, cell) for cell in (TRICLINIC, Cell.from_parameters(14, 15, 16, 71, 64, 80))]
    _, result = density(atoms(sheared[0][0], TRICLINIC), LoadedFrames("frames", sheared), boundary="periodic",
                       engine=engine.name)
    assert result.grids["std"].values.max() < 1e-6


def test_relative_densities_are_one_on_average(adk, engine):
    structure, frames, oxygens = adk
    options = {"boundary": "periodic", "engine": engine.name,
               "alignment": {"group": select(structure, "protein"), "name": "protein"}}
    _, result = density(structure, frames.part(range(3)), "number", "relative", oxygens, **options)
    _, number = density(structure, frames.part(range(3)), chosen=oxygens, **options)
    assert np.allclose(result.grids["mean"].values, number.grids["mean"].values / result.bulk, rtol=1e-6)
    assert result.bulk == pytest.approx(11084 / Cell(result.cell).volume)


@pytest.mark.parametrize(("of", "unit", "total"), [
    ("mass", "g/cm^3", 3 * 15.999 * 1.66053907), ("number", "mol/L", 3 * 1660.539), ("electrons", "e/A^3", 24)])
def test_units(of, unit, total):
    structure = atoms([[0, 0, 0], [1.2, 0, 0], [0, 2.4, 0.3]])
    _, result = density(structure, LoadedFrames("frames", [(structure.positions, None)]), of, unit, spacing=0.5)
    grid = result.grids["mean"]
    assert grid.values.sum() * grid.lattice.spacing.prod() == pytest.approx(total, rel=1e-4)
    assert grid.unit == unit


@pytest.mark.slow
def test_gaussians_are_the_convolution(engine):
    rng = np.random.default_rng(4)
    cell = Cell.from_parameters(9, 10, 11)
    positions = rng.uniform(0, 30, (20, 3))
    _, result = density(atoms(positions, cell), LoadedFrames("frames", [(positions, cell)]), boundary="periodic",
                        spacing=0.5,
                       smear=0.8, engine=engine.name)
    grid = result.grids["mean"]
    assert grid.values.sum() * grid.lattice.spacing.prod() == pytest.approx(20, rel=1e-5)
    points = grid.lattice.points()
    bells = sum(np.exp(-(cell.minimum_image(points - position) ** 2).sum(1) / (2 * 0.8**2)) for position in positions)
    exact = bells / (2 * np.pi * 0.8**2) ** 1.5
    assert np.abs(grid.values.ravel() - exact).max() < 2e-3 * exact.max()


@pytest.mark.slow
def test_occupancy_is_the_fraction_of_frames_within_a_radius(engine):
    frames = [(np.array([[0.0, 0, 0], [1.0, 0, 0]]), None), (np.array([[0.0, 0, 0], [9.0, 0, 0]]), None)]
    lattice = Lattice(np.full(3, -4.0), np.full(3, 0.5), (30, 17, 17))
    _, actual = density(atoms(frames[0][0]), LoadedFrames("frames", frames), "occupancy", lattice=lattice,
                        engine=engine.name)
    points = lattice.points()
    expected = np.mean([(np.linalg.norm(points[:, None] - places, axis=2) <= 1.52).any(1) for places, _ in frames], 0)
    assert np.array_equal(actual.grids["mean"].values.ravel(), expected.astype(np.float32))


def test_sites_are_where_atoms_are():
    rng = np.random.default_rng(7)
    places, cell = np.array([[1.0, 1.0, 1.0], [8.9, 5.0, 5.0], [4.0, 8.0, 2.0]]), Cell.from_parameters(9, 10, 11)
    frames = [(places + rng.normal(0, 0.2, places.shape), cell) for _ in range(100)]
    _, result = density(atoms(places, cell), LoadedFrames("frames", frames), boundary="periodic", spacing=0.5)
    grid = result.grids["mean"]
    sites = find_sites(grid.values.astype(float), None, grid.lattice, volume=grid.lattice.spacing.prod(), radius=1.4,
                       threshold=0.01, cell=cell, wraps=True)
    assert len(sites) == 3
    for site in sites:
        assert np.linalg.norm(cell.minimum_image(places - site.position), axis=1).min() < 0.15
        assert site.occupancy == pytest.approx(1, abs=0.02)


def test_the_command(tmp_path, capsys):
    out, sites = tmp_path / "water.dx", tmp_path / "sites.csv"
    words = ["density", datafiles.GRO, datafiles.XTC, "--atoms", OXYGENS, "--unit", "relative", "--stat", "mean,std",
             "--padding", 1, "--sites", sites, "-o", out]
    code, text, err = shell(capsys, *words, "--json")
    assert code == 0, err
    data = json.loads(text)
    assert (data["frames"], data["unit"], data["atoms"]) == (10, "relative", 11084)
    mean, deviation = io.read_map(out), io.read_map(tmp_path / "water_std.dx")
    assert mean.unit == deviation.unit == "relative"
    assert mean.values.max() == pytest.approx(data["maximum"], rel=1e-5)
    with sites.open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(data["sites"]) == 100
    assert shell(capsys, *words)[0] == 2  # files that exist


@pytest.mark.parametrize(("options", "parameter"), [
    (["--of", "occupancy", "--smear", 1], "smear"), (["--of", "mass", "--unit", "mol/L"], "unit"),
    (["--of", "mass", "--sites", "x.csv"], "sites"), (["--motion", "rotation", "--fit", "none"], "motion"),
    (["--motion", "rotation", "--boundary", "periodic"], "motion"), (["--stat", "median"], "stat"),
    (["--unit", "relative", "--boundary", "open"], "bulk"),
])
def test_options_that_do_not_fit(options, parameter, tmp_path, capsys):
    code, _, err = shell(capsys, "density", datafiles.GRO, datafiles.XTC, "--frames", "0:1", "--spacing", 4, *options,
                         "-o", tmp_path / "out.dx")
    assert code == 2
    assert f"--{parameter}" in err
    assert not list(tmp_path.iterdir())


def test_what_is_not_known_is_refused():
    unknown = atoms([[0.0, 0, 0]], element="")
    for of in ("mass", "electrons", "occupancy"):
        with pytest.raises(InputError):
            counted_atoms(unknown, np.ones(1, bool), of)


@pytest.mark.parametrize("of", ["number", "mass"])
def test_lists_of_any_length_give_the_same_sums(adk, of, monkeypatch):
    structure, frames, _ = adk
    whole = density(structure, frames.part(range(3)), of, size=3)[1]
    monkeypatch.setattr(counting, "LISTED", 1)  # then each frame is summed by itself
    parts = density(structure, frames.part(range(3)), of, size=3)[1]
    for name in ("mean", "std"):
        np.testing.assert_allclose(parts.grids[name].values, whole.grids[name].values, rtol=1e-6)
    assert parts.total == pytest.approx(whole.total, rel=1e-12)


def test_atoms_on_edges_of_the_cell_are_not_lost():
    cell = Cell.from_parameters(7.3, 9.1, 11.7)
    shifts = np.array([[i, j, k] for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1)], float)
    structure = atoms(np.concatenate([(shifts + half) @ cell.vectors for half in (0.0, 0.5, 1e-17)]), cell)
    for spacing in (0.7, 1.0, 1.3):
        _, result = density(structure, LoadedFrames("frames", [(structure.positions, cell)]), boundary="periodic",
                           spacing=spacing)
        assert result.total == len(structure)
