"""The page: template, style, scripts and content put together into one file that needs no network."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from vmdpotential import __version__
from vmdpotential.errors import UsageError, VmdpotentialError
from vmdpotential.figures.colours import ISOVALUES, STOPS
from vmdpotential.grid.lattice import Grid
from vmdpotential.ions import PlacedIon, Placement
from vmdpotential.molecule.selection import is_ion, select
from vmdpotential.molecule.structure import Structure

from .atoms import structure_content, surface_content
from .content import ion_content, map_content, overlaps
from .saving import OneFile
from .script import embeddable, find_viewer_script

#: Our scripts, in the order they run; the first ones also run in a worker.
SCRIPTS = ("map.js", "surface.js", "work.js", "atoms.js", "scene.js", "pick.js", "measure.js", "panel.js")
IN_WORKER = 3

#: Most points of a map that the page keeps.
POINTS = 2_000_000

#: Kept of a map around the atoms shown, A.
MARGIN = 10.0


@dataclass(frozen=True)
class Page(OneFile):
    """A self-contained HTML page; in a notebook it shows itself.

    Parameters
    ----------
    html : str
        The whole page.
    title : str
    summary : dict
        What is in it: number of atoms and ions, and for each map its points, spacing and range.
    warnings : tuple of str
    height : int
        Of the frame in a notebook, pixels.
    """

    html: str = field(repr=False)  # a megabyte
    title: str
    summary: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    height: int = 620

    @property
    def content(self) -> bytes:  # type: ignore[override]  # made of the text
        """The file of the page."""
        return self.html.encode("utf-8")

    def _repr_html_(self) -> str:
        """Return a frame that holds the page and can reach nothing outside it."""
        return (
            f'<iframe title="{html.escape(self.title)}" sandbox="allow-scripts allow-downloads" '
            f'style="width:100%;height:{int(self.height)}px;border:1px solid #8888" '
            f'srcdoc="{html.escape(self.html)}"></iframe>'
        )


def view_page(
    structure: Structure,
    grids: Grid | Sequence[Grid] = (),
    ions: Placement | Sequence[PlacedIon] | Path | None = None,
    *,
    atoms: str = "solute",
    level: float | None = None,
    title: str = "",
    names: Sequence[str] = (),
    margin: float = MARGIN,
    points: int = POINTS,
    viewer_script: Path | None = None,
) -> Page:
    """Return a page that shows a structure, isosurfaces and slices of maps, and ions.

    Parameters
    ----------
    structure : Structure
    grids : Grid or sequence of Grid
    ions : Placement, sequence of PlacedIon or Path, optional
        With energies: of :func:`vmdpotential.place_ions`, or the table that ``ionize`` wrote. Ions
        of the structure are listed in any case.
    atoms : str
        Which atoms are shown, as a selection; waters only when asked for.
    level : float, optional
        Of the isosurfaces at first, in the map's unit; both signs are drawn.
    title : str
        The structure's own, or its file's name, unless given.
    names : sequence of str
        Of the maps.
    margin : float, A
        A map is kept around the atoms shown, with this margin.
    points : int
        A map with more points is thinned to this many.
    viewer_script : Path, optional
        3Dmol.js or the folder of its npm package; see :mod:`vmdpotential.plugins.web.script`.

    Raises
    ------
    UsageError
        For a selection without atoms or a level that is not positive.
    InputError
        For a map with values that are not numbers, or a table of ions that cannot be read.
    BackendError
        When 3Dmol.js is not found.
    """
    grids = [grids] if isinstance(grids, Grid) else list(grids)
    if level is not None and not 0 < abs(level) < np.inf:
        raise UsageError("level", "must be a number other than 0", value=f"{level:g}")
    names = [*names, *(f"map {n}" for n in range(len(names) + 1, len(grids) + 1))]
    viewer = find_viewer_script(viewer_script)
    chosen = select(structure, atoms)
    # ions are drawn from their list
    atoms_shown = chosen & ~is_ion(structure)
    around = structure.positions[atoms_shown if atoms_shown.any() else chosen]
    source = structure.sources[0] if structure.sources else ""
    title = title or " ".join(structure.title.split()) or Path(source).name or "Electrostatic potential"
    maps = [map_content(grid, name, around, margin, points) for grid, name in zip(grids, names, strict=True)]
    listed = ion_content(ions, structure)
    warnings = [
        f"{name}: does not cover the atoms shown; are map and structure in the same frame?"
        for grid, name in zip(grids, names, strict=True) if not overlaps(grid, around)
    ]
    surface, missing = None, ""
    electronic = bool(grids) and all(grid.unit in ISOVALUES for grid in grids)  # isosurfaces are what shows these
    if electronic and level is None:
        level = ISOVALUES[grids[0].unit]
    if grids and atoms_shown.any() and not electronic:
        try:
            surface = surface_content(structure, atoms_shown)
        except VmdpotentialError as error:  # the isosurfaces are there
            missing = f"no molecular surface: {error.text}"
            warnings.append(missing)
    content = {
        "title": title, "level": None if level is None else abs(level), "maps": maps, "ions": listed,
        "structure": structure_content(structure.take(atoms_shown)), "surface": surface, "missing": missing,
        "source": Path(source).name, "selection": atoms, "stops": list(STOPS),
    }
    keys = ("name", "unit", "medium", "shape", "spacing", "minimum", "maximum", "thinned", "precision")
    summary = {
        "atoms": int(atoms_shown.sum()), "ions": len(listed), "viewer": f"3Dmol.js {viewer.version}".strip(),
        "maps": [{key: item[key] for key in keys} for item in maps],
        "surface": None if surface is None else {"shape": surface["shape"], "spacing": surface["spacing"][0]},
    }
    licence = f"3Dmol.js {viewer.version}\n\n{viewer.licence}"
    return Page(_fill(title, content, viewer.text, licence), title, summary, tuple(warnings))


def _fill(title: str, content: dict[str, Any], viewer: str, licence: str) -> str:
    """Return the page; every text of the user's goes through an escape for where it is."""
    scripts = [viewer, *(embeddable(_resource(name)) for name in SCRIPTS)]
    hashes = " ".join(f"'sha256-{_digest(text)}'" for text in scripts)
    page = Template(_resource("page.html")).substitute(
        title=html.escape(title),
        # only these scripts run, and nothing is fetched: whatever a name holds, it stays text
        policy=f"default-src 'none'; script-src {hashes}; worker-src blob:; style-src 'unsafe-inline'; "
               "img-src data: blob:; base-uri 'none'; form-action 'none'",
        style=_resource("page.css"),
        content=_json(content),
        scripts="\n".join(f"<script{' data-worker' * (0 < n <= IN_WORKER)}>{text}</script>"
                          for n, text in enumerate(scripts)),
        licence=html.escape(licence),
        program=f"vmdpotential {__version__}",
    )
    return page.encode("utf-8", "backslashreplace").decode("utf-8")  # names of files may be any bytes


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _json(content: Any) -> str:
    """Return JSON that cannot end the element it is in."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text

