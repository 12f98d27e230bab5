"""The smooth part of the potential of Gaussian charges, by Fourier transforms in an open boundary.

Each Gaussian that is narrower than a common one is exchanged for that one, of the same charge: what is left decreases
as fast as the wider of both. The density of these is sampled on a mesh and transformed; the potential of each wave is
that of the Coulomb interaction cut at a distance R which no pair of a charge and a point exceeds,
4 pi (1 - cos kR) / k^2, in a period so long that no image is within R (G. J. Martyna, M. E. Tuckerman, J. Chem. Phys.
110 (1999) 2810; C. A. Rozzi et al., Phys. Rev. B 73 (2006) 205119). The waves are then added up at the lattice's own
points, along one axis after the other, so that nothing is interpolated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from vmdpotential.compiling import build, threads
from vmdpotential.engines.gaussians import Gaussians, hermite

Floats = NDArray[np.float64]

#: Density above which Gaussians are sampled: exp of minus this, relative to one of a whole charge.
_REACH = 22.0

#: A wave at the mesh's limit has erfc of this of what it would have as that of a point charge.
_LIMIT = 3.8

#: Bytes for each node of the mesh: its transform, and a copy.
BYTES = 24


@dataclass(frozen=True, eq=False)
class Mesh:
    """A mesh that is laid for Gaussian charges and a lattice, bohr.

    Parameters
    ----------
    width : float
        Largest exponent of a Gaussian on it, bohr^-2.
    origin : (3,) float64
    spacing : float
    filled, shape : (3,) int
        Nodes with charges, and nodes of a period.
    radius : float
        At which the interaction is cut.
    reaches : (G,) float64
        Of the Gaussians.
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
        """Nodes of a period, which may be more than any memory holds."""
        return float(np.prod(np.array(self.shape, float)))


def exponential_reach(exponent: float | Floats, sizes: Floats, orders: NDArray[np.int64], least: float) -> Floats:
    """Return where Gaussians of some sizes, times polynomials, are below exp(-least)."""
    result: Floats = np.sqrt(np.maximum(2.0, least + 1.5 * orders + np.log(np.maximum(sizes, 1e-30))) / exponent)
    return result


def lay_mesh(charges: Gaussians, low: Floats, high: Floats, width: float) -> Mesh:
    """Return a mesh for charges, and for the potential in a box from `low` to `high`, (3,) bohr."""
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
    """Return the potential (nx, ny, nz) of the Gaussians, none narrower than the mesh's, at points on axes, bohr."""
    from scipy import fft

    kernel = build.load("gaussian_kernel")
    most = int(charges.orders.max())
    exponents = np.minimum(charges.exponents, mesh.width)
    counts = np.diff(np.append(charges.starts, len(charges.coefficients)))
    # of the charge of exp(-p r^2) that has this potential, and of the other that has the same charge
    factor = (exponents / charges.exponents) ** 0.5 * exponents / (2 * np.pi)
    sampled = np.zeros(mesh.shape)
    threads.run(partial(kernel.density, charges.centres, exponents, charges.orders, charges.starts,
                        charges.coefficients * np.repeat(factor, counts), mesh.reaches, np.array(hermite(most)),
                        np.array([len(hermite(order)) for order in range(most + 1)]), mesh.origin,
                        np.full(3, mesh.spacing), sampled[: mesh.filled[0], : mesh.filled[1], : mesh.filled[2]]),
                mesh.filled[0], "density of electrons", 1)
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
    waves[:, :, 1 : (mesh.shape[2] + 1) // 2] *= 2  # and those of -kz
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


#: Planes of points whose waves are added up at once.
_TOGETHER = 16
