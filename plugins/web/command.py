"""The command ``view``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from vmdpotential import extras, registry
from vmdpotential.commands.options import Assembly, Expand, Force, Index, Ph, Prepare, Source
from vmdpotential.commands.structures import complete_for_display
from vmdpotential.errors import InputError, TaskError, UsageError, count_of
from vmdpotential.grid.lattice import Grid
from vmdpotential.grid.planes import Plane
from vmdpotential.io.files import output as files
from vmdpotential.io.files.text import format_suffix
from vmdpotential.maps.medium import DEFAULT_MEDIUM, MEDIUM_HELP, MEDIUM_KINDS
from vmdpotential.maps.solute import as_mapped
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option, check_output
from vmdpotential.results import Result

from ..ions.placement import Placement
from .content import distances
from .document import Document, Faces, ShownOptions
from .page import Page, view_page

#: Description of the faces of two molecules.
FACES = ("both faces turned apart like pages of a book, above with their own potential, and below with that of the "
         "partner; complementarity {value:.2f}")


@dataclass(frozen=True, kw_only=True)
class ViewSource:
    """Options of the structure, which is completed if atoms are missing, and of the maps."""

    structure: Annotated[Path | Structure, Option(
        "structure file; a cube file is also shown as a map", positional=True)]
    maps: Annotated[tuple[Path | Grid, ...], Option(
        "map files", positional=True, metavar="MAP", front=True)] = ()
    topology: Annotated[Path | None, Option(
        "topology with the names of the structure's atoms, if its own file has none", viewer=False,
        metavar="FILE", heading="structure and charges", role="topology")] = None
    medium: Annotated[str | None, Option(
        f"{MEDIUM_HELP}{DEFAULT_MEDIUM}; no computes no potential, as if there are maps",
        choices=(*MEDIUM_KINDS, "no"), front=True, role="medium")] = None
    assembly: Assembly = ""
    expand: Expand = "no"
    index: Index = None
    prepare: Prepare = "auto"
    ph: Ph = 7.0

    def read(self) -> tuple[Structure, list[str]]:
        """Return the completed structure, and a line on added atoms, if there are any."""
        whole = Source(structure=self.structure, topology=self.topology, index=self.index, assembly=self.assembly,
                       expand=self.expand)
        return complete_for_display(whole.read(), self.prepare, self.ph)


@dataclass(frozen=True, kw_only=True)
class PageOutput:
    """The output file, and the viewer script of a page."""

    viewer_script: Annotated[Path | None, Option(
        "3Dmol.js, or the folder of its npm package, if it is not found automatically", viewer=False,
        heading="figure")] = None
    output: Annotated[Path | None, Option(
        "page to write, .html, or scene of Mol*, .mvsx; - is standard output", short="o", metavar="FILE", written=True,
        suffix=".html", front=True)] = None
    force: Force = False

    def check(self) -> None:
        """Raise an error for an output file that cannot be written, exists or has another format, or a missing script.
        """
        from .script import find_viewer_script

        if self.output is not None:
            if self.output.suffix.lower() not in (".html", ".htm", ".mvsx") and not files.is_standard(self.output):
                raise UsageError("output", "a page is written as .html, a scene as .mvsx", value=str(self.output))
            files.check([self.output], self.force)
        if self.scene:
            extras.load_optional("molviewspec", "scenes of Mol*", "scenes")
        else:
            find_viewer_script(self.viewer_script)

    @property
    def scene(self) -> bool:
        """Whether the output is a scene of Mol*."""
        return self.output is not None and self.output.suffix.lower() == ".mvsx"


def view(
    source: ViewSource,
    ions: Annotated[Path | Placement | None, Option(
        "table of ions with their energies, as ionize writes it; ions of the structure are listed in any case",
        metavar="CSV", heading="ions")] = None,
    shown: ShownOptions = ShownOptions(),
    written: PageOutput = PageOutput(),
) -> ViewedPage:
    """Make a web page of a structure, isosurfaces and slices of maps, and ions, or a scene of Mol*.

    Without maps, the potential of the solute in water is computed: one command leads from a deposited structure to its
    coloured surface. Missing hydrogens and atoms are added, as for a map.

    The page is one file that holds everything and needs no network: it can be sent, kept and opened
    years later. 3Dmol.js draws it; get it once with: vmdpotential install page --yes
    A file that ends in .mvsx opens in Mol* instead (https://molstar.org/viewer, by drag and drop). It has scenes of
    each map: the molecular surface and planes in its colours, with their key, and isosurfaces.

    Raises
    ------
    InputError
        For a file that cannot be read.
    BackendError
        When 3Dmol.js is not found, or for a scene the package molviewspec.
    """
    output, maps, medium = written.output, source.maps, source.medium
    if not maps and isinstance(source.structure, Path) and format_suffix(source.structure) in (".cube", ".cub"):
        maps = (source.structure,)  # which holds its atoms
    check_output(output, source.structure, "page", "page.html")
    from vmdpotential.io.maps import map_name, open_map

    from .coloured import colours_surface
    from .mvs import view_scene

    written.check()  # before any work
    if [*map(Plane.parse, shown.plane)] and not written.scene:
        raise UsageError("plane", "a page has a slider for its plane", "leave it out, or write a scene, .mvsx")
    structure, done = source.read()
    names = [map_name(item) if isinstance(item, Path) else f"map {n}" for n, item in enumerate(maps, 1)]
    grids = [open_map(item) if isinstance(item, Path) else item for item in maps]
    warnings = []
    if medium not in (None, "no") or (medium is None and not maps):
        try:
            made = registry.get("command", "map")(structure=structure, medium=medium, prepare=source.prepare)
            grids.append(made.grid)
            structure = as_mapped(structure, made.grid)
            names.append(f"potential, {made.options.word}")
        except (InputError, TaskError) as error:
            if medium is not None or shown.of_maps():
                raise
            warnings.append(f"no potential is shown: {error}")
    for name in shown.of_maps():
        if not (colours_surface(grids) if name in ("patches", "cavities") else grids):
            raise UsageError(name, "there is no map that it applies to", "give a map, or leave out {medium no}")
    if shown.between:
        touching = registry.get("command", "complementarity")(structure=structure, between=shown.between,
                                                              prepare=source.prepare)
        shown = replace(shown, faces=Faces(touching.objects["mesh"], " and ".join(shown.between),
                                           FACES.format(value=touching.value), touching.rows))
    page: Document
    if written.scene:
        page = view_scene(structure, grids, names, ions, shown)
    else:
        page = view_page(structure, grids, ions, shown, names=names, viewer_script=written.viewer_script)
    if output is not None:
        page.save(output, written.force)
    return ViewedPage(page=page, prepared=done[0] if done else None, file=output,
                      warnings=[*warnings, *page.warnings])


class ViewedPage(Result):
    """Result of the command: a page or scene, and a summary of its content."""

    prepared: str | None
    file: Path | None
    warnings: Sequence[str]
    page: Document

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """Data for ``--json``."""
        return {**super().data, **self.page.summary}

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            "prepared": self.prepared, "file": self.file, "warnings": self.warnings, "title": self.page.title,
            "bytes": self.page.size}

    def _repr_html_(self) -> str | None:
        """Return the page for notebooks; a scene of Mol* has none."""
        return self.page._repr_html_() if isinstance(self.page, Page) else None

    def shown(self) -> dict[str, Any]:
        """Return the objects for viewers and notebooks, by name; None for those that there are not."""
        return super().shown() | {"page": self.page}

    def text(self) -> Iterator[str]:
        """Yield lines on atoms added to the structure, the content of the page, and its file."""
        page, summary = self.page, self.page.summary
        yield from [self.prepared] if self.prepared else []
        yield (f"{page.title}: {count_of(summary['atoms'], 'atom')}, {count_of(summary['ions'], 'ion')}; "
               f"drawn by {summary['viewer']}")
        for item in summary["maps"]:
            shape = " x ".join(map(str, item["shape"]))
            spacing = distances(item["spacing"], 3).replace("×", "x")
            medium = f", {item['medium']}" if item["medium"] else ""
            yield (f"{item['name']}: {shape} points, {spacing} A apart{' (downsampled)' if item['thinned'] else ''}, "
                   f"{item['minimum']:.4g} to {item['maximum']:.4g} {item['unit']}".rstrip() + medium)
        yield from (f"warning: {warning}" for warning in self.warnings)
        yield f"{f'wrote {self.file}' if self.file else 'page'}: {page.size / 1e6:.1f} MB"


command = Command.of(view, draws="page", examples=(
    "view protein.pdb potential.dx -o page.html",
    "view protein.pdb --medium water --atoms protein -o scene.mvsx",
), python="""\
>>> structure = vp.prepare("data/1aki.pdb.gz").structure
>>> scene = vp.view(structure, medium="no", output="protein.mvsx")
>>> scene.page.summary["atoms"] > 1900
True
""")
