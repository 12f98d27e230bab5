"""A map that follows what a viewer shows: planned once, computed for the newest frame alone."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress
from vmdpotential.errors import InputError
from vmdpotential.grid.lattice import Grid
from vmdpotential.io.trajectories.frames import Change
from vmdpotential.maps import MapOptions, plan_map
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import warn_unused

Made = TypeVar("Made")

#: How far atoms of an open boundary may move out of their first box, A, before the grid is rebuilt; as a part of
#: the padding around them, too.
MARGIN, PART = 5.0, 0.5

#: Results by which the rate is measured.
RECENT = 16


class LiveMap:
    """The map of a structure whose atoms move.

    The first map is checked against the tolerance; those of other frames are made by its plan, and state no errors.

    Parameters
    ----------
    structure : Structure
        With charges.
    options : MapOptions
    fixed_cell : bool
        Whether frames keep the structure's cell, instead of having their own.
    changes : sequence of function
        What makes positions and cell of the structure from those of the atoms that frames have, one after another.
    atoms : int, optional
        How many atoms frames have; as the structure unless given.

    Raises
    ------
    VmdpotentialError
        Those of :func:`vmdpotential.maps.potential_map`.
    """

    def __init__(self, structure: Structure, options: MapOptions, *, fixed_cell: bool = False,
                 changes: Sequence[Change] = (), atoms: int | None = None) -> None:
        self._changes = changes
        #: How many atoms a frame has.
        self.atoms = len(structure) if atoms is None else atoms
        if options.own is not None:
            warn_unused(("tolerance",), "the grid of a live map in a continuum is not made finer; set {spacing}")
        plan, result = plan_map(structure, options, margin=min(MARGIN, PART * options.padding), soon=0.0)
        #: The map of the structure as it was given.
        self.first = plan.grid(result)
        self._cell = structure.cell if fixed_cell else None
        self._plan = replace(plan, provenance=replace(
            plan.provenance, error=None, error_away=None, error_field=None, error_field_away=None))
        self._run = self._plan.plan.in_order()
        #: How often it was planned.
        self.plans = 1

    def update(self, positions: NDArray[np.float64], cell: Cell | None = None) -> Grid:
        """Return the map of all atoms at other positions (N, 3), A, in a cell: the structure's unless given.

        Raises
        ------
        InputError
            For other atoms than the structure's, or a position that is no number.
        """
        if np.shape(positions) != (self.atoms, 3):
            raise InputError(f"a frame of {len(positions)} atoms for a map of {self.atoms}", "start a map of these")
        if not np.isfinite(positions).all():
            raise InputError("a coordinate is not a number")
        cell = self._cell or cell or self._plan.structure.cell
        for change in self._changes:
            positions, cell = change(positions, cell)
        positions = self._plan.whole(positions, cell)
        if not self._plan.fits(positions, cell):
            self._plan = self._plan.again(positions, cell)
            self.plans += 1
            self._run = self._plan.plan.in_order()
        return self._plan.grid(self._plan.run(positions, self._run))


class Latest(Generic[Made]):
    """A thread that does the newest of what it is asked for; whatever is older and has not begun is dropped.

    Parameters
    ----------
    work : function
        Takes what :meth:`ask` was given. Its first error ends the thread.
    """

    def __init__(self, work: Callable[..., Made]) -> None:
        self._work = work
        self._changed = threading.Condition()
        self._waiting: tuple[Any, ...] | None = None
        self._made: list[Made] = []
        self._error: BaseException | None = None
        self._busy = self._stopping = False
        self._ends: deque[float] = deque(maxlen=RECENT)
        #: Requests, results, and requests that were dropped for newer ones.
        self.asked = self.done = self.dropped = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def ask(self, *request: Any) -> None:
        """Ask for something instead of whatever waits."""
        with self._changed:
            self.asked += 1
            self.dropped += self._waiting is not None
            self._waiting = request
            self._changed.notify_all()

    def take(self) -> Made | None:
        """Return the newest result, once; None while there is none.

        Raises
        ------
        Exception
            What ended the work, once.
        """
        with self._changed:
            if self._made:
                return self._made.pop()
            error, self._error = self._error, None
        if error is not None:
            raise error
        return None

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until all that was asked for is done or dropped; return whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.busy, timeout)

    @property
    def busy(self) -> bool:
        """Whether something is being done or waits."""
        return self.running and (self._busy or self._waiting is not None)

    @property
    def running(self) -> bool:
        """Whether it takes requests: it was not stopped, and nothing failed."""
        return self._thread.is_alive() and not self._stopping

    @property
    def rate(self) -> float:
        """Results a second, of the last ones; 0 of fewer than two."""
        with self._changed:
            ends = list(self._ends)
        return (len(ends) - 1) / (ends[-1] - ends[0]) if len(ends) > 1 and ends[-1] > ends[0] else 0.0

    def stop(self) -> None:
        """End the thread, also in the middle of work that reports its progress; results are not to be had after."""
        with self._changed:
            self._stopping = True
            self._waiting = None
            self._made.clear()
            self._changed.notify_all()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        try:
            with progress.listening(self.listen):
                while (request := self._next()) is not None:
                    made = self._work(*request)
                    with self._changed:
                        self.done += 1
                        self._ends.append(time.monotonic())
                        self._made[:] = [] if self._stopping else [made]
        except KeyboardInterrupt:
            pass
        except BaseException as error:  # raised where results are taken
            self._error = error
        finally:
            with self._changed:
                self._stopping, self._busy, self._waiting = True, False, None
                self._changed.notify_all()

    def _next(self) -> tuple[Any, ...] | None:
        with self._changed:
            self._busy = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._waiting is not None or self._stopping)
            request, self._waiting = self._waiting, None
            self._busy = request is not None
            return None if self._stopping else request

    def listen(self, label: str, fraction: float) -> None:
        """Hear of progress in the thread: it ends there when it is to stop."""
        if self._stopping:
            raise KeyboardInterrupt
