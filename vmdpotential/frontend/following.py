"""What the live maps of viewers share: looking at what is shown, drawing what is ready, and ending."""

from __future__ import annotations

import abc
import time
from typing import Any, ClassVar

import numpy as np

from vmdpotential.errors import Spelling, VmdpotentialError
from vmdpotential.frames.live import Latest
from vmdpotential.frontend import messages
from vmdpotential.grid.lattice import Grid

#: Seconds between two looks at which atoms a selection means.
MEMBERS = 0.5


class Following(abc.ABC):
    """A map that is redrawn when what it was made of has moved.

    Viewers call :meth:`look` from time to time; maps are computed in a thread, for the newest frame alone.

    Parameters
    ----------
    spell : function
        Spells parameters in errors.
    """

    #: What is reported to the user; a viewer adds its own errors, whose text is one line.
    failures: ClassVar[tuple[type[Exception], ...]] = (VmdpotentialError, MemoryError)

    def __init__(self, spell: Spelling) -> None:
        self._spell = spell
        self.latest: Latest[Grid] = Latest(self._compute)
        self._checked = time.monotonic()

    @property
    def running(self) -> bool:
        """Whether it follows still."""
        return self.latest.running

    def look(self) -> None:
        """Draw the map that is ready, and ask for another when something has moved."""
        try:
            grid = self.latest.take()
            self._check()
            if grid is not None:
                self._draw(grid)
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
        """Draw the map of what is shown now."""
        self._checked = -np.inf
        self.look()
        self.latest.wait()
        self.look()

    def stop(self) -> str:
        """End it; return the line for the user."""
        self._release()
        rate = self.latest.rate
        self.latest.stop()
        done = self.latest
        return (f"ended after {done.done} maps" + (f", {rate:.1f} a second" if rate else "")
                + f"; {done.dropped} frames were dropped for newer ones")

    def _due(self) -> bool:
        """Return whether it is time to look at which atoms are meant."""
        now = time.monotonic()
        if now - self._checked <= MEMBERS:
            return False
        self._checked = now
        return True

    def _check(self) -> None:  # noqa: B027 - not every viewer has something to check
        """Raise an error where the map cannot be drawn any more."""

    @abc.abstractmethod
    def _ask(self) -> None:
        """Ask `latest` for a map when something has moved."""

    @abc.abstractmethod
    def _compute(self, *request: Any) -> Grid:
        """In the thread: make the map that was asked for."""

    @abc.abstractmethod
    def _draw(self, grid: Grid) -> None:
        """Show a map in place of the one before."""

    @abc.abstractmethod
    def _release(self) -> None:
        """Let go of timers and handlers; it may be called again."""

    @abc.abstractmethod
    def _tell(self, text: str) -> None:
        """Tell the user why it has ended."""
