"""The command ``profile``: charge density, field and potential along an axis of a periodic cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from vmdpotential import progress
from vmdpotential.arrays import Floats
from vmdpotential.commands.options import Source, TableOutput, TrajectoryOptions
from vmdpotential.errors import UsageError, count_of
from vmdpotential.frames.options import Execution
from vmdpotential.molecule.selection import select
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option, warn_unused
from vmdpotential.results import Axes, Figure, Result, TableColumns

from . import figures
from .contributions import contribution_masks
from .profile import QUANTITIES, Profile, ProfileOptions
from .profile import profile as of_frames

_NAMES = [name.replace(" ", "_") for name in QUANTITIES]

#: Words for the zero of the potential, which can also be a selection.
_ZEROS = ("mean", "left")


@dataclass(frozen=True, kw_only=True)
class ProfileSource(Source):
    """A structure with charges, or a map."""

    structure: Annotated[Path | Structure, Option(
        "structure file, a topology if a trajectory provides the coordinates, or a periodic map of the potential",
        positional=True)]


def profile(
    source: ProfileSource,
    trajectory: TrajectoryOptions = TrajectoryOptions(),
    axis: Annotated[str, Option("axis of the profile", choices=("x", "y", "z"), front=True)] = "z",
    from_: Annotated[tuple[str, ...], Option(
        "selections whose contributions are reported separately, such as lipid, water and ions", metavar="SEL",
        front=True, selection=True)] = (),
    center: Annotated[str | None, Option(
        "selection whose centre is moved to 0 in every frame, so that its drift does not blur the mean",
        metavar="SEL", selection=True, heading="sites")] = None,
    zero: Annotated[str, Option(
        "where the potential is 0: the mean over the cell (mean), the left edge (left), or the mean over a selection "
        "such as water, weighted by its density", metavar="mean|left|SEL", selection=True, words=_ZEROS,
        heading="sites")] = "mean",
    integral: Annotated[bool, Option(
        "also compute the potential by double integration of the charge density from the left edge, as gmx potential "
        "does", heading="figure")] = False,
    options: ProfileOptions = ProfileOptions(),
    execution: Execution = Execution(),
    output: TableOutput = TableOutput(),
) -> AxisProfile:
    """Compute charge density (e/A^3), electric field (V/A) and potential along an axis of a periodic cell.

    Values are means over planes perpendicular to the axis and over the frames of a trajectory, with standard errors
    from blocks of frames. Poisson's equation is solved in the periodic cell with conducting (tinfoil) surroundings, so
    that the result does not depend on where the cell begins. With these surroundings, a slab with a dipole moment has
    an artificial field in the vacuum next to it.

    Raises
    ------
    UsageError
        For options that do not fit together, or an axis along which the cell has no period.
    InputError
        For atoms without charges, frames without a cell, or a trajectory of other atoms.
    """
    from vmdpotential.io.maps import is_map

    output.check()
    execution = execution.with_block_folder(output.output)
    with progress.clock() as clock:
        if isinstance(source.structure, Path) and is_map(source.structure):
            given = {"trajectory": trajectory.trajectory, "from": from_, "center": center, "topology": source.topology,
                     "cell": source.cell, "charges": source.charges, "index": source.index,
                     "frames": trajectory.frames, "slab_correction": options.slab_correction}
            warn_unused(("spacing", "smear", "temperature"), "a map has its own")
            profile_, head, data = _of_map(source.structure, axis, zero, options.unit, given)
            objects: dict[str, Any] = {}
            total = profile_.frames
        else:
            atoms, report, frames = source.with_frames_of(trajectory)
            profile_ = of_frames(atoms, frames, replace(
                options, axis="xyz".index(axis), center=None if center is None else select(atoms, center, "center"),
                zero=zero if zero in _ZEROS else select(atoms, zero, "zero"),
                sources=contribution_masks(atoms, from_), cell=source.cell),
                execution)
            data = {**report.data, "temperature": options.temperature, "spacing": options.spacing,
                    "smear": options.smear, "center": center}
            head, objects = [str(report)], {"structure": atoms}
            total = 1 if frames is None else len(frames.numbers())

    def per_quantity(values: Floats | None) -> dict[str, Any] | None:
        return None if values is None else {
            name: [None if np.isnan(curve[0]) else curve for curve in values[:, n]] for n, name in enumerate(_NAMES)}

    result = AxisProfile(
        source=data, head=head, profile=profile_, axis=axis, zero=zero, seconds=clock.seconds,
        structure=objects.get("structure"),
        curves={axis: profile_.z, **{name: profile_.values[:, n] for n, name in enumerate(_NAMES)},
                "errors": per_quantity(profile_.errors), "intervals": per_quantity(profile_.intervals)},
        integral=profile_.integral if integral else None, files=output.paths, draws=output.draws)
    output.write(result, f"profile along {axis}")
    return execution.complete(result, profile_.frames, total)


class AxisProfile(Result):
    """Charge density, electric field and potential along an axis."""

    source: Mapping[str, Any]
    profile: Profile
    axis: str
    zero: str
    curves: Mapping[str, Any]
    integral: Floats | None
    seconds: float
    head: Sequence[str]
    structure: Structure | None

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            **self.source, "names": self.profile.names, "unit": self.profile.unit, "medium": self.profile.medium,
            "units": self.profile.units, "shift": self.profile.shift, "period": self.profile.period,
            "frames": self.profile.frames, "blocks": self.profile.blocks, "artificial_field": self.profile.artificial,
            "slab_correction": self.profile.corrected, "period_std": self.profile.deviation,
            "net_charge": self.profile.charge, "axis": self.axis, "zero": self.zero, **self.curves,
            "integral": self.integral, "seconds": self.seconds}

    def shown(self) -> dict[str, Any]:
        """Return the objects for viewers and notebooks, by name; None for those that there are not."""
        return super().shown() | {"structure": self.structure}

    def text(self) -> Iterator[str]:
        """Yield the extremes of the potential, the period and the surroundings."""
        profile, axis, unit = self.profile, self.axis, self.profile.unit
        where = {"mean": "the mean over the cell", "left": "the left edge"}.get(self.zero, f"the mean over {self.zero}")
        phi = profile.values[0, 2]
        error = None if profile.errors is None or np.isnan(profile.errors[0, 2, 0]) else profile.errors[0, 2]
        low, high = (f"{phi[n]:.4f}{'' if error is None else f' +- {error[n]:.4f}'} at {axis} = {profile.z[n]:.2f} A"
                     for n in (phi.argmin(), phi.argmax()))
        yield from self.head
        yield (f"potential from {low} to {high}, in {', '.join(filter(None, (unit, profile.medium)))}; 0 is {where}"
               + ("" if self.zero == "mean" else f", which is {profile.shift:.4f} {unit} over the mean of the cell"))
        yield (f"{len(profile.z)} nodes, {profile.period / len(profile.z):.4g} A apart, over a period of "
               f"{profile.period:.4f} A"
               + (f" (+- {profile.deviation:.4f} A over frames)" if profile.deviation > 1e-6 else ""))
        if profile.corrected:
            yield (f"slab correction: without it there is a field of {profile.artificial:.4g} V/A in the vacuum; the "
                   f"potential has a step of {abs(profile.artificial) * profile.period:.4g} V there")
        else:
            yield "conducting (tinfoil) surroundings: the mean field over the cell is 0" + (
                f", which makes an artificial field of {profile.artificial:.4g} V/A in the vacuum; the slab correction "
                "removes it" if profile.artificial else "")
        if abs(profile.charge) > 1e-3:
            yield f"net charge {profile.charge:.4f} e: a uniform neutralising background is included"
        if profile.frames > 1:
            yield profile.no_error if error is None or profile.intervals is None else (
                "+- is the standard error of the mean; the mean is known to +- "
                f"{float(profile.intervals[0, 2].max()):.4f} {unit} or better with a confidence of 95 %")
        if self.integral is not None:
            yield f"the double integral from the left edge ends at {self.integral[-1]:.4f} {unit}" + (
                "" if profile.corrected else ", where the periodic potential returns to its value at the left edge")
        blocks = f" in {count_of(profile.blocks, 'block')}" if profile.frames > 1 else ""
        yield f"{count_of(profile.frames, 'frame')}{blocks} in {self.seconds:.2f} s"

    def table(self) -> TableColumns:
        """Return the curves, with their standard errors."""
        result = self.profile
        columns = {f"{self.axis} (A)": result.z}
        for n, name in enumerate(result.names):
            for k, (quantity, unit) in enumerate(zip(QUANTITIES, result.units, strict=True)):
                of = "" if n == 0 else f" of {name}"
                columns[f"{quantity}{of} ({unit})"] = result.values[n, k]
                if result.errors is not None and np.isfinite(result.errors[n, k, 0]):
                    columns[f"{quantity}{of} error ({unit})"] = result.errors[n, k]
        if self.integral is not None:
            columns[f"potential by double integral ({result.unit})"] = self.integral[:-1]
        return columns

    def _drawn(self) -> tuple[Any, ...]:
        result = self.profile
        labels = [f"{name[0].upper()}{name[1:]} ({u})".replace("A^3", "Å³").replace("/A", "/Å")
                  for name, u in zip(QUANTITIES, result.units, strict=True)]
        return result.z, result.names, result.values, result.intervals, labels, self.axis, self.integral

    def plot(self, ax: Axes) -> Axes:
        """Draw the potential."""
        return figures.draw_profile(len(QUANTITIES) - 1, ax, *self._drawn())

    def draw(self) -> Figure:
        """Return the curves, one quantity below the other."""
        return figures.profiles(*self._drawn())


def _of_map(path: Path, axis: str, zero: str, unit: str, given: dict[str, Any]) -> tuple[
        Profile, list[str], dict[str, Any]]:
    from vmdpotential.io.maps import read_map

    from .profile import profile_of_map

    for name, value in given.items():
        if value:
            raise UsageError(name, "this option is for a structure, not for a map")
    if zero not in _ZEROS:
        raise UsageError("zero", "a map has no atoms to select", "use {zero mean}", value=zero)
    result = profile_of_map(read_map(path), "xyz".index(axis), zero=zero, unit=unit, name=str(path))
    return result, [f"mean over the planes of {path}"], {"map": str(path)}


command = Command.of(profile, examples=(
    "profile system.prmtop trajectory.xtc -o profile.csv --figure profile.png",
    "profile system.prmtop trajectory.xtc --axis z --from water solute --center solute -o parts.csv",
), python="""\
>>> from matplotlib.figure import Figure
>>> structure = vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz")
>>> across = vp.profile(structure, axis="z", smear=1.0)
>>> across.plot(Figure().add_subplot()).get_xlabel()
'z (Å)'""")
