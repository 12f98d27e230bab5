"""Copies of large arrays to a GPU through pinned memory, which threads fill in pieces.

The driver copies ordinary memory with one thread, at a quarter of the bus's bandwidth or less.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines.cuda import pinned
from vmdpotential.engines.cuda.driver import cuda_driver
from vmdpotential.kernels import threads

#: Bytes of a piece, number of pieces in pinned memory, and largest number of queued transfers.
PIECE, PIECES, AHEAD = 2**22, 16, 6


@cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, min(PIECES, threads.count())), "vmdpotential copies")


def _pieces(address: int, array: NDArray[Any]) -> list[tuple[int, NDArray[np.uint8]]]:
    flat = array.reshape(-1).view(np.uint8)
    return [(address + start, flat[start : start + PIECE]) for start in range(0, len(flat), PIECE)]


def put(*transfers: tuple[int, NDArray[Any]]) -> None:
    """Copy arrays to addresses of the current GPU; they may be changed afterwards."""
    pieces = [piece for address, array in transfers for piece in _pieces(address, np.ascontiguousarray(array))]
    if len(pieces) == len(transfers):  # all arrays are small
        for address, piece in pieces:
            cuda_driver().memcpy_htod(address, piece)
        return
    staging, sent = pinned.empty_pinned((PIECES, PIECE), np.uint8), [cuda_driver().Event() for _ in range(PIECES)]

    def fill(n: int) -> tuple[int, NDArray[np.uint8]]:
        address, piece = pieces[n]
        block = staging[n % PIECES, : len(piece)]
        np.copyto(block, piece)
        return address, block

    filled: deque[Future[tuple[int, NDArray[np.uint8]]]] = deque(
        _workers().submit(fill, n) for n in range(min(PIECES, len(pieces))))
    for n in range(len(pieces)):
        cuda_driver().memcpy_htod_async(*filled.popleft().result(), None)
        sent[n % PIECES].record()
        before = n - AHEAD
        if before >= 0 and before + PIECES < len(pieces):
            sent[before % PIECES].synchronize()
            filled.append(_workers().submit(fill, before + PIECES))
    sent[(len(pieces) - 1) % PIECES].synchronize()
