"""The unknown of the Poisson-Boltzmann equation, and its gradient, between the nodes of a lattice.

Both have kinks at the molecular surface and at the faces of a membrane. So a point has the value of a polynomial that
is fitted to the nodes around it that are on the same side (moving least squares: P. Lancaster, K. Salkauskas,
Math. Comput. 37 (1981) 141). Where the permittivity is uniform and no charge is, the unknown solves Laplace's equation:
the polynomials are the harmonic ones up to the third degree, and r^2 for the ions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.interactions import SOFT_CORE

from .equation import Problem
from .smooth import ChargeKinks

Values = NDArray[np.float32]
Sides = NDArray[np.int8]

#: Points for which polynomials are fitted, or atoms searched, together: their equations fit into the CPU's cache.
POINTS_PER_BLOCK = 500

#: Regularisation of the coefficients of each degree, for few nodes, relative to the weight of a node one spacing away.
STIFFNESS = np.repeat([1e-9, 1e-6, 1e-5, 1e-4], [1, 3, 6, 7])

#: Smallest number of layers of nodes along each axis to which a polynomial is fitted.
LAYERS = 3

#: Distance from a node, in spacings, within which the polynomial has that node's value.
NEAR_NODE = 0.03


class SolutionInterpolant:
    """The unknown between the nodes of a solution.

    Parameters
    ----------
    problem : Problem
    """

    def __init__(self, problem: Problem) -> None:
        self._problem, self._distances = problem, problem.distances()
        self._unknown: Values = problem.host(problem.unknown)
        within = problem.host(problem.within)
        self._kinks = ChargeKinks(problem.continuum) if problem.continuum.gaussian else None
        lattice, membrane = problem.lattice, problem.continuum.membrane
        self._sides: Sides = within.astype(np.int8)
        if membrane is not None:
            z = lattice.origin[2] + lattice.spacing[2] * np.arange(lattice.shape[2])
            levels = np.flatnonzero((z > membrane.low) & (z < membrane.high))
            wet = np.zeros(lattice.shape, bool) if membrane.pores is None else membrane.pores.at_nodes(lattice)
            self._sides[:, :, levels] = np.where(within[:, :, levels], 1, np.where(wet[:, :, levels], 0, 2))

    def holds(self, points: Floats) -> NDArray[np.bool_]:
        """Return which points (P, 3), A, are within the lattice."""
        lattice = self._problem.lattice
        return np.asarray(((points >= lattice.origin) & (points <= lattice.last)).all(1), np.bool_)

    def distances(self, points: Floats) -> Floats:
        """Return the distances of points (P, 3) on the lattice to the surface, A, negative inside of the molecule.

        They are interpolated trilinearly between nodes, which have them next to the surface, and a bound elsewhere.
        """
        result = np.zeros(len(points))
        for start in range(0, len(points), POINTS_PER_BLOCK):
            rows = slice(start, start + POINTS_PER_BLOCK)
            cell, t = self._cells(points[rows])
            for corner in np.ndindex(2, 2, 2):
                result[rows] += np.where(corner, t, 1 - t).prod(1) * self._distances[tuple((cell + corner).T)]
        return result

    def inside(self, points: Floats) -> NDArray[np.bool_]:
        """Return which points (P, 3) on the lattice are inside of the molecule.

        From distances to the surface between nodes; exact inside of atoms.
        """
        from scipy.spatial import cKDTree

        atoms, within = self._problem.continuum, self.distances(points) < 0
        radii, tree = np.maximum(atoms.radii, SOFT_CORE), cKDTree(atoms.positions)
        for start in range(0, len(points), POINTS_PER_BLOCK):
            some = points[start : start + POINTS_PER_BLOCK]
            pairs = cKDTree(some).sparse_distance_matrix(tree, float(radii.max()), output_type="ndarray")
            within[start + pairs["i"][pairs["v"] < radii[pairs["j"]]]] = True
        return within

    def at(self, points: Floats, inside: NDArray[np.bool_], unknown: Values | None = None) -> tuple[Floats, Floats]:
        """Return a solution (P,), kT/e, and its gradient (P, 3), kT/e/A, at points on the lattice.

        Parameters
        ----------
        points : (P, 3) float64, A
        inside : (P,) bool
            Which are inside of the molecule.
        unknown : (nx, ny, nz) float32, kT/e, optional
            Another solution than the problem's.
        """
        unknown = self._unknown if unknown is None else unknown
        sides = inside.astype(np.int8)
        membrane = self._problem.continuum.membrane
        if membrane is not None:
            wet = np.zeros(len(points), bool) if membrane.pores is None else membrane.pores.at(points)
            sides[(sides == 0) & ~wet & (points[:, 2] > membrane.low) & (points[:, 2] < membrane.high)] = 2
        values, gradients = np.empty(len(points)), np.empty((len(points), 3))
        for start in range(0, len(points), POINTS_PER_BLOCK):
            rows = slice(start, start + POINTS_PER_BLOCK)
            values[rows], gradients[rows] = self._fit(points[rows], sides[rows], unknown)
        return values, gradients

    def gradients(self, part: tuple[slice, slice, slice]) -> NDArray[np.float32]:
        """Return the gradient (3, nx, ny, nz) at a part of the nodes, kT/e/A.

        By differences of the fourth order where all their nodes are on one side, elsewhere by fitted polynomials.
        """
        lattice, sides, unknown = self._problem.lattice, self._sides, self._unknown
        first = [s.start or 0 for s in part]
        result = np.zeros((3, *sides[part].shape), np.float32)
        fitted = np.zeros(sides[part].shape, bool)
        for axis in range(3):
            at = np.arange(first[axis], first[axis] + fitted.shape[axis])
            central = (at >= 2) & (at < sides.shape[axis] - 2)
            near = [np.take(sides, np.clip(at + step, 0, sides.shape[axis] - 1), axis)[_across(part, axis)]
                    for step in (-2, -1, 1, 2)]
            alike = np.logical_and.reduce([each == sides[part] for each in near])
            if self._kinks is not None:
                alike &= sides[part] == 0
            fitted |= ~(alike & central.reshape([-1 if d == axis else 1 for d in range(3)]))
            for step, weight in ((1, 8.0), (2, -1.0)):
                up, down = (np.take(unknown, np.clip(at + s, 0, sides.shape[axis] - 1), axis)[_across(part, axis)]
                            for s in (step, -step))
                result[axis] += np.float32(weight / (12 * lattice.spacing[axis])) * (up - down)
        nodes = np.argwhere(fitted)
        if len(nodes):
            points = lattice.origin + lattice.spacing * (nodes + first)
            values = np.empty((len(nodes), 3))
            own = sides[part][tuple(nodes.T)]
            for start in range(0, len(nodes), POINTS_PER_BLOCK):
                rows = slice(start, start + POINTS_PER_BLOCK)
                values[rows] = self._fit(points[rows], own[rows], unknown)[1]
            result[(slice(None), *nodes.T)] = values.T
        return result

    def _cells(self, points: Floats) -> tuple[NDArray[np.int64], Floats]:
        """Return the first node of each point's cell, and the point's fractional coordinates in the cell."""
        lattice = self._problem.lattice
        place = (points - lattice.origin) / lattice.spacing
        cell = np.clip(np.floor(place).astype(np.int64), 0, np.array(lattice.shape) - 2)
        return cell, place - cell

    def _fit(self, points: Floats, sides: Sides, unknown: Values, reach: int = 1) -> tuple[Floats, Floats]:
        """Return value (P,) and gradient (P, 3) of polynomials fitted to the 64 nodes around each point.

        216 nodes are used where fewer than three layers along an axis are on the point's side, since two layers cannot
        distinguish a derivative from a curvature.
        """
        lattice, width = self._problem.lattice, 2 * reach + 2
        cell, t = self._cells(points)
        first = np.clip(cell - reach, 0, np.array(lattice.shape) - width)
        steps = np.indices((width, width, width)).reshape(3, -1).T
        nodes = first[:, None] + steps
        at = tuple(np.moveaxis(nodes, -1, 0))
        unit = float(lattice.spacing.mean())
        away = (nodes - (cell + t)[:, None]) * (lattice.spacing / unit)
        squares = (away**2).sum(2)
        own = self._sides[at] == sides[:, None]
        lone = ~own.any(1)  # a point inside of an atom that has no node inside
        own[lone] = True
        weights = np.where(own, 1 / (squares + NEAR_NODE**2) ** 2, 0.0)
        data = unknown[at].astype(np.float64)
        kink, slope = self._kinked(points, lattice.origin + lattice.spacing * nodes, sides, data)
        middle = (weights * data).sum(1) / weights.sum(1)
        basis = harmonics(away, squares)
        weighted = (basis * weights).transpose(1, 0, 2)
        matrix = np.matmul(weighted, basis.transpose(1, 2, 0)) + np.diag(STIFFNESS)
        right = np.matmul(weighted, (data - middle[:, None])[..., None])
        coefficients = np.linalg.solve(matrix, right)[..., 0]
        values, gradients = coefficients[:, 0] + middle + kink, coefficients[:, 1:4] / unit + slope
        cube = own.reshape(-1, width, width, width)
        layers = np.stack([cube.any((2, 3)).sum(1), cube.any((1, 3)).sum(1), cube.any((1, 2)).sum(1)], 1)
        few = np.flatnonzero((layers < LAYERS).any(1) & ~lone)
        if reach == 1 and len(few) and min(lattice.shape) > width + 2:
            values[few], gradients[few] = self._fit(points[few], sides[few], unknown, reach + 1)
        return values, gradients

    def _kinked(self, points: Floats, nodes: Floats, sides: Sides, data: Floats) -> tuple[Floats, Floats]:
        """Subtract the kinks of near charges from data (P, 64) at nodes; return them and their gradients at points."""
        value, slope = np.zeros(len(points)), np.zeros((len(points), 3))
        rows = np.flatnonzero(sides == 1)
        if self._kinks is None or not len(rows):
            return value, slope
        point, atom = self._kinks.near(points[rows])
        point, places = rows[point], self._problem.continuum.positions[atom]
        away = points[point] - places
        r = np.linalg.norm(away, axis=1)
        np.subtract.at(data, point, self._kinks.at(atom, np.linalg.norm(nodes[point] - places[:, None], axis=2)))
        np.add.at(value, point, self._kinks.at(atom, r))
        np.add.at(slope, point, (self._kinks.slope(atom, r) / np.maximum(r, SOFT_CORE))[:, None] * away)
        return value, slope


def harmonics(away: Floats, squares: Floats) -> Floats:
    """Return the basis polynomials (17, ...) at vectors (..., 3) with squares (...): harmonic ones, and r^2."""
    x, y, z = np.moveaxis(away, -1, 0)
    xx, yy, zz = x * x, y * y, z * z
    return np.stack([
        np.ones_like(x), x, y, z, x * y, y * z, z * x, xx - yy, 2 * zz - xx - yy, squares, x * y * z, z * (xx - yy),
        x * (xx - 3 * yy), y * (3 * xx - yy), x * (4 * zz - xx - yy), y * (4 * zz - xx - yy),
        z * (2 * zz - 3 * xx - 3 * yy)])


def _across(part: tuple[slice, ...], axis: int) -> tuple[slice, ...]:
    """Return slices for an array that has been sliced along an axis already."""
    return tuple(slice(None) if d == axis else s for d, s in enumerate(part))
