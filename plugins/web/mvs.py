"""Scenes of Mol* (MolViewSpec): archives with the structure, maps, and instructions to draw them."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import extras
from vmdpotential.errors import UsageError
from vmdpotential.figures.colours import (
    COLOUR_STOPS,
    ISOVALUE_OF_UNIT,
    ValueRange,
    map_meaning,
    reading_distance,
    rgb_of,
    sign_colour,
)
from vmdpotential.grid.lattice import Grid
from vmdpotential.grid.planes import Plane
from vmdpotential.io import write_structure
from vmdpotential.io.maps import write_map
from vmdpotential.molecule.selection import is_ion, select
from vmdpotential.molecule.structure import Structure
from vmdpotential.surfaces.drawn import DrawnSurface, patch_labels, patch_values
from vmdpotential.surfaces.patches import MIN_NAMED

from ..ions.placement import PlacedIon, Placement
from ..viewers import map_surfaces
from ..viewers.outside import outside_molecule
from .coloured import coloured_surface, dry_part, patches_of
from .content import ion_content, shown_part
from .document import Document, ShownOptions, title_of

#: Representations of the components that Mol* distinguishes in a structure; ions are drawn from their list.
DRAWN = {"polymer": "cartoon", "ligand": "ball_and_stick", "branched": "ball_and_stick", "water": "ball_and_stick"}

#: Fraction of a map's values that the isosurfaces enclose by default.
ENCLOSED = 0.1

OPACITY = 0.5

#: Colours of a surface or plane: two neighbours differ by less than half a percent of the range.
STEPS = 256

#: Radius of the spheres of ions, A.
ION = 1.4

#: Size of the names of patches, A.
LABEL = 5.0

#: Milliseconds for which the player of Mol* shows a scene, and in which it moves to the next.
SHOWN, MOVED = 5000, 500


class Scene(Document):
    """A scene of Mol* as the content of an .mvsx file."""


def view_scene(structure: Structure, grids: Sequence[Grid], names: Sequence[str],
               ions: Placement | Sequence[PlacedIon] | Path | None = None,
               options: ShownOptions | None = None) -> Scene:
    """Return scenes of each map: its colours on the molecular surface and on planes, and isosurfaces of both signs.

    Each has the chosen atoms and the ions, and a description with the key of the colours.

    Raises
    ------
    BackendError
        When molviewspec is not installed, or for patches the package that makes surfaces.
    InputError
        For a map with values that are not numbers, or a table of ions that cannot be read.
    UsageError
        For a selection without atoms, a plane outside the map, or planes or patches that nothing can colour.
    """
    specification = extras.load_optional("molviewspec", "scenes of Mol*", "scenes")
    options = options or ShownOptions()
    shown, planes = select(structure, options.atoms), [Plane.parse(text) for text in options.plane]
    chosen, listed = structure.take(shown), ion_content(ions, structure)
    covered = shown & ~is_ion(structure)
    around = structure.positions[covered if covered.any() else shown]
    dry = dry_part(chosen)
    surface = coloured_surface(dry, grids, options.cavities, options.patches)
    scenes: list[Any] = []
    maps: list[dict[str, Any]] = []
    levels: dict[str, float] = {}  # one for all maps of a unit, so that isosurfaces of scenes can be compared
    assets = {"structure.cif": _file(write_structure, chosen, ".cif")}

    def new_scene(focused: bool = True) -> Any:
        return _structure_and_ions(specification.create_builder(), listed, focused)

    def add_scene(builder: Any, what: str, description: str) -> None:
        scenes.append(builder.get_snapshot(title=what, description=description, linger_duration_ms=SHOWN,
                                           transition_duration_ms=MOVED))

    for number, (grid, name) in enumerate(zip(grids, names, strict=True), 1):
        whole = shown_part(grid, name, around, options.margin, options.points)
        part = outside_molecule(whole, chosen)
        assets[f"map_{number}.map"] = _file(write_map, part, ".map")
        span = map_surfaces.surface_range(grid, chosen)
        if surface is not None and grid.unit not in ISOVALUE_OF_UNIT:
            scene = new_scene()
            values = surface.sample(grid, reading_distance(grid))[surface.triangles].mean(1)
            _add_mesh(scene, surface.vertices, surface.triangles, values, grid.unit, span)
            add_scene(scene, f"Surface: {name}", _described("Molecular surface", name, map_meaning(grid), span))
            if options.patches is not None:
                scene = new_scene()
                found, places = patches_of(surface, dry, grid, options.patches)
                _add_drawn(scene, DrawnSurface(surface, patch_values(found, places), span, grid.unit, map_meaning(grid),
                                               patch_labels(surface, found, places, MIN_NAMED)), "in no patch")
                above = (f"Patches of at least {options.patches:g} {grid.unit}, and of at most {-options.patches:g} "
                         f"{grid.unit}").strip()
                add_scene(scene, f"Patches: {name}", _described(f"{above}, in the colours of their means", name,
                                                                map_meaning(grid), span))
        if planes:
            scene = new_scene(focused=False)
            for plane in planes:
                _add_plane(scene, whole, plane, span)
            labels = ", ".join(plane.label for plane in planes)
            add_scene(scene, f"Planes: {name}", _described(f"Plane {labels}", name, map_meaning(grid), span))
        scene = new_scene()
        value = options.level or ISOVALUE_OF_UNIT.get(grid.unit) or levels.setdefault(
            grid.unit, float(np.quantile(np.abs(part.values), 1 - ENCLOSED)))
        low, high = float(whole.values.min()), float(whole.values.max())
        volume = scene.download(url=f"map_{number}.map").parse(format="map").volume()
        for signed in (value, -value):
            if low < signed < high:
                volume.representation(type="isosurface", absolute_isovalue=signed).color(
                    color=sign_colour(signed)).opacity(opacity=OPACITY)
        add_scene(scene, f"Isosurfaces: {name}",
                  f"**{_plain(name)}**: isosurfaces outside the molecule at {value:.3g} ({_swatch(sign_colour(1))}) "
                  f"and {-value:.3g} ({_swatch(sign_colour(-1))}) {_plain(map_meaning(grid))}")
        maps.append({"name": name, "unit": grid.unit, "medium": grid.provenance.medium,
                     "shape": list(part.lattice.shape), "spacing": part.lattice.spacing.tolist(), "minimum": low,
                     "maximum": high, "thinned": part.lattice.spacing.tolist() != grid.lattice.spacing.tolist(),
                     "level": value})
    if (faces := options.faces) is not None:
        scene = specification.create_builder()  # without the structure, to which they are added
        _add_drawn(scene, faces.drawn, "beside the face")
        add_scene(scene, f"Faces: {faces.title}", _described(faces.text, faces.title, faces.drawn.meaning,
                                                             ValueRange(*faces.drawn.span)))
    if not scenes:
        add_scene(new_scene(), "Structure", "")
    title = options.title or title_of(structure, "structure")
    archive = specification.MVSX(assets=assets, data=specification.States(snapshots=scenes, metadata=(
        specification.GlobalMetadata(title=": ".join(filter(None, (title, *map(map_meaning, grids[:1])))),
                                     description="\n\n".join(item.metadata.description for item in scenes)))))
    summary = {"atoms": len(chosen), "ions": len(listed), "viewer": "Mol*", "maps": maps, "surface": None}
    return Scene(content=archive.dumps(), title=title, summary=summary)


def _structure_and_ions(builder: Any, ions: Sequence[dict[str, Any]], focused: bool) -> Any:
    """Add the structure, at which the camera looks if asked for, and ions, which tooltips name; return the builder."""
    drawn = builder.download(url="structure.cif").parse(format="mmcif").model_structure()
    for selector, kind in DRAWN.items():
        drawn.component(selector=selector).representation(type=kind)
    if focused:
        drawn.component(selector="all").focus()
    if ions:
        spheres = builder.primitives()
        for ion in ions:
            energy = "" if ion["energy"] is None else f", {ion['energy']:.4g} kcal/mol"
            spheres.sphere(center=ion["position"], radius=ION, color=ion["colour"],
                           tooltip=f"{ion['name']} {ion['number']}, {ion['charge']:+d} e{energy}")
    return builder


def _add_drawn(builder: Any, drawn: DrawnSurface, grey: str) -> None:
    """Add a surface with its labels; tooltips say what is grey."""
    corners = drawn.surface.triangles
    span = ValueRange(*drawn.span)
    _add_mesh(builder, drawn.surface.vertices, corners, drawn.values[corners].mean(1), drawn.unit, span, grey)
    if drawn.labels:
        names = builder.primitives(label_color="black")
        for text, place in drawn.labels:
            names.label(position=place.round(3).tolist(), text=text, label_size=LABEL, label_offset=LABEL)


def _described(what: str, name: str, meaning: str, span: ValueRange) -> str:
    """Return the description of a coloured object with the key of its colours, which Mol* draws."""
    bar = f"![](!color-palette-colors={','.join(COLOUR_STOPS)}&color-palette-width=160px&color-palette-height=1em)"
    return f"**{_plain(name)}**: {what}\n\n{span.low:g} {bar} {span.high:g} {_plain(meaning)}"


def _swatch(colour: str) -> str:
    return f"![](!color-swatch={colour})"


def _plain(text: str) -> str:
    """Return Markdown that shows a text as it is."""
    return re.sub(r"([\\`*_{}\[\]()#!|<>~])", r"\\\1", text)


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
              unit: str, span: ValueRange, grey: str = "outside the map") -> None:
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
        group_tooltips={number: grey if number < 0 else f"{value:.3g} {unit}{beyond.get(number, '')}"
                        for number, value in zip(used.tolist(), middle.tolist(), strict=True)})


def _file(write: Any, content: Structure | Grid, suffix: str) -> bytes:
    """Return the bytes that a function writes to a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{suffix}"
        write(content, path)
        return path.read_bytes()
