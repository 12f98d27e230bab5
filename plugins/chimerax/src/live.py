"""A map that follows what is shown: coordinate sets that are played, atoms that are moved, atoms that are specified."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from chimerax.core.errors import UserError

from vmdpotential.errors import VmdpotentialError
from vmdpotential.frames.live import Latest, LiveMap
from vmdpotential.frontend import messages
from vmdpotential.grid.lattice import Grid
from vmdpotential.parameters import Command, Report

from .convert import Selected, positions_now
from .show import put_values

#: What ChimeraX tells before it draws, and how often the members of the atom specification are looked at, in seconds.
TRIGGER, MEMBERS = "new frame", 0.5


class Live:
    """A map model that is drawn anew when the atoms that it was made of have moved.

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
    made : LiveMap
    """

    def __init__(self, session: Any, command: Command, convert: Any, spell: Any, volume: Any, selected: Selected,
                 made: LiveMap) -> None:
        self.session, self.command, self.convert, self.spell = session, command, convert, spell
        self.volume, self.selected, self.made = volume, selected, made
        self.latest: Latest[Grid] = Latest(self._compute)
        self._seen: Any = selected.structure.positions
        self._checked = time.monotonic()
        self._handler: Any = None
        if session.triggers.has_trigger(TRIGGER):
            self._handler = session.triggers.add_handler(TRIGGER, lambda *told: self.look())

    def look(self) -> None:
        """Show the map that is ready, and ask for another when something has moved."""
        try:
            grid = self.latest.take()
            if self.volume.deleted:
                raise UserError("the map was closed")
            if grid is not None:
                put_values(self.volume, grid)
            self._ask()
        except (VmdpotentialError, UserError, MemoryError) as error:
            self.stop()
            text = str(error) if isinstance(error, UserError) else messages.one_line(error, self.spell)
            self.session.logger.warning(f"potential live: ended: {text}")
        except BaseException:
            self.stop()
            raise

    def wait(self) -> None:
        """Show the map of what is shown now."""
        self._checked = -np.inf
        self.look()
        self.latest.wait()
        self.look()

    def stop(self) -> str:
        """End it; return what to tell the user."""
        if self._handler is not None:
            self._handler.remove()
            self._handler = None
        rate = self.latest.rate
        self.latest.stop()
        done = self.latest
        return (f"ended after {done.done} maps" + (f", {rate:.1f} a second" if rate else "")
                + f"; {done.dropped} frames were dropped for newer ones")

    def _ask(self) -> None:
        now = time.monotonic()
        if now - self._checked > MEMBERS or len(self.selected.atoms) != len(self.selected.structure):
            self._checked = now
            values, selected = self.convert(self.session)
            if selected.atoms != self.selected.atoms:
                self.selected, self._seen = selected, selected.structure.positions
                self.latest.ask(values, None)
                return
        positions = positions_now(self.selected)
        if not np.array_equal(positions, self._seen):
            self._seen = positions
            self.latest.ask(None, positions)

    def _compute(self, values: Any, positions: Any) -> Grid:
        """In the thread: make the map of other positions, or of other atoms."""
        if values is None:
            return self.made.update(positions)
        report: Report = self.command(**values)
        self.made = report.objects["live"]
        return self.made.first
