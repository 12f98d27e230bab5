"""Writers of coloured triangle meshes: GLB (glTF 2.0, ISO/IEC 12113) and PLY."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vmdpotential.surfaces import Surface

#: Codes of glTF for number types (float32, uint16, uint32) and for buffers (vertex attributes, vertex indices).
FLOAT, SHORT, UINT = 5126, 5123, 5125
VERTICES, TRIANGLES = 34962, 34963



def write_ply(path: Path, surface: Surface, colours: NDArray[np.uint8], values: NDArray[np.float64]) -> None:
    """Write a surface, in A as other molecular programs do, with its values as the property ``value``.

    Parameters
    ----------
    path : Path
        The file.
    surface : Surface
        With V vertices.
    colours : (V, 4) uint8
        Red, green, blue (sRGB), opacity.
    values : (V,) float64
        Values at the vertices.
    """
    names = [*((axis, "float", "<f4") for axis in ("x", "y", "z", "nx", "ny", "nz")),
             *((colour, "uchar", "u1") for colour in ("red", "green", "blue", "alpha")), ("value", "float", "<f4")]
    rows = np.empty(len(surface.vertices), [(name, kind) for name, _, kind in names])
    for (name, *_), column in zip(names, (*surface.vertices.T, *surface.normals.T, *colours.T, values), strict=True):
        rows[name] = column
    faces = np.empty(len(surface.triangles), [("count", "u1"), ("vertices", "<i4", 3)])
    faces["count"], faces["vertices"] = 3, surface.triangles
    header = ["ply", "format binary_little_endian 1.0", f"element vertex {len(rows)}",
              *(f"property {kind} {name}" for name, kind, _ in names), f"element face {len(faces)}",
              "property list uchar int vertex_indices", "end_header", ""]
    path.write_bytes("\n".join(header).encode() + rows.tobytes() + faces.tobytes())


def write_glb(path: Path, surface: Surface, colours: NDArray[np.uint8], values: NDArray[np.float64]) -> None:
    """Write a surface with its colours as :func:`write_ply`, without its values."""
    arrays = [surface.triangles.astype("<u4").reshape(-1, 1), surface.vertices.astype("<f4"),
              surface.normals.astype("<f4"), _linear(colours)]
    accessors = [{"bufferView": n, "componentType": kind, "count": len(array), "type": shape}
                 for n, (array, kind, shape) in enumerate(zip(arrays, (UINT, FLOAT, FLOAT, SHORT), (
                     "SCALAR", "VEC3", "VEC3", "VEC4"), strict=True))]
    accessors[1] |= {"min": arrays[1].min(0).tolist(), "max": arrays[1].max(0).tolist()}
    accessors[3]["normalized"] = True
    views, start = [], 0
    for n, array in enumerate(arrays):  # the size of each is a multiple of four bytes, as glTF requires
        views.append({"buffer": 0, "byteOffset": start, "byteLength": array.nbytes,
                      "target": VERTICES if n else TRIANGLES})
        start += array.nbytes
    text = json.dumps({
        "asset": {"version": "2.0", "generator": "vmdpotential"}, "scene": 0, "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}], "buffers": [{"byteLength": start}], "bufferViews": views, "accessors": accessors,
        "meshes": [{"primitives": [{"attributes": {"POSITION": 1, "NORMAL": 2, "COLOR_0": 3}, "indices": 0,
                                    "material": 0}]}],
        # the material that glTF assumes is a metal
        "materials": [{"name": "surface", "pbrMetallicRoughness": {"metallicFactor": 0, "roughnessFactor": 0.6}}],
    }).encode()
    text += b" " * (-len(text) % 4)
    parts = [struct.pack("<4sII", b"glTF", 2, 28 + len(text) + start), struct.pack("<I4s", len(text), b"JSON"), text,
             struct.pack("<I4s", start, b"BIN\0"), *(array.tobytes() for array in arrays)]
    path.write_bytes(b"".join(parts))


def _linear(colours: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """Return colours (V, 4) of a screen (sRGB) in proportion to light, as glTF stores them; opacity stays."""
    part = colours / 255
    rgb = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    return np.round(65535 * np.concatenate([rgb[:, :3], part[:, 3:]], 1)).astype("<u2")
