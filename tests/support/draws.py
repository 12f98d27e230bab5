"""A work of random numbers, which shows by its last bit in what order it was summed."""

import os
import signal
from dataclasses import dataclass

import numpy as np

from vmdpotential import progress
from vmdpotential.execution import blocks
from vmdpotential.execution.work import Work


@dataclass(frozen=True)
class Draws(Work):
    """A work whose rounding depends on the order of its sums; it may stop at a frame, once."""

    seed: int
    stop: str = ""
    how: str = "interrupt"

    def identity(self):
        return ["draws", self.seed]

    def block(self, numbers):
        values = np.zeros(3)
        for done, number in enumerate(numbers):
            if str(number) == self.stop:
                if self.how == "interrupt":
                    raise KeyboardInterrupt
                os.kill(os.getpid(), signal.SIGKILL)
            values += np.random.default_rng([self.seed, number]).normal(size=3)
            progress.report_progress(blocks.FRAMES_LABEL, (done + 1) / len(numbers))
        return {"sum": values, "count": np.array(len(numbers))}


def total(run):
    values = np.zeros(3)
    for result in run:
        values += result["sum"]
    return values
