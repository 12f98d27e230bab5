"""What makes the shape of a surface readable in print: hollows are darker, and edges in front of others have a line.

Both are from the depths of the surface at the pixels of a picture of it without perspective.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats

#: Directions in the picture, and distances, A, at which neighbours that hide light are searched, and the distance in
#: space beyond which they hide none.
_DIRECTIONS, _DISTANCES, _REACH = 12, (2.0, 3.5, 5.5, 8.0), 10.0

#: Cosine between the normal and the direction of a neighbour below which it is the surface around the vertex itself.
_LEVEL = 0.2

#: Loss of light per mean of the neighbours' cosines, and the least light.
_DARKENING, _DARKEST = 2.0, 0.45

#: Depth behind an edge, A, from which on it has a line; where that is looked up, in pixels from the edge; and what the
#: surface may rise beside its own edge, A.
_STEP, _NEXT, _ROUND = 2.0, (1.25, 2.0), 1.5

#: What a place for a name loses per A from the middle of a part, relative to what it gains per A from its edges.
_MIDDLE = 0.1


@dataclass(frozen=True, eq=False)
class SurfaceRelief:
    """Depths of a surface in a picture.

    Parameters
    ----------
    places : (V, 3) float64, A
        Vertices: their coordinates to the right, up and towards the viewer.
    normals : (V, 3) float64
        Normals in the same coordinates.
    triangles : (T, 3) int64
        All triangles.
    """

    places: Floats
    normals: Floats
    triangles: NDArray[np.int64]

    @cached_property
    def pixel(self) -> float:
        """Width of a pixel, A: the mean length of an edge, so that the middles of triangles leave no holes."""
        corners = self.places[self.triangles]
        return max(float(np.linalg.norm(corners[:, 1] - corners[:, 0], axis=1).mean()), 1e-3)

    @cached_property
    def depths(self) -> Floats:
        """Largest coordinate towards the viewer in each pixel, A, with -inf where there is nothing, and around."""
        corners = self.places[self.triangles]
        points = np.concatenate([self.places, corners.mean(1), *((corners[:, n] + corners[:, n - 1]) / 2
                                                                 for n in range(3))])
        rows = self._pixels(points)
        depths = np.full(tuple(rows.max(0) + 2), -np.inf)
        np.maximum.at(depths, tuple(rows.T), points[:, 2])
        return depths

    @cached_property
    def _low(self) -> Floats:
        return np.asarray(self.places[:, :2].min(0))

    def _pixels(self, points: Floats) -> NDArray[np.int64]:
        """Return the pixels of points, from 1 on; 0 is the empty border."""
        return np.floor((points[:, :2] - self._low) / self.pixel).astype(np.int64) + 1

    def depth_at(self, points: Floats) -> Floats:
        """Return the depths (N,) at points (N, 2 or more)."""
        high = np.array(self.depths.shape) - 1
        return np.asarray(self.depths[tuple(np.clip(self._pixels(points), 0, high).T)])

    def light(self) -> Floats:
        """Return the part (V,) of the light from all around that reaches each vertex."""
        hidden = np.zeros(len(self.places))
        for angle in np.arange(_DIRECTIONS) * 2 * np.pi / _DIRECTIONS:
            for distance in _DISTANCES:
                step = distance * np.array([np.cos(angle), np.sin(angle)])
                rise = self.depth_at(self.places[:, :2] + step) - self.places[:, 2]
                rise = np.where(np.isfinite(rise), rise, -1e3)
                length = np.hypot(distance, rise)
                cosine = (self.normals[:, :2] @ step + self.normals[:, 2] * rise) / length
                hidden += np.clip(cosine - _LEVEL, 0, None) * np.clip(1 - (length / _REACH) ** 2, 0, None)
        return np.clip(1 - _DARKENING * hidden / (_DIRECTIONS * len(_DISTANCES)), _DARKEST, 1)

    def places_of_parts(self, parts: NDArray[np.int64], least: float, room: float) -> list[tuple[int, Floats]]:
        """Return places for names of parts of the surface, one in each area that the viewer sees, the largest first.

        The place is the one nearest to the middle of the area where a name is not beyond its edges, or the one farthest
        from them.

        Parameters
        ----------
        parts : (V,) int64
            Number of each vertex's part; negative for vertices in none.
        least : float, A^2
            Least area in the picture.
        room : float, A
            Half the width of a name.

        Returns
        -------
        list of (int, (2,) float64)
            Numbers of parts, and places in the picture, A.
        """
        from scipy.ndimage import distance_transform_edt, label

        points = np.concatenate([self.places, self.places[self.triangles].mean(1)])
        order = np.argsort(points[:, 2], kind="stable")  # what is in front is assigned last
        seen = np.full(self.depths.shape, -1)
        seen[tuple(self._pixels(points[order]).T)] = np.concatenate([parts, parts[self.triangles[:, 0]]])[order]
        areas: list[tuple[int, NDArray[np.bool_]]] = []
        for number in np.unique(seen[seen >= 0]).tolist():
            pieces, count = label(seen == number)
            areas += [(number, pieces == piece) for piece in range(1, count + 1)]
        pixels, free, results = np.indices(seen.shape), np.ones(seen.shape, bool), []
        for number, area in sorted(areas, key=lambda entry: -int(entry[1].sum())):
            if area.sum() * self.pixel**2 < least:
                break
            middle = np.argwhere(area).mean(0)
            inside = self.pixel * distance_transform_edt(area & free)
            apart = self.pixel * np.linalg.norm(pixels - middle[:, None, None], axis=0)
            best = np.unravel_index(np.argmax(np.minimum(inside, room) - _MIDDLE * apart * (inside > 0)), seen.shape)
            if inside[best] > 0:
                results.append((number, self._low + self.pixel * (np.array(best) - 0.5)))
                free &= self.pixel * np.linalg.norm(pixels - np.array(best)[:, None, None], axis=0) > 2 * room
        return results

    def edges(self) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the visible edges of the surface in front of what is deeper, and which have nothing behind them.

        Returns
        -------
        (E, 2, 2) float64, A
            Segments in the picture.
        (E,) bool
        """
        away = self.normals[:, 2]
        ends, normals = self._between(away, self.places), self._between(away, self.normals)
        middle, outwards = np.mean(ends, axis=0), np.mean(normals, axis=0)[:, :2]
        outwards /= np.maximum(np.linalg.norm(outwards, axis=1), 1e-9)[:, None]
        covered = self.depth_at(middle[:, :2] + 0.6 * self.pixel * outwards) > middle[:, 2] + _ROUND
        behind = np.min([self.depth_at(middle[:, :2] + pixels * self.pixel * outwards) for pixels in _NEXT], axis=0)
        seen = ~covered & (behind < middle[:, 2] - _STEP)
        return np.stack([end[seen, :2] for end in ends], 1), np.isneginf(behind[seen])

    def boundary(self, part: NDArray[np.bool_]) -> Floats:
        """Return the visible segments (E, 2, 2), A, in the picture between vertices of a part (V,) and others."""
        ends = np.stack(self._between(np.where(part, 1.0, -1.0), self.places), 1)
        middle, faces = ends.mean(1), np.mean(self._between(np.where(part, 1.0, -1.0), self.normals), axis=0)[:, 2] > 0
        seen = faces & (self.depth_at(middle) < middle[:, 2] + _ROUND)
        return np.asarray(ends[seen, :, :2])

    def _between(self, levels: Floats, values: Floats) -> list[Floats]:
        """Return values (V, 3) at both ends of the lines on triangles on which levels (V,) are 0."""
        levels = levels[self.triangles]
        crossed = (levels > 0).any(1) & (levels <= 0).any(1)
        triangles, levels = self.triangles[crossed], levels[crossed]
        # of the three sides, two have ends on different sides of the line; the one corner that is alone is on both
        alone = np.argmax((levels > 0) == ((levels > 0).sum(1) == 1)[:, None], axis=1)
        rows, ends = np.arange(len(triangles)), []
        for other in (1, 2):
            second = (alone + other) % 3
            a, b = levels[rows, alone], levels[rows, second]
            part = (a / np.where(a == b, 1.0, a - b))[:, None]
            one, two = values[triangles[rows, alone]], values[triangles[rows, second]]
            ends.append(one + part * (two - one))
        return ends
