"""Selections in MDAnalysis' language and by index groups: the same atoms as MDAnalysis finds in the file itself."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import MDAnalysis
import numpy as np
import pytest
from helpers import refused, slow
from MDAnalysisTests import datafiles
from messages import naming
from numpy.testing import assert_array_equal

from vmdpotential.errors import BackendError, InputError, UsageError
from vmdpotential.extras import install_command
from vmdpotential.frontend.cli import main
from vmdpotential.io import read_structure
from vmdpotential.io.files.ndx import read_groups
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.selection import select
from vmdpotential.molecule.structure import Structure

MDA = Path(datafiles.__file__).parent / "data"

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:MDAnalysis", "ignore::DeprecationWarning:MDAnalysis")

ANYWHERE = [
    "protein and resid 1:20", "name CA and not resname GLY PRO", "resname A* and name C*", "backbone", "index 5:20",
    "bynum 6 8:10", "resid 10-12 or (resid 3 and name N)", "same residue as name CB", "byres name SG",
    "around 5 resid 7", "resname LEU and around 4 (resname VAL and name CB)", "sphlayer 3 8 resid 9",
    "sphzone 9 resid 12", "isolayer 2 3 resid 4", "prop z > 2", "prop abs x <= 5.5", "point 1 2 3 12",
    "cyzone 8 6 -6 resid 5", "cylayer 2 9 4 -4 resid 5", "element C", "mass 13:17", "global around 3 resid 2",
]
FILES: list[tuple[str, str, list[str]]] = [  # structure, frames, and what is asked
    ("adk_oplsaa.gro", "", ["resname SOL and around 4 protein", "water and prop z < 4", "sphlayer 3 8 resid 9"]),
    ("cobrotoxin.pdb", "", [*ANYWHERE, "chainID A", "segid A"]),
    ("adk.psf", "adk_dims.dcd", [*ANYWHERE, "segid 4AKE and charge -1:-0.5", "bonded name CA", "prop charge > 0.4",
                                 "same segment as index 3", "type HB"]),
    ("Amber/ace_tip3p.parm7", "Amber/ace_tip3p.nc", [*ANYWHERE, "type CT", "charge 0.3:1",
                                                     "water and around 4 protein"]),
    ("nmr_neopetrosiamide.pdb", "", [*ANYWHERE, "tempfactor 0:100", "icode A or resid 3", "record_type ATOM"]),
]


def indices(structure: Structure, text: str) -> np.ndarray:
    try:
        return np.flatnonzero(select(structure, text))
    except UsageError as error:
        if "selects no atoms" not in str(error):
            raise
        return np.zeros(0, int)


@pytest.mark.parametrize(("name", "frames", "asked"), slow(FILES, FILES[:3]), ids=[name for name, *_ in FILES])
def test_the_same_atoms_as_mdanalysis_finds_in_the_file(name: str, frames: str, asked: list[str]) -> None:
    names = [str(MDA / part) for part in (name, frames) if part]
    universe = MDAnalysis.Universe(*names)
    if not hasattr(universe.atoms, "elements"):
        universe.guess_TopologyAttrs(to_guess=["elements"])
    structure = read_structure(MDA / (frames or name), MDA / name if frames else None)
    empty = []
    for text in asked:
        result = indices(structure, text)
        assert_array_equal(result, universe.select_atoms(text).indices, err_msg=text)
        empty += [text] * (not len(result))
    assert len(empty) < len(asked) / 2, empty


def small(cell: Cell | None = None, **others: object) -> Structure:
    """Return a line of atoms, 2 A apart: a dipeptide, a ligand that our tables do not know, and a water."""
    names = ["N", "CA", "C", "N", "CA", "C", "C1", "O1", "OH2", "H1", "H2"]
    residues = ["ALA"] * 3 + ["GLY"] * 3 + ["LIG"] * 2 + ["TIP3"] * 3
    index = [0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3]
    chains = ["A"] * 6 + ["B"] * 2 + ["backbone"] * 3
    positions = np.zeros((11, 3))
    positions[:, 0] = 2.0 * np.arange(11)
    return Structure(positions, names, residues, np.array(index) + 1, index, chain_ids=chains, cell=cell, **others)


def test_how_text_is_told_apart() -> None:
    structure = small()
    for text, rows in (
        ("ALL", range(11)), ("solute", range(8)),  # words, in any case
        ("A", range(6)), ("//A/2/CA", [4]), ("(LIG)", [6, 7]), ("//A,B", range(8)),  # CIDs
        ("chainID A", range(6)), ("name CA", [1, 4]), ("nucleic or resname LIG", [6, 7]),  # MDAnalysis
        ("byres solute", range(8)), ("index 6 or global solute", range(8)),
        ("//backbone", [8, 9, 10]), ("backbone and all", [0, 1, 2, 3, 4, 5]),
    ):
        assert_array_equal(indices(structure, text), rows, err_msg=text)
    with refused("atoms", "backbone"):
        select(structure, "backbone")
    with refused("atoms"):
        select(structure, "(protein)")


def test_words_mean_in_an_expression_what_they_mean_alone(caplog: pytest.LogCaptureFixture) -> None:
    structure = small()
    residues = structure.residue_names.astype("<U4")
    residues[:3] = "PGLU"  # an amino acid of MDAnalysis' table only
    structure = replace(structure, residue_names=residues)
    assert_array_equal(indices(structure, "protein"), [3, 4, 5])
    assert not caplog.text
    assert_array_equal(indices(structure, "protein and name CA"), [4])
    assert "'protein' means 3 atoms here, as it does alone; MDAnalysis' own tables of names have 6" in caplog.text
    assert_array_equal(indices(structure, "byres (solute and not protein)"), [0, 1, 2, 6, 7])
    assert_array_equal(indices(structure, "around 3 water"), [7])
    assert_array_equal(indices(structure, "not lipids and resname TIP3"), [8, 9, 10])
    with refused("atoms"):
        select(structure, "resname ions or name solute")  # names that are looked for


def test_distances_go_over_the_cell() -> None:
    assert_array_equal(indices(small(), "around 3 index 0"), [1])
    box = Cell.from_parameters(22, 20, 20)
    assert_array_equal(indices(small(box), "around 3 index 0"), [1, 10])
    # a crystal's asymmetric unit is not all that its cell holds
    assert_array_equal(indices(small(replace(box, space_group="P 21 21 21")), "around 3 index 0"), [1])
    turn = np.array([[0.6, 0.8, 0], [-0.8, 0.6, 0], [0, 0, 1]])
    turned = replace(small(), positions=small().positions @ turn, cell=Cell(box.vectors @ turn))
    assert_array_equal(indices(turned, "around 3 index 0"), [1, 10])
    with refused("atoms"):
        select(turned, "prop x > 3")


def test_what_is_no_selection_is_one_line_with_the_parameter(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, said in (
        ("within 5 of resname LIG", r"Unknown selection token: 'within'; 'within 5 of .* is written 'around 5"),
        ("name CA and", "token: the end"), ("prop charge > 0", "is not a valid selection"),
        ("chain A and name CA", "'chain A' is written '//A' or 'chainID A'"),
        ("(name CA", "is not a valid sel"), ("name QQ or index 99", "selects no atoms"), ("bonded name CA", "is not a"),
        ("  ", "is empty"), ("group x", "no index group 'x'"),
    ):
        with pytest.raises(UsageError, match=said) as caught:
            select(small(), text, "between")
        assert caught.value.parameter == "between"
        assert "\n" not in str(caught.value)
    monkeypatch.setitem(sys.modules, "MDAnalysis", None)
    assert select(small(), "protein").any()
    for mistyped in ("chain A", "protien and name CA", "(solut or resid 5)"):
        with pytest.raises(UsageError):
            select(small(), mistyped)
    with naming(BackendError, install_command("traj")):
        select(small(), "protein and name CA")


INDEX = """; made by hand
[ System ]
   1    2    3    4    5    6    7    8    9   10   11
[ Prot ]
1 2 3
4 5 6
[ Prot and water ]
1 9 ; two atoms
[ none ]
[ a "b" ]
11 10
"""


def test_index_groups(tmp_path: Path) -> None:
    path = tmp_path / "index.ndx"
    path.write_text(INDEX)
    structure = replace(small(), groups=read_groups(path, 11))
    for text, rows in (
        ("group Prot", range(6)), ('group "Prot and water"', [0, 8]), ('group a "b"', [9, 10]),
        ("group Prot and name CA", [1, 4]), ('not group "Prot and water" and protein', [1, 2, 3, 4, 5]),
        ("byres (group System and name H1)", [8, 9, 10]),
    ):
        assert_array_equal(indices(structure, text), rows, err_msg=text)
    assert_array_equal(indices(structure.take([1, 8, 9]), "group Prot or group \"Prot and water\""), [0, 1])
    for text, said in (
        ("group Prot and water", "a group of that name, or atoms of the group 'Prot'; put the name in double quotes"),
        ("group none", "selects no atoms"), ("group Proto", r"no index group 'Proto' \(System, Prot, Prot and water"),
        ("Prot", "the index group is written 'group Prot'"), ("protein and group x", "no index group 'x'"),
    ):
        with pytest.raises(UsageError, match=said):
            select(structure, text)


def test_damaged_index_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "index.ndx"
    for text, said in (
        ("[ a ]\n1 2\n[ b ]\n3 12\n", "line 3: group 'b' contains atom 12, but the structure has atoms 1 to 11"),
        ("[ a ]\n0 1\n", "contains atom 0"), ("[ a ]\n1 x\n", "contains 'x', which is not an atom number"),
        ("1 2 3\n", "not an index"), ("[ a ]\n1\n[ a ]\n2\n", "line 3: two groups of different atoms are named 'a'"),
        ("[ a ]\n-1\n", "contains '-1'"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=said):
            read_groups(path, 11)
    assert main(["map", str(MDA / "adk_oplsaa.gro"), "--index", str(path), "--atoms", "group a", "-o", "x.dx"]) == 2
    assert "contains '-1'" in capsys.readouterr().err


def test_a_command_takes_expressions_and_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    near = MDAnalysis.Universe(str(MDA / "adk_oplsaa.gro")).select_atoms("name OW and around 9 resname NA+").indices
    path = tmp_path / "index.ndx"
    path.write_text(f"[ my cations ]\n47678 47679 47680 47681\n[ near ]\n{' '.join(map(str, near + 1))}\n")
    words = ["rdf", str(MDA / "adk_oplsaa.gro"), "--index", str(path), "--between", 'group "my cations"',
             "name OW and around 9 resname NA+", "ions", "group near", "--range", "9", "--bins", "9", "--json"]
    assert main([*words, "-o", str(tmp_path / "g.csv")]) == 0
    first, second = json.loads(capsys.readouterr().out)["g"]
    assert first == second
    assert first[2] > 0
