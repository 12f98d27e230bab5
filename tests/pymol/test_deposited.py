"""From a deposited structure without most of its hydrogens to a coloured surface, in one command."""

import gzip
import re
from dataclasses import replace
from pathlib import Path

import gemmi
import numpy as np
import pytest
from deposited import ASSEMBLY, crystal_file
from pieces import volumes

from vmdpotential import registry
from vmdpotential.io import read_structure, write_structure
from vmdpotential.io.trajectories.frames import LoadedFrames
from vmdpotential.molecule.selection import select

DATA = Path(__file__).resolve().parents[2] / "data"
ENTRY = DATA / "1hvr.pdb.gz"


@pytest.fixture(params=["pdb.gz", "cif"])
def entry(request, tmp_path):
    if request.param == "pdb.gz":
        return ENTRY
    path = tmp_path / "1hvr.cif"
    gemmi.read_pdb_string(gzip.decompress(ENTRY.read_bytes())).make_mmcif_document().write_file(str(path))
    return path


def test_an_error_names_only_commands_that_there_are(cmd, do):
    cmd.load(str(ENTRY), "entry")
    output = do("potential_ionize entry, ionized")
    assert "Error: entry" in output
    assert all(f"potential_{name}" in cmd.keyword for name in re.findall(r"command (\w+)", output))


def test_one_command_draws_the_surface(cmd, do, entry):
    cmd.load(str(entry), "entry")
    before = cmd.count_atoms("entry"), cmd.get_coords("entry")
    output = do("potential_map entry, spacing=1")
    assert output.count("prepared at pH 7") == 1
    assert "approximate charges for CSO, XK2" in output
    assert cmd.count_atoms("entry") == before[0]
    assert np.array_equal(cmd.get_coords("entry"), before[1])
    # the ligand and the modified residue belong to the surface, which PyMOL would make without them
    assert cmd.count_atoms("potential_surface and resn CSO+XK2 and rep surface")
    assert cmd.count_atoms("potential_surface and flag 25") == 0
    assert cmd.get_setting_text("surface_color", "potential_surface") == "potential_ramp"
    texts = []
    cmd.iterate("potential_legend", "texts.append(label)", space={"texts": texts})
    assert texts[0].startswith("potential: -5 to 5 kT/e")
    # in a continuum the colours are those of the places of water at the surface
    assert cmd.get_setting_int("surface_ramp_above_mode", "potential_surface") == 1
    do("potential_map entry, vacuum, spacing=1, medium=vacuum")
    assert cmd.get_setting_int("surface_ramp_above_mode", "vacuum_surface") == 0
    do("potential_map entry, refused, prepare=never")
    assert "refused" not in cmd.get_names("objects")


def test_a_part_has_a_surface_in_the_field_of_all(cmd, do):
    cmd.load(str(ENTRY), "entry")
    cmd.select("mine", "entry and chain B and not solvent")
    do("potential_map entry, whole, spacing=2")
    output = do("potential_map entry, part, spacing=2, surface_of=mine")
    count = cmd.count_atoms("whole_surface and chain B")
    assert 0 < count < cmd.count_atoms("whole_surface")
    assert cmd.count_atoms("part_surface and not resn FIL") == count
    assert cmd.count_atoms("part_surface and chain B and rep surface") == count
    assert "of mine" in output
    np.testing.assert_array_equal(cmd.get_volume_field("part"), cmd.get_volume_field("whole"))
    # of a part of the object that was computed, the selection is within the part
    do("potential_map entry and chain B, half, spacing=2, surface_of=resi 1-10")
    assert 100 < cmd.count_atoms("whole_surface and chain B and resi 1-10") == (
        cmd.count_atoms("half_surface and not resn FIL"))
    for words in ("entry, none, spacing=2, surface_of=solvent", "entry, none, spacing=2, surface_of=chain Z",
                  "entry, none, spacing=2, surface_of=spam egg"):
        assert "surface_of" in do(f"potential_map {words}")
    assert not [name for name in cmd.get_names("objects") if name.startswith("none")]


def test_the_surface_is_the_outer_one(cmd, do, tmp_path):
    """Dihydrofolate reductase has closed cavities, of which a fine surface shows one."""
    box = read_structure(DATA / "dhfr.pdb.gz", topology=DATA / "dhfr.psf.gz")
    write_structure(box.take(select(box, "solute")), tmp_path / "dhfr.pqr")
    cmd.load(str(tmp_path / "dhfr.pqr"), "dhfr")
    cmd.set("surface_quality", 1)
    do("potential_map dhfr, spacing=3")
    assert cmd.count_atoms("potential_surface and resn FIL and elem X") == (
        cmd.count_atoms("potential_surface") - cmd.count_atoms("dhfr"))
    cmd.disable("all")
    cmd.enable("potential_surface")
    pieces = []
    for _ in range(2):
        cmd.save(str(tmp_path / "surface.obj"))
        words = [line.split() for line in (tmp_path / "surface.obj").read_text().splitlines()]
        vertices = np.array([word[1:4] for word in words if word[:1] == ["v"]], float)
        corners = np.array([[text.split("/")[0] for text in word[1:4]] for word in words if word[:1] == ["f"]], int)
        pieces.append(volumes(vertices, corners - 1))
        cmd.remove("potential_surface and resn FIL")
    assert len(pieces[0]) == 1
    assert pieces[1].min() < -10  # what is seen without the fillers
    assert pieces[0][0] == pytest.approx(pieces[1].max(), rel=1e-3)


def test_hydrogens_that_pymol_adds_are_understood(cmd, do):
    cmd.load(str(ENTRY), "entry")
    cmd.h_add("entry")
    assert cmd.count_atoms("entry and name H01")
    count = cmd.count_atoms("entry")
    output = do("potential_map entry, spacing=2")
    assert "added 0 hydrogens" in output
    assert f"{count} atoms" in output


@pytest.fixture
def crystal(tmp_path):
    return crystal_file(tmp_path / "crystal.cif")


def test_the_cell_and_an_assembly_are_objects_that_are_computed(cmd, do, crystal):
    cmd.load(str(crystal), "crystal")
    count = cmd.count_atoms("crystal")
    output = do("potential_map crystal, inside, spacing=2, expand=cell, boundary=periodic")
    assert "prepared" in output
    assert cmd.count_atoms("inside_copies") == 6 * count
    assert cmd.get_symmetry("inside_copies")[6] == "P 1"
    added = sum(map(int, re.search(r"added (\d+) hydrogens and (\d+) heavy atoms", output).groups()))
    assert cmd.count_atoms("inside_surface and not resn FIL") == 6 * count + added
    do(f"potential_map crystal, pair, spacing=2, assembly={crystal}:9")
    assert cmd.count_atoms("pair_copies") == 2 * count
    low, high = cmd.get_extent("pair_copies")
    assert high[1] - low[1] > 30
    assert cmd.count_atoms("crystal") == count
    shown = cmd.get_names("all", enabled_only=1)
    assert {"pair_legend", "pair_ramp"} <= set(shown)
    assert not {"inside_legend", "inside_ramp"} & set(shown)  # both would be in one place on the screen
    # again, in the place of the first
    do("potential_map crystal, inside, spacing=2, expand=cell, boundary=periodic")
    assert cmd.count_atoms("inside_copies") == 6 * count
    assert "assembly" in do("potential_map crystal, other, spacing=2, assembly=9")  # the file is not known
    assert not [name for name in cmd.get_names("objects") if name.startswith("other")]


def test_every_state_of_an_assembly_is_averaged(cmd, do, tmp_path):
    """As the command does it with the positions of the file."""
    path = crystal_file(tmp_path / "models.cif", models=2)
    cmd.load(str(path), "models")
    assert cmd.count_states("models") == 2
    output = do(f"potential_average models, mean, fit=none, spacing=2, medium=vacuum, assembly={path}:{ASSEMBLY}")
    assert "2 frames" in output
    structure = read_structure(path)
    frames = LoadedFrames("models", [(structure.positions + shift, None) for shift in ([0, 0, 0], [1, 0, 0.5])])
    expected = registry.get("command", "average")(
        structure=structure, trajectory=frames, assembly=f"{path}:{ASSEMBLY}", fit="none",
        spacing=2).objects["grid"].values
    actual = cmd.get_volume_field("mean")
    assert actual.shape == expected.shape
    # of a file without charges PyMOL keeps no more than single precision
    np.testing.assert_allclose(actual, expected, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("command", ["potential_map", "potential_average"])
def test_the_surface_is_where_the_map_is(cmd, do, tmp_path, command):
    """A cell that splits a protein: it is made whole for a continuum, and half of its surface was outside the map."""
    box = read_structure(DATA / "dhfr.pdb.gz", topology=DATA / "dhfr.psf.gz")
    middle = box.cell.wrap(box.positions + box.cell.vectors.sum(0) / 2)
    write_structure(replace(box, positions=middle), tmp_path / "split.pdb")
    cmd.load(str(tmp_path / "split.pdb"), "split")
    cmd.create("split", "split", 1, 2)
    shown = cmd.get_coords("split")
    output = do(f"{command} split, potential, spacing=3, medium=water, topology={DATA / 'dhfr.psf.gz'}")
    assert "Error" not in output
    whole = box.positions[select(box, "solute")]
    np.testing.assert_allclose(np.ptp(cmd.get_coords("potential_surface"), axis=0), np.ptp(whole, axis=0), atol=0.01)
    low, high = np.array(cmd.get_extent("potential"))
    assert (cmd.get_coords("potential_surface") > low).all()
    assert (cmd.get_coords("potential_surface") < high).all()
    np.testing.assert_allclose(cmd.get_coords("split"), shown)  # the user's object is not changed
