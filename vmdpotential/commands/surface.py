"""The command ``surface``."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.commands.options import Source, UnitOfFile, check_are_maps, names_of, read_maps
from vmdpotential.commands.pictures import PictureOptions
from vmdpotential.commands.slice import medium_text, parse_range
from vmdpotential.commands.surface_output import MovingOutput, SurfaceResult
from vmdpotential.errors import UsageError
from vmdpotential.figures import directions
from vmdpotential.figures.colours import ValueRange, check_range, colour_range, map_meaning, reading_distance
from vmdpotential.figures.directions import ViewAxes
from vmdpotential.figures.movies import is_movie
from vmdpotential.grid.lattice import Grid
from vmdpotential.maps import MapOptions, Medium
from vmdpotential.maps.solute import as_mapped, chosen_atoms, other_molecule, without_water
from vmdpotential.molecule.moments import ChargeMoments, charge_moments
from vmdpotential.molecule.selection import Mask, Selection, is_water, named_selection, select
from vmdpotential.molecule.structure import Structure, atom_label
from vmdpotential.parameters import Command, Option, fields_of, warn_unused
from vmdpotential.results import Axes, Figure, TableColumns, plain_value
from vmdpotential.surfaces import PROBE_RADIUS, SURFACE_KINDS, Row, Surface, molecular_surface, owner_rows
from vmdpotential.surfaces.contact import BuriedFace, find_faces, interface_axes, join_surfaces
from vmdpotential.surfaces.drawn import DrawnSurface, patch_labels, patch_values
from vmdpotential.surfaces.patches import MIN_NAMED, Patch, find_patches, patch_rows

if TYPE_CHECKING:
    from vmdpotential.figures.book import OpenBook

log = logging.getLogger(__name__)

_COLUMNS = ("part", "area", "mean", "minimum", "maximum")

#: Number of rows with the lowest and with the highest means in the report.
_PRINTED = 5

#: Number of residues or atoms of each cavity and patch in the report.
_LINING = 3

#: Number of pictures of a movie in which the surface turns once.
_TURN = 72

_PATCH_COLUMNS = ("patch", "area", "integral", "mean", "extreme")


@dataclass(frozen=True, kw_only=True)
class SurfaceShape:
    """Options of the surface, and of the distance from it at which the map is read."""

    kind: Annotated[str, Option(
        "kind of surface: molecular (boundary of the volume that a probe sphere cannot enter) or accessible (boundary "
        "of the volume that the probe's centre cannot enter)",
        choices=SURFACE_KINDS,
        front=True, aliases=("surface_type",))] = "molecular"
    probe: Annotated[float, Option(
        "radius of the probe sphere", unit="A", low=0, high=20, aliases=("probe_radius",),
        heading="surface")] = PROBE_RADIUS
    outwards: Annotated[float | None, Option(
        "distance outside the surface at which the map is read; unless given, 1.4 (the centres of water molecules in "
        "contact with it) for a map by pb, and 0 otherwise", unit="A", low=-10, high=20, aliases=("offset",),
        heading="surface")] = None
    mesh_spacing: Annotated[float, Option(
        "spacing of the grid on which the surface is constructed", unit="A", low=0.05, high=2, heading="surface")] = 0.3
    cavities: Annotated[bool, Option(
        "also draw the surfaces of closed cavities, in meshes and figures; the report and the table always have "
        "them", heading="surface")] = False


@dataclass(frozen=True, kw_only=True)
class SurfacePotential(MapOptions):
    """Atoms of the surface, and options of the potential that is computed if no map is given."""

    atoms: Annotated[Selection | None, Option(
        "atoms whose surface is computed, and whose charges contribute if the potential is computed; unless given, the "
        "solute (without free ions): all, solute, protein ..., or a selection",
        metavar="all|solute|protein|SEL", heading="main options", selection=True)] = None


@dataclass(frozen=True, kw_only=True)
class ViewOptions(PictureOptions):
    """Colours of the surface, and the directions from which figures show it, and their style."""

    range: Annotated[ValueRange | None, Option(
        "range of the colours in the unit of the map; unless given, -5,5 in kT/e for a potential in water, and "
        "otherwise wide enough for 98 % of the surface",
        parse=parse_range, metavar="LO,HI", front=True, aliases=("color_range",))] = None
    view: Annotated[tuple[str, ...], Option(
        "directions from which the figure shows the surface, each in a panel: x, -x, y, -y, z, -z, three numbers such "
        "as 1,1,0, or a principal axis: long, middle or short, which shows the widest side; unless given, z and -z, or "
        "that of facing",
        parse=directions.parse_view, words=directions.WORDS, metavar="DIRECTION", heading="figure")] = ()
    facing: Annotated[Selection | None, Option(
        "one more panel, in which the surface of these atoms, such as //A/35, is turned to the viewer",
        metavar="SEL", selection=True, heading="figure")] = None
    up: Annotated[str | None, Option(
        "direction that is up in the figure, given as for view; unless given, z, or y where z points to the viewer",
        parse=directions.parse_view, words=directions.WORDS, metavar="DIRECTION", heading="figure")] = None

    def of(self, mesh: Surface, structure: Structure) -> list[ViewAxes]:
        """Return the views of a surface."""
        views = [directions.view_along(text, mesh, self.up)
                 for text in self.view or (("z", "-z") if self.facing is None else ())]
        if self.facing is not None:
            atoms = select(structure, self.facing, "facing")
            views.append(directions.view_of_part(atoms, mesh, named_selection(self.facing), self.up))
        return views


def surface(
    source: Source,
    map: Annotated[tuple[Path | Grid, ...], Option(
        "map file (.dx, .mrc, .ccp4, .cube, .npz ...) whose values are taken at the surface, or several, which are the "
        "frames of a movie; unless given, the potential is computed as by the command map", positional=True,
        metavar="MAP")] = (),
    potential: SurfacePotential = SurfacePotential(),
    shape: SurfaceShape = SurfaceShape(),
    patches: Annotated[float | None, Option(
        "report patches, the connected areas where the map is at least this value, or at most its negative, such as 1 "
        "for a potential in kT/e", low=0, metavar="VALUE", heading="surface")] = None,
    by: Annotated[str, Option(
        "rows of the table: one for each residue, atom, vertex or patch",
        choices=("residue", "atom", "vertex", "patch"), heading="surface")] = "residue",
    between: Annotated[tuple[str, ...], Option(
        "two molecules that touch, whose surfaces replace that of atoms: figures and meshes show them turned apart "
        "like the pages of a book, with the faces that they hide from each other to the reader, each in the potential "
        "of its own charges, or in the given map", metavar="SEL", selection=True, heading="surface")] = (),
    picture: ViewOptions = ViewOptions(),
    unit_of_file: UnitOfFile = None,
    output: MovingOutput = MovingOutput(),
) -> OnSurface:
    """Map a potential onto the surface of a molecule.

    Without a map, the potential is computed with the same options and default as by the command map: one command leads
    from a deposited structure to its coloured surface.

    The table has the area of each residue, atom or vertex (A^2), and the area-weighted mean, minimum and maximum of the
    map on it. Closed cavities, which a probe cannot leave, are parts of their own: their number, places and values are
    reported, and meshes and figures show the outer surface alone unless `cavities` are requested.

    Several maps, such as those of a titration at several values of pH, follow each other in a movie, on one colour
    scale; tables, meshes and the report are those of the first.

    With `patches`, the connected areas of the outer surface on which the map exceeds a threshold are reported, of both
    signs: area, integral, mean, centre, normal and the residues that share them. The figure shows these areas alone.

    With `between`, the potential of each of both molecules is computed without the other one, whose place the medium
    takes. A given map, such as that of the complex, is read on both surfaces. Cavities are left out.

    Raises
    ------
    UsageError
        For files of other formats, for rows by patch without patches, for several maps without a movie or in different
        units, and for two molecules that share atoms or do not touch.
    InputError
        For structures without elements, or maps that do not contain the surface.
    BackendError
        When scikit-image is not installed.
    """
    from vmdpotential.figures import slices
    from vmdpotential.figures.page import check_units

    size = picture.size_for(output.figure)
    if picture.range is not None:
        check_range(picture.range)
    if by == "patch" and patches is None:
        raise UsageError("by", "there are no patches without a threshold", "give {patches}, such as 1", value=by)
    check_are_maps("map", map, "for several structures, use batch surface with their folder")
    if len(map) > 1:
        if output.figure is None or not is_movie(output.figure):
            raise UsageError("map", f"{len(map)} maps are the frames of a movie, and none is written",
                             "give {figure movie.gif} too, or one map")
        if patches is not None:
            raise UsageError("patches", "they are those of one map", "give one map, or leave out {patches}")
    paths = output.checked_files(picture)
    if between:
        if len(between) != 2:
            raise UsageError("between", f"two selections are needed, and there are {len(between)}",
                             "such as {between //A} //B")
        if output.figure is not None and is_movie(output.figure):
            raise UsageError("figure", f"{output.figure}: an open book does not turn", "choose .png, .pdf or .svg")
        warn_unused(("atoms", "cavities", "view", "facing", "up"), "two molecules are turned apart")
    structure, parts, grids, prepared = _mapped(source, map, potential, unit_of_file, between)
    grid = grids[0]
    check_units(grids, "map")
    titles = names_of(map) if len(map) > 1 or (map and isinstance(map[0], Path)) else ["map" if map else "potential"]
    start = time.perf_counter()
    structure = as_mapped(structure, grid)
    default = "all" if is_water(structure).all() else "solute"
    atoms = default if potential.atoms is None else potential.atoms
    chosen = parts[0] | parts[1] if parts else chosen_atoms(structure, atoms, Medium("water"))
    for each in grids[max(len(parts) - 1, 0):] if map else ():  # a map is there once for each of two molecules
        if other := other_molecule(each, structure.positions[chosen]):
            log.warning("%s: %s; the surface should be that of the map's atoms", structure.where, other)
    faces = find_faces(structure, parts[0], parts[1], kind=shape.kind, probe=shape.probe,
                       spacing=shape.mesh_spacing) if parts else ()
    made = [face.surface for face in faces] or [molecular_surface(
        structure, atoms=chosen, kind=shape.kind, probe=shape.probe, spacing=shape.mesh_spacing)]
    mesh = join_surfaces(made) if faces else made[0]
    views = [] if faces else picture.of(mesh, structure)
    shape = shape if shape.outwards is not None else replace(shape, outwards=reading_distance(grid))
    values = np.concatenate([each.sample(of, shape.outwards or 0.0) for each, of in zip(made, grids, strict=False)])
    series = [values, *(mesh.sample(of, shape.outwards or 0.0) for of in grids[len(made):])]
    seconds = time.perf_counter() - start
    inside = np.isfinite(values)
    for title, read in zip(titles, series, strict=True):
        if not np.isfinite(read).any():
            raise UsageError("map", "the map does not cover any point of the surface", "give the map of this structure",
                             value=title)
    outer = mesh.cavities == 0
    span = picture.range or colour_range(grids, [read[outer] for read in series])
    owners = mesh.atoms if by == "atom" else structure.residue_of[mesh.atoms]
    parts = [mesh.cavities == n for n in np.unique(mesh.cavities).tolist()]
    tables = [owner_rows(mesh, values, owners, part) for part in parts]
    names = [_distinct([_name(structure, row, by == "atom") for row in table]) for table in tables]
    one = np.zeros(len(values), np.int64)
    whole, = owner_rows(mesh, values, one, outer)
    cavities = [Cavity(row.area, row.mean, row.low, row.high, mesh.vertices[part].mean(0).tolist(),
                       _lining(of_part, table))
                for part, table, of_part in zip(parts[1:], tables[1:], names[1:], strict=True)
                for row in owner_rows(mesh, values, one, part)]
    drawn = np.ones_like(outer) if shape.cavities else outer
    found, patch_of = ([], np.full(len(values), -1)) if patches is None else find_patches(
        mesh, np.where(outer, values, np.nan), patches, structure.residue_of[mesh.atoms])
    labels = [atom_label(structure, first, True) for first in structure.residue_starts[:-1].tolist()] if found else []
    moments = None if structure.charges is None else charge_moments(structure.positions[chosen],
                                                                    structure.known_charges[chosen])
    result = OnSurface(
        prepared=prepared or None, shape=shape, surface=mesh, grid=grid, whole=whole,
        within=next(iter(owner_rows(mesh, values, one, ~outer)), None), found=cavities, seen=drawn,
        threshold=patches, areas=found, places=patch_of, residues=_distinct(labels), moments=moments,
        span=span, by=by, names=names, tables=tables, values=values, structure=structure,
        inside=float(mesh.areas[inside & outer].sum() / mesh.areas[outer].sum()),
        views=views, size=size, pictured=output.figure is not None,
        label=slices.bar_label(grid) if picture.label is None else picture.label,
        faces=faces, partners=[str(text) for text in between], own=not map,
        series=dict(zip(titles, series, strict=True)) if len(map) > 1 else {}, of=titles[0],
        head=f"{shape.kind} " + (f"surfaces of {' and '.join(between)}" if faces else f"surface of {atoms}"),
        seconds=seconds, files=paths, draws=not paths)
    output.write_files(result, picture, slices.quantity_label(grid), lambda: (result.drawn, values[drawn]))
    return result


@dataclass(frozen=True)
class Cavity:
    """A closed cavity: area of its surface, A^2, mean by area and range of the map on it, middle, A, and residues."""

    area: float
    mean: float
    minimum: float
    maximum: float
    centre: Sequence[float]
    lining: Sequence[str]


class OnSurface(SurfaceResult):
    """Map on the surface of a molecule."""

    prepared: str | None
    shape: SurfaceShape
    surface: Surface
    grid: Grid
    whole: Row
    within: Row | None
    found: Sequence[Cavity]
    seen: NDArray[np.bool_]
    threshold: float | None
    areas: Sequence[Patch]
    places: NDArray[np.int64]
    residues: Sequence[str]
    moments: ChargeMoments | None
    inside: float
    by: str
    tables: Sequence[Sequence[Row]]
    names: Sequence[Sequence[str]]
    values: NDArray[np.float64]
    views: Sequence[ViewAxes]
    faces: Sequence[BuriedFace]
    partners: Sequence[str]
    own: bool
    series: Mapping[str, NDArray[np.float64]]
    pictured: bool
    size: tuple[float, float | None]
    label: str
    head: str
    of: str
    structure: Structure
    seconds: float

    @property
    def patches(self) -> Sequence[Mapping[str, Any]]:
        """The patches as rows of a table: areas, A^2, integrals, centres, A, normals, and the shares of residues."""
        return patch_rows(self.areas, self.residues)

    @cached_property
    def caption(self) -> str:
        """What the figure shows, in sentences."""
        from vmdpotential.figures.captions import frames_sentence, surface_caption

        return surface_caption(f"{self.head} (probe {self.shape.probe:g} Å)", self.shape.outwards or 0.0, self.grid,
                               self.span, [view.title for view in self.views], self.threshold,
                               self.partners, self.own) + (frames_sentence(list(self.series)) if self.series else "")

    @cached_property
    def book(self) -> OpenBook:
        """Both molecules, turned apart."""
        from vmdpotential.figures.book import BookPage, OpenBook

        pages, start = [], 0
        for face, name in zip(self.faces, self.partners, strict=True):
            part = slice(start, start := start + len(face.buried))
            patches = self._patch_names
            pages.append(BookPage(face.surface, self._coloured[part], name, face.buried,
                                  None if patches is None else patches[part]))
        return OpenBook([(pages[0], pages[1])], interface_axes(self.faces),
                        np.mean([face.places.mean(0) for face in self.faces], axis=0))

    @cached_property
    def drawn(self) -> Surface:
        """The surface in meshes and figures; of two molecules, turned apart next to them."""
        if self.faces:
            return self.book.mesh(self.structure.positions[:, 0].max())[0]
        return self.surface.part(self.seen)

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """Data of ``--json``, by residue or atom."""
        data = {**super().data, "by": "residue" if self.by in ("vertex", "patch") else self.by}
        if self.threshold is None:
            return data
        for sign, kind in (("+", "positive"), ("-", "negative")):
            chosen = [patch for patch in self.areas if patch.name[0] == sign]
            data |= {f"{kind}_area": sum(patch.area for patch in chosen), f"{kind}_patches": len(chosen),
                     f"{kind}_integral": sum(patch.integral for patch in chosen),
                     f"largest_{kind}_patch": max((patch.area for patch in chosen), default=0.0)}
        data |= {name: getattr(self.moments, name, None) for name in ("net_charge", "dipole", "quadrupole")}
        return {**data, "threshold": self.threshold, "patches": plain_value(self.patches)}

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Area and values of each atom or residue."""
        return [{"name": name, "part": _part_name(n), "area": row.area, "mean": row.mean, "minimum": row.low,
                 "maximum": row.high}
                for n, (names, table) in enumerate(zip(self.names, self.tables, strict=True))
                for name, row in zip(names, table, strict=True)]

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            "prepared": self.prepared, "kind": self.shape.kind, "probe": self.shape.probe,
            "outwards": self.shape.outwards, "mesh_spacing": self.shape.mesh_spacing, "unit": self.grid.unit,
            "medium": self.grid.provenance.medium, "area": self.whole.area, "mean": self.whole.mean,
            "minimum": self.whole.low, "maximum": self.whole.high,
            "cavity_area": None if self.within is None else self.within.area,
            "cavity_mean": None if self.within is None else self.within.mean,
            "cavity_minimum": None if self.within is None else self.within.low,
            "cavity_maximum": None if self.within is None else self.within.high, "inside": self.inside,
            "seconds": self.seconds, "vertices": len(self.drawn.vertices), "triangles": len(self.drawn.triangles),
            "range": list(self.span), "caption": self.caption, "cavities": [asdict(cavity) for cavity in self.found],
            "between": [{"name": name, "area": face.surface.area, "buried": float(face.areas.sum())}
                        for name, face in zip(self.partners, self.faces, strict=True)],
            "rows": self.rows}

    def shown(self) -> dict[str, Any]:
        """Return the objects for viewers and notebooks, by name; None for those that there are not."""
        return super().shown() | {"surface": self.surface, "mesh": self._for_viewers()}

    def _for_viewers(self) -> DrawnSurface:
        """Return the surface for viewers: with patches, each in one colour, that of its mean, and with its name."""
        unit, meaning = self.grid.unit, map_meaning(self.grid)
        if self.threshold is None:
            return DrawnSurface(self.drawn, self.values[self.seen], self.span, unit, meaning)
        return DrawnSurface(self.drawn, patch_values(self.areas, self.places)[self.seen], self.span, unit, meaning,
                            () if self.faces else patch_labels(self.drawn, self.areas, self.places[self.seen],
                                                               MIN_NAMED))

    def text(self) -> Iterator[str]:
        """Yield the area, the mean and the rows with the lowest and highest means."""
        shape, made, whole, names = self.shape, self.drawn, self.whole, self.names[0]
        if self.prepared:
            yield self.prepared
        yield (f"{self.head}, probe {shape.probe:g} A: {whole.area:.1f} A^2, {len(made.vertices)} vertices, "
               f"{len(made.triangles)} triangles")
        yield (f"{self.of}, {f'{shape.outwards:g} A outwards' if shape.outwards else 'on it'}: mean {whole.mean:.4g}, "
               + f"{whole.low:.4g} to {whole.high:.4g} {self.grid.unit}".rstrip()
               + (f", {medium}" if (medium := medium_text(self.grid)) else ""))
        for name, face in zip(self.partners, self.faces, strict=True):
            yield f"{name}: {face.areas.sum():.1f} A^2 of {face.surface.area:.1f} A^2 face the other molecule"
        if not np.isfinite(self.values).all():
            yield f"{100 * (1 - self.inside):.2g} % of the area is outside of the map"
        unit = self.grid.unit
        means = np.array([row.mean for row in self.tables[0]])
        order = np.argsort(means)
        order = order[np.isfinite(means[order])]
        for word, atoms in (("lowest", order[:_PRINTED]), ("highest", order[::-1][:_PRINTED])):
            yield f"{word}: " + ", ".join(f"{names[n]} {means[n]:.4g}" for n in atoms)
        if self.within is not None:
            row, count = self.within, len(self.found)
            yield (f"{count} closed cavit{'ies' if count > 1 else 'y'} inside, not included above"
                   f"{'' if shape.cavities else ' and not drawn'}: {row.area:.1f} A^2, mean {row.mean:.4g}, "
                   f"{row.low:.4g} to {row.high:.4g} {unit}".rstrip())
        for number, cavity in enumerate(self.found[:_PRINTED], 1):
            place = ", ".join(f"{x:.1f}" for x in cavity.centre)
            yield (f"{_part_name(number)} at ({place}), next to {', '.join(cavity.lining)}: {cavity.area:.1f} A^2, "
                   f"mean {cavity.mean:.4g} {unit}".rstrip())
        yield from self._of_patches()
        if self.pictured:
            yield f"caption: {self.caption}"
        yield f"{self.seconds:.2f} s"

    def _of_patches(self) -> Iterator[str]:
        """Yield the largest patches of each sign, and the moments of the charges."""
        if self.threshold is None:
            return
        unit = f"{self.threshold:g} {self.grid.unit}".rstrip()
        for sign, bound in (("+", f"at least {unit}"), ("-", f"at most -{unit}")):
            chosen = [patch for patch in self.areas if patch.name[0] == sign]
            total = sum(patch.area for patch in chosen)
            yield (f"{len(chosen)} patch{'es' * (len(chosen) != 1)} of {bound}: {total:.1f} A^2, "
                   f"{100 * total / self.whole.area:.1f} % of the surface")
            for patch in chosen[:_PRINTED]:
                yield (f"patch {patch.name}: {patch.area:.1f} A^2, mean {patch.mean:.4g}, extreme {patch.extreme:.4g} "
                       + self.grid.unit.rstrip() + ": " + ", ".join(
                           f"{self.residues[n]} {100 * share:.0f} %" for n, share in
                           zip(patch.owners[:_LINING].tolist(), patch.shares[:_LINING].tolist(), strict=True)))
        if self.moments is not None:
            yield (f"charges: {self.moments.net_charge:+.4g} e, dipole {self.moments.dipole:.4g} D, "
                   f"quadrupole {self.moments.quadrupole:.4g} D A")

    def table(self) -> TableColumns:
        """Return a row for each residue, atom, vertex or patch."""
        if self.by == "patch":
            rows = self.patches
            return {name: [row[name] for row in rows] for name in _PATCH_COLUMNS} | {
                **{x: [row["centre"][n] for row in rows] for n, x in enumerate("xyz")},
                **{f"n{x}": [row["normal"][n] for row in rows] for n, x in enumerate("xyz")},
                "residues": [" ".join(f"{name} {share:.3f}" for name, share in row["residues"].items())
                             for row in rows]}
        if self.by != "vertex":
            rows = self.rows
            return {self.by: [row["name"] for row in rows]} | {name: [row[name] for row in rows] for name in _COLUMNS}
        made, numbers = self.surface, np.unique(self.surface.atoms).tolist()
        atoms = dict(zip(numbers, _distinct([atom_label(self.structure, n, False) for n in numbers]), strict=True))
        return {**{x: made.vertices[:, n] for n, x in enumerate("xyz")},
                **{f"n{x}": made.normals[:, n] for n, x in enumerate("xyz")}, "area": made.areas,
                "part": [_part_name(n) for n in made.cavities.tolist()], "value": self.values,
                "atom": [atoms[n] for n in made.atoms.tolist()],
                **({} if self.threshold is None else {
                    "patch": ["" if n < 0 else self.areas[n].name for n in self.places.tolist()]})}

    @property
    def _coloured(self) -> NDArray[np.float64]:
        """The values (V,) at the vertices that are drawn; with patches, NaN outside of these."""
        values = self.values if self.threshold is None else np.where(self.places < 0, np.nan, self.values)
        return values[self.seen]

    @property
    def _patch_names(self) -> NDArray[np.str_] | None:
        """The names (V,) of the patches of the vertices that are drawn, empty for those in none or in a small one."""
        if self.threshold is None:
            return None
        names = [patch.name if patch.area >= MIN_NAMED else "" for patch in self.areas]
        return np.array([*names, ""])[self.places[self.seen]]

    def plot(self, ax: Axes) -> Axes:
        """Draw the surface from the first direction, without a legend of its colours."""
        from vmdpotential.figures.surfaces import draw_panel, draw_view

        if self.faces:
            return draw_panel(ax, self.book.panels()[0], ValueRange(*self.span))
        return draw_view(ax, self.drawn, self._coloured, self.views[0], ValueRange(*self.span),
                         self._patch_names)

    def draw(self) -> Figure:
        """Return pictures of the surface."""
        from vmdpotential.figures import surfaces

        if self.faces:
            return self.book.draw(ValueRange(*self.span), self.label, *self.size)
        return surfaces.figure(self.drawn, self._coloured, self.views, ValueRange(*self.span), self.label,
                               self.size[0], self._patch_names, self.size[1])

    def turning(self) -> Iterator[Figure]:
        """Yield the pictures of a movie: of the maps, or, of one map, those in which the surface turns once."""
        from vmdpotential.figures import surfaces

        for name, values in self.series.items():
            yield surfaces.figure(self.drawn, values[self.seen],
                                  [replace(view, title=f"{name}\n{view.title}") for view in self.views],
                                  ValueRange(*self.span), self.label, self.size[0], height=self.size[1])
        if self.series:
            return
        for panels in surfaces.turntable(self.drawn, self._coloured, self.views, _TURN, self._patch_names):
            yield surfaces.compose_panels(panels, ValueRange(*self.span), self.label, self.size[0],
                                          height=self.size[1])


def _mapped(source: Source, map: Sequence[Path | Grid], potential: MapOptions, unit: str | None,
            between: Sequence[str]) -> tuple[Structure, list[Mask], list[Grid], str]:
    """Return the structure, the atoms of two molecules, the map of each surface, and a text that lists added atoms."""
    from vmdpotential.maps import potential_map
    from vmdpotential.maps.interaction import in_medium

    def parts(structure: Structure) -> list[Mask]:
        return [without_water(structure, select(structure, text, "between")) for text in between]

    if map:
        names = [p.name for p in fields_of(MapOptions) if p.argument not in SurfacePotential.__annotations__]
        warn_unused([*names, "set"], "the map is given")
        structure, prepared = source.hydrogenated()
        return structure, parts(structure), read_maps(map, unit) * (2 if between else 1), prepared
    warn_unused(("unit_of_file",), "it is for a map, and none is given")
    shown = source.read()
    options = in_medium(potential, shown)
    structure, report = source.with_charges(shown, between or [options.chosen], "between" if between else "atoms")
    chosen = parts(structure)
    maps = [potential_map(structure, replace(options, atoms=atoms)) for atoms in chosen] or [
        potential_map(structure, options)]
    return structure, chosen, maps, report.prepared


def _part_name(number: int) -> str:
    return f"cavity {number}" if number else "outside"


def _lining(names: Sequence[str], table: Sequence[Row]) -> list[str]:
    """Return the names of the rows of a cavity's table with the largest areas."""
    return [names[n] for n in sorted(range(len(table)), key=lambda n: -table[n].area)[:_LINING]]


def _name(structure: Structure, row: Row, atom: bool) -> str:
    return atom_label(structure, row.index if atom else int(structure.residue_starts[row.index]), not atom)


def _distinct(names: Sequence[str]) -> list[str]:
    """Return names, with a number appended to equal ones, e.g. of two chains with the same identifier."""
    equal, so_far = Counter(names), Counter[str]()
    result = []
    for name in names:
        so_far[name] += 1
        result.append(f"{name} ({so_far[name]})" if equal[name] > 1 else name)
    return result


command = Command.of(surface, draws="mesh", examples=(
    "surface entry.pdb --patches 1 --by patch -o patches.csv --figure patches.png",
    "surface protein.pdb potential.dx --kind accessible --by atom --range -5,5 -o atoms.csv surface.ply",
), python="""\
>>> structure = vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz")
>>> grid = vp.potential_map(structure, atoms="protein", spacing=3.0)
>>> on_surface = vp.surface(structure, grid, atoms="protein", spacing=1.5)
>>> on_surface.surface.area > 5000  # A^2
True""")
