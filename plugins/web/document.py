"""Base class of the results of the command ``view``: a page, or a scene of Mol*."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from vmdpotential.io.files import output
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import CheckedOptions, Option

if TYPE_CHECKING:
    from vmdpotential.surfaces.drawn import DrawnSurface


def title_of(structure: Structure, otherwise: str) -> str:
    """Return the title of a structure, or the name of its file if there is none, or one in capitals as in PDB files.

    Such a title is hard to read, and files that were made from an entry often still have that of the entry.
    """
    title = " ".join(structure.title.split())
    return ("" if title.isupper() else title) or Path(next(iter(structure.sources), "")).name or title or otherwise


@dataclass(frozen=True)
class Faces:
    """Faces of two molecules that touch, turned apart, with a title, a description, and a row for each residue."""

    drawn: DrawnSurface
    title: str
    text: str
    rows: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, kw_only=True)
class ShownOptions(CheckedOptions):
    """Options of the shown parts of the structure and the maps.

    Parameters
    ----------
    faces : Faces, optional
        Faces of two molecules, turned apart, which can be shown in place of the molecule.
    **keywords
    """

    atoms: Annotated[str, Option(
        "atoms to show: solute (everything but water), all, protein ..., or a selection", metavar="SEL",
        selection=True, heading="output")] = "solute"
    level: Annotated[float | None, Option(
        "initial level of both isosurfaces (positive and negative), in the map's unit; unless given, they enclose a "
        "tenth of the map; in scenes of Mol*, of the first map of its unit",
        above=0, front=True, aliases=("isovalue",))] = None
    cavities: Annotated[bool, Option(
        "also show the surfaces of closed cavities inside the molecule", heading="surface")] = False
    plane: Annotated[tuple[str, ...], Option(
        "planes perpendicular to x, y or z, coloured by each map, in a scene of Mol*, such as z=12.5; a page has "
        "a slider", metavar="x=|y=|z=...", heading="figure")] = ()
    patches: Annotated[float | None, Option(
        "also show the patches of the surface, and list them in a page: connected areas where a map is at least this "
        "value, in its unit, or at most its negative", above=0, heading="surface")] = None
    between: Annotated[tuple[str, ...], Option(
        "two selections of molecules that touch, whose faces are also shown, turned apart and coloured by the "
        "potential of each", metavar="SEL", selection=True, heading="surface")] = ()
    title: Annotated[str | None, Option(
        "title of the page; unless given, that of the structure", heading="figure")] = None
    margin: Annotated[float, Option(
        "margin around the shown atoms, within which a map is kept", unit="A", low=0, high=1e4,
        heading="figure")] = 10.0
    points: Annotated[int, Option(
        "largest number of grid points of a map; larger maps are thinned by interpolation", low=1000, high=100_000_000,
        aliases=("max_points",), heading="figure")] = 2_000_000
    faces: Faces | None = None

    def of_maps(self) -> list[str]:
        """Return the names of the set options that only have an effect on maps."""
        default = type(self)()
        return [name for name in ("level", "cavities", "plane", "patches", "margin", "points")
                if getattr(self, name) != getattr(default, name)]


@dataclass(frozen=True, kw_only=True)
class Document:
    """A file that shows a structure and maps.

    Parameters
    ----------
    content : bytes
        Content of the file.
    title : str
        Title of the document.
    summary : mapping
        Numbers of atoms and ions, and the points, spacing and range of each map.
    warnings : tuple of str
        Warnings for the user.
    """

    content: bytes = field(repr=False)  # megabytes
    title: str
    summary: Mapping[str, Any]
    warnings: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return len(self.content)

    def save(self, path: Path | str, force: bool = False) -> None:
        """Write the file, completely or not at all.

        Raises
        ------
        UsageError
            When the file exists and `force` is not set.
        OutputError
            When it cannot be written.
        """
        with output.writing_files([Path(path)], force) as (temporary,):
            temporary.write_bytes(self.content)
