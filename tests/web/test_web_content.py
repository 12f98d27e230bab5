"""The page holds what it was made of, draws it where it is, and asks no network for anything."""

import golden
import numpy as np
import pytest
from scipy.spatial import cKDTree

from vmdpotential.molecule.selection import is_protein, is_water
from vmdpotential.plugins.web import view_page
from vmdpotential.surfaces import molecular_surface

PRECISION = 2.0**-11


@pytest.mark.parametrize("name", ["small", "protein", "sphere"])
def test_page_works_alone(browser, request, name):
    case = request.getfixturevalue(name)
    browser.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)
    browser.open(case.path)
    browser.click("input[name=axis][value='1']")
    browser.click("#theme")
    assert browser.requests() == [case.path.as_uri()]
    assert browser.problems() == []


def places(browser):
    return browser.run("Array.from({ length: vmdpotential.atoms.count }, (_, n) => vmdpotential.atoms.place(n))")


def sampled(browser, points):
    return np.array(browser.run(f"{np.asarray(points).tolist()}.map((p) => vmdpotential.maps[0].sample(...p))"), float)


def bound(grid, points):
    """What rounding of the corners of their cells can do to values interpolated at points."""
    return PRECISION * grid.with_values(np.abs(grid.values)).sample(points) + 1e-6


def test_golden_values_at_atoms(browser, small):
    browser.open(small.path)
    atoms = places(browser)
    structure = small.structure
    expected = structure.positions[structure.residue_names == "ANI"]
    np.testing.assert_allclose(atoms, expected, atol=1e-9)
    values = sampled(browser, atoms)
    allowed = bound(small.grid, expected)
    assert (np.abs(values - small.grid.sample(expected)) <= allowed).all()
    assert (np.abs(values - golden.interpolated(expected)) <= allowed + 1e-4 * np.abs(values).max()).all()
    points = golden.lattice_points()
    required = golden.potential(points)
    difference = np.abs(sampled(browser, points) - required)
    assert (difference <= PRECISION * np.abs(required) + 1e-5 * np.abs(required).max()).all()


def test_golden_ions(browser, small):
    browser.open(small.path)
    ions = browser.run("vmdpotential.scene.ions.selectedAtoms({}).map((a) => [a.resn, [a.x, a.y, a.z]])")
    assert [name for name, _ in ions] == [name for name, _ in golden.ions()]
    np.testing.assert_allclose([place for _, place in ions], [place for _, place in golden.ions()], atol=1e-9)
    assert browser.run("document.querySelectorAll('#ions tr').length") == len(golden.ions())


def test_values_at_every_atom_of_a_protein(browser, protein):
    browser.open(protein.path)
    atoms = np.array(places(browser))
    assert len(atoms) == protein.page.summary["atoms"] == 2489
    assert (np.abs(sampled(browser, atoms) - protein.grid.sample(atoms)) <= bound(protein.grid, atoms)).all()
    assert browser.run("Number.isNaN(vmdpotential.maps[0].sample(1e4, 0, 0))")


@pytest.mark.parametrize("sign", [1, -1])
def test_isosurface_is_where_the_value_is(browser, sphere, sign):
    browser.open(sphere.path)
    # for the negative surface the map is turned over
    mesh = browser.run(f"""(() => {{ const map = vmdpotential.maps[0], turned = Object.create(map);
        turned.data = map.data.map((v) => {sign} * v);
        const m = vmdpotential.isosurface(turned, 5, {sign});
        return [m.positions, m.normals, m.faces].map((row) => Array.from(row)); }})()""")
    vertices, normals, faces = (np.array(item) for item in mesh)
    vertices, normals = vertices.reshape(-1, 3), normals.reshape(-1, 3)
    radius = np.linalg.norm(vertices, axis=1)
    assert np.abs(radius - 5).max() < 0.05  # the cells are 0.5 A wide
    assert ((normals * vertices).sum(1) / radius > 0.99).all()
    triangles = vertices[faces.reshape(-1, 3)]
    area = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    assert ((area * triangles.mean(1)).sum(1) > 0).all()  # seen from outside, counter-clockwise
    volume = (area * triangles[:, 0]).sum() / 6
    assert volume == pytest.approx(4 / 3 * np.pi * 5**3, rel=0.02)
    corners = faces.reshape(-1, 3)
    edges = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    assert len(np.unique(edges, axis=0)) == len(edges)  # closed: every edge once in each direction
    assert {tuple(edge) for edge in edges} == {tuple(edge[::-1]) for edge in edges}


def meshes(browser, name):
    """Return positions, normals, values and corners of the triangles of what is shown under a name."""
    groups = browser.run(f"""vmdpotential.scene.meshes.{name}.groups.map((g) =>
        [g.positions, g.normals, g.values ?? [], g.faces].map((row) => Array.from(row)))""")
    positions, normals, values, faces = ([np.array(group[n]) for group in groups] for n in range(4))
    triangles = [p.reshape(-1, 3)[f.reshape(-1, 3)] for p, f in zip(positions, faces, strict=True)]
    return (np.concatenate(positions).reshape(-1, 3), np.concatenate(normals).reshape(-1, 3), np.concatenate(values),
            np.concatenate(triangles))


def test_the_surface_is_the_molecular_surface_with_the_values_of_the_map(browser, small):
    browser.open(small.path)
    vertices, normals, values, triangles = meshes(browser, "surface")
    expected = molecular_surface(small.structure, atoms="(ANI)", spacing=0.15)
    distance, nearest = cKDTree(expected.vertices).query(vertices)
    assert distance.max() < 0.2
    assert np.quantile(distance, 0.9) < 0.1
    # outwards, but where two parts of the surface meet at an angle
    assert np.quantile((normals * expected.normals[nearest]).sum(1), 0.1) > 0.9
    sides = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    assert np.linalg.norm(sides, axis=1).sum() / 2 == pytest.approx(expected.area, rel=0.05)
    assert (sides * triangles.mean(1)).sum() > 0
    assert (np.abs(values - small.grid.sample(vertices)) <= 2 * bound(small.grid, vertices) + 1e-3).all()


def test_isosurfaces_end_at_the_molecule_unless_asked_for_inside(browser, small):
    browser.open(small.path)
    browser.click("#negative")
    outside = meshes(browser, "negative")[0]
    surface = meshes(browser, "surface")[0]
    depth = browser.run(f"""(async () => {{ const d = await vmdpotential.readDepth(vmdpotential.content.surface);
        return {outside.tolist()}.map((p) => d.sample(...p) * d.step || 0); }})()""")
    assert max(depth) < 0.6  # the map has points 1 A apart
    browser.click("#inside")
    inside = meshes(browser, "negative")[0]
    assert len(inside) > len(outside)
    assert cKDTree(outside).query(inside)[0].max() > 1
    assert len(surface) == len(meshes(browser, "surface")[0])


@pytest.mark.slow
def test_a_large_structure_is_drawn_in_parts_and_its_waters_as_points(browser, protein, tmp_path):
    structure = protein.structure
    wet = np.flatnonzero(is_water(structure))[:7500]
    page = view_page(structure.take(np.union1d(wet, np.flatnonzero(is_protein(structure)))), atoms="all")
    page.save(tmp_path / "large.html")
    browser.open(tmp_path / "large.html")
    assert browser.run("vmdpotential.atoms.count") == 7500 + 2489
    points = meshes(browser, "waters")[0].reshape(-1, 4, 3).mean(1)
    np.testing.assert_allclose(points, structure.positions[wet[::3]], atol=1e-3)
    drawn = browser.run("vmdpotential.scene.models.map((m) => m.selectedAtoms({}).map((a) => [a.x, a.y, a.z]))")
    assert [len(part) for part in drawn] == [2489]
    np.testing.assert_allclose(drawn[0], structure.positions[is_protein(structure)], atol=1e-3)
    parts = browser.run("""(() => { const { atoms } = vmdpotential, parts = atoms.parts(true);
        return parts.map(([a, b]) => [a, b, atoms.starts[b] - atoms.starts[a]]); })()""")
    assert max(part[2] for part in parts) < 4000
    # the first ends with its chain; those of a long chain meet in a residue, as ribbons go on
    assert parts[1][0] == parts[0][1] == 159
    assert [part[0] for part in parts[2:]] == [part[1] - 1 for part in parts[1:-1]]
    assert parts[-1][1] == 2500 + 159


def test_about_this_map(browser, protein, small):
    browser.open(small.path)
    assert "Periodic cell" in browser.run("document.querySelector('#about').innerText")
    browser.open(protein.path)
    about = browser.run("document.querySelector('#about').innerText")
    for text in ("kT/e", "298.15 K", "Method", "Measured error", "dhfr.pdb", "1 part in 2048", "vmdpotential 0."):
        assert text in about
    assert browser.run("document.querySelector('#unit').innerText") == (
        "kT/e at 298.15 K, water (Poisson-Boltzmann), 0.15 M, ion radius 2 A, dielectric 78.5, 2 inside")
    assert "University of Pittsburgh" in browser.run("document.querySelector('details pre').textContent")
