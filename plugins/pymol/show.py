"""Results of a command as objects of PyMOL: maps with a colour ramp, surfaces, ions, images."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pymol
from pymol import CmdException, cgo

from vmdpotential.errors import InputError, UsageError
from vmdpotential.figures import colours
from vmdpotential.figures.colours import ValueRange
from vmdpotential.grid.lattice import Grid
from vmdpotential.grid.planes import Plane
from vmdpotential.molecule.elements import fill_elements, van_der_waals_radii
from vmdpotential.parameters import Command, Report
from vmdpotential.surfaces import cavity_spheres

from ..viewers import adapters, map_surfaces
from ..viewers.outside import outside_molecule
from .convert import Selected
from .grids import load_grid, read_grid
from .load import add_fillers, load_ions, load_structure, load_whole, nuclei_text
from .session import Session

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vmdpotential.molecule.structure import Structure
    from vmdpotential.plugins.ions.placement import Placement
    from vmdpotential.surfaces.drawn import DrawnSurface

_MAP_PARTS = ("ramp", "legend", "outside", "images", "positive", "negative", "surface", "cut", "nuclei", "group")
_ION_PARTS = ("ions", "group")
_MESH_PARTS = ("legend", "labels", "group")
_DISPLAY_SUFFIXES = ("_surface", "_legend")

#: Position of the legend on the screen, whose coordinates are from -1 to 1: above the molecule.
LEGEND = (0.0, 0.92, 0.0)

#: Largest length of its lines, in letters, so that they fit into a small window.
LETTERS = 60


def _named(colour: str) -> str:
    """Return PyMOL's spelling of a colour such as #c8372d."""
    return colour.replace("#", "0x")


class Results:
    """The objects that show the results of one run.

    Parameters
    ----------
    cmd : PyMOL's cmd module or instance
    command : Command
    name : str
        Name of the objects; empty for a default.
    options : mapping
        Options of the display, see :mod:`.display`.

    Raises
    ------
    UsageError
        When an object with that name exists that was not made by an earlier run.
    """

    def __init__(self, cmd: Any, command: Command, name: str, options: Mapping[str, Any]) -> None:
        self.cmd = cmd
        self.name = cmd.get_legal_name(name or command.makes)
        self.options = options
        self.live = command.draws == "live"
        self.session = Session.of(cmd)
        self._lines: list[str] = []
        self._zoom, self._had_nuclei = "", False
        self.session.check_free([self.name, *map(self._part, (*_MAP_PARTS, *_ION_PARTS, *_MESH_PARTS))])

    def _part(self, part: str) -> str:
        return f"{self.name}_{part}"

    def display_objects(self) -> list[str]:
        """Return the objects of this and earlier runs that only display a map; their atoms are not part of a system."""
        names = [name for name in self.session.records
                 if name.endswith(_DISPLAY_SUFFIXES) and self.session.is_unchanged_result(name)]
        return list(dict.fromkeys([*names, *(self.name + part for part in _DISPLAY_SUFFIXES)]))

    def find_map(self, name: str) -> Grid | Path:
        """Return a map object as a Grid, or else the name of a file as a Path."""
        if name in self.cmd.get_names("objects"):
            if self.cmd.get_type(name) != "object:map":
                raise InputError(f"object '{name}' is not a map",
                                 "choose one made by potential_map or loaded from a file")
            return read_grid(self.cmd, name, self.session.header(name))
        if not Path(name).exists():
            raise InputError(f"'{name}' is neither a map object nor a file")
        return Path(name)

    def load_copies(self, structure: Structure) -> str:
        """Make an object with the copies in an assembly or a cell, which replaces an earlier one; return its name."""
        name = self._part("copies")
        self.session.check_free([name])
        self.cmd.delete(name)
        load_whole(self.cmd, name, structure)
        self._made("copies")
        return name

    def show(self, report: Report, atoms: Selected | None) -> list[str]:
        """Make an object of every result in the report that PyMOL can show, and return the lines for the user.

        If one cannot be made, the others are deleted.
        """
        results = adapters.results(report)
        further = [name for name, value in report.objects.items() if isinstance(value, Grid)][1:]
        parts = (_ION_PARTS if "ions" in dict(results) else _MESH_PARTS if "mesh" in dict(results)
                 else (*_MAP_PARTS, *further))
        names = [self.name, *map(self._part, parts)]
        self.session.check_free(names)  # the user may have made one while the command ran
        if atoms is not None and atoms.count != sum(
                self.cmd.count_atoms(part, state=state) for part, state in atoms.parts()):
            raise InputError("the selected atoms were changed while the command ran", "run it again")
        step, view = self.session.start(names), self.cmd.get_view()
        self._had_nuclei = self.session.is_unchanged_result(self._part("nuclei"))
        self._lines = []
        try:
            for kind, value in results:
                if kind == "map" and value is not report.objects["grid"]:
                    self._load_map(value, further.pop(0))
                elif kind == "map":
                    self._clear(parts)
                    self._show_map(value, report, atoms)
                elif kind == "mesh":
                    self._show_mesh(value)
                elif kind == "figure":
                    if "mesh" not in dict(results):  # which it would hide
                        self._show_figure(value)
                elif kind == "values" and atoms is not None:
                    self._show_values(value, atoms)
                elif atoms is not None:
                    self._show_ions(value, atoms)
                    self.session.placements.append(step)
            self._group(names)
        except BaseException:
            self.session.revert(step)
            raise
        finally:
            if self._zoom:
                self.cmd.zoom(self._zoom, 4)
            elif self.cmd.get_view() != view:  # PyMOL centres the view on new objects
                self.cmd.set_view(view)
        return self._lines

    def _clear(self, parts: tuple[str, ...]) -> None:
        """Delete the objects of an earlier run with this name."""
        for name in (self.name, *map(self._part, parts)):
            if self.session.is_unchanged_result(name):
                self.session.delete(name)

    def _made(self, part: str = "", header: Mapping[str, str] | None = None) -> None:
        self.session.add(self._part(part) if part else self.name, header or {})

    def _group(self, names: Iterable[str]) -> None:
        """Put the objects of this run into a group, one entry in PyMOL's panel; a single one needs none."""
        made = [name for name in names if self.session.is_unchanged_result(name)]
        if len(made) < 2:
            return
        self.cmd.group(self._part("group"), " ".join(made))
        self._made("group")

    def _load_map(self, grid: Grid, part: str) -> None:
        """Make a map object of a further map of a result, such as a standard deviation."""
        load_grid(self.cmd, self._part(part), grid)
        self._made(part, grid.header())
        self._lines.append(f"map object {self._part(part)}: {grid.provenance.quantity}, {colours.map_meaning(grid)}")

    def _show_map(self, grid: Grid, report: Report, atoms: Selected | None) -> None:
        """Show a potential by a ramp, and a map that declares levels, such as a density, by isosurfaces."""
        if "levels" in report.data:
            self._show_levels(grid, report.objects["structure"] if atoms is None else None)
            return
        cmd, ramp, source = self.cmd, self._part("ramp"), self.name
        wider = map_surfaces.covering_surface(grid, report.objects.get("structure"))
        if self.live:
            grid = wider
        span = self.options.get("range") or map_surfaces.surface_range(
            grid, None if atoms is None else atoms.structure)
        load_grid(cmd, self.name, grid)
        self._made(header=grid.header())
        if wider is not grid:  # PyMOL has no colour for points outside of a map, even if it is periodic
            source = self._part("images")
            load_grid(cmd, source, wider)
            self._made("images", wider.header())
        values, shades = zip(*colours.scale(span), strict=True)
        cmd.ramp_new(ramp, source, list(values), [[x / 255 for x in bytes.fromhex(shade[1:])] for shade in shades])
        self._made("ramp")
        words = map_surfaces.legend(grid, span)
        self._show_legend(f"{self.name}: {words}")
        self._lines.append(f"map object {self.name}; colour ramp {ramp}: {words}; colour another surface by it with: "
                           f"set surface_color, {ramp}")
        level = self.options.get("isosurface")
        if level is None and self.live and self.options.get("cut") is None:
            level = grid.display_limit()
        if level is not None:
            self._show_isosurfaces(grid, (level, -level), report.objects.get("structure"))
        if self.options.get("surface") and atoms is not None:
            self._show_surface(atoms, report, ramp, colours.reading_distance(grid))
        if (plane := self.options.get("cut")) is not None:
            self._show_cut(grid, plane, ramp)

    def _show_isosurfaces(self, grid: Grid, levels: Sequence[float], around: Structure | None = None) -> str:
        """Draw isosurfaces, outside the molecules of a structure if one is given; return what they show.

        A live map keeps all values, as it is drawn many times a second.
        """
        cmd, source = self.cmd, self.name
        with contextlib.suppress(CmdException):  # a setting of PyMOL 3
            # a build without the default algorithm writes a line for each isosurface, dozens a second of a live map
            if cmd.get_setting_int("isosurface_algorithm") == 0 and "vtkm" not in pymol.get_capabilities():
                cmd.set("isosurface_algorithm", 1)
        if around is not None and not self.live:
            source = self._part("outside")
            load_grid(cmd, source, outside_molecule(grid, around))
            self._made("outside")
        made = []
        for value in levels:
            part = "positive" if value > 0 else "negative"
            cmd.isosurface(self._part(part), source, value)
            self._made(part)
            cmd.color(_named(colours.sign_colour(value)), self._part(part))
            cmd.set("transparency", 0.4, self._part(part))
            made.append(f"{self._part(part)} at {value:g}")
        self._lines.append(f"isosurface{'s' * (len(made) > 1)} {' and '.join(made)} {grid.unit}".rstrip())
        values = " and ".join(f"{value:g}" for value in levels)
        return f"isosurface{'s' * (len(made) > 1)} at {values} {grid.unit}".rstrip()

    def _show_levels(self, grid: Grid, nuclei: Structure | None) -> None:
        """Show an orbital, a density or the energy of a probe by isosurfaces, and nuclei as sticks."""
        cmd, name, first = self.cmd, self._part("nuclei"), not self._had_nuclei
        load_grid(cmd, self.name, grid)
        self._made(header=grid.header())
        if nuclei is not None:
            cmd.read_pdbstr(nuclei_text(nuclei), name, zoom=0)  # PyMOL finds the bonds
            self._made("nuclei")
            cmd.show_as("sticks", name)
            self._zoom = name if first else ""
        levels = colours.isosurface_levels(grid, self.options.get("isosurface"))
        self._show_legend(f"{self.name}: {grid.provenance.quantity}, {self._show_isosurfaces(grid, levels)}")

    def refresh(self) -> None:
        """Redraw isosurfaces and cuts after the map's values have changed, at the levels that the user has set."""
        cmd = self.cmd
        for name in (self._part("positive"), self._part("negative")):
            if self.session.is_unchanged_result(name):
                cmd.isolevel(name, cmd.isolevel(name, query=1))
        if self.session.is_unchanged_result(self._part("cut")):
            cmd.rebuild(self._part("cut"))

    def _show_legend(self, text: str) -> None:
        """Show the meaning of the colours in a label at a fixed position on the screen; hide those of other maps."""
        cmd, name = self.cmd, self._part("legend")
        for other in self.session.records:
            if other.endswith(("_ramp", "_legend")) and not other.startswith(f"{self.name}_"):
                cmd.disable(other)
        centre = cmd.get_position()
        cmd.pseudoatom(name, pos=list(centre), label=textwrap.fill(text, LETTERS, break_on_hyphens=False))
        self._made("legend")
        cmd.set("label_relative_mode", 1, name)
        cmd.set("label_screen_point", LEGEND, name)
        cmd.set("float_labels", 1, name)

    def _show_surface(self, atoms: Selected, report: Report, ramp: str, outwards: float) -> None:
        """Show the surface of the atoms that were computed, where their map is, coloured by it `outwards`, A, from it.

        They may have atoms that were added, and molecules that were made whole.
        """
        cmd, name, part = self.cmd, self._part("surface"), self.options.get("surface_of")
        computed = map_surfaces.surface_of(report, part, atoms.structure)
        assert computed is not None
        load_whole(cmd, name, replace(computed, cell=None))
        cmd.alter(f"%{name}", "vdw = radii[rank]",
                  space={"radii": van_der_waals_radii(fill_elements(computed).elements).tolist()})
        add_fillers(cmd, name, *cavity_spheres(computed, cmd.get_setting_float("solvent_radius")))
        self._made("surface")
        cmd.flag("ignore", name, "clear")  # PyMOL leaves ligands and modified residues out of surfaces
        cmd.show_as("surface", name)
        cmd.set("surface_color", ramp, name)
        cmd.set("surface_ramp_above_mode", int(outwards > 0), name)  # PyMOL's distance is solvent_radius, 1.4 A
        if self.options.get("hide_water"):
            self._hide_water(atoms)
        words = f" of {part}, in the field of all computed atoms" if part else ""
        self._lines.append(f"object {name}: the surface{words}, coloured by {ramp}")

    def _hide_water(self, atoms: Selected) -> None:
        """Hide the water of objects when their first surface is drawn; later, the user's choice is kept."""
        for name in sorted(set(atoms.structure.sources) & set(self.cmd.get_names("objects"))):
            water = f"%{name} and solvent"
            if name not in self.session.without_water and self.cmd.count_atoms(water):
                self.cmd.hide("everything", water)
                self._lines.append(f"the water of {name} is hidden; show it with: show lines, {name} and solvent")
            self.session.without_water.add(name)

    def _show_cut(self, grid: Grid, plane: Plane, ramp: str) -> None:
        """Make a slice object. PyMOL can place it only by the camera, so its plane is set in a saved session."""
        cmd, name = self.cmd, self._part("cut")
        lattice, axis = grid.lattice, plane.axis
        assert axis is not None  # the option accepts only x=, y= and z=
        position = float(plane.point[axis])
        if not lattice.origin[axis] <= position <= lattice.last[axis]:
            raise UsageError("cut", f"the map reaches from {lattice.origin[axis]:g} to {lattice.last[axis]:g} A",
                             value=f"{'xyz'[axis]}={position:g}")
        point = (lattice.origin + lattice.last) / 2
        point[axis] = position
        cmd.slice_new(name, self.name)
        saved = cmd.get_session(name, partial=1, quiet=1)
        (state,) = next(entry for entry in saved["names"] if entry and entry[0] == name)[5][2]
        state[6] = point.tolist()
        state[7] = np.stack([plane.right, plane.up, plane.normal], axis=1).ravel().tolist()
        cmd.delete(name)
        cmd.set_session(saved, partial=1, quiet=1)
        self._made("cut")
        cmd.color(ramp, name)
        self._lines.append(f"slice object {name}, through {'xyz'[axis]}={position:g} A, coloured by {ramp}")

    def _show_values(self, structure: Structure, atoms: Selected) -> None:
        """Make a copy of the atoms, coloured by values, which replace its B factors."""
        self._clear(())
        limit = float(np.abs(structure.b_factors).max()) or 1.0
        load_structure(self.cmd, self.name, structure, atoms, np.arange(len(structure)))
        self._made()
        self.cmd.spectrum("b", "blue white red", self.name, minimum=-limit, maximum=limit)
        self._lines.append(f"object {self.name}: a copy with the values as B factors, coloured from {-limit:.4g} "
                           f"(blue) to {limit:.4g} (red)")

    def _show_mesh(self, drawn: DrawnSurface) -> None:
        """Draw a coloured surface as triangles, with its labels."""
        parts = _MESH_PARTS
        self._clear(parts)
        surface, span = drawn.surface, ValueRange(*drawn.span)
        rgb = colours.rgb_of(drawn.values, span) / 255
        rows = surface.triangles.ravel()
        corners = np.column_stack([np.full(len(rows), cgo.COLOR), rgb[rows], np.full(len(rows), cgo.NORMAL),
                                   surface.normals[rows], np.full(len(rows), cgo.VERTEX), surface.vertices[rows]])
        self.cmd.load_cgo([cgo.BEGIN, cgo.TRIANGLES, *corners.ravel().tolist(), cgo.END], self.name, zoom=0)
        self._made()
        words = f"{span.low:g} to {span.high:g} {drawn.meaning}"
        if drawn.labels:
            labels = self._part("labels")
            for name, place in drawn.labels:
                self.cmd.pseudoatom(labels, pos=place.tolist(), label=name)
            self.cmd.hide("nonbonded", labels)
            self._made("labels")
        self._show_legend(f"{self.name}: {words}")
        self._lines.append(f"object {self.name}: the surface, coloured from {words} (red, white, blue)"
                           + (f"; object {self._part('labels')}: {len(drawn.labels)} names" if drawn.labels else ""))

    def _show_ions(self, placement: Placement, atoms: Selected) -> None:
        cmd, structure, ions = self.cmd, placement.structure, self._part("ions")
        kept = placement.kept_atoms
        added = np.arange(len(kept), len(structure))
        self._clear(_ION_PARTS)
        load_structure(cmd, self.name, structure, atoms, kept)
        self._made()
        for name in set(structure.sources) & set(cmd.get_names("objects")):
            if cmd.count_atoms(f"%{name}") == cmd.count_atoms(f"%{name} and ({atoms.selection})"):
                cmd.disable(name)  # the new object has all of its atoms; potential_undo shows it again
        if not len(added):
            self._lines.append(f"object {self.name}: no ions were needed")
            return
        load_ions(cmd, ions, structure, added, placement.atom_energies)
        self._made("ions")
        cmd.hide("everything", f"%{self.name} within 0.01 of %{ions}")  # otherwise the ions would be drawn twice
        cmd.show_as("spheres", ions)
        cmd.set("sphere_scale", 0.6, ions)
        for sign, condition in ((-1, "< 0"), (1, "> 0")):
            cmd.color(_named(colours.sign_colour(sign)), f"{ions} and partial_charge {condition}")
        if self.options.get("labels"):
            cmd.label(ions, "'%.1f' % b")
            cmd.set("label_position", [0, 1.8, 3], ions)  # above the sphere and in front of it
        self._lines.append(
            f"object {self.name}: {len(kept)} atoms kept, {len(placement.ions)} ions; object {ions}: the ions, "
            "positive blue, negative red, b is the energy in kcal/mol; undo with: potential_undo")

    def _show_figure(self, figure: Figure) -> None:
        """Show a picture of the figure in PyMOL's window."""
        with TemporaryDirectory() as folder:
            path = Path(folder, "figure.png")
            figure.savefig(path, dpi=150)
            self.cmd.load_png(str(path), quiet=1)
