"""The smooth part of the potential of Gaussian charges, by Fourier transforms in an open boundary.

Each Gaussian that is narrower than a common width is replaced by one of this width and of the same charge; the
difference of their potentials decreases as fast as the wider of both. The density of the wide Gaussians is sampled on a
mesh and transformed. The Coulomb interaction is truncated at a distance R that no pair of a charge and a point exceeds,
with the transform 4 pi (1 - cos kR) / k^2, and the period is so long that no image is within R (G. J. Martyna, M. E.
Tuckerman, J. Chem. Phys. 110 (1999) 2810; C. A. Rozzi et al., Phys. Rev. B 73 (2006) 205119). The waves are then added
up at the lattice's own points, along one axis after the other, so that nothing is interpolated.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.kernels import threads
from vmdpotential.kernels.launch import KernelFile, launch_kernel

from .gaussians import Gaussians, hermite

KERNELS = KernelFile(Path(__file__).with_name("potential.cu"))

#: Gaussians are sampled where their density, relative to that of a unit charge, exceeds exp(-_REACH).
_REACH = 22.0

#: The mesh's largest wave number over 2 sqrt(width): exp(-_LIMIT^2) of a point charge's amplitude is left there.
_LIMIT = 3.8

#: Bytes per node of the mesh, for its transform and a copy.
BYTES = 24


@dataclass(frozen=True, eq=False)
class Mesh:
    """A mesh for Gaussian charges and a lattice, lengths in bohr.

    Parameters
    ----------
    width : float
        Largest exponent of a Gaussian on the mesh, bohr^-2.
    origin : (3,) float64
        First node.
    spacing : float
        Distance of neighbouring nodes.
    filled, shape : (3,) int
        Number of nodes with charges, and of nodes in a period, along each axis.
    radius : float
        Distance at which the Coulomb interaction is truncated.
    reaches : (G,) float64
        Distance within which each Gaussian is sampled.
    """

    width: float
    origin: Floats
    spacing: float
    filled: tuple[int, ...]
    shape: tuple[int, ...]
    radius: float
    reaches: Floats

    @property
    def nodes(self) -> float:
        """Number of nodes in a period, as a float because it may be larger than any memory or integer."""
        return float(np.prod(np.array(self.shape, float)))


def exponential_reach(exponent: float | Floats, sizes: Floats, orders: NDArray[np.int64], least: float) -> Floats:
    """Return the distances at which Gaussians of some sizes, times polynomials, fall below exp(-least)."""
    return np.sqrt(np.maximum(2.0, least + 1.5 * orders + np.log(np.maximum(sizes, 1e-30))) / exponent)


def build_mesh(charges: Gaussians, low: Floats, high: Floats, width: float) -> Mesh:
    """Return a mesh for charges and for their potential in a box from `low` to `high`, (3,) bohr."""
    from scipy.fft import next_fast_len

    exponents = np.minimum(charges.exponents, width)
    sizes = charges.sizes(width) * exponents**1.5 / (2 * np.pi * np.sqrt(charges.exponents))
    reaches = exponential_reach(exponents, sizes, charges.orders, _REACH)
    spacing = np.pi / (2 * np.sqrt(width) * _LIMIT)
    first, last = (charges.centres - reaches[:, None]).min(0), (charges.centres + reaches[:, None]).max(0)
    apart = np.maximum(high - first, last - low)
    radius = float(np.linalg.norm(apart))
    filled = np.ceil((last - first) / spacing).astype(int) + 1
    whole = np.ceil(np.maximum(apart + radius, last - first) / spacing).astype(int) + 1
    shape = tuple(int(next_fast_len(int(n), real=True)) for n in whole)
    return Mesh(width, first, float(spacing), tuple(filled.tolist()), shape, radius, reaches)


def smooth_potential(charges: Gaussians, mesh: Mesh, axes: list[Floats]) -> Floats:
    """Return the potential (nx, ny, nz) of the widened Gaussians, at points given by their coordinates on axes, bohr.

    Gaussians with a larger exponent than the mesh's are replaced by ones with that exponent.
    """
    from scipy import fft

    most = int(charges.orders.max())
    exponents = np.minimum(charges.exponents, mesh.width)
    counts = np.diff(np.append(charges.starts, len(charges.coefficients)))
    # normalises exp(-p r^2), and keeps the charge of a Gaussian whose exponent is reduced
    factor = (exponents / charges.exponents) ** 0.5 * exponents / (2 * np.pi)
    sampled = np.zeros(mesh.shape)
    launch_kernel(KERNELS["sum_gaussian_density"], mesh.filled[0], "density of electrons", 1, centres=charges.centres,
           exponents=exponents, coefficients=charges.coefficients * np.repeat(factor, counts), reaches=mesh.reaches,
           orders=charges.orders, starts=charges.starts, counts=np.array([len(hermite(n)) for n in range(most + 1)]),
           powers=np.array(hermite(most)), out=sampled, origin=mesh.origin, spacing=np.full(3, mesh.spacing),
           shape=mesh.filled, sides=mesh.shape, gaussians=len(exponents), most=most)
    waves = fft.rfftn(sampled, workers=threads.count(), overwrite_x=True)
    del sampled
    kx, ky = (2 * np.pi * fft.fftfreq(n, mesh.spacing) for n in mesh.shape[:2])
    kz = 2 * np.pi * fft.rfftfreq(mesh.shape[2], mesh.spacing)
    square = ky[:, None] ** 2 + kz**2
    for plane, k in zip(waves, kx, strict=True):
        k2 = square + k * k
        if k == 0:
            k2[0, 0] = 1.0
        potential = 4 * np.pi * (1 - np.cos(np.sqrt(k2) * mesh.radius)) / k2
        if k == 0:
            potential[0, 0] = 2 * np.pi * mesh.radius**2
        plane *= potential / mesh.nodes
    waves[:, :, 1 : (mesh.shape[2] + 1) // 2] *= 2  # the waves of -kz, which the real transform omits
    x, y, z = (np.exp(1j * np.outer(at - start, k)) for at, start, k in
               zip(axes, mesh.origin, (kx, ky, kz), strict=True))
    result = np.empty((len(x), len(y), len(z)))
    flat = waves.reshape(len(kx), -1)
    for begin in range(0, len(x), _TOGETHER):
        part = (x[begin : begin + _TOGETHER] @ flat).reshape(-1, len(ky), len(kz))
        for n, plane in enumerate(part, begin):
            rows = y @ plane
            result[n] = rows.real @ z.real.T - rows.imag @ z.imag.T
    return result


#: Number of planes of points that are computed at once, to bound the memory.
_TOGETHER = 16
