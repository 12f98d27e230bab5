"""The periodic cell: lattice vectors, wrapping, minimum images, and images in a box."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential.errors import InputError

Array = NDArray[np.float64]

#: Deviation from 90 degrees within which an angle is a right one: files round cells (DCD, XTC, GRO, float32 numbers).
RIGHT = 1e-3

#: Upper limit of cell vectors, A; longer ones come from damaged files.
LONGEST = 1e9

#: Relative difference between equal cells that files cause by rounding.
SAME_CELL = 1e-5

#: Largest shear, as a fraction of the cell's lengths, at which a cell still counts as having the same shape.
SHEAR = 1e-4


@dataclass(frozen=True, eq=False)
class Cell:
    """A periodic cell.

    Parameters
    ----------
    vectors : (3, 3) float64, A
        The lattice vectors a, b, c as rows; aligned exactly if they are along x, y and z within :data:`RIGHT`.
    space_group : str
        Hermann-Mauguin symbol. With any other than P 1 the atoms of a file are a crystal's asymmetric
        unit, only a part of the cell's content.

    Examples
    --------
    >>> cell = vp.Cell.from_parameters(60, 60, 80)
    >>> round(cell.volume)
    288000
    """

    vectors: Array
    space_group: str = "P 1"

    def __post_init__(self) -> None:
        vectors = np.array(self.vectors, dtype=np.float64).reshape(3, 3)
        with np.errstate(over="ignore", invalid="ignore"):
            volume = abs(np.linalg.det(vectors))
        if not np.isfinite(vectors).all() or not volume > 1e-6:
            raise InputError(f"the periodic cell {vectors.tolist()} has no volume")
        if not np.abs(vectors).max() < LONGEST:
            raise InputError(f"the periodic cell {vectors.tolist()} is too large: a vector has more than {LONGEST:g} A")
        off_diagonal = vectors - np.diag(np.diagonal(vectors))
        if (np.abs(off_diagonal) <= np.radians(RIGHT) * np.linalg.norm(vectors, axis=1)[:, None]).all():
            vectors -= off_diagonal
        vectors.setflags(write=False)
        object.__setattr__(self, "vectors", vectors)

    def __repr__(self) -> str:
        return f"Cell({self}{'' if self.space_group == 'P 1' else f', {self.space_group}'})"

    def __str__(self) -> str:
        a, b, c, *angles = self.parameters
        lengths = " x ".join(f"{round(x, 3):g}" for x in (a, b, c)) + " A"
        return lengths if self.orthogonal else f"{lengths}, angles {' '.join(f'{round(x, 3):g}' for x in angles)}"

    @classmethod
    def from_parameters(
        cls, a: float, b: float, c: float, alpha: float = 90, beta: float = 90, gamma: float = 90,
        *, space_group: str = "P 1",
    ) -> Cell:
        """Return the cell with three lengths (A) and three angles (degrees), a along x, b in the xy plane.

        Angles within :data:`RIGHT` of 90 degrees become right angles, and an unknown `space_group` P 1.

        Raises
        ------
        InputError
            When a length is not positive or the angles do not define a cell.
        """
        parameters = (a, b, c, alpha, beta, gamma)
        lengths_good = all(0 < x < np.inf for x in parameters[:3])
        if not lengths_good or not all(0 < x < 180 for x in parameters[3:]):
            raise InputError(
                "the periodic cell " + " ".join(f"{x:g}" for x in parameters) + " is not valid: lengths "
                "must be positive and angles between 0 and 180 degrees"
            )
        alpha, beta, gamma = (90.0 if abs(x - 90) <= RIGHT else x for x in (alpha, beta, gamma))
        # right angles stay exact, so that `orthogonal` can be trusted
        cos = [0.0 if x == 90 else float(np.cos(np.radians(x))) for x in (alpha, beta, gamma)]
        sin_gamma = 1.0 if gamma == 90 else float(np.sin(np.radians(gamma)))
        cx, cy = c * cos[1], c * (cos[0] - cos[1] * cos[2]) / sin_gamma
        z2 = c * c - cx * cx - cy * cy
        if z2 <= 0:
            raise InputError(f"the angles {alpha:g} {beta:g} {gamma:g} do not define a periodic cell", "correct them")
        vectors = np.array([[a, 0, 0], [b * cos[2], b * sin_gamma, 0], [cx, cy, np.sqrt(z2)]])
        return cls(vectors, space_group.strip() if _order(space_group) > 1 else "P 1")

    @cached_property
    def parameters(self) -> tuple[float, float, float, float, float, float]:
        """Lengths a, b, c (A) and angles alpha, beta, gamma (degrees)."""
        length = np.linalg.norm(self.vectors, axis=1)

        def angle(i: int, j: int) -> float:
            cosine = float(self.vectors[i] @ self.vectors[j] / (length[i] * length[j]))
            return 90.0 if cosine == 0 else float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))

        a, b, c = (float(x) for x in length)
        return a, b, c, angle(1, 2), angle(0, 2), angle(0, 1)

    @cached_property
    def standard(self) -> Array:
        """(3, 3) vectors, A, of the cell with these lengths and angles in standard orientation: a along x, b in xy."""
        return Cell.from_parameters(*self.parameters).vectors

    @property
    def rotated(self) -> bool:
        """Whether the cell is rotated against the orientation of :attr:`standard`."""
        return not np.allclose(self.vectors, self.standard, rtol=0, atol=1e-3)

    @property
    def whole(self) -> bool:
        """Whether a file's atoms are the whole content of the cell, not a crystal's asymmetric unit."""
        return self.space_group == "P 1"

    @property
    def volume(self) -> float:
        """Volume in A^3."""
        return float(abs(np.linalg.det(self.vectors)))

    @property
    def orthogonal(self) -> bool:
        """Whether the vectors are along x, y and z."""
        return bool(np.count_nonzero(self.vectors - np.diag(np.diagonal(self.vectors))) == 0)

    @cached_property
    def reduced(self) -> Array:
        """(3, 3) reduced vectors of the same lattice, A, as rows, by Lagrange-Gauss reduction of pairs.

        In the reduced basis the nearest image of a wrapped displacement is among its 27 neighbours.
        """
        v = self.vectors.copy()
        for _ in range(1000):
            v = v[np.argsort((v * v).sum(1), kind="stable")]
            before = v.copy()
            v[1] -= np.rint(v[1] @ v[0] / (v[0] @ v[0])) * v[0]
            # the third vector is reduced by the nearest lattice point in the plane of the first two
            coefficients = np.rint(np.linalg.lstsq(v[:2].T, v[2], rcond=None)[0])
            shifts = np.array([(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]) + coefficients
            trial = v[2] - shifts @ v[:2]
            best = trial[np.argmin((trial * trial).sum(1))]
            if best @ best < (v[2] @ v[2]) * (1 - 1e-12):
                v[2] = best
            if np.array_equal(v, before):
                break
        return v

    @cached_property
    def neighbours(self) -> Array:
        """(S, 3) shifts, A: zero, then those that can shorten a displacement after rounding in the reduced basis.

        Rounding leaves fractional coordinates of at most 1/2. The image of d shifted by s is shorter if
        d s < -s^2 / 2; this is linear in d, so it is possible only if it is true at a corner of that range.
        """
        if self.orthogonal:
            return np.zeros((1, 3))
        steps = np.array([(i, j, k) for i in (0, -1, 1) for j in (0, -1, 1) for k in (0, -1, 1)], float)
        shifts = steps @ self.reduced
        corners = (np.array([[n >> 2 & 1, n >> 1 & 1, n & 1] for n in range(8)]) - 0.5) @ self.reduced
        nearer = (2 * corners @ shifts.T + (shifts * shifts).sum(1)).min(0) < -1e-9
        nearer[0] = True
        shifted: Array = shifts[nearer]
        return shifted

    def fractional(self, positions: ArrayLike) -> Array:
        """Return fractional coordinates of positions, both (..., 3)."""
        fraction: Array = np.asarray(positions, np.float64) @ np.linalg.inv(self.vectors)
        return fraction

    def wrap(self, positions: ArrayLike, origin: ArrayLike = (0.0, 0.0, 0.0)) -> Array:
        """Return positions (N, 3) moved by lattice vectors into the cell that starts at `origin`."""
        positions = np.asarray(positions, np.float64)
        fraction = self.fractional(positions - np.asarray(origin, np.float64))
        wrapped: Array = positions - np.floor(fraction) @ self.vectors
        return wrapped

    def minimum_image(self, displacements: ArrayLike) -> Array:
        """Return the shortest image of displacements, both (..., 3) in A; exact for any cell."""
        d = np.asarray(displacements, np.float64)
        basis = self.vectors if self.orthogonal else self.reduced
        d = d - np.rint(d @ np.linalg.inv(basis)) @ basis
        if self.orthogonal:
            return d
        best = d
        best2 = (d * d).sum(-1)
        for shift in self.neighbours[1:]:
            trial = d + shift
            trial2 = (trial * trial).sum(-1)
            closer = trial2 < best2
            best = np.where(closer[..., None], trial, best)
            best2 = np.where(closer, trial2, best2)
        return best

    def images_near(self, low: Array, high: Array, reach: float) -> float:
        """Return the average number of images of an atom in a box that is extended by `reach`, A, on all sides."""
        return float(np.prod(high - low + 2 * reach)) / self.volume

    def images_in_box(self, positions: ArrayLike, low: ArrayLike, high: ArrayLike) -> tuple[Array, NDArray[np.int64]]:
        """Return all periodic images of positions inside an axis-aligned box.

        Parameters
        ----------
        positions : (N, 3) float64, A
        low, high : (3,) float64, A
            Corners of the box; an image on a face is inside.

        Returns
        -------
        images : (M, 3) float64, A
        index : (M,) int64
            Index of the atom of each image.
        """
        low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
        wrapped = self.wrap(positions)
        corners = np.array([[(low, high)[(n >> d) & 1][d] for d in range(3)] for n in range(8)])
        box = self.fractional(corners)
        first, last = box.min(0) - 1e-9, box.max(0) + 1e-9
        fractions = np.ascontiguousarray(self.fractional(wrapped).T)
        shifts = [range(int(np.floor(lowest)) - 1, int(np.ceil(highest)) + 1)
                  for lowest, highest in zip(first, last, strict=True)]

        def within(atoms: NDArray[np.int64] | slice, axis: int, shift: int) -> NDArray[np.bool_]:
            """Return a mask of the atoms whose shifted fractional coordinate is in the range of the box's corners."""
            fraction = fractions[axis, atoms]
            chosen: NDArray[np.bool_] = (fraction >= first[axis] - shift) & (fraction <= last[axis] - shift)
            return chosen

        # axis by axis, so that most images outside are excluded before they are computed
        images, index = [], []
        for i in shifts[0]:
            chosen_i = np.flatnonzero(within(slice(None), 0, i))
            for j in shifts[1] if len(chosen_i) else ():
                chosen_j = chosen_i[within(chosen_i, 1, j)]
                for k in shifts[2] if len(chosen_j) else ():
                    chosen = chosen_j[within(chosen_j, 2, k)]
                    moved = wrapped[chosen] + np.array([i, j, k], float) @ self.vectors
                    inside = np.ones(len(moved), bool)
                    for axis in range(3):  # all(axis=1) of three columns takes several times as long
                        inside &= (moved[:, axis] >= low[axis]) & (moved[:, axis] <= high[axis])
                    images.append(moved[inside])
                    index.append(chosen[inside])
        if not images:
            return np.zeros((0, 3)), np.zeros(0, np.int64)
        return np.concatenate(images), np.concatenate(index)


def cell_stretch(cell: Cell, other: Cell) -> NDArray[np.float64] | None:
    """Return the ratios (3,) of another cell's lengths to this one's along x, y and z; None if the shapes differ."""
    change = np.linalg.inv(cell.vectors) @ other.vectors
    along = np.diagonal(change)
    return None if abs(change - np.diag(along)).max() > SHEAR or along.min() <= 0 else along


def same_cell(cell: Cell | None, other: Cell | None, within: float = 0.0) -> bool:
    """Return whether two cells are equal, or both None.

    `within` is the allowed difference relative to the largest component: 0 by default, :data:`SAME_CELL` for
    rounded cells.
    """
    if cell is None or other is None:
        return cell is other
    return bool(np.abs(cell.vectors - other.vectors).max() <= within * np.abs(cell.vectors).max())


def _order(space_group: str) -> int:
    """Return the number of operations of a space group, 1 if the group is unknown."""
    if space_group.strip() in ("", "P 1", "P1"):
        return 1
    import gemmi

    group = gemmi.find_spacegroup_by_name(space_group.strip())
    return 1 if group is None else len(list(group.operations()))
