"""The commands in ChimeraX give what the package gives, and change no model of the user."""

import gzip
import importlib
import io
import json
import re
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

import core
import numpy as np
import pytest
from messages import naming
from numpy.testing import assert_allclose
from PIL import Image
from salt import IONS, state

import vmdpotential as vp
from vmdpotential.figures.colours import SIGN_COLOURS, ValueRange, rgb_of
from vmdpotential.parameters import Report
from vmdpotential.surfaces import Surface
from vmdpotential.surfaces.drawn import DrawnSurface

ROOT = Path(__file__).resolve().parents[2]
COULOMB = 1.602176634e-19 / (4 * np.pi * 8.8541878128e-12) * 1e10  # V A / e, CODATA 2018


def by_definition(points, places, charges):
    return COULOMB * sum(q / np.linalg.norm(points - place, axis=1) for place, q in zip(places, charges, strict=True))


def test_what_the_tutorial_shows(session, opened, do, tmp_path, monkeypatch):
    """The core has no command `open` for these files, so the readers open them."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "scripts" / "tutorials" / "chimerax.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```chimerax\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("open "):
                path = ROOT / line.partition(" ")[2]
                (tmp_path / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
                opened(tmp_path / path.stem)
            elif line == "close":
                session.models.close(session.models.list())
            else:
                do(line)
    assert (tmp_path / "slice-from-chimerax.png").stat().st_size > 1000


def test_map_by_definition(ions, do, log):
    before = state(ions)
    volume = do("potential map #1:NA,CL spacing 1 boundary open medium explicit unit V")
    assert volume.name == "potential"
    assert state(ions) == before
    lattice = np.random.default_rng(2).integers(-6, 10, (60, 3)) + np.array([0.0, 0.0, 0.0])
    away = np.linalg.norm(lattice[:, None] - ions.atoms.coords[:2], axis=2).min(1) > 0.5
    expected = by_definition(lattice[away], ions.atoms.coords[:2], [1, -1])
    assert_allclose(volume.interpolated_values(lattice[away]), expected, rtol=1e-5, atol=1e-6)
    # surfaces at plus and minus the same level, blue and red
    low, high = volume.surfaces
    assert low.level == -high.level < 0
    for surface, colour in ((low, SIGN_COLOURS[0]), (high, SIGN_COLOURS[2])):
        assert_allclose(surface.rgba[:3], np.array([*bytes.fromhex(colour[1:])]) / 255, atol=0.005)
    volume.update_drawings()
    for surface in (low, high):  # nothing but the surface of its level, no caps over the sides of the box
        vertices = surface.scene_position * surface.vertices
        assert len(vertices) > 20
        inside = (vertices > volume.data.origin).all(1) & (vertices < 8).all(1)
        assert_allclose(volume.interpolated_values(vertices[inside]), surface.level, rtol=1e-3)
    assert f"map #2 potential, in V; isosurfaces at {low.level:g} (red) and {high.level:g} (blue)" in log.text
    assert "net charge 0 e" in log.text
    assert "potential map: surface #1.1, coloured from -5 to 5 V" in log.shown[-1]


def test_map_of_a_moved_model_moves_with_it(ions, do):
    from chimerax.geometry import rotation, translation

    ions.position = translation((100, 0, 0)) * rotation((1, 2, 3), 40)
    volume = do("potential map #1:NA,CL spacing 1 boundary open medium explicit unit V name moved")
    nodes = np.array([[3.0, 5.0, 4.0], [-2.0, 0.0, 1.0], [8.0, -3.0, 0.0]])
    seen = ions.scene_position * nodes
    to_map = volume.scene_position.inverse() * seen
    # distances to the atoms are taken where both are seen
    expected = by_definition(seen, ions.atoms.scene_coords[:2], [1, -1])
    assert_allclose(volume.interpolated_values(to_map), expected, rtol=1e-4, atol=1e-6)


@pytest.fixture
def saved_and_restored(session, monkeypatch):
    """Save the session, close all models, and restore it, as ChimeraX does with a file."""
    core.know_packages(session.toolshed, "chimerax.core", "chimerax.map", "chimerax.map_data", "chimerax.atomic",
                       "chimerax.graphics", "chimerax.geometry", "chimerax.pdb", "chimerax.surface")

    def through_a_file():
        monkeypatch.delitem(session._state_containers, "main_view", raising=False)  # there is no window
        stream = io.BytesIO()
        session.save(stream, version=3, include_maps=True)
        session.models.close(session.models.list())
        stream.seek(0)
        session.restore(stream)
        return {model.name: model for model in session.models.list()}

    return through_a_file


def test_session_files_keep_unit_and_medium(session, ions, do, log, saved_and_restored):
    """Also whether the water has been hidden, as the user may have shown it again."""
    do("potential map #1:NA,CL spacing 1 boundary open medium vacuum unit V name phi")
    volume = saved_and_restored()["phi"]
    (atoms,) = session.models.list(type=type(ions))
    assert atoms.vmdpotential_without_water
    grid = convert().read_volume(volume)
    assert (grid.unit, grid.provenance.medium) == ("V", "vacuum, no screening")
    do(f"potential slice #{volume.id_string} plane z=3")
    assert "V" in log.text.rpartition("colours: ")[2]


def test_the_surface_is_that_of_chimerax(session, ions, do, saved_and_restored):
    """It belongs to the atoms, has the map's colours, also in a restored session, and can be coloured otherwise and
    back."""
    from chimerax.atomic import MolecularSurface
    from chimerax.surface.colorvol import color_electrostatic, volume_coloring

    volume = do("potential map #1:NA,CL spacing 1 boundary open medium explicit unit V name phi range -4,4")

    def expected(surface, volume):
        return rgb_of(volume.interpolated_values(surface.vertices), ValueRange(-4, 4))

    (surface,) = session.models.list(type=MolecularSurface)
    assert surface.parent is ions
    assert sorted(surface.atoms.names) == ["CL", "NA"]
    assert_allclose(surface.vertex_colors[:, :3], expected(surface, volume), atol=1)
    before = surface.vertex_colors.copy()
    models = saved_and_restored()
    volume, (surface,) = models["phi"], session.models.list(type=MolecularSurface)
    assert_allclose(surface.vertex_colors, before, atol=1)
    assert volume_coloring(surface).volume is volume
    color_electrostatic(session, [surface], volume, range=(-100, 100))
    assert (surface.vertex_colors != before).any()
    session.undo.undo()
    assert (surface.vertex_colors == before).all()


def test_a_live_map_continues_in_a_restored_session(session, ions, do, log, saved_and_restored):
    from chimerax.surface.colorvol import color_electrostatic
    from chimerax.surface.surfacecmds import surface as make_surface

    do("potential live #1:NA,CL spacing 1 boundary open medium explicit unit V name phi")
    models = saved_and_restored()
    volume, atoms = models["phi"], next(model for model in models.values() if isinstance(model, type(ions))).atoms[:2]
    given = atoms[1:]
    given.spec = "#1:CL"
    assert "the map of the session follows what is shown" in log.text
    (surface,) = make_surface(session, enclose=given, include=given)
    color_electrostatic(session, [surface], volume, range=(-10, 10))
    before = surface.vertex_colors.copy()
    atoms[0].coord += np.array([0.5, 0, 1.5])
    do("potential live wait")
    nodes = np.array([[6.0, 2, 3], [-3, 1, 0]])
    assert_allclose(volume.interpolated_values(nodes), by_definition(nodes, atoms.coords, [1, -1]), rtol=1e-4)
    assert (surface.vertex_colors != before).any()  # a surface coloured by it follows
    do("potential live off")
    saved_and_restored()
    assert getattr(session, "vmdpotential_live", None) is None


def convert():
    """The bundle's module, which can be imported once ChimeraX runs."""
    return importlib.import_module("chimerax.vmdpotential.convert")


def test_map_with_charges_of_the_atoms(ions, do, log):
    from chimerax.atomic import Atom

    Atom.register_attr(ions.session, "charge", "add charge", attr_type=float)
    for atom, charge in zip(ions.atoms, (2.0, 0.5, 0, 0, 0), strict=True):
        atom.charge = charge
    volume = do("potential map #1 spacing 1 boundary open medium explicit unit V padding 3")
    node = np.array([[1.0, 2.0, 0.0]])
    assert_allclose(volume.interpolated_values(node), by_definition(node, ions.atoms.coords[:2], [2, 0.5]), rtol=1e-5)
    assert "net charge +2.5000 e" in log.text


def test_periodic_map_uses_the_cell(ions, do):
    volume = do("potential map #1 spacing 2 method cutoff cutoff 8 medium explicit")
    assert volume.data.size == (20, 20, 20)
    assert_allclose(volume.data.step, 2)
    expected = vp.potential_map(
        vp.assign_charges(vp.read_structure(ions.filename)), method="cutoff", cutoff=8.0, spacing=2.0)
    assert_allclose(volume.data.full_matrix().transpose(2, 1, 0), expected.values, atol=1e-3)


def test_a_surface_that_leaves_the_periodic_cell_has_the_colours_of_the_images(opened, do, log, tmp_path):
    (tmp_path / "small.pdb").write_text(IONS.replace("40.000", "20.000"))
    ions = opened(tmp_path / "small.pdb")
    do("potential map #1 spacing 1 method cutoff cutoff 8 medium explicit")
    (surface,) = (model for model in ions.session.models.list() if model.name.startswith("potential surface"))
    grid = vp.potential_map(
        vp.assign_charges(vp.read_structure(ions.filename)), method="cutoff", cutoff=8.0, spacing=1.0)
    assert np.isnan(grid.sample(surface.vertices)).any()
    low, high = (float(x) for x in re.search(r"coloured from (\S+) to (\S+) ", log.text).groups())
    values = grid.covering(surface.vertices).sample(surface.vertices)
    expected = rgb_of(values, ValueRange(low, high))
    assert np.isfinite(values).all()
    assert_allclose(surface.vertex_colors[:, :3], expected, atol=1)


def test_map_of_part_of_a_model_with_a_topology(dhfr, do, protein):
    volume = do(f'potential map #1/A:1-60 topology "{ROOT / "data" / "dhfr.psf.gz"}" spacing 2 boundary open '
                "method direct medium vacuum")
    part = protein.take((protein.residue_ids <= 60) & (protein.chain_ids == "A"))
    expected = vp.potential_map(part, spacing=2.0, method="direct", boundary="open")
    values = volume.data.full_matrix().transpose(2, 1, 0)
    assert values.shape == expected.lattice.shape
    assert_allclose(volume.data.origin, expected.lattice.origin)
    rms = np.sqrt((expected.values**2).mean())
    assert np.sqrt(((values - expected.values) ** 2).mean()) < 1e-5 * rms


@pytest.mark.parametrize(("typed", "medium"), [
    ("", "water (Poisson-Boltzmann), 0.15 M, ion radius 2 A, dielectric 78.5, 2 inside"),
    ("medium screened", "screened, 0.15 M, dielectric 78.5"), ("medium vacuum", "vacuum, no screening"),
    ("medium explicit", "explicit water"), ("atoms all", "explicit water"),
])
def test_the_first_picture_is_of_the_solute_in_water_and_hides_the_water(dhfr, do, log, typed, medium):
    water = dhfr.atoms.filter(dhfr.atoms.residues.names == "TIP3")
    water.displays = True
    first = f'potential map #1 topology "{ROOT / "data" / "dhfr.psf.gz"}" spacing 3'
    do(f"{first} {typed}")
    assert f"{medium} (red, white, blue)" in log.shown[-1]
    assert ("coloured from -5 to 5 kT/e" in log.text) == medium.startswith(("screened", "water"))
    assert not water.displays.any()
    water.displays = True
    do(first)
    assert water.displays.all()  # shown again by the user


def test_slice(ions, do, log, tmp_path):
    do("potential map #1:NA,CL spacing 1 boundary open medium explicit unit V padding 5")
    path = tmp_path / "a slice.png"
    before = state(ions)
    do(f'potential slice #2 plane z=3,y=2 structure #1 range -20,20 contours 5 dpi 100 output "{path}"')
    with Image.open(path) as image:
        assert image.size[0] == pytest.approx(89 / 25.4 * 100, abs=2)
        pixels = np.asarray(image.convert("RGB"), float)
    # both signs are there, in the colours of the map's surfaces: blue and red
    assert ((pixels[..., 2] - pixels[..., 0]) > 60).any()
    assert ((pixels[..., 0] - pixels[..., 2]) > 60).any()
    assert "colours: -20 to 20 V" in log.text  # the unit that the map was made with
    ((shown, _),) = log.images
    assert shown.mode == "RGB"
    assert min(shown.size) > 200
    assert state(ions) == before
    do("potential slice #2 profile z")
    assert "profile: mean over planes along z" in log.text
    assert "not written to a file" in log.text


def test_slice_of_a_map_that_chimerax_opened(session, ions, do, log, tmp_path):
    from chimerax.map.volume import open_map

    volume = do("potential map #1:NA,CL spacing 1 boundary open medium explicit padding 5 name one")
    structure = vp.assign_charges(vp.read_structure(ions.filename).take(np.arange(2)))
    vp.write_map(vp.potential_map(structure, spacing=1.0, padding=5.0, boundary="open",
        medium="explicit"), tmp_path / "one.dx")
    models, _ = open_map(session, str(tmp_path / "one.dx"))
    session.models.add(models)
    points = np.random.default_rng(4).uniform(0, 6, (30, 3))
    assert_allclose(models[0].interpolated_values(points), volume.interpolated_values(points), rtol=1e-4, atol=1e-3)
    # ChimeraX keeps no unit; it is read from the file again, else the two could not share a scale
    do(f"potential slice #{volume.id_string},{models[0].id_string} plane x=3")
    shown = re.findall(r"x = 3 Å, (\S+) to (\S+) kT/e", log.text)
    assert len(shown) == 2
    assert_allclose(np.array(shown[0], float), np.array(shown[1], float), rtol=1e-3)


@pytest.mark.parametrize(("line", "message"), [
    ("map #1 spacing 0", "potential map: spacing 0: must be at least 0.01 A"),
    ("map #1 spacing far", 'Invalid "spacing" argument: Expected a number'),
    ("map #1 unit hartree", 'Invalid "unit" argument: Should be one of'),
    ("map #1 topology /no/such.psf", 'Invalid "topology" argument: File \'/no/such.psf\' does not exist'),
    ('map #1 topology ""', 'Invalid "topology" argument'),
    ("map #1 method largest", 'Invalid "method" argument: Should be one of'),
    ("map #1 method largebin unit m", 'Invalid "unit" argument'),  # a method that is not listed, by its full name
    ("map #1 method large", 'Invalid "method" argument: Should be one of'),
    ("map #1 cell 30,30", "potential map: cell 30,30: three lengths in A are needed"),
    ("map #1 set spam", "potential map: set spam: give NAME=NUMBER"),
    ("map #1 atoms nothing!", "potential map: atoms nothing!: this is neither a selection in the viewer"),
    ("map #1:77", "potential map: structure #1:77: there are no such atoms; specify atoms of #1 (AtomicStructure"),
    ("map #9", "potential map: structure #9: there are no such atoms; specify atoms of #1 (AtomicStructure"),
    ("map #1 method direct boundary periodic", "potential map: boundary periodic"),
    ("map #1 spacing 0.01 boundary open", "potential map: the method pb: "),
    ("map nothing", 'Missing or invalid "structure" argument: invalid atoms specifier: "nothing" is not a selector name'
     "; specify atoms, such as #1"),
    ("ionize #1:NA,CL", "potential ionize: "),
    ("ionize #1 cation XX", "potential ionize: cation XX: is not a known ion"),
    ("ionize #1 fromSolute -1", "potential ionize: fromSolute -1: must be at least 0 A"),
    ("ionize #1 ions SOD=99", "potential ionize: "),
    ("slice #1", "potential slice: maps: there is no such map"),
    ("slice #7", "potential slice: maps: there is no such map"),
    ("view #1 output page.txt", "potential view: output page.txt: a page is written as .html"),
])
def test_wrong_use_is_one_line(session, ions, do, line, message):
    from chimerax.core.errors import UserError

    before = state(ions)
    with pytest.raises(UserError) as caught:
        do(f"potential {line}")
    text = str(caught.value)
    assert text.startswith(message)
    assert "\n" not in text
    assert "--" not in text
    assert session.models.list() == [ions]
    assert state(ions) == before


def test_atoms_without_charges_are_named(opened, do, tmp_path):
    from chimerax.core.errors import UserError

    (tmp_path / "ligand.pdb").write_text(IONS.replace("CL   CL ", "X1   LIG").replace(" CL\n", "  C\n"))
    opened(tmp_path / "ligand.pdb")
    with naming(UserError, "potential map: #1 ligand: ", "LIG", "charges"):
        do("potential map #1")


def test_progress_is_on_the_status_line(ions, do, log):
    do("potential map #1 spacing 1 boundary open medium explicit")
    assert any(text.startswith("potential map: ") for text in log.shown)


def test_stopped_work_leaves_nothing(session, ions, do, log, monkeypatch):
    from chimerax.core.errors import CancelOperation
    from chimerax.vmdpotential.progress import StatusLine

    calls = []

    def stop(self, label, fraction):
        calls.append(fraction)
        raise KeyboardInterrupt

    monkeypatch.setattr(StatusLine, "__call__", stop)
    with pytest.raises(CancelOperation):
        do("potential map #1 spacing 0.5 boundary open medium explicit")
    assert len(calls) == 1
    assert session.models.list() == [ions]
    assert log.shown[-1] == "potential map: stopped; nothing was made"
    monkeypatch.undo()
    assert do("potential map #1 spacing 2 boundary open medium explicit") in session.models.list()


@pytest.mark.parametrize(("typed", "spelled"), [("range 5,-5", "range 5,-5"), ("range five", "range five")])
def test_a_wrong_range_is_spelled_as_a_keyword(ions, do, typed, spelled):
    from chimerax.core.errors import UserError

    with naming(UserError, f"potential map: {spelled}: "):
        do(f"potential map #1/A {typed}")
    with pytest.raises(UserError):
        do("potential map #1/A colour 5")


def test_keywords_have_further_names(ions, do):
    from chimerax.core.errors import UserError

    volumes = [do(f"potential map #1:NA,CL spacing 2 boundary open {keyword} 0.3 name {keyword}")
               for keyword in ("screened", "ionicStrength")]
    nodes = np.array([[3.0, 5.0, 4.0], [-2.0, 0.0, 1.0], [8.0, -3.0, 0.0]])
    first, second = (volume.interpolated_values(nodes) for volume in volumes)
    assert_allclose(second, first, rtol=1e-6)
    with naming(UserError, "potential map: screened: "):
        do("potential map #1:NA,CL screened 0.1 ionicStrength 0.2")


def test_a_density_is_one_isosurface(session, ions, do, log):
    """Before, zeros next to the atoms gave a surface coloured from -0 to 0, and isosurfaces of both signs."""
    ions.add_coordset(2, ions.atoms.coords + 0.2)
    volume = do("potential density #1 of number padding 4 spacing 1 boundary open")
    assert [model for model in session.models.list() if "surface" in model.name] == [*volume.surfaces]
    (surface,) = volume.surfaces
    assert 0 < surface.level < volume.data.full_matrix().max()
    assert not [text for level, text in log.entries if level == "warning" and "invalid value" in text]


def test_a_mesh_has_the_colours_of_its_values_and_markers_with_names(session):
    show = importlib.import_module("chimerax.vmdpotential.show")
    places = np.array([[4.0, 0, 0], [0, 4, 0], [0, 0, 4], [-4, 0, 0]])
    made = Surface(places, np.array([[0, 1, 2], [0, 2, 3]]), np.zeros(4, np.int64), np.ones(4), "molecular",
                   np.zeros(4, np.int64))
    values = np.array([-2.0, 2.0, 0.0, np.nan])
    drawn = DrawnSurface(made, values, (-2.0, 2.0), "kT/e", "kT/e", [("+1", np.array([1.0, 2.0, 3.0]))])
    (model,), (line,) = show.show(session, Report([], {}, {"mesh": drawn}), "patches", None, {})
    assert_allclose(model.vertices, places)
    assert (model.vertex_colors[:, :3] == rgb_of(values, (-2.0, 2.0))).all()
    (markers,) = (each for each in session.models.list() if each.name == "patches labels")
    assert [(atom.name, *atom.coord) for atom in markers.atoms] == [("+1", 1.0, 2.0, 3.0)]
    assert "-2 to 2 kT/e" in line
    assert "names at the markers" in line


@pytest.mark.parametrize("line", ["map {map}", "map #1 {map}", "surface #1 {map}", "energy {map} between :NA,:CL"])
def test_a_map_is_refused_as_a_structure(ions, do, line):
    """ChimeraX reads '#1 #2' as one specification. Before, `potential surface #1 #2` computed a map of its own."""
    from chimerax.core.errors import UserError

    number = do("potential map #1:NA,CL spacing 2 boundary open medium explicit name phi").id_string
    with pytest.raises(UserError, match=rf"structure \S+: #{number} \(Volume phi\) is not a structure; specify atoms of"
                                        rf" #1 \(AtomicStructure ions\); .*: map #{number}$"):
        do(f"potential {line.format(map=f'#{number}')}")


def test_without_a_structure_the_displayed_ones_are_meant(session, ions, do, opened, tmp_path):
    """As for ChimeraX's own commands; a hidden structure, such as the one that ions were placed in, does not count."""
    from chimerax.core.errors import UserError

    (tmp_path / "again.pdb").write_text(IONS)
    hidden = opened(tmp_path / "again.pdb")
    hidden.display = False
    keywords = "spacing 2 boundary open medium explicit"
    first, second = do(f"potential map {keywords}"), do(f"potential map #1 {keywords}")
    assert_allclose(first.data.full_matrix(), second.data.full_matrix())
    ions.display = False
    with naming(UserError, "potential map: structure: ", " #1"):
        do("potential map")
    session.models.close(session.models.list())
    with naming(UserError, "potential map: structure: "):
        do("potential map")


def test_results_are_json_for_other_programs(session, ions, do):
    """As ChimeraX's interfaces REST and MCP ask for them."""
    from chimerax.core.commands import run
    from chimerax.rest_server.server import RESTServer

    keywords = "spacing 2 boundary open medium explicit surface false"
    result = run(session, f"potential map #1:NA,CL {keywords}", log=False, return_json=True)
    volume, values = result.python_value, json.loads(result.json_value)
    assert values["model specs"] == [f"#{volume.id_string}"]
    expected = vp.potential_map(
        vp.assign_charges(vp.read_structure(ions.filename).take(np.arange(2))), spacing=2.0, boundary="open",
        medium="explicit")
    assert values["minimum"] == pytest.approx(float(expected.values.min()), rel=1e-4)
    assert values["unit"] == "kT/e"
    assert any(line.startswith(f"map #{volume.id_string} potential") for line in values["report"])

    server = RESTServer(session)
    thread = threading.Thread(target=server.run, args=(0, False, True), daemon=True)
    thread.start()
    while server.httpd is None:
        time.sleep(0.01)
    try:
        def ask(line):
            host, port = server.server_address
            query = urllib.parse.urlencode({"command": line})
            with urllib.request.urlopen(f"http://{host}:{port}/run?{query}", timeout=60) as answer:
                return json.loads(answer.read())

        answer = ask(f"potential map #1:NA {keywords}")
        assert answer["error"] is None
        (values,) = map(json.loads, answer["json values"])
        assert values["net_charge"] == pytest.approx(1)
        (other,) = values["model specs"]
        answer = ask(f"potential compare #{volume.id_string} second {other}")
        assert answer["error"] is None
        (values,) = map(json.loads, answer["json values"])
        assert -1 < values["correlation"] < 1
        answer = ask(f"potential map #{volume.id_string}")
        assert answer["error"]["type"] == "UserError"
        assert answer["json values"] == []
    finally:
        server.terminate()
