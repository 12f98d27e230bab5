"""The workers of a Dask cluster, which compute blocks and merge their pieces.

The cluster is provided by the user. Without TLS it runs code of anybody who can connect to its scheduler or workers.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import Any

from vmdpotential import __version__, progress
from vmdpotential.engines import get_engine
from vmdpotential.errors import BackendError, TaskError
from vmdpotential.execution.pools import BlockResult, LostError, WorkerError, WorkerPool, timed_result
from vmdpotential.execution.tree import merged_at_once
from vmdpotential.execution.work import Work
from vmdpotential.extras import install_command

#: Seconds within which a scheduler must answer, or answer again, and within which it must have workers.
PATIENCE, WORKERS = 15.0, 60.0

#: Errors of a task that depend on its worker (lost, full, or without a file or package), so that another may succeed.
OF_WORKERS = (OSError, MemoryError, ImportError, CancelledError)


@contextlib.contextmanager
def cluster_pool(scheduler: str, work: Work, piece: int = 0) -> Iterator[WorkerPool]:
    """Provide a pool of the workers of a Dask cluster.

    Parameters
    ----------
    scheduler : str
        Address of the scheduler.
    work : Work
    piece : int
        Number of frames that a worker computes at once; the workers merge the results. 0 computes whole blocks.

    Raises
    ------
    BackendError
        When Dask is missing, nothing answers at the address, or certificates are missing for TLS.
    """
    try:
        import distributed
    except ModuleNotFoundError as error:
        raise BackendError(f"Dask is not installed (no module {error.name})",
                           f"{install_command('dask')}, or leave out {{scheduler}}") from None
    with contextlib.ExitStack() as stack:
        stack.enter_context(_quiet())
        _check_certificates(scheduler)
        try:  # a client without a scheduler writes to stderr when it is collected
            socket.create_connection(distributed.comm.get_address_host_port(scheduler), PATIENCE).close()
            client = stack.enter_context(distributed.Client(scheduler, timeout=PATIENCE, set_as_default=False))
        except (OSError, ValueError) as error:  # TimeoutError too
            raise BackendError(f"no Dask scheduler answers at {scheduler} ({' '.join(str(error).split())})",
                               "start one with 'dask scheduler', or give {workers}") from None
        yield _Cluster(client, work, piece)


def _check_certificates(scheduler: str) -> None:
    """Raise an error if an address needs TLS and Dask's configuration names no certificates that can be read."""
    from distributed.security import Security

    if not scheduler.startswith(("tls://", "wss://")):
        return
    reason = "Dask's configuration names none"
    try:
        if Security().get_connection_args("client").get("ssl_context") is not None:
            return
    except OSError as error:  # SSLError too
        reason = " ".join(str(error).split())
    raise BackendError(f"the scheduler {scheduler} needs certificates: {reason}",
                       "name their files by " + " and ".join(f"DASK_DISTRIBUTED__COMM__TLS__{name}" for name in (
                           "CA_FILE", "CLIENT__CERT", "CLIENT__KEY")))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence Dask's log, as errors of workers are reported in one line; it stays silent when the scheduler is lost."""
    before = {name: logging.getLogger(name).level for name in [*logging.root.manager.loggerDict]
              if name.split(".")[0] == "distributed"}
    for name in before:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


class _Cluster(WorkerPool):
    """The workers of a Dask cluster, to which the work is sent once."""

    def __init__(self, client: Any, work: Work, piece: int) -> None:
        self.client, self.piece = client, piece
        self._width, self._asked, self._lost, self._submitted = 0, 0.0, 0.0, 0
        # not scattered: the result of a task is computed again when the worker that held it is lost
        self._work = client.submit(_same, work, pure=False)

    def ahead(self) -> int:
        """Return twice the present number of the workers' threads; wait until there is one."""
        start = time.monotonic()
        while not self._width or time.monotonic() - self._asked > 5:
            with contextlib.suppress(OSError):
                if self.client.status == "running":
                    result = self.client.sync(self.client.scheduler.ncores, callback_timeout=PATIENCE)
                    self._width = sum(result.values()) or self._width
            self._asked = time.monotonic()
            if not self._width:
                self.poll()
                if self._asked - start > WORKERS:
                    raise TaskError(f"the Dask scheduler at {self._address} has no workers",
                                    "start some with 'dask worker', and {resume}")
                progress.report_progress("blocks", 0.0)
                time.sleep(0.2)
        return 2 * self._width

    @property
    def _address(self) -> str:
        scheduler = self.client.scheduler
        return str(scheduler.address if scheduler is not None else "its address")

    def submit(self, block: range) -> Future[BlockResult]:
        self._submitted += 1
        submit = partial(self.client.submit, pure=False, priority=-self._submitted)
        pieces = [block[n : n + self.piece] for n in range(0, len(block), self.piece)] if self.piece else [block]
        task = merged_at_once([submit(_block, self._work, item, __version__) for item in pieces],
                              partial(submit, _merged, self._work))
        result: Future[BlockResult] = Future()
        task.add_done_callback(partial(self._done, result))
        return result

    def _done(self, result: Future[BlockResult], task: Any) -> None:
        """Pass the result of a Dask task on to the future that :meth:`submit` returned for it."""
        from distributed import KilledWorker

        try:
            if task.status not in ("finished", "error"):
                raise self._gone()  # cancelled, as a restarted scheduler does not know the task
            result.set_result(task.result(timeout=PATIENCE))
        except KilledWorker:
            result.set_exception(WorkerError("every worker that was given it died", "give workers more memory"))
        except OF_WORKERS as error:
            result.set_exception(LostError.of(error))
        except Exception as error:
            result.set_exception(WorkerError.of(error))

    def poll(self) -> None:
        if self.client.status == "running":
            self._lost = 0.0
            return
        self._lost = self._lost or time.monotonic()
        if time.monotonic() - self._lost > PATIENCE or self.client.status == "closed":
            raise self._gone()

    def _gone(self) -> TaskError:
        return TaskError(f"the connection to the Dask scheduler at {self._address} was lost; finished blocks are kept",
                         "start it again, and {resume}")


def _same(work: Work) -> Work:
    return work


def _merged(work: Work, a: BlockResult, b: BlockResult) -> BlockResult:
    return work.merge(a[0], b[0]), a[1] + b[1]


def _block(work: Work, block: range, version: str) -> BlockResult:
    """Compute a block on a worker."""
    from distributed import get_worker

    if version != __version__:
        raise BackendError(f"a worker has vmdpotential {__version__}, but version {version} is needed")
    devices, name = get_engine(work.needs().engine).devices(), get_worker().name
    with devices[name % len(devices)].bound() if devices and isinstance(name, int) else contextlib.nullcontext():
        return timed_result(work, block)
