"""The command ``prepare``."""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Annotated

from vmdpotential.commands.options import (
    CopyOptions,
    Force,
    Ph,
    Pka,
    TemplateOptions,
    copies,
    read,
    residue_charges,
)
from vmdpotential.errors import UsageError
from vmdpotential.io import can_be_written, check_formats, write_structures
from vmdpotential.io.files import output as files
from vmdpotential.molecule.radii import SETS
from vmdpotential.parameters import Command, Option, Report
from vmdpotential.prepare.report import COLUMNS, Prepared


def prepare(
    structure: Annotated[Path, Option("structure file", positional=True)],
    ph: Ph = 7.0,
    pka: Pka = "model",
    templates: TemplateOptions = TemplateOptions(),
    leave_out: Annotated[tuple[str, ...], Option(
        "residues to leave out, by name, such as UNK, or by name and number, such as ALA617", metavar="NAME")] = (),
    radii: Annotated[str, Option("set of atomic radii", choices=SETS)] = "mbondi2",
    symmetry: CopyOptions = CopyOptions(),
    prepare: Annotated[str, Option(
        "whether atoms are added: auto, or never to write an assembly or a cell as it is",
        choices=("auto", "never"))] = "auto",
    output: Annotated[tuple[Path, ...], Option(
        "files to write: .pqr has charges and radii, .pdb, .cif or .gro the atoms; .csv the table of all residues",
        short="o", viewer=False, written=True)] = (),
    force: Force = False,
) -> Report:
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
    from vmdpotential.prepare.preparation import prepare_structure

    if not output:
        raise UsageError("output", "a file is needed for the structure", "such as {output prepared.pqr}")
    tables = [path for path in output if path.suffix.lower() == ".csv"]
    structures = [path for path in output if path not in tables]
    for path in structures:
        if not can_be_written(path):
            check_formats(read(structure, None), [path])
    files.check(output, force)
    start = time.perf_counter()
    whole = copies(read(structure, None), structure, symmetry.assembly, symmetry.expand)
    if prepare == "never":
        if tables:
            raise UsageError("output", "nothing is done to residues", "leave out the table", value=str(tables[0]))
        write_structures(whole, structures, force)
        return Report(
            [f"{len(whole)} atoms as they are", *(f"wrote {path}" for path in output)],
            {"atoms": len(whole), "cell": None if whole.cell is None else list(whole.cell.parameters),
             "files": [str(path) for path in output]}, {"structure": whole})
    made = prepare_structure(
        whole, ph=ph, pka=pka, force_field=templates.force_field,
        water=templates.water, charges=residue_charges(templates.charges), leave_out=leave_out, radii=radii)
    seconds = time.perf_counter() - start
    write_structures(made.structure, structures, force,
                     {path: lambda place: _write(made, place) for path in tables}, structures)
    lines = [*made.lines(), str(made.charges), f"{len(made.structure)} atoms in {seconds:.2f} s",
             *(f"wrote {path}" for path in output)]
    data = {**made.charges.data, **made.data, "net_charge": made.charges.net_charge, "atoms": len(made.structure),
            "seconds": seconds, "files": [str(path) for path in output]}
    return Report(lines, data, {"structure": made.structure, "prepared": made})


def _write(made: Prepared, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in made.rows:
            values = row.values()
            writer.writerow(values | {"pka": "" if row.pka is None else f"{row.pka:.2f}"})


command = Command.of(prepare)
