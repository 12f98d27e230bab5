"""Ewald's sum as textbooks have it, split by a Gaussian, in numpy: what sums over periodic cells are compared with."""

import functools
import itertools

import numpy as np
from scipy.special import erfc


def shortest(displacements, vectors):
    """Return the lengths of displacements (..., 3) to the nearest image, by trying all around the one of rounding."""
    fraction = displacements @ np.linalg.inv(vectors)
    base = (fraction - np.round(fraction)) @ vectors
    steps = itertools.product((-1, 0, 1), repeat=3)
    return np.sqrt(functools.reduce(np.minimum, (((base + step @ vectors) ** 2).sum(-1) for step in steps)))


def potential(points, positions, charges, vectors):
    """Return the potential (P,), e/A, of charges and all their images at points, by waves and nearest images.

    Conducting surroundings; a background neutralises the cell, so that the mean is zero. To 1e-8 of 1/A.
    For cells whose angles are not far from right ones, or are those of a hexagon or a truncated octahedron.
    """
    repeats = [np.array(n) @ vectors for n in itertools.product(range(-3, 4), repeat=3) if any(n)]
    radius = min(np.linalg.norm(repeats, axis=1)) / 2
    alpha = 4.4 / radius  # erfc(4.4) = 5e-10
    volume = abs(np.linalg.det(vectors))
    near = np.zeros(len(points))
    for part in np.array_split(np.arange(len(points)), 1 + len(points) * len(positions) // 10**5):
        r = shortest(points[part, None] - positions, vectors)
        near[part] = (erfc(alpha * r) / np.maximum(r, 1e-9)) @ charges
    reciprocal = 2 * np.pi * np.linalg.inv(vectors).T
    count = np.ceil(2 * 4.4 * alpha * np.linalg.norm(vectors, axis=1) / (2 * np.pi)).astype(int)
    index = np.array(list(itertools.product(*(range(-n, n + 1) for n in count))))
    k = index[(index @ [10**8, 10**4, 1]) > 0] @ reciprocal  # the others are complex conjugates
    k = k[(k**2).sum(1) < (2 * 4.4 * alpha) ** 2]
    k2 = (k**2).sum(1)
    weight = 8 * np.pi / volume * np.exp(-k2 / (4 * alpha**2)) / k2
    far = np.zeros(len(points))
    for part in np.array_split(np.arange(len(k)), 1 + len(k) * (len(positions) + len(points)) // 10**7):
        factor = np.exp(-1j * positions @ k[part].T).T @ charges
        far += (np.exp(1j * points @ k[part].T) @ (weight[part] * factor)).real
    return near + far - np.pi * charges.sum() / (volume * alpha**2)


def with_field(points, positions, charges, vectors):
    """Return potential and field (4, P) of charges and all their images at points, for cells of any shape, to 1e-12.

    As :func:`potential`, but with all images that count, so for few atoms.
    """
    volume = abs(np.linalg.det(vectors))
    inverse = np.linalg.inv(vectors)
    alpha = 6.3 / volume ** (1 / 3)  # terms below 1e-16 are left out
    reach = np.ceil(6.3 / alpha * np.linalg.norm(inverse, axis=0)).astype(int) + 1
    d = points[:, None] - positions
    d -= np.floor(d @ inverse + 0.5) @ vectors
    total = np.zeros((4, len(points)))
    total[0] = -np.pi / (volume * alpha**2) * charges.sum()
    for step in itertools.product(*(range(-n, n + 1) for n in reach)):
        away = d + np.array(step) @ vectors
        r = np.sqrt((away * away).sum(-1))
        near = erfc(alpha * r) / r
        pull = (near + 2 * alpha / np.sqrt(np.pi) * np.exp(-((alpha * r) ** 2))) / r**2
        total[0] += near @ charges
        total[1:] += np.einsum("pn,pnd,n->dp", pull, away, charges)
    most = np.ceil(12.6 * alpha * np.linalg.norm(vectors, axis=1) / (2 * np.pi)).astype(int)
    index = np.stack(np.meshgrid(*(np.arange(-n, n + 1) for n in most), indexing="ij"), -1).reshape(-1, 3)
    k = 2 * np.pi * index[index.any(1)] @ inverse.T
    k = k[(k**2).sum(1) < (12.6 * alpha) ** 2]
    for part in np.array_split(k, 1 + len(k) * (len(positions) + len(points)) // 10**7):
        k2 = (part**2).sum(1)
        weight = 4 * np.pi / volume / k2 * np.exp(-k2 / (4 * alpha**2))
        waves = np.exp(1j * points @ part.T) * (weight * (np.exp(-1j * part @ positions.T) @ charges))
        total[0] += waves.real.sum(1)
        total[1:] += (waves @ part).imag.T
    return total
