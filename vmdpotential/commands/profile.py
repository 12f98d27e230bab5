"""The command ``profile``: charge density, field and potential along an axis of a periodic cell."""

from __future__ import annotations

import csv
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from vmdpotential import progress
from vmdpotential.commands.between import FramesOption, TrajectoryOption
from vmdpotential.commands.options import (
    CellOption,
    Charges,
    ForceField,
    Index,
    Resume,
    Scheduler,
    Water,
    Workers,
    charged,
    read,
)
from vmdpotential.errors import UsageError
from vmdpotential.execution.blocks import clear, folder_of
from vmdpotential.frames.profile import QUANTITIES, Profile
from vmdpotential.frames.statistics import TOO_SHORT
from vmdpotential.io.files import output as files
from vmdpotential.io.trajectories.frames import Frames
from vmdpotential.molecule.selection import select
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option, Report
from vmdpotential.units import DEFAULT_TEMPERATURE, POTENTIAL_UNITS

#: Where the potential may be 0 beside a selection's place.
_ZEROS = ("mean", "left")


def profile(
    structure: Annotated[Path | Structure, Option(
        "structure file (a topology will do beside a trajectory), or a periodic map of the potential",
        positional=True)],
    trajectory: TrajectoryOption = None,
    axis: Annotated[str, Option("along which", choices=("x", "y", "z"), front=True)] = "z",
    from_: Annotated[tuple[str, ...], Option(
        "selections whose contributions are told apart, such as lipid, water and ions", metavar="SEL",
        front=True, selection=True)] = (),
    center: Annotated[str | None, Option(
        "selection whose middle is moved to 0 in every frame, so that its drift does not blur the mean",
        metavar="SEL", selection=True)] = None,
    zero: Annotated[str, Option(
        "where the potential is 0: the mean over the cell, the left edge, or the mean over a selection such as water, "
        "weighted by its density", metavar="mean|left|SEL", selection=True, words=_ZEROS)] = "mean",
    frames: FramesOption = None,
    spacing: Annotated[float, Option("between nodes, at most", unit="A", above=0, high=100)] = 0.5,
    smear: Annotated[float | None, Option(
        "standard deviation of each atom's Gaussian charge; the distance of nodes unless given, 0 for points", unit="A",
        low=0, high=100)] = None,
    integral: Annotated[bool, Option(
        "show beside it the potential as the double integral from the left edge has it (gmx potential)")] = False,
    slab_correction: Annotated[bool, Option(
        "take away the field that conducting (tinfoil) surroundings make in the vacuum beside a slab (Yeh and "
        "Berkowitz)")] = False,
    topology: Annotated[Path | None, Option(
        "file with charges (PSF, prmtop, TPR ...)", viewer=False)] = None,
    force_field: ForceField = "auto",
    water: Water = "auto",
    cell: CellOption = None,
    charges: Charges = (),
    index: Index = None,
    unit: Annotated[str, Option("of the potential", choices=POTENTIAL_UNITS)] = "V",
    temperature: Annotated[float, Option("for kT/e", unit="K", above=0)] = DEFAULT_TEMPERATURE,
    resume: Resume = False,
    workers: Workers = 0,
    scheduler: Scheduler = "",
    output: Annotated[Path | None, Option(
        "CSV file of the curves; - is standard output", short="o", viewer=False, written=True)] = None,
    figure: Annotated[Path | None, Option(
        "figure of the curves: .png, .pdf or .svg", viewer=False, written=True)] = None,
    force: Annotated[bool, Option("replace files that exist", viewer=False)] = False,
) -> Report:
    """Compute charge density (e/A^3), electric field (V/A) and potential along an axis of a periodic cell.

    The mean over the planes across the axis, and over the frames of a trajectory, with standard errors by blocks of
    frames. Poisson's equation is solved on the periodic cell, in conducting (tinfoil) surroundings, so that nothing
    depends on where the cell begins; a slab with a dipole then has a field in the vacuum beside it.

    Raises
    ------
    UsageError
        For options that do not fit together, or an axis along which the cell has no period.
    InputError
        For atoms without charges, frames without a cell, or a trajectory of other atoms.
    """
    from vmdpotential.figures.page import check_figure_format, render
    from vmdpotential.figures.profiles import profiles
    from vmdpotential.io.maps import is_map

    if figure is not None:
        check_figure_format(figure)
    if slab_correction and integral:
        raise UsageError("slab_correction", "has no double integral beside it", "leave out {integral}")
    paths = [path for path in (output, figure) if path is not None]
    files.check(paths, force)
    start, kept = time.perf_counter(), folder_of(output, resume)
    with progress.clock() as clock:
        if isinstance(structure, Path) and is_map(structure):
            given = {"trajectory": trajectory, "from": from_, "center": center, "topology": topology, "cell": cell,
                     "charges": charges, "index": index,
                     "frames": frames, "slab_correction": slab_correction}
            found, head, data = _of_map(structure, axis, zero, unit, given)
            objects: dict[str, Any] = {}
        else:
            found, head, data, objects = _of_atoms(
                structure, trajectory, axis, from_, center, zero, frames, spacing, smear, topology, force_field, water,
                cell, charges, index, unit, temperature,
                {"slab_correction": slab_correction, "folder": kept, "resume": resume, "workers": workers,
                 "scheduler": scheduler})
    seconds = time.perf_counter() - start - clock.compiling
    where = {"mean": "the mean over the cell", "left": "the left edge"}.get(zero, f"the mean over {zero}")
    labels = [f"{name[0].upper()}{name[1:]} ({u})".replace("A^3", "Å³").replace("/A", "/Å")
              for name, u in zip(QUANTITIES, found.units, strict=True)]
    drawn = None
    if figure is not None or not paths:
        drawn = profiles(found.z, found.names, found.values, found.intervals, labels, axis,
                         found.integral if integral else None)
    with files.writing(paths, force) as places:
        if output is not None:
            _write(found, places[0], integral)
        if figure is not None and drawn is not None:
            places[-1].write_bytes(render(drawn, figure, title=f"profile along {axis}"))
    clear(kept)
    phi = found.values[0, 2]
    error = None if found.errors is None or np.isnan(found.errors[0, 2, 0]) else found.errors[0, 2]
    low, high = int(phi.argmin()), int(phi.argmax())

    def told(n: int) -> str:
        return f"{phi[n]:.4f}{'' if error is None else f' +- {error[n]:.4f}'} at {axis} = {found.z[n]:.2f} A"

    many = f"{found.frames} frames in {found.blocks} blocks" if found.frames > 1 else "1 frame"
    of = ", ".join(filter(None, (unit, found.medium)))
    lines = [
        *head,
        f"potential from {told(low)} to {told(high)}, in {of}; 0 is {where}"
        + ("" if zero == "mean" else f", which is {found.shift:.4f} {unit} over the mean of the cell"),
        f"{len(found.z)} nodes, {found.period / len(found.z):.4g} A apart, over a period of {found.period:.4f} A"
        + (f" (+- {found.deviation:.4f} A over frames)" if found.deviation > 1e-6 else ""),
    ]
    if found.corrected:
        lines.append(f"slab correction: without it there is a field of {found.artificial:.4g} V/A in the vacuum; the "
                     f"potential has a step of {abs(found.artificial) * found.period:.4g} V there")
    else:
        lines.append("conducting (tinfoil) surroundings: the mean field over the cell is 0" + (
            f", which makes an artificial field of {found.artificial:.4g} V/A in the vacuum; the slab correction "
            "removes it" if found.artificial else ""))
    if abs(found.charge) > 1e-3:
        lines.append(f"the net charge of the cell, {found.charge:.4f} e, has a neutralising background")
    if found.frames > 1:
        lines.append(TOO_SHORT if error is None or found.intervals is None else
                     "+- is the standard error of the mean; the mean is known to +- "
                     f"{float(found.intervals[0, 2].max()):.4f} {unit} or better with a confidence of 95 %")
    if integral:
        lines.append(f"the double integral from the left edge ends at {found.integral[-1]:.4f} {unit}, where the "
                     "periodic potential is what it was at the beginning")
    lines += [f"{many} in {seconds:.2f} s", *(f"wrote {path}" for path in paths)]
    data |= {
        "axis": axis, axis: found.z.tolist(), "names": list(found.names), "unit": unit, "medium": found.medium,
        "units": list(found.units),
        **{name.replace(" ", "_"): found.values[:, n].tolist() for n, name in enumerate(QUANTITIES)},
        **{key: None if values is None else {
            name.replace(" ", "_"): [None if np.isnan(curve[0]) else curve.tolist() for curve in values[:, n]]
            for n, name in enumerate(QUANTITIES)}
           for key, values in (("errors", found.errors), ("intervals", found.intervals))},
        "artificial_field": found.artificial, "slab_correction": found.corrected, "zero": zero, "shift": found.shift,
        "period": found.period, "period_std": found.deviation,
        "net_charge": found.charge, "frames": found.frames, "blocks": found.blocks, "seconds": seconds,
        "integral": found.integral.tolist() if integral else None, "files": [str(path) for path in paths],
    }
    return Report(lines, data, {**objects, **({} if drawn is None else {"figure": drawn})})


def _of_atoms(
    structure: Path | Structure, trajectory: Path | Frames | None, axis: str, groups: tuple[str, ...],
    center: str | None, zero: str, frames: slice | None, spacing: float, smear: float | None, topology: Path | None,
    force_field: str, water: str, cell: Any, charges: tuple[Path, ...], index: Path | None, unit: str,
    temperature: float, blocks: Mapping[str, Any],
) -> tuple[Profile, list[str], dict[str, Any], dict[str, Any]]:
    from vmdpotential.frames.profile import profile as of_frames
    from vmdpotential.io.trajectories.frames import opened

    if trajectory is None and frames is not None:
        raise UsageError("frames", "are of a trajectory", "give its file after the structure's")
    atoms, report = charged(read(structure, topology, cell, index, trajectory), force_field, water, charges)
    found = of_frames(
        atoms, opened(trajectory, len(atoms), frames),
        axis="xyz".index(axis), spacing=spacing, smear=smear,
        center=None if center is None else select(atoms, center, "center"),
        zero=zero if zero in _ZEROS else select(atoms, zero, "zero"),
        sources={name: select(atoms, name, "from") for name in groups}, cell=cell, unit=unit, temperature=temperature,
        **blocks)
    data = {**report.data, "temperature": temperature, "spacing": spacing, "smear": smear, "center": center}
    return found, [str(report)], data, {"structure": atoms}


def _of_map(path: Path, axis: str, zero: str, unit: str, given: dict[str, Any]) -> tuple[
        Profile, list[str], dict[str, Any]]:
    from vmdpotential.frames.profile import profile_of_map
    from vmdpotential.io.maps import read_map

    for name, value in given.items():
        if value:
            raise UsageError(name, "is for a structure, not for a map")
    if zero not in _ZEROS:
        raise UsageError("zero", "a map has no atoms to select", "use {zero mean}", value=zero)
    found = profile_of_map(read_map(path), "xyz".index(axis), zero=zero, unit=unit, name=str(path))
    return found, [f"mean over the planes of {path}"], {"map": str(path)}


def _write(found: Profile, path: Path, integral: bool) -> None:
    columns, table = [f"{'xyz'[found.axis]} (A)"], [found.z]
    for n, name in enumerate(found.names):
        for k, (quantity, unit) in enumerate(zip(QUANTITIES, found.units, strict=True)):
            of = "" if n == 0 else f" of {name}"
            columns.append(f"{quantity}{of} ({unit})")
            table.append(found.values[n, k])
            if found.errors is not None and np.isfinite(found.errors[n, k, 0]):
                columns.append(f"{quantity}{of} error ({unit})")
                table.append(found.errors[n, k])
    if integral:
        columns.append(f"potential by double integral ({found.unit})")
        table.append(found.integral[:-1])
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([f"{x:.8g}" for x in row] for row in np.column_stack(table))


command = Command.of(profile)
