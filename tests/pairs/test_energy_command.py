"""The commands energy and forces: tables, frames of trajectories, and what is wrong."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from helpers import shell
from structure_files import MDA, TOOLS

from vmdpotential import registry
from vmdpotential.io.trajectories.frames import Trajectory
from vmdpotential.plugins.pairs.energy import interaction_energy
from vmdpotential.plugins.pairs.figures import draw_residues, residues

PEPTIDE = (TOOLS / "alanine-dipeptide-explicit" / "alanine-dipeptide.crd", "--topology",
           TOOLS / "alanine-dipeptide-explicit" / "alanine-dipeptide.prmtop")


def test_the_command(capsys, tmp_path):
    code, out, _ = shell(capsys, "energy", *PEPTIDE, "--between", "protein", "water", "--between", "protein", "solute",
                         "--cutoff", "9", "--json", "-o", tmp_path / "table.csv")
    assert code == 0
    data = json.loads(out)
    assert [(row["a"], row["b"]) for row in data["pairs"]] == [("protein", "water"), ("protein", "solute")]
    for row in data["pairs"]:
        assert row["total"] == pytest.approx(row["coulomb"] + row["lennard_jones"])
        assert row["total_std"] is None
    assert data["pairs"][0]["lennard_jones"] == pytest.approx(-9.857209, abs=1e-4)
    with open(tmp_path / "table.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert float(rows[0]["total"]) == pytest.approx(data["pairs"][0]["total"], rel=1e-6)
    code, out, _ = shell(capsys, "energy", *PEPTIDE, "--between", "protein", "water", "--cutoff", "9", "--json",
                         "--by", "residue", "--figure", tmp_path / "residues.svg")
    residues = json.loads(out)["pairs"]
    assert [row["a"] for row in residues] == ["ACE1", "ALA2", "NME3"]
    assert sum(row["total"] for row in residues) == pytest.approx(data["pairs"][0]["total"], abs=1e-6)
    assert "ALA2" in (tmp_path / "residues.svg").read_text()


def test_values_for_viewers_are_in_the_place_of_b_factors(peptide):
    report = registry.get("command", "energy")(structure=peptide, between=["protein", "water"], by="residue",
                                               electrostatics="rf")
    shown = report.objects["values"]
    assert shown.b_factors[0] == pytest.approx(report.data["pairs"][0]["total"])
    assert not shown.b_factors[22:].any()


def write_frames(peptide, path, count):
    import MDAnalysis

    universe = MDAnalysis.Universe.empty(len(peptide), trajectory=True)
    rng = np.random.default_rng(3)
    with MDAnalysis.Writer(str(path), len(peptide)) as writer:
        for _ in range(count):
            universe.atoms.positions = peptide.positions + rng.normal(0, 0.05, (len(peptide), 3))
            universe.dimensions = peptide.cell.parameters
            writer.write(universe.atoms)


def test_a_trajectory(peptide, capsys, tmp_path):
    path = tmp_path / "frames.dcd"
    write_frames(peptide, path, 5)
    code, out, err = shell(capsys, "energy", PEPTIDE[0], path, *PEPTIDE[1:], "--between", "protein", "water",
                           "--frames", "1::2", "--electrostatics", "rf", "--json", "-o", tmp_path / "table.csv")
    assert code == 0, err
    row, = json.loads(out)["pairs"]
    totals = []
    terms = peptide.topology.nonbonded()
    protein = np.arange(len(peptide)) < 22
    for frame in Trajectory(path, len(peptide), slice(1, None, 2)):
        result = interaction_energy(replace(peptide, positions=frame.positions, cell=frame.cell), terms, protein,
                                   ~protein, electrostatics="rf")
        totals.append(result.total.sum())
    assert len(totals) == json.loads(out)["frames"] == 2
    assert row["total"] == pytest.approx(np.mean(totals), rel=1e-5)
    assert row["total_std"] == pytest.approx(np.std(totals, ddof=1), rel=1e-3)
    with open(tmp_path / "table.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["frame"] for row in rows] == ["1", "3"]
    assert [float(row["total"]) for row in rows] == pytest.approx(totals, rel=1e-5)
    code, out, err = shell(capsys, "forces", PEPTIDE[0], path, *PEPTIDE[1:], "--between", "//*/2/CA", "water",
                           "--electrostatics", "rf", "--json", "-o", tmp_path / "forces.npz")
    assert code == 0, err
    with np.load(tmp_path / "forces.npz") as saved:
        assert saved["forces"].shape == (5, 1, 3)
        np.testing.assert_allclose(saved["forces"].mean(0), json.loads(out)["forces"])


@pytest.mark.parametrize(("words", "message"), [
    (("energy", *PEPTIDE, "--between", "protein"), "--between: two selections are needed"),
    (("energy", *PEPTIDE, "--between", "protein", "(XYZ)"), "--between '(XYZ)': selects no atoms"),
    (("energy", *PEPTIDE, "--between", "protein", "water", "--frames", "2:"), "--frames: a trajectory is needed"),
    (("energy", *PEPTIDE, "--between", "protein", "water", "--figure", "x.png"),
     "--figure: a figure is only drawn for residues"),
    (("energy", PEPTIDE[0], MDA / "adk_dims.dcd", *PEPTIDE[1:], "--between", "protein", "water"),
     "has 3341 atoms and the structure 2269"),
    (("energy", MDA / "adk_oplsaa.gro", "--between", "protein", "water"), "Lennard-Jones parameters"),
    (("forces", *PEPTIDE, "--between", "protein", "water", "-o", "forces.txt"), "name it .csv or .npz"),
    (("forces", *PEPTIDE, "--between", "protein", "water", "protein", "solute"), "exactly two selections are needed"),
])
def test_what_is_wrong_is_said_in_one_line(capsys, words, message):
    code, out, err = shell(capsys, *words)
    assert code == 2, err
    assert out == ""
    line, = err.strip().splitlines()[-1:]
    assert message in line


@pytest.mark.parametrize("count", [1, 8])
def test_the_legend_of_residues_is_neither_over_their_bars_nor_over_the_title(count):
    energies = np.linspace(-30.0, 20.0, count)
    figure = residues(lambda ax: draw_residues(ax, ["LEU"] * count, energies, energies / 2, title="A with B"), count)
    figure.canvas.draw()
    ax, = figure.axes
    legend = ax.get_legend().get_window_extent()
    assert not legend.overlaps(ax.get_window_extent())
    assert not legend.overlaps(ax.title.get_window_extent())
    assert figure.bbox.x0 <= legend.x0
    assert legend.x1 <= figure.bbox.x1
