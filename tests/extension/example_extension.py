"""What another package adds to vmdpotential: an interaction, methods at points and for maps, a task over
frames, and a command; an engine is in ``numpy_engine.py``, a kernel in ``nearest.cu``.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

import vmdpotential
from vmdpotential import registry
from vmdpotential.engines import SOFT_CORE
from vmdpotential.engines.result import HostResult
from vmdpotential.frames.options import Execution
from vmdpotential.frames.statistics import BlockMean
from vmdpotential.frames.task import FrameTask, run_task
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions import Bound, Check, Interaction, Quantity
from vmdpotential.interactions.tracing import exp
from vmdpotential.io.trajectories.frames import Trajectory
from vmdpotential.methods import Estimate, Method, Planned, PointPlan
from vmdpotential.parameters import Command, Option, Report


# ---- an interaction
def radial(r2, rinv, p):
    """Return exp(-r / length) / length, the potential of a charge spread around an atom."""
    return exp(-r2 * rinv / p.length) / p.length


CLOUD = Interaction("cloud", radial, [Quantity("length", "A", 3.0, 0.1, 100, "distance in which it falls to 1/e")],
                    checks=[Check(3.0, 0.36787944117144233 / 3)])


# ---- a method at points
class NumpyPlan(PointPlan):
    """A sum over all pairs, which needs no preparation."""

    own = property(lambda self: float(self.interaction(SOFT_CORE)))

    def prepare(self, points, positions, cell):
        return self

    def at(self, points, positions, charges, field=False, nearest=None):
        distances = np.linalg.norm(points[:, None] - positions, axis=2)
        return self.interaction(np.maximum(distances, SOFT_CORE)) @ charges, None


class Numpy(Method):
    """Every atom to every point, in numpy."""

    name, summary, targets, boundaries, field = "numpy", "all pairs in numpy", ("points",), ("open",), False

    def estimate(self, request, engine):
        return Estimate(1e-8 * request.points.count * request.charges.count, 24 * request.points.count)

    def plan_points(self, request, engine):
        return NumpyPlan(self.name, engine.name, self.require(request, engine), request.interaction)


# ---- a method for maps with code of its own
@dataclass(frozen=True, eq=False)
class NumpyMapPlan(Planned):
    """A sum over all pairs at the nodes of a lattice, one atom after the other."""

    lattice: Lattice
    interaction: Bound
    estimate: Estimate
    method, error = "numpy_map", None  # exact

    def run(self, positions, charges):
        nodes, values = self.lattice.points(), np.zeros(self.lattice.size)
        for position, charge in zip(positions, charges, strict=True):
            values += charge * self.interaction(np.maximum(np.linalg.norm(nodes - position, axis=1), SOFT_CORE))
        return HostResult(values.reshape(1, *self.lattice.shape).astype(np.float32))


class NumpyMap(Method):
    """Every atom to every node of a map, in numpy."""

    name, summary, boundaries, field = "numpy_map", "all pairs in numpy, for maps", ("open",), False

    def estimate(self, request, engine):
        return Estimate(1e-8 * request.lattice.size * request.charges.count, 40 * request.lattice.size)

    def plan(self, request, engine):
        return NumpyMapPlan(request.lattice, request.interaction, self.require(request, engine))


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
    registry.register("method", "numpy_map", NumpyMap())
    registry.register("task", "gyration", Command.of(gyration))
    registry.register("check", "gyration", lambda engine, seed: [("radius of gyration", 0.0, 0.0)])
    registry.register("engine", "numpy", "numpy_engine:ENGINE")
