"""Assembly of the page from template, style, scripts and content, in one file that needs no network."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from vmdpotential import __version__
from vmdpotential.errors import VmdpotentialError
from vmdpotential.figures.colours import COLOUR_STOPS, ISOVALUE_OF_UNIT
from vmdpotential.grid.lattice import Grid
from vmdpotential.molecule.conversions import StructureLike, as_structure
from vmdpotential.molecule.selection import is_ion, select
from vmdpotential.parameters import change_options, takes_fields

from ..ions.placement import PlacedIon, Placement
from ..viewers import map_surfaces
from .atoms import structure_content, surface_content, surface_depth
from .coloured import face_content, patches_content
from .content import ion_content, map_content, overlaps, values_on_surface
from .document import Document, ShownOptions, title_of
from .script import embeddable, find_viewer_script

#: Names of our scripts, in the order of execution, and how many of them also run in a worker.
SCRIPTS = ("map.js", "surface.js", "work.js", "atoms.js", "scene.js", "pick.js", "measure.js", "panel.js")
IN_WORKER = 3


@dataclass(frozen=True, kw_only=True)
class Page(Document):
    """A self-contained HTML page, which notebooks display in a frame of `height` pixels."""

    height: int = 620

    @property
    def html(self) -> str:
        """Text of the page."""
        return self.content.decode("utf-8")

    def _repr_html_(self) -> str:
        """Return a frame with the page, which is isolated from the notebook."""
        return (
            f'<iframe title="{html.escape(self.title)}" sandbox="allow-scripts allow-downloads" '
            f'style="width:100%;height:{int(self.height)}px;border:1px solid #8888" '
            f'srcdoc="{html.escape(self.html)}"></iframe>'
        )


@takes_fields(ShownOptions)
def view_page(
    structure: StructureLike,
    grids: Grid | Sequence[Grid] = (),
    ions: Placement | Sequence[PlacedIon] | Path | None = None,
    options: ShownOptions | None = None,
    *,
    names: Sequence[str] = (),
    viewer_script: Path | None = None,
    **keywords: Any,
) -> Page:
    """Return a page that shows a structure, isosurfaces and slices of maps, and ions.

    Parameters
    ----------
    structure : Structure
        The structure to show, also an object of another package or a result of ``prepare``.
    grids : Grid or sequence of Grid
        The maps.
    ions : Placement, sequence of PlacedIon or Path, optional
        Ions with energies, from :func:`vmdpotential.place_ions` or the table that ``ionize`` wrote. Ions of the
        structure are listed in any case.
    options : ShownOptions, optional
        What is shown.
    names : sequence of str
        Names of the maps.
    viewer_script : Path, optional
        3Dmol.js or the folder of its npm package; see :mod:`vmdpotential.plugins.web.script`.
    **keywords

    Raises
    ------
    UsageError
        For a selection without atoms, a value outside of its limits, or patches without a map that colours the surface.
    InputError
        For a map with values that are not numbers, or a table of ions that cannot be read.
    BackendError
        When 3Dmol.js is not found, or for patches the package that makes surfaces.
    """
    asked, structure = change_options(ShownOptions, options, keywords), as_structure(structure)
    level, patches, cavities = asked.level, asked.patches, asked.cavities
    grids = [grids] if isinstance(grids, Grid) else list(grids)
    names = [*names, *(f"map {n}" for n in range(len(names) + 1, len(grids) + 1))]
    viewer = find_viewer_script(viewer_script)
    chosen = select(structure, asked.atoms)
    # ions are drawn from their list
    atoms_shown = chosen & ~is_ion(structure)
    around = structure.positions[atoms_shown if atoms_shown.any() else chosen]
    grids = [grid.covering(around, map_surfaces.BESIDE) for grid in grids]
    source = structure.sources[0] if structure.sources else ""
    title = asked.title or title_of(structure, "Electrostatic potential")
    maps = [map_content(grid, name, around, asked.margin, asked.points)
            for grid, name in zip(grids, names, strict=True)]
    listed = ion_content(ions, structure)
    warnings = [
        f"{name}: does not cover the atoms shown; are map and structure in the same frame?"
        for grid, name in zip(grids, names, strict=True) if not overlaps(grid, around)
    ]
    shown = structure.take(atoms_shown)
    patched = None if patches is None else patches_content(shown, grids, patches, cavities)
    surface, missing = None, ""
    electronic = bool(grids) and all(grid.unit in ISOVALUE_OF_UNIT for grid in grids)  # shown by isosurfaces only
    if electronic and level is None:
        level = ISOVALUE_OF_UNIT[grids[0].unit]
    if grids and atoms_shown.any() and not electronic:
        try:
            depth = surface_depth(structure, atoms_shown, cavities)
            surface = surface_content(depth)
            for item, grid in zip(maps, grids, strict=True):
                if item["thinned"]:
                    item["surface"] = values_on_surface(grid, depth)
        except VmdpotentialError as error:  # the page has isosurfaces instead
            missing = f"no molecular surface: {error.text}"
            warnings.append(missing)
    content = {
        "title": title, "level": level, "maps": maps, "ions": listed,
        "structure": structure_content(shown), "surface": surface, "missing": missing,
        "source": Path(source).name, "selection": asked.atoms, "stops": list(COLOUR_STOPS),
        "patches": patched, "faces": None if asked.faces is None else face_content(asked.faces),
    }
    keys = ("name", "unit", "medium", "shape", "spacing", "minimum", "maximum", "thinned", "precision")
    summary = {
        "atoms": int(atoms_shown.sum()), "ions": len(listed), "viewer": f"3Dmol.js {viewer.version}".strip(),
        "maps": [{key: item[key] for key in keys} for item in maps],
        "surface": None if surface is None else {"shape": surface["shape"], "spacing": surface["spacing"][0]},
    }
    licence = f"3Dmol.js {viewer.version}\n\n{viewer.licence}"
    return Page(content=_fill(title, content, viewer.text, licence), title=title, summary=summary,
                warnings=tuple(warnings))


def _fill(title: str, content: dict[str, Any], viewer: str, licence: str) -> bytes:
    """Return the page; every text from the user is escaped for its context."""
    scripts = [viewer, *(embeddable(_resource(name)) for name in SCRIPTS)]
    hashes = " ".join(f"'sha256-{_digest(text)}'" for text in scripts)
    page = Template(_resource("page.html")).substitute(
        title=html.escape(title),
        # only these scripts can run, and nothing is fetched, even if a name contained code
        policy=f"default-src 'none'; script-src {hashes}; worker-src blob:; style-src 'unsafe-inline'; "
               "img-src data: blob:; base-uri 'none'; form-action 'none'",
        style=_resource("page.css"),
        content=_json(content),
        scripts="\n".join(f"<script{' data-worker' * (0 < n <= IN_WORKER)}>{text}</script>"
                          for n, text in enumerate(scripts)),
        licence=html.escape(licence),
        program=f"vmdpotential {__version__}",
    )
    return page.encode("utf-8", "backslashreplace")  # names of files may be arbitrary bytes


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _json(content: Any) -> str:
    """Return JSON without characters that could end the HTML element around it."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text

