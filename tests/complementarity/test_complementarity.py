"""Complementarity of faces: closed forms, sums and covariances by numpy, mirrored molecules, and a real dimer."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import trimesh
from helpers import charges_at
from scipy.ndimage import gaussian_filter
from scipy.stats import spearmanr

import vmdpotential as vp
from vmdpotential.errors import UsageError
from vmdpotential.frontend import cli
from vmdpotential.maps.options import MethodOptions
from vmdpotential.plugins.complementarity import correlation
from vmdpotential.plugins.complementarity.book import book_of_faces
from vmdpotential.plugins.complementarity.correlation import FaceSample, agreements
from vmdpotential.plugins.complementarity.faces import face_value, find_interface
from vmdpotential.units import coulomb_constant

DATA = Path(__file__).parents[2] / "data"
WATER = MethodOptions()
UNIFORM = MethodOptions(dielectric=4.0, parameters={"inside": 4.0, "salt": 0.0})


def carbons(positions, charges):
    """Carbon atoms, each a residue, with a radius of 1.7 A."""
    made = charges_at(positions, charges)
    count = len(positions)
    return replace(made, elements=["C"] * count, residue_ids=np.arange(count), residue_index=np.arange(count),
                   radii=np.full(count, 1.7))


def slab(sign=1, seed=5):
    """Two layers of atoms on both sides of z = 0, and charges 6 A from that plane, which are mirrored."""
    x = np.arange(-2, 3) * 2.4
    plane = np.array([(a, b) for a in x for b in x])
    positions, charges = [], []
    for side, factor in ((1, 1), (-1, sign)):
        for depth in (1.7, 4.1, 6.5):
            positions.append(np.column_stack([plane, np.full(len(plane), side * depth)]))
            charges.append(np.zeros(len(plane)))
        charges[-1][:] = factor * np.random.default_rng(seed).uniform(-1, 1, len(plane))
    return carbons(np.concatenate(positions), np.concatenate(charges)), np.arange(6 * len(plane)) < 3 * len(plane)


def interface_of(structure, first, solution=WATER, **options):
    return find_interface(structure, first, ~first, solution, **{"spacing": 1.0, "mesh_spacing": 0.5, **options})


def test_the_hidden_part_of_two_balls_is_a_cap():
    """The probe that touches a ball overlaps with the other one within a cone: 2 pi R^2 (1 - d / 2 (R + p))."""
    distance, radius, probe = 4.0, 1.7, 1.4
    structure = carbons([[0, 0, 0], [0, 0, distance]], [1.0, -1.0])
    made = interface_of(structure, np.array([True, False]), mesh_spacing=0.1)
    cap = 2 * np.pi * radius**2 * (1 - distance / (2 * (radius + probe)))
    for face in made.faces:
        assert face.areas.sum() == pytest.approx(cap, rel=0.02)
    assert made.axes[2] == pytest.approx([0, 0, 1], abs=0.02)


def test_in_a_uniform_medium_potentials_are_sums_and_the_value_is_a_covariance():
    rng = np.random.default_rng(3)
    along = np.arange(5) * 3.0
    positions = np.concatenate([np.stack([along, np.full(5, y), 0 * along], 1) for y in (0.1, 3.5)])
    charges = rng.uniform(-1, 1, 10)
    first = np.arange(10) < 5
    made = interface_of(carbons(positions, charges), first, UNIFORM, spacing=0.5)
    for n, (face, own) in enumerate(zip(made.faces, (first, ~first), strict=True)):
        distances = np.linalg.norm(face.places[:, None] - positions, axis=2)
        sums = [coulomb_constant("kT/e", 298.15) / 4 * (charges[part] / distances[:, part]).sum(1)
                for part in (own, ~own)]
        assert face.own == pytest.approx(sums[0], rel=2e-3, abs=2e-3 * np.abs(sums[0]).max())
        assert face.partner == pytest.approx(sums[1], rel=2e-3, abs=2e-3 * np.abs(sums[1]).max())
        both = np.cov(*sums, aweights=face.areas)
        assert made.pearson[n].value == pytest.approx(-both[0, 1] / np.sqrt(both[0, 0] * both[1, 1]), abs=2e-3)
        assert face_value(face.own, face.partner, face.areas) == pytest.approx(made.pearson[n].value, abs=1e-12)
    assert made.pearson[2].value == pytest.approx(np.mean([each.value for each in made.pearson[:2]]))


@pytest.mark.parametrize(("sign", "value"), [(-1, 1.0), (1, -1.0)])
def test_mirrored_charges_of_opposite_sign_give_1_and_equal_ones_minus_1(sign, value):
    """Exactly so on the mirror plane, and on the whole faces, which are next to it, nearly so."""
    structure, first = slab(sign)
    made = interface_of(structure, first)
    grid = np.array([(x, y, 0.0) for x in np.arange(-5, 6.0) for y in np.arange(-5, 6.0)])
    a, b = (vp.potential_at(replace(structure, charges=np.where(part, structure.charges, 0.0)), grid, method="pb",
                            spacing=1.0) for part in (first, ~first))
    on_plane, by_ranks = agreements([FaceSample(grid[:, :2], np.ones(len(grid)), a, b)] * 2)
    assert on_plane[2].value == pytest.approx(value, abs=1e-4)
    assert by_ranks[2].value == pytest.approx(value, abs=1e-3)
    assert made.pearson[2].value == pytest.approx(value, abs=0.05)
    assert made.pearson[0].value == pytest.approx(made.pearson[1].value, abs=1e-3)


def test_potentials_on_faces_are_those_at_points():
    structure, first = slab()
    made = interface_of(structure, first)
    for face, part in zip(made.faces, (first, ~first), strict=True):
        for potential, charged in ((face.own, part), (face.partner, ~part)):
            alone = replace(structure, charges=np.where(charged, structure.known_charges, 0.0))
            expected = vp.potential_at(alone, face.places, method="pb", boundary="open", atoms="all", spacing=1.0)
            assert potential == pytest.approx(expected, abs=1e-5 * np.abs(expected).max())


def test_exchanging_the_molecules_or_scaling_charges_changes_nothing():
    structure, first = slab(-1)
    more = np.where(first, 0.1, 0.0) * np.sin(np.arange(len(first)))
    structure = replace(structure, charges=structure.charges + more)
    made = interface_of(structure, first)
    swapped = interface_of(structure, ~first)
    for kind in ("pearson", "spearman"):
        ours, theirs = getattr(made, kind), getattr(swapped, kind)
        for n, m in ((0, 1), (1, 0), (2, 2)):
            assert ours[n].value == pytest.approx(theirs[m].value, abs=1e-12)
            assert ours[n].error == pytest.approx(theirs[m].error, abs=1e-12)
    assert made.area == pytest.approx(swapped.area)
    assert made.axes[2] == pytest.approx(-swapped.axes[2])
    scaled = interface_of(replace(structure, charges=structure.charges * np.where(first, 3.0, 1.0)), first)
    for n in range(3):
        assert scaled.pearson[n].value == pytest.approx(made.pearson[n].value, abs=1e-4)
        assert scaled.spearman[n].value == pytest.approx(made.spearman[n].value, abs=1e-3)
    reversed_ = interface_of(replace(structure, charges=structure.charges * np.where(first, -1.0, 1.0)), first)
    assert reversed_.pearson[2].value == pytest.approx(-made.pearson[2].value, abs=1e-4)


def test_ranks_are_those_of_scipy_and_weights_are_repetitions():
    rng = np.random.default_rng(8)
    x, y, times = rng.integers(0, 9, 50).astype(float), rng.normal(size=50), rng.integers(1, 5, 50)
    y += 0.3 * x
    places = rng.uniform(0, 30, (50, 2))
    one = FaceSample(places, times.astype(float), x, y)
    _, (ranked, *_) = agreements([one, one])
    assert ranked.value == pytest.approx(-spearmanr(np.repeat(x, times), np.repeat(y, times)).statistic, abs=1e-12)


@pytest.mark.slow
def test_intervals_know_that_neighbouring_points_are_alike(monkeypatch):
    """Of random potentials with a known correlation; as independent points they would have errors ten times smaller."""
    monkeypatch.setattr(correlation, "RESAMPLES", 80)
    rng, x, rho, runs = np.random.default_rng(4), (np.arange(96) - 48) * 0.5, 0.6, 40
    places = np.stack(np.meshgrid(x, x, indexing="ij"), -1).reshape(-1, 2)
    disc = (places**2).sum(1) < 16**2

    def smooth():
        made = gaussian_filter(rng.normal(size=(96, 96)), 5, mode="wrap").ravel()
        return made / made.std()

    held, errors, values = 0, [], []
    for _ in range(runs):
        own, other = smooth(), smooth()
        face = FaceSample(places[disc], np.ones(disc.sum()), own[disc],
                          (np.sqrt(1 - rho**2) * other - rho * own)[disc])
        mean = agreements([face, face])[0][2]
        low, high = mean.interval
        held += low <= rho <= high
        errors.append(mean.error)
        values.append(mean.value)
    assert held >= 0.8 * runs
    assert 0.6 * np.std(values) < np.mean(errors) < 1.6 * np.std(values)
    assert np.mean(errors) > 5 * (1 - rho**2) / np.sqrt(disc.sum())


def test_a_small_face_has_no_error():
    made = interface_of(carbons([[0, 0, 0], [0, 0, 3.5]], [1.0, -1.0]), np.array([True, False]))
    assert made.pearson[2].error is None
    assert made.pearson[2].interval is None


def test_pages_are_turned_apart_about_an_axis_in_the_plane_of_the_interface():
    structure, first = slab(-1)
    made = interface_of(structure, first)
    book = book_of_faces(made, ("one", "two"))
    (right, up, towards), (right_2, up_2, towards_2) = book.page_axes()
    for one, other, factor in ((right, right_2, -1), (up, up_2, 1), (towards, towards_2, -1)):
        assert one == pytest.approx(factor * other)
    assert np.cross(right, up) == pytest.approx(towards)
    assert towards == pytest.approx(made.axes[2])
    last = structure.positions[:, 0].max()
    mesh, values = book.mesh(last)
    assert len(values) == len(mesh.vertices)
    assert mesh.vertices[:, 0].min() > last  # it hides no atoms
    pages = np.split(mesh.vertices, np.cumsum([len(page.values) for row in book.rows for page in row])[:-1])
    assert pages[0][:, 0].max() < pages[1][:, 0].min()
    assert pages[2][:, 1].max() < pages[0][:, 1].min()
    coloured = np.sort(values[np.isfinite(values)])
    assert coloured == pytest.approx(np.sort(np.concatenate([part for face in made.faces
                                                             for part in (face.own, face.partner)])))


@pytest.mark.parametrize("between", [["//A", "//A"], ["//A"], ["//A", "//A/1"]])
def test_selections_that_are_no_two_molecules_are_refused(between):
    with pytest.raises(UsageError) as caught:
        complementarity_of(between)
    assert caught.value.parameter == "between"


def complementarity_of(between, **options):
    made = carbons([[0, 0, 0], [0, 0, 4.0]], [1.0, -1.0])
    return vp.complementarity(replace(made, chain_ids=["A", "B"], residue_ids=[1, 2]), between=between, spacing=1.0,
                              **options)


def test_the_caption_has_the_solution_that_was_solved():
    between = ["//A", "//B"]
    caption = complementarity_of(between, set={"salt": 0.0, "inside": 4.0}, dielectric=40.0).caption
    for words in ("no salt", "dielectric 40", "4 inside"):
        assert words in caption
    assert "0.2 M" in complementarity_of(between, set={"salt": 0.2}).caption


def test_waters_are_left_out(caplog):
    """Those of a deposited entry have the chain of a molecule, and the continuum is in their place."""
    dry = carbons([[0, 0, 0], [0, 0, 4.0]], [1.0, -1.0])
    wet = carbons([[0, 0, 0], [0, 0, 4.0], [3.0, 0, 2.0]], [1.0, -1.0, 0.5])
    dry = replace(dry, chain_ids=["A", "B"])
    wet = replace(wet, chain_ids=["A", "B", "B"], residue_names=["MOL", "MOL", "HOH"], atom_names=["C", "C", "O"],
                  elements=["C", "C", "O"])
    one, two = (vp.complementarity(made, between=["//A", "//B"], spacing=1.0) for made in (dry, wet))
    assert one.interface.area == two.interface.area
    assert "1 water" in caplog.text


def test_molecules_that_do_not_touch_are_refused():
    made = carbons([[0, 0, 0], [0, 0, 20.0]], [1.0, -1.0])
    with pytest.raises(UsageError) as caught:
        vp.complementarity(replace(made, chain_ids=["A", "B"]), between=["//A", "//B"], spacing=1.0)
    assert caught.value.parameter == "between"


@pytest.mark.slow
def test_the_two_chains_of_a_protease(tmp_path, monkeypatch, capsys):
    """HIV protease, an entry of the PDB: a dimer with a two-fold axis, so that both faces are nearly alike."""
    words = ["complementarity", str(DATA / "1hvr.pdb.gz"), "--between", "//A/1-99", "//B/1-99",
             "--spacing", "1.2", "--mesh-spacing", "0.8", "--json", "-o", "faces.csv", "faces.ply", "--figure",
             "faces.png"]
    monkeypatch.chdir(tmp_path)
    assert cli.main(words) == 0
    data = json.loads(capsys.readouterr().out)
    one, two = data["faces"]
    assert one["area"] == pytest.approx(two["area"], rel=0.05)
    assert one["value"] == pytest.approx(two["value"], abs=0.1)
    assert data["value"] == pytest.approx((one["value"] + two["value"]) / 2)
    assert data["buried_area"] == pytest.approx(one["area"] + two["area"])
    for face in data["faces"]:
        rows = [row for row in data["rows"] if row["face"] == face["name"]]
        assert sum(row["contribution"] for row in rows) == pytest.approx(face["value"])
        assert sum(row["area"] for row in rows) == pytest.approx(face["area"])
    with open("faces.csv", newline="", encoding="utf-8") as stream:
        assert [row["name"] for row in csv.DictReader(stream)] == [row["name"] for row in data["rows"]]
    assert trimesh.load("faces.ply", process=False).vertices.shape[0] > 1000
    assert Path("faces.png").stat().st_size > 10_000
    # about the area of both surfaces without that of the dimer's
    structure = vp.prepare(DATA / "1hvr.pdb.gz").structure
    areas = [vp.surfaces.molecular_surface(structure, atoms=atoms, spacing=0.8, cavities=False).area
             for atoms in ("//A/1-99", "//B/1-99", "protein")]
    assert data["buried_area"] == pytest.approx(areas[0] + areas[1] - areas[2], rel=0.25)
