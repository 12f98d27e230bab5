"""Radial distribution functions: ideal gas, lattice, MDAnalysis, and the command."""

import csv
import json

import MDAnalysis
import numpy as np
import pytest
from helpers import shell
from MDAnalysis.analysis.rdf import InterRDF
from structure_files import MDA, TOOLS

from vmdpotential import io
from vmdpotential.molecule.cell import Cell
from vmdpotential.plugins.pairs.rdf import PairHistogram, same_residue

WATER = TOOLS / "alanine-dipeptide-explicit"


@pytest.mark.parametrize("cell", [(30, 30, 30), (33, 30, 28, 70, 80, 95)])
def test_an_ideal_gas_has_none(cell):
    cell = Cell.from_parameters(*cell)
    positions = np.random.default_rng(1).random((4000, 3)) @ cell.vectors
    n = np.arange(4000)
    for a, b in ((n < 4000, n < 4000), (n < 2500, n > 1000)):
        histogram = PairHistogram(a, b, 20.0, 40)  # beyond half of the cell
        actual = histogram.distribution(histogram.count(positions, cell), [cell.volume])
        shells = 4 / 3 * np.pi * np.diff(actual.edges**3)
        noise = 1 / np.sqrt(histogram.pairs / 2 * shells / cell.volume)
        assert (np.abs(actual.g - 1) < 5 * noise)[5:].all()
        density = b.sum() / cell.volume
        assert actual.count[-1] == pytest.approx(density * 4 / 3 * np.pi * 20**3, rel=0.01)


def test_as_mdanalysis_has_it():
    structure = io.read_structure(WATER / "alanine-dipeptide.crd", WATER / "alanine-dipeptide.prmtop")
    universe = MDAnalysis.Universe.empty(len(structure), trajectory=True)
    universe.atoms.positions = structure.positions
    universe.dimensions = structure.cell.parameters
    oxygen = structure.atom_names == "O"
    hydrogen = structure.atom_names == "H1"
    for a, b, block in ((oxygen, oxygen, (1, 1)), (oxygen, hydrogen, None)):
        pair = universe.atoms[a], universe.atoms[b]
        theirs = InterRDF(*pair, nbins=75, range=(0.0, 10.0), exclusion_block=block).run()
        histogram = PairHistogram(a, b, 10.0, 75)
        counts = histogram.count(universe.atoms.positions.astype(float), structure.cell)
        actual = histogram.distribution(counts, [structure.cell.volume])
        pairs = a.sum() * b.sum()
        # of N atoms with themselves they normalise by N^2
        np.testing.assert_allclose(actual.g, theirs.results.rdf * pairs / histogram.pairs, rtol=0.02, atol=0.02)
        assert counts.sum() == pytest.approx(theirs.results.count.sum(), abs=3)  # float32 at the ends of ranges


def test_overlapping_selections_and_what_is_left_out():
    cell = Cell.from_parameters(12, 13, 14)
    rng = np.random.default_rng(2)
    positions = rng.random((60, 3)) * 12
    n = np.arange(60)
    a, b = n < 40, n >= 25
    left_out = same_residue(n // 3, a | b)
    assert len(left_out) == 60
    counts = PairHistogram(a, b, 5.0, 10, left_out).count(positions, cell)
    expected = np.zeros(10, int)
    for i in np.flatnonzero(a):
        for j in np.flatnonzero(b):
            r = np.linalg.norm(cell.minimum_image(positions[i] - positions[j]))
            if i != j and r < 5 and i // 3 != j // 3:
                expected[int(r * 2)] += 1
    np.testing.assert_array_equal(counts, expected)


def test_the_command(capsys, tmp_path):
    pdb = WATER / "alanine-dipeptide.pdb"
    options = ("--between", "(HOH)/O", "(HOH)/O", "--between", "(HOH)/O", "(HOH)/H1", "--range", "8", "--bins", "80",
               "--cell", "32.853,32.862,31.855")
    options = tuple(word.replace("(HOH)", "//*/(HOH)") for word in options)
    code, out, err = shell(capsys, "rdf", pdb, *options, "--json", "-o", tmp_path / "rdf.csv", "--figure",
                         tmp_path / "rdf.png")
    assert code == 0, err
    data = json.loads(out)
    assert len(data["r"]) == 80
    assert [len(curve) for curve in data["g"]] == [len(curve) for curve in data["count"]] == [80, 80]
    assert data["count"][1][15] == pytest.approx(1, abs=0.01)  # the atom's own hydrogen
    assert data["r"][int(np.argmax(data["g"][0]))] == pytest.approx(2.75, abs=0.15)
    with open(tmp_path / "rdf.csv", newline="") as stream:
        rows = list(csv.reader(stream))
    assert len(rows) == 81
    assert float(rows[50][1]) == pytest.approx(data["g"][0][49], rel=1e-6)
    assert (tmp_path / "rdf.png").read_bytes()[:4] == b"\x89PNG"
    code, out, _ = shell(capsys, "rdf", pdb, *options, "--json", "--exclude", "residue")
    again = json.loads(out)
    assert again["count"][1][15] == 0
    assert again["g"][0] == data["g"][0]


@pytest.mark.parametrize(("words", "message"), [
    (("--between", "water"), "--between: two selections"),
    (("--between", "water", "water", "--exclude", "bonded"), "--exclude bonded: bonds are needed"),
    (("--between", "water", "water", "--figure", "x.txt"), "figure format"),
])
def test_what_is_wrong_is_said_in_one_line(capsys, words, message):
    code, out, err = shell(capsys, "rdf", MDA / "adk_oplsaa.gro", *words)
    assert (code, out) == (2, "")
    assert message in err.strip().splitlines()[-1]
