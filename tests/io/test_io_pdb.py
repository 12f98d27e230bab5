"""PDB files on the real files that show each trap: the order of atoms, residues, cells and conformers."""

from __future__ import annotations

import gemmi
import numpy as np
import pytest
from helpers import slow
from structure_files import MDA, OPENMM, TOOLS, atom_lines, universe

from vmdpotential import io
from vmdpotential.molecule import elements

WRAPPED = [
    (MDA / "adk_oplsaa.pdb", 11302),  # GROMACS: residue numbers wrap after 9999
    (TOOLS / "src-explicit" / "1yi6-minimized.pdb", 17680),  # OpenMM: the same, in a chain
    (MDA / "cobrotoxin.pdb", 4693),
    (OPENMM / "POPC.pdb", 5248),
]


@pytest.mark.parametrize(("path", "count"), slow(WRAPPED, WRAPPED[1::2]),
                         ids=lambda value: getattr(value, "name", value))
def test_atoms_stay_in_order_and_residues_intact(path, count):
    structure, lines = io.read_structure(path), atom_lines(path)
    assert structure.atom_names.tolist() == [line[12:16].strip() for line in lines]
    expected = np.array([[float(line[30 + 8 * k : 38 + 8 * k]) for k in range(3)] for line in lines])
    np.testing.assert_array_equal(structure.positions, expected)
    assert structure.residue_count == count == len(universe(path).residues)


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


def test_chains_with_names_of_two_letters(tmp_path):
    lines = []
    for line in atom_lines(MDA / "1osm.pdb.gz"):
        lines.append(f"{line[:20]}A{'a' if line[21] == 'A' else 'b'}{line[22:]}")
    (tmp_path / "two.pdb").write_text("\n".join(lines))
    original, renamed = io.read_structure(MDA / "1osm.pdb.gz"), io.read_structure(tmp_path / "two.pdb")
    assert set(renamed.chain_ids.tolist()) <= {"Aa", "Ab"}
    assert renamed.residue_names.tolist() == original.residue_names.tolist()
    # names of four letters stay, also where several variants end in one letter
    names = ["HISA", "LYSA", "ASPA", "GLUA"]
    (tmp_path / "few.pdb").write_text("\n".join(
        f"ATOM  {n:5d}  CA  {name}A{n:4d}    {9.0 * n:8.3f}{0:8.3f}{0:8.3f}" for n, name in enumerate(names, 1)))
    assert io.read_structure(tmp_path / "few.pdb").residue_names.tolist() == names


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
    rows = zip(structure.chain_ids, structure.residue_names, structure.atom_names, *structure.positions.T, strict=True)
    assert sorted(expected) == sorted((str(c), str(r), str(a), *np.round(xyz, 3)) for c, r, a, *xyz in rows)
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
