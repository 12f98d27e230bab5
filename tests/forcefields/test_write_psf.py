"""PSF files that are written, with all atoms or some, read by MDAnalysis and ParmEd."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from messages import naming
from numpy.testing import assert_allclose, assert_array_equal
from structure_files import MDA, PRMTOP, PSF, TOOLS, bonded_atoms, charmm_of, ordered, same_terms, universe

from vmdpotential.errors import InputError
from vmdpotential.io.topologies import prmtop, psf
from vmdpotential.molecule.structure import Structure, Topology
from vmdpotential.plugins.forcefields.psfwrite import write_psf


@pytest.mark.slow
@pytest.mark.parametrize("name", PSF)
def test_psf_round_trip(tmp_path: Path, name: str) -> None:
    structure = psf.read_psf(MDA / name)
    topology = structure.topology
    path = tmp_path / "out.psf"
    write_psf(structure, path)
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
    assert len(other.bonds) == len(universe(MDA / name).bonds)
    theirs = charmm_of(path)
    assert_array_equal([atom.charge for atom in theirs.atoms], structure.charges)
    assert_array_equal([str(atom.type) for atom in theirs.atoms], topology.types)
    for term, size in (("bonds", 2), ("angles", 3), ("dihedrals", 4), ("impropers", 4)):
        assert_array_equal(bonded_atoms(getattr(theirs, term), size), ordered(getattr(topology, term)), err_msg=term)
    assert len(theirs.cmaps) == len(topology.cross_terms)
    assert len(theirs.donors) == len(topology.donors)
    assert len(theirs.acceptors) == len(topology.acceptors)


@pytest.mark.slow
@pytest.mark.parametrize("path", PRMTOP, ids=lambda path: path.name)
def test_psf_from_prmtop(tmp_path: Path, path: Path) -> None:
    structure = prmtop.read_prmtop(path)
    out = tmp_path / "out.psf"
    write_psf(structure, out)
    again = psf.read_psf(out)
    assert again.net_charge == pytest.approx(structure.net_charge, abs=1e-9)
    assert_allclose(again.charges, structure.charges, atol=1e-9)
    theirs = charmm_of(out)
    assert_array_equal(bonded_atoms(theirs.bonds, 2), ordered(structure.topology.bonds))
    assert sum(atom.charge for atom in theirs.atoms) == pytest.approx(structure.net_charge, abs=1e-9)
    # float32 in MDAnalysis: half a unit of its last place for each atom
    other = universe(out)
    assert other.atoms.charges.sum(dtype=float) == pytest.approx(structure.net_charge, abs=3e-8 * len(structure) ** 0.7)
    # a term that Amber lists once for each period is once
    dihedrals = {tuple(row) for row in ordered(structure.topology.dihedrals).tolist()}
    assert {tuple(row) for row in ordered(again.topology.dihedrals).tolist()} == dihedrals
    assert len(again.topology.dihedrals) == len(dihedrals)


def test_psf_columns_that_programs_count_on(tmp_path: Path) -> None:
    jac = prmtop.read_prmtop(TOOLS / "dhfr" / "JAC.prmtop")
    # VMD, CHARMM and X-PLOR read columns, NAMD words: both must find the same
    water = np.flatnonzero(jac.residue_names == "WAT")[:6]
    small = jac.take(np.concatenate([np.arange(4), water]))
    long = replace(small, residue_names=np.where(small.residue_names == "WAT", "WATER", small.residue_names))
    for structure, starts in ((small, (9, 14, 19, 24, 29, 34, 48)), (long, (11, 20, 29, 38, 47, 54, 68))):
        write_psf(structure, tmp_path / "out.psf")
        lines = (tmp_path / "out.psf").read_text().split("\n")
        assert ("EXT" in lines[0].split()) == (structure is long)
        first = next(i for i, line in enumerate(lines) if "!NATOM" in line) + 1
        for i, line in enumerate(lines[first : first + len(structure)]):
            fields = [line[a:b].strip() for a, b in zip(starts, (*starts[1:], starts[-1] + 14), strict=True)]
            assert fields == line.split()[1:8]
            assert all(line[start - 1] == " " for start in starts)
            assert fields[2] == structure.residue_names[i]
            assert float(fields[5]) == pytest.approx(structure.charges[i], abs=1e-9)


@pytest.mark.slow
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
    write_psf(base, tmp_path / "a.psf")
    result = psf.read_psf(tmp_path / "a.psf")
    assert "EXT" not in result.topology.flags
    assert result.net_charge == pytest.approx(5, abs=1e-9)
    assert_allclose(result.charges, charges, atol=2e-10)


@pytest.mark.slow
def test_psf_of_more_than_99999_atoms(tmp_path: Path) -> None:
    water = psf.read_psf(MDA / "watdyn.psf")
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
    write_psf(large, path)
    again = psf.read_psf(path)
    assert again.topology.flags == ("EXT", "XPLOR")
    assert again.residue_ids[-1] == count // 3  # five and more digits
    assert_array_equal(again.residue_index, large.residue_index)
    same_terms(again.topology, topology)
    assert again.charges.sum() == pytest.approx(0, abs=1e-9)


def test_psf_appended_atoms(tmp_path: Path) -> None:
    # what has no row in `extra` gets one on writing: CHEQ columns, groups, molecules
    structure = psf.read_psf(MDA / "tip125_tric_C36.psf").take(np.arange(30))
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
    write_psf(ionized, tmp_path / "a.psf")
    again = psf.read_psf(tmp_path / "a.psf")
    extra = again.topology.extra
    assert extra["columns"][-1].tolist() == ["0.00000", "-0.301140E-02"]
    assert extra["group"].tolist() == [*np.repeat(np.arange(10), 3), 10]
    assert extra["group_type"][-1] == 2
    assert len(extra["molecule"]) == 31
    assert charmm_of(tmp_path / "a.psf").atoms[-1].charge == 1


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
    write_psf(structure, out)
    again = psf.read_psf(out).topology.extra
    assert again["terms"]["lone_pairs"].tolist() == extra["terms"]["lone_pairs"].tolist()
    assert again["terms"]["exclusions"].tolist() == extra["terms"]["exclusions"].tolist()
    assert again["term_values"]["lone_pairs"].tolist() == extra["term_values"]["lone_pairs"].tolist()
    assert len(charmm_of(out).atoms) == 8

    second = structure.take(np.arange(4, 8))
    write_psf(second, out)
    again = psf.read_psf(out).topology.extra
    assert again["terms"]["lone_pairs"].tolist() == [[1, 0, 2, 3]]
    assert again["term_values"]["lone_pairs"].tolist() == [["F", "-0.250000", "0.00000", "0.00000"]]
    assert again["terms"]["exclusions"].tolist() == [[0, 3]]
    assert again["group_type"].tolist() == [2, 2, 2, 2]


def test_psf_same_bytes_each_time(tmp_path: Path) -> None:
    structure = psf.read_psf(MDA / "watdyn.psf")
    for name in ("a.psf.gz", "b.psf.gz"):
        write_psf(structure, tmp_path / name)
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
    structure = psf.read_psf(MDA / "watdyn.psf")
    names = getattr(structure, field).astype("U20")
    names[3] = value
    with pytest.raises(InputError, match=message):
        write_psf(replace(structure, **{field: names}), tmp_path / "a.psf")
    assert not list(tmp_path.iterdir())


def test_a_section_that_is_not_known_is_never_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.psf"
    path.write_text((MDA / "parmed_ala3.psf").read_text().replace("!NPHI: dihedrals", "!NWHAT", 1))
    with naming(InputError, "!NWHAT"):
        write_psf(psf.read_psf(path), tmp_path / "out.psf")


def test_psf_needs_a_topology(tmp_path: Path) -> None:
    structure = replace(psf.read_psf(MDA / "watdyn.psf"), topology=None)
    with naming(InputError, "bonds"):
        write_psf(structure, tmp_path / "a.psf")


@pytest.mark.parametrize(
    ("name", "residue", "every"),
    [("SiN_tric_namd.psf", "TIP3", 3), ("parmed_ala3.psf", "ALA", 3), ("adk_closed_NAMD.psf", "GLY", 2)],
)
def test_take_agrees_with_parmed(tmp_path: Path, name: str, residue: str, every: int) -> None:
    structure = psf.read_psf(MDA / name)
    drop = (structure.residue_names == residue) & (structure.residue_index % every == every - 1)
    assert drop.any()
    taken = structure.take(~drop)
    theirs = charmm_of(MDA / name)
    theirs.strip(drop.astype(int).tolist())
    topology = taken.topology
    assert_array_equal([atom.charge for atom in theirs.atoms], taken.charges)
    assert_array_equal([atom.name for atom in theirs.atoms], taken.atom_names)
    assert_array_equal([atom.residue.idx for atom in theirs.atoms], taken.residue_index)
    for term, size in (("bonds", 2), ("angles", 3), ("dihedrals", 4), ("impropers", 4)):
        assert_array_equal(bonded_atoms(getattr(theirs, term), size), ordered(getattr(topology, term)), err_msg=term)
    five = bonded_atoms(theirs.cmaps, 5)
    assert_array_equal(five, ordered(topology.cross_terms[:, [0, 1, 2, 3, 7]]))
    # and it can be written and read by others
    write_psf(taken, tmp_path / "out.psf")
    assert len(charmm_of(tmp_path / "out.psf").bonds) == len(topology.bonds)


def test_take_keeps_what_stands_for_none() -> None:
    topology = psf.read_psf(MDA / "parmed_ala3.psf").topology
    assert (topology.acceptors[:, 1] >= -1).all()
    everything = topology.take(np.arange(len(topology.types)))
    same_terms(everything, topology)
    original = Topology(
        "psf", np.array(["A", "B", "C"]), np.ones(3), np.array([[0, 1]]), donors=np.array([[0, -1], [1, 0], [2, -1]])
    ).take(np.array([0, 2]))
    assert original.donors.tolist() == [[0, -1], [1, -1]]
    assert len(original.bonds) == 0
