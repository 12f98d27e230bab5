"""Energies of binding in a solvent, and their changes by mutations: terms in every frame, report lines and tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.arrays import Floats
from vmdpotential.frames.errors_of_means import error_text, without_nan
from vmdpotential.frames.statistics import FrameMean
from vmdpotential.molecule.structure import Structure, atom_label
from vmdpotential.parameters import ReportRows
from vmdpotential.results import TableColumns

from .binding import ATOM_TERMS
from .energy import by_residue
from .over_frames import BOUND_TERMS

if TYPE_CHECKING:
    from .binding import BindingPlan

#: Columns of binding energies: their terms, the sum of the electrostatic ones, and that of all that are known.
COLUMNS = (*BOUND_TERMS, "electrostatic", "total")


class BoundEnergies:
    """Energies of binding of two selections in a solvent: their terms in every frame, means, and rows of both.

    Parameters
    ----------
    structure : Structure
    a, b : str
        The selections.
    by : str
        Rows: total, residue or atom.
    plan : BindingPlan
    numbers : (F,) int64
        Numbers of the frames.
    values : (F, 7) float64, kcal/mol
        The terms :data:`.BOUND_TERMS` in each frame, and the error of the grid.
    rows : FrameMean, optional
        The Lennard-Jones energy, :data:`.ATOM_TERMS` and the total of each row.
    """

    def __init__(self, structure: Structure, a: str, b: str, by: str, plan: BindingPlan, numbers: NDArray[np.int64],
                 values: Floats, rows: FrameMean | None = None) -> None:
        self.a, self.b, self.plan, self.numbers, self.rows = a, b, plan, numbers, rows
        terms = values[:, :-1]
        electrostatic = terms[:, 1:5].sum(1)
        #: The terms, their electrostatic part and their total in each frame (F, 8).
        self.frames = np.concatenate([terms, np.stack([electrostatic, np.nansum(terms, 1)], 1)], 1)
        self.grid_errors = values[:, -1]
        self._sums = FrameMean()
        for frame in self.frames:
            self._sums.add(frame)
        atoms = np.flatnonzero(plan.chosen)
        self.names = [] if rows is None else (
            [atom_label(structure, int(n), False) for n in atoms] if by == "atom" else
            [atom_label(structure, int(structure.residue_starts[n]), True)
             for n in by_residue(structure, atoms, np.zeros(len(atoms)))[0]])

    @property
    def mean(self) -> dict[str, float | None]:
        """Mean of each term over the frames, by name; None for what is not known."""
        return dict(zip(COLUMNS, without_nan(self._sums.moments.mean), strict=True))

    @property
    def data(self) -> dict[str, Any]:
        """The means, their deviations and errors, and the rows as plain data."""
        uncertainty, deviation = self._sums.uncertainty(), self._sums.deviation()
        statistics = {"std": deviation, "error": None if uncertainty is None else uncertainty.error,
                      "interval": None if uncertainty is None else uncertainty.interval}
        spread = {f"{name}_{key}": None if values is None else without_nan(values)[k]
                  for key, values in statistics.items() for k, name in enumerate(COLUMNS)}
        table = self.row_table() if self.rows is not None else {}
        return {"a": self.a, "b": self.b, "model": self.plan.description, **self.mean, **spread,
                "grid_error": float(self.grid_errors.mean()),
                "rows": [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)] or None}

    def row_table(self) -> TableColumns:
        """Return the columns of the table of residues or atoms: means of their terms, and errors of the totals."""
        assert self.rows is not None
        mean, uncertainty = self.rows.moments.mean, self.rows.uncertainty()
        names = ("lennard_jones", *ATOM_TERMS, "total")
        columns = {"name": self.names, **{name: without_nan(mean[:, k]) for k, name in enumerate(names)}}
        if np.isnan(mean[:, 0]).all():
            del columns["lennard_jones"]
        if uncertainty is not None:
            columns |= {"total_error": without_nan(uncertainty.error[:, -1]),
                        "total_interval": without_nan(uncertainty.interval[:, -1])}
        return columns

    def frame_table(self) -> TableColumns:
        """Return the columns of the table with a row for each frame."""
        known = ~np.isnan(self.frames).all(0)
        return {"frame": self.numbers.tolist(), "a": [self.a] * len(self.numbers), "b": [self.b] * len(self.numbers),
                **{name: self.frames[:, k].tolist() for k, name in enumerate(COLUMNS) if known[k]},
                "grid_error": self.grid_errors.tolist()}

    def curves(self) -> dict[str, Floats]:
        """Return what a figure shows of each frame, by name; the total is the last."""
        lennard_jones, surface = self.frames[:, 0], self.frames[:, 5]
        curves = {"van der Waals": lennard_jones, "Coulomb": self.frames[:, 1], "polar": self.frames[:, 2:5].sum(1),
                  "surface": surface, "total": self.frames[:, -1]}
        return {name: values for name, values in curves.items() if name == "total" or np.nan_to_num(values).any()}

    def text(self) -> Iterator[str | ReportRows]:
        """Yield the lines of the report: the total and its terms, with standard errors, and the largest rows."""
        uncertainty = self._sums.uncertainty()

        def value(name: str) -> str:
            k = COLUMNS.index(name)
            return f"{self._sums.moments.mean[k]:.2f}{error_text(uncertainty and uncertainty.part(k), 2)}"

        grid = f", error of the grid {float(self.grid_errors.mean()):.2g}" if self.grid_errors.any() else ""
        yield f"{self.a} with {self.b} in water: {value('total')} kcal/mol{grid} ({self.plan.description})"
        van_der_waals = [] if self.mean["lennard_jones"] is None else [f"van der Waals {value('lennard_jones')}"]
        surface = [f"surface {value('surface')}"] if self.plan.surface else []
        yield "  " + ", ".join([
            *van_der_waals, f"Coulomb in the molecules {value('coulomb')}", f"screening {value('screening')}",
            f"desolvation {value('desolvation_1')} and {value('desolvation_2')}", *surface])
        left_out = [*([] if van_der_waals else ["van der Waals"]), *([] if surface else ["the surface"])]
        yield "  left out: " + ", ".join(["entropy", "changes of conformation by binding", *left_out])
        if len(self.numbers) > 1:
            yield f"  {self._sums.explanation(-1)}"
        if self.rows is not None:
            total = self.rows.moments.mean[:, -1]
            yield ReportRows(lambda n: f"  {self.names[n]}: {total[n]:.4f} kcal/mol",
                             np.argsort(-np.abs(total), kind="stable").tolist(), rest="that are smaller")


class MutantEnergies:
    """Energies of binding of a mutant, and their changes from those of the wild type in the same frames.

    Parameters
    ----------
    name : str
    wild, mutant : BoundEnergies
    """

    def __init__(self, name: str, wild: BoundEnergies, mutant: BoundEnergies) -> None:
        self.name, self.mutant = name, mutant
        self._changes = FrameMean()
        for before, after in zip(wild.frames, mutant.frames, strict=True):
            self._changes.add(after - before)

    @property
    def data(self) -> dict[str, Any]:
        """The mutant's energies, and the means and errors of the changes."""
        uncertainty, mean = self._changes.uncertainty(), without_nan(self._changes.moments.mean)
        spread = {"error": None if uncertainty is None else without_nan(uncertainty.error),
                  "interval": None if uncertainty is None else without_nan(uncertainty.interval)}
        return {"name": self.name, **self.mutant.data,
                "change": {name: {"mean": mean[k], **{key: None if values is None else values[k]
                                                      for key, values in spread.items()}}
                           for k, name in enumerate(COLUMNS)}}

    def text(self) -> Iterator[str]:
        """Yield the line of the report: the mutant's energy, and its change with a standard error."""
        uncertainty, mean = self._changes.uncertainty(), self._changes.moments.mean

        def change(name: str) -> str:
            k = COLUMNS.index(name)
            return f"{mean[k]:+.2f}{error_text(uncertainty and uncertainty.part(k), 2)}"

        van_der_waals = "" if np.isnan(mean[0]) else f"van der Waals {change('lennard_jones')}, "
        surface = f", surface {change('surface')}" if self.mutant.plan.surface else ""
        yield (f"  {self.name}: {self.mutant.mean['total']:.2f} kcal/mol, {change('total')} from the wild type "
               f"({van_der_waals}electrostatic {change('electrostatic')}{surface})")
