"""Reading and writing of PDB, mmCIF, GRO and PQR, on the real files that show each trap."""

from __future__ import annotations

import bz2
import gzip
import logging
import shutil
import string
import warnings
from dataclasses import replace
from pathlib import Path

import gemmi
import MDAnalysis
import numpy as np
import openmm.app
import openmmtools
import parmed
import pytest
from MDAnalysisTests import datafiles

from vmdpotential import io
from vmdpotential.errors import ChargeError, InputError, OutputError, UsageError, VmdpotentialError
from vmdpotential.io import columns, pdb_numbers, recognise
from vmdpotential.molecule import elements
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure

MDA = Path(datafiles.PDB).parent
TOOLS = Path(openmmtools.__file__).parent / "data"
OPENMM = Path(openmm.app.__file__).parent / "data"
PER_ATOM = (
    "atom_names", "residue_names", "chain_ids", "segment_ids", "elements", "insertion_codes", "residue_ids",
    "residue_index", "hetero", "occupancies", "b_factors",
)  # fmt: skip


def universe(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MDAnalysis.Universe(str(path))


def atom_lines(path):
    """The atom records of a PDB file, by plain Python: the reference for order and names."""
    opened = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix, open)
    with opened(path, "rt") as file:
        return [line.rstrip("\n").ljust(80) for line in file if line.startswith(("ATOM", "HETATM"))]


def assert_same(one, other, names=PER_ATOM, positions=1e-9, cell=1e-6):
    assert len(one) == len(other)
    for name in names:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    np.testing.assert_allclose(other.positions, one.positions, rtol=0, atol=positions)
    assert (one.cell is None) == (other.cell is None)
    if one.cell is not None:
        np.testing.assert_allclose(other.cell.vectors, one.cell.vectors, atol=cell)


# ---- PDB: the order of atoms and the residues of real files

WRAPPED = [
    (MDA / "adk_oplsaa.pdb", 11302),  # GROMACS: residue numbers wrap after 9999
    (TOOLS / "src-explicit" / "1yi6-minimized.pdb", 17680),  # OpenMM: the same, in a chain
    (MDA / "cobrotoxin.pdb", 4693),
    (OPENMM / "POPC.pdb", 5248),
]


@pytest.mark.parametrize(("path", "count"), WRAPPED, ids=lambda value: getattr(value, "name", value))
def test_atoms_stay_in_order_and_residues_intact(path, count):
    structure, lines = io.read_structure(path), atom_lines(path)
    assert structure.atom_names.tolist() == [line[12:16].strip() for line in lines]
    expected = np.array([[float(line[30 + 8 * k : 38 + 8 * k]) for k in range(3)] for line in lines])
    np.testing.assert_array_equal(structure.positions, expected)
    assert structure.residue_count == count == len(universe(path).residues)


@pytest.fixture(scope="module")
def tpr():
    """Topology, charges, coordinates and cell in one file."""
    return io.read_structure(MDA / "adk_oplsaa.tpr")


def test_charges_of_a_tpr_land_on_the_atoms_they_belong_to(tpr):
    structure = io.merge(io.read_structure(MDA / "adk_oplsaa.pdb"), tpr)
    assert abs(structure.net_charge) < 1e-3
    waters = structure.residue_names == "SOL"
    per_name = {name: set(np.round(structure.charges[waters & (structure.atom_names == name)], 3).tolist())
                for name in ("OW", "HW1", "HW2", "MW")}  # fmt: skip
    assert per_name == {"OW": {0.0}, "HW1": {0.52}, "HW2": {0.52}, "MW": {-1.04}}
    assert np.allclose(np.diff(structure.residue_starts)[-4:], 1)  # the four sodium ions
    assert structure.cell.parameters == pytest.approx((80.017, 80.017, 80.017, 60, 60, 90), abs=1e-3)


@pytest.mark.parametrize(
    "path",
    [MDA / name for name in (
        "1hvr.pdb", "adk_closed.pdb", "adk_open.pdb", "unordered_res.pdb", "5a7u.pdb", "6msm.pdb.bz2", "1a28.pdb.gz",
        "namd_cgenff.pdb", "nucl_res.pdb", "testENT.ent", "pdbqt_querypdb.pdb", "CONECT2TER.pdb", "surface.pdb.bz2",
        "nmr_neopetrosiamide.pdb", "A6PA6_alpha.pdb", "cobrotoxin_dry_neutral_0.pdb", "fullerene.pdb.gz",
        "chainIDrepeat.pdb.gz", "chainIDnewres.pdb.gz", "sameresid_diffresname.pdb",
    )] + [
        TOOLS / "amoeba" / "1AP4_14_wat.pdb", TOOLS / "waterbox" / "tip3p900.pdb", OPENMM / "tip5p.pdb",
        TOOLS / "dna_dodecamer_explicit" / "minimized_dna_dodecamer.pdb", TOOLS / "methanol-box" / "methanol-box.pdb",
    ],
    ids=lambda path: path.name,
)  # fmt: skip
def test_pdb_agrees_with_mdanalysis(path):
    structure, other = io.read_structure(path), universe(path)
    assert structure.atom_names.tolist() == other.atoms.names.tolist()
    assert structure.residue_names.tolist() == other.atoms.resnames.tolist()
    assert structure.residue_ids.tolist() == other.atoms.resids.tolist()
    assert structure.residue_count == len(other.residues)
    np.testing.assert_allclose(structure.positions, other.atoms.positions, atol=1e-3)


def test_chain_parts_are_not_merged():
    structure = io.read_structure(MDA / "chainIDrepeat.pdb.gz")
    expected = [line[21] for line in atom_lines(MDA / "chainIDrepeat.pdb.gz")]
    assert structure.chain_ids.tolist() == expected
    parts = "".join(chain for i, chain in enumerate(expected) if i == 0 or chain != expected[i - 1])
    assert len(parts) > len(set(parts)), "the file should show a chain that comes again"


def test_four_letter_residue_names_and_long_residue_numbers():
    assert io.read_structure(MDA / "cryst_then_model.pdb").residue_names.tolist() == ["TIP3"] * 4
    lipid = io.read_structure(MDA / "sameresid_diffresname.pdb")  # a 4-letter name before a chain
    assert lipid.residue_names.tolist() == ["GLN", "POPC"]
    assert lipid.chain_ids.tolist() == ["S", "S"]
    assert lipid.residue_index.tolist() == [0, 1]
    five = io.read_structure(MDA / "5digitResid.pdb")  # CHARMM-GUI: left-aligned, the fifth digit in column 27
    assert five.residue_ids.tolist() == [1, 10, 100, 1000, 10000]
    assert set(five.insertion_codes) == {""}


def test_serials_are_never_read():
    structure = io.read_structure(MDA / "xl_serial.pdb")  # 99998, 99999, *****, *****
    assert structure.atom_names.tolist() == ["H2", "OH2", "H1", "H2"]
    assert structure.residue_index.tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("name", ["1grm_single.pdb", "RANDOM_WALK_TOPO.pdb", "namd_cgenff.pdb", "adk_closed.pdb"])
def test_no_box(name):
    """CRYST1 1 1 1, all zeros, zero lengths with right angles, and none at all."""
    assert io.read_structure(MDA / name).cell is None


def test_crystals_out_of_their_columns():
    assert io.read_structure(MDA / "nucl_res.pdb").cell.parameters == pytest.approx((80, 80, 80, 60, 60, 90))
    assert io.read_structure(MDA / "1hvr.pdb").cell.parameters == pytest.approx((62.8, 62.8, 83.5, 90, 90, 120))


@pytest.mark.parametrize(("name", "group"), [("mmcif/1YJP.cif", "P 1 21 1"), ("mmcif/1BD2.pdb.gz", "P 21 21 21"),
                                             ("mmcif/1BD2.cif.gz", "P 21 21 21"), ("1hvr.pdb", "P 61"),
                                             ("adk_oplsaa.pdb", "P 1")])
def test_space_groups_are_kept(tmp_path, name, group):
    structure = io.read_structure(MDA / name)
    assert (structure.cell.space_group, structure.cell.whole) == (group, group == "P 1")
    for suffix in ("cif", "pdb"):
        io.write_structure(structure.take(np.arange(5)), tmp_path / f"out.{suffix}")
        assert io.read_structure(tmp_path / f"out.{suffix}").cell.space_group == group
        assert gemmi.read_structure(str(tmp_path / f"out.{suffix}")).spacegroup_hm == group


def test_first_model_only(caplog):
    structure = io.read_structure(MDA / "nmr_neopetrosiamide.pdb")
    assert len(structure) == len(universe(MDA / "nmr_neopetrosiamide.pdb").atoms)
    assert "several models" in caplog.text
    assert len(io.read_structure(MDA / "incomplete.pdb")) == 3


@pytest.mark.parametrize("name", ["4E43.pdb", "19hc.pdb.gz", "mmcif/3PWP.pdb.gz", "mmcif/3PWP.cif.gz"])
def test_one_conformer_is_kept(name, caplog):
    """Against gemmi's own list of locations: the likeliest letter of each residue, and nothing else."""
    structure = io.read_structure(MDA / name)
    model = gemmi.read_structure(str(MDA / name), merge_chain_parts=False)[0]
    expected, left_out = [], 0
    for chain in model:
        groups: dict[str, list[gemmi.Residue]] = {}
        for residue in chain:
            groups.setdefault(str(residue.seqid), []).append(residue)
        for group in groups.values():
            total: dict[str, float] = {}
            for atom in (atom for residue in group for atom in residue if atom.has_altloc()):
                total[atom.altloc] = total.get(atom.altloc, 0.0) + round(atom.occ, 4)
            best = max(total, key=total.get) if total else ""
            for residue in group:
                for atom in residue:
                    kept = not atom.has_altloc() or atom.altloc == best
                    left_out += not kept
                    if kept:
                        expected.append((chain.name, residue.name, atom.name, *np.round(atom.pos.tolist(), 3)))
    found = zip(structure.chain_ids, structure.residue_names, structure.atom_names, *structure.positions.T, strict=True)
    assert sorted(expected) == sorted((str(c), str(r), str(a), *np.round(xyz, 3)) for c, r, a, *xyz in found)
    assert f"{left_out} atoms of alternate locations" in caplog.text
    starts = structure.residue_starts[:-1]
    for first, last in zip(starts, structure.residue_starts[1:], strict=True):
        assert len(set(structure.atom_names[first:last])) == last - first


def test_alternate_residues(tmp_path):
    """Two residues at one place: one of them goes, as a whole."""
    path = tmp_path / "a.pdb"
    rows = [("N", "A", "SER", 0.4), ("CA", "A", "SER", 0.4), ("OG", "A", "SER", 0.4), ("N", "B", "THR", 0.6),
            ("CA", "B", "THR", 0.6), ("OG1", "B", "THR", 0.6), ("CG2", "B", "THR", 0.6)]  # fmt: skip
    path.write_text("".join(
        f"ATOM  {i:5d}  {name:<3s}{letter}{residue} A  10    {i:8.3f}{0:8.3f}{0:8.3f}{occupancy:6.2f}  0.00\n"
        for i, (name, letter, residue, occupancy) in enumerate(rows, 1)
    ))  # fmt: skip
    structure = io.read_structure(path)
    assert structure.atom_names.tolist() == ["N", "CA", "OG1", "CG2"]
    assert structure.residue_count == 1


# ---- numbers beyond their columns


def water_box(tmp_path, count, serial, number, chain=" "):
    """A PDB of `count` waters as a program with its own way of writing large numbers writes it."""
    path = tmp_path / "water.pdb"
    lines, atom = ["CRYST1  150.000  150.000  150.000  90.00  90.00  90.00 P 1           1\n"], 0
    for molecule in range(1, count + 1):
        for k, name in enumerate(("OH2", "H1", "H2")):
            atom += 1
            x, y, z = molecule % 149, molecule // 149 % 149, k
            lines.append(
                f"ATOM  {serial(atom):>5s}  {name:<3s} TIP3{chain}{number(molecule):>4s}    {x:8.3f}{y:8.3f}{z:8.3f}"
                "  1.00  0.00      WAT \n"
            )
    path.write_text("".join([*lines, "END\n"]))
    return path


def hybrid(number, width):
    """Return a number as cctbx writes it; see https://cci.lbl.gov/hybrid_36/."""
    if number < 10**width:
        return str(number)
    number -= 10**width
    letters, digits = string.digits + string.ascii_uppercase, ""
    if number >= 26 * 36 ** (width - 1):
        letters, number = letters.lower(), number - 26 * 36 ** (width - 1)
    number += 10 * 36 ** (width - 1)
    while number:
        number, digit = divmod(number, 36)
        digits = letters[digit] + digits
    return digits


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "count"), [("vmd", 70_000), ("hybrid-36", 37_000), ("wrapped", 34_000), ("stars", 34_000)]
)
def test_large_numbers(tmp_path, kind, count):
    """More than 99,999 atoms and 9,999 residues, as VMD, cctbx, GROMACS and CHARMM write them."""
    serial, number = {
        "vmd": (lambda n: f"{n}" if n < 100000 else f"{n:05x}" if n < 16**5 else "*****",
                lambda n: f"{n}" if n < 10000 else f"{n:4x}" if n < 16**4 else "****"),
        "hybrid-36": (lambda n: hybrid(n, 5), lambda n: hybrid(n, 4)),
        "wrapped": (lambda n: f"{n % 100000}", lambda n: f"{n % 10000}"),
        "stars": (lambda n: f"{n}" if n < 100000 else "*****", lambda n: f"{n}" if n < 10000 else "****"),
    }[kind]  # fmt: skip
    structure = io.read_structure(water_box(tmp_path, count, serial, number))
    assert len(structure) == 3 * count
    assert structure.residue_count == count
    np.testing.assert_array_equal(np.diff(structure.residue_starts), 3)
    counted = np.arange(1, count + 1)
    np.testing.assert_array_equal(
        structure.residue_ids[::3], counted % 10000 if kind == "wrapped" else counted, err_msg=kind
    )
    np.testing.assert_array_equal(structure.positions[::3, 0], counted % 149)
    # written again and read by others, it has the same residues in the same order
    io.write_structure(structure, tmp_path / "again.pdb")
    again = io.read_structure(tmp_path / "again.pdb")
    wrapped = replace(structure, residue_ids=structure.residue_ids % 10000, segment_ids=again.segment_ids)
    assert_same(wrapped, again)
    assert set(again.segment_ids) == {"WAT", *(f"WAT{n + 2}" for n in range((count - 1) // 10000))}
    assert sum(map(len, gemmi.read_pdb(str(tmp_path / "again.pdb"))[0])) == count
    assert len(universe(tmp_path / "again.pdb").residues) == count


def test_hybrid36_at_its_corners():
    # published examples of the scheme
    numbers, words = [-999, 9999, 10000, 1223055, 1223056, 2436111], ["-999", "9999", "A000", "ZZZZ", "a000", "zzzz"]
    assert [hybrid(n, 4) for n in numbers] == words
    assert pdb_numbers.numbers(columns.text(np.array([f"{word} " for word in words]), 5))[0].tolist() == numbers


def test_numbers_wrap_in_their_columns():
    assert columns.wrapped(np.array([0, 9999, 10000, 23456, -999, -1000, -1001]), 4).tolist() == [
        0, 9999, 0, 3456, -999, 0, -1]


def numbered(count, number, segment=""):
    """Waters of one segment, one site each, with numbers of a function."""
    index = np.arange(count)
    return Structure(np.stack([index % 97, index // 97 % 97, index // 97**2], 1) * 5.0, np.full(count, "O"),
                     np.full(count, "HOH"), [number(n) for n in index], index, segment_ids=np.full(count, segment),
                     chain_ids=np.full(count, "W"))


@pytest.mark.parametrize(
    ("count", "number", "segment", "segments"),
    [
        (10_500, lambda n: n + 1, "", ["W", "W2"]),
        (20_500, lambda n: n + 1, "WAT1", ["WAT1", "WAT2", "WAT3"]),
        (20_500, lambda n: (n + 1) % 10000, "", ["W", "W2", "W3"]),  # as GROMACS wrote it
        (2_000, lambda n: n % 2, "", [""]),  # one residue after the other has a number again: numbered anew
        (50, lambda n: 7, "", [""]),
        (50, lambda n: n - 40, "", [""]),
    ],
)
def test_residues_stay_apart_in_a_pdb_for_all_readers(tmp_path, count, number, segment, segments):
    structure = numbered(count, number, segment)
    io.write_structure(structure, tmp_path / "out.pdb")
    again = io.read_structure(tmp_path / "out.pdb")
    assert again.residue_count == count
    assert np.unique(again.segment_ids).tolist() == segments
    assert sum(map(len, gemmi.read_pdb(str(tmp_path / "out.pdb"))[0])) == count
    assert len(universe(tmp_path / "out.pdb").residues) == count


def test_residue_number_fields():
    def read(*fields):
        return [part.tolist() for part in pdb_numbers.numbers(columns.text(np.array(fields), 5))]

    assert read("  42A", "  42B", "  43 ") == [[42, 42, 43], ["A", "B", ""]]
    assert read("9998 ", "9999 ", "2710 ", "2711 ", "271a ") == [[9998, 9999, 10000, 10001, 10010], [""] * 5]
    # another segment starts at 1 and passes the decimal 2710
    assert read("9999 ", "2710 ", "271a ", "   1 ", "2709 ", "2710 ")[0] == [9999, 10000, 10010, 1, 2709, 2710]
    assert read("9999 ", "A000 ", "A001 ")[0] == [9999, 10000, 10001]
    assert read("9999 ", "   0 ", "   1 ")[0] == [9999, 0, 1]
    assert read("9999 ", "**** ", "**** ")[0] == [9999, 10000, 10001]
    assert read("1    ", "10000")[0] == [1, 10000]


def test_waters_of_one_number_are_told_apart(tmp_path):
    """Waters and ions that follow each other under one number are single residues; a ligand with repeated names not."""
    names = [("OW", "SOL"), ("HW1", "SOL"), ("HW2", "SOL")] * 3 + [("NA", "NA")] * 2 + [("C", "LIG"), ("H", "LIG")] * 2
    path = tmp_path / "a.pdb"
    path.write_text("".join(
        f"ATOM  {i:5d}  {name:<3s} {residue:<4s}   1    {i:8.3f}{0:8.3f}{0:8.3f}  1.00  0.00\n"
        for i, (name, residue) in enumerate(names, 1)
    ))  # fmt: skip
    structure = io.read_structure(path)
    assert np.diff(structure.residue_starts).tolist() == [3, 3, 3, 1, 1, 4]
    for suffix in (".pdb", ".cif"):
        io.write_structure(structure, tmp_path / f"b{suffix}")
        again = io.read_structure(tmp_path / f"b{suffix}")
        np.testing.assert_array_equal(again.residue_index, structure.residue_index)


# ---- elements


@pytest.mark.parametrize(
    ("atom", "residue", "element"),
    [
        ("CA", "ALA", "C"), ("CA", "CA", "Ca"), ("CAL", "CAL", "Ca"), ("CA", "LIG", "C"), ("SOD", "SOD", "Na"),
        ("CLA", "CLA", "Cl"), ("POT", "POT", "K"), ("Na+", "Na+", "Na"), ("Cl-", "Cl-", "Cl"), ("K+", "K+", "K"),
        ("MG", "MG2", "Mg"), ("ZN", "ZN2", "Zn"), ("CD", "GLU", "C"), ("CD", "CD", "Cd"), ("HG", "SER", "H"),
        ("OH2", "TIP3", "O"), ("H1", "TIP3", "H"), ("MW", "SOL", ""), ("EPW", "WAT", ""), ("M", "TIP4", ""),
        ("1HB", "ALA", "H"), ("HO5'", "DA", "H"), ("O5*", "DA", "O"), ("FE", "HEM", "Fe"), ("NA", "HEM", "N"),
        ("CL1", "LIG", "Cl"), ("BR", "LIG", "Br"), ("SE", "MSE", "Se"), ("NE", "ARG", "N"), ("P", "POPC", "P"),
        ("SD", "MET", "S"), ("C21", "POPC", "C"), ("NA", "ION", "Na"), ("LPA", "LIG", ""), ("D1", "DOD", "H"),
    ],
)  # fmt: skip
def test_guessed_elements(atom, residue, element):
    assert elements.guess(atom, residue) == element


@pytest.mark.parametrize("name", ["1hvr.pdb", "4E43.pdb", "6msm.pdb.bz2", "mmcif/3KPR.pdb.gz", "elements.pdb"])
def test_guesses_agree_with_what_files_state(name):
    structure = io.read_structure(MDA / name)
    guessed = elements.guess_all(structure.atom_names, structure.residue_names)
    differ = structure.elements != guessed
    assert not differ.any(), set(zip(structure.residue_names[differ], structure.atom_names[differ], strict=True))


# ---- mmCIF


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


def small_cif(columns_and_values, cell=""):
    names = "".join(f"_atom_site.{name}\n" for name in columns_and_values)
    rows = "\n".join(" ".join(row) for row in zip(*columns_and_values.values(), strict=True))
    return f"data_x\n{cell}loop_\n{names}{rows}\n"


SMALL = {
    "id": ["1", "2"], "label_atom_id": ["\"O5'\"", "'C 1'"], "label_comp_id": ["LIG", "'L G'"],
    "label_seq_id": ["1", "."], "auth_seq_id": ["?", "7"], "Cartn_x": ["1.5", "2.5(3)"], "Cartn_y": ["0", "1e1"],
    "Cartn_z": ["-1", "0.0"], "occupancy": ["?", "0.5"],
}  # fmt: skip


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
    from vmdpotential.io import mmcif

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
    with pytest.raises(InputError, match=f"lacks the column _atom_site.{column}"):
        io.read_structure(path)


# ---- GRO and PQR


@pytest.mark.parametrize(
    "name",
    ["adk_oplsaa.gro", "dppc_vesicle_hg.gro", "grovels.gro", "make_whole.gro", "martini_dppc_chol_bilayer.gro",
     "plength.gro", "sameresid_diffresname.gro", "sample_velocity_file.gro", "two_water_gro_widebox.gro",
     "argon_npt_compressed.gro.gz"],
)  # fmt: skip
def test_gro_agrees_with_mdanalysis(name):
    structure, other = io.read_structure(MDA / name), universe(MDA / name)
    assert structure.atom_names.tolist() == other.atoms.names.tolist()
    assert structure.residue_names.tolist() == other.atoms.resnames.tolist()
    assert structure.residue_ids.tolist() == other.atoms.resids.tolist()
    assert structure.residue_count == len(other.residues)
    np.testing.assert_allclose(structure.positions, other.atoms.positions, atol=2e-5 * 200)
    np.testing.assert_allclose(structure.cell.parameters, other.dimensions, rtol=1e-5)


def test_gro_compressed_large_and_wrapped():
    big = io.read_structure(MDA / "bigbox.gro.bz2")
    assert (len(big), big.residue_count) == (132303, 44101)
    stated = [int(line[:5]) for line in (MDA / "residwrap.gro").read_text().splitlines()[2:-1]]
    assert io.read_structure(MDA / "residwrap.gro").residue_ids.tolist() == stated
    assert max(stated) == 99999
    assert stated[-1] == 1
    assert io.read_structure(MDA / "residwrap.gro").residue_count == 7
    assert io.read_structure(MDA / "huge_box.gro").cell.parameters[:3] == (400000,) * 3


def test_gro_precision(tmp_path):
    path = tmp_path / "a.gro"
    path.write_text(
        "title\n2\n    1SOL     OW    1  1.2345678 -0.1234567  0.0000001\n    1SOL    HW1    2  0.5000000  0.5000000"
        "  0.5000000\n   2.00000   2.00000   2.00000\n"
    )
    positions = io.read_structure(path).positions
    np.testing.assert_allclose(positions[0], [12.345678, -1.234567, 0.000001], atol=1e-12)


@pytest.mark.parametrize("name", ["adk_open.pqr", "1A2C.pqr"])
def test_pqr_agrees_with_mdanalysis(name):
    structure, other = io.read_structure(MDA / name), universe(MDA / name)
    assert structure.atom_names.tolist() == other.atoms.names.tolist()
    assert structure.residue_ids.tolist() == other.atoms.resids.tolist()
    np.testing.assert_allclose(structure.charges, other.atoms.charges, atol=1e-7)
    np.testing.assert_allclose(structure.positions, other.atoms.positions, atol=1e-4)


def test_pqr_without_chain_with_chain_and_with_fields_that_touch(tmp_path):
    path = tmp_path / "a.pqr"
    path.write_text(
        "REMARK by hand\n"
        "ATOM      1  N   ASP H  49      16.704  14.108  12.210 -0.3000 1.8500\n"
        "ATOM      2  CA  ASP H  49A     16.704-114.108-112.210  0.2000 1.8500\n"
        "HETATM10003  O   HOH W1000      16.704  14.108  12.210 -0.834 1.7\n"
        "ATOM 4 HO5' DC5 1 1 2 3 0.4 1.2\n"
        "TER\nEND\n"
    )
    structure = io.read_structure(path)
    assert structure.chain_ids.tolist() == ["H", "H", "W", ""]
    assert structure.residue_ids.tolist() == [49, 49, 1000, 1]
    assert structure.insertion_codes.tolist() == ["", "A", "", ""]
    assert structure.positions[1].tolist() == [16.704, -114.108, -112.210]
    assert structure.charges.tolist() == [-0.3, 0.2, -0.834, 0.4]
    assert structure.hetero.tolist() == [False, False, True, False]


@pytest.mark.parametrize("name", ["adk_open.pqr", "1A2C.pqr"])
def test_a_pqr_is_not_read_as_a_pdb(tmp_path, name):
    """gemmi.read_pdb takes a PQR without complaint and returns other coordinates."""
    shutil.copy(MDA / name, tmp_path / "a.pdb")
    with pytest.raises(InputError, match=r"line \d+: columns 31-54 .* name it \.pqr"):
        io.read_structure(tmp_path / "a.pdb")
    shutil.copy(MDA / name, tmp_path / "a")
    assert io.read_structure(tmp_path / "a").charges is not None


# ---- writing

SOURCES = [
    MDA / "adk_oplsaa.pdb", MDA / "1hvr.pdb", MDA / "unordered_res.pdb", MDA / "adk_open.pdb", MDA / "align.pdb",
    MDA / "sameresid_diffresname.pdb", MDA / "chainIDrepeat.pdb.gz", MDA / "4x8u.pdbx", MDA / "mmcif" / "3KPR.cif.gz",
    MDA / "adk_oplsaa.gro", MDA / "1A2C.pqr", OPENMM / "POPC.pdb", TOOLS / "src-explicit" / "1yi6-minimized.pdb",
    TOOLS / "dna_dodecamer_explicit" / "minimized_dna_dodecamer.pdb", OPENMM / "swm4ndp.pdb",
]  # fmt: skip


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_written_pdb_is_read_back(tmp_path, path, caplog):
    structure = io.read_structure(path)
    io.write_structure(structure, tmp_path / "out.pdb.gz")
    again = io.read_structure(tmp_path / "out.pdb.gz")
    told = "come again in a segment" in caplog.text  # whose other name is not that of the source
    assert told == bool((again.segment_ids != structure.segment_ids).any())
    wrapped = replace(structure, residue_ids=structure.residue_ids % 10000 if told else structure.residue_ids)
    assert_same(wrapped, again, [n for n in PER_ATOM if not (told and n == "segment_ids")], positions=5.1e-4, cell=1e-2)
    assert sum(map(len, gemmi.read_pdb(str(tmp_path / "out.pdb.gz"))[0])) == structure.residue_count
    other = universe(tmp_path / "out.pdb.gz")
    assert other.atoms.names.tolist() == structure.atom_names.tolist()
    assert len(other.residues) == structure.residue_count
    np.testing.assert_allclose(other.atoms.positions, structure.positions, atol=1e-3)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_written_mmcif_is_read_back_identical(tmp_path, path, caplog):
    structure = io.read_structure(path)
    io.write_structure(structure, tmp_path / "out.cif")
    again = io.read_structure(tmp_path / "out.cif")
    changed = "count on" in caplog.text  # numbers that come again in a chain
    assert changed == (path.name in ("adk_oplsaa.pdb", "unordered_res.pdb", "1A2C.pqr", "1yi6-minimized.pdb"))
    assert_same(structure, again, [name for name in PER_ATOM if not (changed and name == "residue_ids")])
    # gemmi sorts atoms by chain and residue number; it must find our order
    models = gemmi.read_structure(str(tmp_path / "out.cif"), merge_chain_parts=False)
    np.testing.assert_allclose(gemmi.FlatStructure(models).pos, structure.positions, atol=1e-9)
    assert sum(len(chain) for chain in models[0]) == structure.residue_count


def test_written_mmcif_is_read_by_openmm_and_mdanalysis(tmp_path):
    structure = io.read_structure(TOOLS / "src-explicit" / "1yi6-minimized.pdb")
    # a part in which residue numbers wrap and come again
    structure = structure.take((structure.residue_index < 300) | (abs(structure.residue_index - 10000) < 300))
    io.write_structure(structure, tmp_path / "out.cif")
    file = openmm.app.PDBxFile(str(tmp_path / "out.cif"))
    positions = np.array(file.getPositions(asNumpy=True)._value) * 10
    np.testing.assert_allclose(positions, structure.positions, atol=1e-6)
    assert file.topology.getNumResidues() == structure.residue_count
    assert [atom.name for atom in file.topology.atoms()] == structure.atom_names.tolist()
    lengths = [vector[i]._value * 10 for i, vector in enumerate(file.topology.getPeriodicBoxVectors())]
    assert lengths == pytest.approx(structure.cell.parameters[:3])
    other = universe(tmp_path / "out.cif")
    assert other.atoms.names.tolist() == structure.atom_names.tolist()


def test_written_pdb_is_read_by_parmed_and_gemmi(tmp_path):
    structure = io.read_structure(TOOLS / "alanine-dipeptide-explicit" / "alanine-dipeptide.pdb")
    io.write_structure(structure, tmp_path / "out.pdb")
    other = parmed.read_PDB(str(tmp_path / "out.pdb"))
    assert [atom.name for atom in other.atoms] == structure.atom_names.tolist()
    np.testing.assert_allclose(other.coordinates, structure.positions, atol=1e-3)
    assert other.box == pytest.approx(structure.cell.parameters)
    flat = gemmi.FlatStructure(gemmi.read_pdb(str(tmp_path / "out.pdb")))
    np.testing.assert_allclose(flat.pos, structure.positions, atol=1e-3)


def test_the_columns_of_vmd():
    """Files that VMD or OpenMM wrote come out byte for byte in the columns that matter."""
    from vmdpotential.io import pdb

    for path in (MDA / "cryst_then_model.pdb", MDA / "namd_cgenff.pdb", OPENMM / "POPC.pdb", MDA / "1hvr.pdb"):
        written = b"".join(pdb._records(io.read_structure(path))).decode().splitlines()
        written = [line for line in written if line.startswith(("ATOM", "HETATM"))]
        original = atom_lines(path)[: len(written)]
        for ours, theirs in zip(written, original, strict=True):
            assert (ours[:6], ours[12:16], ours[17:66], ours[72:76]) == (
                theirs[:6], theirs[12:16], theirs[17:66], theirs[72:76] if path.parent == MDA else "    ")  # fmt: skip
            assert len(ours) == 80


def test_ter_and_cryst_records(tmp_path):
    structure = io.read_structure(MDA / "adk_oplsaa.pdb")
    io.write_structure(structure, tmp_path / "out.pdb")
    lines = (tmp_path / "out.pdb").read_text().splitlines()
    ters = [i for i, line in enumerate(lines) if line == "TER"]
    assert len(ters) == 1  # one protein
    assert lines[ters[0] - 1][17:20] == "GLY"
    assert lines[ters[0] + 1][17:20] == "SOL"
    assert lines[-1] == "END"
    original = (MDA / "adk_oplsaa.pdb").read_text().partition("CRYST1")[2].splitlines()[0]
    assert next(line for line in lines if line.startswith("CRYST1"))[6:].split() == original.split()


@pytest.mark.parametrize("name", ["adk_open.pqr", "1A2C.pqr", "adk_oplsaa.tpr"])
def test_written_pqr_is_read_back(tmp_path, tpr, name):
    structure = tpr if name.endswith(".tpr") else io.read_structure(MDA / name)
    io.write_structure(structure, tmp_path / "out.pqr")
    again = io.read_structure(tmp_path / "out.pqr")
    np.testing.assert_allclose(again.charges, structure.charges, rtol=0, atol=6e-9)
    assert again.net_charge == pytest.approx(structure.net_charge, abs=1e-4)
    for name in ("atom_names", "residue_names", "residue_ids", "residue_index"):
        np.testing.assert_array_equal(getattr(again, name), getattr(structure, name))
    other = universe(tmp_path / "out.pqr")
    np.testing.assert_allclose(other.atoms.charges, structure.charges, atol=1e-6)
    np.testing.assert_allclose(other.atoms.positions, structure.positions, atol=1e-3)
    assert (other.atoms.radii[structure.elements == "C"] > 1).all()


def test_pqr_with_some_chains(tmp_path):
    """MDAnalysis wants a chain in every line or in none."""
    structure = io.read_structure(MDA / "align.pdb").with_charges([0.123456, -1, 0, 1])
    io.write_structure(structure, tmp_path / "out.pqr")
    again = io.read_structure(tmp_path / "out.pqr")
    assert again.segment_ids.tolist() == structure.segment_ids.tolist() == ["RNAA", "", "", "RNAA"]
    assert universe(tmp_path / "out.pqr").atoms.charges[0] == pytest.approx(0.123456)


def structure_of(positions, **fields):
    count = len(positions)
    given = {"atom_names": ["C"] * count, "residue_names": ["LIG"] * count, "residue_ids": np.arange(count),
             "residue_index": np.arange(count), **fields}  # fmt: skip
    return Structure(positions=np.array(positions, float), **given)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"positions": [[12345.678, 0, 0]]}, "atom 1 .LIG0:C. at 12345.678 0.000 0.000 does not fit .* mmCIF"),
        ({"positions": [[0, -1000, 0]]}, "does not fit .* mmCIF"),
        ({"positions": [[0, 0, 0]], "atom_names": ["LONGER"]}, "the atom name 'LONGER' is too long .* mmCIF"),
        ({"positions": [[0, 0, 0]], "residue_names": ["WATER"]}, "the residue name 'WATER' is too long .* mmCIF"),
        ({"positions": [[0, 0, 0]], "chain_ids": ["AA"]}, "the chain id 'AA' is too long .* mmCIF"),
        ({"positions": [[0, 0, 0]], "cell": Cell(np.eye(3) * 2e5)}, "cell is too large .* mmCIF"),
    ],
)
def test_what_a_pdb_cannot_hold_is_refused_and_mmcif_holds_it(tmp_path, fields, message):
    structure = structure_of(**fields)
    with pytest.raises(UsageError, match=message):
        io.write_structure(structure, tmp_path / "out.pdb")
    assert not list(tmp_path.iterdir())
    io.write_structure(structure, tmp_path / "out.cif")
    assert_same(structure, io.read_structure(tmp_path / "out.cif"), [name for name in PER_ATOM if name != "elements"])


def test_coordinates_at_the_edge_of_their_columns(tmp_path):
    structure = structure_of([[9999.999, -999.999, -0.0004], [0.0005, 0.0015, -0.9996]])
    io.write_structure(structure, tmp_path / "out.pdb")
    np.testing.assert_allclose(io.read_structure(tmp_path / "out.pdb").positions, structure.positions, atol=5.01e-4)
    lines = atom_lines(tmp_path / "out.pdb")
    assert lines[0][30:54] == "9999.999-999.999   0.000"


def test_fixed_is_like_printf():
    values = np.array([0.0, 1.0, -1.0, 12.3456, -0.5, 999.9994, -99.126, 0.004, -0.006, 1e-9])
    for width, decimals in ((8, 3), (6, 2) , (9, 0)):
        good = values[np.abs(values) < 99.99] if width == 6 else values
        rows = [bytes(row).decode() for row in columns.fixed(good, width, decimals)]
        expected = [f"{value:{width}.{decimals}f}" for value in good]
        negative_zero = [text.replace("-0.000", " 0.000") if float(text) == 0 else text for text in expected]
        assert [float(row) for row in rows] == [float(text) for text in negative_zero]
        assert all(len(row) == width for row in rows)
    with pytest.raises(OverflowError):
        columns.fixed(np.array([0.0, 1e5]), 8, 3)


def test_float32_coordinates_survive_mmcif(tmp_path):
    structure = structure_of(np.random.default_rng(1).normal(size=(50, 3)).astype(np.float32) * 50)
    io.write_structure(structure, tmp_path / "out.cif")
    np.testing.assert_allclose(io.read_structure(tmp_path / "out.cif").positions, structure.positions, atol=5.01e-7)


# ---- topologies with coordinates


def test_psf_with_pdb_and_prmtop_with_inpcrd(tmp_path):
    structure = io.read_structure(MDA / "adk_closed.pdb", MDA / "adk.psf")
    assert structure.net_charge == pytest.approx(float(universe(MDA / "adk.psf").atoms.charges.sum()), abs=1e-4)
    assert structure.net_charge == pytest.approx(-4, abs=1e-3)
    assert set(structure.segment_ids) == {"4AKE"}
    assert len(structure.topology.bonds) == len(universe(MDA / "adk.psf").bonds)
    np.testing.assert_array_equal(structure.positions, io.read_structure(MDA / "adk_closed.pdb").positions)
    dhfr = io.read_structure(TOOLS / "dhfr" / "JAC.inpcrd", TOOLS / "dhfr" / "JAC.prmtop")
    assert (len(dhfr), round(dhfr.net_charge, 3)) == (23558, -11)
    assert dhfr.cell is not None
    # the same files under names that tell nothing
    shutil.copy(TOOLS / "dhfr" / "JAC.prmtop", tmp_path / "prmtop")
    shutil.copy(TOOLS / "dhfr" / "JAC.inpcrd", tmp_path / "inpcrd")
    again = io.read_structure(tmp_path / "inpcrd", tmp_path / "prmtop")
    assert_same(dhfr, again)
    np.testing.assert_array_equal(dhfr.charges, again.charges)


def test_frames_and_tpr(tpr):
    gro = io.merge(io.read_structure(MDA / "adk_oplsaa.gro"), tpr)
    xtc = io.read_structure(MDA / "adk_oplsaa.xtc", MDA / "adk_oplsaa.gro")
    assert len(tpr) == len(gro) == len(xtc) == 47681
    np.testing.assert_array_equal(tpr.charges, gro.charges)
    np.testing.assert_allclose(xtc.positions, universe(MDA / "adk_oplsaa.xtc").trajectory[0].positions, atol=1e-4)
    nanopore = io.read_structure(MDA / "SiN_tric_namd.dcd", MDA / "SiN_tric_namd.psf")
    assert len(nanopore) == 5545
    assert set(nanopore.elements) == {"Si", "N", "O", "H", "K", "Cl"}  # a PSF states none
    assert nanopore.cell is not None
    assert not nanopore.cell.orthogonal
    with_pdb = io.read_structure(MDA / "adk_oplsaa.xtc", MDA / "adk_oplsaa.pdb")
    assert with_pdb.charges is None


@pytest.mark.parametrize(
    ("coordinates", "topology", "message"),
    [
        ("1hvr.pdb", "adk.psf", r"1hvr.pdb has 1890 atoms, but .*adk.psf has 3341"),
        ("adk_closed_shifted.pdb", "adk.psf", r"do not list the same atoms: atom 1 is .* \(\d+ atoms are of another"),
        ("adk_closed_renamed.pdb", "adk.psf", r"do not list the same atoms: atom \d+ is .* names differ"),
        ("SiN_tric_namd.dcd", "adk.psf", "5545 atoms and the structure 3341"),
        ("adk.psf", None, "a topology has no coordinates; give the coordinate file, and this one as topology"),
        ("adk.psf", "adk_closed.pdb", "a topology has no coordinates"),
        ("SiN_tric_namd.dcd", None, "coordinates only.*as topology"),
        ("Amber/ace_tip3p.nc", None, "coordinates only.*as topology"),
        ("Amber/ache.prmtop", None, "a topology has no coordinates"),
        ("adk_closed.pdb", "SiN_tric_namd.dcd", "is no topology"),
    ],
)
def test_files_that_do_not_fit(tmp_path, coordinates, topology, message):
    path = MDA / coordinates
    atoms = [line + "\n" for line in atom_lines(MDA / "adk_closed.pdb")]
    if coordinates == "adk_closed_shifted.pdb":
        path = tmp_path / coordinates
        path.write_text("".join(atoms[1:] + atoms[:1]))
    elif coordinates == "adk_closed_renamed.pdb":  # heavy atoms under other names of the same elements
        path = tmp_path / coordinates
        path.write_text("".join(line[:13] + "9" + line[14:] if line[12] in "CON" else line for line in atoms))
    with pytest.raises(InputError, match=message) as caught:
        io.read_structure(path, topology and MDA / topology)
    assert "\n" not in str(caught.value)


def test_harmless_names_are_accepted():
    atoms = {"residue_ids": [1] * 7, "residue_index": [0, 0, 0, 0, 1, 1, 1]}
    pdb = structure_of(np.random.default_rng(0).random((7, 3)), **atoms, sources=("a.pdb",), chain_ids=["A"] * 7,
                       atom_names=["N", "1HB", "HB2", "C1", "OW", "HW1", "HW2"],
                       residue_names=["HIS"] * 4 + ["SOL"] * 3)
    psf = structure_of(np.zeros((7, 3)), **atoms, sources=("a.psf",), segment_ids=["P"] * 7, charges=np.arange(7.0),
                       atom_names=["N", "HB1", "HB3", "C1", "OH2", "H1", "H2"],
                       residue_names=["HSD"] * 4 + ["TIP3"] * 3)  # fmt: skip
    both = io.merge(pdb, psf)
    assert both.atom_names.tolist() == psf.atom_names.tolist()
    assert both.charges.tolist() == psf.charges.tolist()
    assert (set(both.chain_ids), set(both.segment_ids)) == ({"A"}, {"P"})
    np.testing.assert_array_equal(both.positions, pdb.positions)
    assert both.sources == ("a.pdb", "a.psf")
    with pytest.raises(InputError, match="atom 5 is SOL1:OW in the first and TIP31:H1 in the second"):
        io.merge(pdb, replace(psf, atom_names=np.array(["N", "HB1", "HB3", "C1", "H1", "OH2", "H2"])))


RECOGNISED = [
    ("adk_closed.pdb", "pdb"), ("1hvr.pdb", "pdb"), ("5digitResid.pdb", "pdb"), ("adk_open.pqr", "pqr"),
    ("1A2C.pqr", "pqr"), ("mmcif/1YJP.cif", "mmcif"), ("4x8u.pdbx", "mmcif"), ("adk_oplsaa.gro", "gro"),
    ("two_water_gro.gro", "gro"), ("adk.psf", "psf"), ("SiN_tric_namd.psf", "psf"), ("Amber/ache.prmtop", "prmtop"),
    ("Amber/posfor.top", "prmtop"), ("Amber/test.inpcrd", "amber-coordinates"), ("adk_oplsaa.tpr", "mdanalysis"),
    ("Amber/parmed_ala2_solv.rst7", "amber-coordinates"), ("Amber/ace_tip3p.nc", "amber-coordinates"),
    ("adk_oplsaa.xtc", "frames"), ("adk_oplsaa.trr", "frames"), ("SiN_tric_namd.dcd", "frames"),
    ("gromacs_ala10.top", "gromacs-topology"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), RECOGNISED)
def test_formats_are_recognised_by_content(tmp_path, name, kind):
    shutil.copy(MDA / name, tmp_path / "file with blanks")
    assert recognise.kind_of(tmp_path / "file with blanks") == kind
    assert recognise.kind_of(MDA / name) == kind
    (tmp_path / "packed.gz").write_bytes(gzip.compress((MDA / name).read_bytes()[:200_000]))
    assert recognise.kind_of(tmp_path / "packed.gz") == kind


# ---- bad input, and output that fails

GOOD = "ATOM      1  N   ALA A   1       1.000   2.000   3.000  1.00  0.00           N  \n"
GRO = "title\n  2\n    1SOL     OW    1   0.230   0.628   0.113\n    1SOL    HW1    2   0.137   0.626   0.150\n"
PQR = "ATOM 1 N ALA 1 1.0 2.0 3.0 0.1 1.5\n"
BAD = {
    "empty.pdb": (b"", "is empty"),
    "blank.cif": (b"\n \n", "is empty"),
    "remarks.pdb": (b"REMARK nothing\nEND\n", "no ATOM or HETATM records"),
    "text.pdb": (b"hello\n", "no ATOM or HETATM records"),
    "nan.pdb": (GOOD.replace("   1.000", "     nan").encode(), r"atom 1 \(ALA1:N\) has coordinates that are not"),
    "columns.pdb": ((GOOD + GOOD.replace("   2.000", "   2,000")).encode(), "line 2: columns 31-54 are not three"),
    "short.pdb": ((GOOD + GOOD[:45] + "\n").encode(), "line 2: columns 31-54"),
    "cell.pdb": (b"CRYST1   10.000   10.000   10.000  90.00  90.00 300.00 P 1\n" + GOOD.encode(), "line 1: .*cell"),
    "cell2.pdb": (b"CRYST1   10.000   10.000      abc  90.00  90.00  90.00 P 1\n" + GOOD.encode(), "line 1: CRYST1"),
    "end.pdb": ((GOOD * 2 + "END\n" + GOOD).encode(), "line 3 is END, but 1 more atoms follow"),
    "plain.pdb.gz": (GOOD.encode(), "is not a gzip file"),
    "cut.pdb.gz": (gzip.compress(GOOD.encode() * 50)[:60], "gzip file is damaged or cut short"),
    "cut.pdb.bz2": (bz2.compress(GOOD.encode() * 50)[:60], "bzip2 file is damaged or cut short"),
    "nothing.cif": (b"data_x\n_cell.length_a 10\n", "no _atom_site loop"),
    "broken.cif": (b"data_x\nloop_\n_atom_site.id\n_atom_site.Cartn_x\n1 2 3\n", "not a valid mmCIF file"),
    "text.cif": (b"hello\n", "not a valid mmCIF file"),
    "number.cif": (small_cif({**SMALL, "Cartn_y": ["1", "one"]}).encode(), "row 2 of _atom_site: Cartn_y is 'one'"),
    "null.cif": (small_cif({**SMALL, "Cartn_y": ["1", "?"]}).encode(), r"atom 2 .* not numbers"),
    "seq.cif": (small_cif({**SMALL, "auth_seq_id": ["1", "x"]}).encode(), "residue number 'x'"),
    "count.gro": (b"title\nmany\n", "line 2 must be the number of atoms"),
    "cut.gro": (GRO.encode(), "states 2 atoms but has 4 lines; it is cut short"),
    "zero.gro": (b"title\n0\n 1 1 1\n", "has no atoms"),
    "box.gro": (GRO.encode() + b" a b c\n", "line 5 must be the box"),
    "flat.gro": (GRO.encode() + b" 1.0 1.0 0.0\n", "line 5: the lengths of the box must be positive"),
    "value.gro": (GRO.replace("0.626", "0,626").encode() + b" 1.0 1.0 1.0\n", "line 4 has no three coordinates"),
    "nan.gro": (GRO.replace("0.626", "  nan").encode() + b" 1.0 1.0 1.0\n", r"atom 2 .* not numbers"),
    "short.pqr": (b"ATOM 1 N ALA 1 1.0 2.0 3.0 0.1\n", "line 1 is not 'ATOM serial name"),
    "value.pqr": ((PQR + PQR.replace("0.1", "abc")).encode(), "line 2 is not 'ATOM serial name"),
    "nan.pqr": (PQR.replace("0.1", "nan").encode(), "has a charge that is not a number"),
    "none.pqr": (b"REMARK\n", "no ATOM or HETATM lines"),
    "unknown": (b"hello\n", "its format is not recognised"),
    "unknown.xyzzy": (b"\x00\x01\x02", "its format is not recognised"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_files_give_one_line(tmp_path, name):
    content, message = BAD[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        io.read_structure(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_missing_files_and_folders(tmp_path):
    for name in ("no.pdb", "no", "no.cif.gz", "no.psf"):
        with pytest.raises(InputError, match="there is no such file"):
            io.read_structure(tmp_path / name)
    (tmp_path / "folder.pdb").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        io.read_structure(tmp_path / "folder.pdb")
    with pytest.raises(InputError, match="is not a gzip file"):
        io.read_structure(MDA / "cryst_then_model.pdb.gz")  # a tar archive, whatever its name


def test_several_outputs_or_none(tmp_path):
    structure = io.read_structure(MDA / "adk_closed.pdb", MDA / "adk.psf")
    paths = [tmp_path / name for name in ("a b.pdb", "a.cif.gz", "a.psf", "a.pqr")]
    io.write_structures(structure, paths)
    assert_same(structure, io.read_structure(paths[1]))
    again = io.read_structure(paths[0], paths[2])
    np.testing.assert_allclose(again.charges, structure.charges, atol=1e-6)
    with pytest.raises(UsageError, match="exists; use force"):
        io.write_structures(structure, [tmp_path / "new.pdb", paths[1]])
    assert not (tmp_path / "new.pdb").exists()
    io.write_structures(structure, paths, force=True)
    with pytest.raises(OutputError, match="does not exist"):
        io.write_structure(structure, tmp_path / "no" / "a.pdb")
    first = paths[1].read_bytes()
    io.write_structure(structure, paths[1], force=True)
    assert paths[1].read_bytes() == first


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("a.prmtop", UsageError, "prmtop cannot be written.*Lennard-Jones.*\\.psf"),
        ("prmtop", UsageError, "prmtop cannot be written"),
        ("a.parm7", UsageError, "prmtop cannot be written"),
        ("a.xyz", UsageError, r"cannot be written in this format; name it \.pdb"),
        ("a.pdb.bz2", UsageError, "cannot be written in this format"),
        ("a", UsageError, "cannot be written in this format"),
        ("a.pqr", ChargeError, "needs charges"),
        ("a.psf", ChargeError, "needs charges"),
    ],
)
def test_formats_that_are_refused(tmp_path, name, error, message):
    structure = io.read_structure(MDA / "adk_closed.pdb")
    with pytest.raises(error, match=message):
        io.check_formats(structure, [tmp_path / "fine.pdb", tmp_path / name])
    with pytest.raises(VmdpotentialError):
        io.write_structures(structure, [tmp_path / "fine.pdb", tmp_path / name])
    assert not list(tmp_path.iterdir())


def test_psf_needs_bonds(tmp_path):
    structure = io.read_structure(MDA / "adk_open.pqr")
    with pytest.raises(UsageError, match="a PSF needs bonds"):
        io.check_formats(structure, [tmp_path / "a.psf"])


def test_warnings_are_logged_not_printed(capsys, caplog):
    caplog.set_level(logging.WARNING)
    io.read_structure(MDA / "4E43.pdb")
    assert capsys.readouterr().out == ""
    assert caplog.records[0].name.startswith("vmdpotential.io")
