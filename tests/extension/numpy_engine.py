"""An engine of another package: its kernels are numpy's, for direct sums and the nuclei of molecules."""

import numpy as np

from vmdpotential.engines import Engine
from vmdpotential.interactions import SOFT_CORE
from vmdpotential.sums import cpu
from vmdpotential.sums.potential_sum import Prepared
from vmdpotential.sums.result import HostResult


class DirectSum(Prepared):
    """A sum over all pairs at nodes or points, whose only state is what it sums."""

    def __init__(self, work):
        self.work = work

    def run(self, positions, charges, target=None):
        target, values = target or self.work.target, []
        for points in np.split(target.points(), range(100, target.size, 100)):
            r = np.linalg.norm(points[:, None] - positions, axis=2)
            values.append(self.work.pairs(np.maximum(r, SOFT_CORE)) @ charges)
        return HostResult(np.concatenate(values).reshape(1, *target.shape).astype(target.dtype))


def prepare(work):
    """Return a sum that is ready to run: one of those, or the CPU's."""
    simple = work.smooth is None and work.pairs.cutoff is None and not (work.field or work.distances)
    return DirectSum(work) if simple else cpu.prepare(work)


def add_nuclei(nuclei, charges, sums, out, closest, origin, spacing, shape, **layout):
    """Write the sum of `sums` and the potential of nuclei at the nodes of a lattice."""
    nodes = origin + spacing * np.stack(np.indices(tuple(shape)), -1)
    r = np.linalg.norm(nodes[..., None, :] - nuclei, axis=-1)
    out[...] = sums + (charges / np.maximum(r, closest)).sum(-1)


class NumpyEngine(Engine):
    """An engine whose features are those two; the CPU has all others."""

    name = "numpy"

    def describe(self):
        return f"numpy {np.__version__}"

    def launch(self, kernel, count, label, grain=0, /, **values):
        if kernel.name == "add_nuclei":
            add_nuclei(**values)
        else:
            super().launch(kernel, count, label, grain, **values)


ENGINE = NumpyEngine()
