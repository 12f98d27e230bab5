"""Ewald's sum as textbooks have it, split by a Gaussian, in numpy: what sums over periodic cells are compared with."""

import itertools

import numpy as np
from scipy.special import erfc


def shortest(displacements, vectors):
    """Return the lengths of displacements (..., 3) to the nearest image."""
    return np.sqrt((shortest_vectors(displacements, vectors) ** 2).sum(-1))


def shortest_vectors(displacements, vectors):
    """Return displacements (..., 3) to the nearest image, by trying all around the one of rounding."""
    fraction = displacements @ np.linalg.inv(vectors)
    base = (fraction - np.round(fraction)) @ vectors
    steps = np.array(list(itertools.product((-1, 0, 1), repeat=3))) @ vectors
    # |base + step|^2 but for |base|^2, which is the same for all
    nearest = steps[np.argmin(2 * base @ steps.T + (steps**2).sum(1), axis=-1)]
    return base + nearest


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
    count = np.ceil(2 * 4.4 * alpha * np.linalg.norm(vectors, axis=1) / (2 * np.pi)).astype(int)
    axes = [np.arange(-n, n + 1) for n in count]
    k = np.stack(np.meshgrid(*axes, indexing="ij"), -1) @ (2 * np.pi * np.linalg.inv(vectors).T)
    k2 = (k**2).sum(-1)
    k2[tuple(count)] = np.inf  # no wave
    weight = np.where(k2 < (2 * 4.4 * alpha) ** 2, 4 * np.pi / volume * np.exp(-k2 / (4 * alpha**2)) / k2, 0.0)

    def waves(places):
        """Return exp(i k r) of an axis each, whose product is that of a wave."""
        fractions = places @ np.linalg.inv(vectors)
        return [np.exp(2j * np.pi * np.outer(part, n)) for part, n in zip(fractions.T, axes, strict=True)]

    far = np.zeros(len(points))
    to_x, to_y, to_z = waves(points)
    x, y, z = waves(-positions)
    for row, plane in enumerate(weight):
        factor = (y * (charges * x[:, row])[:, None]).T @ z
        far += (to_x[:, row] * (to_y @ (plane * factor) * to_z).sum(1)).real
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


def gaussian(points, positions, charges, vectors, smear):
    """Return potential and field (4, P) of Gaussian charges of a standard deviation and all their images: waves alone.

    To 1e-9 of what a charge makes; for few atoms and cells that are not large next to the Gaussians.
    """
    inverse = np.linalg.inv(vectors)
    most = np.ceil(6.5 / smear * np.linalg.norm(vectors, axis=1) / (2 * np.pi)).astype(int)
    index = np.stack(np.meshgrid(*(np.arange(-n, n + 1) for n in most), indexing="ij"), -1).reshape(-1, 3)
    k = 2 * np.pi * index[len(index) // 2 + 1 :] @ inverse.T  # the others are their negatives
    k = k[(k**2).sum(1) < (6.5 / smear) ** 2]
    k2 = (k**2).sum(1)
    weight = 8 * np.pi / abs(np.linalg.det(vectors)) / k2 * np.exp(-k2 * smear**2 / 2)
    waves = np.exp(1j * points @ k.T) * (weight * (np.exp(-1j * k @ positions.T) @ charges))
    return np.concatenate([waves.real.sum(1)[None], (waves @ k).imag.T])
