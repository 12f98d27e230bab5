"""The page holds what it was made of, draws it where it is, and asks no network for anything."""

import golden
import numpy as np
import pytest

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


def sampled(browser, points):
    return np.array(browser.run(f"{np.asarray(points).tolist()}.map((p) => vmdpotential.maps[0].sample(...p))"), float)


def bound(grid, points):
    """What rounding of the corners of their cells can do to values interpolated at points."""
    return PRECISION * grid.with_values(np.abs(grid.values)).sample(points) + 1e-6


def test_golden_values_at_atoms(browser, small):
    browser.open(small.path)
    atoms = browser.run("vmdpotential.scene.model.selectedAtoms({}).map((a) => [a.x, a.y, a.z])")
    structure = small.structure
    expected = structure.positions[structure.residue_names == "ANI"]
    np.testing.assert_allclose(atoms, expected, atol=1e-9)
    values = sampled(browser, atoms)
    allowed = bound(small.grid, expected)
    assert (np.abs(values - small.grid.sample(expected)) <= allowed).all()
    assert (np.abs(values - golden.interpolated(expected)) <= allowed + 1e-4 * np.abs(values).max()).all()
    points = golden.lattice_points()
    wanted = golden.potential(points)
    difference = np.abs(sampled(browser, points) - wanted)
    assert (difference <= PRECISION * np.abs(wanted) + 1e-5 * np.abs(wanted).max()).all()


def test_golden_ions(browser, small):
    browser.open(small.path)
    ions = browser.run("vmdpotential.scene.ions.selectedAtoms({}).map((a) => [a.resn, [a.x, a.y, a.z]])")
    assert [name for name, _ in ions] == [name for name, _ in golden.ions()]
    np.testing.assert_allclose([place for _, place in ions], [place for _, place in golden.ions()], atol=1e-9)
    assert browser.run("document.querySelectorAll('#ions tr').length") == len(golden.ions())


def test_values_at_every_atom_of_a_protein(browser, protein):
    browser.open(protein.path)
    atoms = np.array(browser.run("vmdpotential.scene.model.selectedAtoms({}).map((a) => [a.x, a.y, a.z])"))
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
        return [m.vertexArr.map((v) => [v.x, v.y, v.z]), m.normalArr.map((v) => [v.x, v.y, v.z]), m.faceArr]; }})()""")
    vertices, normals, faces = (np.array(item) for item in mesh)
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


def test_about_this_map(browser, protein):
    browser.open(protein.path)
    about = browser.run("document.querySelector('#about').innerText")
    stated = ("kT/e", "298.15 K", "Method", "Measured error", "Periodic cell", "dhfr.pdb", "1 part in 2048",
              "vmdpotential 0.")
    for text in stated:
        assert text in about
    assert browser.run("document.querySelector('#unit').innerText") == "kT/e at 298.15 K"
    assert "University of Pittsburgh" in browser.run("document.querySelector('details pre').textContent")
