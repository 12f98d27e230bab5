"""The command ``forces``: the forces on the atoms of one selection by another."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np

from vmdpotential.commands.between import (
    BetweenOption,
    PairOptions,
    error_line,
    label,
    selections,
    stopped,
    warn_of_mixture,
)
from vmdpotential.commands.options import CrystalSource, Force, TrajectoryOptions
from vmdpotential.errors import UsageError
from vmdpotential.execution.blocks import clear
from vmdpotential.execution.work import Arrays
from vmdpotential.frames.cells import CellFrames
from vmdpotential.frames.options import PartialExecution
from vmdpotential.frames.pairs import PairEnergies, over_frames
from vmdpotential.io.files import output as files
from vmdpotential.io.files.cellfile import boundary_text
from vmdpotential.molecule.cell import Cell
from vmdpotential.parameters import Command, Option, Report


def forces(
    source: CrystalSource,
    between: BetweenOption,
    trajectory: TrajectoryOptions = TrajectoryOptions(),
    options: PairOptions = PairOptions(),
    execution: PartialExecution = PartialExecution(),
    output: Annotated[Path | None, Option(
        "file of the forces: .csv, a row for each atom and frame, or .npz, arrays (frames, atoms, 3)", short="o",
        viewer=False, written=True)] = None,
    force: Force = False,
) -> Report:
    """Compute the forces on the atoms of one selection by another, in kcal/mol/A.

    Those of Coulomb and Lennard-Jones energies as the command energy has them, bonded terms left out.

    Raises
    ------
    UsageError
        For options that do not fit together.
    InputError
        For atoms without charges or Lennard-Jones parameters, or a trajectory of other atoms.
    StoppedError
        When the run was stopped, and `partial` asks for what is done.
    """
    if output is not None and output.suffix.lower() not in (".csv", ".npz") and not files.is_standard(output):
        raise UsageError("output", f"{output}: forces cannot be written in this format", "name it .csv or .npz")
    if output is not None:
        files.check([output], force)
    if len(between) != 2:
        raise UsageError("between", f"takes two selections here, and there are {len(between)}",
                         "such as {between protein} water")
    structure, report, frames = source.over(trajectory, between, "between")
    (a, b, first, second), = selections(structure, between)
    terms = options.terms(structure)
    warn_of_mixture(structure, report, terms)
    pair = options.between(structure, terms, first, second, forces=True)
    blocks: list[Arrays] = []
    kept = execution.beside(output)
    work = PairEnergies(CellFrames.of(structure, frames, options.boundary, source.cell), (pair,), structure, "forces")
    whole = over_frames(work, blocks.append, execution.partial, **replace(execution, folder=kept).blocks)
    last = Cell(blocks[-1]["cell"]) if "cell" in blocks[-1] else None
    numbers = np.concatenate([found["frames"] for found in blocks])
    values = np.concatenate([found["rows 0"] for found in blocks])
    mean = values.mean(0)
    sum_of_all = mean.sum(0)
    names = [label(structure, int(n), False) for n in pair.atoms]
    if output is not None:
        with files.writing([output], force) as (place,):
            if output.suffix.lower() == ".npz":
                with place.open("wb") as binary:
                    np.savez(binary, forces=values, frames=numbers, atoms=pair.atoms)
            else:
                with place.open("w", newline="", encoding="utf-8") as stream:
                    writer = csv.writer(stream, lineterminator="\n")
                    writer.writerow(("frame", "index", "atom", "fx", "fy", "fz"))
                    writer.writerows(
                        (number, int(n), name, *(f"{x:.8g}" for x in row))
                        for number, rows in zip(numbers.tolist(), values, strict=True)
                        for n, name, row in zip(pair.atoms, names, rows, strict=True))
    if whole:
        clear(kept)
    sizes = np.linalg.norm(mean, axis=1)
    most = int(sizes.argmax())
    lines = [
        str(report),
        f"{terms.source} parameters, {options.electrostatics}, {boundary_text(last)}, cutoff {options.cutoff:g} A, "
        f"dielectric {options.dielectric:g}",
        error_line(pair, pair.error_forces, "forces on atoms"),
        f"on {len(names)} atoms of {a} by {b}, {len(numbers)} frame{'s' * (len(numbers) != 1)}: "
        f"sum ({', '.join(f'{x:.4f}' for x in sum_of_all)}) kcal/mol/A; the largest on {names[most]}, "
        f"{sizes[most]:.4f}",
        *([] if output is None else [f"wrote {output}"]),
    ]
    data = {
        **report.data, "a": a, "b": b, "unit": "kcal/mol/A", "frames": len(numbers), "atoms": pair.atoms.tolist(),
        "forces": mean.tolist(), "sum": sum_of_all.tolist(),
        "electrostatics": options.electrostatics, "cutoff": options.cutoff,
        "tolerance": options.tolerance, "error": pair.error_forces, "dielectric": options.dielectric,
        "boundary": "open" if last is None else "periodic", "parameters": terms.source,
        "engine": pair.engine.name, "file": None if output is None else str(output),
    }
    made = Report(lines, data, {"structure": structure})
    if not whole:
        raise stopped(work, len(numbers), made)
    return made


command = Command.of(forces)
