"""Atoms as Structure: the file's order, residues, charges, cell, places; maps as Grid."""

import numpy as np
import pytest
from helpers import refused
from messages import naming
from numpy.testing import assert_allclose, assert_array_equal

import vmdpotential as vp
from vmdpotential.errors import InputError
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.parameters import Report

# two waters of equal number, four-letter names, an insertion code, a triclinic cell
ATOMS = [
    ("ATOM", "CB", "ALA", "A", 2, "", (1, 2, 3), "C"),
    ("ATOM", "N", "ALA", "A", 2, "", (2, 2, 3), "N"),
    ("ATOM", "CA", "ALA", "A", 1, "B", (3.125, 2, -3.5), "C"),
    ("HETATM", "OH2", "TIP3", "W", 9, "", (4, 2, 3), "O"),
    ("HETATM", "H1", "TIP3", "W", 9, "", (5, 2, 3), "H"),
    ("HETATM", "OH2", "TIP3", "W", 10, "", (6, 2, 3), "O"),
    ("HETATM", "H1", "TIP3", "W", 10, "", (7, 2, 3), "H"),
    ("HETATM", "SOD", "SOD", "I", -1, "", (8, 2, 3), "Na"),
]


def pdb(head="CRYST1   30.000   31.000   32.000  80.00  90.00 100.00 P 1           1\n"):
    lines = []
    for serial, (record, name, residue, chain, number, code, (x, y, z), element) in enumerate(ATOMS, 1):
        lines.append(f"{record:6}{serial:5}  {name:3} {residue:4}{chain}{number:4}{code:1}   {x:8.3f}{y:8.3f}{z:8.3f}"
                     f"{1:6.2f}{20 + serial:6.2f}      {'SEG' + chain:4}{element.upper():>2}")
    return head + "\n".join([*lines, "END\n"])


@pytest.fixture
def convert(running):
    """The bundle's module, from the wheel."""
    from chimerax.vmdpotential import convert

    assert "site/chimerax/vmdpotential" in convert.__file__
    return convert


@pytest.fixture
def model(opened, tmp_path):
    (tmp_path / "mol.pdb").write_text(pdb())
    return opened(tmp_path / "mol.pdb")


def test_atoms_come_in_the_order_of_the_file(model, convert):
    selected = convert.read_atoms(model.atoms)
    structure = selected.structure
    _, name, residue, chain, number, code, position, element = zip(*ATOMS, strict=True)
    assert_array_equal(structure.atom_names, name)
    assert_array_equal(structure.residue_names, residue)
    assert_array_equal(structure.chain_ids, chain)
    assert_array_equal(structure.residue_ids, number)
    assert_array_equal(structure.insertion_codes, code)
    assert_array_equal(structure.elements, element)
    assert_array_equal(structure.b_factors, 21 + np.arange(8))
    assert_array_equal(structure.positions, position)
    assert structure.charges is None
    assert structure.sources == ("#1 mol",)
    assert_allclose(structure.cell.vectors, Cell.from_parameters(30, 31, 32, 80, 90, 100).vectors, atol=1e-5)
    assert_array_equal(np.diff(structure.residue_starts), [2, 1, 2, 2, 1])
    assert_array_equal(selected.atoms.names, name)


def test_hydrogens_added_later_belong_to_their_residue(model, convert):
    from chimerax.atomic.struct_edit import add_atom

    added = add_atom("HA", "H", model.residues[1], np.array([3.0, 2.5, -3.0]))
    assert model.atoms[len(ATOMS)] == added  # at the end in ChimeraX
    selected = convert.read_atoms(model.atoms)
    assert_array_equal(selected.structure.atom_names[:5], ["CB", "N", "CA", "HA", "OH2"])
    assert_array_equal(np.diff(selected.structure.residue_starts), [2, 2, 2, 2, 1])
    assert_array_equal(selected.structure.positions[3], [3.0, 2.5, -3.0])
    assert selected.atoms[3] == added


def test_specifiers_and_parts(session, model, convert):
    from chimerax.atomic import AtomsArg

    atoms, _, _ = AtomsArg.parse("#1:9,10@OH2", session)
    part = convert.read_atoms(atoms).structure
    assert_array_equal(part.positions[:, 0], [4, 6])
    assert_array_equal(part.residue_index, [0, 1])
    with pytest.raises(InputError):
        convert.read_atoms(AtomsArg.parse("#1:77", session)[0])


def test_moved_model_keeps_its_own_axes(model, convert):
    from chimerax.geometry import rotation, translation

    before = convert.read_atoms(model.atoms)
    model.position = translation((10, 0, 0)) * rotation((1, 2, 3), 40)
    moved = convert.read_atoms(model.atoms)
    assert_array_equal(moved.structure.positions, before.structure.positions)
    assert moved.place.same(model.scene_position)
    # in another coordinate system they are where they are seen, without a cell
    from chimerax.geometry import Place

    seen = convert.read_atoms(model.atoms, Place()).structure
    assert_allclose(seen.positions, model.atoms.scene_coords, atol=1e-12)
    assert seen.cell is None


def test_several_models_in_the_axes_of_the_first(model, opened, convert, tmp_path):
    from chimerax.atomic import concatenate
    from chimerax.geometry import translation

    (tmp_path / "other.pdb").write_text(pdb())
    other = opened(tmp_path / "other.pdb")
    both = concatenate([other.atoms, model.atoms])
    with naming(InputError, "#1 and #2 "):
        convert.read_atoms(both)
    other.position = translation((0, 50, 0))
    model.position = translation((0, 0, 7))
    structure = convert.read_atoms(both).structure
    assert_array_equal(structure.positions[:8], [atom[6] for atom in ATOMS])
    shifted = [np.add(atom[6], (0, 50, -7)) for atom in ATOMS]
    assert_allclose(structure.positions[8:], shifted, atol=1e-12)
    assert_array_equal(np.diff(structure.residue_starts), [2, 1, 2, 2, 1] * 2)
    other.set_metadata_entry("CRYST1", [model.metadata["CRYST1"][0].replace("32.000", "33.000")])
    with naming(InputError, "#1 and #2 "):
        convert.read_atoms(both)


@pytest.mark.parametrize("head", ["", "CRYST1    1.000    1.000    1.000  90.00  90.00  90.00 P 1           1\n",
                                  "CRYST1    0.000    0.000    0.000  90.00  90.00  90.00 P 1           1\n"])
def test_no_cell(opened, convert, tmp_path, head):
    (tmp_path / "mol.pdb").write_text(pdb(head))
    assert convert.read_atoms(opened(tmp_path / "mol.pdb").atoms).structure.cell is None


def test_a_crystal_keeps_its_space_group(opened, convert, tmp_path):
    (tmp_path / "mol.pdb").write_text(pdb().replace("P 1           1", "P -1          2"))
    ours = vp.read_structure(tmp_path / "mol.pdb")
    vp.write_structure(ours.take(np.arange(3)), tmp_path / "mol.cif")
    for name in ("mol.pdb", "mol.cif"):
        structure = convert.read_atoms(opened(tmp_path / name).atoms).structure
        assert structure.cell.space_group == ours.cell.space_group == "P -1"


def test_mmcif_with_its_cell(opened, convert, tmp_path):
    (tmp_path / "mol.pdb").write_text(pdb())
    ours = vp.read_structure(tmp_path / "mol.pdb").take(np.arange(3))  # of others ChimeraX would fetch templates
    vp.write_structure(ours, tmp_path / "mol.cif")
    structure = convert.read_atoms(opened(tmp_path / "mol.cif").atoms).structure
    assert_array_equal(structure.atom_names, ours.atom_names)
    assert_allclose(structure.positions, ours.positions, atol=1e-6)
    assert_allclose(structure.cell.vectors, ours.cell.vectors, atol=1e-4)
    text = (tmp_path / "mol.cif").read_text()
    # what others write: no cell, or the uncertainty in brackets
    uncertain = text.replace("30.0", "30.0(12)", 1) if "30.0\n" in text else text.replace("30\n", "30.0(12)\n", 1)
    assert uncertain != text
    (tmp_path / "uncertain.cif").write_text(uncertain)
    structure = convert.read_atoms(opened(tmp_path / "uncertain.cif").atoms).structure
    assert structure.cell.parameters[0] == pytest.approx(30)


def test_charges_that_the_atoms_have(model, convert):
    charges = np.linspace(-1, 1, len(ATOMS))
    for atom, charge in zip(model.atoms, charges, strict=True):
        atom.charge = charge
    assert_array_equal(convert.read_atoms(model.atoms).structure.charges, charges)
    del model.atoms[4].charge
    # a residue with a hydrogen that has no charge counts as a whole
    with naming(InputError, "2 of 8 ", " /W:9@OH2"):
        convert.read_atoms(model.atoms)
    part = convert.read_atoms(model.atoms[:3]).structure
    assert_array_equal(part.charges, charges[:3])
    assert part.charge_source == "ChimeraX model #1"


def test_a_part_brings_the_whole_that_tells_its_force_field(model, convert):
    part = convert.read_atoms(model.atoms[2:3]).structure
    assert len(part) == 1
    assert_array_equal(part.whole.atom_names, [atom[1] for atom in ATOMS])
    assert convert.read_atoms(model.atoms).structure.whole is None


def test_the_active_coordinate_set_is_read_and_its_cell_doubted(model, convert, caplog):
    moved = np.array(model.atoms.coords) + 1
    convert.read_atoms(model.atoms)
    assert not caplog.text
    model.add_coordset(2, moved)
    model.active_coordset_id = 2
    assert_array_equal(convert.read_atoms(model.atoms).structure.positions, moved)
    assert "#1 has 2 coordinate sets and one cell, that of its file; {cell} sets another" in caplog.text
    caplog.clear()
    model.set_metadata_entry("CRYST1", ["CRYST1    1.000    1.000    1.000  90.00  90.00  90.00 P 1           1"])
    convert.read_atoms(model.atoms)
    assert "placeholder" in caplog.text
    assert "coordinate sets" not in caplog.text


def test_models_of_an_ensemble_overlap(model, opened, convert, tmp_path, caplog):
    from chimerax.atomic import concatenate

    (tmp_path / "pose.pdb").write_text(pdb())
    pose = opened(tmp_path / "pose.pdb")
    pose.atoms.coords = np.array(pose.atoms.coords) + 0.2
    assert len(convert.read_atoms(concatenate([model.atoms, pose.atoms])).structure) == 2 * len(ATOMS)
    assert "#1 and #2 overlap, and the charges of both count: 16 of their atoms are nearer than 0.5 A" in caplog.text


def grid(shape=(5, 6, 7)):
    values = np.random.default_rng(5).normal(size=shape).astype(np.float32)
    values[0, 0, :4] = [1e-30, -3e8, 123456.789, 0]
    return Grid(Lattice([-3, 4, 7.5], [0.5, 0.6, 0.75], shape), values, unit="V", temperature=310.0)


def show(session, grid, name="m"):
    from chimerax.vmdpotential.show import show

    (volume,), _ = show(session, Report([], {}, {"grid": grid}), name, None, {})
    return volume


def test_map_model_has_the_values_bit_by_bit(session, convert):
    made = grid()
    volume = show(session, made)
    assert_array_equal(volume.data.full_matrix(), made.values.transpose(2, 1, 0))
    back = convert.read_volume(volume)
    assert_array_equal(back.values, made.values)
    assert_array_equal(back.lattice.origin, made.lattice.origin)
    assert_array_equal(back.lattice.spacing, made.lattice.spacing)
    assert (back.unit, back.temperature) == ("V", 310.0)


def test_map_is_where_chimerax_looks_it_up_and_draws_it(session):
    """Every axis has a slope of its own; the isosurface of a linear function is its plane."""
    lattice = Lattice([-3, 4, 7.5], [0.5, 0.6, 0.75], (9, 10, 11))
    slope = np.array([1.0, -2.0, 0.5])
    made = Grid(lattice, (lattice.points() @ slope).reshape(lattice.shape))
    volume = show(session, made)
    points = np.random.default_rng(1).uniform(lattice.origin, lattice.last, (50, 3))
    assert_allclose(volume.interpolated_values(points), points @ slope, atol=1e-4)
    assert_allclose(volume.interpolated_values(points), made.sample(points), atol=1e-4)
    volume.set_parameters(surface_levels=[-10.0], cap_faces=False)
    volume.update_drawings()
    (surface,) = volume.surfaces
    assert len(surface.vertices) > 100
    # vertices are in steps of the lattice where ChimeraX draws them, and the surface has a position
    vertices = surface.scene_position * surface.vertices
    assert_allclose(vertices @ slope, -10, atol=1e-3)


def test_thin_map_can_be_shown(session, convert):
    made = grid((1, 6, 7))
    assert_array_equal(convert.read_volume(show(session, made)).values, made.values)


def test_maps_that_cannot_be_cut_are_refused(session, convert):
    from chimerax.geometry import translation
    from chimerax.map import volume_from_grid_data
    from chimerax.map_data import ArrayGridData

    data = ArrayGridData(np.zeros((4, 4, 4), np.float32), cell_angles=(90, 100, 90))
    skewed = volume_from_grid_data(data, session, show_dialog=False)
    with naming(InputError, f"map #{skewed.id_string} "):
        convert.read_volume(skewed)
    first, second = show(session, grid()), show(session, grid())
    assert convert.common_coordinate_system([first, second]).same(first.scene_position)
    second.position = translation((1, 0, 0))
    with refused("maps"):
        convert.common_coordinate_system([first, second])
