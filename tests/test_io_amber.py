"""Amber's topologies and coordinates against ParmEd and OpenMM, and broken ones."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import parmed
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from structure_files import AMBER, PRMTOP, TOOLS, amber_of, bonded_atoms, ordered

from vmdpotential.errors import InputError
from vmdpotential.io.structures import amber_coordinates
from vmdpotential.io.topologies import prmtop

# ---- prmtop


@pytest.mark.slow
@pytest.mark.parametrize("path", PRMTOP, ids=lambda path: path.name)
def test_prmtop_agrees_with_parmed(path: Path) -> None:
    structure = prmtop.read_prmtop(path)
    topology = structure.topology
    theirs = amber_of(path)
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
        assert_array_equal(bonded_atoms(getattr(theirs, term), size), ordered(getattr(topology, term)), err_msg=term)
    assert_array_equal(bonded_atoms(theirs.dihedrals, 4, lambda term: not term.improper), ordered(topology.dihedrals))
    impropers = [*(term for term in theirs.dihedrals if term.improper), *theirs.impropers]
    assert_array_equal(bonded_atoms(impropers, 4), ordered(topology.impropers))
    assert_array_equal(bonded_atoms(theirs.cmaps, 5), ordered(topology.cross_terms[:, [0, 1, 2, 3, 7]]))
    assert_array_equal(topology.cross_terms[:, 1:4], topology.cross_terms[:, 4:7])
    if theirs.box is None:
        assert structure.cell is None
    else:
        assert_allclose(structure.cell.parameters, theirs.box, rtol=1e-9)


def test_prmtop_of_the_benchmark() -> None:
    jac = prmtop.read_prmtop(TOOLS / "dhfr" / "JAC.prmtop")
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
        ("ache_chainid.error5.prmtop.bz2", "section RESIDUE_CHAINID .* contains 37 values instead of 38"),
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
        ("  2.04636429E+00 -6.67300626E+00", "  2.04636429E+00", "CHARGE .line 14. contains 5 values instead of 6"),
        ("  2.04636429E+00", "  2.0463642xE+00", "section CHARGE .* contains text that is not a number"),
        ("HH31CH3 HH32HH33C   O   ", "HH31CH3 HH32HH33", "section ATOM_NAME .* contains 4 values instead of 6"),
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
    with pytest.raises(InputError, match=r"BONDS_INC_HYDROGEN .*: entry 1 lists atom 78, but there are 6 atoms"):
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
    positions, cell = amber_coordinates.read_coordinates(path)
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
    positions, cell = amber_coordinates.read_coordinates(path)
    assert_array_equal(positions, expected)
    assert (None if cell is None else tuple(np.round(cell.parameters, 9))) == (
        None if not box else (40, 50, 60, 90, 80, 70) if box == BOX else (40, 50, 60, 90, 90, 90)
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    7  0.1", "    9  0.1", "has 4 lines of numbers, but 9 atoms need 5"),
        ("    7  0.1", "  seven  0.1", "second line does not begin with the number of atoms"),
        ("title\n    7", "title\n    0", "second line does not begin with the number of atoms"),
    ],
)
def test_coordinates_damaged(tmp_path: Path, old: str, new: str, message: str) -> None:
    text, _ = ascii_coordinates(7, False, "")
    path = tmp_path / "a.rst7"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        amber_coordinates.read_coordinates(path)


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
        amber_coordinates.read_coordinates(path)


def test_coordinates_impossible_box(tmp_path: Path) -> None:
    # its angles were multiplied by 180/pi once too often
    with pytest.raises(InputError, match=r"watbox216.crd: the periodic cell 18.77.* 5156.62 is not valid"):
        amber_coordinates.read_coordinates(TOOLS / "waterbox" / "watbox216.crd")


def test_netcdf_of_other_kinds(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is NetCDF-4 \(HDF5\); convert it"):
        amber_coordinates.read_coordinates(TOOLS / "reporter-examples" / "alanine_dipeptide_legacy.nc")
    data = (TOOLS / "dhfr" / "JAC.inpcrd").read_bytes()
    path = tmp_path / "cut.nc"
    for stop in (10, 200, 600, len(data) // 2):
        path.write_bytes(data[:stop])
        with pytest.raises(InputError, match=r"cut.nc: the NetCDF file is damaged or cut short"):
            amber_coordinates.read_coordinates(path)
