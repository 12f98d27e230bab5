"""Texts of every kind of figure have at least 6 points in print, and none is cut off or over another."""

from types import SimpleNamespace

import numpy as np
import pytest
from drawn import make, protein_like
from drawn_texts import drawn_texts, faults
from matplotlib.figure import Figure

from vmdpotential.figures import page, surfaces
from vmdpotential.figures.slices import AtomsOnSlice
from vmdpotential.figures.style import figure_style
from vmdpotential.grid.planes import Plane
from vmdpotential.plugins.fields import figures as profiles
from vmdpotential.plugins.pairs import figures as pairs
from vmdpotential.plugins.titration.figures import titration_figure
from vmdpotential.surfaces import molecular_surface

X = np.linspace(0, 10, 50)
NAMES = [f"A/GLU{n}" for n in range(1, 31)]


def slices(width, *planes, profile=False):
    grid = make()
    return page.compose_slices([page.Panel(grid, Plane.parse(plane), "map") for plane in planes], contours=5,
                               profiles=[("map", grid)] if profile else [], drawn=AtomsOnSlice(protein_like()),
                               width=width).figure


def surface():
    mesh = molecular_surface(protein_like(), atoms="all", spacing=0.8)
    names = np.where(mesh.vertices[:, 0] > 5, "+1", "-1")
    return surfaces.figure(mesh, mesh.vertices[:, 0] - 5, ["x", "1,1,0", "short"], (-5, 5), "kT/e", patches=names)


KINDS = {
    "slice": lambda: slices(89, "z=15"),
    "narrow slice": lambda: slices(50, "y=15"),
    "panels": lambda: slices(89, "z=15", "x=5", "y=15"),
    "panels of a page with a profile": lambda: slices(183, "z=15", "x=5", "y=15", profile=True),
    "slice of a map": lambda: make().plot(plane="z=15", structure=protein_like(), contours=4).figure,
    "surface with patches": surface,
    "profile": lambda: profiles.profiles(X, ["total", "lipid", "water"], np.random.default_rng(1).normal(
        0, 1e-3, (3, 3, 50)), None, ["Charge density (e/Å³)", "Field (V/Å)", "Potential (V)"]),
    "fields over frames": lambda: profiles.series(X, "Frame", ["total"], 1e-3 * np.random.default_rng(1).normal(
        0, 1, (1, 2, 50)), np.full((1, 2, 50), 1e-3), ["Field along bonds (V/Å)", "Potential (V)"]),
    "energies of residues": lambda: pairs.residues(lambda ax: pairs.draw_residues(
        ax, NAMES, np.linspace(-200, 100, 30), np.full(30, 9.0), np.full(30, 20.0), "protein with water"), 30),
    "terms over frames": lambda: pairs.terms_of_frames(lambda ax: pairs.draw_terms(
        ax, range(50), dict.fromkeys(("van der Waals", "Coulomb", "polar", "surface", "total"), X), "a with b")),
    "distributions": lambda: pairs.distributions([SimpleNamespace(
        r=X, g=X, edges=np.append(X, 10.2), count=X**3)] * 4, [f"oxygen {n} with water" for n in range(4)]),
    "titration": lambda: titration_figure(X, np.tile(np.linspace(1, 0, 50)[:, None], 9), [
        "C-", "ASP", "GLU", "HIS", "N+", "CYS", "TYR", "LYS", "ARG"], X, 7.0, None),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_text_can_be_read_in_print(kind):
    figure = KINDS[kind]()
    assert len(drawn_texts(figure)) > 3
    assert not faults(figure)


def test_texts_keep_their_fonts_outside_of_the_style():
    """A program saves the figure of `grid.plot` with matplotlib's own settings; the layout is that of the style."""
    figure = KINDS["slice of a map"]()
    before = [box.bounds for _, box in drawn_texts(figure)]
    with figure_style():
        assert [box.bounds for _, box in drawn_texts(figure)] == before


def test_faults_are_found():
    figure = Figure(figsize=(183 / 25.4, 2))
    assert not faults(figure)
    for text in ((0.5, 0.5, "good"), (0.5, 0.5, "over it"), (1, 0.9, "outside of the figure")):
        figure.text(*text)
    figure.text(0.1, 0.1, "tiny", fontsize=5)
    assert len(faults(figure)) == 3
    figure.set_figwidth(2 * 183 / 25.4)  # what is printed at half its size
    assert sum("5.0 points" in fault for fault in faults(figure)) == 3
