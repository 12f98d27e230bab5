"""A map that is kept up to date while coordinate sets are played, atoms are moved, or the specified atoms change."""

from __future__ import annotations

from typing import Any

import numpy as np
from chimerax.core.errors import UserError

from vmdpotential.grid.lattice import Grid
from vmdpotential.parameters import Report
from vmdpotential.plugins.live.live_map import LiveMap
from vmdpotential.plugins.viewers.following import FollowingMap
from vmdpotential.plugins.viewers.map_surfaces import covering_surface, same_molecules

from .convert import positions_now
from .show import put_values

#: ChimeraX's trigger before each drawing.
TRIGGER = "new frame"


class Live(FollowingMap):  # type: ignore[misc]
    """A map model that is redrawn when its atoms have moved.

    Parameters
    ----------
    task : Task
        The finished run of the command ``live``.
    volume : ChimeraX's map model
        The map to redraw.
    live_map : LiveMap
        The result of the command ``live``.
    """

    failures = (*FollowingMap.failures, UserError)
    whole = "potential map"

    def __init__(self, task: Any, volume: Any, live_map: LiveMap) -> None:
        super().__init__(task.spell)
        self.task, session = task, task.session
        self.volume, self.selected, self.live_map = volume, task.selected, live_map
        self._seen: Any = self.selected.structure.positions
        self._handler: Any = None
        if session.triggers.has_trigger(TRIGGER):
            self._handler = session.triggers.add_handler(TRIGGER, lambda *event: self.look())

    def _check(self) -> None:
        if self.volume.deleted:
            raise UserError("the map was closed")

    def _draw(self, grid: Grid) -> None:
        put_values(self.volume, covering_surface(grid, self.selected.structure))

    def _release(self) -> None:
        if self._handler is not None:
            self._handler.remove()
            self._handler = None

    def _tell(self, text: str) -> None:
        self.task.session.logger.warning(f"potential live: {text}")

    def _ask(self) -> None:
        if self._due() or len(self.selected.atoms) != len(self.selected.structure):
            values, selected = self.task.convert_again()
            if selected.atoms != self.selected.atoms or not same_molecules(selected.structure, self.selected.structure):
                self.selected, self._seen = selected, selected.structure.positions
                self.latest.ask(values, None)
                return
        positions = positions_now(self.selected)
        if not np.array_equal(positions, self._seen):
            self._seen = positions
            self.latest.ask(None, positions)

    def _compute(self, *request: Any) -> Grid:
        """Return the map of new positions, or of other atoms; called in the thread."""
        values, positions = request
        if values is None:
            return self.live_map.update(positions)
        report: Report = self.task.command(**values)
        self.live_map, grid = report.objects["live"], report.objects["grid"]
        return grid
