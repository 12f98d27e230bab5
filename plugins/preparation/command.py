"""The command ``prepare``."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from vmdpotential.commands.options import Force, Source
from vmdpotential.commands.structures import read_source
from vmdpotential.errors import UsageError, count_of
from vmdpotential.io import can_be_written, check_formats, write_structures
from vmdpotential.io.files import output as files
from vmdpotential.molecule.charges import ChargeReport
from vmdpotential.molecule.radii import RADII_SETS
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, Option, WithoutFields
from vmdpotential.preparation.charged import residue_charges
from vmdpotential.results import Result, TableColumns, put_table

from .report import PreparedStructure


@dataclass(frozen=True, kw_only=True)
class CompletedSource(Source):
    """A structure that is to be completed."""

    structure: Annotated[Path | Structure, Option("structure file", positional=True, viewer=False)]
    prepare: Annotated[str, Option(
        "auto adds missing atoms; never adds none, and writes the structure, its assembly or its cell unchanged",
        choices=("auto", "never"), heading="structure and charges")] = "auto"


def prepare(
    source: Annotated[CompletedSource, WithoutFields("topology", "cell", "index")],
    leave_out: Annotated[tuple[str, ...], Option(
        "residues to leave out, by name, such as UNK, or by name and number, such as ALA617", metavar="NAME",
        heading="structure and charges")] = (),
    radii: Annotated[str, Option("set of atomic radii", choices=RADII_SETS, heading="medium")] = "mbondi2",
    output: Annotated[tuple[Path, ...], Option(
        "files to write: .pqr (atoms with charges and radii), .pdb, .cif or .gro (atoms), .csv (table of all "
        "residues); unless given, only the report is printed",
        short="o", viewer=False, written=True, suffix=".pqr")] = (),
    force: Force = False,
) -> CompletedStructure:
    """Complete a structure: hydrogens, missing atoms, protonation states, charges and radii.

    Hydrogens are added to proteins, nucleic acids, sugars, ligands and waters; incomplete side chains and the ends of
    chains are completed, and gaps within chains are capped. Charges are those of force-field templates; residues
    without a template get approximate charges by Gasteiger's method. The table lists what was done to each residue.

    Raises
    ------
    UsageError
        For formats that cannot be written.
    TaskError
        When residues cannot be completed or have no charges; the message lists them.
    BackendError
        When biotite, hydride or PROPKA is not installed.
    """
    from .prepare import prepare_structure

    tables = [path for path in output if path.suffix.lower() == ".csv"]
    structures = [path for path in output if path not in tables]
    for path in structures:
        if not can_be_written(path):
            check_formats(read_source(source.structure, None), [path])
    files.check(output, force)
    start = time.perf_counter()
    whole = source.read()
    if source.prepare == "never":
        if structures and all(path.suffix.lower() == ".pdb" for path in structures):
            whole = _with_short_chains(whole)
        if tables:
            raise UsageError("output", "there is no table, because no residue is changed", "omit the table",
                             value=str(tables[0]))
        write_structures(whole, structures, force)
        return CompletedStructure(structure=whole, charges=None, prepared=None, seconds=time.perf_counter() - start,
                                  files=output)
    completed = prepare_structure(
        whole, ph=source.ph, pka=source.pka, force_field=source.force_field, water=source.water,
        charges=residue_charges(source.charges), leave_out=leave_out, radii=radii)
    result = CompletedStructure(structure=completed.structure, charges=completed.charges, prepared=completed,
                                seconds=time.perf_counter() - start, files=output)
    write_structures(result.structure, structures, force,
                     {path: lambda place: put_table(result.table(), place) for path in tables}, structures)
    return result


class CompletedStructure(Result):
    """A completed structure, and the changes of each residue; without charges if nothing was to be completed."""

    structure: Structure
    charges: ChargeReport | None
    prepared: PreparedStructure | None
    seconds: float

    @cached_property
    def net_charge(self) -> float | None:
        """The net charge, e."""
        return None if self.charges is None else self.charges.net_charge

    @cached_property
    def cell(self) -> Sequence[float] | None:
        """Lengths, A, and angles, degrees."""
        return None if self.structure.cell is None else self.structure.cell.parameters

    @cached_property
    def atoms(self) -> int:
        """The number of atoms."""
        return len(self.structure)

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            **({} if self.charges is None else self.charges.data),
            **({} if self.prepared is None else self.prepared.data), "seconds": self.seconds,
            "net_charge": self.net_charge, "cell": self.cell, "atoms": self.atoms}

    def shown(self) -> dict[str, Any]:
        """Return the objects for viewers and notebooks, by name; None for those that there are not."""
        return super().shown() | {"structure": self.structure, "prepared": self.prepared}

    def text(self) -> Iterator[str]:
        """Yield the changes and the charges."""
        if self.prepared is None:
            yield f"{count_of(len(self.structure), 'atom')}, unchanged"
            return
        yield from self.prepared.lines()
        yield str(self.charges)
        yield f"{count_of(len(self.structure), 'atom')} in {self.seconds:.2f} s"

    def table(self) -> TableColumns:
        """Return a row for each residue."""
        return super().table() if self.prepared is None else self.prepared.table()


def _with_short_chains(structure: Structure) -> Structure:
    """Return a structure with one-letter chains for PDB files: chain A2, a copy of A, becomes chain A, segment A2."""
    if not (np.char.str_len(structure.chain_ids) > 1).any():
        return structure
    return replace(structure, chain_ids=structure.chain_ids.astype("<U1"), segment_ids=structure.chain_ids)


command = Command.of(prepare, examples=(
    "prepare protein.pdb -o protein.pqr",
    "prepare entry.pdb --ph 5 --assembly 1 -o prepared.pqr prepared.csv",
), python="""\
>>> prepared = vp.prepare("data/1hvr.pdb.gz", ph=6.0)
>>> prepared.structure.charges is None
False
>>> prepared.to_dataframe()[["residue", "number", "state"]].iloc[0].tolist()
['PRO', '1', 'N-terminus']""")
