"""PSF, prmtop, Amber coordinates, and what MDAnalysis reads, against MDAnalysis, ParmEd and OpenMM."""

from __future__ import annotations

import builtins
import bz2
import gc
import gzip
import os
import runpy
import shutil
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import MDAnalysis
import MDAnalysisTests
import numpy as np
import openmmtools
import parmed
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from vmdpotential import io
from vmdpotential.errors import BackendError, InputError
from vmdpotential.io import mdanalysis, prmtop, psf
from vmdpotential.io.gro import read_gro
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.charges import charges_and_report
from vmdpotential.molecule.structure import Structure, Topology

FILES = Path(MDAnalysisTests.__file__).parent / "data"
AMBER = FILES / "Amber"
TOOLS = Path(openmmtools.__file__).parent / "data"
ROOT = Path(__file__).parent.parent

# file: words of line 1, atoms, bonds, angles, dihedrals, impropers, donors, acceptors, cross-terms (of its headers)
PSF = {
    "watdyn.psf": ("", 15, 15, 5, 0, 0, 0, 0, 0),
    "nosegid.psf": ("", 98, 97, 0, 0, 0, 0, 0, 0),
    "trz_psf.psf": ("", 8184, 8160, 0, 0, 0, 0, 0, 0),
    "namd_cgenff.psf": ("", 130, 132, 232, 333, 11, 0, 0, 0),
    "SiN_tric_namd.psf": ("", 5545, 5274, 7833, 0, 0, 0, 0, 0),
    "adk_closed_NAMD.psf": ("CMAP", 3341, 3365, 6123, 8921, 541, 0, 0, 212),
    "2r9r-1b.psf": ("CMAP", 1284, 1308, 1876, 2456, 328, 0, 0, 144),
    "parmed_ala3.psf": ("CMAP CHEQ", 33, 32, 57, 74, 5, 5, 4, 1),
    "adk.psf": ("CMAP CHEQ", 3341, 3365, 6123, 8921, 541, 376, 323, 0),
    "adk_notop.psf": ("CMAP CHEQ", 3341, 0, 0, 0, 0, 0, 0, 0),
    "tip125_tric_C36.psf": ("CMAP CHEQ", 375, 375, 125, 0, 0, 0, 0, 0),
    "1a2c_ins_code.psf": ("EXT CMAP XPLOR", 571, 574, 1034, 1509, 91, 66, 62, 35),
    "analysis/1k5i_c36.psf.gz": ("EXT CMAP CHEQ XPLOR", 17927, 17961, 7141, 2115, 63, 11520, 5915, 0),
}
PRMTOP = [
    AMBER / "ace_mbondi3.parm7",
    AMBER / "ache_chainid.prmtop.bz2",
    AMBER / "ala.ff19SB.OPC.parm7.bz2",  # 4-site water, CMAP, truncated octahedron
    AMBER / "anti.top",
    AMBER / "bala.prmtop",
    AMBER / "parmed_fad.prmtop",  # Chamber
    TOOLS / "cb7-b2" / "complex-explicit.prmtop",
    TOOLS / "dhfr" / "JAC.prmtop",
]


def universe(path: Path) -> MDAnalysis.Universe:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MDAnalysis.Universe(str(path))


def charmm(path: Path) -> parmed.charmm.CharmmPsfFile:
    return parmed.charmm.CharmmPsfFile(str(path))


def amber(path: Path) -> parmed.amber.AmberParm:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return parmed.load_file(str(path))


def atoms_of(terms: list, size: int, keep: object = None) -> np.ndarray:
    """Return the atoms of ParmEd's terms, each read in the direction that begins with the lower atom, sorted."""
    rows = [[getattr(term, f"atom{i + 1}").idx for i in range(size)] for term in terms if keep is None or keep(term)]
    return ordered(np.array(rows, int).reshape(-1, size))


def ordered(rows: np.ndarray) -> np.ndarray:
    rows = np.where((rows[:, :1] > rows[:, -1:]), rows[:, ::-1], rows)
    return rows[np.lexsort(rows.T)]


def same_terms(topology: Topology, other: Topology) -> None:
    for name in Topology.TERMS:
        assert_array_equal(getattr(topology, name), getattr(other, name), err_msg=name)


@pytest.fixture(scope="module")
def jac() -> Structure:
    return prmtop.read_prmtop(TOOLS / "dhfr" / "JAC.prmtop")


# ---- PSF: reading


@pytest.mark.parametrize("name", PSF)
def test_psf_agrees_with_mdanalysis(name: str) -> None:
    flags, *counts = PSF[name]
    structure = psf.read_psf(FILES / name)
    topology = structure.topology
    assert topology is not None
    assert topology.source == "psf"
    assert " ".join(topology.flags) == flags
    assert [len(structure), *(len(getattr(topology, term)) for term in Topology.TERMS)] == counts
    other = universe(FILES / name)
    assert_allclose(structure.charges, other.atoms.charges, rtol=1e-6, atol=1e-8)  # MDAnalysis: float32
    if "EXT" not in flags:  # it reads these masses from the wrong columns
        assert_allclose(topology.masses, other.atoms.masses)
    assert_array_equal(structure.atom_names, other.atoms.names)
    assert_array_equal(structure.residue_names, other.atoms.resnames)
    assert_array_equal(structure.residue_ids, other.atoms.resids)
    assert_array_equal(structure.segment_ids, np.where(other.atoms.segids == "SYSTEM", "", other.atoms.segids))
    if name != "namd_cgenff.psf":  # it cuts types of five letters
        assert_array_equal(topology.types, other.atoms.types.astype(str))
    for term in ("bonds", "angles", "dihedrals", "impropers"):
        mine = getattr(topology, term)
        theirs = np.array(getattr(other, term).indices).reshape(-1, mine.shape[1])
        # it keeps each term once
        assert_array_equal(np.unique(ordered(mine), axis=0), np.unique(ordered(theirs), axis=0), err_msg=term)


def test_psf_masses_of_extended_file() -> None:
    structure = psf.read_psf(FILES / "1a2c_ins_code.psf")
    other = charmm(FILES / "1a2c_ins_code.psf")
    assert_allclose(structure.topology.masses, [atom.mass for atom in other.atoms])
    assert structure.insertion_codes[0] == "H"
    assert structure.residue_ids[0] == 1


def test_psf_without_segments_does_not_shift() -> None:
    structure = psf.read_psf(FILES / "nosegid.psf")
    # words counted from the left would give masses (14.01, 1.008 ...) as charges
    assert_allclose(structure.charges[:4], [-0.4157, 0.2719, -0.0252, 0.0698])
    assert set(structure.segment_ids) == {""}
    assert structure.net_charge == pytest.approx(1, abs=1e-6)


def test_psf_residues_of_waters() -> None:
    structure = psf.read_psf(FILES / "SiN_tric_namd.psf")
    water = structure.residue_names == "TIP3"
    sizes = np.diff(structure.residue_starts)
    assert_array_equal(sizes[structure.residue_names[structure.residue_starts[:-1]] == "TIP3"], 3)
    ions = np.isin(structure.residue_names, ("POT", "CLA"))
    assert ions.sum() == 100
    assert structure.residue_count == water.sum() // 3 + 100 + len(
        np.unique(structure.residue_ids[~water & ~ions])
    )


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress], ids=["gz", "bz2"])
def test_psf_compressed(tmp_path: Path, pack: object) -> None:
    path = tmp_path / ("a.psf.gz" if pack is gzip.compress else "a.psf.bz2")
    path.write_bytes(pack((FILES / "watdyn.psf").read_bytes()))
    same_terms(psf.read_psf(path).topology, psf.read_psf(FILES / "watdyn.psf").topology)


def test_psf_with_crlf(tmp_path: Path) -> None:
    path = tmp_path / "dos.psf"
    path.write_bytes((FILES / "adk_closed_NAMD.psf").read_bytes().replace(b"\n", b"\r\n"))
    same_terms(psf.read_psf(path).topology, psf.read_psf(FILES / "adk_closed_NAMD.psf").topology)


def test_psf_separated_by_blanks(tmp_path: Path) -> None:
    path = tmp_path / "namd.psf"
    path.write_text(
        "PSF NAMD\n\n1 !NTITLE\nREMARKS 12 !NATOM is not meant here!\n\n2 !NATOM\n"
        "1 LONGSEGMENT 1000000A RESIDUE NAMEOFATOM LONGTYPE_1 -0.25 12.011 0\n2 S 2 R B T 0.25 1.008 0\n\n"
        "1 !NBOND\n1 2\n"
    )
    structure = psf.read_psf(path)
    assert structure.atom_names.tolist() == ["NAMEOFATOM", "B"]
    assert structure.residue_ids.tolist() == [1000000, 2]
    assert structure.insertion_codes.tolist() == ["A", ""]
    assert structure.charges.tolist() == [-0.25, 0.25]
    assert structure.topology.types.tolist() == ["LONGTYPE_1", "T"]
    out = tmp_path / "out.psf"
    psf.write_psf(structure, out)
    again = psf.read_psf(out)
    assert again.topology.flags == ("NAMD",)
    assert again.segment_ids.tolist() == ["LONGSEGMENT", "S"]
    assert_array_equal(again.topology.types, structure.topology.types)


# ---- PSF: broken files


def broken_psf(change: tuple[str, str]) -> str:
    text = (FILES / "parmed_ala3.psf").read_text()
    assert change[0] in text
    return text.replace(change[0], change[1], 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("PSF CMAP", "PDB CMAP"), "is not a PSF"),
        (("!NATOM", "!NOTHING"), "has no atom list"),
        (("      33 !NATOM", "      34 !NATOM"), "line 7 promises 34 atoms and 33 lines follow"),
        (("      33 !NATOM", "      32 !NATOM"), "line 7 promises 32 atoms and 33 lines follow"),
        (("  -0.300000  ", "  -0.3x0000  "), "line 8: charge '-0.3x0000' is not a number"),
        (("  -0.300000       14.0070", "  -0.300000  14.0 14.0070"), "line 8: the columns of this atom fit no kind"),
        (("  -0.300000  ", "        NaN  "), r"atom 1 \(ALA1:N\) has a charge that is not a number"),
        (("32 !NBOND", "33 !NBOND"), "!NBOND .line 42. holds 64 numbers instead of 66"),
        (("32 !NBOND", "31 !NBOND"), "!NBOND .line 42. holds 64 numbers instead of 62"),
        (("!NTHETA", "!NBOND"), "section !NBOND stands twice"),
        (("       1 !NCRTERM", "       2 !NCRTERM"), "!NCRTERM .* holds 8 numbers instead of 16"),
        (("!NPHI: dihedrals", "!NWHAT"), ""),
    ],
)
def test_psf_broken(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    path = tmp_path / "my file.psf"
    path.write_text(broken_psf(change))
    if not message:  # a section that nobody knows: read, but never written without it
        structure = psf.read_psf(path)
        with pytest.raises(InputError, match="!NWHAT is not understood"):
            psf.write_psf(structure, tmp_path / "out.psf")
        return
    with pytest.raises(InputError, match=message) as caught:
        psf.read_psf(path)
    assert "my file.psf" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("old", "new"), [(33, 34), (1, 0), (33, -2)])
def test_psf_index_out_of_range(tmp_path: Path, old: int, new: int) -> None:
    head, mark, bonds = (FILES / "parmed_ala3.psf").read_text().partition("!NBOND: bonds\n")
    bonds = bonds.replace(f"{old:8d}", f"{new:8d}", 1)
    path = tmp_path / "bad.psf"
    path.write_text(head + mark + bonds)
    with pytest.raises(InputError, match=rf"!NBOND .* names atom {new}, and there are 33 atoms"):
        psf.read_psf(path)


def test_psf_truncated() -> None:
    with pytest.raises(InputError, match="line 7 promises 3341 atoms and 3327 lines follow"):
        psf.read_psf(FILES / "adk_notop_BAD.psf")


def test_psf_cut_anywhere_is_an_error_or_complete(tmp_path: Path) -> None:
    data = (FILES / "parmed_ala3.psf").read_bytes()
    whole = psf.read_psf(FILES / "parmed_ala3.psf")
    path = tmp_path / "cut.psf"
    for stop in range(0, len(data), 97):
        path.write_bytes(data[:stop])
        try:
            found = psf.read_psf(path)
        except InputError:
            continue
        # cut between sections, or inside a number of the last one it has
        assert len(found) == len(whole)


# ---- PSF: writing


@pytest.mark.slow
@pytest.mark.parametrize("name", PSF)
def test_psf_round_trip(tmp_path: Path, name: str) -> None:
    structure = psf.read_psf(FILES / name)
    topology = structure.topology
    path = tmp_path / "out.psf"
    psf.write_psf(structure, path)
    again = psf.read_psf(path)
    for field in ("charges", "atom_names", "residue_names", "residue_ids", "residue_index", "insertion_codes"):
        assert_array_equal(getattr(again, field), getattr(structure, field), err_msg=field)
    if name != "nosegid.psf":
        assert_array_equal(again.segment_ids, structure.segment_ids)
    same_terms(again.topology, topology)
    assert_array_equal(again.topology.masses, topology.masses)
    assert_array_equal(again.topology.types, topology.types)
    assert again.topology.title == topology.title
    assert set(topology.flags) <= set(again.topology.flags)
    for key, value in topology.extra.items():
        if isinstance(value, np.ndarray):  # further columns, groups, molecules
            assert_array_equal(again.topology.extra[key], value, err_msg=key)

    other = universe(path)
    assert_allclose(other.atoms.charges, structure.charges, rtol=1e-6, atol=1e-8)
    assert len(other.bonds) == len(universe(FILES / name).bonds)
    theirs = charmm(path)
    assert_array_equal([atom.charge for atom in theirs.atoms], structure.charges)
    assert_array_equal([str(atom.type) for atom in theirs.atoms], topology.types)
    for term, size in (("bonds", 2), ("angles", 3), ("dihedrals", 4), ("impropers", 4)):
        assert_array_equal(atoms_of(getattr(theirs, term), size), ordered(getattr(topology, term)), err_msg=term)
    assert len(theirs.cmaps) == len(topology.cross_terms)
    assert len(theirs.donors) == len(topology.donors)
    assert len(theirs.acceptors) == len(topology.acceptors)


@pytest.mark.slow
@pytest.mark.parametrize("path", PRMTOP, ids=lambda path: path.name)
def test_psf_from_prmtop(tmp_path: Path, path: Path) -> None:
    structure = prmtop.read_prmtop(path)
    out = tmp_path / "out.psf"
    psf.write_psf(structure, out)
    again = psf.read_psf(out)
    assert again.net_charge == pytest.approx(structure.net_charge, abs=1e-9)
    assert_allclose(again.charges, structure.charges, atol=1e-9)
    theirs = charmm(out)
    assert_array_equal(atoms_of(theirs.bonds, 2), ordered(structure.topology.bonds))
    assert sum(atom.charge for atom in theirs.atoms) == pytest.approx(structure.net_charge, abs=1e-9)
    # float32 in MDAnalysis: half a unit of its last place for each atom
    other = universe(out)
    assert other.atoms.charges.sum(dtype=float) == pytest.approx(structure.net_charge, abs=3e-8 * len(structure) ** 0.7)
    # a term that Amber lists once for each period stands once
    dihedrals = {tuple(row) for row in ordered(structure.topology.dihedrals).tolist()}
    assert {tuple(row) for row in ordered(again.topology.dihedrals).tolist()} == dihedrals
    assert len(again.topology.dihedrals) == len(dihedrals)


def test_psf_columns_that_programs_count_on(tmp_path: Path, jac: Structure) -> None:
    # VMD, CHARMM and X-PLOR read columns, NAMD words: both must find the same
    water = np.flatnonzero(jac.residue_names == "WAT")[:6]
    small = jac.take(np.concatenate([np.arange(4), water]))
    long = replace(small, residue_names=np.where(small.residue_names == "WAT", "WATER", small.residue_names))
    for structure, starts in ((small, (9, 14, 19, 24, 29, 34, 48)), (long, (11, 20, 29, 38, 47, 54, 68))):
        psf.write_psf(structure, tmp_path / "out.psf")
        lines = (tmp_path / "out.psf").read_text().split("\n")
        assert ("EXT" in lines[0].split()) == (structure is long)
        first = next(i for i, line in enumerate(lines) if "!NATOM" in line) + 1
        for i, line in enumerate(lines[first : first + len(structure)]):
            fields = [line[a:b].strip() for a, b in zip(starts, (*starts[1:], starts[-1] + 14), strict=True)]
            assert fields == line.split()[1:8]
            assert all(line[start - 1] == " " for start in starts)
            assert fields[2] == structure.residue_names[i]
            assert float(fields[5]) == pytest.approx(structure.charges[i], abs=1e-9)


def test_psf_charges_keep_their_sum(tmp_path: Path) -> None:
    # thirds do not end; a hundred thousand equal roundings would add up to 3e-6 at 10 decimals
    count = 99_999
    charges = np.full(count, 1 / 3)
    charges[::3] = -2 / 3
    charges[0] += 5
    base = Structure(
        positions=np.zeros((count, 3)), atom_names=np.full(count, "A"), residue_names=np.full(count, "RES"),
        residue_ids=np.arange(count) % 9999 + 1, residue_index=np.arange(count), charges=charges,
        topology=Topology("tpr", np.full(count, "T"), np.ones(count), np.array([[0, 1]])),
    )  # fmt: skip
    psf.write_psf(base, tmp_path / "a.psf")
    found = psf.read_psf(tmp_path / "a.psf")
    assert "EXT" not in found.topology.flags
    assert found.net_charge == pytest.approx(5, abs=1e-9)
    assert_allclose(found.charges, charges, atol=2e-10)


@pytest.mark.slow
def test_psf_of_more_than_99999_atoms(tmp_path: Path) -> None:
    water = psf.read_psf(FILES / "watdyn.psf")
    copies = 6700
    count = copies * len(water)
    shift = np.arange(copies)[:, None, None] * len(water)
    topology = replace(
        water.topology, types=np.tile(water.topology.types, copies), masses=np.tile(water.topology.masses, copies),
        bonds=(water.topology.bonds + shift).reshape(-1, 2), angles=(water.topology.angles + shift).reshape(-1, 3),
        extra={},
    )  # fmt: skip
    names = {name: np.tile(getattr(water, name), copies) for name in ("atom_names", "residue_names", "charges")}
    large = Structure(
        positions=np.zeros((count, 3)), residue_ids=np.arange(count) // 3 + 1, residue_index=np.arange(count) // 3,
        segment_ids=np.full(count, "WAT"), topology=topology, **names,
    )  # fmt: skip
    path = tmp_path / "large.psf.gz"
    psf.write_psf(large, path)
    again = psf.read_psf(path)
    assert again.topology.flags == ("EXT", "XPLOR")
    assert again.residue_ids[-1] == count // 3  # five and more digits
    assert_array_equal(again.residue_index, large.residue_index)
    same_terms(again.topology, topology)
    assert again.charges.sum() == pytest.approx(0, abs=1e-9)


def test_psf_appended_atoms(tmp_path: Path) -> None:
    # what has no row in `extra` gets one on writing: CHEQ columns, groups, molecules
    structure = psf.read_psf(FILES / "tip125_tric_C36.psf").take(np.arange(30))
    both = {
        name: np.concatenate([getattr(structure, name), [value]])
        for name, value in (("atom_names", "SOD"), ("residue_names", "SOD"), ("segment_ids", "ION"), ("charges", 1.0),
                            ("residue_ids", 1), ("residue_index", 10), ("chain_ids", ""), ("elements", "Na"),
                            ("insertion_codes", ""), ("hetero", True), ("occupancies", 1), ("b_factors", 0))
    }  # fmt: skip
    topology = replace(
        structure.topology, types=np.append(structure.topology.types, "90"),
        masses=np.append(structure.topology.masses, 22.99),
    )
    ionized = replace(structure, positions=np.zeros((31, 3)), topology=topology, **both)
    psf.write_psf(ionized, tmp_path / "a.psf")
    again = psf.read_psf(tmp_path / "a.psf")
    extra = again.topology.extra
    assert extra["columns"][-1].tolist() == ["0.00000", "-0.301140E-02"]
    assert extra["group"].tolist() == [*np.repeat(np.arange(10), 3), 10]
    assert extra["group_type"][-1] == 2
    assert len(extra["molecule"]) == 31
    assert charmm(tmp_path / "a.psf").atoms[-1].charge == 1


def test_psf_lone_pairs_and_exclusions(tmp_path: Path) -> None:
    # a 4-site water with its lone pair, explicit exclusions, groups of their own; written by hand
    sites = [("OH2", "OT", 0, 15.9994), ("OM", "LPDW", -1.1, 0), ("H1", "HT", 0.55, 1.008), ("H2", "HT", 0.55, 1.008)]
    atoms = "\n".join(
        f"{i + 1:10d} {'WAT':<8s} {i // 4 + 1:<8d} {'SWM4':<8s} {name:<8s} {kind:<6s} {charge:10.6f}    {mass:10.4f}"
        f"  {0:10d}"
        for i, (name, kind, charge, mass) in enumerate(sites * 2)
    )
    path = tmp_path / "swm4.psf"
    path.write_text(
        f"PSF EXT XPLOR\n\n         1 !NTITLE\n* lone pairs\n\n         8 !NATOM\n{atoms}\n\n         4 !NBOND: bonds\n"
        "         1         3         1         4         5         7         5         8\n\n"
        "         3 !NNB\n         3         4         8\n         2         2         2         2         3         3"
        "         3         3\n\n         2         0 !NGRP NST2\n         0         1         0         4         2"
        "         0\n\n         2         8 !NUMLP NUMLPH\n"
        "         3         1   F   -0.240345       0.00000       0.00000    \n"
        "         3         5   F   -0.250000       0.00000       0.00000    \n"
        "         2         1         3         4         6         5         7         8\n"
    )
    structure = psf.read_psf(path)
    extra = structure.topology.extra
    assert extra["terms"]["exclusions"].tolist() == [[0, 2], [0, 3], [4, 7]]
    assert extra["terms"]["lone_pairs"].tolist() == [[1, 0, 2, 3], [5, 4, 6, 7]]
    out = tmp_path / "out.psf"
    psf.write_psf(structure, out)
    again = psf.read_psf(out).topology.extra
    assert again["terms"]["lone_pairs"].tolist() == extra["terms"]["lone_pairs"].tolist()
    assert again["terms"]["exclusions"].tolist() == extra["terms"]["exclusions"].tolist()
    assert again["term_values"]["lone_pairs"].tolist() == extra["term_values"]["lone_pairs"].tolist()
    assert len(charmm(out).atoms) == 8

    second = structure.take(np.arange(4, 8))
    psf.write_psf(second, out)
    again = psf.read_psf(out).topology.extra
    assert again["terms"]["lone_pairs"].tolist() == [[1, 0, 2, 3]]
    assert again["term_values"]["lone_pairs"].tolist() == [["F", "-0.250000", "0.00000", "0.00000"]]
    assert again["terms"]["exclusions"].tolist() == [[0, 3]]
    assert again["group_type"].tolist() == [2, 2, 2, 2]


def test_psf_same_bytes_each_time(tmp_path: Path) -> None:
    structure = psf.read_psf(FILES / "watdyn.psf")
    for name in ("a.psf.gz", "b.psf.gz"):
        psf.write_psf(structure, tmp_path / name)
    assert (tmp_path / "a.psf.gz").read_bytes() == (tmp_path / "b.psf.gz").read_bytes()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("atom_names", "LONGERNAME", "atom name 'LONGERNAME' does not fit a PSF"),
        ("residue_names", "TI P3", "residue name 'TI P3' does not fit a PSF"),
        ("atom_names", "", "atom name '' does not fit a PSF"),
    ],
)
def test_psf_names_that_do_not_fit(tmp_path: Path, field: str, value: str, message: str) -> None:
    structure = psf.read_psf(FILES / "watdyn.psf")
    names = getattr(structure, field).astype("U20")
    names[3] = value
    with pytest.raises(InputError, match=message):
        psf.write_psf(replace(structure, **{field: names}), tmp_path / "a.psf")
    assert not list(tmp_path.iterdir())


def test_psf_needs_a_topology(tmp_path: Path) -> None:
    structure = replace(psf.read_psf(FILES / "watdyn.psf"), topology=None)
    with pytest.raises(InputError, match="has no bonds, so no PSF can be written"):
        psf.write_psf(structure, tmp_path / "a.psf")


# ---- taking atoms out


@pytest.mark.parametrize(
    ("name", "residue", "every"),
    [("SiN_tric_namd.psf", "TIP3", 3), ("parmed_ala3.psf", "ALA", 3), ("adk_closed_NAMD.psf", "GLY", 2)],
)
def test_take_agrees_with_parmed(tmp_path: Path, name: str, residue: str, every: int) -> None:
    structure = psf.read_psf(FILES / name)
    drop = (structure.residue_names == residue) & (structure.residue_index % every == every - 1)
    assert drop.any()
    taken = structure.take(~drop)
    theirs = charmm(FILES / name)
    theirs.strip(drop.astype(int).tolist())
    topology = taken.topology
    assert_array_equal([atom.charge for atom in theirs.atoms], taken.charges)
    assert_array_equal([atom.name for atom in theirs.atoms], taken.atom_names)
    assert_array_equal([atom.residue.idx for atom in theirs.atoms], taken.residue_index)
    for term, size in (("bonds", 2), ("angles", 3), ("dihedrals", 4), ("impropers", 4)):
        assert_array_equal(atoms_of(getattr(theirs, term), size), ordered(getattr(topology, term)), err_msg=term)
    five = atoms_of(theirs.cmaps, 5)
    assert_array_equal(five, ordered(topology.cross_terms[:, [0, 1, 2, 3, 7]]))
    # and it can be written and read by others
    psf.write_psf(taken, tmp_path / "out.psf")
    assert len(charmm(tmp_path / "out.psf").bonds) == len(topology.bonds)


def test_take_keeps_what_stands_for_none() -> None:
    topology = psf.read_psf(FILES / "parmed_ala3.psf").topology
    assert (topology.acceptors[:, 1] >= -1).all()
    everything = topology.take(np.arange(len(topology.types)))
    same_terms(everything, topology)
    some = Topology(
        "psf", np.array(["A", "B", "C"]), np.ones(3), np.array([[0, 1]]), donors=np.array([[0, -1], [1, 0], [2, -1]])
    ).take(np.array([0, 2]))
    assert some.donors.tolist() == [[0, -1], [1, -1]]
    assert len(some.bonds) == 0


# ---- prmtop


@pytest.mark.slow
@pytest.mark.parametrize("path", PRMTOP, ids=lambda path: path.name)
def test_prmtop_agrees_with_parmed(path: Path) -> None:
    structure = prmtop.read_prmtop(path)
    topology = structure.topology
    theirs = amber(path)
    assert topology.source == "prmtop"
    assert_allclose(structure.charges, [atom.charge for atom in theirs.atoms], atol=3.1e-9)
    assert_array_equal(structure.atom_names, [atom.name for atom in theirs.atoms])
    assert_array_equal(structure.residue_names, [atom.residue.name for atom in theirs.atoms])
    assert_array_equal(structure.residue_index, [atom.residue.idx for atom in theirs.atoms])
    assert_array_equal(topology.types, [atom.type for atom in theirs.atoms])
    assert_allclose(topology.masses, [atom.mass for atom in theirs.atoms])
    if path.name != "JAC.prmtop":  # heavy hydrogens: ParmEd takes them for helium
        numbers = [atom.element_name.replace("EP", "") for atom in theirs.atoms]
        assert_array_equal(structure.elements, numbers)
    for term, size in (("bonds", 2), ("angles", 3)):
        assert_array_equal(atoms_of(getattr(theirs, term), size), ordered(getattr(topology, term)), err_msg=term)
    assert_array_equal(atoms_of(theirs.dihedrals, 4, lambda term: not term.improper), ordered(topology.dihedrals))
    impropers = [*(term for term in theirs.dihedrals if term.improper), *theirs.impropers]
    assert_array_equal(atoms_of(impropers, 4), ordered(topology.impropers))
    assert_array_equal(atoms_of(theirs.cmaps, 5), ordered(topology.cross_terms[:, [0, 1, 2, 3, 7]]))
    assert_array_equal(topology.cross_terms[:, 1:4], topology.cross_terms[:, 4:7])
    if theirs.box is None:
        assert structure.cell is None
    else:
        assert_allclose(structure.cell.parameters, theirs.box, rtol=1e-9)


def test_prmtop_of_the_benchmark(jac: Structure) -> None:
    # 4-decimal charges of the force field, so the net charge is a whole number to the last digit
    assert len(jac) == 23558
    assert jac.net_charge == pytest.approx(-11, abs=1e-9)
    assert (jac.residue_names == "WAT").sum() == 3 * 7023
    assert set(jac.elements) == {"H", "C", "N", "O", "S"}


def test_prmtop_names_residues_as_the_pdb_did() -> None:
    structure = prmtop.read_prmtop(AMBER / "ache_chainid.prmtop.bz2")
    assert structure.residue_ids[structure.residue_starts[:15]].tolist() == [*range(1, 15), 1]
    assert set(structure.chain_ids) == {"A", "B", "C"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ace_mbondi3.error1.parm7", "has no section POINTERS"),
        ("ace_mbondi3.error3.parm7", "has no section CHARGE"),
        ("ace_mbondi3.error4.parm7", "line 14: section CHARGE has no %FORMAT line"),
        ("ache_chainid.error5.prmtop.bz2", "section RESIDUE_CHAINID .* holds 37 values instead of 38"),
        ("parmed_ala2_solv.rst7", "is not a prmtop with %FLAG sections"),
    ],
)
def test_prmtop_broken_files(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        prmtop.read_prmtop(AMBER / name)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("%FLAG MASS", "%FLAG MESS", "has no section MASS"),
        ("  2.04636429E+00 -6.67300626E+00", "  2.04636429E+00", "CHARGE .line 14. holds 5 values instead of 6"),
        ("  2.04636429E+00", "  2.0463642xE+00", "section CHARGE .* holds text that is not a number"),
        ("HH31CH3 HH32HH33C   O   ", "HH31CH3 HH32HH33", "section ATOM_NAME .* holds 4 values instead of 6"),
        ("       6       4       3", "       7       4       3", "section ATOM_NAME"),
        ("       6       4       3", "      -6       4       3", "POINTERS is incomplete or negative"),
        ("%FLAG MASS", "%FLAG AMOEBA_FORCEFIELD\n%FORMAT(i5)\n1\n%FLAG MASS", "AMOEBA"),
    ],
)
def test_prmtop_damaged(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = (AMBER / "ace_mbondi3.parm7").read_text()
    assert old in text
    path = tmp_path / "prmtop"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=message) as caught:
        prmtop.read_prmtop(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_prmtop_cut_anywhere(tmp_path: Path) -> None:
    data = (AMBER / "ace_mbondi3.parm7").read_bytes()
    path = tmp_path / "cut.parm7"
    for stop in range(0, data.index(b"%FLAG AMBER_ATOM_TYPE"), 101):
        path.write_bytes(data[:stop])
        with pytest.raises(InputError):
            prmtop.read_prmtop(path)


def test_prmtop_index_out_of_range(tmp_path: Path) -> None:
    head, mark, rest = (AMBER / "ace_mbondi3.parm7").read_text().partition("%FLAG BONDS_INC_HYDROGEN")
    lines = rest.split("\n")
    lines[2] = f"{3 * 77:8d}" + lines[2][8:]
    path = tmp_path / "a.parm7"
    path.write_text(head + mark + "\n".join(lines))
    with pytest.raises(InputError, match=r"BONDS_INC_HYDROGEN .*: entry 1 names atom 78, and there are 6 atoms"):
        prmtop.read_prmtop(path)


# ---- Amber coordinates

COORDINATES = [
    AMBER / "test.inpcrd",
    AMBER / "parmed_ala2_solv.rst7",  # velocities and box
    AMBER / "ace_mbondi3.nc",
    AMBER / "bala.ncdf",
    AMBER / "tz2.truncoct.nc",
    TOOLS / "trpzip2-explicit" / "trpzip2.crd",
    TOOLS / "cb7-viologen" / "leap" / "complex-explicit.inpcrd",
    TOOLS / "cb7-b2" / "complex-vacuum.inpcrd",
    TOOLS / "dna_dodecamer_explicit" / "inpcrd",
    TOOLS / "dhfr" / "JAC.inpcrd",  # NetCDF
]


@pytest.mark.parametrize("path", COORDINATES, ids=lambda path: path.name)
def test_coordinates_agree_with_parmed(path: Path) -> None:
    positions, cell = prmtop.read_coordinates(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = parmed.load_file(str(path))
    expected = np.array(theirs.coordinates).reshape(-1, len(positions), 3)[0]
    assert positions.dtype == np.float64
    assert_allclose(positions, expected, rtol=0, atol=1e-12)
    box = None if theirs.box is None else np.asarray(theirs.box).reshape(-1, 6)[0]
    if box is None:
        assert cell is None
    else:
        assert_allclose(cell.parameters, box, rtol=1e-9)


def test_coordinates_agree_with_openmm() -> None:
    from openmm import unit
    from openmm.app import AmberInpcrdFile

    positions, cell = prmtop.read_coordinates(TOOLS / "dhfr" / "JAC.inpcrd")
    theirs = AmberInpcrdFile(str(TOOLS / "dhfr" / "JAC.inpcrd"))
    assert_allclose(positions, theirs.positions.value_in_unit(unit.angstrom), atol=1e-9)
    assert_allclose(cell.vectors, np.array(theirs.boxVectors.value_in_unit(unit.angstrom)), atol=1e-9)


def ascii_coordinates(count: int, velocities: bool, box: str) -> tuple[str, np.ndarray]:
    random = np.random.default_rng(count)
    positions = np.round(random.uniform(-90, 90, (count, 3)), 7)

    def block(values: np.ndarray) -> str:
        texts = [f"{value:12.7f}" for value in values.ravel()]
        return "".join("".join(texts[i : i + 6]) + "\n" for i in range(0, len(texts), 6))

    text = f"title\n{count:5d}  0.1E+02\n{block(positions)}"
    if velocities:
        text += block(random.normal(0, 0.4, (count, 3)))
    return text + box, positions


BOX = "  40.0000000  50.0000000  60.0000000  90.0000000  80.0000000  70.0000000\n"


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("velocities", [False, True])
@pytest.mark.parametrize("box", ["", BOX, BOX[:36] + "\n"], ids=["none", "six", "three"])
def test_coordinates_of_few_atoms(tmp_path: Path, count: int, velocities: bool, box: str) -> None:
    path = tmp_path / "rst7"
    text, expected = ascii_coordinates(count, velocities, box)
    if count == 1 and not velocities and len(box) == 37:
        box = ""  # three numbers after the position of one atom are its velocity
    path.write_text(text)
    positions, cell = prmtop.read_coordinates(path)
    assert_array_equal(positions, expected)
    assert (None if cell is None else tuple(np.round(cell.parameters, 9))) == (
        None if not box else (40, 50, 60, 90, 80, 70) if box == BOX else (40, 50, 60, 90, 90, 90)
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    7  0.1", "    9  0.1", "holds 4 lines of numbers, and 9 atoms need 5"),
        ("    7  0.1", "  seven  0.1", "second line does not begin with the number of atoms"),
        ("title\n    7", "title\n    0", "second line does not begin with the number of atoms"),
    ],
)
def test_coordinates_damaged(tmp_path: Path, old: str, new: str, message: str) -> None:
    text, _ = ascii_coordinates(7, False, "")
    path = tmp_path / "a.rst7"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        prmtop.read_coordinates(path)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("************", r"number 4 \(atom 2\) is written as asterisks"),
        ("         NaN", "atom 2 has coordinates that are not numbers"),
        ("    12.3x456", r"number 4 \(atom 2\): '    12.3x456' is not a number"),
    ],
)
def test_coordinates_overflow(tmp_path: Path, word: str, message: str) -> None:
    lines = ascii_coordinates(7, False, "")[0].split("\n")
    lines[2] = lines[2][:36] + word + lines[2][48:]
    path = tmp_path / "a.rst7"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match=message):
        prmtop.read_coordinates(path)


def test_coordinates_impossible_box(tmp_path: Path) -> None:
    # its angles were multiplied by 180/pi once too often
    with pytest.raises(InputError, match=r"watbox216.crd: the periodic cell 18.77.* 5156.62 is not valid"):
        prmtop.read_coordinates(TOOLS / "waterbox" / "watbox216.crd")


def test_netcdf_of_other_kinds(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is NetCDF-4 \(HDF5\); convert it"):
        prmtop.read_coordinates(TOOLS / "reporter-examples" / "alanine_dipeptide_legacy.nc")
    data = (TOOLS / "dhfr" / "JAC.inpcrd").read_bytes()
    path = tmp_path / "cut.nc"
    for stop in (10, 200, 600, len(data) // 2):
        path.write_bytes(data[:stop])
        with pytest.raises(InputError, match=r"cut.nc: the NetCDF file is damaged or cut short"):
            prmtop.read_coordinates(path)


# ---- MDAnalysis


@pytest.mark.slow
def test_a_tpr_that_counts_more_than_it_holds(tmp_path):
    """MDAnalysis goes through as many empty grids of CMAP as it says, which may be minutes."""
    content = bytearray((FILES / "tprs" / "all_bonded" / "dummy_2021.tpr").read_bytes())
    path = tmp_path / "a.tpr"
    path.write_bytes(content)
    assert len(io.read_topology(path)) == 14
    assert content[2894:2902] == bytes(8)  # how many grids, and points along a side
    content[2894:2898] = (100_000).to_bytes(4, "big")
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a.tpr: MDAnalysis cannot read it \(counts more than it holds"):
        io.read_topology(path)


@pytest.mark.parametrize("name", ["adk_oplsaa.tpr", "aux_edr.tpr", "tprs/2lyz_gmx_4.0.2.tpr"])
def test_tpr(tmp_path: Path, name: str) -> None:
    structure = mdanalysis.read_structure(FILES / name)
    other = universe(FILES / name)
    assert structure.topology.source == "tpr"
    assert_array_equal(structure.atom_names, other.atoms.names)
    assert_array_equal(structure.residue_index, other.atoms.resindices)
    assert_allclose(structure.charges, other.atoms.charges, rtol=1e-6)
    # charges are read as the decimals that the force field states, so the sum is a whole number
    assert structure.net_charge == pytest.approx(round(structure.net_charge), abs=1e-9)
    assert_array_equal(structure.positions, other.atoms.positions)
    assert_allclose(structure.cell.parameters, other.dimensions, rtol=1e-6)
    assert_array_equal(structure.topology.bonds, other.bonds.indices)

    path = tmp_path / "from_tpr.psf"
    psf.write_psf(structure, path)
    again = psf.read_psf(path)
    assert_array_equal(again.charges, structure.charges)
    assert_array_equal(ordered(again.topology.bonds), ordered(structure.topology.bonds))
    theirs = universe(path)
    assert_allclose(theirs.atoms.charges, structure.charges, rtol=1e-6)
    # types of more than six letters are cut, and the title says what they stand for
    short = dict(line.split()[3::3] for line in again.topology.title if "stands for" in line)
    original = [short.get(kind, kind) for kind in again.topology.types]
    assert_array_equal(original, structure.topology.types)


def test_cross_terms_of_a_tpr_reach_the_psf(tmp_path: Path) -> None:
    """MDAnalysis reads CMAP terms and drops them."""
    structure = io.read_topology(FILES / "tprs" / "virtual_sites" / "extra-interactions-2024.tpr")
    assert structure.topology.cross_terms.tolist() == [[0, 1, 2, 3, 1, 2, 3, 4]]
    psf.write_psf(structure, tmp_path / "out.psf")
    again = psf.read_psf(tmp_path / "out.psf")
    assert again.topology.cross_terms.tolist() == structure.topology.cross_terms.tolist()
    assert "CMAP" in again.topology.flags
    assert len(parmed.charmm.CharmmPsfFile(str(tmp_path / "out.psf")).cmaps) == 1


def test_whose_charges_a_psf_has(tmp_path: Path) -> None:
    """A viewer says in the title that they are its own."""
    structure = psf.read_psf(FILES / "watdyn.psf")
    assert str(charges_and_report(structure)[1]).startswith("charges from the psf topology; ")
    topology = replace(structure.topology, title=(" REMARKS charges from the atoms in VMD",))
    psf.write_psf(replace(structure, topology=topology), tmp_path / "vmd.psf")
    report = charges_and_report(psf.read_psf(tmp_path / "vmd.psf"))[1]
    assert str(report).startswith("charges from the atoms in VMD; ")
    assert report.data["charges"] == "atoms in VMD"


def test_cross_terms_of_several_molecules() -> None:
    atoms = SimpleNamespace(molnums=np.repeat([0, 1, 2], [6, 3, 6]), moltypes=np.repeat(["A", "B", "A"], [6, 3, 6]))
    kept = {"A": np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])}
    assert mdanalysis._cross_terms(atoms, kept)[:, [0, 4, 7]].tolist() == [[0, 1, 4], [1, 2, 5], [9, 10, 13],
                                                                            [10, 11, 14]]
    assert mdanalysis._cross_terms(atoms, {}).shape == (0, 8)


def test_rigid_waters_of_a_tpr_get_their_angles(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    structure = io.read_topology(FILES / "tprs" / "2lyz_gmx_2024.tpr")
    waters = int((structure.residue_names[structure.residue_starts[:-1]] == "SOL").sum())
    assert waters > 90
    psf.write_psf(structure, tmp_path / "out.psf")
    assert f"states no angles of {waters} waters, which it holds rigid" in caplog.text
    again = psf.read_psf(tmp_path / "out.psf")
    angles = again.topology.angles[len(structure.topology.angles):]
    names = structure.atom_names[angles]
    assert len(angles) == waters
    assert set(map(tuple, names.tolist())) == {("HW1", "OW", "HW2")}
    assert any(f"angles of {waters} rigid waters are made from their bonds" in line for line in again.topology.title)
    caplog.clear()
    psf.write_psf(again, tmp_path / "again.psf")  # a PSF states what it means
    assert not caplog.records
    assert len(psf.read_psf(tmp_path / "again.psf").topology.angles) == len(again.topology.angles)


@pytest.mark.slow
def test_tpr_of_four_site_water() -> None:
    structure = mdanalysis.read_structure(FILES / "adk_oplsaa.tpr")
    water = structure.residue_names == "SOL"
    sizes = np.diff(structure.residue_starts)
    assert_array_equal(sizes[structure.residue_names[structure.residue_starts[:-1]] == "SOL"], 4)
    charges = {name: set(structure.charges[water & (structure.atom_names == name)]) for name in ("OW", "HW1", "MW")}
    assert charges == {"OW": {0.0}, "HW1": {0.52}, "MW": {-1.04}}
    # the same atoms in the same order as the GRO file, which is gemmi's and our own trap
    gro = read_gro(FILES / "adk_oplsaa.gro")
    assert_array_equal(gro.residue_index, structure.residue_index)
    assert_allclose(gro.positions, structure.positions, atol=0.006)  # GRO: 0.01 A
    assert structure.take(~water).net_charge == pytest.approx(0, abs=1e-9)


def test_mol2() -> None:
    structure = mdanalysis.read_structure(FILES / "mol2" / "Molecule.mol2")
    assert len(structure) == 49
    assert len(structure.topology.bonds) == 51
    assert structure.cell is None
    assert structure.net_charge == pytest.approx(-0.002, abs=1e-9)  # as the file's charges add up


def test_itp_has_charges_but_no_coordinates() -> None:
    path = FILES / "gromacs_ala10.itp"
    structure = mdanalysis.read_topology(path)
    assert_allclose(structure.charges, universe(path).atoms.charges)
    assert not structure.positions.any()
    with pytest.raises(InputError, match="gives no coordinates; name a file that has them"):
        mdanalysis.read_structure(path)


TRAJECTORIES = [
    "adk_oplsaa.xtc", "adk_oplsaa.trr", "aux_edr.xtc", "SiN_tric_namd.dcd", "adk_dims.dcd", "Amber/bala.ncdf",
]  # fmt: skip


@pytest.mark.parametrize("name", TRAJECTORIES)
def test_the_first_of_several_frames_is_told(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with MDAnalysis.coordinates.core.get_reader_for(str(FILES / name))(str(FILES / name)) as reader:
            atoms, count = reader.n_atoms, reader.n_frames
    mdanalysis.read_frame(FILES / name, atoms, count - 1)
    assert not caplog.text
    for read in [lambda: mdanalysis.read_frame(FILES / name, atoms),
                 *[lambda: prmtop.read_coordinates(FILES / name)] * name.endswith(".ncdf")]:
        caplog.clear()
        read()
        assert caplog.text.count("frames; the first one is used") == (count > 1)


@pytest.mark.parametrize("name", TRAJECTORIES)
def test_frames_agree_with_mdanalysis(tmp_path: Path, name: str) -> None:
    path = tmp_path / Path(name).name
    shutil.copy(FILES / name, path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader = MDAnalysis.coordinates.core.get_reader_for(str(FILES / name))(str(FILES / name))
        for frame in {0, len(reader) // 2, -1}:
            positions, cell = mdanalysis.read_frame(path, reader.n_atoms, frame)
            step = reader[frame]
            assert_allclose(positions, step.positions, rtol=1e-6, atol=1e-6)
            if step.dimensions is None:
                assert cell is None
            else:
                assert_allclose(cell.parameters, step.dimensions, rtol=1e-5)
        count = len(reader)
        reader.close()
    assert os.listdir(tmp_path) == [path.name]  # no .npz, no .lock
    with pytest.raises(InputError, match=rf"has {count} frames, no frame {count}"):
        mdanalysis.read_frame(path, reader.n_atoms, count)
    with pytest.raises(InputError, match="atoms and the structure 7; give files of one system"):
        mdanalysis.read_frame(path, 7)


def test_frame_of_triclinic_trajectory_fits_its_psf() -> None:
    structure = psf.read_psf(FILES / "SiN_tric_namd.psf")
    positions, cell = mdanalysis.read_frame(FILES / "SiN_tric_namd.dcd", len(structure))
    assert isinstance(cell, Cell)
    assert not cell.orthogonal
    # The membrane is bonded across the cell. A DCD keeps lengths and angles, not the orientation: here a does not
    # lie along x but 30 degrees below, and with the cell turned so every bond has its length.
    bonds = positions[structure.topology.bonds]
    across = bonds[:, 0] - bonds[:, 1]
    assert np.linalg.norm(across, axis=1).max() > 10
    cos, sin = np.cos(np.pi / 6), np.sin(np.pi / 6)
    turned = Cell(cell.vectors @ np.array([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]]))
    assert np.linalg.norm(turned.minimum_image(across), axis=1).max() < 4


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.tpr", b"not a tpr at all", "MDAnalysis cannot read it"),
        ("a.what", b"nothing", "MDAnalysis cannot read it"),
        ("missing.tpr", None, "there is no such file"),
    ],
)
def test_what_mdanalysis_refuses(tmp_path: Path, name: str, data: bytes | None, message: str) -> None:
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(InputError, match=message) as caught:
        mdanalysis.read_topology(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ["adk_oplsaa.xtc", "adk_oplsaa.trr", "SiN_tric_namd.dcd", "Amber/bala.ncdf"])
@pytest.mark.parametrize("kept", [0, 50, 300, 5000])
def test_broken_trajectories(tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str, kept: int) -> None:
    path = tmp_path / Path(name).name
    path.write_bytes((FILES / name).read_bytes()[:kept] or b"\x00\x01\x02 this is no trajectory" * 20)
    with pytest.raises(InputError, match=r"cannot read it|damaged|has 0 frames") as caught:
        mdanalysis.read_frame(path, {"SiN_tric_namd.dcd": 5545, "bala.ncdf": 2661}.get(path.name, 47681))
    assert "\n" not in str(caught.value)
    del caught
    gc.collect()  # a half-made reader of MDAnalysis would print its traceback here
    assert not capfd.readouterr().err


def test_without_mdanalysis(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name.split(".")[0] == "MDAnalysis":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(BackendError, match=r"needs MDAnalysis .* pip install 'vmdpotential\[traj\]'"):
        mdanalysis.read_topology(FILES / "adk_oplsaa.tpr")


# ---- the demonstration system


def test_demo_system_is_what_its_script_makes(tmp_path: Path) -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "make_demo_system"), run_name="script")
    (tmp_path / "data").mkdir()
    script["main"].__globals__["ROOT"] = tmp_path
    script["main"]()
    for name in ("dhfr.pdb.gz", "dhfr.psf.gz"):
        made, kept = ((root / "data" / name).read_bytes() for root in (tmp_path, ROOT))
        assert gzip.decompress(made) == gzip.decompress(kept)
        assert kept[4:8] == b"\0\0\0\0"  # no time, so equal content gives equal bytes
        assert len(kept) < 1_500_000


@pytest.mark.slow
def test_demo_system_in_other_programs(tmp_path: Path) -> None:
    for name in ("dhfr.pdb", "dhfr.psf"):
        (tmp_path / name).write_bytes(gzip.decompress((ROOT / "data" / f"{name}.gz").read_bytes()))
    theirs = charmm(tmp_path / "dhfr.psf")
    assert len(theirs.atoms) == 23558
    assert sum(atom.charge for atom in theirs.atoms) == pytest.approx(-11, abs=1e-9)
    other = universe(tmp_path / "dhfr.psf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other.load_new(str(tmp_path / "dhfr.pdb"))
    assert other.atoms.charges.sum(dtype=float) == pytest.approx(-11, abs=1e-6)
    cell = other.dimensions
    assert_allclose(cell, [61.645, 61.645, 61.645, 90, 90, 90], atol=1e-3)
    assert len(other.select_atoms("protein")) == 2489
    assert len(other.select_atoms("resname HOH").residues) == 7023
    # whole molecules, the protein inside the cell and in its middle
    bonds = other.atoms.positions[other.bonds.indices]
    assert np.linalg.norm(bonds[:, 0] - bonds[:, 1], axis=1).max() < 2.2
    protein = other.select_atoms("protein").positions
    assert (protein > 0).all()
    assert (protein < cell[:3]).all()
    assert_allclose((protein.min(0) + protein.max(0)) / 2, cell[:3] / 2, atol=0.01)
    oxygens = other.select_atoms("resname HOH and name O").positions
    assert (oxygens > -0.001).all()
    assert (oxygens < cell[:3] + 0.001).all()
