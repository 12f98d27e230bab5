"""Correction for the flow along the surface of the molecule.

A lattice approximates the surface by the faces between the cells of inner and outer nodes. The flow across the surface
is the same on both sides of it; the flow along it is proportional to the permittivity of its side. The equation without
this correction treats each face as if it were inside or outside as a whole, and takes the potential along an edge that
the surface cuts as if it only changed across the surface. Two terms of the first order in the spacing are missing:

- Through a face of which the fraction f is in the solvent goes the additional flow f (outside - inside) E, with E the
  component of the potential's gradient along the surface in the direction of the face's normal; the equation has all
  of it between two outer nodes and none otherwise. What enters the solvent's part of an inner node's cell belongs to
  the outer node next to it.
- Between the surface and the outer node of a cut edge, (1 - t) h away, the potential also changes by (1 - t) h (1 -
  inside / outside) E.

Both are added as sources that are computed from a first solution (deferred correction: V. Pereyra, Numer. Math. 10
(1967) 316). The gradient at the surface is that of polynomials of the second degree that solve Laplace's equation,
fitted to the solution at the outer nodes around each outer node.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.continuum.molecule import Continuum, Floats
from vmdpotential.engines import Engine
from vmdpotential.engines.tangential import SurfaceFlow
from vmdpotential.grid.lattice import Lattice

Values = NDArray[np.float32]

#: Layers of nodes at the faces of the lattice whose edges are not corrected.
MARGIN = 3

#: Largest distance, in spacings, of an outer node whose cell the surface meets.
REACH = 1.25

#: Numbers of outer nodes around a node up to which the correction is 0, and from which on it is complete: in narrow
#: pockets of the solvent, few nodes do not determine a polynomial.
FEW, ENOUGH = 9, 14

#: Regularisation of coefficients where few nodes are outside: of the constant, the gradient, and the second degree.
STIFFNESS = np.repeat([1e-6, 0.1, 3.0], [1, 3, 5])


def sources_along(c: Continuum, lattice: Lattice, distances: Values, within: NDArray[np.bool_], outside: Floats,
                  unknown: Values, engine: Engine) -> tuple[NDArray[np.int64], Floats]:
    """Return nodes, as places in a flat array, and the missing flow into each of them for a solution, kT/e.

    Parameters
    ----------
    c : Continuum
    lattice : Lattice
    distances : (nx, ny, nz) float32, A
        Of nodes to the surface, negative inside.
    within : (nx, ny, nz) bool
        Which nodes are inside.
    outside : (nz,) float64
        Permittivity around the molecule, at each height.
    unknown : (nx, ny, nz) float32, kT/e
        The potential outside.
    engine : Engine
    """
    return engine.flow_along(SurfaceFlow(lattice, distances, within, unknown, c.inside, outside, MARGIN,
                                         REACH * float(lattice.spacing.max()), FEW, ENOUGH, STIFFNESS))
