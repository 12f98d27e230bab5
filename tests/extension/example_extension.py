"""What another package adds to vmdpotential: an interaction, a method for maps and points, a task over
frames, and a command; an engine is in ``numpy_engine.py``, a kernel in ``nearest.cu``.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

import vmdpotential
from vmdpotential import registry
from vmdpotential.frames.options import Execution
from vmdpotential.frames.statistics import BlockMean
from vmdpotential.frames.task import FrameTask, run_task
from vmdpotential.interactions import SOFT_CORE, Check, Interaction, Quantity
from vmdpotential.interactions.tracing import exp
from vmdpotential.io.trajectories.frames import Trajectory
from vmdpotential.parameters import Command, Option, Report
from vmdpotential.sums import Estimate, Method, Plan, Request
from vmdpotential.sums.result import HostResult


# ---- an interaction
def radial(r2, rinv, p):
    """Return exp(-r / length) / length, the potential of a charge spread around an atom."""
    return exp(-r2 * rinv / p.length) / p.length


CLOUD = Interaction("cloud", radial, [Quantity("length", "A", 3.0, 0.1, 100, "distance in which it falls to 1/e")],
                    checks=[Check(3.0, 0.36787944117144233 / 3)])


# ---- a method for maps and points, with code of its own
@dataclass(frozen=True, eq=False)
class NumpyPlan(Plan):
    """A sum over all pairs at once."""

    request: Request
    estimate: Estimate
    method, engine, error = "numpy", "cpu", None  # exact

    def run(self, positions, charges, target=None):
        target = target or self.request.target
        r = np.maximum(np.linalg.norm(target.points()[:, None] - positions, axis=2), SOFT_CORE)
        return HostResult((self.request.interaction(r) @ charges).reshape(1, *target.shape).astype(target.dtype))


class Numpy(Method):
    """Every atom to every node or point, in numpy."""

    name, summary, targets, boundaries, field = "numpy", "all pairs in numpy", ("grid", "points"), ("open",), False

    def estimate(self, request, engine):
        return Estimate(1e-8 * (pairs := request.target.size * request.charges.count), 40 * pairs)

    def plan(self, request, engine):
        return NumpyPlan(request, self.require(request, engine))


# ---- a task over frames with statistics
@dataclass(frozen=True, eq=False)
class Gyration(FrameTask):
    """The mean radius of gyration (A) over frames."""

    frames: Trajectory

    def sums(self):
        return {"radius": BlockMean()}

    def of_frame(self, frame):
        return {"radius": np.sqrt(frame.positions.var(0).sum())}


def radius_of_gyration(trajectory, **execution):
    """Return the mean radius of gyration (A) over frames, and its uncertainty."""
    radius = run_task(Gyration(trajectory), Execution(**execution))["radius"]
    return float(radius.mean), radius.uncertainty()


# ---- a command
def gyration(structure: Annotated[Path, Option("structure file", positional=True)],
             trajectory: Annotated[Path, Option("trajectory file", positional=True)]) -> Report:
    """Report the radius of gyration over a trajectory."""
    atoms = len(vmdpotential.read_structure(structure))
    mean, known = radius_of_gyration(Trajectory(trajectory, atoms))
    return Report([f"radius of gyration {mean:.2f} A"], {"mean": mean, "error": known and float(known.error)})


def add():
    """Register them."""
    registry.register("interaction", "cloud", CLOUD)
    registry.register("method", "numpy", Numpy())
    registry.register("task", "gyration", Command.of(gyration))
    registry.register("check", "gyration", lambda engine, seed: [("radius of gyration", 0.0, 0.0)])
    registry.register("engine", "numpy", "numpy_engine:ENGINE")
    registry.register("sum", "numpy", "numpy_engine:prepare")
