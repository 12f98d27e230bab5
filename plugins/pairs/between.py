"""Common parts of the commands on pairs of selections: options, selections and results."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from vmdpotential.errors import Message, UsageError
from vmdpotential.io.files.cellfile import boundary_text
from vmdpotential.maps.options import Boundary
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.charges import ChargeReport
from vmdpotential.molecule.names import ION_RESIDUES
from vmdpotential.molecule.nonbonded import Nonbonded
from vmdpotential.molecule.selection import Mask, select
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Option, ReportRows, warn_unused
from vmdpotential.results import Result

from .options import EnergyOptions

if TYPE_CHECKING:
    from .energy import InteractionEnergyPlan

log = logging.getLogger(__name__)


BetweenOption = Annotated[tuple[str, ...], Option(
    "one or more pairs of selections, which are evaluated once, on the structure", metavar="SEL",
    selection=True, heading="ions")]


@dataclass(frozen=True, kw_only=True)
class ParameterOptions:
    """Sources of Lennard-Jones parameters."""

    parameters: Annotated[tuple[Path, ...], Option(
        "files of Lennard-Jones parameters, if no topology has them: CHARMM's .prm and .str, or OpenMM's .xml (force "
        "fields, also by the names of those that come with OpenMM, or a whole System)", metavar="FILE",
        bundled=True, heading="structure and charges")] = ()
    allow_scripts: Annotated[bool, Option(
        "run the Python code in OpenMM force fields given as parameters (<Script>); it runs with your permissions, so "
        "use only files that you trust", heading="structure and charges")] = False

    def terms(self, structure: Structure) -> Nonbonded:
        """Return the Lennard-Jones parameters of a structure's atoms."""
        from ..forcefields.forcefield import nonbonded

        return nonbonded(structure, self.parameters, self.allow_scripts)


@dataclass(frozen=True, kw_only=True)
class PairOptions(EnergyOptions, ParameterOptions):
    """Force field, boundary and accuracy of energies and forces between selections."""

    boundary: Boundary = "auto"

    def between(self, structure: Structure, terms: Nonbonded, a: Mask, b: Mask,
                forces: bool = False) -> InteractionEnergyPlan:
        """Return the sum over the pairs of two selections."""
        from .energy import InteractionEnergyPlan

        if self.electrostatics != "pme":
            warn_unused(("tolerance",), "only {electrostatics pme} has an error to limit")
        return InteractionEnergyPlan(structure, terms, a, b, self, forces=forces)


def has_terms(structure: Structure) -> bool:
    """Return whether a structure has Lennard-Jones parameters of its own, from its topology."""
    return structure.topology is not None and structure.topology.nonbonded is not None


def selection_pairs(structure: Structure, between: Sequence[str]) -> list[tuple[str, str, Mask, Mask]]:
    """Return the pairs of selections: both texts, and both masks of atoms.

    Raises
    ------
    UsageError
        When their number is odd, or one selects no atoms.
    """
    if not between or len(between) % 2:
        raise UsageError("between", f"two selections are needed for each pair, and there are {len(between)}",
                         "such as {between protein} water")
    masks = {name: select(structure, name, "between") for name in between}
    return [(a, b, masks[a], masks[b]) for a, b in zip(between[::2], between[1::2], strict=True)]


def warn_of_mixture(structure: Structure, charges: ChargeReport, terms: Nonbonded) -> None:
    """Warn if charges and Lennard-Jones parameters are from two incompatible force fields, CHARMM and Amber.

    The force field is known from templates and parameter files, and from a prmtop, which is Amber's unless it is a
    CHAMBER file; a PSF, a TPR or a System may be of any. Water and ions alone have the same charges in both.
    """
    if charges.templates and all(name in charges.waters or name in ION_RESIDUES for name in charges.templates):
        return
    chamber = structure.topology is not None and structure.topology.extra.get("chamber", False)
    families = {"CHARMM": "charmm", "Amber": "amber" if chamber else "amber|prmtop"}
    first, second = ([name for name, words in families.items() if re.search(words, source.lower())]
                     for source in (charges.source, terms.source))
    if len(first) == len(second) == 1 and first != second:
        where = structure.sources[0] if structure.sources else "structure"
        log.warning(Message("%s: charges are from %s (%s) and Lennard-Jones parameters from %s (%s), which are not "
                            "compatible; choose by {force_field} or {parameters}"),
                    where, first[0], charges.source, second[0], terms.source)


class PairResult(Result):
    """Base class of the results of energies and forces between selections."""

    charges: ChargeReport
    unit: str
    options: PairOptions
    sums: Sequence[InteractionEnergyPlan]
    cell: Cell | None
    parameters: str
    structure: Structure

    @cached_property
    def engine(self) -> str:
        """Name of the engine."""
        return self.sums[0].engine.name

    @cached_property
    def boundary(self) -> str:
        """Boundary of the frames."""
        return "open" if self.cell is None else "periodic"

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            **self.charges.data, "unit": self.unit, "electrostatics": self.options.electrostatics,
            "cutoff": self.options.cutoff, "tolerance": self.options.tolerance, "dielectric": self.options.dielectric,
            "parameters": self.parameters, "engine": self.engine, "boundary": self.boundary}

    def shown(self) -> dict[str, Any]:
        """Return the objects for viewers and notebooks, by name; None for those that there are not."""
        return super().shown() | {"structure": self.structure}

    def text(self) -> Iterator[str | ReportRows]:
        """Yield the sources of charges and parameters, and how pairs are summed."""
        yield str(self.charges)
        yield (f"{self.parameters} parameters, {self.options.electrostatics}, {boundary_text(self.cell)}, cutoff "
               f"{self.options.cutoff:g} A, dielectric {self.options.dielectric:g}")


def error_line(pair: InteractionEnergyPlan, error: float | None, what: str) -> str:
    """Return the line of a report about an error."""
    if error is None:
        return f"{what}: no error of the summation beyond rounding"
    return f"relative rms error of the {what}: {error:.1e}, measured in the first frame (tolerance {pair.tolerance:g})"
