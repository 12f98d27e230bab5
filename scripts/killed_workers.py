#!/usr/bin/env python3
"""Compute frames in many processes, kill one of them every second, and print how much work was lost.

    .venv/bin/python scripts/killed_workers.py --workers 64 --frames 10000

Each frame sleeps and adds to a sum whose rounding depends on the order. The result must be the same as that of a single
process. Frames that were started more than once are lost work.
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

from vmdpotential.execution.blocks import BlockResults, block_size, split
from vmdpotential.execution.work import Work


@dataclass(frozen=True)
class Sleeps(Work):
    """A work whose frames sleep; each process counts its frames in a file."""

    folder: Path
    seconds: float

    def identity(self) -> list[float]:
        """Return the values that determine the result."""
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
    for result in BlockResults(work, numbers, size=size, workers=workers):
        values += result["sum"]
    return values.tobytes()


def kill(every: float, end: threading.Event, killed: list[int]) -> None:
    """Kill a random child process at intervals until the end."""
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
    parser.add_argument("--atoms", type=int, default=400_000, help="atoms of a frame, which determine the block size")
    parser.add_argument("--seconds", type=float, default=0.4, help="duration of a frame, s")
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
          f"{len(killed)} killed, {processes} processes in all: {seconds:.1f} s "
          f"({given.frames * given.seconds / given.workers:.1f} s without losses)")
    print(f"frames lost: {computed - given.frames} ({(computed - given.frames) / given.frames:.2%}); the result is "
          f"{'bitwise identical' if same else 'DIFFERENT'}")
    sys.exit(not same)


if __name__ == "__main__":
    import killed_workers  # other processes cannot import what a script defines as __main__

    killed_workers.main()
