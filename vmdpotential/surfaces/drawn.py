"""A coloured surface as viewers draw it, with labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential.surfaces import Surface
from vmdpotential.surfaces.patches import Patch

#: Distance of the label of a patch from the surface, A.
_ABOVE = 2.0


@dataclass(frozen=True, eq=False)
class DrawnSurface:
    """A surface with a value at each vertex, which colours it, and labels.

    Parameters
    ----------
    surface : Surface
    values : (V,) float64
        Values at the vertices; NaN where the surface is grey.
    span : (low, high)
        Range of the colours.
    unit : str
        Unit of the values.
    meaning : str
        Unit and medium, for a key of the colours.
    labels : sequence of (str, (3,) float64)
        Texts and their places, A.
    """

    surface: Surface
    values: NDArray[np.float64]
    span: Sequence[float]
    unit: str
    meaning: str
    labels: Sequence[tuple[str, NDArray[np.float64]]] = ()


def patch_values(patches: Sequence[Patch], places: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return values (V,) for vertices in patches (V,): one for each patch, its mean, and NaN for vertices in none."""
    means = np.array([*(patch.mean for patch in patches), np.nan])
    return means[places]


def patch_labels(surface: Surface, patches: Sequence[Patch], places: NDArray[np.int64],
                 least: float) -> list[tuple[str, NDArray[np.float64]]]:
    """Return the names of patches of an area of at least `least`, A^2, with their places: above their middles.

    The centre of a patch around a corner, or around another one, is not on it; its label is at its vertex nearest to
    the centre. `places` (V,) are the vertices' patches, -1 for none.
    """
    labels = []
    for n, patch in enumerate(patches):
        if patch.area >= least:
            own = np.flatnonzero(places == n)
            nearest = own[np.argmin(((surface.vertices[own] - patch.centre) ** 2).sum(1))]
            labels.append((patch.name, surface.vertices[nearest] + _ABOVE * surface.normals[nearest]))
    return labels
