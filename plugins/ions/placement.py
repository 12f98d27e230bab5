"""Result of a placement: the ions, and the structure with them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import ReportRows, written_out
from vmdpotential.results import TableColumns, Tabular

from .counts import IonCounts
from .montecarlo import SamplingStatistics

#: A short report lists all ions up to the first number, and of more ions only the second number.
MANY, FEW = 10, 3


@dataclass(frozen=True)
class PlacedIon:
    """Placed ion.

    Parameters
    ----------
    name : str
        Residue name.
    residue_id : int
        Residue number in the ions' segment.
    order : int
        Position in the order of placement, from 1.
    charge : int
        Charge, e.
    position : tuple of 3 floats, A
        Position of the oxygen of the water that it replaced; for an ion of several atoms, this is its centre (the mean
        of its atoms).
    water, water_segment : str
        Residue name and number, and segment (or chain), of that water.
    solute_distance, ion_distance : float or None
        Distance to the nearest image of a solute atom, and of another ion after all are placed, A; None if there is
        none.
    energy, energy_kt : float
        Energy in the potential of the solute, the existing ions, and the ions before it in the order of placement, all
        at their final sites; kcal/mol and kT. In a periodic cell with all images and a neutralising background (Ewald's
        sum), so that the mean potential over the cell is 0. The sum over the placed ions is their total energy with
        their surroundings and with each other.
    final_energy, final_energy_kt : float
        Energy with the solute and all other ions, also those placed later.
    atoms : int
        Number of atoms.
    """

    name: str
    residue_id: int
    order: int
    charge: int
    position: tuple[float, float, float]
    water: str
    water_segment: str
    solute_distance: float | None
    ion_distance: float | None
    energy: float
    energy_kt: float
    final_energy: float
    final_energy_kt: float
    atoms: int = 1

    #: Columns of a table.
    COLUMNS = (
        "name", "residue_id", "order", "charge", "x_A", "y_A", "z_A", "water", "water_segment", "solute_distance_A",
        "ion_distance_A", "energy_kcal_per_mol", "energy_kT", "final_energy_kcal_per_mol", "final_energy_kT",
    )

    @property
    def row(self) -> tuple[Any, ...]:
        """Values of :attr:`COLUMNS` as texts for files; blank if there is no distance."""
        distances = ("" if d is None else f"{d:.4f}" for d in (self.solute_distance, self.ion_distance))
        values = self.values
        return (*values[:4], *(f"{x:.4f}" for x in self.position), *values[7:9], *distances,
                *(f"{energy:.6f}" for energy in values[-4:]))

    @property
    def values(self) -> tuple[Any, ...]:
        """Values of :attr:`COLUMNS`; None if there is no distance."""
        fields = tuple(vars(self).values())
        return (*fields[:4], *self.position, *fields[5:-1])


@dataclass(frozen=True, eq=False)
class Placement(Tabular):
    """Result of :func:`~vmdpotential.plugins.ions.place_ions`.

    The atoms of `structure` are the :attr:`kept_atoms` of `original`, in their order, followed by those of `ions`, one
    residue per ion.

    Parameters
    ----------
    structure : Structure
        Structure with the ions.
    original : Structure
        Structure before the placement.
    ions : tuple of PlacedIon
        Ions in the order of the structure.
    replaced : (K,) int64
        Waters that were removed, as residues of `original`: those replaced by ions, and those that overlap with ions
        of several atoms.
    counts : IonCounts
    site : str
        ``potential``, ``random`` or ``monte-carlo``.
    seed : int or None
        Random seed.
    temperature, dielectric : float
        Temperature (K) and relative permittivity of the energies.
    moves : int
        Number of moves in the refinement.
    gain : float
        Decrease of the total energy by these moves, kcal/mol.
    sampling : Sampling or None
        Statistics of ``monte-carlo``.
    tolerance : float
        Tolerance of the potential at the sites.
    error : float or None
        Measured rms error of this potential relative to its rms; None if it is exact.
    """

    structure: Structure
    original: Structure
    ions: tuple[PlacedIon, ...]
    replaced: NDArray[np.int64]
    counts: IonCounts
    site: str
    seed: int | None
    temperature: float
    dielectric: float
    moves: int = 0
    gain: float = 0.0
    sampling: SamplingStatistics | None = None
    tolerance: float = 0.0
    error: float | None = None

    def __repr__(self) -> str:
        names = Counter(ion.name for ion in self.ions)
        ions = ", ".join(f"{number} {name}" for name, number in names.items()) or "no ions"
        energy = sum(ion.energy for ion in self.ions)
        charges = [round(charge, 6) + 0.0 for charge in (self.counts.net_charge, self.structure.net_charge)]
        return (f"Placement({ions} in place of waters by {self.site}, {energy:.1f} kcal/mol; net charge "
                f"{charges[0]:+.4g} e, then {charges[1]:+.4g} e)")

    def _repr_png_(self) -> bytes | None:
        """Return the picture that notebooks show: the structure with its ions."""
        return self.structure._repr_png_()

    def table(self) -> TableColumns:
        """Return the columns of a table with a row for each ion."""
        return dict(zip(PlacedIon.COLUMNS, zip(*(ion.values for ion in self.ions), strict=True), strict=False))

    @property
    def kept_atoms(self) -> NDArray[np.int64]:
        """Indices of the atoms of `original` that `structure` begins with: all but those of the removed waters."""
        starts = self.original.residue_starts
        drop = np.zeros(len(starts) - 1, bool)
        drop[self.replaced] = True
        return np.flatnonzero(~np.repeat(drop, np.diff(starts)))

    @property
    def waters_removed(self) -> int:
        """Number of removed water molecules: one per ion, or more for an ion of several atoms."""
        return len(self.replaced)

    @property
    def atom_energies(self) -> list[float]:
        """Energy of the ion of each added atom, kcal/mol."""
        return [ion.energy for ion in self.ions for _ in range(ion.atoms)]

    @property
    def lines(self) -> list[str]:
        """Lines of the report, with every ion."""
        return written_out(self.text, True)

    @property
    def text(self) -> list[str | ReportRows]:
        """Lines from which the long and the short report are made."""
        lines: list[str | ReportRows] = [*self.counts.lines,
                                         *(f"warning: {warning}" for warning in self.counts.warnings)]
        how = "most favourable potential first" if self.site == "potential" else f"{self.site}, seed {self.seed}"
        lines.append(f"replaced {len(self.ions)} waters by ions ({how})" if self.ions else "no ions placed")
        more = self.waters_removed - len(self.ions)
        if more:
            lines.append(f"removed {more} more {'water' if more == 1 else 'waters'} that overlapped with ions of "
                         "several atoms")
        if self.sampling is not None:
            lines.append(self.sampling.line)
        if self.moves:
            lines.append(f"refinement: {self.moves} {'move' if self.moves == 1 else 'moves'} of ions lowered the "
                         f"energy by {self.gain:.3f} kcal/mol")
        if self.ions:
            potential = "potential of the solute and of existing ions"
            lines.append(f"{potential}: no error of the summation beyond rounding" if self.error is None else
                         f"relative rms error of the {potential}: {self.error:.1e} (tolerance {self.tolerance:g})")
            lines.append(
                f"interaction energies at {self.temperature:g} K, dielectric {self.dielectric:g}, when placed, and at "
                "the end with all ions (final):"
            )
            lines.append(
                f"{'ion':>6} {'x':>9} {'y':>9} {'z':>9} {'water':>12} {'solute/A':>9} {'ion/A':>9} "
                f"{'kcal/mol':>11} {'kT':>11} {'final kT':>11}"
            )
        ions = sorted(self.ions, key=lambda ion: ion.order)

        def line(n: int) -> str:
            ion = ions[n]
            x, y, z = ion.position
            solute, other = ("-" if d is None else f"{d:.2f}" for d in (ion.solute_distance, ion.ion_distance))
            return (f"{ion.name:>6} {x:9.3f} {y:9.3f} {z:9.3f} {ion.water:>12} {solute:>9} {other:>9} "
                    f"{ion.energy:11.3f} {ion.energy_kt:11.3f} {ion.final_energy_kt:11.3f}")

        return [*lines, ReportRows(line, range(len(ions)), MANY if len(ions) <= MANY else FEW)]

    @property
    def data(self) -> dict[str, Any]:
        """The placement as a dictionary for JSON."""
        return {
            "counts": self.counts.data, "warnings": list(self.counts.warnings),
            **{name: getattr(self, name) for name in ("waters_removed", "site", "tolerance", "error", "seed", "moves",
                                                      "gain", "temperature", "dielectric")},
            "sampling": None if self.sampling is None else self.sampling.data,
            "ions": [{**vars(ion), "position": list(ion.position)} for ion in self.ions],
        }
