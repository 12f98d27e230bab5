"""Patches of surfaces: closed forms, scipy's components of the same mesh, and a mesh twice as fine."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import charges_at
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import vmdpotential as vp
from vmdpotential import potential_map, read_structure
from vmdpotential.errors import UsageError
from vmdpotential.frontend import cli
from vmdpotential.molecule.moments import charge_moments
from vmdpotential.surfaces import molecular_surface
from vmdpotential.surfaces.drawn import patch_labels, patch_values
from vmdpotential.surfaces.patches import areas_of_triangles, find_patches

RADIUS = 6.0
DATA = Path(__file__).parents[2] / "data"


def ball(spacing=0.3):
    return molecular_surface(replace(charges_at([[0.1, 0.2, 0.3]], [0.0]), elements=["C"]), atoms="all",
                             spacing=spacing, radii=np.array([RADIUS]))


def of_dipole(made):
    return (made.vertices - [0.1, 0.2, 0.3])[:, 2] / RADIUS


def test_a_dipole_in_a_sphere_has_two_halves():
    """Each of 2 pi R^2, with an integral of cos(theta) of pi R^2, and its centre half a radius above the middle."""
    made = ball()
    patches, places = find_patches(made, of_dipole(made), 1e-9, np.zeros(len(made.vertices), np.int64))
    assert [patch.name for patch in patches] == ["+1", "-1"]
    assert set(places) <= {0, 1, -1}
    for patch, sign in zip(patches, (1, -1), strict=True):
        assert patch.area == pytest.approx(2 * np.pi * RADIUS**2, rel=2e-3)
        assert patch.integral == pytest.approx(sign * np.pi * RADIUS**2, rel=2e-3)
        assert patch.mean == pytest.approx(sign * 0.5, rel=2e-3)
        assert patch.extreme == pytest.approx(sign, abs=2e-3)
        assert patch.centre == pytest.approx([0.1, 0.2, 0.3 + sign * RADIUS / 2], abs=0.02)
        assert patch.normal == pytest.approx([0, 0, sign], abs=1e-3)
        assert patch.shares == pytest.approx([1.0])


def test_a_vertex_at_the_threshold_is_no_patch():
    """It has no area, and so no mean; patches elsewhere stay as they are."""
    made = ball()
    values, owners = of_dipole(made), np.zeros(len(made.vertices), np.int64)
    (cap,), places = find_patches(made, np.where(values < -0.5, values, 0.0), 0.5, owners)
    alone = int(np.argmax(values))
    values = np.where(values < -0.5, values, 0.0)
    values[alone] = 0.5
    (again,), others = find_patches(made, values, 0.5, owners)
    assert (again.name, again.area) == ("-1", cap.area)
    assert others[alone] == -1
    assert (others == places).all()


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.9])
def test_the_area_of_a_cap_is_cut_between_the_vertices(threshold):
    """2 pi R^2 (1 - t); counting whole vertices would be wrong by up to half a triangle along the edge."""
    made = ball()
    (cap, _), _ = find_patches(made, of_dipole(made), threshold, np.zeros(len(made.vertices), np.int64))
    assert cap.area == pytest.approx(2 * np.pi * RADIUS**2 * (1 - threshold), rel=5e-3)
    assert cap.mean == pytest.approx((1 + threshold) / 2, rel=2e-3)


def test_viewers_get_one_value_and_one_name_for_each_patch():
    """The value is the mean of the patch, and the name is above the surface at its middle."""
    made = ball()
    patches, places = find_patches(made, of_dipole(made), 0.5, np.zeros(len(made.vertices), np.int64))
    values = patch_values(patches, places)
    assert (np.isnan(values) == (places < 0)).all()
    for n, (patch, sign) in enumerate(zip(patches, (1, -1), strict=True)):
        assert (values[places == n] == patch.mean).all()
        (label,) = patch_labels(made, [patch], np.where(places == n, 0, -1), patch.area)
        assert label[0] == f"{'+' if sign > 0 else '-'}1"
        assert label[1] == pytest.approx([0.1, 0.2, 0.3 + sign * (RADIUS + 2)], abs=0.7)
        assert not patch_labels(made, [patch], places, patch.area * 1.01)


def test_triangles_have_the_area_of_the_surface():
    made = ball()
    assert areas_of_triangles(made).sum() == pytest.approx(made.area, rel=1e-12)
    assert made.area == pytest.approx(4 * np.pi * RADIUS**2, rel=2e-3)


def test_patches_of_a_protein_are_components_of_the_mesh_and_keep_their_areas_on_a_finer_one():
    dhfr = read_structure(DATA / "dhfr.pdb.gz", topology=DATA / "dhfr.psf.gz")
    grid = potential_map(dhfr, atoms="protein", method="pb", spacing=1.0)
    totals = []
    for spacing in (0.5, 0.25):
        made = molecular_surface(dhfr, atoms="protein", spacing=spacing).outer
        values = made.sample(grid, 1.4)
        patches, places = find_patches(made, values, 1.0, dhfr.residue_of[made.atoms])
        for sign in (1, -1):
            above = sign * values >= 1.0
            a, b = made.triangles[:, [0, 1, 2]].ravel(), made.triangles[:, [1, 2, 0]].ravel()
            kept = above[a] & above[b]
            graph = coo_array((np.ones(kept.sum()), (a[kept], b[kept])), shape=(len(values), len(values)))
            labels = connected_components(graph, directed=False)[1]
            chosen = np.flatnonzero(above)
            assert len(np.unique(labels[chosen])) == sum((patch.name[0] == "+") == (sign > 0) for patch in patches)
            pairs = np.unique(np.stack([labels[chosen], places[chosen]]), axis=1)
            assert len(np.unique(pairs[0])) == len(np.unique(pairs[1])) == pairs.shape[1]
        assert (places[abs(values) < 1.0] == -1).all()
        for patch in patches:
            assert patch.shares.sum() == pytest.approx(1.0)
            assert (np.diff(patch.shares) <= 0).all()
            assert np.sign(patch.integral) == (1 if patch.name[0] == "+" else -1)
        totals.append([sum(p.area for p in patches if p.name[0] == sign) for sign in "+-"] + [patches[0].area])
        assert made.areas[abs(values) >= 1.0].sum() == pytest.approx(sum(totals[-1][:2]), rel=0.02)
    assert totals[0] == pytest.approx(totals[1], rel=0.01)


def test_moments_of_charges():
    """Of a dipole of 1 e over 1 A and of a linear quadrupole, in closed form."""
    apart = charge_moments(np.array([[0, 0, 0.5], [0, 0, -0.5]]), np.array([1.0, -1.0]))
    assert (apart.net_charge, apart.dipole, apart.quadrupole) == pytest.approx((0, 4.80320, 0), abs=1e-4)
    linear = charge_moments(np.array([[0, 0, 1.0], [0, 0, -1.0], [0, 0, 0]]), np.array([1.0, 1.0, -2.0]))
    assert linear.dipole == pytest.approx(0, abs=1e-9)
    assert linear.quadrupole == pytest.approx(2 * 4.80320, abs=1e-3)


def test_a_table_of_patches_of_an_entry_and_a_row_for_each_of_many(tmp_path, capsys):
    """What the report, the table by patch, that by vertex and a batch say of an entry are the same numbers."""
    entry = DATA / "1hvr.pdb.gz"
    made = vp.surface(entry, patches=1.0, by="patch", spacing=1.0, mesh_spacing=0.6,
                      output=[tmp_path / "patches.csv"])
    rows = list(csv.DictReader((tmp_path / "patches.csv").read_text("utf-8").splitlines()))
    data = made.data
    assert [row["patch"] for row in rows] == [patch["patch"] for patch in data["patches"]]
    assert sum(float(row["area"]) for row in rows if row["patch"][0] == "+") == pytest.approx(data["positive_area"])
    assert data["positive_area"] + data["negative_area"] < data["area"]
    assert data["net_charge"] == pytest.approx(4.0, abs=1e-3)
    assert sum(data["patches"][0]["residues"].values()) == pytest.approx(1.0)
    by_vertex = vp.surface(entry, patches=1.0, by="vertex", spacing=1.0, mesh_spacing=0.6).table()
    assert set(by_vertex["patch"]) == {"", *(row["patch"] for row in rows)}
    assert cli.main(["batch", "surface", str(entry), "--patches", "1", "--spacing", "1", "--mesh-spacing", "0.6", "-o",
                     str(tmp_path / "batch")]) in (None, 0)
    row, = csv.DictReader((tmp_path / "batch" / "report.csv").read_text("utf-8").splitlines())
    for name in ("positive_area", "negative_integral", "largest_positive_patch", "dipole", "quadrupole", "net_charge"):
        assert float(row[name]) == pytest.approx(data[name], rel=5e-6)  # six digits
    with pytest.raises(UsageError) as caught:
        vp.surface(entry, by="patch")
    assert caught.value.parameter == "by"


def test_values_outside_of_the_map_are_in_no_patch():
    made = ball()
    values = np.where(made.vertices[:, 0] > 0.1, np.nan, of_dipole(made))
    patches, places = find_patches(made, values, 0.1, np.zeros(len(values), np.int64))
    assert (places[np.isnan(values)] == -1).all()
    assert [patch.area for patch in patches] == pytest.approx(2 * [np.pi * RADIUS**2 * 0.9], rel=0.05)
    with pytest.raises(UsageError) as caught:
        find_patches(made, values, 0.0, np.zeros(len(values), np.int64))
    assert caught.value.parameter == "patches"
