#!/usr/bin/env python3
"""Compute frames by many processes, of which one is killed every second, and print what of the work was lost.

    .venv/bin/python scripts/killed_workers.py --workers 64 --frames 10000

A frame is a sleep and a sum whose rounding depends on the order; the result must be that of this process alone. Frames
that were begun more than once are lost work.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vmdpotential.execution.blocks import block_size, run_blocks, split
from vmdpotential.execution.work import Work


@dataclass(frozen=True)
class Sleeps(Work):
    """A work whose frames sleep; each process counts its own in a file."""

    folder: Path
    seconds: float

    def identity(self) -> list[float]:
        """Return what determines the result."""
        return [self.seconds]

    def block(self, numbers: range) -> dict[str, np.ndarray]:
        """Return the sum over some frames."""
        values = np.zeros(100)
        with (self.folder / str(os.getpid())).open("ab", buffering=0) as file:
            for number in numbers:
                file.write(b".")
                time.sleep(self.seconds)
                values += np.random.default_rng(number).normal(size=100)
        return {"sum": values}


def total(work: Sleeps, numbers: range, size: int, workers: int) -> bytes:
    """Return the sum over all frames."""
    values = np.zeros(100)
    for result in run_blocks(work, numbers, size=size, workers=workers):
        values += result["sum"]
    return values.tobytes()


def kill(every: float, end: threading.Event, killed: list[int]) -> None:
    """Kill a process of this one every few seconds until the end."""
    chance = random.Random(1)
    while not end.wait(every):
        result = multiprocessing.active_children()
        if result:
            victim = chance.choice(result)
            victim.kill()
            killed.append(victim.pid or 0)


def main() -> None:
    """Compute, compare and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--frames", type=int, default=10_000)
    parser.add_argument("--atoms", type=int, default=400_000, help="that a frame would have, for the size of blocks")
    parser.add_argument("--seconds", type=float, default=0.4, help="of a frame")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two kills")
    given = parser.parse_args()
    numbers, killed, end = range(given.frames), list[int](), threading.Event()
    size = block_size(given.frames, given.atoms)
    with tempfile.TemporaryDirectory() as folder:
        killer = threading.Thread(target=kill, args=(given.every, end, killed))
        killer.start()
        start = time.perf_counter()
        try:
            result = total(Sleeps(Path(folder), given.seconds), numbers, size, given.workers)
        finally:
            end.set()
            killer.join()
        seconds = time.perf_counter() - start
        computed = sum(path.stat().st_size for path in Path(folder).iterdir())
        processes = len(list(Path(folder).iterdir()))
    with tempfile.TemporaryDirectory() as folder:
        same = result == total(Sleeps(Path(folder), 0.0), numbers, size, 0)
    print(f"{given.frames} frames in {len(split(numbers, size))} blocks of {size} at most, {given.workers} workers, "
          f"{len(killed)} killed, {processes} processes that computed: {seconds:.1f} s "
          f"({given.frames * given.seconds / given.workers:.1f} s without a loss)")
    print(f"frames lost: {computed - given.frames} ({(computed - given.frames) / given.frames:.2%}); the result is "
          f"{'the same bit by bit' if same else 'DIFFERENT'}")
    sys.exit(not same)


if __name__ == "__main__":
    import killed_workers  # processes cannot have what a script defines

    killed_workers.main()
