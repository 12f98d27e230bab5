"""What is shown of maps and ions, and how a placement is taken back."""


import golden
import numpy as np
import pytest
from numpy.testing import assert_allclose


@pytest.fixture
def box(cmd, tmp_path):
    cmd.load(str(golden.write(tmp_path)["pqr"]), "box")
    cmd.set_symmetry("box", *golden.LENGTHS, 90, 90, 90, "P 1")
    return cmd


def shown(cmd):
    return set(cmd.get_names("objects", enabled_only=1))


def test_undo_restores_what_was_there(box, do):
    box.pseudoatom("mine", pos=[1, 2, 3])
    box.disable("mine")
    before = box.get_coords("box")
    assert "Error" not in do("potential_ionize box")
    assert box.get_names("objects") == ["box", "mine", "ionized", "ionized_ions", "ionized_group"]
    assert shown(box) == {"ionized", "ionized_ions", "ionized_group"}  # replaced waters are hidden
    count = box.count_atoms("ionized")
    assert "Error" not in do("potential_ionize box, ionized, concentration=0.3")
    assert box.count_atoms("ionized") < count
    assert "restored ionized and ionized_ions" in do("potential_undo quiet=0").replace("\n", " ")
    assert box.count_atoms("ionized") == count
    assert {"ionized", "ionized_ions"} <= shown(box)
    do("potential_undo")
    assert box.get_names("objects") == ["box", "mine"]
    assert shown(box) == {"box"}
    assert_allclose(box.get_coords("box"), before)
    output = do("potential_undo")
    assert "Error: there is no placement of ions to undo" in output
    assert "Traceback" not in output


def test_objects_of_the_user_stay(box, do):
    do("potential_ionize box")
    box.translate([5, 0, 0], "ionized_ions", camera=0)
    assert "kept ionized_ions" in do("potential_undo quiet=0").replace("\n", " ")
    assert box.get_names("objects") == ["box", "ionized_ions"]
    assert "ionized_ions exists already" in do("potential_ionize box")
    box.delete("ionized_ions")
    box.pseudoatom("ionized", pos=[0, 0, 0])  # the name of an object that is gone is free for the user
    assert "the object ionized exists already" in do("potential_ionize box")
    assert box.count_atoms("ionized") == 1


def test_failure_while_it_is_shown_leaves_nothing(box, do, monkeypatch):
    def fail(*given, **named):
        raise MemoryError
    monkeypatch.setattr(box, "show_as", fail)
    assert "out of memory" in do("potential_ionize box")
    assert box.get_names("objects") == ["box"]
    assert shown(box) == {"box"}
    assert "no placement" in do("potential_undo")


def test_ions_have_their_energies_as_labels(box, do):
    from vmdpotential import place_ions

    do("potential_ionize box, concentration=0.2, labels=yes")
    energies = [ion.energy for ion in place_ions(golden.structure(), **golden.ION_OPTIONS).ions]
    results = []
    box.iterate("ionized_ions", "found.append((rank, b, label))", space={"found": results})
    _, stored, labels = zip(*sorted(results), strict=True)
    assert_allclose(stored, energies, rtol=1e-4)
    assert labels == tuple(f"{energy:.1f}" for energy in np.float32(stored))
    do("potential_ionize box, plain, labels=no")
    box.iterate("plain_ions", "found.append(label)", space={"found": (bare := [])})
    assert set(bare) == {""}


def test_map_with_isosurfaces_surface_and_slice(box, do):
    output = do("potential_map box and resn ANI, m, spacing=0.5, boundary=open, isosurface=40, surface=yes, cut=y=-2, "
                "medium=vacuum")
    assert "Error" not in output
    assert {name: box.get_type(name) for name in box.get_names("objects")} == {
        "box": "object:molecule", "m": "object:map", "m_ramp": "object:ramp",
        "m_legend": "object:molecule", "m_positive": "object:surface",
        "m_negative": "object:surface", "m_surface": "object:molecule", "m_cut": "object:slice",
        "m_outside": "object:map", "m_group": "object:group"}
    assert box.count_atoms("m_surface") == box.count_atoms("m_surface and rep surface") == 5
    assert box.count_atoms("box and rep surface") == 0
    assert box.get_setting_text("surface_color", "m_surface") in ("m_ramp", str(box.get_color_index("m_ramp")))
    assert vertices(box, "m_cut")[:, 1] == pytest.approx(-2)
    # the isosurfaces lie where the map has their values
    from vmdpotential.plugins.pymol.grids import read_grid

    everywhere, grid = read_grid(box, "m", {}), read_grid(box, "m_outside", {})
    kept = grid.values != 0
    np.testing.assert_array_equal(grid.values[kept], everywhere.values[kept])
    hidden = np.linalg.norm(grid.lattice.points(np.argwhere(~kept))[:, None] - box.get_coords("m_surface"), axis=2)
    assert (hidden.min(1) < 1.9).all()  # inside the molecule
    assert (~kept).any()
    for name, level in (("m_positive", 40), ("m_negative", -40)):
        if len(points := vertices(box, name)):
            nodes = np.rint((points - grid.lattice.origin) / grid.lattice.spacing).astype(int)
            nearby = [grid.values[tuple(slice(max(0, n - 1), n + 2) for n in node)] for node in nodes[::50]]
            assert all(block.min() <= level <= block.max() for block in nearby)
    assert len(vertices(box, "m_negative")) > 100
    # another run of this name takes the parts away that it does not make
    do("potential_map box and resn ANI, m, boundary=open")
    assert set(box.get_names("objects")) == {"box", "m", "m_ramp", "m_legend", "m_surface", "m_group"}


def vertices(cmd, name):
    """Return the vertices (N, 3) that PyMOL draws of an object."""
    import re

    others = [other for other in cmd.get_names("objects", enabled_only=1) if other != name]
    view = cmd.get_view()
    for other in others:
        cmd.disable(other)
    cmd.set_view([1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, -100, 100, 0])  # what is drawn is in A
    points = [re.findall(r"^\s*(\S+) (\S+) (\S+),", block.partition("]")[0], re.MULTILINE)
              for block in cmd.get_vrml().split("point [")[1:]]
    for other in others:
        cmd.enable(other)
    cmd.set_view(view)
    return np.array([point for block in points for point in block], float).reshape(-1, 3)


@pytest.mark.parametrize(("line", "message"), [
    ("potential_map box, m, spacing=2, cut=sideways", "cut=sideways:"),
    ("potential_map box, m, spacing=2, cut=x=900", "cut=x=900: the map reaches from"),
    ("potential_map box, m, spacing=2, isosurface=-1", "isosurface=-1: must be above 0"),
    ("potential_ionize box, labels=perhaps", "labels=perhaps: write yes or no"),
])
def test_wrong_display_is_one_line_and_leaves_nothing(box, do, line, message):
    output = do(line)
    (error,) = [text for text in output.splitlines() if "Error" in text]
    assert message in error
    assert "--" not in error
    assert "Traceback" not in output
    assert box.get_names("objects") == ["box"]
