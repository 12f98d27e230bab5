"""What objects print, and the pictures that notebooks show of them."""

import io
from dataclasses import replace

import numpy as np
import pytest
from drawn import make, protein_like
from helpers import water
from matplotlib.figure import Figure
from PIL import Image

import vmdpotential as vp
from vmdpotential.grid.lattice import Provenance
from vmdpotential.molecule.cell import Cell
from vmdpotential.parameters import Report
from vmdpotential.plugins.pairs.energy import Energies
from vmdpotential.surfaces import Surface

CELL = Cell.from_parameters(30, 40, 50, 90, 100, 90)


def bilayer_like():
    return replace(protein_like(), charges=np.linspace(-1, 0.5, 8), cell=CELL, sources=("/some/where/a.pdb", "a.psf"))


@pytest.mark.parametrize(("made", "words"), [
    (lambda: protein_like(), ["Structure(8 atoms in 4 residues", "no charges", "no cell"]),
    (lambda: bilayer_like(), ["of a.pdb, a.psf", "net charge -2 e", "cell 30 x 40 x 50 A, angles 90 100 90"]),
    (lambda: CELL, ["Cell(30 x 40 x 50 A"]),
    (lambda: make(provenance=Provenance(medium="vacuum", method="pme", boundary="open")),
     ["Grid(electrostatic potential, -", "kT/e, vacuum, pme, open; 25 x 31 x 41 points"]),
    (lambda: Energies(np.arange(2), np.ones(2), np.zeros(2)), ["Energies(2 atoms, 2.0000 Coulomb and 0.0000"]),
    (lambda: Surface(np.eye(3), np.array([[0, 1, 2]]), np.zeros(3, int), np.full(3, 0.3), "molecular",
                     np.zeros(3, bool)),
     ["Surface(molecular, 0.9 A^2, 3 vertices)"]),
    (lambda: Report(["first line", "second"], {}, {"grid": 1}), ["Report('first line', objects: grid)"]),
], ids=["structure", "charged", "cell", "grid", "energies", "surface", "report"])
def test_one_useful_line(made, words):
    line = repr(made())
    assert "\n" not in line
    assert len(line) < 250
    for word in words:
        assert word in line


def test_notebooks_show_a_small_picture():
    grid = make()
    for shown in (grid, Report([], {}, {"figure": Figure((1, 1))})):
        with Image.open(io.BytesIO(shown._repr_png_())) as picture:
            assert picture.format == "PNG"
            assert picture.width < 500
    assert len(grid._repr_png_()) < 100_000
    structure = protein_like()
    placed = vp.place_ions(water(12.0), ions={"SOD": 1, "CLA": 1}, from_solute=0.0, between=0.0)
    for shown in (structure, structure.take([0]), placed.original, placed):
        with Image.open(io.BytesIO(shown._repr_png_())) as picture:
            assert picture.format == "PNG"
            assert picture.width < 500
            colours = {tuple(pixel) for pixel in np.unique(np.asarray(picture)[..., :3].reshape(-1, 3), axis=0)}
            assert len(colours) > 2  # atoms were drawn
            if shown in (placed, placed.original):
                assert ((0x90, 0x20, 0xC8) in colours) == (shown is placed)  # sodium
    assert structure.take(np.zeros(0, int))._repr_png_() is None
    assert vp.thumbnail(structure) == structure._repr_png_()
    assert Report([], {})._repr_png_() is None
    assert vp.thumbnail(grid) == grid._repr_png_()
