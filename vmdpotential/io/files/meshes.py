"""Coloured meshes of triangles out, as GLB and PLY, by trimesh."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vmdpotential import extras

#: Suffixes of files of meshes.
SUFFIXES = (".glb", ".ply")


def is_mesh(path: Path) -> bool:
    """Return whether a file's suffix is of a mesh format."""
    return path.suffix.lower() in SUFFIXES


def put_mesh(vertices: NDArray[np.float64], triangles: NDArray[np.int64], normals: NDArray[np.float64],
             colours: NDArray[np.uint8], values: NDArray[np.float64], path: Path, name: Path) -> None:
    """Write a mesh to a file that :mod:`vmdpotential.io.files.output` prepared.

    Parameters
    ----------
    vertices, normals : (V, 3) float64
        Positions in A: numbers of the file are A, as other molecular programs write them.
    triangles : (T, 3) int64
    colours : (V, 4) uint8
        Red, green, blue, opacity.
    values : (V,) float64
        Kept next to the colours in a PLY, as the property ``value``.
    path : Path
        Where to write.
    name : Path
        Whose suffix chooses the format.

    Raises
    ------
    BackendError
        When trimesh is not installed.
    """
    trimesh = extras.load("trimesh", "meshes", "surface")
    suffix = name.suffix.lower()
    mesh = trimesh.Trimesh(vertices, triangles, vertex_normals=normals, vertex_colors=colours, process=False,
                           vertex_attributes={"value": values.astype(np.float32)} if suffix == ".ply" else None)
    path.write_bytes(mesh.export(file_type=suffix[1:], vertex_normal=True) if suffix == ".ply" else
                     mesh.export(file_type="glb", include_normals=True))
