"""The command ``compare``."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import numpy as np

from vmdpotential.commands.options import UnitOfFile, with_unit
from vmdpotential.errors import UsageError
from vmdpotential.grid.compare import difference, likeness, same_lattice, without
from vmdpotential.grid.lattice import Grid
from vmdpotential.grid.planes import Plane
from vmdpotential.io.files import output as files
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option, Report


def compare(
    first: Annotated[Path | Grid, Option("map file, or map", positional=True, metavar="MAP")],
    second: Annotated[Path | Grid, Option(
        "map that is subtracted; interpolated where its points are others", positional=True, metavar="MAP")],
    structure: Annotated[Path | Structure | None, Option(
        "structure whose neighbourhood alone is compared", metavar="FILE", front=True)] = None,
    away: Annotated[float, Option(
        "how far from every atom of the structure points are at least", unit="A", low=0, high=1000)] = 0.0,
    within: Annotated[float | None, Option(
        "how far from an atom of the structure points are at most", unit="A", above=0, high=1000)] = None,
    plane: Annotated[tuple[str | Plane, ...], Option(
        "planes of the figure; the middle across z unless given", unit="A", metavar="z=0", front=True)] = (),
    output: Annotated[Path | None, Option(
        "map of the difference to write, first minus second: .dx, .mrc, .npz ...", short="o", viewer=False,
        written=True)] = None,
    figure: Annotated[Path | None, Option(
        "figure of both maps and their difference: .png, .pdf or .svg", viewer=False, written=True)] = None,
    unit_of_file: UnitOfFile = None,
    force: Annotated[bool, Option("replace files that exist", viewer=False)] = False,
) -> Report:
    """Compare two maps: difference, correlation and Hodgkin index.

    The second map is converted to the first's unit. With a structure, points may be left out that are near its atoms,
    where potentials of any kind are alike, or far from them.

    Raises
    ------
    InputError
        For maps of different quantities or without common points.
    """
    from vmdpotential.figures.page import Panel, check_figure_format, compose, render
    from vmdpotential.io import read_structure
    from vmdpotential.io.maps import check_map_format, map_name, put_map, read_map

    if output is not None:
        check_map_format(output)
    if figure is not None:
        check_figure_format(figure)
    if structure is None and (away > 0 or within is not None):
        raise UsageError("away" if away > 0 else "within", "is a distance from atoms", "give {structure} too")
    paths = [path for path in (output, figure) if path is not None]
    files.check(paths, force)
    names = [map_name(item) if isinstance(item, Path) else f"map {n}" for n, item in enumerate((first, second), 1)]
    a, b = (with_unit(read_map(item), unit_of_file) if isinstance(item, Path) else item for item in (first, second))
    found = difference(a, b)
    if structure is not None:
        from scipy.spatial import cKDTree

        atoms = structure if isinstance(structure, Structure) else read_structure(structure)
        reach = max(away, within or 0.0)
        near, _ = cKDTree(atoms.positions).query(a.lattice.points(), distance_upper_bound=reach + 1e-6, workers=-1)
        distance = near.reshape(a.lattice.shape)
        found = without(found, (distance < away) | (distance > (np.inf if within is None else within)))
        if not np.isfinite(found.values).any():
            raise UsageError("within" if within is not None else "away", "leaves no point of the maps")
    like = likeness(a, found)
    drawn = None
    if figure is not None or not paths:
        from vmdpotential.grid import planes

        chosen = [Plane.parse(item) if isinstance(item, str) else item for item in plane] or [planes.middle(a.lattice)]
        whole = difference(a, b) if structure is not None else found
        other = replace(a.with_values(a.values - whole.values), provenance=b.provenance)
        drawn = compose([Panel(grid, one, name) for one in chosen for grid, name in zip(
            (a, other, whole), (*names, "difference"), strict=True)], width=183.0).figure
    with files.writing(paths, force) as places:
        if output is not None:
            put_map(found.with_values(np.nan_to_num(found.values)), places[0])
        if figure is not None and drawn is not None:
            places[-1].write_bytes(render(drawn, figure, title=f"{names[0]} and {names[1]}"))
    unit = f" {a.unit}".rstrip()
    alike = same_lattice(a, b)
    lines = [
        f"{names[0]} and {names[1]} at {like.points} points"
        + ("" if alike else f", {names[1]} interpolated to those of {names[0]}"),
        f"correlation {like.correlation:.4f}, Hodgkin index {like.hodgkin:.4f}, slope {like.slope:.4g}",
        f"difference: rms {like.rms:.4g}{unit}, mean {like.mean:.4g}, largest {like.largest:.4g}; rms of the maps "
        f"{like.rms_first:.4g} and {like.rms_second:.4g}",
        *([] if output is None or np.isfinite(found.values).all() else [
            "the written map is 0 where nothing was compared"]),
        *(f"wrote {path}" for path in paths),
    ]
    media = [grid.provenance.medium for grid in (a, b)]
    if any(media):
        lines.insert(1, " and ".join(dict.fromkeys(medium or "an unknown medium" for medium in media)))
    data = {**{key: value if np.isfinite(value) else None for key, value in asdict(like).items()}, "unit": a.unit,
            "media": media, "same_lattice": alike, "files": [str(path) for path in paths]}
    return Report(lines, data, {"grid": found} | ({} if drawn is None else {"figure": drawn}))


command = Command.of(compare)
