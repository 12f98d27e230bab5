"""The command ``profile``: charge density, field and potential along an axis of a periodic cell."""

from __future__ import annotations

import csv
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from vmdpotential import progress
from vmdpotential.commands.options import CrystalSource, TableOutput, TrajectoryOptions
from vmdpotential.errors import UsageError
from vmdpotential.execution.blocks import clear
from vmdpotential.frames.options import Execution
from vmdpotential.frames.profile import QUANTITIES, Profile, ProfileOptions
from vmdpotential.frames.profile import profile as of_frames
from vmdpotential.frames.statistics import TOO_SHORT
from vmdpotential.molecule.selection import select
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option, Report

#: Where the potential may be 0 beside a selection's place.
_ZEROS = ("mean", "left")


@dataclass(frozen=True, kw_only=True)
class ProfileSource(CrystalSource):
    """A structure with charges, or a map."""

    structure: Annotated[Path | Structure, Option(
        "structure file (a topology where a trajectory has the coordinates), or a periodic map of the potential",
        positional=True)]


def profile(
    source: ProfileSource,
    trajectory: TrajectoryOptions = TrajectoryOptions(),
    axis: Annotated[str, Option("axis of the profile", choices=("x", "y", "z"), front=True)] = "z",
    from_: Annotated[tuple[str, ...], Option(
        "selections whose contributions are reported separately, such as lipid, water and ions", metavar="SEL",
        front=True, selection=True)] = (),
    center: Annotated[str | None, Option(
        "selection whose middle is moved to 0 in every frame, so that its drift does not blur the mean",
        metavar="SEL", selection=True)] = None,
    zero: Annotated[str, Option(
        "where the potential is 0: the mean over the cell, the left edge, or the mean over a selection such as water, "
        "weighted by its density", metavar="mean|left|SEL", selection=True, words=_ZEROS)] = "mean",
    integral: Annotated[bool, Option(
        "show next to it the potential as the double integral from the left edge has it (gmx potential)")] = False,
    options: ProfileOptions = ProfileOptions(),
    execution: Execution = Execution(),
    output: TableOutput = TableOutput(),
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
    from vmdpotential.figures.profiles import profiles
    from vmdpotential.io.maps import is_map

    output.check()
    if options.slab_correction and integral:
        raise UsageError("slab_correction", "has no double integral", "leave out {integral}")
    start, kept = time.perf_counter(), execution.beside(output.output)
    with progress.clock() as clock:
        if isinstance(source.structure, Path) and is_map(source.structure):
            given = {"trajectory": trajectory.trajectory, "from": from_, "center": center, "topology": source.topology,
                     "cell": source.cell, "charges": source.charges, "index": source.index,
                     "frames": trajectory.frames, "slab_correction": options.slab_correction}
            found, head, data = _of_map(source.structure, axis, zero, options.unit, given)
            objects: dict[str, Any] = {}
        else:
            atoms, report, frames = source.over(trajectory)
            found = of_frames(atoms, frames, replace(
                options, axis="xyz".index(axis), center=None if center is None else select(atoms, center, "center"),
                zero=zero if zero in _ZEROS else select(atoms, zero, "zero"),
                sources={name: select(atoms, name, "from") for name in from_}, cell=source.cell),
                replace(execution, folder=kept))
            data = {**report.data, "temperature": options.temperature, "spacing": options.spacing,
                    "smear": options.smear, "center": center}
            head, objects = [str(report)], {"structure": atoms}
    seconds = time.perf_counter() - start - clock.compiling
    where = {"mean": "the mean over the cell", "left": "the left edge"}.get(zero, f"the mean over {zero}")
    labels = [f"{name[0].upper()}{name[1:]} ({u})".replace("A^3", "Å³").replace("/A", "/Å")
              for name, u in zip(QUANTITIES, found.units, strict=True)]
    drawn = None
    if output.draws:
        drawn = profiles(found.z, found.names, found.values, found.intervals, labels, axis,
                         found.integral if integral else None)
    output.write(lambda path: _write(found, path, integral), drawn, f"profile along {axis}")
    clear(kept)
    phi, unit = found.values[0, 2], options.unit
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
    lines += [f"{many} in {seconds:.2f} s", *(f"wrote {path}" for path in output.paths)]
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
        "integral": found.integral.tolist() if integral else None, "files": [str(path) for path in output.paths],
    }
    return Report(lines, data, {**objects, **({} if drawn is None else {"figure": drawn})})


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
