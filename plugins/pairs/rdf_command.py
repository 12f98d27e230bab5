"""The command ``rdf``: radial distribution functions between selections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import numpy as np

from vmdpotential import progress
from vmdpotential.arrays import Floats
from vmdpotential.commands.options import CHARGE_FIELDS, PREPARE_FIELDS, Source, TableOutput, TrajectoryOptions
from vmdpotential.errors import InputError, UsageError
from vmdpotential.frames.cells import CellFrames
from vmdpotential.frames.options import Execution
from vmdpotential.maps.options import Engine
from vmdpotential.molecule.overlaps import check_overlaps, warn_of_duplicates
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option, WithoutFields
from vmdpotential.results import Axes, Figure, Result, TableColumns

from . import figures
from .between import BetweenOption, selection_pairs
from .over_frames import PairCounts, over_frames
from .rdf import Distribution, PairHistogram, same_residue


def rdf(
    source: Annotated[Source, WithoutFields(*CHARGE_FIELDS, *PREPARE_FIELDS)],
    between: BetweenOption,
    trajectory: TrajectoryOptions = TrajectoryOptions(),
    range: Annotated[float, Option(
        "largest distance of the distribution function",
        unit="A", above=0, high=1000, front=True, aliases=("max_distance",))] = 15.0,
    bins: Annotated[int, Option(
        "number of distance bins, of equal width", low=1, high=100_000, front=True)] = 150,
    exclude: Annotated[str, Option(
        "pairs of atoms to leave out: none, those within a residue, or those up to three bonds apart (bonded)",
        choices=("none", "residue", "bonded"), heading="sites")] = "none",
    engine: Engine = "auto",
    execution: Execution = Execution(),
    output: TableOutput = TableOutput(),
) -> Distributions:
    """Compute radial distribution functions g(r) and running coordination numbers.

    Several pairs of selections are counted in one pass over the frames. All periodic images are included, but no pairs
    of an atom with itself.

    Raises
    ------
    InputError
        Without a periodic cell, or for a trajectory of other atoms.
    """
    from vmdpotential.engines import get_engine

    output.check()
    structure, over = source.with_frames(trajectory)
    if trajectory.trajectory is None:
        structure.require_whole_cell("use {expand cell}")
        if structure.cell is None:
            raise InputError(f"{structure.where}: a periodic cell is needed for the density of pairs", "give {cell}")
        check_overlaps(structure)
        warn_of_duplicates(structure)
    chosen = selection_pairs(structure, between)
    counts = []
    for _, _, a, b in chosen:
        left_out = None
        if exclude == "residue":
            left_out = same_residue(structure.residue_index, a | b)
        elif exclude == "bonded":
            left_out = _bonded(structure)
        counts.append(PairHistogram(a, b, range, bins, left_out, engine))
    execution = execution.with_block_folder(output.output)
    with progress.clock() as clock:
        frames = CellFrames.of(structure, over, "periodic", source.cell)
        work = PairCounts(frames, tuple(counts))
        merged = over_frames(work, execution)
    curves = [item.distribution(counted, merged["volumes"].values)
              for item, counted in zip(counts, merged["counts"].value, strict=True)]
    result = Distributions(
        between=[(a, b) for a, b, _, _ in chosen], r=curves[0].r, g=[curve.g for curve in curves],
        count=[entry.count for entry in curves], range=range, bins=bins, exclude=exclude, frames=curves[0].frames,
        engine=get_engine(engine).name, seconds=clock.seconds, files=output.paths, draws=output.draws, curves=curves,
        structure=structure)
    output.write(result, ", ".join(result.names))
    return execution.complete(result, result.frames, len(work.frames.numbers()))


class Distributions(Result):
    """Radial distribution functions of pairs of selections, and their running coordination numbers."""

    between: Sequence[tuple[str, str]]
    r: Floats
    g: Sequence[Floats]
    count: Sequence[Floats]
    range: float
    bins: int
    exclude: str
    frames: int
    engine: str
    seconds: float
    curves: Sequence[Distribution]
    structure: Structure

    @property
    def names(self) -> Sequence[str]:
        """Names of the pairs of selections."""
        return [" - ".join(pair) for pair in self.between]

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            "between": self.between, "r": self.r, "g": self.g, "count": self.count, "range": self.range,
            "bins": self.bins, "exclude": self.exclude, "frames": self.frames, "engine": self.engine,
            "seconds": self.seconds}

    def shown(self) -> dict[str, Any]:
        """Return the objects for viewers and notebooks, by name; None for those that there are not."""
        return super().shown() | {"structure": self.structure}

    def text(self) -> Iterator[str]:
        """Yield the highest value of each curve."""
        for name, g, count in zip(self.names, self.g, self.count, strict=True):
            yield (f"{name}: highest g(r) {g.max():.3f} at {self.r[g.argmax()]:.3f} A; {count[-1]:.2f} atoms "
                   f"within {self.range:g} A")
        yield f"{self.frames} frame{'s' * (self.frames != 1)} in {self.seconds:.2f} s on the {self.engine} engine"

    def table(self) -> TableColumns:
        """Return the curves."""
        return {"r": self.r} | {f"{kind} {name}": getattr(self, kind)[n] for n, name in enumerate(self.names)
                                for kind in ("g", "count")}

    def plot(self, ax: Axes) -> Axes:
        """Draw g(r)."""
        return figures.draw_distributions(ax, self.curves, self.names)

    def draw(self) -> Figure:
        """Return g(r), and below it the coordination numbers."""
        return figures.distributions(self.curves, self.names)


def _bonded(structure: Structure) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    from vmdpotential.molecule.nonbonded import pairs_by_bonds

    topology = structure.topology
    if topology is None or not len(topology.bonds):
        raise UsageError("exclude", "bonds are needed", "give a {topology} that has them, or use {exclude residue}",
                         value="bonded")
    return pairs_by_bonds(topology.bonds, len(structure))[0]


command = Command.of(rdf, examples=(
    "rdf system.prmtop trajectory.xtc --between 'name O and water' 'name O and water' --range 8 -o rdf.csv",
    "rdf system.prmtop trajectory.xtc --between protein water --exclude residue --range 8 --figure rdf.png",
), python="""\
>>> import MDAnalysis
>>> from MDAnalysisTests.datafiles import PRM_NCBOX, TRJ_NCBOX  # a prmtop, and frames in NetCDF
>>> universe = MDAnalysis.Universe(PRM_NCBOX, TRJ_NCBOX)
>>> pairs = vp.rdf(universe, universe.trajectory, between=("name O", universe.select_atoms("water")), range=8.0)
>>> pairs.to_dataframe().columns[0]
'r'""")
