"""The command ``live``: a map that is updated whenever a viewer shows another frame."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.commands.options import Source
from vmdpotential.commands.structures import read_source
from vmdpotential.errors import InputError, UsageError, count_of
from vmdpotential.figures.colours import colour_range
from vmdpotential.grid.lattice import Grid
from vmdpotential.io.files import output as files
from vmdpotential.io.files.cellfile import boundary_text
from vmdpotential.io.structures.pdb import cell_of
from vmdpotential.maps import LEAST_TOLERANCE, MapOptions
from vmdpotential.maps.interaction import in_medium
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.charges import ChargeReport
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option
from vmdpotential.preparation.follow import Follower
from vmdpotential.results import Result

from .live_map import LiveMap


@dataclass(frozen=True, kw_only=True)
class LiveOptions(MapOptions):
    """Options of a live map, which is fast enough for animation, and accurate enough to see."""

    spacing: Annotated[float, Option(
        "largest distance between grid points; in a periodic cell it is reduced until it divides the cell's lengths",
        unit="A", low=0.01, high=100, heading="main options")] = 1.0
    tolerance: Annotated[float | None, Option(
        "largest rms error of the first map relative to the rms potential, at all test points and at those far from "
        "charges; exact methods and the method pb ignore it", low=LEAST_TOLERANCE, high=0.1,
        heading="method and accuracy")] = 1e-3


def live(
    source: Source,
    options: LiveOptions = LiveOptions(),
    output: Annotated[Path | None, Option(
        "map file that a viewer reads, rewritten for every frame: .mrc, .dx (with binary values) ...", short="o",
        viewer=False, shell=True, written=True)] = None,
) -> LiveRun:
    """Keep a map up to date in a viewer while frames are played, atoms are moved and selections changed.

    The first map is checked against the tolerance, and the others are computed in the same way. A coarse spacing makes
    it fast. Inside a viewer a map is computed for the newest frame, and frames that arrive meanwhile are dropped.

    In a shell, the command serves a viewer. It reads frames from standard input: a line "frame NUMBER [A B C ALPHA BETA
    GAMMA]", followed by x, y and z of all atoms in their order (float32 in the machine's byte order, A). For each frame
    it writes the map to the output and prints "map NUMBER LEVEL LIMIT MOVED": a level for isosurfaces, the limit of the
    colours, and the number of atoms that are elsewhere in the map, because a periodic cell splits their molecules. It
    prints such a line first for the structure's own positions. No frame is dropped, so a viewer should wait for this
    line before it sends the next frame. At the end of its input the program removes the output.

    Raises
    ------
    InputError
        For a structure without charges, atoms or cell, or a frame of other atoms.
    """
    from vmdpotential.io.maps import check_map_format, put_map
    from vmdpotential.io.maps.dx import write_dx

    if output is None and isinstance(source.structure, Path):
        raise UsageError("output", "a file is needed for the maps", "such as {output live.mrc}")
    if output is not None:
        check_map_format(output)
        files.check([output], False)
    shown = read_source(source.structure, source.topology, source.cell, source.index)
    copies, changes = source.copied(shown)
    settled = in_medium(options, copies)
    structure, charge_report = source.with_charges(copies, [settled.chosen])
    if charge_report.prepared:
        changes = (*changes, Follower(copies, structure))
    start = time.perf_counter()
    live_map = LiveMap(structure, settled, fixed_cell=source.cell is not None, changes=changes, atoms=len(shown))
    result = LiveRun(charges=charge_report, first=live_map.first, live=live_map, structure=structure,
                     seconds=time.perf_counter() - start)
    if output is None:
        return result

    def answer(number: str, grid: Grid) -> None:
        place = output.with_name(f".part-{output.name}")
        if output.suffix.lower() == ".dx":  # of text, VMD would read large maps slowly
            write_dx(place, grid, binary=True)
        else:
            put_map(grid, place)
        os.replace(place, output)
        colours = max(map(abs, colour_range([grid], [grid.values])))
        print(f"map {number} {grid.display_limit():.9g} {colours:.9g} {live_map.moved}", flush=True)

    count = 0
    try:
        answer("first", live_map.first)
        for number, positions, frame_cell in _frames(sys.stdin.buffer, live_map.atoms):
            answer(number, live_map.update(positions, frame_cell))
            count += 1
    finally:
        output.unlink(missing_ok=True)
    return replace(result, answered=count)


class LiveRun(Result):
    """A live map, and in a shell the number of frames that were answered."""

    charges: ChargeReport
    first: Grid
    live: LiveMap
    structure: Structure
    seconds: float
    answered: int | None = None

    @cached_property
    def frames(self) -> int:
        """Number of frames that have a map; 1 in a viewer."""
        return 1 if self.answered is None else self.answered

    @cached_property
    def objects(self) -> Mapping[str, Any]:
        """The map and its structure inside a viewer; nothing in a shell."""
        return {} if self.answered is not None else {
            "grid": self.first, "structure": self.structure, "live": self.live}

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            **self.charges.data, "unit": self.first.unit, "dielectric": self.first.dielectric,
            "medium": self.first.provenance.medium, "frames": self.frames}

    def text(self) -> Iterator[str]:
        """Yield the method, the boundary, the points and the time of planning."""
        provenance = self.first.provenance
        yield str(self.charges)
        cell = self.structure.cell if provenance.boundary == "periodic" else None
        points = " x ".join(map(str, self.first.lattice.shape))
        yield f"method {provenance.method}, {boundary_text(cell)}, {points} points, {provenance.medium}"
        yield f"planned in {self.seconds:.2f} s on the {provenance.engine} engine"
        if self.answered is not None:
            yield count_of(self.answered, "frame")


def _frames(stream: IO[bytes], atoms: int) -> Iterator[tuple[str, NDArray[np.float64], Cell | None]]:
    """Yield the frames that a viewer sends: number, positions, and the cell, if it sends one."""
    while line := stream.readline(1000):
        words = line.decode("latin-1").split()
        try:
            cell = [float(word) for word in words[2:]]
            if words[:1] != ["frame"] or len(words) not in (2, 8) or not np.isfinite(cell).all():
                raise ValueError
        except ValueError:
            raise InputError(f"standard input: {line[:60].decode('latin-1').strip()!r} is not a valid frame header",
                             "send 'frame NUMBER' or 'frame NUMBER A B C ALPHA BETA GAMMA'") from None
        data = stream.read(12 * atoms)
        if len(data) < 12 * atoms:
            raise InputError(f"standard input: it ends within frame {words[1]}, after {len(data)} of {12 * atoms} "
                             "bytes")
        # without a cell, viewers send lengths of 0 or 1, which cell_of interprets as no cell
        yield (words[1], np.frombuffer(data, np.float32).reshape(-1, 3).astype(np.float64),
               cell_of(cell, f"frame {words[1]}", "") if cell else None)


command = Command.of(live, repeatable=False, unattended=False, draws="live", examples=(
    "live protein.pdb -o live.mrc",
    "live protein.pdb --medium screened --spacing 2 -o live.dx",
))
