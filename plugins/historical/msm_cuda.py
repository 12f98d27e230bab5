"""Multilevel sums on a GPU, by the kernels of levels.cu; the engine spreads charges and interpolates potentials.

All levels stay in the GPU's memory. The sums within the levels, which take most of the time, are one launch.
"""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.sums.cuda import kernels
from vmdpotential.sums.potential_sum import PotentialSum

from .levels import Level, Levels, halfway

#: File of the kernels.
FILE = Path(__file__).parent / "levels.cu"

#: Stencil of a level, and its planes and groups that are not zero, see :func:`tables`.
Tables = tuple[NDArray[Any], NDArray[np.int32], NDArray[np.int32]]

#: Constants of levels.cu: rows and nodes along z per thread, rows and nodes per block, warps of a block, and nodes
#: along z per block in transfers between levels.
ROWS, GROUP, TILE_Y, TILE_Z, PARTS, STRIP = 4, 4, 16, 32, 8, 128

#: Largest number of levels.
LEVELS = 32

#: Struct Level of levels.cu.
LEVEL = kernels.struct_type("Level", [
    ("nodes", kernels.pointer_type("REAL")),  # (shape, rows padded) charges, then the potential
    ("around", kernels.pointer_type("REAL")),  # (wide) charges with margins around them: images, or zeros
    # (width[0], width[1] + 2 ROWS - 2, width[2]), first and last rows of zeros
    ("stencil", kernels.pointer_type("const REAL")),
    # (width[0], 2) offsets along x of a plane of the stencil
    ("planes", kernels.pointer_type("const int")),
    # (width[0], width[1] + ROWS - 1, 2) range of groups along z in which the stencil is not zero
    ("used", kernels.pointer_type("const int")),
    ("shape", np.int32, 3),
    ("wide", np.int32, 3),
    ("width", np.int32, 3),  # of the stencil; the last a multiple of GROUP
    ("before", np.int32, 3),  # nodes of `around` before the level's own
    ("halved", np.int32, 3),  # whether the preceding level has twice as many nodes along an axis
    ("first_block", np.int32),  # number of the first block that sums this level
], "levels.cu")

#: Struct LevelTask of levels.cu.
TASK = kernels.struct_type("LevelTask", [
    ("levels", LEVEL, LEVELS),  # the finest one first
    ("half", np.float64, 8),  # weights of nodes for interpolation in the middle between two
    ("periodic", np.int32, 3),
    ("count", np.int32),  # number of levels
    ("level", np.int32),  # number of the level that is read or written
], "levels.cu")


class LevelSum(kernels.NodeSum):
    """A multilevel sum: the smooth part by levels, to which the pairs are added."""

    def __init__(self, work: PotentialSum) -> None:
        plan = work.smooth
        assert isinstance(plan, Levels)
        super().__init__(work, plan.shape, nodal=True)
        self.label = "multilevel sum"
        self.levels = plan
        self.tables = [tables(level, self.real) for level in plan.levels]
        self.level_task, self.blocks = level_task(plan, self.tables)

    @property
    def sizes(self) -> dict[str, list[int]]:
        """Bytes of each buffer for every level."""
        levels = self.level_task["levels"][: len(self.levels.levels)]
        x, y, z = levels["shape"].astype(np.int64).T
        nodes = self.real.itemsize * x * y * 2 * (z // 2 + 1)
        nodes[0] = 0  # the nodes of the finest level are those of the engine's kernels
        around = self.real.itemsize * levels["wide"].astype(np.int64).prod(1)
        stencil, planes, used = ([table[n].nbytes for table in self.tables] for n in range(3))
        return {"nodes": nodes.tolist(), "around": around.tolist(), "stencil": stencil, "planes": planes, "used": used}

    def fixed_bytes(self, count: int) -> int:
        """Return the bytes that a GPU needs for `count` atoms, in addition to the map."""
        return super().fixed_bytes(count) + sum(map(sum, self.sizes.values()))

    def prepare(self, gpu: Any, positions: Floats, charges: Floats, stream: Any = None) -> kernels.Job:
        """Upload the atoms, and the stencils unless they have been uploaded; return the job."""
        job = super().prepare(gpu, positions, charges, stream)
        job.levels = self.level_task.copy()
        levels = job.levels["levels"]
        for name, sizes in self.sizes.items():
            if name in ("nodes", "around"):
                address = gpu.buffer(f"level {name}", sum(sizes))
            else:
                column = ("stencil", "planes", "used").index(name)
                address = self.table(gpu, name, lambda column=column: np.concatenate(  # type: ignore[misc]
                    [table[column].ravel() for table in self.tables]))
            levels[name][: len(sizes)] = address + np.cumsum([0, *sizes[:-1]])
        levels["nodes"][0] = job.nodes["nodes"]
        return job

    def solve(self, job: kernels.Job) -> None:
        """Queue the sums on the levels."""
        a, b, _ = self.shape
        self.queue(job, "unpack", (b, a, 1), 128)
        count = len(self.levels.levels)
        for level in range(1, count):
            self.queue_rows(job, "restriction", level)
        for level in range(count):
            self.queue_rows(job, "surround", level)
        self.queue_level(job, "convolve", (self.blocks, 1, 1), 32 * PARTS)
        for level in reversed(range(count - 1)):
            self.queue_rows(job, "prolongation", level)

    def queue_rows(self, job: kernels.Job, name: str, level: int) -> None:
        """Queue a kernel of levels.cu that runs over all rows of a level."""
        job.levels["level"] = level
        x, y, z = (int(n) for n in job.levels["levels"][level]["wide" if name == "surround" else "shape"])
        self.queue_level(job, name, (y, x, 1 if name == "surround" else -(-z // STRIP)), STRIP)

    def queue_level(self, job: kernels.Job, name: str, grid: tuple[int, int, int], threads: int) -> None:
        """Queue a kernel of levels.cu with a grid of blocks."""
        kernel = job.gpu.kernel(FILE, name, self.constants, "", TASK.itemsize)
        kernel.prepared_async_call(grid, (threads, 1, 1), job.stream, job.levels.tobytes())


def tables(level: Level, real: np.dtype[Any]) -> Tables:
    """Return a level's stencil in the layout for the kernel.

    Returns
    -------
    stencil : (P, DY + 2 ROWS - 2, width) float
        Planes of the stencil, between rows of zeros; a plane that is paired with itself has half of its values.
    planes : (P, 2) int32
        Offsets along x of the two planes of each pair.
    used : (P, DY + ROWS - 1, 2) int32
        Range of groups along z in which ROWS consecutive rows, for the rows of a thread, are not all zero.
    """
    planes = level.equal_planes
    _, dy, dz = level.stencil.shape
    groups = -(-dz // GROUP)
    stencil = np.zeros((len(planes), dy + 2 * ROWS - 2, groups * GROUP), real)
    stencil[:, ROWS - 1 : ROWS - 1 + dy, :dz] = level.stencil[planes[:, 0]]
    stencil[planes[:, 0] == planes[:, 1]] *= 0.5
    filled = (stencil.reshape(*stencil.shape[:2], groups, GROUP) != 0).any(-1)
    rows = dy + ROWS - 1
    filled = reduce(np.logical_or, (filled[:, m : m + rows] for m in range(ROWS)))
    low = filled.argmax(-1)
    high = np.where(filled.any(-1), groups - filled[..., ::-1].argmax(-1), low)
    return stencil, planes.astype(np.int32), np.stack([low, high], -1).astype(np.int32)


def level_task(plan: Levels, prepared: list[Tables]) -> tuple[Any, int]:
    """Return a record of :data:`TASK` without addresses, and the number of blocks that sum all levels."""
    task = np.zeros((), TASK)
    task["count"], task["periodic"] = len(plan.levels), plan.periodic
    task["half"][: plan.order] = halfway(plan.order)
    blocks = 0
    for record, level, (stencil, _, _) in zip(task["levels"], plan.levels, prepared, strict=False):
        nx, ny, nz = level.shape
        dx, dy, _ = level.stencil.shape
        across_y, across_z = -(-ny // TILE_Y), -(-nz // TILE_Z)
        record["shape"], record["halved"], record["before"] = level.shape, level.halved, [-n for n in level.first]
        record["width"] = len(stencil), dy, stencil.shape[2]
        record["wide"] = nx + dx - 1, across_y * TILE_Y + dy - 1, across_z * TILE_Z + stencil.shape[2]
        record["first_block"] = blocks
        blocks += nx * across_y * across_z
    return task, blocks
