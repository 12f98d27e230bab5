"""The command ``density``: densities of atoms over the frames of a trajectory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from vmdpotential import progress
from vmdpotential.commands.average import FitOptions
from vmdpotential.commands.gridded import GridResult, cell_lines, lattice_like
from vmdpotential.commands.means import MeanFiles
from vmdpotential.commands.options import (
    Force,
    Format,
    FramesFile,
    FramesOption,
    LengthUnit,
    LikeGrid,
    Source,
    TrajectoryOptions,
)
from vmdpotential.errors import UsageError, count_of
from vmdpotential.figures.colours import isosurface_levels
from vmdpotential.frames.options import Execution
from vmdpotential.grid.lattice import Grid
from vmdpotential.io.files.cellfile import boundary_text
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.selection import select
from vmdpotential.parameters import Command, Option, ReportRows, check_output, warn_unused
from vmdpotential.plugins.densities.over_frames import DensityOptions, DensityPlan, MeanDensity, plan_density
from vmdpotential.plugins.densities.quantities import QUANTITY_UNITS, counted_atoms
from vmdpotential.plugins.densities.sites import DensitySite, find_sites
from vmdpotential.results import TableColumns


@dataclass(frozen=True, kw_only=True)
class DensityFit(FitOptions):
    """How frames are fitted onto the structure."""

    motion: Annotated[str, Option(
        "motion that fits the frames: translation (the same as auto), or rotation, which also rotates the frames, with "
        "each molecule at its image nearest to the fitted atoms", choices=("auto", "translation", "rotation"),
        heading="trajectory")] = "auto"


@dataclass(frozen=True, kw_only=True)
class SiteOptions:
    """Options of the table of the maxima of a density."""

    sites: Annotated[Path | None, Option(
        "CSV table of the maxima of the density (hydration sites, for water), with the number of atoms around each",
        viewer=False,
        written=True, metavar="FILE.csv", heading="output")] = None
    site_radius: Annotated[float, Option(
        "radius within which atoms belong to a site, and least distance between two sites", unit="A", above=0,
        high=20, heading="output")] = 1.4
    site_density: Annotated[float | None, Option(
        "least density of a site, in the unit of the map; twice the mean of the map unless given", low=0,
        heading="output")] = None


@dataclass(frozen=True, kw_only=True)
class DensityOutput:
    """Files of maps over frames."""

    stat: Annotated[str, Option(
        "statistics to write: mean, std (standard deviation over the frames) and sem (standard error of the mean); the "
        "mean is always written, std and sem to files named OUTPUT_std and OUTPUT_sem",
        metavar="mean,std,sem", heading="trajectory")] = "mean"
    output: Annotated[Path | None, Option(
        "map file of the mean: .dx, .mrc, .cube, .npz ...", short="o", viewer=False, written=True,
        suffix=".npz")] = None
    format: Format = ""
    force: Force = False


def density(
    source: Source,
    trajectory: FramesFile,
    options: DensityOptions = DensityOptions(),
    like: LikeGrid = None,
    frames: FramesOption = None,
    length_unit: LengthUnit = None,
    fit: DensityFit = DensityFit(),
    table: SiteOptions = SiteOptions(),
    output: DensityOutput = DensityOutput(),
    execution: Execution = Execution(),
) -> DensityMap:
    """Compute the density of atoms over the frames of a trajectory.

    Every atom counts at its nearest grid point, or is spread as a Gaussian. In a periodic cell, whose shape and size
    may differ between frames, atoms keep their fractional coordinates, and the map is written in the mean cell. The
    standard error is estimated from blocks of frames.

    Raises
    ------
    InputError
        For a trajectory of other atoms, or atoms without a value of the counted quantity.
    MemoryPlanError
        When the map does not fit into memory.
    """
    of, smear, sites = options.of, options.smear, table.sites
    check_output(output.output, source.structure, "mean", "density.dx")
    if smear and of == "occupancy":
        raise UsageError("smear", "an occupancy is computed from the atoms' radii, without Gaussians",
                         "leave it out", value=f"{smear:g}")
    if sites is not None and of not in ("number", "occupancy"):
        raise UsageError("sites", "sites are only determined from numbers of atoms or an occupancy", "use {of number}",
                         value=str(sites))
    if sites is None:
        warn_unused(("site_radius", "site_density"), "no {sites} are written")
    if options.unit != "relative":
        warn_unused(("bulk",), "only the unit relative uses it")
    files = MeanFiles.of(output.output, output.stat, output.format, output.force, sites)
    over, head, about = TrajectoryOptions(trajectory=trajectory, frames=frames, length_unit=length_unit), [], {}
    structure, all_frames = source.with_frames(over, single=True)
    if of == "charge" or (of == "electrons" and structure.charges is not None):
        structure, charge_report, all_frames = source.with_frames_of(over, [options.atoms], single=True)
        head, about = [str(charge_report)], charge_report.data
    counted = counted_atoms(structure, select(structure, options.atoms), of, options.unit)
    alignment = fit.alignment(structure)
    lattice = lattice_like(like)
    assert all_frames is not None
    with progress.clock() as clock:
        planning = plan_density(structure, all_frames, counted, options, alignment=alignment,
                                fixed_cell=source.cell is not None, lattice=lattice,
                                statistics=(*files.statistics, "sem") if sites is not None else files.statistics)
        execution = execution.with_block_folder(output.output)
        averaged = planning.merge(planning.run(execution), execution.partial)
    maxima = None if sites is None else _sites(planning, averaged, table.site_radius, table.site_density)
    written = files.write(averaged.grids, averaged.no_error,
                          None if maxima is None else _table(maxima, averaged.grids["mean"].unit))
    numbers = planning.numbers[: averaged.frames]
    others = {name: grid for name, grid in averaged.grids.items() if name in files.statistics}
    result = DensityMap(
        head=head, charges=about, grid=averaged.grids["mean"], structure=structure, density=averaged, planning=planning,
        std=others.get("std"), sem=others.get("sem"), first_frame=numbers[0], last_frame=numbers[-1],
        frame_step=numbers.step, maxima=maxima, radius=table.site_radius,
        cell=None if averaged.cell is None else Cell(averaged.cell), seconds=clock.seconds, files=written)
    return execution.complete(result, averaged.frames, len(planning.numbers))


class DensityMap(GridResult):
    """Mean density over frames."""

    std: Grid | None
    sem: Grid | None
    density: MeanDensity
    planning: DensityPlan
    first_frame: int
    last_frame: int
    frame_step: int
    cell: Cell | None
    charges: Mapping[str, Any]
    head: Sequence[str]
    maxima: Sequence[DensitySite] | None
    radius: float

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            "boundary": self.grid.provenance.boundary, "bulk": self.density.bulk, "total": self.density.total,
            "frames": self.density.frames, "cell_deviation": self.density.cell_deviation,
            "standard_error": self.density.error, "quantity": self.planning.work.counted.quantity,
            "smear": self.planning.work.width, "engine": self.planning.work.engine, "first_frame": self.first_frame,
            "last_frame": self.last_frame, "frame_step": self.frame_step,
            "cell": None if self.cell is None else self.cell.parameters, **self.charges,
            "atoms": len(self.planning.work.counted.rows), "blocks": len(self.density.blocks),
            "block_frames": self.density.blocks[0], "alignment": str(self.planning.work.alignment or "none"),
            "levels": list(isosurface_levels(self.grid)),
            "sites": None if self.maxima is None else [_row(site) for site in self.maxima]}

    def shown(self) -> dict[str, Any]:
        """Return the objects for viewers and notebooks, by name; None for those that there are not."""
        return super().shown() | {"std": self.std, "sem": self.sem}

    def text(self) -> Iterator[str | ReportRows]:
        """Yield the counted quantity, the errors and the sites."""
        yield from self.head
        yield from _lines(self.planning, self.density, self)
        if self.maxima is not None:
            yield from _site_lines(self.maxima, self.radius)


def _sites(planning: DensityPlan, density: MeanDensity, radius: float, least: float | None) -> list[DensitySite]:
    grid, work = density.grids["mean"], planning.work
    values = grid.values.astype(np.float64)
    sem = density.grids.get("sem")
    # factor from a sum of values to a number of atoms, or for occupancies to a number of occupied grid points
    volume = density.total / values.sum(dtype=np.float64) if values.any() else 0.0
    cell = None if density.cell is None else Cell(density.cell)
    return find_sites(
        values, None if sem is None else sem.values.astype(np.float64), grid.lattice, volume=volume, radius=radius,
        threshold=2 * float(values.mean()) if least is None else least,
        cell=cell if work.cell is not None else None, wraps=grid.lattice.wraps(cell))


def _row(site: DensitySite) -> dict[str, Any]:
    return {"position": site.position.tolist(), "peak": site.peak, "atoms": site.occupancy, "error": site.error}


def _table(sites: Sequence[DensitySite], unit: str) -> TableColumns:
    """Return the columns of the table of sites."""
    return {"site": range(1, len(sites) + 1), **{f"{x} (A)": [site.position[n] for site in sites]
                                                 for n, x in enumerate("xyz")},
            f"peak ({unit})": [site.peak for site in sites], "atoms": [site.occupancy for site in sites],
            "standard error": [site.error for site in sites]}


def _site_lines(table: Sequence[DensitySite], radius: float) -> Iterator[str | ReportRows]:
    def line(n: int) -> str:
        site = table[n]
        return (f"  {n + 1}: {' '.join(f'{x:.2f}' for x in site.position)} A, {site.occupancy:.2f}"
                + ("" if site.error is None else f" +- {site.error:.2f}") + f" atoms, peak {site.peak:.4g}")

    yield f"{len(table)} sites, atoms within {radius:g} A"
    yield ReportRows(line, range(len(table)))


def _lines(planning: DensityPlan, density: MeanDensity, result: DensityMap) -> list[str]:
    """Return the lines of the report."""
    grid, work, seconds = result.grid, planning.work, result.seconds
    counted, provenance = work.counted, grid.provenance
    lines = [
        ", ".join(filter(None, (
            f"{provenance.quantity} of {planning.name}: {count_of(len(counted.rows), 'atom')}", counted.source))),
        "frames are not moved" if work.alignment is None else str(work.alignment),
        f"{provenance.method}, {boundary_text(result.cell)}",
        result.points,
        f"mean density {result.minimum:.4g} to {result.maximum:.4g} {grid.unit}" + (
            "" if counted.unit != "relative" else f" ({density.bulk:.4g} {QUANTITY_UNITS[counted.quantity][0]} is 1)"),
    ]
    if counted.radii is None:
        unit = {"number": "atoms", "mass": "u", "charge": "e", "electrons": "electrons"}[counted.quantity]
        images = "" if work.cell is None else " (with periodic images)"
        lines.append(f"on average {density.total:.6g} of {counted.weights.sum():.6g} {unit} are on the grid{images}")
    lines += cell_lines(density.cell_deviation)
    lines.append(density.no_error or
                 f"standard error of the mean {density.error:.3g} {grid.unit} rms, by "
                 f"{count_of(len(density.blocks), 'block')} of {count_of(density.blocks[0], 'frame')}")
    number, _, range_text = provenance.frames.partition(": ")
    lines.append(f"{count_of(number, 'frame')} ({range_text}) in {seconds:.2f} s, "
                 f"{1000 * seconds / density.frames:.3g} ms a frame, on the {work.engine} engine")
    return lines


command = Command.of(density, draws="isosurfaces", examples=(
    "density system.prmtop trajectory.xtc --atoms 'name O and water' -o water.dx",
    "density system.prmtop trajectory.xtc --of electrons --spacing 0.5 --stat mean,sem -o electrons.npz",
), python="""\
>>> import MDAnalysis
>>> from MDAnalysisTests.datafiles import PRM_NCBOX, TRJ_NCBOX  # a prmtop, and frames in NetCDF
>>> universe = MDAnalysis.Universe(PRM_NCBOX, TRJ_NCBOX)
>>> density = vp.density(universe, universe.trajectory[:3], atoms="water", spacing=2.0)
>>> density.grid.unit
'1/A^3'""")
