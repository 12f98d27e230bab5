"""What a prmtop counts next to its terms: residues, extra points, where the solvent begins."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import parmed
import pytest
from MDAnalysisTests import datafiles

from vmdpotential import io
from vmdpotential.ions import place_ions
from vmdpotential.molecule.selection import is_water

AMBER = Path(datafiles.PDB).parent / "Amber"
TOP, COORDINATES = AMBER / "parmed_ala2_solv.parm7", AMBER / "parmed_ala2_solv.rst7"

pytestmark = pytest.mark.filterwarnings("ignore")  # ParmEd warns


def sections(path: Path) -> dict[str, list]:
    return parmed.amber.AmberFormat(str(path)).parm_data


def test_solvent_begins_where_it_did(tmp_path: Path) -> None:
    before = io.read_structure(COORDINATES, TOP)
    water = before.residue_starts[:-1][is_water(before)[before.residue_starts[:-1]]]
    after = before.take(~np.isin(before.residue_of, before.residue_of[water[::2]]))
    io.write_structure(after, tmp_path / "a.prmtop")
    there, here = sections(TOP), sections(tmp_path / "a.prmtop")
    left = len(water) - len(water[::2])
    last, number, first = here["SOLVENT_POINTERS"]
    assert (last, first) == (there["SOLVENT_POINTERS"][0], there["SOLVENT_POINTERS"][2])
    assert number == len(here["ATOMS_PER_MOLECULE"]) == first - 1 + left
    # the peptide, which is the largest residue of all, is not there any more
    alone = before.take(is_water(before))
    io.write_structure(alone, tmp_path / "w.prmtop")
    of_water = sections(tmp_path / "w.prmtop")
    assert (of_water["POINTERS"][28], of_water["SOLVENT_POINTERS"][2]) == (3, 1)
    assert there["POINTERS"][28] > 3


def test_extra_points_are_counted_anew(tmp_path: Path) -> None:
    """Of a water whose hydrogens have no mass here."""
    masses = np.array(sections(TOP)["MASS"])
    before = io.read_structure(COORDINATES, TOP)
    light = is_water(before) & (before.elements == "H")
    text = TOP.read_text()
    form = "".join(f"{m:16.8E}" + "\n" * (n % 5 == 4) for n, m in enumerate(np.where(light, 0, masses)))
    text = re.sub(r"(%FLAG MASS *\n%FORMAT\S*\s*\n)(?:[^%\n]*\n)*", lambda match: f"{match[1]}{form.rstrip()}\n", text)
    values = sections(TOP)["POINTERS"]
    values[30] = int(light.sum())
    numbers = "".join(f"{v:8d}" + "\n" * (n % 10 == 9) for n, v in enumerate(values))
    text = re.sub(r"(%FLAG POINTERS *\n%FORMAT\S*\s*\n)(?:[^%\n]*\n)*", lambda match: f"{match[1]}{numbers}\n", text)
    path = tmp_path / "points.prmtop"
    path.write_text(text)
    structure = replace(io.read_structure(COORDINATES, path))
    placed = place_ions(structure, ions={"SOD": 2}, site="random", seed=1, engine="cpu")
    kept = placed.structure.take(np.arange(len(placed.kept_atoms)))
    io.write_structure(kept, tmp_path / "kept.prmtop")
    assert sections(tmp_path / "kept.prmtop")["POINTERS"][30] == light.sum() - 4
