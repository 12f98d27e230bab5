"""Amber's coordinates against ParmEd, and of few atoms."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import parmed
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from structure_files import AMBER, TOOLS

from vmdpotential.plugins.formats import amber_coordinates

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
    positions, cell, _ = amber_coordinates.read_restart(path)
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
    positions, cell, _ = amber_coordinates.read_restart(path)
    assert_array_equal(positions, expected)
    assert (None if cell is None else tuple(np.round(cell.parameters, 9))) == (
        None if not box else (40, 50, 60, 90, 80, 70) if box == BOX else (40, 50, 60, 90, 90, 90)
    )
