"""Selections as Structure: the file's order, residues, charges, cell; map objects as Grid."""

import re

import numpy as np
import pytest
from helpers import refused
from messages import naming
from numpy.testing import assert_allclose, assert_array_equal

from vmdpotential.errors import InputError
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.molecule.cell import Cell
from vmdpotential.plugins.pymol.convert import read_selection
from vmdpotential.plugins.pymol.grids import load_grid, read_grid
from vmdpotential.plugins.pymol.load import load_structure

# not in PyMOL's order, two waters of equal number, four-letter names, an insertion code, a triclinic cell
ATOMS = [
    ("ATOM", "CB", "ALA", "A", 2, "", (1, 2, 3), "C"),
    ("ATOM", "N", "ALA", "A", 2, "", (2, 2, 3), "N"),
    ("ATOM", "CA", "ALA", "A", 1, "B", (3.125, 2, -3.5), "C"),
    ("HETATM", "OH2", "TIP3", "W", 9, "", (4, 2, 3), "O"),
    ("HETATM", "H1", "TIP3", "W", 9, "", (5, 2, 3), "H"),
    ("HETATM", "OH2", "TIP3", "W", 9, "", (6, 2, 3), "O"),
    ("HETATM", "H1", "TIP3", "W", 9, "", (7, 2, 3), "H"),
    ("HETATM", "SOD", "SOD", "I", -1, "", (8, 2, 3), "Na"),
]


def pdb():
    lines = ["CRYST1   30.000   31.000   32.000  80.00  90.00 100.00 P 1           1"]
    for serial, (record, name, residue, chain, number, code, (x, y, z), element) in enumerate(ATOMS, 1):
        lines.append(f"{record:6}{serial:5}  {name:3} {residue:4}{chain}{number:4}{code:1}   {x:8.3f}{y:8.3f}{z:8.3f}"
                     f"{1:6.2f}{20 + serial:6.2f}      {'SEG' + chain:4}{element.upper():>2}")
    return "\n".join([*lines, "END\n"])


@pytest.fixture
def loaded(cmd):
    cmd.load_raw(pdb(), "pdb", "mol")
    return cmd


def test_atoms_come_in_the_order_of_the_file(loaded):
    selected = read_selection(loaded, "all")
    structure = selected.structure
    kind, name, residue, chain, number, code, position, element = zip(*ATOMS, strict=True)
    assert_array_equal(structure.atom_names, name)
    assert_array_equal(structure.residue_names, residue)
    assert_array_equal(structure.chain_ids, chain)
    assert_array_equal(structure.residue_ids, number)
    assert_array_equal(structure.insertion_codes, code)
    assert_array_equal(structure.elements, element)
    assert_array_equal(structure.segment_ids, ["SEG" + letter for letter in chain])
    assert_array_equal(structure.hetero, np.array(kind) == "HETATM")
    assert_array_equal(structure.b_factors, 21 + np.arange(8))
    assert_array_equal(structure.positions, position)
    assert structure.charges is None
    assert structure.sources == ("mol",)
    assert_allclose(structure.cell.vectors, Cell.from_parameters(30, 31, 32, 80, 90, 100).vectors, atol=1e-5)
    assert_array_equal(np.diff(structure.residue_starts), [2, 1, 2, 2, 1])  # the two waters are distinguished
    # PyMOL's own order is another; `order` leads back to it
    names = []
    loaded.iterate("all", "names.append(name)", space={"names": names})
    assert names != list(name)
    assert [names[row] for row in selected.order] == list(name)


def test_part_of_an_object_and_several_objects(loaded):
    loaded.pseudoatom("aaa", pos=[9, 9, 9], name="X", elem="He")
    part = read_selection(loaded, "name CA+OH2 or aaa").structure
    assert_array_equal(np.sort(part.atom_names), ["CA", "OH2", "OH2", "X"])
    assert_array_equal(part.positions[part.atom_names == "OH2", 0], [4, 6])
    assert set(part.sources) == {"mol", "aaa"}


def test_object_merged_from_others_keeps_its_residues_whole(loaded):
    loaded.pseudoatom("ion", pos=[9, 9, 9], name="CLA", resn="CLA", segi="ION", elem="Cl")
    loaded.create("both", "mol or ion")
    structure = read_selection(loaded, "both").structure
    residues = []
    for residue in range(structure.residue_count):
        atoms = slice(*structure.residue_starts[residue : residue + 2])
        residues.append(sorted(zip(structure.atom_names[atoms], structure.positions[atoms, 0], strict=True)))
    assert sorted(residues) == [[("CA", 3.125)], [("CB", 1), ("N", 2)], [("CLA", 9)], [("H1", 5), ("OH2", 4)],
                                [("H1", 7), ("OH2", 6)], [("SOD", 8)]]


def test_an_object_and_its_copy_are_refused(loaded):
    loaded.create("twin", "mol")
    with naming(InputError, "object mol and object twin "):
        read_selection(loaded, "all")
    assert len(read_selection(loaded, "twin").structure) == len(ATOMS)


def test_one_alternate_location_is_kept(cmd):
    lines = [f"ATOM  {n:5}  {name:3}{alt}SER A   1    {n:8.3f}   0.000   0.000{q:6.2f}  0.00           {name[0]}"
             for n, name, alt, q in ((1, "CA", " ", 1), (2, "OG", "A", 0.4), (3, "OG", "B", 0.6), (4, "HG", "A", 0.4),
                                     (5, "HG", "B", 0.6))]
    cmd.load_raw("\n".join(lines), "pdb", "mol")
    assert_array_equal(read_selection(cmd, "all").structure.positions[:, 0], [1, 3, 5])


def test_the_occupied_location_is_kept_also_if_it_has_fewer_atoms(cmd):
    lines = [f"ATOM  {n:5}  {name:3}{alt}SER A   1    {n:8.3f}   0.000   0.000{q:6.2f}  0.00           {name[0]}"
             for n, name, alt, q in ((1, "CB", "A", 0.3), (2, "CB", "B", 0.7), (3, "OG", "A", 0.3))]
    cmd.load_raw("\n".join(lines), "pdb", "mol")
    assert_array_equal(read_selection(cmd, "all").structure.positions[:, 0], [2])


def test_the_alternate_location_that_is_selected_is_kept(cmd):
    lines = [f"ATOM  {n:5}  {name:3}{alt}SER A   1    {n:8.3f}   0.000   0.000{q:6.2f}  0.00           {name[0]}"
             for n, name, alt, q in ((1, "CA", " ", 1), (2, "OG", "A", 0.4), (3, "OG", "B", 0.6))]
    cmd.load_raw("\n".join(lines), "pdb", "mol")
    selected = read_selection(cmd, "not alt B")
    assert_array_equal(selected.structure.positions[:, 0], [1, 2])
    assert_array_equal(selected.order, [0, 1])


def test_moved_object_is_where_it_is_seen(loaded):
    loaded.translate([10, 0, 0], object="mol")
    assert_allclose(read_selection(loaded, "all").structure.positions[0], [11, 2, 3])


def test_current_state_is_read(loaded):
    loaded.create("mol", "mol", 1, 2)
    loaded.translate([0, 5, 0], "mol", state=2)
    assert_array_equal(read_selection(loaded, "all").structure.positions[0], [1, 2, 3])
    loaded.set("state", 2)
    assert_array_equal(read_selection(loaded, "all").structure.positions[0], [1, 7, 3])


def test_an_object_of_one_state_is_there_in_every_frame(loaded, caplog):
    loaded.create("two", "mol and name CA", 1, 1)
    loaded.create("two", "mol and name CA", 1, 2)
    loaded.translate([0, 5, 0], "two", state=1)
    loaded.translate([0, 8, 0], "two", state=2)
    loaded.frame(2)
    assert_array_equal(read_selection(loaded, "mol").structure.positions[0], [1, 2, 3])
    both = read_selection(loaded, "mol and name CA or two").structure
    assert both.positions[:, 1].tolist() == [2, 10]
    loaded.set("state", 1, "two")  # an object may have a state of its own
    assert read_selection(loaded, "two").structure.positions[0, 1] == 7
    assert not caplog.text
    loaded.set("state", 3, "two")
    assert len(read_selection(loaded, "all").structure) == len(ATOMS)
    assert "object two has no state 3 and is left out" in caplog.text
    loaded.set("static_singletons", 0)
    with naming(InputError, "state"):
        read_selection(loaded, "mol")


def test_ions_of_a_static_object_at_a_later_frame(loaded):
    loaded.mset("1 x3")
    loaded.frame(3)
    source = read_selection(loaded, "mol")
    load_structure(loaded, "again", source.structure, source, np.arange(len(source.structure)))
    assert_array_equal(loaded.get_coords("again"), loaded.get_coords("mol", 1))


def test_cells_of_several_objects_must_agree(loaded):
    loaded.create("copy", "mol")
    loaded.translate([0, 50, 0], object="copy")
    assert read_selection(loaded, "all").structure.cell.parameters[0] == pytest.approx(30)
    loaded.set_symmetry("copy", 30, 31, 33, 80, 90, 100)
    with naming(InputError, "object mol and object copy "):
        read_selection(loaded, "all")


def test_a_crystal_keeps_its_space_group(loaded):
    assert read_selection(loaded, "all").structure.cell.space_group == "P 1"
    loaded.set_symmetry("mol", 30, 31, 32, 80, 90, 100, "P -1")
    source = read_selection(loaded, "all")
    assert source.structure.cell.space_group == "P -1"
    load_structure(loaded, "again", source.structure, source, np.arange(len(source.structure)))
    assert loaded.get_symmetry("again")[6] == "P -1"


def test_no_atoms(loaded):
    with naming(InputError, "'resn XYZ'"):
        read_selection(loaded, "resn XYZ")


def test_charges_of_a_pqr_file_are_taken(cmd, tmp_path):
    charges = [-0.8340, 0.4170, 0.4170]
    path = tmp_path / "water.pqr"
    path.write_text("".join(
        f"ATOM      {n} {name:<4} HOH     1      {n:.3f}   0.000   0.000 {q:7.4f} 1.4000\n"
        for n, name, q in zip((1, 2, 3), ("O", "H1", "H2"), charges, strict=True)))
    cmd.load(str(path), "water")
    structure = read_selection(cmd, "water").structure
    assert_allclose(structure.charges, charges, atol=1e-7)
    cmd.load_raw(pdb(), "pdb", "mol")
    with naming(InputError, "8 of 11 ", " ALA2:CB of object mol"):
        read_selection(cmd, "all")
    assert read_selection(cmd, "mol").structure.charges is None


def test_a_charge_on_one_atom_is_not_taken_for_those_of_all(loaded, caplog):
    loaded.alter("name CA", "partial_charge = 0.5")
    with naming(InputError, "7 of 8 ", " ALA2:CB of object mol"):
        read_selection(loaded, "mol")
    assert read_selection(loaded, "resn TIP3").structure.charges is None  # templates give them
    assert read_selection(loaded, "name CA").structure.charges.tolist() == [0.5]
    # where most residues have some, those without may be so; it is said
    loaded.alter("resn ALA or resn TIP3", "partial_charge = -1")
    loaded.alter("name OH2", "partial_charge = 2")
    structure = read_selection(loaded, "mol").structure
    assert sorted(set(structure.charges.tolist())) == [-1, 0, 2]
    assert structure.charge_source == "PyMOL object mol"
    assert "object mol: the partial charges of 1 of 5 residues are 0, and are taken as they are" in caplog.text


def test_hydrogens_that_pymol_has_added_have_no_charge(cmd):
    """Its peptides have charges; of those without their hydrogens it adds some with a charge of 0."""
    cmd.fab("AKDEW", "pep")
    whole = read_selection(cmd, "pep").structure
    assert whole.charges.sum() == pytest.approx(-1, abs=1e-3)
    cmd.remove("hydro")
    cmd.h_add("pep")
    assert read_selection(cmd, "pep").structure.charges is None  # templates give them
    cmd.delete("pep")
    cmd.fab("AKDEW", "pep")
    cmd.remove("pep and resi 2 and name HA")  # one residue without its charges is refused
    cmd.h_add("pep and resi 2")
    with naming(InputError, "LYS2:"):
        read_selection(cmd, "pep")


def test_a_part_brings_the_whole_that_tells_its_force_field(loaded):
    part = read_selection(loaded, "name CA").structure
    assert len(part) == 1
    assert_array_equal(part.whole.atom_names, [atom[1] for atom in ATOMS])
    assert read_selection(loaded, "all").structure.whole is None


@pytest.mark.parametrize("line", ["", "CRYST1    1.000    1.000    1.000  90.00  90.00  90.00 P 1           1\n"])
def test_no_cell(cmd, line):
    cmd.load_raw(line + pdb().partition("\n")[2], "pdb", "mol")
    assert read_selection(cmd, "all").structure.cell is None


def grid():
    values = np.random.default_rng(5).normal(size=(5, 6, 7)).astype(np.float32)
    values[0, 0, :4] = [1e-30, -3e8, 123456.789, 0]
    return Grid(Lattice([-3, 4, 7.5], [0.5, 0.6, 0.75], (5, 6, 7)), values, unit="V", temperature=310.0)


def test_map_object_has_the_values_bit_by_bit(cmd):
    made = grid()
    load_grid(cmd, "m", made)
    assert cmd.get_type("m") == "object:map"
    assert_array_equal(cmd.get_volume_field("m"), made.values)
    assert_allclose(cmd.get_extent("m"), [made.lattice.origin, made.lattice.last], atol=1e-5)
    back = read_grid(cmd, "m", made.header())
    assert_array_equal(back.values, made.values)
    assert_allclose(back.lattice.origin, made.lattice.origin, atol=1e-6)
    assert_allclose(back.lattice.spacing, made.lattice.spacing, atol=1e-6)
    assert (back.unit, back.temperature) == ("V", 310.0)


def test_map_is_where_pymol_draws_it(cmd):
    """The isosurface of a linear function is its plane, wherever the lattice points are."""
    lattice = Lattice([-3, 4, 7.5], [0.5, 0.6, 0.75], (9, 9, 9))
    slope = np.array([1.0, -2.0, 0.5])
    load_grid(cmd, "m", Grid(lattice, (lattice.points() @ slope).reshape(lattice.shape)))
    cmd.isosurface("surface", "m", -10.0)
    cmd.set_view([1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, -100, 100, 0])  # what is drawn is in A
    numbers = re.findall(r"^(\S+) (\S+) (\S+),", cmd.get_vrml().partition("point [")[2].partition("]")[0], re.MULTILINE)
    vertices = np.array(numbers, float)
    assert len(vertices) > 100
    assert_allclose(vertices @ slope, -10, atol=1e-4)
    assert_allclose(vertices.min(0), [-3, (-3 + 0.5 * 7.5 + 10) / 2, 7.5], atol=1e-4)


def test_thin_map_is_refused(cmd):
    with refused("spacing"):
        load_grid(cmd, "m", Grid(Lattice([0, 0, 0], 1.0, (1, 5, 5)), np.zeros((1, 5, 5))))
