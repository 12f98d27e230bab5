"""Molecular surfaces against closed forms, areas against counted points, maps on them against scipy's interpolation."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import water
from messages import naming
from scipy.ndimage import label, map_coordinates

import vmdpotential as vp
from vmdpotential import errors
from vmdpotential.commands.surface import command
from vmdpotential.figures import surfaces
from vmdpotential.frontend import cli
from vmdpotential.frontend.arguments import build_parser, join_negative_values
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.io.maps import write_map
from vmdpotential.molecule.elements import van_der_waals_radii
from vmdpotential.molecule.structure import Structure
from vmdpotential.surfaces import PROBE_RADIUS, SURFACE_KINDS, depth_map, molecular_surface, owner_rows
from vmdpotential.surfaces.voids import find_cavities

RADIUS = 1.7


def carbons(positions):
    count = len(positions)
    names = np.array(["C"] * count)
    return Structure(np.array(positions, float), names, np.array(["UNK"] * count), np.arange(1, count + 1),
                     np.arange(count), elements=names)


def around(positions, **options):
    return molecular_surface(carbons(positions), atoms="all", radii=np.full(len(positions), RADIUS), **options)


def is_closed(surface):
    """Return whether each edge has two triangles, which run along it in opposite directions."""
    a, b, c = surface.triangles.T
    edges = np.concatenate([np.stack(pair, 1) for pair in ((a, b), (b, c), (c, a))])
    one_way = {tuple(edge) for edge in edges.tolist()}
    return len(one_way) == len(edges) and all((b, a) in one_way for a, b in one_way)


@pytest.mark.parametrize(("kind", "radius"), [("molecular", RADIUS), ("accessible", RADIUS + PROBE_RADIUS)])
def test_a_sphere(kind, radius):
    surface = around([[0.3, 0.2, 0.1]], kind=kind)
    outwards = (surface.vertices - [0.3, 0.2, 0.1]) / radius
    np.testing.assert_allclose(np.linalg.norm(outwards, axis=1), 1, atol=0.01)
    assert np.einsum("ij,ij->i", surface.normals, outwards).min() > 0.97
    assert surface.area == pytest.approx(4 * np.pi * radius**2, rel=1e-6)
    assert is_closed(surface)


def test_depths_for_pictures_are_exact_next_to_the_surface():
    spacing, apart = 0.4, 3.0
    grid = depth_map(carbons([[0, 0, 0], [0, 0, apart]]), np.ones(2, bool), spacing)
    x, y, z = grid.lattice.points().T
    across, up = np.hypot(x, y), abs(z - apart / 2)
    circle = np.sqrt((RADIUS + PROBE_RADIUS) ** 2 - apart**2 / 4)  # of the probe's centre that touches both
    neck = up * circle < (circle - across) * apart / 2  # between the atoms, where the probe's sphere is the surface
    outside = np.where(neck, PROBE_RADIUS - np.hypot(circle - across, up), np.hypot(across, up - apart / 2) - RADIUS)
    near = abs(outside) < 2 * spacing
    assert (neck & near).sum() > 100
    np.testing.assert_allclose(grid.values.ravel()[near], -outside[near], atol=1e-5)


def two_spheres(distance):
    """Return the molecular surface's area of two spheres: two caps and a part of a torus (Connolly 1983)."""
    along = distance / 2 / (RADIUS + PROBE_RADIUS)
    theta = np.arccos(along)  # of the probe that touches both, seen from a centre
    circle, phi = (RADIUS + PROBE_RADIUS) * np.sin(theta), np.pi / 2 - theta
    caps = 4 * np.pi * RADIUS**2 * (1 + along)
    cut = np.arccos(circle / PROBE_RADIUS) if circle < PROBE_RADIUS else 0.0  # where the torus would cut itself
    return caps + 4 * np.pi * PROBE_RADIUS * (circle * (phi - cut) - PROBE_RADIUS * (np.sin(phi) - np.sin(cut)))


@pytest.mark.parametrize("distance", [1.5, 3.0, 4.5, 5.9])
def test_two_spheres(distance):
    surface = around([[0, 0, 0], [0.6 * distance, 0.8 * distance, 0]])
    assert surface.area == pytest.approx(two_spheres(distance), rel=0.004)
    if distance < 5:  # beyond, the neck is thinner than the lattice
        assert is_closed(surface)


@pytest.mark.slow
def test_no_point_of_a_molecular_surface_is_where_a_probe_cannot_touch():
    """Each is a probe's radius from where its centre can be, found here by points all over the spheres."""
    rng = np.random.default_rng(2)
    centres = rng.uniform(0, 6, (12, 3))
    sphere = rng.normal(size=(20_000, 3))
    sphere *= (RADIUS + PROBE_RADIUS) / np.linalg.norm(sphere, axis=1)[:, None]
    points = (centres[:, None] + sphere).reshape(-1, 3)
    free = (np.linalg.norm(points[:, None] - centres, axis=2) > RADIUS + PROBE_RADIUS - 1e-6).all(1)
    counted = free.mean() * 12 * 4 * np.pi * (RADIUS + PROBE_RADIUS) ** 2
    accessible = around(centres, kind="accessible")
    assert accessible.area == pytest.approx(counted, rel=0.003)
    molecular = around(centres)
    distance = np.array([np.linalg.norm(points[free] - vertex, axis=1).min() for vertex in molecular.vertices[::37]])
    np.testing.assert_allclose(distance, PROBE_RADIUS, atol=0.06)
    assert molecular.area < accessible.area
    nearest = np.linalg.norm(molecular.vertices[:, None] - centres, axis=2).argmin(1)
    np.testing.assert_array_equal(molecular.atoms, nearest)


def some_map():
    lattice = Lattice(np.array([-8.0, -9, -10]), np.array([0.6, 0.7, 0.8]), (28, 26, 25))
    return Grid(lattice, np.random.default_rng(3).normal(size=lattice.shape), "kT/e", 298.15)


@pytest.mark.parametrize("kind", SURFACE_KINDS)
def test_maps_on_a_surface_equal_an_independent_interpolation(kind):
    grid = some_map()
    atoms = np.array([[0, 0, 0], [2.0, 1.0, 0], [4.0, 0, 1.0]])
    surface = around(atoms, kind=kind)
    for outwards in (0.0, 1.4):
        points = surface.vertices + outwards * surface.normals
        places = (points - grid.lattice.origin) / grid.lattice.spacing
        expected = map_coordinates(grid.values.astype(float), places.T, order=1, mode="nearest")
        actual = surface.sample(grid, outwards)
        inside = (points < grid.lattice.last).all(1)
        if kind == "molecular" and outwards:  # others are moved
            inside &= np.linalg.norm(points[:, None] - atoms, axis=-1).min(1) - RADIUS > outwards - 0.1
        assert inside.mean() > 0.5
        assert np.isfinite(actual[inside]).all()
        np.testing.assert_allclose(actual[inside], expected[inside], atol=1e-6)


def test_the_unit_of_a_file_must_not_contradict_the_unit_that_it_states(files, capsys):
    words = ["surface", str(files / "three.pdb"), str(files / "map.dx"), "--mesh-spacing", "0.6", "--unit-of-file"]
    assert cli.main([*words, "kT/e"]) == 0
    assert cli.main([*words, "hartree/e"]) == 2
    assert "--unit-of-file hartree/e: " in capsys.readouterr().err


def test_rows_add_up_and_leave_out_what_is_not_in_the_map():
    surface = around([[0, 0, 0], [2.5, 0, 0], [9.0, 0, 0]])
    values = surface.vertices[:, 0].copy()
    values[surface.atoms == 2] = np.nan
    table = owner_rows(surface, values, surface.atoms)
    assert sum(row.area for row in table) == pytest.approx(surface.area)
    assert table[0].mean < 0 < table[1].mean
    of_first = surface.atoms == 0
    assert table[0].mean == pytest.approx(np.average(values[of_first], weights=surface.areas[of_first]))
    assert (table[0].low, table[0].high) == (values[of_first].min(), values[of_first].max())
    assert np.isnan([table[2].mean, table[2].low, table[2].high]).all()


@pytest.fixture
def files(tmp_path):
    lines = [f"ATOM  {n:5d}  C   UNK A{n:4d}    {x:8.3f}{0:8.3f}{0:8.3f}  1.00  0.00           C" for n, x in
             enumerate((0.0, 2.0, 6.5), 1)]
    (tmp_path / "three.pdb").write_text("\n".join([*lines, "END", ""]))
    write_map(some_map(), tmp_path / "map.dx")
    return tmp_path


@pytest.mark.parametrize("words", [
    ["--view", "z", "-z"], ["--view", "-y"], ["--view=-y"], ["--view", "-x", "x", "-z", "y", "-y", "z"],
    ["--view", "-x", "--view", "x"], ["--view", "1,1,0", "-1,1,0", "-short", "--up", "-y"], ["--up", "-1,0,2"],
    ["--facing", "//A/1", "--view=-1,0,0"]])
def test_every_direction_can_be_typed(files, words):
    structure, grid, figure = (str(files / name) for name in ("three.pdb", "map.dx", "f.svg"))
    first = ["surface", structure, grid, "--figure", figure, *words]
    assert cli.main([*first, "--atoms", "all", "--mesh-spacing", "1"]) == 0
    assert (files / "f.svg").exists()
    last = ["surface", *words, "--figure", figure, structure, grid]  # a file may follow another option
    typed = [vars(build_parser(line).parse_args(join_negative_values(line))) for line in (first, last)]
    assert typed[0] == typed[1]


@pytest.mark.parametrize(("options", "label"), [([], "kT/e"), (["--label", "phi"], "phi")])
def test_pictures_fill_the_width_and_the_label_is_one_line(files, options, label, capsys):
    water = Provenance(medium="water (Poisson-Boltzmann), 0.15 M, ion radius 2 A, dielectric 78.5, 2 inside",
                       medium_kind="water")
    write_map(replace(some_map(), provenance=water), files / "water.npz")
    views = ["x", "y", "z", "-z"]
    assert cli.main(["surface", str(files / "three.pdb"), str(files / "water.npz"), "--atoms", "all", "--figure",
                     str(files / "f.svg"), "--view", *views, *options]) == 0
    assert water.medium in capsys.readouterr().out
    assert f">{label}<" in (files / "f.svg").read_text()
    mesh = molecular_surface(vp.read_structure(files / "three.pdb"), atoms="all", spacing=0.5)
    figure = surfaces.figure(mesh, mesh.vertices[:, 0], views, (-1, 1), label)
    boxes = [ax.get_position() for ax in figure.axes[: len(views)]]
    assert max(box.x1 for box in boxes) - min(box.x0 for box in boxes) > 0.8
    scale = np.array([box.width * figure.get_figwidth() / np.ptp(ax.get_xlim()) for box, ax in
                      zip(boxes, figure.axes, strict=False)])
    assert scale == pytest.approx(scale[0])  # all pictures have the scale of the one with the scale bar
    for ax in figure.axes[: len(views)]:
        drawn = np.concatenate([path.vertices for path in ax.collections[0].get_paths()])
        assert np.ptp(drawn, axis=0) == pytest.approx([np.ptp(ax.get_xlim()), np.ptp(ax.get_ylim())], rel=0.05)


def test_the_command_writes_tables_meshes_and_a_figure(files, capsys):
    trimesh = pytest.importorskip("trimesh", reason="meshes need trimesh")
    names = ["t.csv", "v.csv", "m.glb", "m.ply"]
    call = ["surface", str(files / "three.pdb"), str(files / "map.dx"), "--atoms", "all", "--mesh-spacing", "0.5",
            "--json"]
    outputs = [word for name in names if name != "v.csv" for word in ("-o", str(files / name))]
    assert cli.main([*call, *outputs, "--figure", str(files / "f.svg"), "--view", "x", "--range=-2,2"]) == 0
    said = json.loads(capsys.readouterr().out)
    with (files / "t.csv").open() as stream:
        table = list(csv.DictReader(stream))
    assert [row["residue"] for row in table] == ["A/UNK1", "A/UNK2", "A/UNK3"] == [row["name"] for row in said["rows"]]
    assert sum(float(row["area"]) for row in table) == pytest.approx(said["area"], rel=1e-6)
    shades = []
    for name in ("m.glb", "m.ply"):
        mesh = trimesh.load_scene(files / name, process=False).geometry.popitem()[1]
        assert len(mesh.faces) == said["triangles"]
        assert mesh.area == pytest.approx(said["area"], rel=0.03)  # triangles cut corners
        # with a material, trimesh keeps the colours of vertices as an attribute
        colours = mesh.visual.vertex_attributes["color"] / 65535 if name == "m.glb" else mesh.visual.vertex_colors / 255
        assert len(np.unique(colours, axis=0)) > 50
        shades.append(colours[:, :3])
        assert (colours[:, 3] == 1).all()
        assert mesh.is_watertight
        assert mesh.volume > 0  # counterclockwise from outside
        np.testing.assert_allclose(np.linalg.norm(mesh.vertex_normals, axis=1), 1, atol=1e-6)
        corners = mesh.face_normals[mesh.vertex_faces[:, 0]]
        assert (mesh.vertex_normals * corners).sum(1).mean() > 0.9
    # glTF 2.0, 3.7.2.1: COLOR_0 is linear, and the colours of a PLY are those of a screen (IEC 61966-2-1)
    linear, screen = shades
    np.testing.assert_allclose(linear, np.where(screen <= 0.04045, screen / 12.92, ((screen + 0.055) / 1.055) ** 2.4),
                               atol=0.6 / 65535)
    content = (files / "m.glb").read_bytes()
    (material,) = json.loads(content[20 : 20 + int.from_bytes(content[12:16], "little")])["materials"]
    assert material["pbrMetallicRoughness"]["metallicFactor"] == 0
    written = mesh.metadata["_ply_raw"]["vertex"]["data"]["value"]
    assert (written.min(), written.max()) == pytest.approx((said["minimum"], said["maximum"]), rel=1e-6)
    assert "<svg" in (files / "f.svg").read_text()
    assert cli.main([*call, "-o", str(files / "v.csv"), "--by", "vertex"]) == 0
    with (files / "v.csv").open() as stream:
        vertices = list(csv.DictReader(stream))
    assert len(vertices) == said["vertices"]
    assert {row["atom"] for row in vertices} == {"A/UNK1/C", "A/UNK2/C", "A/UNK3/C"}


@pytest.mark.parametrize(("kind", "options", "expected"), [
    ("vacuum", [], 0.0), ("water", [], 1.4), ("water", ["--outwards", "0"], 0.0)])
def test_a_map_in_a_continuum_is_read_where_the_viewers_read_it(files, capsys, kind, options, expected):
    grid = some_map()
    write_map(replace(grid, provenance=replace(grid.provenance, medium_kind=kind)), files / "medium.npz")
    assert cli.main(["surface", str(files / "three.pdb"), str(files / "medium.npz"), "--atoms", "all", "--mesh-spacing",
                     "0.5", "--json", *options]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["outwards"] == expected
    surface = molecular_surface(vp.read_structure(files / "three.pdb"), atoms="all", spacing=0.5)
    values = surface.sample(grid, expected)
    assert said["maximum"] == pytest.approx(np.nanmax(values), rel=1e-5)


@pytest.mark.parametrize(("options", "parameter"), [
    (["-o", "t.obj"], "output"), (["--view", "up"], "view"), (["--view", "0,0,0"], "view"),
    (["--view", "z", "--up=-z"], "up"), (["--facing", "//A/1-3"], "facing"), (["--range=2,1"], "range")])
def test_what_the_command_refuses(files, options, parameter):
    command = ["surface", str(files / "three.pdb"), str(files / "map.dx"), *options]
    assert cli.main(command) == 2
    with pytest.raises(errors.UsageError) as raised:
        cli.run(command)
    assert raised.value.parameter == parameter


def test_a_surface_needs_atoms_with_radii_and_a_map_around_it(files):
    with naming(errors.InputError, "radius"):
        molecular_surface(carbons([[0, 0, 0]]), atoms="all", radii=np.zeros(1))
    far = Grid(Lattice(np.full(3, 500.0), np.ones(3), (3, 3, 3)), np.zeros((3, 3, 3)))
    write_map(far, files / "far.dx")
    assert cli.main(["surface", str(files / "three.pdb"), str(files / "far.dx"), "--atoms", "all"]) == 2


def shell_of_carbons(radius=7.0, count=300):
    """Return carbons on a sphere, which is closed, with charges."""
    z = 1 - 2 * (np.arange(count) + 0.5) / count
    angle = np.pi * (1 + 5**0.5) * np.arange(count)
    ring = np.sqrt(1 - z**2)
    made = carbons(radius * np.stack([ring * np.cos(angle), ring * np.sin(angle), z], 1))
    return replace(made, charges=np.where(made.positions[:, 2] > 0, 0.02, 0.01))


def closed_shell(ring, radius=7.0):
    """Return carbons on a sphere but for its top, where a ring of them has this distance (A) from the axis."""
    made = shell_of_carbons(radius).positions
    height = np.sqrt(radius**2 - ring**2)
    angle = 2 * np.pi * np.arange(12) / 12
    around_hole = np.stack([ring * np.cos(angle), ring * np.sin(angle), np.full(12, height)], 1)
    rest = (made[:, 2] < 0) | (np.linalg.norm(made[:, :2], axis=1) > ring + 0.3)
    return np.concatenate([made[rest], around_hole]), height


@pytest.mark.parametrize("kind", SURFACE_KINDS)
@pytest.mark.parametrize("ring", [2.9, 3.05, 3.15])
def test_a_cavity_is_what_a_probe_cannot_leave(ring, kind):
    """In the plane of a ring a probe needs a distance of both radii from its atoms.

    Where it does not fit by little, probes on both sides of the ring overlap, so that triangles join both sides. The
    one outside stops where it touches the ring.
    """
    positions, height = closed_shell(ring)
    made = around(positions, kind=kind)
    outer = made.outer
    assert is_closed(made)
    assert is_closed(outer)
    assert outer.kind == kind
    on_axis = outer.vertices[(np.linalg.norm(outer.vertices[:, :2], axis=1) < 0.3) & (outer.vertices[:, 2] > -5.5)]
    if ring > RADIUS + PROBE_RADIUS:
        assert not made.cavities.any()
        assert on_axis[:, 2].min() < 0
        return
    assert set(made.cavities.tolist()) == {0, 1}
    stop = np.sqrt((RADIUS + PROBE_RADIUS) ** 2 - ring**2) - (PROBE_RADIUS if kind == "molecular" else 0)
    assert on_axis[:, 2].min() == pytest.approx(height + stop, abs=0.05)
    within = made.part(made.cavities == 1)
    free = 7 - RADIUS - (PROBE_RADIUS if kind == "accessible" else 0)  # a little less between the atoms of the wall
    assert 0.98 * free < np.linalg.norm(within.vertices[within.vertices[:, 2] < 3], axis=1).mean() < 1.1 * free
    assert np.einsum("ij,ij->i", within.normals, within.vertices).max() < 0.5  # into the cavity


def test_what_is_in_a_cavity_belongs_to_it():
    positions = np.concatenate([shell_of_carbons(9.0).positions, [[0, 0, 0]]])
    made = around(positions, spacing=0.5)
    inside = np.linalg.norm(made.vertices, axis=1) < 9
    assert np.array_equal(made.cavities == 1, inside)
    assert made.areas[made.atoms == len(positions) - 1].sum() == pytest.approx(4 * np.pi * RADIUS**2, rel=1e-6)


@pytest.mark.parametrize("seed", [0, 9, 10])
def test_balls_of_cavities_cover_what_no_way_leads_to_and_nothing_else(seed):
    """A way between spheres passes nodes that are free of spheres smaller by half the diagonal of a lattice's cell."""
    rng, step = np.random.default_rng(seed), 0.1
    centres = rng.uniform(-6, 6, (150, 3))
    centres = centres[np.linalg.norm(centres, axis=1) > 4]
    sizes = rng.uniform(2.2, 3.2, len(centres))
    found = find_cavities(centres, sizes)
    lattice = Lattice.around(centres, step, 4.0)
    nodes = lattice.points().reshape(*lattice.shape, 3)
    depth, covered = np.full(lattice.shape, -np.inf), np.zeros(lattice.shape, bool)
    def around(centre, size):  # only nodes near a sphere, as there are 8 million
        low = np.floor((centre - size - 2 * step - lattice.origin) / step).astype(int)
        high = np.ceil((centre + size + 2 * step - lattice.origin) / step).astype(int) + 1
        part = tuple(slice(max(0, a), max(0, b)) for a, b in zip(low, high, strict=True))
        return part, size - np.linalg.norm(nodes[part] - centre, axis=-1)

    for centre, size in zip(centres, sizes, strict=True):
        part, inside = around(centre, size)
        depth[part] = np.maximum(depth[part], inside)
    for centre, size in zip(found.centres, found.radii, strict=True):
        part, inside = around(centre, size)
        covered[part] |= inside > 0
    free = depth < 0
    reached, _ = label(free)
    reachable, _ = label(depth < np.sqrt(0.75) * step, np.ones((3, 3, 3)))
    assert not covered[reached == reached[0, 0, 0]].any()
    closed = free & (reachable != reachable[0, 0, 0])
    assert closed.sum() > 100
    assert covered[closed].all()


@pytest.mark.slow
def test_values_in_the_cavities_of_an_entry_are_not_those_of_its_surface():
    """PDB entry 3q4o, chain A: triangles join a cavity of the size of one water, without charges, to the outside."""
    folder = Path(pytest.importorskip("MDAnalysisTests").__file__).parent
    made = command(structure=folder / "data" / "dssp" / "3q4oA.pdb.gz", spacing=1.0, mesh_spacing=0.3)
    assert max(-made.data["minimum"], made.data["maximum"]) < 20
    assert made.data["cavity_minimum"] < -50
    assert len(made.data["cavities"]) == made.surface.cavities.max()
    assert sum(cavity["area"] for cavity in made.data["cavities"]) == pytest.approx(made.data["cavity_area"])


@pytest.mark.slow
def test_rounding_near_charges_does_not_refuse_a_potential_that_is_small_far_away():
    """PDB entry 4dkc, chain A, at 1 A: a mesh in single precision misses the tolerance of the solver's own sum."""
    folder = Path(pytest.importorskip("MDAnalysisTests").__file__).parent
    made, finer = (command(structure=folder / "data" / "dssp" / "4dkcA.pdb.gz", spacing=spacing)
                   for spacing in (1.0, 0.8))
    assert made.data["mean"] == pytest.approx(finer.data["mean"], abs=0.1)


def test_a_wide_closed_space_counts_as_outside():
    count = 2000
    wide = shell_of_carbons(14.0, count)
    assert len(find_cavities(wide.positions, np.full(count, RADIUS + PROBE_RADIUS))) == 0


def test_a_cavity_is_a_part_of_its_own(tmp_path):
    made = command(structure=shell_of_carbons(), medium="vacuum", spacing=1.0, mesh_spacing=0.5, by="atom",
                   output=tmp_path / "table.csv")
    inside = np.linalg.norm(made.surface.vertices, axis=1) < 7
    assert np.array_equal(made.surface.cavities == 1, inside)
    assert made.data["cavity_area"] == pytest.approx(made.surface.areas[inside].sum())
    assert made.data["maximum"] == pytest.approx(made.values[~inside].max(), rel=1e-6)
    assert made.data["cavity_maximum"] == pytest.approx(made.values[inside].max(), rel=1e-6)
    with (tmp_path / "table.csv").open() as stream:
        table = list(csv.DictReader(stream))
    area = {part: sum(float(row["area"]) for row in table if row["part"] == part) for part in ("outside", "cavity 1")}
    assert area["cavity 1"] == pytest.approx(made.data["cavity_area"], rel=1e-5)
    assert area["outside"] == pytest.approx(made.data["area"], rel=1e-5)
    assert len(made.data["cavities"]) == 1
    cavity = made.data["cavities"][0]
    assert (cavity["area"], cavity["maximum"]) == (made.data["cavity_area"], made.data["cavity_maximum"])
    assert cavity["centre"] == pytest.approx([0, 0, 0], abs=0.1)
    drawn = command(structure=shell_of_carbons(), medium="vacuum", spacing=1.0, mesh_spacing=0.5, cavities=True,
                    output=tmp_path / "mesh.ply", figure=tmp_path / "figure.png")
    assert (drawn.data["vertices"], made.data["vertices"]) == (len(inside), (~inside).sum())
    filled = command(structure=shell_of_carbons(2.0), medium="vacuum", spacing=1.0, mesh_spacing=0.5)
    assert "cavity_area" not in filled.data or filled.data["cavity_area"] is None


def test_a_surface_without_a_map_has_that_of_its_atoms_and_notices_another(caplog):
    made = shell_of_carbons(3.0)
    options = {"spacing": 1.5, "padding": 5.0}
    grid = vp.potential_map(made, **options)
    alone = command(structure=made, mesh_spacing=0.6, **options)
    with_map = command(structure=made, map=grid, mesh_spacing=0.6)
    np.testing.assert_array_equal(alone.values, with_map.values)
    assert alone.data["medium"].startswith("water (Poisson-Boltzmann)")
    assert "the map is that of" not in caplog.text
    command(structure=made.take(np.arange(200)), map=grid, mesh_spacing=0.6)
    assert "the map is that of 300 atoms, and the surface that of 200" in caplog.text
    caplog.clear()
    command(structure=replace(made, positions=made.positions + np.array([0, 2, 0])), map=grid, mesh_spacing=0.6)
    assert "2.0 A away" in caplog.text


def test_a_surface_of_water_alone_is_that_of_all_atoms():
    made = command(structure=water(6.0), spacing=2.0, padding=3.0, mesh_spacing=0.8)
    assert made.data["medium"] == "explicit water"
    assert made.data["outwards"] == 0


@pytest.mark.slow
def test_no_value_outside_of_a_surface_is_read_within_the_molecule():
    """Also at the cusps of crevices: the probe that touches the surface is outside of all atoms (Richards 1977)."""
    from scipy.spatial import cKDTree

    structure = vp.read_structure("data/1hvr.pdb.gz")
    size = van_der_waals_radii(structure.elements)

    class Where:
        def covering(self, points):
            return self

        def sample(self, points):
            return np.min([cKDTree(structure.positions[size == r]).query(points)[0] - r for r in np.unique(size)], 0)

    for outwards in (0.7, PROBE_RADIUS):
        assert molecular_surface(structure, atoms="all").sample(Where(), outwards).min() > outwards - 0.5


def test_areas_do_not_depend_on_the_number_of_threads(monkeypatch):
    """A point of each atom's part tells outside from cavities: several threads must not write the same one."""
    structure, areas = vp.read_structure(Path(__file__).resolve().parents[2] / "data" / "1aki.pdb.gz"), {}
    for number in (1, 2, 5):
        monkeypatch.setenv("VMDPOTENTIAL_THREADS", str(number))
        areas[number] = [molecular_surface(structure, atoms="protein", spacing=1.2).areas for _ in range(number)]
    for other in (*areas[2], *areas[5]):
        np.testing.assert_allclose(other, areas[1][0], rtol=1e-12)


@pytest.mark.parametrize("options", [{"outwards": 6.0}, {"kind": "accessible", "probe": 5.0}])
def test_a_potential_is_computed_wherever_it_is_read(options):
    made = command(structure=water(6.0), boundary="open", spacing=2.0, padding=0.0, mesh_spacing=0.8, **options)
    assert made.data["inside"] == 1
    assert np.isfinite(made.values).all()
