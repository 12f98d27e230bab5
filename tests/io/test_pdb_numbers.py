"""Numbers beyond the columns of a PDB file, as programs write them."""

from __future__ import annotations

import string
from dataclasses import replace

import gemmi
import numpy as np
import pytest
from structure_files import assert_same, universe

from vmdpotential import io
from vmdpotential.io.files import columns
from vmdpotential.io.structures import pdb_numbers
from vmdpotential.molecule.structure import Structure


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
        (2_000, lambda n: n % 2, "", [""]),  # one residue after the other has a number again: numbered again
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
