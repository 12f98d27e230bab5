"""Kinds of residue and selections, against MDAnalysis' and gemmi's own."""

from __future__ import annotations

from pathlib import Path

import gemmi
import golden
import MDAnalysis
import numpy as np
import pytest
from helpers import refused
from MDAnalysisTests import datafiles
from numpy.typing import NDArray
from openmm import app

from vmdpotential import place_ions
from vmdpotential.errors import UsageError
from vmdpotential.molecule import selection as kinds
from vmdpotential.molecule.names import in_table, unique_names
from vmdpotential.molecule.selection import select
from vmdpotential.molecule.structure import Structure

OPENMM = Path(app.__file__).parent / "data"
MDA = Path(datafiles.__file__).parent / "data"

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:MDAnalysis", "ignore::PendingDeprecationWarning")


def of_universe(path: Path) -> tuple[Structure, MDAnalysis.Universe]:
    universe = MDAnalysis.Universe(str(path))
    return Structure.from_mdanalysis(universe), universe


def small(names: list[str], residues: list[str], index: list[int] | None = None) -> Structure:
    count = len(names)
    return Structure(np.zeros((count, 3)), names, residues, [1] * count, index or [0] * count)


def test_adk() -> None:
    structure, universe = of_universe(MDA / "adk_oplsaa.pdb")
    for word, theirs in (("protein", "protein"), ("ions", "resname NA+"), ("water", "resname SOL")):
        np.testing.assert_array_equal(np.flatnonzero(select(structure, word)), universe.select_atoms(theirs).indices)
    assert (select(structure, "solute") == ~select(structure, "water")).all()
    assert select(structure, "all").all()


@pytest.mark.slow
def test_membrane() -> None:
    structure, universe = of_universe(MDA / "tprs" / "drew_gmx_4.5.5.double.tpr")
    for word, theirs in (("lipid", "resname DOPC CHOL DPPC"), ("water", "name OW HW1 HW2")):
        expected = universe.select_atoms(theirs).indices
        assert len(expected)
        np.testing.assert_array_equal(np.flatnonzero(select(structure, word)), expected)

    cut, _ = of_universe(OPENMM / "POPC.pdb")
    assert set(cut.residue_names[select(cut, "lipid")]) == {"POP"}
    assert (select(cut, "lipid") == select(cut, "solute")).all()
    assert not kinds.is_lipid(small(["P1", "O1", "O2"], ["POP"] * 3)).any()  # pyrophosphate


def test_nucleic_acid() -> None:
    path = MDA.parent.parent / "openmmtools" / "data" / "dna_dodecamer_explicit" / "minimized_dna_dodecamer.pdb"
    structure, universe = of_universe(path)
    np.testing.assert_array_equal(
        np.flatnonzero(select(structure, "nucleic")), universe.select_atoms("nucleic").indices
    )
    assert select(structure, "nucleic").sum() == 758


def test_water_needs_an_oxygen_and_keeps_all_its_sites() -> None:
    assert not kinds.is_water(small(["HW1", "HW2"], ["SOL"] * 2)).any()
    assert kinds.is_water(small(["OW", "HW1", "HW2", "MW"], ["SOL"] * 4)).all()
    assert kinds.is_water(small(["OH2"], ["TIP"])).all()
    mixed = small(["O", "H1", "H2", "CA"], ["wat", "wat", "wat", "ALA"], [0, 0, 0, 1])
    assert kinds.is_water(mixed).tolist() == [True, True, True, False]


def test_an_ion_is_alone_in_its_residue() -> None:
    assert kinds.is_ion(small(["CA"], ["CA"])).all()
    assert kinds.is_ion(small(["Na+", "CLA"], ["Na+", "CLA"], [0, 1])).all()
    assert not kinds.is_ion(small(["CA", "CB"], ["CA", "CA"])).any()
    assert not kinds.is_ion(small(["CA"], ["ALA"])).any()
    assert not kinds.is_nucleic(small(["U"], ["U"])).any()  # uranium


CIDS = [
    "*", "//A", "//B", "/1/A/10-20/CA", "//A/30", "(ALA)", "(ALA,GLY)", "(!HOH)", "[S]", "[!H]", "[C,N]", "CA[C]",
    "//*//C,O", "10-20", "A/20-30", "//A/20-30/CA,CB", "//A;b<20", "//A;b>20", "*;q<1", "//*/(HOH)/O", "/1/*/33(LEU)",
]  # fmt: skip


@pytest.mark.parametrize("cid", CIDS)
@pytest.mark.parametrize("file", ["1hvr.pdb", "4E43.pdb"])
def test_cid_selects_what_gemmi_selects(cid: str, file: str) -> None:
    model = gemmi.read_structure(str(MDA / file), merge_chain_parts=False)
    model.remove_alternative_conformations()
    structure = Structure.from_gemmi(model)
    for place, (_, _, atom) in enumerate(cra for cra in ((c, r, a) for c in model[0] for r in c for a in r)):
        atom.serial = place
    selection = gemmi.Selection(cid)
    expected = [
        atom.serial
        for actual in selection.models(model)
        for chain in selection.chains(actual)
        for residue in selection.residues(chain)
        for atom in selection.atoms(residue)
    ]
    if expected:
        assert np.flatnonzero(select(structure, cid)).tolist() == expected
    else:
        with refused("atoms"):
            select(structure, cid)


def names_of(*values: str) -> NDArray[np.str_]:
    return np.array(values)


@pytest.mark.parametrize(
    "names",
    [names_of("B", "A", "A", "B", ""), names_of("ä", "☃", "ä"), names_of("ABCDEFGHIJ", "A"), np.zeros(0, "U4")],
    ids=["short", "beyond latin", "long", "none"],
)
def test_unique_names(names: NDArray[np.str_]) -> None:
    unique, inverse = unique_names(names)
    assert sorted(unique) == sorted(set(names.tolist()))
    np.testing.assert_array_equal(unique[inverse], names)
    assert in_table(names, {"A"}).tolist() == (names == "A").tolist()


@pytest.mark.parametrize("rows", [
    np.ones(5, bool), np.ones((2, 3), bool), np.array([1.5, 2.0]), np.array(["CA"]), np.array([[0, 1]]), np.array(3),
])
def test_an_array_that_selects_nothing_sensible(rows: np.ndarray) -> None:
    for call in (lambda: select(golden.structure(), rows), lambda: place_ions(golden.structure(), keep="")):
        with pytest.raises(UsageError):
            call()
