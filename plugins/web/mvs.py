"""Scenes of Mol* (MolViewSpec): archives with the structure, maps, and instructions to draw them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vmdpotential import extras
from vmdpotential.figures.colours import ISOVALUES, sign_colour
from vmdpotential.grid.lattice import Grid
from vmdpotential.io import write_structure
from vmdpotential.io.maps import write_map
from vmdpotential.molecule.selection import select
from vmdpotential.molecule.structure import Structure

from .content import shown_part
from .document import Document

#: Representations of the components that Mol* distinguishes in a structure.
DRAWN = {"polymer": "cartoon", "ligand": "ball_and_stick", "branched": "ball_and_stick", "ion": "spacefill",
         "water": "ball_and_stick"}

#: Fraction of a map's values that the isosurfaces enclose by default.
ENCLOSED = 0.1

OPACITY = 0.5


class Scene(Document):
    """A scene of Mol* as the content of an .mvsx file."""


def view_scene(structure: Structure, grids: Sequence[Grid], names: Sequence[str], *, atoms: str = "solute",
               level: float | None = None, title: str = "", margin: float = 10.0, points: int = 2_000_000) -> Scene:
    """Return a scene with the chosen atoms and isosurfaces of both signs of maps; parameters as of `view_page`.

    Raises
    ------
    BackendError
        When molviewspec is not installed.
    InputError
        For a map with values that are not numbers.
    UsageError
        For a selection without atoms.
    """
    specification = extras.load("molviewspec", "scenes of Mol*", "scenes")
    chosen = structure.take(select(structure, atoms))
    builder = specification.create_builder()
    drawn = builder.download(url="structure.cif").parse(format="mmcif").model_structure()
    for selector, kind in DRAWN.items():
        drawn.component(selector=selector).representation(type=kind)
    maps = []
    assets = {"structure.cif": _file(write_structure, chosen, ".cif")}
    for number, (grid, name) in enumerate(zip(grids, names, strict=True), 1):
        part = shown_part(grid, name, chosen.positions, margin, points)
        assets[f"map_{number}.map"] = _file(write_map, part, ".map")
        shown = level or ISOVALUES.get(grid.unit) or float(np.quantile(np.abs(part.values), 1 - ENCLOSED))
        volume = builder.download(url=f"map_{number}.map").parse(format="map").volume()
        low, high = float(part.values.min()), float(part.values.max())
        for value in (shown, -shown):
            if low < value < high:
                volume.representation(type="isosurface", absolute_isovalue=value).color(
                    color=sign_colour(value)).opacity(opacity=OPACITY)
        maps.append({"name": name, "unit": grid.unit, "medium": grid.provenance.medium,
                     "shape": list(part.lattice.shape), "spacing": part.lattice.spacing.tolist(), "minimum": low,
                     "maximum": high, "thinned": part.lattice.spacing.tolist() != grid.lattice.spacing.tolist(),
                     "level": shown})
    title = title or " ".join(structure.title.split()) or Path(next(iter(structure.sources), "structure")).name
    archive = specification.MVSX(data=builder.get_state(title=title), assets=assets)
    summary = {"atoms": len(chosen), "ions": 0, "viewer": "Mol*", "maps": maps, "surface": None}
    return Scene(content=archive.dumps(), title=title, summary=summary)


def _file(write: Any, content: Structure | Grid, suffix: str) -> bytes:
    """Return the bytes that a function writes to a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{suffix}"
        write(content, path)
        return path.read_bytes()
