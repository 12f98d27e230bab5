"""Answers of the program to VMD's plugin, which runs it: the options of all commands, and what VMD draws of results."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vmdpotential import __version__, registry
from vmdpotential.errors import BackendError
from vmdpotential.figures import colours
from vmdpotential.frontend.declarations import as_text, in_front, parameter_kind, takes_data
from vmdpotential.grid.lattice import Grid
from vmdpotential.parameters import Command, Parameter, Report

from .display import vmd_options
from .map_surfaces import colour_range, surface_of, surface_range
from .tcl import TclWord, tcl_list

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vmdpotential.surfaces import Surface

log = logging.getLogger(__name__)

#: Numbers of the colours of VMD's scale, and of its grey.
SCALE, GREY = range(33, 1057), 2


def tcl_answer(data: Mapping[str, Any], report: Report, surface: str | None, part: str | None,
               folder: Path | None) -> str:
    """Return the entries of a report, `data`, and what VMD draws of it, see :func:`drawn_in_vmd`, in Tcl."""
    return tcl_list({**data, **drawn_in_vmd(report, surface, part, folder)})


def command_declarations() -> dict[str, Any]:
    """Return every command that takes a structure or a map, ready for JSON.

    Returns
    -------
    dict
        ``{"version": ..., "commands": {name: {"summary", "description", "options", "display", "draws",
        "makes"}}, "broken": {name:
        reason}, "colours": equidistant colours of maps}``. Options, and those of the display in VMD, have ``name``,
        ``kind`` (``structure``, ``map``, ``trajectory``, ``data`` (a file instead of these), ``selection``, ``file``,
        ``boolean``, ``integer``, ``number`` or ``text``), ``several``, ``required``, ``positional``, ``viewer``,
        ``shell``, ``front`` (whether a dialog shows it at once), ``aliases``, ``suffix`` (of the file that it writes),
        ``default`` (as text, empty for none), ``help``, ``unit``, ``choices``, ``words``, which are allowed instead of
        a selection, ``bundled``, whether a file may also be named that comes with a package, and ``role``, what the
        option is to a viewer (``assembly``, ``expansion``, ``topology``, ``frames`` ...; empty for none).
    """
    commands, broken = {}, dict(registry.broken())
    for name in registry.available("command"):
        try:
            command: Command = registry.get("command", name)
            result = declare(command)
        except Exception as error:  # a plugin's command may raise anything on import, and must not affect the others
            broken[name] = f"{type(error).__name__}: {error}"
            continue
        if takes_data(command):
            commands[name] = result
    return {"version": __version__, "commands": commands, "broken": broken, "colours": colours.stops()}


def declare(command: Command) -> dict[str, Any]:
    """Return the declaration of one command, see :func:`command_declarations`."""
    return {
        "summary": command.summary,
        "description": command.description,
        "draws": command.draws,
        "makes": command.makes,
        "options": [_declare_option(parameter) | {"front": in_front(command, parameter)}
                    for parameter in command.parameters],
        "display": [_declare_option(parameter) | {"front": parameter.option.front}
                    for parameter in vmd_options(command)],
    }


def _declare_option(parameter: Parameter) -> dict[str, Any]:
    option = parameter.option
    return {
        "name": parameter.name, "kind": parameter_kind(parameter), "several": parameter.several,
        "required": parameter.required, "positional": option.positional, "viewer": option.viewer,
        "shell": option.shell, "aliases": list(option.aliases), "suffix": option.suffix,
        "default": "" if parameter.required else as_text(parameter.default), "help": option.help, "unit": option.unit,
        "choices": list(option.shown()), "words": list(option.words), "bundled": option.bundled,
        "role": option.role or "",
    }


def drawn_in_vmd(report: Report, surface: str | None, part: str | None = None,
                 folder: Path | None = None) -> dict[str, Any]:
    """Return what VMD draws of a report: values of atoms, range and meaning of a map's colours, and a coloured surface.

    Further maps of a series, or statistics, are loaded but not drawn.

    Parameters
    ----------
    report : Report
    surface : str or None
        Range of the colours of a map's molecular surface, empty for the usual one; None for no surface.
    part : str or None
        Selection of the atoms that get a surface; all unless given.
    folder : Path, optional
        Folder for maps that the command wrote to no file.
    """
    from vmdpotential.surfaces import molecular_surface

    objects, data = report.objects, dict[str, Any]()
    if "mesh" in objects:
        made = objects["mesh"]
        return {"meaning": made.meaning, "surface": _drawn_surface(made.surface, made.values, made.span),
                "labels": [[name, *place.round(3).tolist()] for name, place in made.labels]}
    if "values" in objects:
        data["values"] = [round(value, 6) for value in objects["values"].b_factors.tolist()]
    grid, structure = objects.get("grid"), objects.get("structure")
    if not isinstance(grid, Grid):  # it may be only in a file
        return data
    span = colour_range(surface) if surface else surface_range(grid, structure)
    data |= {"range": list(span), "meaning": colours.map_meaning(grid), "maps": _map_files(report, folder)}
    computed = surface_of(report, part)
    if surface is None or computed is None:
        return data
    try:
        mesh = molecular_surface(computed, atoms="all", spacing=mesh_spacing(len(computed)), cavities=False)
    except BackendError as error:
        log.warning("isosurfaces are drawn, as the molecular surface needs another package: %s", error)
        return data
    return data | {"surface": _drawn_surface(mesh, mesh.sample(grid, colours.reading_distance(grid)), span)}


def _map_files(report: Report, folder: Path | None) -> list[tuple[str, str]]:
    """Return the file and the meaning of each map of a report; those after its files are written to the folder."""
    from vmdpotential.io.maps import is_map, write_map

    grids = {name: value for name, value in report.objects.items() if isinstance(value, Grid)}
    files = [file for file in map(Path, report.data.get("files", ())) if is_map(file)]
    if folder is not None:
        for name in list(grids)[len(files):]:
            files.append(folder / f"{name}.dx")
            write_map(grids[name], files[-1])
    return [(str(file), f"{grid.provenance.quantity}, {colours.map_meaning(grid)}")
            for file, grid in zip(files, grids.values(), strict=False)]


def mesh_spacing(atoms: int) -> float:
    """Return the spacing of the lattice of a molecular surface, A, at which a viewer that is slow can draw it."""
    return max(0.3, 0.5 * float(np.cbrt(atoms / 5000)))


def _drawn_surface(mesh: Surface, values: NDArray[np.float64], span: Sequence[float]) -> dict[str, Any]:
    """Return a surface for VMD, in Tcl: vertices, normals, colours as numbers of VMD's scale, and triangles."""
    low, high = span
    known = np.isfinite(values)
    relative = np.clip((np.where(known, values, low) - low) / (high - low), 0, 1)
    numbers = np.where(known, SCALE.start + np.rint(relative * (len(SCALE) - 1)), GREY).astype(int)
    vertices, normals = (TclWord.of_numbers(part.ravel().tolist(), "{%.3f %.3f %.3f}")
                         for part in (mesh.vertices, mesh.normals))
    return {"vertices": vertices, "normals": normals, "colours": TclWord.of_numbers(numbers.tolist()),
            "triangles": TclWord.of_numbers(mesh.triangles.ravel().tolist())}
