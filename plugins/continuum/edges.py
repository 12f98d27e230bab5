"""Conductances of edges, and what ions reach at nodes, by the distances of nodes to the surface of the molecule."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.kernels.launch import KernelFile
from vmdpotential.surfaces.region import NODES_AT_ONCE, planes_at_once

EDGE_KERNELS = KernelFile(Path(__file__).with_name("edges.cu"))


def edge_conductances(distances: Any, inside: float, outside: Floats, between: Floats, lattice: Lattice,
                      engine: Engine, pores: Any = None, water: float = 0.0) -> tuple[Any, Any, Any]:
    """Return the conductances of the edges from each node along x, y and z, over the mean spacing, on an engine.

    Parameters
    ----------
    distances : (nx, ny, nz) float32, an array of the engine
        To the surface, negative inside.
    inside : float
        Permittivity of the molecule.
    outside : (nz,) float64
        Permittivity around the molecule, at each height.
    between : (nz - 1,) float64
        That of the edges along z between these heights.
    lattice : Lattice
    engine : Engine
    pores : (nx, ny, nz) bool, an array of the engine, optional
        Nodes around the molecule that have the permittivity `water`.
    water : float
    """
    weights = np.prod(lattice.spacing) / lattice.spacing**2 / lattice.spacing.mean()
    x, y, z = (engine.empty(lattice.shape, np.float32) for _ in range(3))
    engine.launch(EDGE_KERNELS["compute_conductances"], (lattice.shape[0], lattice.size), "surface",
                  planes_at_once(lattice.shape[0]), distances=distances, outside=outside, between=between, x=x, y=y,
                  z=z, shape=lattice.shape, weights=weights, inside=inside)
    if pores is not None:
        engine.launch(EDGE_KERNELS["open_edges"], (lattice.shape[0], lattice.size), "surface",
                      planes_at_once(lattice.shape[0]), distances=distances, pores=pores, x=x, y=y, z=z,
                      shape=lattice.shape, weights=weights, inside=inside, water=water)
    return x, y, z


def inside_nodes(distances: Any, engine: Engine) -> Any:
    """Return which nodes (nx, ny, nz) are inside, where distances (nx, ny, nz) to the surface are negative."""
    within = engine.empty(distances.shape, np.bool_)
    engine.launch(EDGE_KERNELS["find_sides"], math.prod(distances.shape), "surface", NODES_AT_ONCE, distances=distances,
                  within=within)
    return within


def scale_shares(shares: Any, within: Any, factors: NDArray[np.float32], engine: Engine, pores: Any,
                 water: float) -> None:
    """Multiply the shares (nx, ny, nz) of cells that ions can reach by factors (nz,), and by 0 inside.

    By the factor `water` where `pores` (nx, ny, nz) are, unless that is None.
    """
    engine.launch(EDGE_KERNELS["scale_shares"], (shares.shape[0], math.prod(shares.shape)), "surface",
                  planes_at_once(shares.shape[0]), shares=shares, within=within, factors=factors, pores=pores,
                  water=water, shape=shares.shape)
