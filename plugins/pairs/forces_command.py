"""The command ``forces``: forces that one selection exerts on the atoms of another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.commands.options import Force, Source, TrajectoryOptions
from vmdpotential.errors import UsageError, count_of
from vmdpotential.frames.cells import CellFrames
from vmdpotential.frames.options import Execution
from vmdpotential.io.files import output as files
from vmdpotential.molecule.structure import atom_label
from vmdpotential.parameters import Command, Option, ReportRows
from vmdpotential.results import TableColumns, put_table

from .between import (
    BetweenOption,
    PairOptions,
    PairResult,
    error_line,
    selection_pairs,
    warn_of_mixture,
)
from .energy import InteractionEnergyPlan
from .over_frames import PairEnergies, last_cell, over_frames


def forces(
    source: Source,
    between: BetweenOption,
    trajectory: TrajectoryOptions = TrajectoryOptions(),
    options: PairOptions = PairOptions(),
    execution: Execution = Execution(),
    output: Annotated[Path | None, Option(
        "file of the forces: .csv with a row for each atom and frame, or .npz with an array (frames, atoms, 3)",
        short="o",
        viewer=False, written=True, suffix=".csv")] = None,
    force: Force = False,
) -> Forces:
    """Compute the forces on the atoms of one selection by another, in kcal/mol/A.

    They are Coulomb and Lennard-Jones forces, computed as by the command energy, without bonded terms.

    Raises
    ------
    InputError
        For atoms without charges or Lennard-Jones parameters, or a trajectory of other atoms.
    """
    if output is not None and output.suffix.lower() not in (".csv", ".npz") and not files.is_standard(output):
        raise UsageError("output", f"{output}: forces cannot be written in this format", "name it .csv or .npz")
    if output is not None:
        files.check([output], force)
    if len(between) != 2:
        raise UsageError("between", f"exactly two selections are needed, and there are {len(between)}",
                         "such as {between protein} water")
    structure, report, frames = source.with_frames_of(trajectory, between, "between")
    (a, b, first, second), = selection_pairs(structure, between)
    terms = options.terms(structure)
    warn_of_mixture(structure, report, terms)
    pair = options.between(structure, terms, first, second, forces=True)
    execution = execution.with_block_folder(output)
    work = PairEnergies(CellFrames.of(structure, frames, options.boundary, source.cell), (pair,), structure, "forces")
    merged = over_frames(work, execution)
    numbers, values = merged["numbers"].values, merged["rows 0"].values
    mean = values.mean(0)
    result = Forces(
        charges=report, a=a, b=b, unit="kcal/mol/A", frames=len(numbers), forces=mean, sum=mean.sum(0), options=options,
        pair=pair, sums=[pair], cell=last_cell(merged), parameters=terms.source, numbers=numbers, values=values,
        names=[atom_label(structure, int(n), False) for n in pair.atoms], structure=structure, file=output,
        files=[] if output is None else [output])
    if output is not None:
        with files.writing_files([output], force) as (place,):
            if output.suffix.lower() == ".npz":
                with place.open("wb") as binary:
                    np.savez(binary, forces=values, frames=numbers, atoms=pair.atoms)
            else:
                put_table(result.table(), place)
    return execution.complete(result, len(numbers), len(work.frames.numbers()))


class Forces(PairResult):
    """Forces on the atoms of one selection by another, kcal/mol/A; `forces` is the mean over frames."""

    a: str
    b: str
    frames: int
    forces: Floats
    sum: Floats
    pair: InteractionEnergyPlan
    file: Path | None
    numbers: NDArray[np.int64]
    values: Floats
    names: Sequence[str]

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            "a": self.a, "b": self.b, "frames": self.frames, "forces": self.forces, "sum": self.sum,
            "atoms": self.pair.atoms, "error": self.pair.error_forces, "file": self.file}

    def text(self) -> Iterator[str | ReportRows]:
        """Yield the parameters, the error, the sum and the largest force."""
        yield from super().text()
        sizes = np.linalg.norm(self.forces, axis=1)
        most = int(sizes.argmax())
        yield error_line(self.pair, self.pair.error_forces, "forces on atoms")
        yield (f"on {count_of(len(self.names), 'atom')} of {self.a} by {self.b}, {count_of(self.frames, 'frame')}: "
               f"sum ({', '.join(f'{x:.4f}' for x in self.sum)}) kcal/mol/A; the largest on {self.names[most]}, "
               f"{sizes[most]:.4f}")

    def table(self) -> TableColumns:
        """Return a row for each atom and frame."""
        frames, atoms, _ = self.values.shape
        return {"frame": np.repeat(self.numbers, atoms), "index": np.tile(self.pair.atoms, frames),
                "atom": [*self.names] * frames,
                **{f"f{axis}": self.values[..., k].ravel() for k, axis in enumerate("xyz")}}


command = Command.of(forces, examples=(
    "forces system.prmtop trajectory.xtc --between protein water -o forces.csv",
    "forces system.prmtop trajectory.xtc --between protein water --frames 0:2 --electrostatics ewald -o forces.npz",
), python="""\
>>> from MDAnalysisTests.datafiles import PRM_NCBOX, TRJ_NCBOX  # a prmtop, and frames in NetCDF
>>> forces = vp.forces(PRM_NCBOX, TRJ_NCBOX, frames="0", between=("protein", "water")).to_dataframe()
>>> forces.shape[0] > 0
True""")
