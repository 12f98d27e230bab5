"""Content of the page for maps, in 16 bits, and for ions."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.errors import InputError
from vmdpotential.figures.colours import reading_distance, robust_range, sign_colour, standard_limit
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.grid.stored import StoredGrid, downsampling_step
from vmdpotential.io.files import text as files
from vmdpotential.io.files.numbers import parse_real
from vmdpotential.molecule.names import ION_RESIDUES
from vmdpotential.molecule.selection import is_ion
from vmdpotential.molecule.structure import Structure

from ..ions.placement import PlacedIon, Placement
from .packing import packed

#: Statement on the page's values; a half-precision number has 11 significant bits.
PRECISION = "16-bit floating point, each value to 1 part in 2048"

_LABELS = {
    "quantity": "Quantity", "unit": "Unit", "temperature": "Temperature", "dielectric": "Dielectric constant",
    "spacing": "Spacing of the file", "method": "Method", "interaction": "Interaction", "boundary": "Boundary",
    "cell": "Periodic cell", "cutoff": "Cutoff", "tolerance": "Tolerance", "error": "Measured error",
    "precision": "Precision of the sums", "engine": "Engine", "atoms": "Charges of", "inputs": "Inputs",
    "program": "Program",
}
_UNITS = {"temperature": " K", "spacing": " Å", "cell": " Å", "cutoff": " Å"}


def map_content(grid: Grid, name: str, around: Floats, margin: float, points: int) -> dict[str, Any]:
    """Return the content of a map, cut to the atoms with a margin, and downsampled if it has too many points.

    Parameters
    ----------
    grid : Grid
    name : str
        Name of the map.
    around : (N, 3) float64, A
        Positions of the atoms.
    margin : float, A
        Margin around the atoms.
    points : int
        Largest number of points.

    Raises
    ------
    InputError
        When a value is not a number.
    """
    part = shown_part(grid, name, around, margin, points)
    size = np.abs(part.values)
    scale = 2.0 ** np.ceil(np.log2(max(float(size.max()), 1e-30) / 32768))
    lattice = part.lattice
    spread = [float(x) for x in np.quantile(size, [0.3, 0.9, 0.98, 0.9995])]
    return {
        "name": name, "unit": grid.unit, "medium": grid.provenance.medium, "label": label(grid),
        "shape": list(lattice.shape), "origin": lattice.origin.tolist(), "spacing": lattice.spacing.tolist(),
        "scale": scale, "minimum": float(part.values.min()), "maximum": float(part.values.max()), "quantiles": spread,
        "limit": standard_limit(grid), "outwards": reading_distance(grid),
        "signs": [float(x) != 0 for x in robust_range([part.values])],
        "data": packed((part.values / scale).astype("<f2")), "about": about(grid, part),
        "thinned": part.lattice.spacing.tolist() != grid.lattice.spacing.tolist(), "precision": PRECISION,
    }


def values_on_surface(grid: Grid, depth: Grid) -> dict[str, Any]:
    """Return the values of a map at a molecular surface, at the nodes of the surface's lattice next to it.

    Each node has the value where a normal through it meets the surface, or at the map's distance outwards from there.
    So the colours of a large surface are those of the whole map, of which the page has only every second, third ...
    point.

    Parameters
    ----------
    grid : Grid
    depth : Grid
        Depths inside the surface, exact within two spacings of it.
    """
    lattice = depth.lattice
    near = np.abs(depth.values) <= 2 * lattice.spacing.max()
    gradient = np.gradient(depth.values, *lattice.spacing)
    normals = -np.stack([np.asarray(part)[near] for part in gradient], -1).astype(np.float64)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-9)
    away = depth.values[near].astype(np.float64).reshape(-1, 1) + reading_distance(grid)
    found = grid.sample(lattice.points(np.argwhere(near)) + away * normals)
    scale = 2.0 ** np.ceil(np.log2(max(float(np.nanmax(np.abs(found), initial=0.0)), 1e-30) / 32768))
    values = np.zeros(lattice.shape, "<f2")
    values[near] = found / scale
    return {"shape": list(lattice.shape), "origin": lattice.origin.tolist(), "spacing": lattice.spacing.tolist(),
            "scale": scale, "outwards": 0, "data": packed(values)}


def shown_part(grid: Grid, name: str, around: Floats, margin: float, points: int) -> Grid:
    """Return the part of a map around atoms, downsampled to at most `points`; see :func:`map_content`."""
    part = cut(grid, around, margin, 8 * points)
    if not np.isfinite(part.values).all():
        raise InputError(f"{name}: has values that are not numbers", "compute the map again")
    return downsampled(part, points)


def overlaps(grid: Grid, around: Floats) -> bool:
    """Return whether any of the positions is inside the map."""
    return bool(((around >= grid.lattice.origin) & (around <= grid.lattice.last)).all(1).any())


def cut(grid: Grid, around: Floats, margin: float, most: int) -> Grid:
    """Return the part of a map that covers atoms and a margin, on the map's points; the whole map if none is inside.

    If the map is read in parts and the part has more than `most` points, only every second, fourth ... is read.
    """
    lattice = grid.lattice
    top = np.array(lattice.shape) - 1
    low = np.clip(np.floor((around.min(0) - margin - lattice.origin) / lattice.spacing), 0, top).astype(int)
    high = np.clip(np.ceil((around.max(0) + margin - lattice.origin) / lattice.spacing), 0, top).astype(int)
    if not overlaps(grid, around):
        low, high = np.zeros_like(top), top
    step = downsampling_step(high - low + 1, most) if isinstance(grid, StoredGrid) else 1
    return grid.window(low // step * step, high + 1, step)


def downsampled(grid: Grid, points: int) -> Grid:
    """Return a map of at most `points` points by trilinear interpolation, or the map itself if it has no more."""
    from scipy.ndimage import zoom

    lattice = grid.lattice
    if lattice.size <= points:
        return grid
    extent = lattice.last - lattice.origin
    factor = (lattice.size / points) ** (1 / 3)
    steps = np.array(lattice.shape) - 1
    while True:
        shape = tuple(np.maximum(steps / factor, np.minimum(steps, 1)).astype(int) + 1)
        if np.prod(shape) <= points or max(shape) <= 2:
            break
        factor *= 1.01
    coarse = Lattice(lattice.origin, extent / np.maximum(np.array(shape) - 1, 1) + (extent == 0), shape)
    values = zoom(grid.values, np.array(shape) / lattice.shape, order=1, mode="nearest")
    return replace(grid, lattice=coarse, values=values)


def label(grid: Grid) -> str:
    """Return a description of the values: unit, temperature of kT, and medium."""
    unit = grid.unit or "unit not stated"
    if unit.startswith("kT") and grid.temperature is not None:
        unit += f" at {grid.temperature:g} K"
    return ", ".join(filter(None, (unit, grid.provenance.medium)))


def about(grid: Grid, part: Grid) -> list[list[str]]:
    """Return rows (quantity, value) on the provenance of a map, and on the part of it in the page."""
    header = {"unit": "not stated", "temperature": "not stated", **grid.header()}
    header["inputs"] = header.get("inputs", "").replace("|", ", ")
    header["spacing"] = distances(grid.lattice.spacing, 4)
    if grid.provenance.cell is not None:
        vectors = np.reshape(grid.provenance.cell, (3, 3))
        header["cell"] = "; ".join(f"{name} {' '.join(f'{x:.4g}' for x in vector)}"
                                   for name, vector in zip("abc", vectors, strict=True))
    if grid.provenance.error is not None:
        header["error"] = f"{grid.provenance.error:.1e}"
    rows = []
    for key, what in _LABELS.items():
        value = header.get(key, "")
        if value:
            stated = value != "not stated"
            rows.append([what, f"{value}{_UNITS.get(key, '') if stated else ''}"])
    points = " × ".join(map(str, part.lattice.shape))
    rows.append(["In this page", f"{points} points, {distances(part.lattice.spacing, 3)} Å apart; {PRECISION}"])
    return rows


def distances(spacing: Iterable[float], digits: int) -> str:
    """Return the spacing along x, y and z as text, or one number if they are equal."""
    steps = [f"{h:.{digits}g}" for h in spacing]
    return steps[0] if len(set(steps)) == 1 else " × ".join(steps)


def ion_content(ions: Placement | Sequence[PlacedIon] | Path | None, structure: Structure) -> list[dict[str, Any]]:
    """Return the placed ions with their energies, then other ions of the structure."""
    if isinstance(ions, Path):
        result = _read_table(ions)
    else:
        placed = ions.ions if isinstance(ions, Placement) else ions or ()
        result = [_placed(dict(zip(PlacedIon.COLUMNS, ion.row, strict=True)), "ion") for ion in placed]
    known = np.array([ion["position"] for ion in result]).reshape(-1, 3)
    for atom in np.flatnonzero(is_ion(structure)):
        position = structure.positions[atom]
        if len(known) and (np.abs(known - position) < 0.05).all(1).any():
            continue
        name = str(structure.residue_names[atom])
        result.append(_ion(name, int(structure.residue_ids[atom]), position.tolist(), None))
    return result


def _ion(name: str, number: int, position: list[float], charge: int | None) -> dict[str, Any]:
    known = ION_RESIDUES.get(name.upper())
    if charge is None:
        charge = 0 if known is None else known.charge
    return {"name": name, "number": number, "element": "" if known is None else known.element, "charge": charge,
            "colour": sign_colour(charge), "position": position, "water": "", "solute": None, "ion": None,
            "energy": None, "final": None}


def _read_table(path: Path) -> list[dict[str, Any]]:
    path = files.buffered_stream(path)
    with files.reading_file(path):
        try:
            reader = csv.DictReader(StringIO(files.read_text(path, 4, 4000).decode("utf-8")))
            rows = list(reader)
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"{path}: cannot be read as a table of ions ({error})") from None
        missing = [name for name in ("name", "x_A", "y_A", "z_A") if name not in (reader.fieldnames or ())]
        if missing:
            raise InputError(f"{path}: has no column {missing[0]}", "give the table that the command ionize wrote")
        return [_placed(row, f"{path}: line {line}") for line, row in enumerate(rows, 2)]


def _placed(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    def number(column: str) -> float | None:
        text = row.get(column)
        if text in (None, ""):
            return None
        try:
            value = parse_real(str(text))
        except ValueError:
            value = np.nan
        if not abs(value) < 2**31:
            raise InputError(f"{where}: {column} '{str(text)[:40]}' is not a number", "repair the table")
        return value

    position = [number(column) for column in ("x_A", "y_A", "z_A")]
    if None in position:
        raise InputError(f"{where}: has no position", "repair the table")
    charge = number("charge")
    ion = _ion(str(row["name"]), int(number("residue_id") or 0), [float(x or 0) for x in position],
               None if charge is None else int(charge))
    segment = row.get("water_segment") or ""
    ion["water"] = " ".join(filter(None, [str(row.get("water") or ""), str(segment)]))
    for key, column in (("solute", "solute_distance_A"), ("ion", "ion_distance_A"),
                        ("energy", "energy_kcal_per_mol"), ("final", "final_energy_kcal_per_mol")):
        ion[key] = number(column)
    return ion
