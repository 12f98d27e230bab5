"""The command ``surface``."""

from __future__ import annotations

import csv
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.commands.between import label
from vmdpotential.commands.options import CrystalSource, Force, UnitOfFile, with_unit
from vmdpotential.commands.slice import _range
from vmdpotential.errors import UsageError
from vmdpotential.figures.colours import Range, check_range, colour_range
from vmdpotential.grid.lattice import Grid
from vmdpotential.io.files import output as files
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option, Report
from vmdpotential.surface import KINDS, PROBE, Row, Surface, molecular_surface, rows

_COLUMNS = ("area", "mean", "minimum", "maximum")

#: Rows of the strongest potentials that are printed.
_PRINTED = 5


@dataclass(frozen=True, kw_only=True)
class SurfaceShape:
    """Which surface, and where the map is read."""

    kind: Annotated[str, Option(
        "molecular: what a probe cannot enter; accessible: where its centre can be", choices=KINDS,
        front=True)] = "molecular"
    probe: Annotated[float, Option("radius of the probe", unit="A", low=0, high=20)] = PROBE
    outwards: Annotated[float, Option(
        "how far from the surface the map is read, 1.4 where a water's centre would be", unit="A", low=-10,
        high=20)] = 0.0
    spacing: Annotated[float, Option(
        "of the lattice that the surface is found on", unit="A", low=0.05, high=2)] = 0.3


@dataclass(frozen=True, kw_only=True)
class SurfaceOutput:
    """The files of a surface."""

    output: Annotated[tuple[Path, ...], Option(
        "files to write: .csv for the table, .glb or .ply for the coloured mesh", short="o", viewer=False,
        written=True, suffix=".csv")] = ()
    figure: Annotated[Path | None, Option("figure to write: .png, .pdf or .svg", viewer=False, written=True)] = None
    force: Force = False


def surface(
    source: CrystalSource,
    map: Annotated[Path | Grid, Option("map file, or map, that is read on the surface", positional=True)],
    atoms: Annotated[str, Option(
        "around which the surface is: all, solute, protein ..., or a selection", metavar="all|solute|protein|SEL",
        front=True, selection=True)
        ] = "solute",
    shape: SurfaceShape = SurfaceShape(),
    by: Annotated[str, Option("what has a row of the table", choices=("residue", "atom", "vertex"))] = "residue",
    range: Annotated[Range | None, Option(
        "range of the colours, such as -5,5; unless given that, in kT/e, for a potential in water (screened, "
        "continuum), "
        "otherwise wide enough for 98 % of the surface",
        parse=_range, metavar="LO,HI", front=True)] = None,
    view: Annotated[tuple[str, ...], Option(
        "from where the figure looks: x, -x, y, -y, z or -z; several become panels", metavar="AXIS")] = ("z", "-z"),
    unit_of_file: UnitOfFile = None,
    output: SurfaceOutput = SurfaceOutput(),
) -> Report:
    """Put a map onto the surface of a molecule.

    The table has the area of each residue, atom or vertex, and the mean by area and the range of the map on it.

    Raises
    ------
    UsageError
        For files of other formats.
    InputError
        For structures without elements, or maps that the surface is not in.
    BackendError
        When scikit-image or trimesh is not installed.
    """
    from vmdpotential.figures.page import check_figure_format, render
    from vmdpotential.figures.slices import quantity_label
    from vmdpotential.figures.surfaces import VIEWS, vertex_colours
    from vmdpotential.figures.surfaces import figure as draw
    from vmdpotential.io.files.meshes import SUFFIXES, is_mesh, put_mesh
    from vmdpotential.io.maps import map_name, read_map

    for path in output.output:
        if not is_mesh(path) and path.suffix.lower() != ".csv":
            raise UsageError("output", f"{path}: the suffix is of no table or mesh",
                             f"choose one of .csv, {', '.join(SUFFIXES)}")
    figure, force = output.figure, output.force
    if figure is not None:
        check_figure_format(figure)
    unknown = [name for name in view if name not in VIEWS]
    if unknown or not view:
        raise UsageError("view", f"choose among {', '.join(VIEWS)}", value=", ".join(unknown))
    if range is not None:
        check_range(range)
    paths = [*output.output, *([] if figure is None else [figure])]
    files.check(paths, force)
    name = map_name(map) if isinstance(map, Path) else "map"
    structure, prepared = source.hydrogenated()
    grid = map if isinstance(map, Grid) else with_unit(read_map(map), unit_of_file)
    start = time.perf_counter()
    made = molecular_surface(structure, atoms=atoms, kind=shape.kind, probe=shape.probe,
                             spacing=shape.spacing)
    values = made.sample(grid, shape.outwards)
    seconds = time.perf_counter() - start
    inside = np.isfinite(values)
    if not inside.any():
        raise UsageError("map", "no point of the surface is in it", "give the map of this structure",
                         value=name)
    span = range or colour_range([grid], [values])
    drawn = draw(made, values, view, span, quantity_label(grid)) if figure is not None or not paths else None
    owners = {"atom": made.atoms, "residue": structure.residue_of[made.atoms]}
    table = rows(made, values, owners["atom" if by == "atom" else "residue"])
    names = _distinct([_name(structure, row, by == "atom") for row in table])
    with files.writing(paths, force) as places:
        for path, place in zip(output.output, places, strict=False):
            if is_mesh(path):
                put_mesh(made.vertices, made.triangles, made.normals,
                         np.round(255 * vertex_colours(values, span)).astype(np.uint8), values, place, path)
            elif by == "vertex":
                _write_vertices(made, values, structure, place)
            else:
                _write(names, table, by, place)
        if figure is not None and drawn is not None:
            places[-1].write_bytes(render(drawn, figure, title=quantity_label(grid)))
    whole = rows(made, values, np.zeros(len(values), np.int64))[0]
    unit = f" {grid.unit}".rstrip()
    lines = [
        *filter(None, [prepared]),
        f"{shape.kind} surface of {atoms}, probe {shape.probe:g} A: {made.area:.1f} A^2, "
        f"{len(made.vertices)} vertices, {len(made.triangles)} triangles",
        f"{name}, {f'{shape.outwards:g} A outwards' if shape.outwards else 'on it'}: mean {whole.mean:.4g}, "
        f"{whole.low:.4g} to {whole.high:.4g}{unit}"
        + (f", {grid.provenance.medium}" if grid.provenance.medium else ""),
        *([] if inside.all() else [f"{100 * float(made.areas[~inside].sum()) / made.area:.2g} % of the area is outside "
                                   "of the map"]),
    ]
    order = np.argsort([row.mean for row in table])
    order = order[np.isfinite([table[n].mean for n in order])]
    for word, some in (("lowest", order[:_PRINTED]), ("highest", order[::-1][:_PRINTED])):
        lines.append(f"{word}: " + ", ".join(f"{names[n]} {table[n].mean:.4g}" for n in some))
    lines += [f"{seconds:.2f} s", *(f"wrote {path}" for path in paths)]
    data: dict[str, Any] = {
        "prepared": prepared or None,
        **asdict(shape), "area": made.area, "unit": grid.unit, "medium": grid.provenance.medium,
        "mean": whole.mean, "minimum": whole.low, "maximum": whole.high,
        "inside": float(made.areas[inside].sum()) / made.area, "vertices": len(made.vertices),
        "triangles": len(made.triangles), "range": list(span), "by": "residue" if by == "vertex" else by,
        "rows": [{"name": n, "area": row.area, "mean": _or_none(row.mean), "minimum": _or_none(row.low),
                  "maximum": _or_none(row.high)} for n, row in zip(names, table, strict=True)],
        "files": [str(path) for path in paths], "seconds": seconds,
    }
    return Report(lines, data, {"surface": made} | ({} if drawn is None else {"figure": drawn}))


def _name(structure: Structure, row: Row, atom: bool) -> str:
    return label(structure, row.index if atom else int(structure.residue_starts[row.index]), not atom)


def _distinct(names: Sequence[str]) -> list[str]:
    """Return names with a number in their order where several are equal, as of two chains with one identifier."""
    equal, so_far = Counter(names), Counter[str]()
    result = []
    for name in names:
        so_far[name] += 1
        result.append(f"{name} ({so_far[name]})" if equal[name] > 1 else name)
    return result


def _or_none(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _write(names: list[str], table: list[Row], by: str, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow((by, *_COLUMNS))
        writer.writerows((name, *map(_text, (row.area, row.mean, row.low, row.high)))
                         for name, row in zip(names, table, strict=True))


def _text(value: float) -> str:
    return f"{value:.8g}" if np.isfinite(value) else ""


def _write_vertices(made: Surface, values: NDArray[np.float64], structure: Structure, path: Path) -> None:
    rows = np.unique(made.atoms).tolist()
    atoms = dict(zip(rows, _distinct([label(structure, n, False) for n in rows]), strict=True))
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("x", "y", "z", "nx", "ny", "nz", "area", "value", "atom"))
        writer.writerows(
            (*(f"{x:.6g}" for x in (*place, *normal, area)), _text(value), atoms[int(n)])
            for place, normal, area, value, n in zip(
                made.vertices, made.normals, made.areas, values, made.atoms, strict=True))


command = Command.of(surface)
