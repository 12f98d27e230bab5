"""Orbitals in PyMOL: isosurfaces of both signs around the nuclei, and another number in their place."""

from itertools import product

import golden
import numpy as np
import pytest
from pymol import CmdException

from vmdpotential.plugins.pymol.grids import read_grid
from vmdpotential.plugins.pymol.session import Session


@pytest.fixture
def path(tmp_path):
    golden.write(tmp_path)
    return tmp_path / "golden.molden"


def test_both_signs_around_the_nuclei_and_another_number(cmd, do, path):
    do(f"potential_orbital {path}, orbital=homo")
    made = {"orbital", "orbital_nuclei", "orbital_legend", "orbital_positive", "orbital_negative",
            "orbital_group"}
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


def fullerene(path):
    """Write orbitals of s functions at the 60 atoms of a fullerene, by their overlap, and return these functions."""
    golden_ratio = (1 + 5**0.5) / 2
    corners = ((0, 1, 3 * golden_ratio), (1, 2 + golden_ratio, 2 * golden_ratio),
               (golden_ratio, 2, 2 * golden_ratio + 1))
    places = {tuple(np.round(np.roll(np.array(corner) * signs, turn), 9) + 0.0) for corner in corners
              for signs in product((1, -1), repeat=3) for turn in range(3)}
    bohr = np.array(sorted(places)) * 0.71 / 0.529177210903
    exponent = 0.3
    overlap = np.exp(-exponent / 2 * ((bohr[:, None] - bohr) ** 2).sum(2))
    values, orbitals = np.linalg.eigh(overlap)
    orbitals = (orbitals / np.sqrt(values))[:, ::-1]
    atoms = (f"C {n} 6 {x:.9f} {y:.9f} {z:.9f}" for n, (x, y, z) in enumerate(bohr, 1))
    functions = (f"{n} 0\n s 1 1.0\n {exponent} 1.0\n" for n in range(1, 61))
    lines = ["[Molden Format]", "[Atoms] AU", *atoms, "[GTO]", *functions, "[MO]"]
    for number, column in enumerate(orbitals.T):
        lines += ["Sym= A", f"Ene= {-values[59 - number]}", "Spin= Alpha", f"Occup= {2 * (number < 30)}",
                  *(f"{n} {value:.12f}" for n, value in enumerate(column, 1))]
    path.write_text("\n".join(lines) + "\n")
    norm = (2 * exponent / np.pi) ** 0.75 / 0.529177210903**1.5
    return lambda points: norm * np.exp(-exponent * ((points[:, None] / 0.529177210903 - bohr) ** 2).sum(2)) @ orbitals


def test_a_fullerene_while_its_number_changes(cmd, do, tmp_path):
    path = tmp_path / "fullerene.molden"
    functions = fullerene(path)
    do(f"potential_orbital {path}, orbital=homo, spacing=0.5, padding=2")
    assert (Session.of(cmd).orbital, cmd.count_atoms("orbital_nuclei")) == (30, 60)
    view, objects = cmd.get_view(), set(cmd.get_names("objects"))
    for number in (1, 2, 60):
        do(f"potential_orbital {path}, orbital={number}, spacing=0.5, padding=2")
        assert (Session.of(cmd).orbital, cmd.get_view()) == (number, view)
        grid = read_grid(cmd, "orbital", {})
        np.testing.assert_allclose(grid.values.ravel(), functions(grid.lattice.points())[:, number - 1], atol=1e-4)
        assert (grid.values.min() < -0.01) == (number > 1)
        assert set(cmd.get_names("objects")) <= objects | {"orbital_negative"}


def test_a_density_is_one_isosurface_without_a_potentials_ramp(cmd, do, caplog):
    """Before, zeros next to the atoms gave a surface coloured from -0 to 0, and isosurfaces of both signs."""
    cmd.fragment("ala")
    cmd.create("traj", "ala", 1, 1)
    for state in (2, 3, 4):
        cmd.create("traj", "ala", 1, state)
        cmd.translate([0.1 * state, 0, 0], "traj", state, camera=0)
    cmd.delete("ala")
    output = do("potential_density traj, spacing=1, padding=6")
    assert "Error" not in output
    assert "Warning" not in output
    assert set(cmd.get_names("objects")) == {"traj", "density", "density_legend", "density_positive", "density_group"}
    values = read_grid(cmd, "density", {}).values
    assert 0 < cmd.isolevel("density_positive", query=1) < values.max()


def test_statistics_are_maps_of_their_own(cmd, do):
    cmd.fragment("ala")
    cmd.create("ala", "ala", 1, 2)
    cmd.translate([0.5, 0, 0], "ala", 2, camera=0)
    output = do("potential_average ala, spacing=2, medium=vacuum, stat=[mean,std], fit=none, quiet=0")
    assert "Error" not in output, output
    mean, deviation = (read_grid(cmd, name, {}).values for name in ("average", "average_std"))
    assert deviation.min() >= 0 > mean.min()
