"""Areas of surfaces against closed forms, an independent program, and finer and finer triangles."""

import importlib.util
from pathlib import Path

import freesasa
import numpy as np
import pytest
from helpers import TOOLS
from scipy.spatial import cKDTree
from test_surface import RADIUS, around

import vmdpotential as vp
from vmdpotential.molecule.elements import fill_elements, van_der_waals_radii
from vmdpotential.molecule.selection import select
from vmdpotential.surfaces import PROBE_RADIUS, molecular_surface

ROOT = Path(__file__).resolve().parents[2]
BIG = RADIUS + PROBE_RADIUS


@pytest.mark.parametrize("distance", [0.5, 2.0, 4.0, 6.1, 7.0])
def test_accessible_area_of_two_spheres(distance):
    height = max(BIG - distance / 2, 0)  # of the cap that the other takes
    expected = 8 * np.pi * BIG**2 - 4 * np.pi * BIG * height
    assert around([[0, 0, 0], [0.6 * distance, 0.8 * distance, 0]], kind="accessible").area == pytest.approx(
        expected, rel=5e-3)


def test_molecular_area_of_three_spheres():
    """Parts of three spheres and three tori, and two triangles on the probe above and below (Connolly 1983)."""
    side = 3.4
    corners = side / np.sqrt(3) * np.array([[1, 0, 0], [-0.5, np.sqrt(0.75), 0], [-0.5, -np.sqrt(0.75), 0]])
    height = np.sqrt(BIG**2 - side**2 / 3)  # of the probe that touches all
    to = (corners - [0, 0, height]) / BIG
    dot = to[0] @ to[1]
    angle = np.arccos((dot - dot**2) / (1 - dot**2))  # at a corner of the triangle
    triangles = 2 * PROBE_RADIUS**2 * (3 * angle - np.pi)
    circle, phi = np.sqrt(BIG**2 - side**2 / 4), np.arcsin(side / 2 / BIG)
    covered = 2 * np.arctan2(height, side / np.sqrt(12))  # of the circle around a pair, by the third
    tori = 3 * PROBE_RADIUS * 2 * (circle * phi - PROBE_RADIUS * np.sin(phi)) * (2 * np.pi - covered)
    rng = np.random.default_rng(5)
    points = rng.normal(size=(400_000, 3))
    points *= BIG / np.linalg.norm(points, axis=1)[:, None]
    free = (np.linalg.norm((points + corners[0])[:, None] - corners[1:], axis=2) > BIG).all(1).mean()
    expected = 3 * 4 * np.pi * RADIUS**2 * free + tori + triangles
    made = around(corners)
    assert made.area == pytest.approx(expected, rel=3e-3)
    each = np.bincount(made.atoms, made.areas)
    np.testing.assert_allclose(each, expected / 3, rtol=0.01)


def test_molecular_area_is_that_of_ever_finer_triangles():
    """With probes that cut each other, as in any protein: what one reaches is a tenth of the others' patches here."""
    centres = np.random.default_rng(6).uniform(0, 7, (12, 3))
    made = [around(centres, spacing=spacing) for spacing in (0.3, 0.1)]
    assert made[0].area == pytest.approx(made[1].area, rel=2e-3)
    finest = made[1]
    a, b, c = (finest.vertices[finest.triangles[:, n]] for n in range(3))
    triangles = np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2
    assert finest.area == pytest.approx(triangles, rel=5e-3)


def real(name):
    """Return a protein or a DNA, and which of its atoms a surface is around."""
    path, chosen = {
        "DHFR": (ROOT / "data" / "dhfr.pdb.gz", "protein"),
        "T4 lysozyme": (TOOLS / "T4-lysozyme-L99A-implicit" / "receptor.pdb", "protein"),
        "DNA": (TOOLS / "dna_dodecamer_explicit" / "minimized_dna_dodecamer.pdb", "nucleic"),
        "cobrotoxin": (Path(importlib.util.find_spec("MDAnalysisTests").origin).parent / "data" / "cobrotoxin.pdb",
                       "protein"),
    }[name]
    system = fill_elements(vp.read_structure(path))
    atoms = np.flatnonzero(select(system, chosen))
    assert len(atoms) > 500
    return system, chosen, atoms, system.positions[atoms], van_der_waals_radii(system.elements)[atoms]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["DHFR", "T4 lysozyme", "DNA", "cobrotoxin"])
def test_accessible_areas_are_those_of_freesasa(name):
    system, chosen, atoms, positions, own = real(name)
    result = freesasa.calcCoord(positions.ravel(), own, freesasa.Parameters(
        {"algorithm": freesasa.LeeRichards, "n-slices": 100, "probe-radius": PROBE_RADIUS}))
    made = molecular_surface(system, atoms=chosen, kind="accessible", spacing=0.5)
    assert made.area == pytest.approx(result.totalArea(), rel=2e-3)
    each = np.bincount(made.atoms, made.areas, len(system))[atoms]
    assert np.abs(each - [result.atomArea(n) for n in range(len(atoms))]).max() < 3


@pytest.mark.slow
@pytest.mark.parametrize("spacing", [0.4, 0.7, 1.0])
@pytest.mark.parametrize("name", ["DHFR", "T4 lysozyme", "DNA"])
def test_no_vertex_is_inside_an_atom(name, spacing):
    system, chosen, _, positions, own = real(name)
    vertices = molecular_surface(system, atoms=chosen, spacing=spacing).vertices
    distance, atom = cKDTree(positions).query(vertices, k=24)
    assert (own[atom] - distance).max() < 0.05


def test_no_area_is_lost_where_the_lattice_sees_no_part_of_an_atom():
    for seed in (6, 8):  # a hundred points are of atoms that no vertex at 1 A is on
        centres = np.random.default_rng(seed).uniform(0, 9, (60, 3))
        assert around(centres, spacing=1.0).area == pytest.approx(around(centres, spacing=0.3).area, rel=1e-9)
