"""Names of residues and atoms that have several meanings, and residues that names do not separate."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from messages import Words, naming

from vmdpotential.commands.map import command as map_
from vmdpotential.errors import InputError, TaskError, UsageError
from vmdpotential.io import read_structure
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.radii import atomic_radii
from vmdpotential.molecule.selection import is_salt
from vmdpotential.molecule.structure import Structure
from vmdpotential.plugins.fields.contributions import contribution_masks
from vmdpotential.plugins.forcefields.residue_charges import read_residue_charges
from vmdpotential.plugins.preparation.prepare import prepare_structure

DATA = Path(__file__).parents[1] / "data"


def prepared(name, **options):
    return prepare_structure(read_structure(DATA / name), **options)


def added(result):
    return [atom for row in result.rows for atom in row.added_atoms]


def test_dna_in_names_of_before_2007_is_dna_with_the_charges_of_dna():
    old, new = prepared("dna_old_names.pdb"), prepared("dna.pdb")
    assert not added(old)
    assert len(old.structure) == len(new.structure) == 160
    np.testing.assert_array_equal(old.structure.elements, new.structure.elements)
    np.testing.assert_allclose(old.structure.charges, new.structure.charges, atol=1e-9)
    assert [row.residue for row in old.rows if row.note] == ["G", "A", "A"]  # which is said
    # a sugar that lacks more than O2' may be of either
    structure = read_structure(DATA / "dna_old_names.pdb")
    part = structure.take(~((structure.residue_ids == 5) & (structure.atom_names == "C2*")))
    assert {"O2'", "C2'"} <= set(added(prepare_structure(part)))


@pytest.mark.parametrize(("ph", "net"), [(5.0, -2), (7.0, -3), (9.0, -3)])
def test_a_terminal_phosphate_has_two_charges_above_its_pka(ph, net):
    result = prepared("dna_phosphate_first.pdb", ph=ph)
    assert result.structure.net_charge == pytest.approx(net, abs=1e-3)
    assert result.rows[0].pka == pytest.approx(6.3, abs=0.2)


def test_a_hydrogen_of_the_file_on_a_terminal_phosphate_stays():
    structure = prepared("dna_phosphate_first.pdb", ph=5.0).structure
    again = prepare_structure(replace(structure, charges=None, radii=None), ph=7.0)
    assert again.structure.net_charge == pytest.approx(-2, abs=1e-3)
    assert len(again.structure) == len(structure)


def test_a_modified_nucleotide_begins_a_chain_without_phosphate():
    result = prepared("rna_modified_first.pdb")
    assert result.structure.net_charge == pytest.approx(-2, abs=1e-3)
    assert not added(result)
    assert (result.structure.residue_names[result.structure.elements == "P"] == ["GF2", "AF2"]).all()


def cluster(name):
    """Return the atoms of a component of the dictionary."""
    from vmdpotential.plugins.preparation.components import find_component

    found = find_component(name)
    atoms = len(found.atoms)
    return Structure(found.positions, np.array(found.atoms), np.full(atoms, name), np.ones(atoms, int),
                     np.zeros(atoms, int), elements=np.array(found.elements))


def test_a_cubane_has_the_charge_of_its_oxidized_state():
    result = prepared("cluster_sf4.pdb")
    assert result.structure.net_charge == pytest.approx(2)
    for element in ("Fe", "S"):  # the cluster is symmetric
        assert np.ptp(result.structure.charges[result.structure.elements == element]) < 1e-9
    assert "[4Fe-4S]2+" in result.rows[0].note


@pytest.mark.parametrize(("name", "net"), [("FES", 2), ("F3S", 1), ("CUA", 3)])
def test_clusters_of_metals_have_the_charge_of_a_stated_state(name, net):
    result = prepare_structure(cluster(name))
    assert result.structure.net_charge == pytest.approx(net)
    assert result.rows[0].note
    metal = np.isin(result.structure.elements, ["Fe", "Cu"])
    assert result.structure.charges[metal].min() > 1


@pytest.mark.parametrize("name", ["OEX", "ICS", "CUZ"])
def test_clusters_of_unknown_oxidation_state_are_refused_by_name(name):
    with naming(TaskError, f"{name}1 ", "oxidation state") as caught:
        prepare_structure(cluster(name))
    assert "{charges}" in caught.value.hint


def split_peptide():
    """Return a peptide without hydrogens, and the same with its atoms wrapped into a cell that splits it."""
    peptide = read_structure(DATA / "models.pdb")
    peptide = replace(peptide.take((peptide.elements != "H") & (peptide.residue_names != "HOH")),
                      cell=Cell.from_parameters(40, 41, 42, 80, 95, 100))
    centre = peptide.positions.mean(0)
    return peptide, replace(peptide, positions=peptide.cell.wrap(peptide.positions - centre))


def test_a_periodic_cell_does_not_change_what_is_added():
    peptide, split = split_peptide()
    assert np.ptp(split.positions, axis=0).max() > 30
    exact, result = prepare_structure(peptide), prepare_structure(split)
    assert not result.gaps
    assert result.structure.atom_names.tolist() == exact.structure.atom_names.tolist()
    np.testing.assert_allclose(result.structure.charges, exact.structure.charges)
    kept = np.flatnonzero(np.isin(result.structure.elements, ["H"], invert=True))
    np.testing.assert_allclose(result.structure.positions[kept][: len(split) - 1], split.positions[: len(split) - 1])


@pytest.mark.parametrize("name", ["mbondi2", "parse"])
def test_radii_do_not_depend_on_the_image(name):
    peptide, _ = split_peptide()
    whole = prepare_structure(peptide).structure
    everything = np.ones(len(whole), bool)
    expected = atomic_radii(whole, everything, name)[0]
    hydrogens = whole.elements == "H"
    assert (expected[hydrogens] == {"mbondi2": 1.3, "parse": 0.0}[name]).sum() > 5
    for seed in range(3):
        moved = whole.positions + np.random.default_rng(seed).uniform(0, 40, 3)
        wrapped = replace(whole, positions=whole.cell.wrap(moved))
        np.testing.assert_array_equal(atomic_radii(wrapped, everything, name)[0], expected)


def without_hydrogens(structure):
    return structure.take(structure.elements != "H")


def test_residues_of_one_name_and_number_are_separated():
    result = prepared("all_number_1.pdb")
    assert len(result.rows) == 5
    assert not result.left_out
    assert (result.structure.elements != "H").sum() == 26
    assert result.structure.net_charge == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("suffix", [".pdb", ".cif", ".gro"])
def test_residues_of_one_number_are_separated_in_every_format(tmp_path, suffix):
    rows = []
    for number in range(1, 4):
        rows += [("N", number, 0.0), ("CA", number, 1.5), ("C", number, 2.5)]
    def text(name, n, shift):
        place = (3.8 * n + shift, 0.5 * shift, 0.0)
        if suffix == ".gro":
            return f"{1:5d}{'ALA':5s}{name:>5s}{n:5d}" + "".join(f"{x / 10:8.3f}" for x in place)
        if suffix == ".cif":
            return f"ATOM {name[0]} {name} ALA A 1 {place[0]} {place[1]} {place[2]}"
        return f"ATOM  {n:5d}  {name:3s} ALA A   1    " + "".join(f"{x:8.3f}" for x in place) + "  1.00  0.00"
    lines = [text(*row) for row in rows]
    columns = ("group_PDB", "type_symbol", "label_atom_id", "label_comp_id", "label_asym_id", "label_seq_id", "Cartn_x",
               "Cartn_y", "Cartn_z")
    head = {".pdb": [], ".gro": ["title", f"{len(rows)}"],
            ".cif": ["data_x", "loop_", *(f"_atom_site.{name}" for name in columns)]}[suffix]
    path = tmp_path / f"x{suffix}"
    path.write_text("\n".join([*head, *lines, *(["5 5 5"] if suffix == ".gro" else [""])]) + "\n")
    assert read_structure(path).residue_starts.tolist() == [0, 3, 6, 9]


def test_conformers_without_a_mark_are_one_residue_and_others_are_refused():
    structure = read_structure(DATA / "all_number_1.pdb")
    first = structure.take(np.arange(5))
    twice = np.tile(np.arange(5), 2)
    conformers = replace(first.take(twice), residue_index=np.zeros(10, int),
                         positions=first.positions[twice] + np.repeat([0, 0.4], 5)[:, None])
    result = prepare_structure(conformers)
    assert len(result.rows) == 1
    assert sum(result.left_out.values()) == 5
    apart = replace(conformers, positions=conformers.positions + 9.0 * (np.arange(10) > 4)[:, None])
    with naming(TaskError, "ALA1"):
        prepare_structure(apart)


def test_two_residues_at_one_place_are_the_more_occupied_one():
    gemmi = pytest.importorskip("gemmi")
    path = DATA / "two_residues_at_one_place.pdb"
    structures = [read_structure(path), Structure.from_gemmi(gemmi.read_structure(str(path)))]
    gemmi.read_structure(str(path))
    for structure in structures:
        assert structure.residue_names[structure.residue_starts[:-1]].tolist() == ["GLY", "ALA", "GLY"]
    result = prepared(path.name)
    assert not added(result)
    assert result.structure.net_charge == pytest.approx(0, abs=1e-6)


def test_residues_without_a_name_are_described_by_their_atoms():
    with naming(TaskError, "atoms O"):
        prepared("no_residue_names.pdb")


@pytest.mark.parametrize("name", ["acetate_other_title.sdf", "acetate_v3000.sdf"])
def test_molecules_of_sdf_files_are_matched_by_bonds(name):
    for structure in (read_structure(DATA / "acetate.pdb"), without_hydrogens(read_structure(DATA / "acetate.pdb"))):
        result = prepare_structure(structure, charges=read_residue_charges(DATA / name))
        assert result.structure.net_charge == pytest.approx(-1)
        assert len(result.structure) == 7


def test_molecules_that_their_bonds_do_not_distinguish_are_refused():
    (charges,) = read_residue_charges(DATA / "acetate_other_title.sdf")
    other = replace(charges, residue="OTHER", charges=dict(charges.charges))
    with pytest.raises(UsageError) as caught:
        prepare_structure(read_structure(DATA / "acetate.pdb"), charges=[charges, other])
    assert caught.value.parameter == "charges"


def test_a_table_of_v3000_may_continue_lines_and_is_refused_if_it_is_incomplete(tmp_path):
    text = (DATA / "acetate_v3000.sdf").read_text()
    path = tmp_path / "x.sdf"
    path.write_text(text.replace("M  V30 4 O 1.588600 -1.129800", "M  V30 4 O 1.588600 -\nM  V30 -1.129800"))
    (charges,), (expected,) = read_residue_charges(path), read_residue_charges(DATA / "acetate_v3000.sdf")
    assert charges.charges == expected.charges
    path.write_text(text.replace("M  V30 6 1 1 7\n", ""))
    with naming(InputError, Words.INCOMPLETE):
        read_residue_charges(path)


def test_ions_whose_residue_is_called_ion_have_the_charge_of_their_atom(tmp_path):
    lines = [f"HETATM{n:5d} {name}  ION A   1    {5.0 * n:8.3f}{0:8.3f}{0:8.3f}  1.00  0.00"
             for n, name in enumerate(("NA+", "CL-", "CL-"), 1)]
    (tmp_path / "x.pdb").write_text("\n".join([*lines, "END"]) + "\n")
    gro = [f"    1ION  {name:>5s}{n:5d}{n / 2:8.3f}{0:8.3f}{0:8.3f}" for n, name in enumerate(("NA+", "CL-", "CL-"), 1)]
    (tmp_path / "x.gro").write_text("\n".join(["title", "3", *gro, "5 5 5"]) + "\n")
    for name in ("x.pdb", "x.gro"):
        structure = read_structure(tmp_path / name)
        assert is_salt(structure).all()
        assert prepare_structure(structure).structure.charges.tolist() == [1, -1, -1]


def test_a_mol2_without_charges_is_a_structure_with_computed_ones(tmp_path):
    atoms = [("C1", "C.3", -0.677, -0.031, -0.019), ("C2", "C.2", 0.804, -0.014, 0.013),
             ("O1", "O.2", 1.362, 1.108, 0.098), ("O2", "O.3", 1.589, -1.13, -0.044),
             ("H1", "H", -0.944, 0.802, -0.711),
             ("H2", "H", -1.051, 0.256, 1.007), ("H3", "H", -1.083, -0.992, -0.345)]
    bonds = [(1, 2, 1), (2, 3, 2), (2, 4, 1), (1, 5, 1), (1, 6, 1), (1, 7, 1)]
    text = "@<TRIPOS>MOLECULE\nLG1\n7 6 1 0 0\nSMALL\nNO_CHARGES\n\n@<TRIPOS>ATOM\n" + "".join(
        f"{n} {name} {x} {y} {z} {kind} 1 LG1\n" for n, (name, kind, x, y, z) in enumerate(atoms, 1))
    text += "@<TRIPOS>BOND\n" + "".join(f"{n} {a} {b} {order}\n" for n, (a, b, order) in enumerate(bonds, 1))
    (tmp_path / "x.mol2").write_text(text)
    result = map_(structure=tmp_path / "x.mol2", method="direct", spacing=4.0, padding=2.0, output=tmp_path / "x.dx")
    assert result.data["net_charge"] == pytest.approx(-1)
    assert any("Gasteiger" in line for line in result.lines)


def test_contributions_of_kinds_that_are_not_present_are_left_out_with_a_word(caplog):
    structure = read_structure(DATA / "models.pdb")
    result = contribution_masks(structure, ("protein", "water", "ions"))
    assert list(result) == ["protein", "water"]
    assert "no ions" in caplog.text
    for selections in (("ions",), ("protein", "resname LIG"), ("lipids", "ions")):
        with pytest.raises(UsageError) as caught:
            contribution_masks(structure, selections)
        assert caught.value.parameter == "from"
