"""Sums over all atoms at arbitrary points on the CPU, by the kernels in points.cu."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.interactions import SOFT_CORE, Bound
from vmdpotential.interactions.compiled import radial_arguments
from vmdpotential.kernels import threads
from vmdpotential.kernels.launch import KernelFile, launch_kernel
from vmdpotential.molecule.cell import Cell

KERNELS = KernelFile(Path(__file__).with_name("points.cu"))

#: Number of points that the kernel sums together over all atoms.
BLOCK = 64


def at_points(points: Floats, positions: Floats, charges: Floats, cell: Cell | None, interaction: Bound,
              nearest: Floats | None = None) -> Floats:
    """Return the potential of all atoms, each at its nearest image if there is a cell.

    Parameters
    ----------
    points : (P, 3) float64, A
    positions : (N, 3) float64, A
    charges : (N,) float64, e
    cell : Cell or None
    interaction : Bound
    nearest : (P,) float64, optional
        Filled with the distances to the nearest atom, A.

    Returns
    -------
    (P,) float64, e/A
        Potential, exact to rounding (about 1e-13). An atom nearer than 0.01 A to a point counts as at that distance.
    """
    scaled = interaction.scaled()
    if cell is None:
        basis, inverse, shifts = np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((0, 3))
    else:
        basis = np.ascontiguousarray(cell.vectors if cell.orthogonal else cell.reduced)
        inverse = np.ascontiguousarray(np.linalg.inv(basis))
        shifts = np.ascontiguousarray(cell.neighbours[1:])
    points = np.asarray(points, np.float64).reshape(-1, 3)
    out, least = np.zeros(len(points)), np.full(len(points), np.inf)
    (px, py, pz), (x, y, z) = columns(points), columns(positions)
    # a million pairs per task, but at least one task for every thread
    blocks = max(1, min(10**6 // (BLOCK * max(1, len(positions))), len(points) // (BLOCK * threads.count())))
    launch_kernel(KERNELS["sum_at_points"], len(points), "potential at points", BLOCK * blocks, px=px, py=py, pz=pz,
                  x=x, y=y,
           z=z, q=np.ascontiguousarray(charges, np.float64), atom_count=len(positions), basis=basis, inverse=inverse,
           shifts=shifts, shift_count=len(shifts), soft2=SOFT_CORE**2,
           cutoff2=(scaled.cutoff or 0.0) ** 2 if interaction.masked else np.inf, out=out, least=least,
           **radial_arguments(scaled.program, scaled.values, False))
    out *= scaled.factor
    if nearest is not None:
        np.sqrt(least, out=nearest)
    return out


def columns(positions: Floats, padding: int = 0) -> list[Floats]:
    """Return x, y and z of positions as contiguous arrays, with zeros as padding."""
    result = np.zeros((3, len(positions) + padding))
    result[:, : len(positions)] = np.transpose(positions)
    return list(result)
