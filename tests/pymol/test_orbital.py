"""Orbitals in PyMOL: isosurfaces of both signs around the nuclei, and another number in their place."""

import golden
import numpy as np
import pytest
from pymol import CmdException

from vmdpotential.plugins.pymol.grids import read_grid
from vmdpotential.plugins.pymol.made import Session


@pytest.fixture
def path(tmp_path):
    golden.write(tmp_path)
    return tmp_path / "golden.molden"


def test_both_signs_around_the_nuclei_and_another_number(cmd, do, path):
    do(f"potential_orbital {path}, orbital=homo")
    made = {"orbital", "orbital_nuclei", "orbital_legend", "orbital_positive", "orbital_negative"}
    assert set(cmd.get_names("objects")) == made
    assert cmd.count_atoms("orbital_nuclei") == 2
    even = read_grid(cmd, "orbital", {}).values
    cmd.turn("x", 30)
    view = cmd.get_view()
    do(f"potential_orbital {path}, orbital=2")
    assert set(cmd.get_names("objects")) == made
    assert cmd.get_view() == view
    assert Session.of(cmd).orbital == 2
    odd = read_grid(cmd, "orbital", {}).values
    assert even.min() >= 0
    np.testing.assert_allclose(odd, -odd[:, :, ::-1], atol=1e-4 * np.abs(odd).max())
    assert cmd.isolevel("orbital_positive", query=1) == pytest.approx(0.08)
    assert cmd.isolevel("orbital_negative", query=1) == pytest.approx(-0.08)


def test_what_cannot_be_drawn_leaves_what_there_is(cmd, do, path):
    do(f"potential_orbital {path}, orbital=1")
    before = cmd.get_names("objects")
    for line in (f"{path}, orbital=3", f"{path}.missing, orbital=1", f"{path}"):
        with pytest.raises(CmdException):
            cmd.keyword["potential_orbital"][0](*line.split(", ")[:1], _self=cmd,
                                               **dict(word.split("=") for word in line.split(", ")[1:]))
    assert cmd.get_names("objects") == before
