"""A map that is kept up to date while states are played, atoms are moved, or the selection changes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from pymol import CmdException

from vmdpotential.grid.lattice import Grid

from ..live.live_map import LiveMap
from ..viewers.following import FollowingMap
from ..viewers.map_surfaces import covering_surface
from .convert import Selected, cell_now, positions_now, symmetries
from .grids import draw_grid
from .session import Session

if TYPE_CHECKING:
    from .task import Task

#: Properties on which an atom's charge depends, by PyMOL's names.
_IDENTITY = ("model", "index", "resn", "name", "elem", "partial_charge", "formal_charge")

#: Milliseconds between two checks for changes.
TICK = 15


class Live(FollowingMap):
    """A map that is redrawn when its atoms have moved.

    PyMOL does not report changes of states or positions, so :meth:`look` checks for them, called by a timer of the
    window or by :meth:`wait`. Maps are computed in a thread, only for the newest positions.

    Parameters
    ----------
    task : Task
        The finished run of the command ``live``.
    live_map : LiveMap
        Its result.
    """

    failures = (*FollowingMap.failures, CmdException)
    whole = "potential_map"

    def __init__(self, task: Task, live_map: LiveMap) -> None:
        self.cmd, self.task, self.live_map = task.cmd, task, live_map
        assert task.atoms is not None
        self.atoms: Selected = task.atoms
        super().__init__(task.spell)
        self._seen: Any = None
        self._frame: Any = None
        self._members: Any = self._indices()
        self._timer: Any = None
        qt = sys.modules.get("pymol.Qt")  # imported only if PyMOL has a window; see feedback
        if qt is not None and qt.QtWidgets.QApplication.instance() is not None:
            self._timer = qt.QtCore.QTimer()
            self._timer.timeout.connect(self.look)
            self._timer.start(TICK)
        self.look()

    def _release(self) -> None:
        if self._timer is not None:
            self._timer.stop()

    def _tell(self, text: str) -> None:
        print(f" live: {text}")

    def status(self) -> str:
        """Return a line with the rate of maps."""
        return f"{self.latest.rate:.1f} maps per second" if self.latest.rate else "follows what is shown"

    def _indices(self) -> Any:
        """Return the properties that identify the atoms; a changed protonation state, for example, changes names."""
        results: list[tuple[Any, ...]] = []
        self.cmd.iterate(f"({self.atoms.selection})", f"add_row(({','.join(_IDENTITY)}))",
                         space={"add_row": results.append})
        return results

    def _ask(self) -> None:
        if self._due() and (members := self._indices()) != self._members:
            self._members = members
            self.task = self.task.renewed()
            assert self.task.atoms is not None
            self.atoms, self._seen = self.task.atoms, None
            self.latest.ask(self.task, None, None)
            return
        positions = positions_now(self.cmd, self.atoms)
        if positions is None:  # an object does not have this state, or is being changed
            return
        seen = symmetries(self.cmd, self.atoms)
        if self._seen is not None and seen == self._seen[1] and np.array_equal(positions, self._seen[0]):
            return
        first, self._seen = self._seen is None, (positions, seen)
        if not first or not np.array_equal(positions[self.atoms.order], np.float32(self.atoms.structure.positions)):
            self.latest.ask(None, positions[self.atoms.order], cell_now(self.cmd, self.atoms))

    def _compute(self, *request: Any) -> Grid:
        """Return the map of new positions, or of other atoms; called in the thread."""
        task, positions, cell = request
        if task is None:
            return self.live_map.update(positions.astype(np.float64), cell)
        self.live_map = task.compute(self.latest.listen).objects["live"]
        return self.live_map.first

    def _draw(self, grid: Grid) -> None:
        name, session = self.task.results.name, Session.of(self.cmd)
        if not session.is_unchanged_result(name):
            raise CmdException(f"the map {name} was deleted or replaced")
        grid = covering_surface(grid, self.atoms.structure)
        if draw_grid(self.cmd, name, grid):
            session.add(name, grid.header())
        self.task.results.refresh()
