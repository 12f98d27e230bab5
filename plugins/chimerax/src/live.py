"""A map that follows what is shown: coordinate sets that are played, atoms that are moved, atoms that are specified."""

from __future__ import annotations

from typing import Any

import numpy as np
from chimerax.core.errors import UserError

from vmdpotential.frames.live import LiveMap
from vmdpotential.frontend.adapters import same_molecules
from vmdpotential.frontend.following import Following
from vmdpotential.grid.lattice import Grid
from vmdpotential.parameters import Command, Report

from .convert import Selected, positions_now
from .show import put_values

#: ChimeraX's trigger before it draws.
TRIGGER = "new frame"


class Live(Following):
    """A map model that is redrawn when the atoms that it was made of have moved.

    Parameters
    ----------
    session : ChimeraX's session
    command : Command
    convert : function
        Returns the command's values and atoms as they are now.
    spell : function
        Spells parameters in errors.
    volume : ChimeraX's map model
    selected : Selected
    live_map : LiveMap
    """

    failures = (*Following.failures, UserError)

    def __init__(self, session: Any, command: Command, convert: Any, spell: Any, volume: Any, selected: Selected,
                 live_map: LiveMap) -> None:
        super().__init__(spell)
        self.session, self.command, self.convert = session, command, convert
        self.volume, self.selected, self.live_map = volume, selected, live_map
        self._seen: Any = selected.structure.positions
        self._handler: Any = None
        if session.triggers.has_trigger(TRIGGER):
            self._handler = session.triggers.add_handler(TRIGGER, lambda *event: self.look())

    def _check(self) -> None:
        if self.volume.deleted:
            raise UserError("the map was closed")

    def _draw(self, grid: Grid) -> None:
        put_values(self.volume, grid)

    def _release(self) -> None:
        if self._handler is not None:
            self._handler.remove()
            self._handler = None

    def _tell(self, text: str) -> None:
        self.session.logger.warning(f"potential live: {text}")

    def _ask(self) -> None:
        if self._due() or len(self.selected.atoms) != len(self.selected.structure):
            values, selected = self.convert(self.session)
            if selected.atoms != self.selected.atoms or not same_molecules(selected.structure, self.selected.structure):
                self.selected, self._seen = selected, selected.structure.positions
                self.latest.ask(values, None)
                return
        positions = positions_now(self.selected)
        if not np.array_equal(positions, self._seen):
            self._seen = positions
            self.latest.ask(None, positions)

    def _compute(self, *request: Any) -> Grid:
        """In the thread: make the map of other positions, or of other atoms."""
        values, positions = request
        if values is None:
            return self.live_map.update(positions)
        report: Report = self.command(**values)
        self.live_map = report.objects["live"]
        return self.live_map.first
