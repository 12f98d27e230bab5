"""Maps of the energy of probe atoms around one structure, for the command ``probe``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from vmdpotential import progress
from vmdpotential.commands.gridded import GridResult
from vmdpotential.commands.options import Source
from vmdpotential.engines import get_engine
from vmdpotential.errors import UsageError, count_of
from vmdpotential.figures.colours import isosurface_levels
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.io.files import output as files
from vmdpotential.molecule.nonbonded import Nonbonded
from vmdpotential.molecule.selection import select

from ..pairs.between import ParameterOptions
from .autodock import CUTOFF, autodock_maps, receptor
from .energies import ProbeSum, probe_sum, type_sum
from .options import ProbeRun


def map_atoms(run: ProbeRun, source: Source, force_field: ParameterOptions) -> ProbeMaps:
    """Compute maps of probe atoms around one structure."""
    from vmdpotential.io.maps import check_map_format, put_map

    from ..formats.autodock import check_lattice, write_autodock

    probes, output, force = run.options.probe, run.outputs.output, run.outputs.force
    by_name = dict(_probe(text) for text in probes)
    if len(by_name) < len(probes):
        raise UsageError("probe", "a probe is named twice", value=" ".join(probes))
    paths = [] if output is None else [_of_probe(output, name) for name in by_name]
    autodock = output is not None and output.suffix == ".map"
    for path in paths:
        if not autodock:
            check_map_format(path)
    files.check(paths, force)
    structure, lines, engine = run.structure, [], get_engine(run.engine)
    if None in by_name.values():
        structure, report = source.with_charges(structure, [run.options.atoms])
        lines.append(str(report))
    chosen = select(structure, run.options.atoms)
    inside = select(structure, run.options.around, "around") if run.options.around else chosen
    lattice = run.lattice or _odd(run.lattice_around(structure.positions[inside]))
    with progress.clock() as clock:
        autodock_types = [name for name, spec in by_name.items() if spec is None]
        part = structure.part(chosen)
        grids = autodock_maps(receptor(part), lattice, autodock_types, engine) if autodock_types else {}
        if len(autodock_types) < len(by_name):
            terms = force_field.terms(structure).take(chosen)
            cutoff = run.options.cutoff
            provenance = Provenance(method="probe map", interaction=f"Lennard-Jones to {cutoff:g} A", boundary="open",
                                    cutoff=cutoff, precision="single", engine=engine.name, inputs=structure.sources)
            for name, spec in by_name.items():
                if spec is not None:
                    values = _sum(terms, spec, cutoff).energies(engine, lattice, part.positions, None)
                    grids[name] = Grid(lattice, np.minimum(values, 1e6), "kcal/mol", provenance=replace(
                        provenance, quantity=f"Lennard-Jones energy of {name}"))
            lines.append(f"Lennard-Jones parameters: {terms.source}")
    maps = [grids[name] for name in by_name]
    if autodock:
        check_lattice(maps[0])
    with files.writing_files(paths, force) as temporary:
        for place, grid in zip(temporary, maps, strict=False):
            if autodock and output is not None:
                write_autodock(place, grid, output.stem)
            else:
                put_map(grid, place)
    return ProbeMaps(
        head=lines, grid=maps[0], maps=dict(zip(by_name, maps, strict=True)), atoms=int(chosen.sum()),
        seconds=clock.seconds,
        cutoff=CUTOFF if len(autodock_types) == len(by_name) else run.options.cutoff, engine=engine.name,
        structure=structure, files=paths)


class ProbeMaps(GridResult):
    """Maps of the energies of probe atoms; `grid` is that of the first."""

    head: Sequence[str]
    maps: Mapping[str, Grid]
    atoms: int
    cutoff: float
    engine: str


    @cached_property
    def objects(self) -> Mapping[str, Any]:
        """The structure and the maps."""
        return {**super().objects, **dict(list(self.maps.items())[1:])}

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            "atoms": self.atoms, "cutoff": self.cutoff, "engine": self.engine,
            "levels": list(isosurface_levels(self.grid)),
            "probes": {name: {"minimum": grid.values.min(), "maximum": grid.values.max()}
                       for name, grid in self.maps.items()}}

    def text(self) -> Iterator[str]:
        """Yield the ranges of the maps."""
        yield from self.head
        yield f"{self.points}, {count_of(self.atoms, 'atom')}"
        for name, grid in self.maps.items():
            yield (f"  {name}: {grid.provenance.quantity} {float(grid.values.min()):.4g} to "
                   f"{float(grid.values.max()):.4g} {grid.unit}")
        yield f"{self.seconds:.2f} s on the {self.engine} engine"


def _probe(text: str) -> tuple[str, str | tuple[float, float] | None]:
    """Return the name of a probe, and its type in the force field or (sigma, epsilon); None for AutoDock's types."""
    name, equals, rest = text.partition("=")
    if not equals:
        return text, None
    if not name or not all(letter.isalnum() or letter in "+-_*" for letter in name):
        raise UsageError("probe", "the name before = must consist of letters and digits", value=text)
    words = rest.split(",")
    try:
        sigma, epsilon = map(float, words)
    except ValueError:
        if len(words) > 1:
            raise UsageError("probe", "NAME=SIGMA,EPSILON needs two numbers, in A and kcal/mol", value=text) from None
        return name, rest
    return name, (sigma, epsilon)


def _sum(terms: Nonbonded, spec: str | tuple[float, float], cutoff: float) -> ProbeSum:
    return type_sum(terms, spec, cutoff) if isinstance(spec, str) else probe_sum(terms, *spec, cutoff)


def _of_probe(path: Path, name: str) -> Path:
    """Return the file of one probe's map, e.g. receptor.C.map for receptor.map."""
    from vmdpotential.io.maps import map_name

    stem = path.stem if path.suffix == ".map" else map_name(path)
    return path.with_name(f"{stem}.{name}{path.name[len(stem):]}")


def _odd(lattice: Lattice) -> Lattice:
    """Return a lattice with an odd number of nodes along each axis, which AutoDock needs."""
    nx, ny, nz = (n + 1 - n % 2 for n in lattice.shape)
    return Lattice(lattice.origin, lattice.spacing, (nx, ny, nz))
