"""Scenes of Mol* (MolViewSpec): archives with the structure, maps, and instructions to draw them."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import extras
from vmdpotential.errors import BackendError, UsageError
from vmdpotential.figures.colours import ISOVALUES, ValueRange, map_meaning, reading_distance, rgb_of, sign_colour
from vmdpotential.figures.outside import outside_molecule
from vmdpotential.frontend import adapters
from vmdpotential.grid.lattice import Grid
from vmdpotential.grid.planes import Plane
from vmdpotential.io import write_structure
from vmdpotential.io.maps import write_map
from vmdpotential.molecule.selection import is_ion, is_water, select
from vmdpotential.molecule.structure import Structure
from vmdpotential.surfaces import molecular_surface

from .content import shown_part
from .document import Document, title_of

#: Representations of the components that Mol* distinguishes in a structure.
DRAWN = {"polymer": "cartoon", "ligand": "ball_and_stick", "branched": "ball_and_stick", "ion": "spacefill",
         "water": "ball_and_stick"}

#: Fraction of a map's values that the isosurfaces enclose by default.
ENCLOSED = 0.1

OPACITY = 0.5

#: Colours of the molecular surface.
STEPS = 64

#: Number of atoms above which the triangles of the surface become larger.
ATOMS = 10_000

log = logging.getLogger(__name__)


class Scene(Document):
    """A scene of Mol* as the content of an .mvsx file."""


def view_scene(structure: Structure, grids: Sequence[Grid], names: Sequence[str], *, atoms: str = "solute",
               level: float | None = None, title: str = "", margin: float = 10.0, points: int = 2_000_000,
               cavities: bool = False, planes: Sequence[Plane] = ()) -> Scene:
    """Return a scene with the chosen atoms, isosurfaces of both signs of maps, and planes across the first map.

    Parameters are those of `view_page`.

    Raises
    ------
    BackendError
        When molviewspec is not installed.
    InputError
        For a map with values that are not numbers.
    UsageError
        For a selection without atoms, or a plane outside the map.
    """
    specification = extras.load_optional("molviewspec", "scenes of Mol*", "scenes")
    chosen = structure.take(select(structure, atoms))
    builder = specification.create_builder()
    drawn = builder.download(url="structure.cif").parse(format="mmcif").model_structure()
    for selector, kind in DRAWN.items():
        drawn.component(selector=selector).representation(type=kind)
    maps: list[dict[str, Any]] = []
    legend, described = "", list[str]()
    assets = {"structure.cif": _file(write_structure, chosen, ".cif")}
    for number, (grid, name) in enumerate(zip(grids, names, strict=True), 1):
        whole = shown_part(grid, name, chosen.positions, margin, points)
        part = outside_molecule(whole, chosen)
        assets[f"map_{number}.map"] = _file(write_map, part, ".map")
        shown = level or ISOVALUES.get(grid.unit) or float(np.quantile(np.abs(part.values), 1 - ENCLOSED))
        span = adapters.surface_range(grid, chosen)
        if number == 1 and grid.unit not in ISOVALUES and (dry := ~is_water(chosen) & ~is_ion(chosen)).any():
            _add_surface(builder, chosen.take(dry), grid, span, cavities)
            legend = f"Molecular surface: {name}, {adapters.legend(grid, span)} (red, white, blue)."
        for plane in planes if number == 1 else ():
            _add_plane(builder, whole, plane, span)
            described.append(f"Plane {plane.label}: {name}, {adapters.legend(grid, span)} (red, white, blue).")
        volume = builder.download(url=f"map_{number}.map").parse(format="map").volume()
        low, high = float(whole.values.min()), float(whole.values.max())
        for value in (shown, -shown):
            if low < value < high:
                volume.representation(type="isosurface", absolute_isovalue=value).color(
                    color=sign_colour(value)).opacity(opacity=OPACITY)
        maps.append({"name": name, "unit": grid.unit, "medium": grid.provenance.medium,
                     "shape": list(part.lattice.shape), "spacing": part.lattice.spacing.tolist(), "minimum": low,
                     "maximum": high, "thinned": part.lattice.spacing.tolist() != grid.lattice.spacing.tolist(),
                     "level": shown})
        described.append(f"Isosurfaces outside the molecule: {name} at {shown:.3g} (blue) and {-shown:.3g} (red) "
                         f"{map_meaning(grid)}.")
    title = title or title_of(structure, "structure")
    archive = specification.MVSX(data=builder.get_state(
        title=": ".join(filter(None, (title, *(map_meaning(grid) for grid in grids[:1])))),
        description="\n\n".join(filter(None, (legend, *described)))), assets=assets)
    summary = {"atoms": len(chosen), "ions": 0, "viewer": "Mol*", "maps": maps, "surface": None}
    return Scene(content=archive.dumps(), title=title, summary=summary)


def _add_surface(builder: Any, structure: Structure, grid: Grid, span: ValueRange, cavities: bool) -> None:
    """Add the molecular surface, each triangle in the colour of the map there, which its tooltip states as a value.

    It is left out without the package that makes surfaces.
    """
    try:
        surface = molecular_surface(structure, atoms="all", spacing=max(0.5, (len(structure) / ATOMS) ** 0.5 * 0.5),
                                    cavities=cavities)
    except BackendError as error:
        log.warning("the scene has no molecular surface: %s", error.text)
        return
    triangles = surface.triangles
    values = surface.sample(grid, reading_distance(grid))[triangles].mean(1)
    _add_mesh(builder, surface.vertices, triangles, values, grid.unit, span)


def _add_plane(builder: Any, grid: Grid, plane: Plane, span: ValueRange) -> None:
    """Add a plane across an axis, of a square between each four nodes, coloured as the surface is."""
    lattice, axis = grid.lattice, plane.axis
    assert axis is not None  # the option accepts only x=, y= and z=
    position = float(plane.point[axis])
    if not lattice.origin[axis] <= position <= lattice.last[axis]:
        raise UsageError("plane", f"the map reaches from {lattice.origin[axis]:g} to {lattice.last[axis]:g} A",
                         value=f"{'xyz'[axis]}={position:g}")
    shape = [1 if d == axis else n for d, n in enumerate(lattice.shape)]
    vertices = lattice.points(np.indices(shape).reshape(3, -1).T)
    vertices[:, axis] = position
    rows = np.arange(len(vertices)).reshape([n for d, n in enumerate(shape) if d != axis])
    a, b, c, d = (part.ravel() for part in (rows[:-1, :-1], rows[1:, :-1], rows[1:, 1:], rows[:-1, 1:]))
    triangles = np.stack([a, b, c, a, c, d], 1).reshape(-1, 3)
    values = grid.sample(vertices)[np.stack([a, b, c, d])].mean(0)
    _add_mesh(builder, vertices, triangles, np.repeat(values, 2), grid.unit, span)


def _add_mesh(builder: Any, vertices: NDArray[np.float64], triangles: NDArray[np.int64], values: NDArray[np.float64],
              unit: str, span: ValueRange) -> None:
    """Add triangles (T, 3) in the colours of their values (T,), which tooltips state."""
    step = (span.high - span.low) / STEPS
    known = np.isfinite(values)
    group = np.where(known, np.rint((np.clip(np.where(known, values, 0), *span) - span.low) / step), -1).astype(int)
    used = np.unique(group)
    middle = np.where(used < 0, np.nan, span.low + used * step)
    shades = ["#" + bytes(rgb).hex() for rgb in rgb_of(middle, span)]
    beyond = {0: " or less", STEPS: " or more"}
    builder.primitives().mesh(
        vertices=np.round(vertices, 3).ravel().tolist(), indices=triangles.ravel().tolist(),
        triangle_groups=group.tolist(), group_colors=dict(zip(used.tolist(), shades, strict=True)),
        group_tooltips={number: "outside the map" if number < 0 else f"{value:.3g} {unit}{beyond.get(number, '')}"
                        for number, value in zip(used.tolist(), middle.tolist(), strict=True)})


def _file(write: Any, content: Structure | Grid, suffix: str) -> bytes:
    """Return the bytes that a function writes to a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{suffix}"
        write(content, path)
        return path.read_bytes()
