"""Live maps that follow the frame shown by a viewer: planned once, and computed for the newest frame only."""

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
from vmdpotential.errors import InputError, check_unmasked
from vmdpotential.grid.lattice import Grid
from vmdpotential.io.trajectories.frames import FrameChange
from vmdpotential.maps import MapOptions, plan_map
from vmdpotential.maps.interaction import in_medium
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import warn_unused

Result = TypeVar("Result")

#: In an open boundary: how far atoms may move out of their first box before the grid is rebuilt, in A and as a fraction
#: of the padding around them; the smaller applies.
MARGIN, PART = 5.0, 0.5

#: Number of latest results over which the rate is measured.
RECENT = 16


class LiveMap:
    """Map of a structure whose atoms move.

    The error of the first map is measured and kept within the tolerance; maps of other frames use the same plan, and
    neither their errors nor energies of solvation are computed.

    Parameters
    ----------
    structure : Structure
        With charges.
    options : MapOptions
    fixed_cell : bool
        Whether the structure's cell replaces those of the frames.
    changes : sequence of function
        Functions, called one after another, that convert the positions and the cell of a frame to those of the
        structure.
    atoms : int, optional
        Number of atoms in a frame; that of the structure unless given.

    Raises
    ------
    VmdpotentialError
        The errors of :func:`vmdpotential.maps.potential_map`.
    """

    def __init__(self, structure: Structure, options: MapOptions, *, fixed_cell: bool = False,
                 changes: Sequence[FrameChange] = (), atoms: int | None = None) -> None:
        self._changes = changes
        #: Number of atoms in a frame.
        self.atoms = len(structure) if atoms is None else atoms
        options = in_medium(options, structure)
        if options.solver is not None:
            warn_unused(("tolerance",), "the grid of a live map in a continuum is not made finer; set {spacing}")
        plan, result = plan_map(structure, options, margin=min(MARGIN, PART * options.padding), soon=0.0)
        #: Map of the structure at its own positions.
        self.first = plan.grid(result)
        self._cell = structure.cell if fixed_cell else None
        self._plan = replace(plan, provenance=replace(
            plan.provenance, error=None, error_away=None, error_field=None, error_field_away=None))
        #: Number of times that the map was planned.
        self.plans = 1
        #: Number of atoms that are elsewhere in the latest map, because a periodic cell splits their molecules.
        self.moved = _differing(structure.positions, plan.structure.positions)

    def update(self, positions: NDArray[np.float64], cell: Cell | None = None) -> Grid:
        """Return the map of all atoms at other positions (N, 3), A, in a cell: the structure's unless given.

        Raises
        ------
        InputError
            For another number of atoms, or a coordinate that is not finite.
        """
        check_unmasked(positions, "positions of the frame")
        if np.shape(positions) != (self.atoms, 3):
            raise InputError(f"the frame has {len(positions)} atoms, and the live map {self.atoms}",
                             "start a new map of these atoms")
        if not np.isfinite(positions).all():
            raise InputError("a coordinate is not a number")
        cell = self._cell or cell or self._plan.structure.cell
        for change in self._changes:
            positions, cell = change(positions, cell)
        whole = self._plan.whole(positions, cell)
        self.moved, positions = _differing(positions, whole), whole
        if not self._plan.fits(positions, cell):
            self._plan = self._plan.renewed(positions, cell)
            self.plans += 1
        return self._plan.grid(self._plan.run(positions), energies=False)


def _differing(shown: NDArray[np.float64], computed: NDArray[np.float64]) -> int:
    return 0 if shown is computed else int((shown != computed).any(1).sum())


class LatestRequestThread(Generic[Result]):
    """A thread that processes the newest request; older requests that have not started are dropped.

    Parameters
    ----------
    work : function
        Called with the arguments of :meth:`ask`. Its first error ends the thread.
    """

    def __init__(self, work: Callable[..., Result]) -> None:
        self._work = work
        self._changed = threading.Condition()
        self._waiting: tuple[Any, ...] | None = None
        self._results: list[Result] = []  # the newest result that was not taken yet, at most one
        self._error: BaseException | None = None
        self._busy = self._stopping = False
        self._ends: deque[float] = deque(maxlen=RECENT)
        #: Numbers of requests, of results, and of requests that were dropped for newer ones.
        self.asked = self.done = self.dropped = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def ask(self, *request: Any) -> None:
        """Submit a request, which replaces one that has not started."""
        with self._changed:
            self.asked += 1
            self.dropped += self._waiting is not None
            self._waiting = request
            self._changed.notify_all()

    def take(self) -> Result | None:
        """Return the newest result, once; None if there is no new one.

        Raises
        ------
        Exception
            The error that ended the thread, once.
        """
        with self._changed:
            if self._results:
                return self._results.pop()
            error, self._error = self._error, None
        if error is not None:
            raise error
        return None

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until all requests are done or dropped; return False if the timeout expired first."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.busy, timeout)

    @property
    def busy(self) -> bool:
        """Whether a request is being processed or waits."""
        return self.running and (self._busy or self._waiting is not None)

    @property
    def running(self) -> bool:
        """Whether the thread accepts requests: it was not stopped, and no request failed."""
        return self._thread.is_alive() and not self._stopping

    @property
    def rate(self) -> float:
        """Number of results per second, over the latest ones; 0 if there are fewer than two."""
        with self._changed:
            ends = list(self._ends)
        return (len(ends) - 1) / (ends[-1] - ends[0]) if len(ends) > 1 and ends[-1] > ends[0] else 0.0

    def stop(self) -> None:
        """End the thread and discard its results; work that reports its progress is interrupted."""
        with self._changed:
            self._stopping = True
            self._waiting = None
            self._results.clear()
            self._changed.notify_all()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        try:
            with progress.listen_to_progress(self.listen):
                while (request := self._next()) is not None:
                    result = self._work(*request)
                    with self._changed:
                        self.done += 1
                        self._ends.append(time.monotonic())
                        self._results[:] = [] if self._stopping else [result]
        except KeyboardInterrupt:
            pass
        except BaseException as error:  # take() raises it
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
        """Raise KeyboardInterrupt at a progress report if the thread was stopped."""
        if self._stopping:
            raise KeyboardInterrupt
