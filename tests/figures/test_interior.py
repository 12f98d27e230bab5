"""The interior of molecular surfaces on slices, compared with spheres."""

from dataclasses import replace

import numpy as np
import pytest
from drawn import axes, make

from vmdpotential.figures import slices
from vmdpotential.figures.page import Panel, compose_slices
from vmdpotential.grid.lattice import Provenance
from vmdpotential.grid.planes import Plane
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.elements import van_der_waals_radii
from vmdpotential.molecule.structure import Structure

RADIUS = float(van_der_waals_radii(np.array(["C"]))[0])
CENTRE = np.array([9.0, 15.0, 16.0])


def one_atom(**changes):
    names = np.array(["C"])
    return Structure(CENTRE[None], names, np.array(["UNK"]), np.array([1]), np.array([0]), elements=names, **changes)


def of_kind(ax, name):
    return [item for item in ax.collections if type(item).__name__ == name]


@pytest.mark.parametrize("height", [0.0, 1.0])
def test_the_outline_is_the_circle_of_the_atom(height):
    ax = axes()
    slices.draw_slice(ax, make(), Plane.parse(f"z={CENTRE[2] + height:g}"), structure=one_atom(), interior="outlined")
    outline, = of_kind(ax, "QuadContourSet")
    points = np.concatenate([path.vertices for path in outline.get_paths()])
    assert np.hypot(*(points - CENTRE[:2]).T) == pytest.approx(np.sqrt(RADIUS**2 - height**2), abs=0.12)


def test_an_atom_off_the_plane_has_no_outline():
    ax = axes()
    slices.draw_slice(ax, make(), "z=20", structure=one_atom(), interior="masked", contours=4)
    assert len(of_kind(ax, "QuadContourSet")) == 1  # the contours


def test_a_masked_interior_has_no_values_contours_or_colour():
    """The values inside are so large that they would set the range."""
    grid = make()
    near = np.linalg.norm(grid.lattice.points(np.moveaxis(np.indices(grid.values.shape), 0, -1)) - CENTRE, axis=-1)
    grid = grid.with_values(np.where(near < 1.2, 5000.0, grid.values))
    pages = {kind: compose_slices([Panel(grid, Plane.parse("z=16"))], contours=6,
                                  drawn=slices.AtomsOnSlice(one_atom(), 0.0, interior=kind))
             for kind in slices.INTERIOR_STYLES}
    plain = compose_slices([Panel(make(), Plane.parse("z=16"))])
    assert pages["masked"].ranges == plain.ranges
    ends = {kind: page.figure.axes[-1]._colorbar.extend for kind, page in {**pages, "plain": plain}.items()}
    assert ends["masked"] == ends["plain"] != ends["shown"]
    values = Panel(grid, Plane.parse("z=16")).values(slices.AtomsOnSlice(one_atom(), interior="masked"))
    assert np.nanmax(values) < 100
    assert 0 < np.isnan(values).sum() * np.prod(grid.lattice.spacing[:2]) < 1.5 * np.pi * RADIUS**2
    kinds = {kind: len(of_kind(page.axes[0], "QuadContourSet")) for kind, page in pages.items()}
    assert kinds == {"shown": 1, "outlined": 2, "masked": 3}
    lines = of_kind(pages["masked"].axes[0], "QuadContourSet")[-1]
    points = np.concatenate([path.vertices for path in lines.get_paths()])
    assert np.hypot(*(points - CENTRE[:2]).T).min() > RADIUS - 0.2


def test_periodic_images_have_outlines_too():
    grid = make()
    grid = replace(grid, provenance=Provenance(boundary="periodic"))
    structure = one_atom(cell=Cell(np.diag([10.0, 100.0, 100.0])))
    ax = axes()
    slices.draw_slice(ax, grid, "z=16", structure=structure, interior="outlined")
    points = np.concatenate([path.vertices for path in of_kind(ax, "QuadContourSet")[0].get_paths()])
    assert {round(x) for x in ((points[:, 0] - CENTRE[0]) / 10).tolist()} == {-1, 0, 1}
