"""The coarse one of two lattices: what its solution gives a finer one inside of it, and how that one corrects it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.grid.lattice import Lattice
from vmdpotential.surfaces import region

from .equation import Problem
from .faces import LATTICE_FACES, interpolate_faces, interpolation_between
from .lattices import part_shared
from .molecule import Floats

#: Layers of coarse nodes along the faces of a finer lattice, inside of it, that keep the coarse lattice's equation.
MARGIN = 2

#: Most inner neighbours, of six, of a node that is not in a pocket.
OPEN = 4


class CoarseProblem(Problem):
    """The equation on a lattice that reaches far beyond the molecule."""

    def begin(self, finer: Problem, ratio: int) -> None:
        """Let a problem start from this solution; every `ratio`-th of its nodes is one of this lattice."""
        shape = finer.lattice.shape
        cells, grain = (shape[2] - 1) // ratio + 2, region.planes_at_once(shape[0])
        pieces = -(-shape[0] // grain)
        self._by_nodes("refine_solution", shape, coarse=self.unknown, charged=self._phi, coarse_within=self.within,
                       within=finer.within, out=finer.unknown, line=self.engine.zeros((pieces, cells), np.float32),
                       inner=self.engine.zeros((pieces, cells), np.int64), coarse_shape=self.lattice.shape,
                       shape=shape, first=[s.start for s in part_shared(self.lattice, finer.lattice, ratio)],
                       ratio=ratio, cells=cells, grain=grain)

    def agree(self, finer: Problem, ratio: int) -> None:
        """Change the equation inside a finer lattice so that the solution of that lattice fulfils it.

        This improves the coarse solution around the finer lattice, too (local defect correction: W. Hackbusch, in:
        Defect Correction Methods, Computing Suppl. 5 (1984) 89).
        """
        shared, values = part_shared(self.lattice, finer.lattice, ratio), self._shared_values(finer, ratio)
        part = [slice(s.start + MARGIN, s.stop - MARGIN) for s in shared]
        if any(s.stop - s.start < 1 for s in part):
            return
        shape = tuple(s.stop - s.start for s in part)
        flows = self.engine.empty(shape, np.float32)
        x, y, z = self.edges
        sums = self._reduced("find_fine_flows", shape[0], 2, values=values, x=x, y=y, z=z, k2=self.k2, ions=self.ions,
                             sources=self.sources, out=flows, value_shape=values.shape, shape=self.lattice.shape,
                             out_shape=shape, begin=[s.start for s in shared], margin=MARGIN, kinds=len(self.ions))
        # differences of the coarse spacing at the edge of the part give another charge within it, which is known
        self._insert(shape, flows, self.sources, first=[s.start for s in part],
                     shift=float(sums[1] - sums[0]) / math.prod(shape))

    def _shared_values(self, finer: Problem, ratio: int) -> Any:
        """Return the finer solution at the nodes that both share."""
        part = part_shared(self.lattice, finer.lattice, ratio)
        result = self.engine.empty(tuple(s.stop - s.start for s in part), np.float64)
        self._by_nodes("take_shared_nodes", result.shape, finer=finer.unknown, finer_within=finer.within,
                       within=self.within, charged=self._phi, out=result, finer_shape=finer.lattice.shape,
                       part=result.shape, shape=self.lattice.shape, first=[s.start for s in part], ratio=ratio)
        return result

    def squares(self, finer: Problem, ratio: int, unknown: Any) -> Floats:
        """Return sums of squares at the outer nodes that a finer lattice shares: of its solution, and of differences.

        The differences are those from `unknown`, a solution on this lattice. The first two sums are of nodes next to
        the molecule, the last two of all nodes, without those in pockets.
        """
        values = self._shared_values(finer, ratio)
        return self._reduced("compare_solutions", len(values), 4, values=values, coarse=unknown, within=self.within,
                             value_shape=values.shape, shape=self.lattice.shape,
                             first=[s.start for s in part_shared(self.lattice, finer.lattice, ratio)], most=OPEN)

    def on_faces(self, finer: Lattice) -> Any:
        """Return the potential at the nodes of the faces of a finer lattice, by cubic polynomials along the axes."""
        membrane = self.continuum.membrane
        kinks = () if membrane is None else (membrane.low, membrane.high)
        coarse_axes, finer_axes = ([(float(grid.origin[d]), float(grid.spacing[d]), grid.shape[d]) for d in range(3)]
                                   for grid in (self.lattice, finer))
        axes = [interpolation_between(coarse, fine, kinks if d == 2 else ())
                for d, (coarse, fine) in enumerate(zip(coarse_axes, finer_axes, strict=True))]
        count = sum(2 * self.lattice.size // n for n in self.lattice.shape)
        planes = self.engine.empty(count, np.float64)
        self._launch("sum_face_planes", count, unknown=self.unknown, within=self.within, charged=self._phi, out=planes,
                     shape=self.lattice.shape, first=[axes[axis].first[end] for axis, end in LATTICE_FACES],
                     weights=np.concatenate([axes[axis].weights[end] for axis, end in LATTICE_FACES]))
        return interpolate_faces(self.engine, planes, axes)

    def layer(self, first: NDArray[np.int64], last: NDArray[np.int64]) -> tuple[Any, Any]:
        """Return positions (2 E, 3), A, and charges (2 E,), e, that have the potential of what is in a box.

        `first` and `last` are the outermost nodes of the box (3,). Both results are arrays of the engine: what the
        edges across the faces give to their outer ends, then to their inner ones.
        """
        sides, lattice, (x, y, z) = last - first - 1, self.lattice, self.edges
        count = int((2 * sides.prod() // sides).sum())
        points, charges = self.engine.empty((2 * count, 3), np.float64), self.engine.empty(2 * count, np.float64)
        self._launch("find_layer", count, unknown=self.unknown, x=x, y=y, z=z, points=points, charges=charges,
                     count=count, shape=lattice.shape, first=first, last=last, sides=sides, origin=lattice.origin,
                     spacing=lattice.spacing,
                     factor=float(lattice.spacing.mean()) / (4 * np.pi * self.continuum.constant))
        return points, charges
