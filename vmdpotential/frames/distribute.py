"""Where blocks of frames are computed: in this process, on its GPUs, or by the workers of a Dask cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

Arrays = Mapping[str, Any]
Keep = Callable[[range, Arrays, float], None]


def run(work: Any, blocks: Sequence[range], workers: int, scheduler: str,
        keep: Keep) -> Generator[Arrays, None, None]:
    """Yield the results of blocks in their order; see :func:`vmdpotential.frames.blocks.run_blocks`.

    Parameters
    ----------
    work : Work
    blocks : sequence of range
    workers, scheduler
        Where they are computed.
    keep : callable
        Is told each block, its result and the seconds it took, as soon as it is there; in this thread.
    """
    for block in blocks:
        start = time.perf_counter()
        arrays = work.block(block)
        keep(block, arrays, time.perf_counter() - start)
        yield arrays
