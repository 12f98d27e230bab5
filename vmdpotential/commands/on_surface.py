"""The result of the command ``surface``: a map on a surface, as a report, a table, pictures and objects of viewers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.commands.slice import medium_text
from vmdpotential.commands.surface_options import SurfaceShape
from vmdpotential.commands.surface_output import SurfaceResult
from vmdpotential.figures.colours import ValueRange, map_meaning
from vmdpotential.figures.directions import ViewAxes
from vmdpotential.grid.lattice import Grid
from vmdpotential.molecule.moments import ChargeMoments
from vmdpotential.molecule.structure import Structure, atom_label
from vmdpotential.results import Axes, Figure, TableColumns, plain_value
from vmdpotential.surfaces import Row, Surface
from vmdpotential.surfaces.contact import BuriedFace, interface_axes
from vmdpotential.surfaces.drawn import DrawnSurface, patch_labels, patch_values
from vmdpotential.surfaces.patches import MIN_NAMED, Patch, patch_rows

if TYPE_CHECKING:
    from vmdpotential.figures.book import OpenBook

_COLUMNS = ("part", "area", "mean", "minimum", "maximum")

#: Number of rows with the lowest and with the highest means in the report.
_PRINTED = 5

#: Number of residues or atoms of each cavity and patch in the report.
_LINING = 3

#: Number of pictures of a movie in which the surface turns once.
_TURN = 72

_PATCH_COLUMNS = ("patch", "area", "integral", "mean", "extreme")


@dataclass(frozen=True)
class CavitySurface:
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
    found: Sequence[CavitySurface]
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

        grid = self.grid if not self.series else replace(
            self.grid, provenance=replace(self.grid.provenance, state=""))
        return surface_caption(f"{self.head} (probe {self.shape.probe:g} Å)", self.shape.outwards or 0.0, grid,
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
        atoms = dict(zip(numbers, distinct_names([atom_label(self.structure, n, False) for n in numbers]), strict=True))
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
        return draw_view(ax, self.drawn, self._coloured, self.views[0], ValueRange(*self.span), self._patch_names)

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
            yield surfaces.compose_panels(panels, ValueRange(*self.span), self.label, self.size[0], height=self.size[1])


def _part_name(number: int) -> str:
    return f"cavity {number}" if number else "outside"


def lining_names(names: Sequence[str], table: Sequence[Row]) -> list[str]:
    """Return the names of the rows of a cavity's table with the largest areas."""
    return [names[n] for n in sorted(range(len(table)), key=lambda n: -table[n].area)[:_LINING]]


def row_name(structure: Structure, row: Row, atom: bool) -> str:
    """Return the name of the residue, or the atom, of a row."""
    return atom_label(structure, row.index if atom else int(structure.residue_starts[row.index]), not atom)


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return names, with a number appended to equal ones, e.g. of two chains with the same identifier."""
    equal, so_far = Counter(names), Counter[str]()
    result = []
    for name in names:
        so_far[name] += 1
        result.append(f"{name} ({so_far[name]})" if equal[name] > 1 else name)
    return result
