"""Common part of the viewers' live maps: requesting maps of the frame that is shown, drawing them, and ending."""

from __future__ import annotations

import abc
import logging
import time
from typing import Any, ClassVar

import numpy as np

from vmdpotential.errors import Spelling, VmdpotentialError, count_of
from vmdpotential.frontend import messages
from vmdpotential.grid.lattice import Grid

from ..live.live_map import LatestRequestThread, LiveMap

#: Time between two evaluations of a selection, s.
MEMBERS = 0.5


class FollowingMap(abc.ABC):
    """A map that is redrawn when its atoms have moved.

    Viewers call :meth:`look` from time to time; maps are computed in a thread, only for the newest frame.

    Parameters
    ----------
    spell : function
        Writes parameters in errors in the viewer's syntax.
    """

    #: Errors that are reported to the user; a viewer adds its own errors, whose text is one line.
    failures: ClassVar[tuple[type[Exception], ...]] = (VmdpotentialError, MemoryError)
    #: The viewer's command that draws whole molecules.
    whole: ClassVar[str]
    live_map: LiveMap

    def __init__(self, spell: Spelling) -> None:
        self._spell = spell
        self.latest: LatestRequestThread[Grid] = LatestRequestThread(self._compute)
        self._checked = time.monotonic()
        self._told = False
        # warnings were given when the map was made; without a handler, logging would print them again for every frame
        self._silent = logging.NullHandler()
        logging.getLogger("vmdpotential").addHandler(self._silent)

    @property
    def running(self) -> bool:
        """Whether the map is still updated."""
        return self.latest.running

    def look(self) -> None:
        """Draw the map if one is ready, and request another if atoms have moved."""
        try:
            grid = self.latest.take()
            self._check()
            if grid is not None:
                self._draw(grid)
            if self.live_map.moved and not self._told:
                self._told = True
                self._tell("the map is that of whole molecules, made by moving "
                           f"{count_of(self.live_map.moved, 'atom')} across the periodic cell; {self.whole} draws "
                           "their surface there")
            self._ask()
        except self.failures as error:
            text = str(error).strip()
            if isinstance(error, VmdpotentialError | MemoryError):
                text = messages.one_line(error, self._spell)
            self.stop()
            self._tell(f"ended: {text}")
        except BaseException:
            self.stop()
            raise

    def wait(self) -> None:
        """Compute and draw the map of the frame that is shown now."""
        self._checked = -np.inf
        self.look()
        self.latest.wait()
        self.look()

    def stop(self) -> str:
        """End the updates; return a line for the user."""
        self._release()
        logging.getLogger("vmdpotential").removeHandler(self._silent)
        rate = self.latest.rate
        self.latest.stop()
        done = self.latest
        return (f"ended after {done.done} maps" + (f", {rate:.1f} per second" if rate else "")
                + f"; {done.dropped} frame{'s were' if done.dropped != 1 else ' was'} dropped for newer ones")

    def _due(self) -> bool:
        """Return whether it is time to evaluate the selection again."""
        now = time.monotonic()
        if now - self._checked <= MEMBERS:
            return False
        self._checked = now
        return True

    def _check(self) -> None:  # noqa: B027 - not every viewer has something to check
        """Raise an error if the map cannot be drawn any more."""

    @abc.abstractmethod
    def _ask(self) -> None:
        """Request a map from `latest` if atoms have moved."""

    @abc.abstractmethod
    def _compute(self, *request: Any) -> Grid:
        """Return the requested map; called in the thread."""

    @abc.abstractmethod
    def _draw(self, grid: Grid) -> None:
        """Show a map instead of the previous one."""

    @abc.abstractmethod
    def _release(self) -> None:
        """Remove timers and handlers; may be called more than once."""

    @abc.abstractmethod
    def _tell(self, text: str) -> None:
        """Report to the user, e.g. why the updates have ended."""
