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

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.kernels.launch import KernelFile

from .molecule import Continuum, Floats

KERNELS = KernelFile(Path(__file__).with_name("tangential.cu"))

Values = NDArray[np.float32]

#: Layers of nodes at the faces of the lattice whose edges are not corrected.
MARGIN = 3

#: Largest distance, in spacings, of an outer node whose cell the surface meets.
REACH = 1.25

#: Numbers of outer nodes around a node up to which the correction is 0, and from which on it is complete: in narrow
#: pockets of the solvent, few nodes do not determine a polynomial.
FEW, ENOUGH = 9, 14

#: Regularisation of coefficients where few nodes are outside: of the constant, the gradient, and the second degree; for
#: the mean spacing as the unit of length.
STIFFNESS = np.repeat([1e-6, 0.1, 3.0], [1, 3, 5])

#: Rows of nodes, and nodes, that a thread takes at a time.
ROWS_PER_TASK, NODES_PER_TASK = 1000, 4096

#: Units of sums of flows in 1 kT/e.
UNITS = 2.0**32


class NodesNearSurface(NamedTuple):
    """Nodes (N,) next to a surface, in arrays of the engine, as :mod:`tangential.cu` describes them."""

    nodes: Any
    #: (F,) outer nodes around which polynomials are fitted, and by node their rows.
    fitted: Any
    rows: Any
    owners: Any


def find_nodes_near_surface(lattice: Lattice, distances: Any, within: Any, engine: Engine) -> NodesNearSurface:
    """Return the nodes near a surface, from their distances to it and whether they are inside."""
    nx, ny, _ = lattice.shape
    rows, numbers = engine.zeros(lattice.size, np.int32), engine.empty((nx * ny, 2), np.int32)

    def find(**lists: Any) -> None:
        engine.launch(KERNELS["find_near_surface"], nx * ny, "surface", ROWS_PER_TASK, within=within,
                      distances=distances, numbers=numbers, rows=rows, shape=lattice.shape, margin=MARGIN,
                      reach=REACH * float(lattice.spacing.max()), **lists)

    find(begins=None, nodes=None, fitted=None, owners=None)
    begins = np.zeros((nx * ny + 1, 2), np.int64)
    np.cumsum(engine.to_host(numbers), 0, out=begins[1:])
    count, fits = begins[-1].tolist()
    nodes, fitted, owners = engine.empty(count, np.int64), engine.empty(fits, np.int64), engine.empty(count, np.int32)
    find(begins=begins, nodes=nodes, fitted=fitted, owners=owners)
    return NodesNearSurface(nodes, fitted, rows, owners)


def add_flows_along(c: Continuum, lattice: Lattice, near: NodesNearSurface, distances: Any, within: Any,
                    outside: Floats, unknown: Any, sources: Any, engine: Engine, pores: Any = None) -> None:
    """Add to the sources of nodes what flows into them along the surface in a solution; all arrays are the engine's.

    Parameters
    ----------
    c : Continuum
    lattice : Lattice
    near : NodesNearSurface
    distances : (nx, ny, nz) float32, A
        Of nodes to the surface, negative inside.
    within : (nx, ny, nz) bool
        Which nodes are inside.
    outside : (nz,) float64
        Permittivity around the molecule, at each height.
    unknown : (nx, ny, nz) float32, kT/e
        The potential outside.
    sources : (nx, ny, nz) float32, kT/e
        Changed in place.
    engine : Engine
    pores : (nx, ny, nz) bool, optional
        Nodes around the molecule that are in the water of a pore.
    """
    _, ny, nz = lattice.shape
    strides, unit, count, fits = (ny * nz, nz, 1), float(lattice.spacing.mean()), len(near.nodes), len(near.fitted)
    sums, coefficients = engine.zeros(count, np.int64), engine.empty((fits, 8), np.float32)
    engine.launch(KERNELS["fit_polynomials"], fits, "surface", NODES_PER_TASK, nodes=near.fitted, within=within,
                  values=unknown, out=coefficients, strides=strides, spacing=lattice.spacing / unit,
                  stiffness=STIFFNESS, unit=unit, few=FEW, enough=ENOUGH)
    engine.launch(KERNELS["add_flows"], count, "surface", NODES_PER_TASK, **near._asdict(),
                  coefficients=coefficients, within=within, distances=distances, outside=outside, pores=pores,
                  water=c.outside, sums=sums, shape=lattice.shape, strides=strides, margin=MARGIN,
                  spacing=lattice.spacing, weights=np.prod(lattice.spacing) / lattice.spacing**2 / unit,
                  inside=c.inside, units=UNITS)
    engine.launch(KERNELS["add_owned_flows"], count, "surface", NODES_PER_TASK, nodes=near.nodes, sums=sums,
                  sources=sources, units=UNITS)
