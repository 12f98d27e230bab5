"""Results of a command as objects of PyMOL: maps with a colour ramp, ions, images."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from vmdpotential.errors import InputError, UsageError
from vmdpotential.lattice import Grid
from vmdpotential.parameters import Command, Report

from .convert import Selected, load_grid, load_ions, load_structure, read_grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vmdpotential.ions import Placement

#: Colours of negative, zero and positive potential, and of ions by the sign of their charge.
COLOURS = ("red", "white", "blue")


class Results:
    """Names and makes the objects of one run.

    Parameters
    ----------
    cmd : PyMOL's cmd module or instance
    command : Command
    name : str
        What the objects are called; empty for a default.

    Raises
    ------
    UsageError
        When an object of that name exists that no earlier run has made.
    """

    def __init__(self, cmd: Any, command: Command, name: str) -> None:
        self.cmd = cmd
        self.name = cmd.get_legal_name(name or self.default_name(command))
        # kept on PyMOL's instance: {object: header of its map, empty for others}
        if not hasattr(cmd, "_vmdpotential"):
            cmd._vmdpotential = {}
        self.made: dict[str, dict[str, str]] = cmd._vmdpotential
        for taken in (self.name, self._ramp, self._ions):
            if taken in cmd.get_names("all") and taken not in self.made:
                raise UsageError(f"name '{name or self.name}': the object {taken} exists already; choose another name")

    @staticmethod
    def default_name(command: Command) -> str:
        """Return what the objects are called unless the user says so."""
        return {"map": "potential", "ionize": "ionized"}.get(command.name, command.name)

    @property
    def _ramp(self) -> str:
        return f"{self.name}_ramp"

    @property
    def _ions(self) -> str:
        return f"{self.name}_ions"

    def find_map(self, name: str) -> Grid | Path:
        """Return a map object as a Grid; another name is a file's."""
        if name in self.cmd.get_names("objects"):
            if self.cmd.get_type(name) != "object:map":
                raise InputError(f"object '{name}' is no map; choose one made by potential_map or loaded from a file")
            return read_grid(self.cmd, name, self.made.get(name, {}))
        if not Path(name).exists():
            raise InputError(f"'{name}' is neither a map object nor a file")
        return Path(name)

    def show(self, report: Report, atoms: Selected | None) -> list[str]:
        """Make an object of everything in the report that PyMOL can show; return what to tell the user."""
        from vmdpotential.ions import Placement

        lines = []
        for value in report.objects.values():
            if isinstance(value, Grid):
                lines += self._show_map(value)
            elif isinstance(value, Placement) and atoms is not None:
                lines += self._show_ions(value, atoms)
            elif hasattr(value, "savefig"):  # matplotlib's Figure; importing it only to ask would be slow
                self._show_figure(value)
        return lines

    def _new(self, name: str, header: dict[str, str]) -> None:
        self.cmd.delete(name)
        self.made[name] = header

    def _show_map(self, grid: Grid) -> list[str]:
        self._new(self.name, grid.header())
        load_grid(self.cmd, self.name, grid)
        limit = grid.round_level()
        self._new(self._ramp, {})
        self.cmd.ramp_new(self._ramp, self.name, [-limit, 0.0, limit], list(COLOURS))
        return [f"map object {self.name}, in {grid.unit or 'no known unit'}; colour ramp {self._ramp} from "
                f"{-limit:g} to {limit:g}; colour a surface by it with: set surface_color, {self._ramp}"]


    def _show_ions(self, placement: Placement, atoms: Selected) -> list[str]:
        structure = placement.structure
        kept = placement.kept_atoms
        added = np.arange(len(kept), len(structure))
        self._new(self.name, {})
        load_structure(self.cmd, self.name, structure, atoms, kept)
        self._new(self._ions, {})
        if not len(added):
            return [f"object {self.name}: no ions were needed"]
        load_ions(self.cmd, self._ions, structure, added)
        self.cmd.show_as("spheres", self._ions)
        self.cmd.set("sphere_scale", 0.6, self._ions)
        self.cmd.color(COLOURS[0], f"{self._ions} and partial_charge < 0")
        self.cmd.color(COLOURS[2], f"{self._ions} and partial_charge > 0")
        return [f"object {self.name}: {len(kept)} atoms kept, {len(added)} ions; object {self._ions}: the ions, "
                f"positive {COLOURS[2]}, negative {COLOURS[0]}"]


    def _show_figure(self, figure: Figure) -> None:
        """Show a picture of the figure in PyMOL's window."""
        with TemporaryDirectory() as folder:
            path = Path(folder, "figure.png")
            figure.savefig(path, dpi=150)
            self.cmd.load_png(str(path), quiet=1)
