"""Reading mmCIF: against the PDB of the same entry, gemmi, and tables of every form."""

from __future__ import annotations

import gemmi
import numpy as np
import pytest
from messages import naming
from structure_files import MDA, PER_ATOM, SMALL, assert_same, small_cif

from vmdpotential import io
from vmdpotential.errors import InputError


@pytest.mark.parametrize("name", ["1BD2", "3KPR", "3PWP"])
def test_mmcif_agrees_with_the_pdb_of_the_same_entry(name):
    cif, pdb = (io.read_structure(MDA / "mmcif" / f"{name}.{suffix}.gz") for suffix in ("cif", "pdb"))
    assert_same(cif, pdb, [entry for entry in PER_ATOM if entry != "residue_index"], cell=1e-2)
    assert cif.residue_count == pdb.residue_count


@pytest.mark.parametrize("name", ["1BD2.cif.gz", "1YJP.cif", "7ETN.cif.gz", "custom.cif.gz", "1BD2_short.cif.gz"])
def test_mmcif_agrees_with_gemmi(name):
    structure = io.read_structure(MDA / "mmcif" / name)
    other = gemmi.read_structure(str(MDA / "mmcif" / name), merge_chain_parts=False)
    flat = [(chain.name, residue.seqid.num, residue.name, atom.name, atom.pos.tolist())
            for chain in other[0] for residue in chain for atom in residue]  # fmt: skip
    if len(flat) != len(structure):
        pytest.fail("gemmi lists other atoms")
    assert structure.atom_names.tolist() == [row[3] for row in flat]
    assert structure.residue_ids.tolist() == [row[1] for row in flat]
    np.testing.assert_allclose(structure.positions, [row[4] for row in flat], atol=1e-9)


def test_mmcif_models_and_locations(caplog):
    structure = io.read_structure(MDA / "mmcif" / "multimodel_warning.cif.gz")
    assert "several models" in caplog.text
    models = gemmi.read_structure(str(MDA / "mmcif" / "multimodel_warning.cif.gz"))
    assert len(structure) == models[0].count_atom_sites()
    assert len(models) > 1


def test_mmcif_quotes_nulls_and_uncertainties(tmp_path):
    path = tmp_path / "a.cif"
    path.write_text(small_cif(SMALL, "_cell.length_a 10\n_cell.length_b 11\n_cell.length_c 12(1)\n"))
    structure = io.read_structure(path)
    assert structure.atom_names.tolist() == ["O5'", "C 1"]
    assert structure.residue_names.tolist() == ["LIG", "L G"]
    assert structure.residue_ids.tolist() == [1, 7]
    assert structure.positions.tolist() == [[1.5, 0, -1], [2.5, 10, 0]]
    assert structure.occupancies.tolist() == [1, 0.5]
    assert structure.cell.parameters == (10, 11, 12, 90, 90, 90)
    io.write_structure(structure, tmp_path / "b.cif")
    assert_same(structure, io.read_structure(tmp_path / "b.cif"))


@pytest.mark.parametrize("text_field", [False, True])
def test_mmcif_in_pieces_and_as_a_whole(tmp_path, monkeypatch, text_field):
    """The piecewise way gives what the parser gives at once, wherever the pieces end."""
    from vmdpotential.io.structures import mmcif

    whole = io.read_structure(MDA / "mmcif" / "1YJP.cif")
    content = (MDA / "mmcif" / "1YJP.cif").read_bytes()
    if text_field:  # a value over several lines inside the table cannot be cut
        assert content.count(b"\nATOM   5 ") == 1
        content = content.replace(b"\nATOM   5 ", b"\nATOM\n;5\n;\n")
    (tmp_path / "a.cif").write_bytes(content)
    monkeypatch.setattr(mmcif, "_PIECE", 300)
    assert_same(whole, io.read_structure(tmp_path / "a.cif"))
    monkeypatch.setattr(mmcif, "_in_pieces", lambda raw: None)
    assert_same(whole, io.read_structure(tmp_path / "a.cif"))


@pytest.mark.parametrize(
    "column", ["Cartn_x", "Cartn_z", "label_atom_id", "label_comp_id", "label_seq_id"]
)
def test_mmcif_names_the_column_that_is_missing(tmp_path, column):
    """gemmi returns a structure without models for some of these, and raises nothing."""
    content = gemmi.cif.read(str(MDA / "mmcif" / "1YJP.cif"))
    block = content.sole_block()
    names = [tag.removeprefix("_atom_site.") for tag in block.find_loop("_atom_site.id").get_loop().tags]
    dropped = {column, column.replace("label_", "auth_")}
    kept = {name: list(block.find_values(f"_atom_site.{name}")) for name in names if name not in dropped}
    path = tmp_path / "a.cif"
    path.write_text(small_cif(kept))
    with naming(InputError, f"_atom_site.{column}"):
        io.read_structure(path)
