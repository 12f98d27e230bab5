"""Directions from which pictures show a surface."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.errors import UsageError
from vmdpotential.surfaces import Surface

#: Words for directions: the axes of the coordinates, and the principal axes of the surface.
AXES, PRINCIPAL = ("x", "y", "z"), ("long", "middle", "short")
WORDS = tuple(sign + word for word in (*AXES, *PRINCIPAL) for sign in ("", "-"))

#: Cosine between the direction to the viewer and z above which y is up in the picture.
_STEEP = 0.95

#: Smallest sine between the direction to the viewer and the one that is up.
_LEAST = 1e-3

#: Least part of an area whose normals do not cancel, for it to have a side; that of a whole mesh is not quite 0.
_ONE_SIDED = 0.05


@dataclass(frozen=True, eq=False)
class ViewAxes:
    """Directions to the right and up in a picture, at right angles, and the picture's title."""

    right: Floats
    up: Floats
    title: str

    @property
    def towards(self) -> Floats:
        """Direction to the viewer."""
        return np.cross(self.right, self.up)


def parse_view(text: str) -> str:
    """Return the text of a direction: one of :data:`WORDS`, or three numbers such as 1,1,0.

    Raises
    ------
    ValueError
        For any other text.
    """
    text = text.strip()
    if text in WORDS:
        return text
    try:
        numbers = np.array([float(word) for word in text.replace(",", " ").split()])
    except ValueError:
        numbers = np.zeros(0)
    if len(numbers) != 3 or not np.isfinite(numbers).all() or not numbers.any():
        raise ValueError(f"a direction is needed: {', '.join(WORDS[::2])}, the same with a minus, or three numbers "
                         "such as 1,1,0")
    return ",".join(f"{x:g}" for x in numbers)


def principal_axes(surface: Surface) -> Floats:
    """Return the principal axes (3, 3) of a surface, the longest first, right-handed.

    The first two point along the positive side of the coordinate that they are nearest to.
    """
    middle = np.average(surface.vertices, axis=0, weights=surface.areas)
    apart = surface.vertices - middle
    axes = np.linalg.eigh((surface.areas[:, None] * apart).T @ apart)[1].T[::-1]
    first, second = (axis * np.sign(axis[np.argmax(np.abs(axis))]) for axis in axes[:2])
    return np.array([first, second, np.cross(first, second)])


def view_along(text: str, surface: Surface, up: str | None = None) -> ViewAxes:
    """Return the view of a direction as :func:`parse_view` returns it.

    Parameters
    ----------
    text : str
        Direction from the surface to the viewer.
    surface : Surface
        Surface whose principal axes may be named.
    up : str, optional
        Direction that is up in the picture, as far as it is at right angles to `text`. Unless given, z, or y if z
        points to the viewer; for principal axes, the longest one is horizontal.

    Raises
    ------
    UsageError
        If the view is along the direction that is up.
    """
    towards = _direction(text, surface)
    word = text.removeprefix("-")
    if up is None and word in PRINCIPAL:
        upwards = principal_axes(surface)[{"short": 1}.get(word, 2)]
    else:
        upwards = None if up is None else _direction(up, surface)
    sign = "−" if text[0] == "-" else "+"
    title = (f"from {sign}{word}" if word in AXES else f"along the {word} axis{' from behind' * (sign == '−')}"
             if word in PRINCIPAL else f"from ({', '.join(text.split(','))})".replace("-", "−"))
    return _turned(towards, upwards, title, up)


def view_of_part(atoms: NDArray[np.bool_], surface: Surface, name: str, up: str | None = None) -> ViewAxes:
    """Return the view to which some atoms' part of a surface is turned, by the mean of its normals.

    Parameters
    ----------
    atoms : (N,) bool
    surface : Surface
    name : str
        Name of the atoms, for the title.
    up : str, optional
        As of :func:`view_along`.

    Raises
    ------
    UsageError
        If none of the atoms is at the surface, their part has no side, or is seen along the direction that is up.
    """
    part = atoms[surface.atoms] & (surface.cavities == 0)
    areas = surface.areas[part]
    if not areas.sum() > 0:
        raise UsageError("facing", "none of these atoms is at the surface", "choose others, or give {view}", value=name)
    normal = areas @ surface.normals[part]
    if np.linalg.norm(normal) < _ONE_SIDED * areas.sum():
        raise UsageError("facing", "these atoms are on all sides of the surface alike", "choose fewer, or give {view}",
                         value=name)
    return _turned(normal, None if up is None else _direction(up, surface), f"facing {name}", up)


def _direction(text: str, surface: Surface) -> Floats:
    sign, word = -1.0 if text[0] == "-" else 1.0, text.removeprefix("-")
    if word in AXES:
        return np.asarray(sign * np.eye(3)[AXES.index(word)])
    if word in PRINCIPAL:
        return np.asarray(sign * principal_axes(surface)[PRINCIPAL.index(word)])
    return np.array([float(number) for number in text.split(",")])


def _turned(towards: Floats, up: Floats | None, title: str, name: str | None) -> ViewAxes:
    towards = towards / np.linalg.norm(towards)
    upwards = np.eye(3)[1 if abs(towards[2]) > _STEEP else 2] if up is None else up / np.linalg.norm(up)
    right = np.cross(upwards, towards)
    length = float(np.linalg.norm(right))
    if length < _LEAST:
        raise UsageError("up", "is parallel to the direction of view", "give another one",
                         value=name or "")
    right = right / length
    return ViewAxes(right, np.cross(towards, right), title)
