"""Scenes of the command view in Mol*, and the colours of one entry in several programs."""

import re

import molstar
import numpy as np
import pytest
import same_colours
import trimesh
from scipy.spatial import cKDTree

import vmdpotential as vp
from vmdpotential import registry
from vmdpotential.figures.colours import COLOUR_STOPS, sign_colour
from vmdpotential.frontend import cli
from vmdpotential.plugins.viewers import vmd
from vmdpotential.plugins.web import view_page
from vmdpotential.plugins.web.document import ShownOptions
from vmdpotential.plugins.web.mvs import ION, view_scene


def test_mol_star_shows_surface_key_plane_and_ions(browser, small, tmp_path):
    path = tmp_path / "scene.mvsx"
    options = ShownOptions(plane=("z=1",))
    view_scene(small.structure, [small.grid], ["potential"], small.ions, options).save(path)
    molstar.open_scene(browser, path, tmp_path)
    assert browser.run("viewer.plugin.managers.snapshot.state.entries.size") == 3
    places, kinds = np.array([ion.position for ion in small.ions]), {sign_colour(ion.charge) for ion in small.ions}
    for n in range(3):
        text, keys = molstar.described(browser)
        coloured, spheres = molstar.meshes(browser), []
        for number, (corners, colours) in enumerate(coloured):
            if {"#" + bytes(colour).hex() for colour in np.unique(colours.reshape(-1, 3), axis=0)} <= kinds:
                spheres = corners.reshape(-1, 3)
                del coloured[number]
                break
        np.testing.assert_allclose(cKDTree(spheres).query(places)[0], ION, rtol=0.05)
        assert "kT/e" in text
        if n < 2:  # the surface and the plane
            assert keys == [[tuple(str(x) for x in bytes.fromhex(stop[1:])) for stop in COLOUR_STOPS]]
            ((corners, colours),) = coloured
            assert len(np.unique(colours.reshape(-1, 3), axis=0)) > 10
            assert (np.ptp(corners[..., 2]) < 1e-3) == (n == 1)
            molstar.next_scene(browser)
        else:  # isosurfaces are no primitives
            assert coloured == []
    assert browser.problems() == []


@pytest.fixture(scope="module")
def entry(tmp_path_factory):
    """Lysozyme, its potential in water, and the files that the command surface writes."""
    entry = same_colours.write_entry(tmp_path_factory.mktemp("entry"))
    folder = entry.path.parent
    vp.write_map(entry.grid, folder / "map.npz")
    assert cli.main(["surface", str(entry.path), str(folder / "map.npz"), "--mesh-spacing", "0.5", "-o",
                     str(folder / "s.glb"), str(folder / "s.ply")]) == 0
    return entry


def test_an_entry_has_the_same_colours_in_all_programs(browser, entry, tmp_path):
    """1,000 points of its surface; tests of PyMOL and ChimeraX check theirs."""
    folder, structure, value_at, check = entry.path.parent, entry.structure, entry.value_at, entry.check
    ply, glb = (trimesh.load_scene(folder / name, process=False).geometry.popitem()[1] for name in ("s.ply", "s.glb"))
    values = value_at(ply.vertices, ply.vertex_normals)
    check(ply.visual.vertex_colors[:, :3] / 255, values)
    linear = glb.visual.vertex_attributes["color"][:, :3] / 65535
    check(np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055), values)

    scene = tmp_path / "scene.mvsx"
    registry.get("command", "view")(structure=structure, maps=(entry.grid,), prepare="never", output=scene)
    molstar.open_scene(browser, scene, tmp_path)
    (corners, colours), = molstar.meshes(browser)
    distance, nearest = cKDTree(ply.vertices).query(corners)
    assert distance.max() < 2e-3
    alone = np.array([len(found) == 1 for found in cKDTree(ply.vertices).query_ball_point(ply.vertices, 4e-3)])
    values[~alone] = np.nan  # values of vertices at one place differ
    check(colours[:, 0] / 255, values[nearest].mean(1))

    page = tmp_path / "page.html"
    view_page(structure, entry.grid).save(page)
    browser.open(page)
    groups = browser.run("""vmdpotential.scene.meshes.surface.shape.geo.geometryGroups.map((g) =>
        [g.vertexArray, g.normalArray, g.colorArray].map((row) => Array.from(row).slice(0, 3 * g.vertices)))""")
    positions, normals, colours = (np.concatenate([group[n] for group in groups]).reshape(-1, 3) for n in range(3))
    check(colours, value_at(positions, normals))

    report = registry.get("command", "map")(structure=structure, spacing=same_colours.SPACING)
    drawn = vmd.drawn_in_vmd(report, "")["surface"]
    vertices, normals, colours = (np.array(re.findall(r"[^{} ]+", drawn[name]), float)
                                  for name in ("vertices", "normals", "colours"))
    number = (colours - vmd.SCALE.start) / (len(vmd.SCALE) - 1)
    check(entry.shades[np.rint(number * (same_colours.SHADES - 1)).astype(int)],
          value_at(vertices.reshape(-1, 3), normals.reshape(-1, 3)))
