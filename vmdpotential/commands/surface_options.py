"""Options of the command ``surface``: the surface, its potential, and its pictures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from vmdpotential.commands.pictures import PictureOptions
from vmdpotential.commands.slice import parse_range
from vmdpotential.figures import directions
from vmdpotential.figures.colours import ValueRange
from vmdpotential.figures.directions import ViewAxes
from vmdpotential.maps import MapOptions
from vmdpotential.molecule.elements import fill_elements, van_der_waals_radii
from vmdpotential.molecule.selection import Selection, named_selection, select
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Option
from vmdpotential.surfaces import MESH_SPACING, PROBE_RADIUS, SURFACE_KINDS, Surface


@dataclass(frozen=True, kw_only=True)
class SurfaceShape:
    """Options of the surface, and of the distance from it at which the map is read."""

    kind: Annotated[str, Option(
        "kind of surface: molecular (boundary of the volume that a probe sphere cannot enter) or accessible (boundary "
        "of the volume that the probe's centre cannot enter)",
        choices=SURFACE_KINDS, front=True, aliases=("surface_type",))] = "molecular"
    probe: Annotated[float, Option(
        "radius of the probe sphere", unit="A", low=0, high=20, aliases=("probe_radius",),
        heading="surface")] = PROBE_RADIUS
    outwards: Annotated[float | None, Option(
        "distance outside the surface at which the map is read; unless given, 1.4 (the centres of water molecules in "
        "contact with it) for a map by pb, and 0 otherwise", unit="A", low=-10, high=20, aliases=("offset",),
        heading="surface")] = None
    mesh_spacing: Annotated[float, Option(
        "spacing of the grid on which the surface is constructed", unit="A", low=0.05, high=2,
        heading="surface")] = MESH_SPACING
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
    padding: Annotated[float, Option(
        "margin of the grid around the atoms, in an open boundary; never less than the places where the potential is "
        "read need", unit="A", low=0, high=1000, heading="grid")] = 4.0

    def for_surface(self, structure: Structure, shape: SurfaceShape) -> SurfacePotential:
        """Return the options with a grid that contains all places where the potential of the structure is read."""
        beyond = PROBE_RADIUS if shape.outwards is None else max(shape.outwards, 0.0)
        reach = beyond + shape.probe * (shape.kind == "accessible") + 0.5 * self.spacing
        largest = float(van_der_waals_radii(fill_elements(structure).elements).max(initial=0.0))
        return replace(self, padding=max(self.padding, largest + reach))


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
