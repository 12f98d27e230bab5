"""The page and the command view, without a browser; tests/web looks at the page in one."""

import base64
import contextlib
import dataclasses
import hashlib
import html
import json
import os
import sys
import types
import zipfile
from io import BytesIO
from pathlib import Path

import MDAnalysisTests
import molviewspec
import mrcfile
import numpy as np
import pytest
from messages import naming
from pages import (
    Elements,
    content_of,
    places_of,
    random_grid,
    small_molecule,
    values_of,
    words_of,
)

import vmdpotential as vp
from vmdpotential import io, registry
from vmdpotential.errors import BackendError, InputError, UsageError
from vmdpotential.frontend import cli
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.molecule.structure import Structure
from vmdpotential.plugins.formats.cube import Nuclei, write_cube
from vmdpotential.plugins.ions.placement import PlacedIon
from vmdpotential.plugins.viewers import map_surfaces
from vmdpotential.plugins.viewers.page_script import user_folder
from vmdpotential.plugins.web import view_page
from vmdpotential.plugins.web.atoms import surface_depth
from vmdpotential.plugins.web.document import ShownOptions
from vmdpotential.plugins.web.mvs import view_scene
from vmdpotential.plugins.web.script import embeddable, find_viewer_script
from vmdpotential.surfaces import molecular_surface
from vmdpotential.surfaces.patches import find_patches
from vmdpotential.units import BOHR

HOSTILE = """</script><script>window.hacked=1</script><img src=x onerror="hacked=1"> & 'quoted' <!--"""


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch):
    monkeypatch.delenv("VMDPOTENTIAL_3DMOL", raising=False)


@pytest.fixture
def npm(tmp_path):
    """A folder as npm would leave it, with a script in place of 3Dmol.js."""
    package = tmp_path / "npm" / "node_modules" / "3dmol"
    (package / "build").mkdir(parents=True)
    (package / "build" / "3Dmol-min.js").write_text("var $3Dmol={createViewer:0,end:'</script>'};\r\n")
    (package / "LICENSE").write_text("3Dmol.js: BSD <3-Clause>")
    (package / "package.json").write_text('{"version": "9.8.7"}')
    return tmp_path / "npm"


@pytest.fixture
def molecule():
    return small_molecule()


@pytest.fixture
def grid():
    return random_grid()


def test_atoms_of_cube_and_molden_files(npm, tmp_path, grid):
    """Positions and elements against those that iodata reads; a cube file alone is also the map."""
    iodata = pytest.importorskip("iodata", reason="the comparison needs iodata")
    molden = Path(__file__).parents[1] / "data" / "ecp_core.molden"
    known = iodata.load_one(str(molden))
    cube = tmp_path / "homo.cube"
    write_cube(cube, dataclasses.replace(grid, unit="A^-3/2"),
               Nuclei(known.atnums, known.atcorenums, known.atcoords * BOHR))
    bare = tmp_path / "bare.cube"
    write_cube(bare, grid)
    for path in (molden, cube):
        structure = io.read_structure(path)
        read = iodata.load_one(str(path))
        assert structure.elements.tolist() == [{53: "I", 1: "H"}[n] for n in read.atnums.tolist()]
        np.testing.assert_allclose(structure.positions, read.atcoords * BOHR, atol=1e-6)
    with pytest.raises(InputError):
        io.read_structure(bare)
    for n, names in enumerate(([cube], [molden, cube])):
        page = tmp_path / f"{n}.html"
        assert cli.main(["view", *map(str, names), "--viewer-script", str(npm), "-o", str(page)]) == 0
        content = content_of(types.SimpleNamespace(html=page.read_text()))
        assert len(content["maps"]) == 1
        assert content["maps"][0]["unit"] == "bohr^-3/2"


def test_a_completed_structure_is_shown(npm, molecule):
    completed = vp.prepare(vp.read_structure(Path(__file__).parents[1] / "data" / "caps_amber.pdb"))
    shown = content_of(view_page(completed, viewer_script=npm))["structure"]
    assert shown == content_of(view_page(completed.structure, viewer_script=npm))["structure"]
    with pytest.raises(UsageError):
        view_page(3, viewer_script=npm)


def test_orbitals_and_densities_are_shown_as_isosurfaces(npm, molecule, grid):
    levels = {}
    for unit in ("kT/e", "A^-3/2", "bohr^-3/2", "e/A^3", "e/bohr^3"):
        content = content_of(view_page(molecule, dataclasses.replace(grid, unit=unit), viewer_script=npm))
        assert (content["surface"] is None) == (unit != "kT/e")  # the page draws isosurfaces where there is none
        levels[unit] = content["level"]
    assert levels["kT/e"] is None
    assert levels["A^-3/2"] == pytest.approx(levels["bohr^-3/2"] / BOHR**1.5, rel=0.05)
    assert levels["e/A^3"] == pytest.approx(levels["e/bohr^3"] / BOHR**3, rel=0.05)
    other = view_page(molecule, dataclasses.replace(grid, unit="e/A^3"), level=0.7, viewer_script=npm)
    assert content_of(other)["level"] == 0.7


def test_a_periodic_map_covers_the_molecule_with_its_images(npm, molecule, grid):
    size = grid.lattice.spacing * grid.lattice.shape
    about = dataclasses.replace(grid.provenance, boundary="periodic", cell=tuple(np.diag(size).ravel().tolist()))
    molecule = molecule.take(molecule.elements != "Na")  # which the page shows as an ion of its list
    positions = molecule.positions - molecule.positions.min(0) + grid.lattice.origin  # at the corner of the cell
    content = content_of(view_page(dataclasses.replace(molecule, positions=positions),
                                   dataclasses.replace(grid, provenance=about), viewer_script=npm))["maps"][0]
    values, origin = values_of(content), np.array(content["origin"])
    assert (origin <= positions.min(0) - 3.5).all()  # radius and probe
    first = np.rint((origin - grid.lattice.origin) / grid.lattice.spacing).astype(int)
    nodes = np.indices(values.shape).reshape(3, -1).T + first
    expected = grid.values[tuple((nodes % grid.lattice.shape).T)]
    np.testing.assert_allclose(values.ravel(), expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


def test_page_is_one_file_whose_scripts_alone_may_run(npm, molecule, grid):
    elements = Elements(view_page(molecule, grid, viewer_script=npm).html)
    assert not [a for _, a, _ in elements.found if "src" in a or str(a.get("href", "")).startswith(("http", "//"))]
    (policy,) = [a["content"] for a, _ in elements.of("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split(";")}
    assert rules["default-src"] == ["'none'"]
    assert "connect-src" not in rules
    scripts = [text for attributes, text in elements.of("script") if "type" not in attributes]
    assert len(scripts) == 9
    assert rules["worker-src"] == ["blob:"]
    assert rules["script-src"] == [
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in scripts]
    assert "3Dmol.js 9.8.7\n\n3Dmol.js: BSD <3-Clause>" in [text for _, text in elements.of("pre")]


def test_hostile_texts_stay_texts(npm, molecule, grid):
    plain = Elements(view_page(molecule, grid, viewer_script=npm).html)
    names = np.array(molecule.atom_names, dtype="<U60")
    names[0] = HOSTILE[:50]
    ion = PlacedIon(HOSTILE, 1, 1, 1, (1.0, 2.0, 3.0), HOSTILE, HOSTILE, None, None, -1.0, -2.0, -3.0, -4.0)
    hostile = dataclasses.replace(molecule, title=HOSTILE, atom_names=names)
    about = dataclasses.replace(grid.provenance, inputs=(HOSTILE,))
    page = view_page(hostile, dataclasses.replace(grid, unit=HOSTILE, provenance=about), [ion], names=[HOSTILE],
                     viewer_script=npm)
    elements = Elements(page.html)
    assert [tag for tag, _, _ in elements.found] == [tag for tag, _, _ in plain.found]
    assert [a for _, a, _ in elements.found] == [a for _, a, _ in plain.found]
    assert elements.of("title") == [({}, " ".join(HOSTILE.split()))]
    content = content_of(page)
    assert content["ions"][0]["name"] == content["maps"][0]["name"] == content["maps"][0]["unit"] == HOSTILE
    assert ["Inputs", HOSTILE] in content["maps"][0]["about"]


def test_waters_are_left_out_unless_asked_for(npm, molecule):
    for atoms, kept in (("solute", ["ALA", "GLY"]), ("all", ["ALA", "GLY", "SOL"]), ("(GLY)", ["GLY"])):
        content = content_of(view_page(molecule, atoms=atoms, viewer_script=npm))
        expected = molecule.take(np.isin(molecule.residue_names, kept))
        held = content["structure"]
        assert held["atoms"] == len(expected)
        np.testing.assert_allclose(places_of(held), expected.positions, atol=5e-4)
        assert words_of(held["names"]).tolist() == expected.atom_names.tolist()
        assert words_of(held["residues"]["names"]).tolist() == kept
        assert [ion["position"] for ion in content["ions"]] == [[20, 3.5, 4.25]]  # in any case, and once


def test_a_page_without_a_surface_says_why(npm, molecule, grid):
    nameless = dataclasses.replace(molecule, elements=np.full(12, ""), atom_names=np.full(12, "X"))
    page = view_page(nameless, grid, viewer_script=npm)
    assert content_of(page)["surface"] is None
    assert content_of(page)["missing"] == page.warnings[0]
    assert page.warnings[0].startswith("no molecular surface: no atom has a radius")
    assert content_of(view_page(molecule, viewer_script=npm))["surface"] is None  # there is nothing to colour it by


def test_a_map_with_gaps_is_refused(npm, molecule, grid):
    values = grid.values.copy()
    values[3, 4, 5] = np.nan
    with naming(InputError, "map 1: "):
        view_page(molecule, grid.with_values(values), viewer_script=npm)


def test_a_map_elsewhere_is_shown_whole_with_a_warning(npm, molecule, grid):
    far = dataclasses.replace(grid, lattice=Lattice((500.0, 0, 0), grid.lattice.spacing, grid.lattice.shape))
    page = view_page(molecule, [grid, far], names=["near", "far"], viewer_script=npm)
    assert len(page.warnings) == 1
    assert page.warnings[0].startswith("far: does not cover")
    assert page.summary["maps"][1]["shape"] == [50, 40, 30]


def test_viewer_script_is_found(npm, tmp_path, monkeypatch):
    script = npm / "node_modules" / "3dmol" / "build" / "3Dmol-min.js"
    for named in (npm, npm / "node_modules" / "3dmol", script):
        result = find_viewer_script(named)
        assert (result.path, result.version) == (script, "9.8.7")
    monkeypatch.setenv("VMDPOTENTIAL_3DMOL", str(npm))
    assert find_viewer_script().path == script
    monkeypatch.delenv("VMDPOTENTIAL_3DMOL")
    below = npm / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(npm)
    assert find_viewer_script().path == script
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "none"))
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    monkeypatch.chdir(below)  # what is in folders above, which others may write to, is not run
    with contextlib.suppress(BackendError):  # one that is installed on this machine
        assert find_viewer_script().path != script
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.prefix", str(npm))
    assert find_viewer_script().path == script
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "vmdpotential").symlink_to(npm)
    assert find_viewer_script().path == tmp_path / "vmdpotential" / "node_modules" / script.relative_to(
        npm / "node_modules")


def test_scripts_are_made_safe_to_embed():
    assert embeddable("a='</SCRIPT>'\r\nb='<!--'\rc=1<2") == "a='\\x3c/SCRIPT>'\nb='\\x3c!--'\nc=1<2"


def test_notebook_frame_holds_the_whole_page_in_a_sandbox(npm, molecule):
    page = view_page(molecule, title='a "b" <c>', viewer_script=npm)
    ((attributes, _),) = Elements(page._repr_html_()).of("iframe")
    assert attributes["srcdoc"] == page.html
    assert attributes["sandbox"] == "allow-scripts allow-downloads"  # of its picture
    assert attributes["title"] == 'a "b" <c>'
    assert html.unescape(html.escape(page.html)) == page.html


@pytest.fixture
def files(tmp_path, molecule, grid, monkeypatch):
    monkeypatch.chdir(tmp_path)
    io.write_structure(molecule, "small.pdb")
    io.write_map(grid, "map.npz")
    io.write_map(grid, "map2.dx")
    return tmp_path


def test_command_writes_a_page(files, npm, capsys):
    arguments = ["view", "small.pdb", "map.npz", "map2.dx", "--prepare", "never", "--viewer-script", str(npm), "-o",
                 "page.html"]
    assert cli.main([*arguments, "--level", "7.5", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    text = Path("page.html").read_text("utf-8")
    assert report["bytes"] == len(text.encode())
    assert [item["name"] for item in report["maps"]] == ["map", "map2"]
    assert '"level":7.5' in text
    assert (report["title"], report["atoms"], report["ions"]) == ("two residues", 8, 1)
    assert cli.main(arguments) == 2
    assert "--force" in capsys.readouterr().err
    assert cli.main([*arguments, "--force", "--title", "Other <title>"]) == 0
    assert "<title>Other &lt;title&gt;</title>" in Path("page.html").read_text("utf-8")


def test_command_without_maps_shows_the_structure(files, npm, capsys):
    """With the potential in water where it can be computed; of residues without charges it cannot."""
    words = ["view", "small.pdb", "--viewer-script", str(npm), "-o", "page.html", "--json", "--force"]
    results = []
    for more in ([], ["--prepare", "never"], ["--medium", "no"]):
        assert cli.main([*words, *more]) == 0
        results.append(json.loads(capsys.readouterr().out))
    assert [len(data["maps"]) for data in results] == [1, 0, 0]
    assert results[0]["maps"][0]["medium"].startswith("water")
    assert len(results[1]["warnings"]) > len(results[2]["warnings"])


@pytest.mark.parametrize(("options", "code", "message"), [
    (["-o", "page.png"], 2, "written as .html"),
    ([], 2, "--output: a file is needed"),
    (["-o", "p.html", "--level", "0"], 2, "--level 0"),
    (["-o", "p.html", "--atoms", "//Z"], 2, "--atoms //Z: selects no atoms"),
    (["-o", "p.html", "--ions", "none.csv"], 2, "none.csv"),
    (["-o", "p.html", "--viewer-script", "."], 4, "3Dmol-min.js"),
    (["-o", "no/p.html"], 3, "folder no does not exist"),
])
def test_command_refuses_with_one_line_and_no_file(files, npm, capsys, options, code, message):
    options = options if "--viewer-script" in options else [*options, "--viewer-script", str(npm)]
    before = sorted(os.listdir())
    assert cli.main(["view", "small.pdb", "map.npz", *options]) == code
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert sorted(os.listdir()) == before


def test_without_3dmol_the_error_says_what_to_run(files, capsys, monkeypatch):
    monkeypatch.setattr("vmdpotential.plugins.web.script._folders", lambda: iter([files]))
    assert cli.main(["view", "small.pdb", "-o", "p.html"]) == 4
    error = capsys.readouterr().err
    assert "vmdpotential install page" in error
    assert f"npm install --prefix '{user_folder()}' 3dmol" in error
    assert "--viewer-script" in error


def test_one_command_from_a_deposited_structure_to_its_coloured_surface(tmp_path, npm, capsys):
    entry = Path(MDAnalysisTests.__file__).parent / "data" / "mmcif" / "1YJP.cif"
    words = ["view", str(entry), "--viewer-script", str(npm), "--json", "-o"]
    assert cli.main([*words, str(tmp_path / "bare.html"), "--prepare", "never"]) == 0
    bare = json.loads(capsys.readouterr().out)
    assert cli.main([*words, str(tmp_path / "page.html"), "--medium", "water"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (bare["prepared"], bare["maps"]) == (None, [])
    assert made["prepared"]
    assert made["atoms"] > 1.7 * bare["atoms"]  # with hydrogens
    (shown,) = made["maps"]
    assert shown["unit"] == "kT/e"
    assert made["surface"]  # to be coloured by it
    assert cli.main([*words, str(tmp_path / "none.html"), "--medium", "water", "--prepare", "never"]) == 2
    assert not (tmp_path / "none.html").exists()


def test_scene_of_molstar(ion_box, tmp_path, capsys):
    structure, potential = ion_box
    path = tmp_path / "scene.mvsx"
    command = registry.get("command", "view")
    report = command(structure=structure, maps=(potential,), atoms="all", level=0.5, prepare="never", output=path)
    assert report.data["maps"][0]["level"] == 0.5
    with zipfile.ZipFile(path) as archive:
        assert set(archive.namelist()) == {"index.mvsj", "structure.cif", "map_1.map"}
        index = archive.read("index.mvsj").decode()
        archive.extractall(tmp_path)
    molviewspec.States.model_validate_json(index)
    scenes = json.loads(index)["snapshots"]
    result = [node for scene in scenes for node in nodes_of(scene)]
    levels = {node["params"]["absolute_isovalue"] for node in result if node["kind"] == "volume_representation"}
    assert levels == {0.5, -0.5}
    assert {node["params"]["url"] for node in result if node["kind"] == "download"} == {"structure.cif", "map_1.map"}
    shown = io.read_structure(tmp_path / "structure.cif")
    np.testing.assert_allclose(shown.positions, structure.positions, atol=2e-3)
    with mrcfile.open(tmp_path / "map_1.map") as stored:
        values, origin = stored.data, np.array([float(stored.header.origin[axis]) for axis in "xyz"])
        step = float(stored.voxel_size.x)
    kept = values.transpose() != 0  # all but the inside of the molecule
    assert 0.9 < kept[potential.values != 0].mean() < 1
    np.testing.assert_allclose(values.transpose()[kept], potential.values[kept], rtol=1e-5)
    # the surface: each triangle has the colour of the map there, and says the value
    (mesh,) = [node["params"] for node in result if node["kind"] == "primitive"]
    corners = np.reshape(mesh["vertices"], (-1, 3))[np.reshape(mesh["indices"], (-1, 3))]
    said = np.array([float(mesh["group_tooltips"][str(group)].split()[0]) for group in mesh["triangle_groups"]])
    span = max(abs(said))
    expected = np.clip(potential.sample(corners).mean(1), -span, span)
    np.testing.assert_allclose(said, expected, atol=span / 50)
    assert len(set(mesh["group_colors"].values())) > 3
    for metadata in (json.loads(index)["metadata"], *(scene["metadata"] for scene in scenes)):
        assert potential.unit in metadata["description"]
    assert potential.unit in json.loads(index)["metadata"]["title"]
    assert [scene["metadata"]["title"].split(":")[0] for scene in scenes] == ["Surface", "Isosurfaces"]
    assert scenes[0]["metadata"]["transition_duration_ms"] > 0
    key = scenes[0]["metadata"]["description"].split("\n\n")[1]  # its ends are those of the colours
    low, high = key.split(" ![](", 1)[0], key.split(") ", 1)[1].split()[0]
    assert (float(low), float(high)) == tuple(map_surfaces.surface_range(potential, structure))
    np.testing.assert_allclose(origin, potential.lattice.origin, atol=1e-4)
    assert step == pytest.approx(potential.lattice.spacing[0])
    assert not any("Plane" in scene["metadata"]["description"] for scene in scenes)


def test_a_scene_has_planes_in_the_colours_of_the_map(ion_box, tmp_path, npm):
    structure, potential = ion_box
    command, path = registry.get("command", "view"), tmp_path / "scene.mvsx"
    inputs = {"structure": structure, "maps": (potential,), "atoms": "all", "prepare": "never"}
    lattice = potential.lattice
    heights = [float((lattice.origin + 0.4 * (lattice.last - lattice.origin))[axis]) for axis in range(3)]
    command(**inputs, output=path, plane=tuple(f"{axis}={height}" for axis, height in zip("xyz", heights, strict=True)))
    with zipfile.ZipFile(path) as archive:
        index = archive.read("index.mvsj").decode()
    molviewspec.States.model_validate_json(index)
    (scene,) = [scene for scene in json.loads(index)["snapshots"] if "Plane" in scene["metadata"]["title"]]
    meshes = [node["params"] for node in nodes_of(scene) if node["kind"] == "primitive"]
    assert len(meshes) == 3
    for mesh in meshes:
        vertices = np.reshape(mesh["vertices"], (-1, 3))
        axis = int(np.ptp(vertices, axis=0).argmin())
        assert np.ptp(vertices[:, axis]) == 0
        assert vertices[0, axis] == pytest.approx(heights[axis], abs=1e-3)
        np.testing.assert_allclose(np.ptp(vertices, axis=0)[np.arange(3) != axis],
                                   (lattice.last - lattice.origin)[np.arange(3) != axis], rtol=1e-3)
        pairs = np.reshape(mesh["indices"], (-1, 6))  # two triangles of a square
        corners = vertices[pairs[:, [0, 1, 2, 5]]]
        said = np.array([mesh["group_tooltips"][str(group)] for group in mesh["triangle_groups"]])[::2]
        numbers = np.array([float(text.split()[0]) for text in said])
        assert all(potential.unit in text for text in said)
        assert len(np.unique(numbers)) > 3
        span = map_surfaces.surface_range(potential, structure).high
        expected = np.clip(potential.sample(corners).mean(1), -span, span)
        np.testing.assert_allclose(numbers, expected, atol=span / 50)
    description = scene["metadata"]["description"]
    assert all(f"{height:g}" in description for height in heights)
    assert potential.unit in description
    for name, plane in (("b.mvsx", "z=1e4"), ("b.mvsx", "q"), ("b.html", "z=0")):
        with pytest.raises(UsageError) as error:
            command(**inputs, output=tmp_path / name, plane=(plane,), viewer_script=npm)
        assert error.value.parameter == "plane"


@pytest.mark.parametrize("cavities", [False, True])
def test_scenes_and_pages_show_the_outer_surface_unless_cavities_are_requested(tmp_path, cavities):
    """Around carbons on a sphere, which leave room for probes inside."""
    radius, count = 7.0, 300
    z = 1 - 2 * (np.arange(count) + 0.5) / count
    angle, ring = np.pi * (1 + 5**0.5) * np.arange(count), np.sqrt(1 - z**2)
    shell = Structure(radius * np.stack([ring * np.cos(angle), ring * np.sin(angle), z], 1), ["C"] * count,
                      ["UNK"] * count, np.arange(count), np.arange(count), elements=["C"] * count)
    lattice = Lattice.around(shell.positions, 1.0, 4.0)
    values = lattice.points()[:, 0].reshape(lattice.shape).astype(np.float32)
    path = tmp_path / "scene.mvsx"
    registry.get("command", "view")(structure=shell, maps=(Grid(lattice, values, "kT/e", 298.15),), prepare="never",
                                    output=path, cavities=cavities)
    with zipfile.ZipFile(path) as archive:
        scene, *_ = json.loads(archive.read("index.mvsj"))["snapshots"]
    (node,) = [node for node in nodes_of(scene) if node["kind"] == "primitive"]
    away = np.linalg.norm(np.reshape(node["params"]["vertices"], (-1, 3)), axis=1)
    assert (away.min() < radius) == cavities
    assert away.max() > radius
    depth = surface_depth(shell, np.ones(count, bool), cavities)
    assert (depth.sample(np.zeros((1, 3))).item() < 0) == cavities


def test_scenes_of_several_maps_have_one_level_and_the_ions_with_their_energies(ion_box, tmp_path):
    structure, potential = ion_box
    weaker = dataclasses.replace(potential, values=potential.values * 0.9)
    ion = PlacedIon("SOD", 7, 1, 1, (1.0, 2.0, 3.0), "TIP3 9", "W", None, None, -1.25, -2.0, -3.0, -4.0)
    scene = view_scene(structure, [potential, weaker], ["a_b", "<b>"], [ion])
    with zipfile.ZipFile(BytesIO(scene.content)) as archive:
        index = archive.read("index.mvsj").decode()
    molviewspec.States.model_validate_json(index)
    scenes = json.loads(index)["snapshots"]
    assert [item["metadata"]["title"] for item in scenes] == [
        "Surface: a_b", "Isosurfaces: a_b", "Surface: <b>", "Isosurfaces: <b>"]
    assert scenes[2]["metadata"]["description"].startswith(r"**\<b\>**")  # not as HTML
    levels = [{node["params"]["absolute_isovalue"] for node in nodes_of(item)
               if node["kind"] == "volume_representation"} for item in scenes]
    assert levels[1] == levels[3] != set()
    for item in scenes:
        (sphere,) = [node["params"] for node in nodes_of(item)
                     if node["kind"] == "primitive" and "center" in node["params"]]
        assert sphere["center"] == [1, 2, 3]
        assert all(word in sphere["tooltip"] for word in ("SOD 7", "+1 e", f"{ion.energy:g} kcal/mol"))
    assert scene.summary["ions"] == 1


def test_patches_have_a_scene_with_the_colours_of_their_means_and_names(ion_box, tmp_path):
    structure, potential = ion_box
    path, options = tmp_path / "scene.mvsx", {"structure": structure, "maps": (potential,), "prepare": "never"}
    registry.get("command", "view")(**options, atoms="all", patches=0.8, output=path)
    with zipfile.ZipFile(path) as archive:
        scenes = json.loads(archive.read("index.mvsj"))["snapshots"]
    assert [scene["metadata"]["title"].split(":")[0] for scene in scenes] == ["Surface", "Patches", "Isosurfaces"]
    shapes = [node["params"] for node in nodes_of(scenes[1]) if node["kind"] == "primitive"]
    (mesh,), labels = ([item for item in shapes if ("vertices" in item) == wanted] for wanted in (True, False))
    surface = molecular_surface(structure, atoms="all", spacing=0.5, cavities=False)
    found, places = find_patches(surface, surface.sample(potential), 0.8, structure.residue_of[surface.atoms])
    assert {label["text"] for label in labels} == {patch.name for patch in found if patch.area >= 30} != set()
    of_triangle = places[surface.triangles]
    whole = (of_triangle == of_triangle[:, :1]).all(1) & (of_triangle[:, 0] >= 0)
    said = np.array([mesh["group_tooltips"][str(group)] for group in mesh["triangle_groups"]])
    means = np.array([patch.mean for patch in found])[of_triangle[whole, 0]]
    span = map_surfaces.surface_range(potential, structure).high
    np.testing.assert_allclose([float(text.split()[0]) for text in said[whole]], np.clip(means, -span, span),
                               atol=span / 100)
    assert set(said[(of_triangle < 0).all(1)]) == {"in no patch"}


@pytest.mark.parametrize(("option", "value", "name"), [
    ("plane", ("z=1",), "scene.mvsx"), ("patches", 0.8, "scene.mvsx"), ("patches", 0.8, "page.html"),
    ("level", 1.0, "page.html"), ("margin", 5.0, "page.html"), ("points", 5000, "scene.mvsx"),
    ("cavities", True, "page.html")])
@pytest.mark.parametrize("medium", ["no", None])
def test_what_only_maps_have_is_refused_without_them(ion_box, npm, tmp_path, option, value, name, medium):
    """Without a medium the potential would be computed, which fails for atoms without charges."""
    path = tmp_path / name
    with pytest.raises(UsageError if medium else InputError) as caught:
        registry.get("command", "view")(structure=ion_box[0], medium=medium, prepare="never", output=path,
                                        **{option: value})
    assert medium is None or caught.value.parameter == option
    assert not path.exists()


def test_patches_need_a_surface_and_a_map_that_colours_it(ion_box, npm, monkeypatch):
    structure, potential = ion_box
    orbital, options = dataclasses.replace(potential, unit="bohr^-3/2"), ShownOptions(atoms="all", patches=0.8)
    water = Structure(structure.positions[:3], ["OH2", "H1", "H2"], ["TIP3"] * 3, [1] * 3, [0] * 3,
                      elements=["O", "H", "H"])
    for shown, grid in ((structure, orbital), (water, potential)):
        with pytest.raises(UsageError) as caught:
            view_scene(shown, [grid], ["a"], options=options)
        assert caught.value.parameter == "patches"
        with pytest.raises(UsageError) as caught:
            view_page(shown, [grid], atoms="all", patches=0.8)
        assert caught.value.parameter == "patches"
    mixed = view_scene(structure, [orbital, potential], ["a", "b"], options=options)
    assert [title.split(":")[0] for title in titles_of(mixed)] == ["Isosurfaces", "Surface", "Patches", "Isosurfaces"]

    def missing(*given, **named):
        raise BackendError("a package is missing")

    monkeypatch.setattr("vmdpotential.plugins.web.coloured.molecular_surface", missing)
    with pytest.raises(BackendError):
        view_scene(structure, [potential], ["a"], options=options)
    assert titles_of(view_scene(structure, [potential], ["a"], options=ShownOptions(atoms="all"))) == ["Isosurfaces: a"]


def test_tooltips_of_patches_state_the_whole_unit(ion_box):
    """Also of a unit of a map from elsewhere, with the words by which a key separates it from the medium."""
    structure, potential = ion_box
    unit = "counts at 1 M, scaled"
    scene = view_scene(structure, [dataclasses.replace(potential, unit=unit)], ["a"],
                       options=ShownOptions(atoms="all", patches=0.8))
    with zipfile.ZipFile(BytesIO(scene.content)) as archive:
        patches = json.loads(archive.read("index.mvsj"))["snapshots"][1]
    (mesh,) = [node["params"] for node in nodes_of(patches) if "group_tooltips" in node.get("params", {})]
    said = set(mesh["group_tooltips"].values()) - {"in no patch"}
    assert said
    assert all(unit in text for text in said)


def titles_of(scene):
    """Return the titles of a file's scenes."""
    with zipfile.ZipFile(BytesIO(scene.content)) as archive:
        return [item["metadata"]["title"] for item in json.loads(archive.read("index.mvsj"))["snapshots"]]


def test_faces_of_two_molecules_have_a_scene_by_themselves(tmp_path):
    source = Path(__file__).parents[1] / "data" / "caps_amber.pdb"
    path, between = tmp_path / "faces.mvsx", ("(ACE)", "(ALA)")
    registry.get("command", "view")(structure=source, medium="no", between=between, output=path)
    with zipfile.ZipFile(path) as archive:
        (scene,) = json.loads(archive.read("index.mvsj"))["snapshots"]
    faces = vp.complementarity(source, between=between)
    (mesh,) = [node["params"] for node in nodes_of(scene) if node["kind"] == "primitive"]
    drawn = faces.objects["mesh"]
    np.testing.assert_allclose(np.reshape(mesh["vertices"], (-1, 3)), drawn.surface.vertices, atol=1e-3)
    values = drawn.values[drawn.surface.triangles].mean(1)
    said = np.array([mesh["group_tooltips"][str(group)].split()[0] for group in mesh["triangle_groups"]])
    known = np.isfinite(values)
    np.testing.assert_allclose(said[known].astype(float), np.clip(values[known], *drawn.span), atol=drawn.span[1] / 50)
    assert set(said[~known]) == {"beside"}
    assert f"{faces.value:.2f}" in scene["metadata"]["description"]


def nodes_of(scene):
    """Return all nodes of a scene of Mol*."""
    nodes, result = [scene["root"]], []
    while nodes:
        node = nodes.pop()
        result.append(node)
        nodes += node.get("children", [])
    return result


def test_scene_needs_its_package(ion_box, tmp_path, monkeypatch):
    structure, potential = ion_box
    path = tmp_path / "scene.mvsx"
    monkeypatch.setitem(sys.modules, "molviewspec", None)
    with pytest.raises(BackendError):
        registry.get("command", "view")(structure=structure, maps=(potential,), output=path)
    assert not path.exists()


@pytest.fixture
def ion_box():
    """Two residues between charges of both signs, and their potential."""
    names = ["N", "CA", "C", "O"] * 2
    positions = np.random.default_rng(8).uniform(4, 12, (8, 3)).round(3)
    structure = Structure(positions, names, ["ALA"] * 4 + ["GLY"] * 4, [1] * 4 + [2] * 4, np.repeat([0, 1], 4),
                          elements=[name[0] for name in names], chain_ids=["A"] * 8, title="two residues")
    lattice = Lattice((0.0, 1.0, 2.0), (1.0, 1.0, 1.0), (14, 15, 16))
    x = lattice.points().reshape(*lattice.shape, 3)
    values = (2 * np.sin(x[..., 0] / 3) * np.cos(x[..., 1] / 4)).astype(np.float32)
    return structure, Grid(lattice, values, "kT/e", 298.15)


def test_a_missing_viewer_script_is_told_how_to_get(npm, tmp_path):
    with naming(BackendError, "3Dmol-min.js"):
        find_viewer_script(tmp_path)
    (tmp_path / "other.js").write_text("alert()")
    with naming(InputError, "3Dmol.js"):
        find_viewer_script(tmp_path / "other.js")
    (npm / "node_modules" / "3dmol" / "LICENSE").unlink()
    with naming(BackendError, "LICENSE"):
        find_viewer_script(npm)
