"""The command ``titrate``: pKa values and titration curves of a protein."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import progress
from vmdpotential.commands.options import Force, Source
from vmdpotential.errors import UsageError, count_of
from vmdpotential.interactions.screened_coulomb import WATER_PERMITTIVITY
from vmdpotential.io.files import output as files
from vmdpotential.maps.options import Engine
from vmdpotential.molecule.radii import RADII_SETS
from vmdpotential.molecule.templates import FORCE_FIELDS
from vmdpotential.parameters import Command, Option, ReportRows, WithoutFields
from vmdpotential.preparation.charged import residue_charges
from vmdpotential.results import Axes, Figure, Result, TableColumns, put_table
from vmdpotential.units import DEFAULT_TEMPERATURE, MAX_SALT

from .energies import Solvent
from .figures import draw_curves, titration_figure
from .statistics import LN10
from .titration import PH, TitrationCurves, titration_of

Floats = NDArray[np.float64]

#: Limits of a pH, and the largest number of values.
LOWEST, HIGHEST, MOST = -2.0, 16.0, 1000

#: Fields of a source that do not matter, as all states are computed, and waters left out.
STATE_FIELDS = ("force_field", "water", "prepare", "ph", "pka")

#: Which of the values of pH of all curves are in the figure.
DRAWN = (PH >= 0) & (PH <= 14)


@dataclass(frozen=True, kw_only=True)
class TitrationOptions:
    """The pH of the curves, the solvent and the lattice."""

    ph: Annotated[str, Option(
        "pH of the curves: one value, or begin:end:step", metavar="PH|B:E:S", front=True)] = "0:14:0.5"
    inside: Annotated[float, Option(
        "relative permittivity of the protein; 20 stands for its relaxation, which one rigid structure does not have, "
        "and 4 to 8 for less of it", low=1, high=WATER_PERMITTIVITY, front=True)] = 20.0
    salt: Annotated[float, Option(
        "concentration of a 1:1 salt", unit="M", low=0, high=MAX_SALT, front=True)] = 0.1
    temperature: Annotated[float, Option("temperature", unit="K", low=200, high=500,
                                         heading="medium")] = DEFAULT_TEMPERATURE
    spacing: Annotated[float, Option("distance between the nodes of the lattice", unit="A", low=0.2, high=2,
                                     heading="grid")] = 1.0
    radii: Annotated[str, Option("set of atomic radii", choices=RADII_SETS, heading="medium")] = "mbondi2"
    force_field: Annotated[str, Option(
        "force field whose templates give charges; amber14 has none for neutral ends of chains",
        choices=FORCE_FIELDS, heading="structure and charges")] = "charmm36"


@dataclass(frozen=True, kw_only=True)
class TitrationOutput:
    """Files of the sites, of the curves, and of a figure."""

    output: Annotated[Path | None, Option(
        "CSV file of the sites; - is standard output", short="o", viewer=False, written=True, suffix=".csv")] = None
    curves: Annotated[Path | None, Option(
        "CSV file of the curves, the net charge and the dipole moment against the pH", viewer=False, written=True,
        suffix=".csv", heading="output")] = None
    figure: Annotated[Path | None, Option(
        "figure of the curves: .png, .pdf or .svg", viewer=False, written=True, heading="main options")] = None
    force: Force = False

    @property
    def paths(self) -> list[Path]:
        """Files to write."""
        return [path for path in (self.output, self.curves, self.figure) if path is not None]

    def check(self) -> None:
        """Raise an error for a figure of an unknown format, and for files that exist or cannot be written."""
        from vmdpotential.figures.page import check_figure_format

        if self.figure is not None:
            check_figure_format(self.figure)
        files.check(self.paths, self.force)

    def write(self, result: TitrationResult, title: str) -> None:
        """Write all files or none."""
        from vmdpotential.figures.page import render_figure

        tables = {self.output: result.table, self.curves: result.curve_table}
        with files.writing_files(self.paths, self.force) as places:
            for path, place in zip(self.paths, places, strict=True):
                if path == self.figure:
                    place.write_bytes(render_figure(result.draw(), path, title=title))
                else:
                    put_table(tables[path](), place)


def titrate(
    source: Annotated[Source, WithoutFields("topology", "cell", "index", *STATE_FIELDS)],
    options: TitrationOptions = TitrationOptions(),
    engine: Engine = "auto",
    outputs: TitrationOutput = TitrationOutput(),
) -> TitrationResult:
    """Compute pKa values and titration curves of a protein by the Poisson-Boltzmann equation.

    The sites are ASP, GLU, HIS with both tautomers, free CYS, TYR, LYS, ARG and the ends of chains; ligands and metals
    keep their charges, and waters are left out. Missing atoms are added, and the hydrogens of amino acids are placed
    anew. The structure is rigid: changes of conformation with the pH are neglected.

    Raises
    ------
    UsageError
        For a pH that is no number or range.
    InputError
        For a structure without sites, or with a topology.
    TaskError
        When the structure cannot be completed, or a solution does not converge.
    BackendError
        When biotite or hydride is not installed.
    """
    outputs.check()
    values = ph_values(options.ph)
    structure = source.read()
    solvent = Solvent(options.inside, WATER_PERMITTIVITY, options.salt, options.temperature, options.spacing)
    with progress.clock() as clock:
        found = titration_of(structure, solvent, force_field=options.force_field, radii=options.radii,
                             charges=residue_charges(source.charges), engine=engine)
        populations = found.populations(values)
        assert len(found.pka)  # computed here, within the reported time
    result = TitrationResult(titration=found, ph=values, populations=populations, seconds=clock.seconds,
                             files=outputs.paths, draws=outputs.figure is not None or outputs.output is None)
    outputs.write(result, structure.where)
    return result


def ph_values(text: str) -> Floats:
    """Return the values of a text such as ``7`` or ``0:14:0.5``, whose end is included.

    Raises
    ------
    UsageError
        For other texts, and values beyond :data:`LOWEST` and :data:`HIGHEST`.
    """
    try:
        parts = [float(part) for part in text.split(":")]
    except ValueError:
        parts = []
    if len(parts) not in (1, 2, 3) or not np.isfinite(parts).all():
        raise UsageError("ph", "a number or begin:end:step is needed", "give {ph 7}, or {ph 0:14:0.5}", value=text)
    begin, end, step = [*parts, *(parts[0], 0.5)[len(parts) - 1 :]][:3]
    if not LOWEST <= begin <= end <= HIGHEST or step <= 0 or (end - begin) / step > MOST:
        raise UsageError("ph", f"values of pH increase, from {LOWEST:g} to {HIGHEST:g}, and are {MOST:,} at most",
                         "give {ph 0:14:0.5}", value=text)
    return np.asarray(begin + step * np.arange(int((end - begin) / step + 1e-6) + 1), np.float64)


class TitrationResult(Result):
    """The pKa values of a structure's sites, and curves against the pH."""

    titration: TitrationCurves
    ph: Floats
    #: Populations (P, K) of states at each pH, and their standard errors.
    populations: tuple[Floats, Floats]
    seconds: float

    @cached_property
    def labels(self) -> Sequence[str]:
        """Names of the sites."""
        return [site.label for site in self.titration.sites]

    @cached_property
    def protonated(self) -> Floats:
        """Fractions (P, S) of the sites that have their proton."""
        return self.titration.protonated(self.populations[0])

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        """Net charges (P,), e, and dipole moments (P,), D."""
        return self.titration.moments(self.populations[0])

    @cached_property
    def isoelectric(self) -> float:
        """The pH at which the net charge is 0; NaN if there is none."""
        net = self.titration.net_charges
        at = np.flatnonzero((net[:-1] > 0) & (net[1:] <= 0))
        return float(PH[at[0]] + (PH[1] - PH[0]) * net[at[0]] / (net[at[0]] - net[at[0] + 1])) if len(at) else np.nan

    @property
    def pka(self) -> Floats:
        """The pKa (S,) of each site; NaN beyond the computed curves."""
        return self.titration.pka[0]

    @cached_property
    def row(self) -> dict[str, Any]:
        """The figures that a batch has of it."""
        return {"sites": len(self.labels), "isoelectric_point": self.isoelectric,
                **dict(zip(self.labels, self.pka.tolist(), strict=True))}

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        columns, net = self.table(), self.moments
        sites = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        solvent, found = self.titration.solvent, self.titration
        return super().entries() | {
            "sites": sites, "ph": self.ph, "protonated": self.protonated.T, "errors": self.populations[1].max(1),
            "net_charge": net[0], "dipole": net[1], "isoelectric_point": self.isoelectric,
            "asymmetry": found.energies.asymmetry / LN10,
            "inside": solvent.inside, "salt": solvent.salt, "temperature": solvent.temperature,
            "spacing": solvent.spacing, "engine": found.engine.name, "seconds": self.seconds,
            "prepared": found.titrated.prepared.summary()}

    def shown(self) -> dict[str, Any]:
        """Return the objects for viewers and notebooks, by name."""
        return super().shown() | {"structure": self.titration.titrated.structure}

    def text(self) -> Iterator[str | ReportRows]:
        """Yield the table of sites, and the net charge."""
        found, solvent = self.titration, self.titration.solvent
        yield (f"{count_of(len(self.labels), 'site')}, permittivity {solvent.inside:g} in the protein and "
               f"{solvent.outside:g} around it, {solvent.salt:g} M salt, {solvent.temperature:g} K")
        yield "site          model  intrinsic  desolvation  background    pKa  slope  error"
        columns = self.table()

        def line(n: int) -> str:
            model, intrinsic, desolvation, background, slope, error = (
                columns[name][n] for name in ("model_pka", "intrinsic_pka", "desolvation", "background", "slope",
                                              "error"))
            return (f"{self.labels[n]:12} {model:6.2f} {intrinsic:10.2f} {desolvation:12.2f} {background:11.2f} "
                    f"{_shown(self.pka[n], found.curves[0][0, n]):>6} {slope:6.2f} {error:6.2f}")

        yield ReportRows(line, range(len(self.labels)), len(self.labels))
        if len(self.ph) == 1:
            shares = zip(self.labels, self.protonated[0].tolist(), strict=True)
            partly = ", ".join(f"{label} {share:.2f}" for label, share in shares if 0.01 < share < 0.99)
            yield f"partly protonated at pH {self.ph[0]:g}: {partly or 'no site'}"
        for ph, charge, dipole in list(zip(self.ph, *self.moments, strict=True))[:: max(1, len(self.ph) - 1)]:
            yield f"pH {ph:g}: net charge {charge:+.2f} e, dipole moment {dipole:.0f} D about the centre"
        if np.isfinite(point := self.isoelectric):
            yield f"isoelectric point {point:.2f}"
        yield ("errors are those of the lattice and of Monte Carlo; the structure is rigid, and pKa values typically "
               "differ from measured ones by 0.5 to 1")
        yield f"{self.seconds:.2f} s on the {found.engine.name} engine"

    def table(self) -> dict[str, Sequence[Any]]:
        """Return a row for each site."""
        found = self.titration
        desolvation, background = found.contributions
        values, slopes, errors = found.pka
        return {"site": self.labels, "group": self._groups,
                "model_pka": [site.model_pka for site in found.sites], "intrinsic_pka": found.intrinsic.tolist(),
                "desolvation": desolvation.tolist(), "background": background.tolist(), "pka": values.tolist(),
                "slope": slopes.tolist(), "error": errors.tolist()}

    def curve_table(self) -> TableColumns:
        """Return a row for each pH: net charge, dipole moment, and the fraction of each site with its proton."""
        net, dipole = self.moments
        return {"ph": self.ph, "net_charge": net, "dipole": dipole,
                **dict(zip(self.labels, self.protonated.T, strict=True))}

    def plot(self, ax: Axes) -> Axes:
        """Draw the titration curves."""
        return draw_curves(ax, PH[DRAWN], self.titration.curves[0][DRAWN], self._groups)

    def draw(self) -> Figure:
        """Return the titration curves, and below them the net charge."""
        return titration_figure(PH[DRAWN], self.titration.curves[0][DRAWN], self._groups,
                                self.titration.net_charges[DRAWN], float(self.ph[0]) if len(self.ph) == 1 else None)

    @property
    def _groups(self) -> Sequence[str]:
        return [site.group for site in self.titration.sites]


def _shown(value: float, first: float) -> str:
    """Return a pKa, or how it is beyond all curves; `first` is the fraction of protonated sites at the lowest pH."""
    if np.isfinite(value):
        return f"{value:.2f}"
    return f"<{PH[0]:g}" if first < 0.5 else f">{PH[-1]:g}"


command = Command.of(titrate, examples=(
    "titrate entry.pdb --spacing 1.5 --figure curves.png",
    "titrate entry.pdb --ph 7 --salt 0.15 --inside 8 --spacing 2 -o sites.csv --curves curves.csv",
), python="""\
>>> structure = vp.read_structure("data/1hvr.pdb.gz")
>>> found = vp.titrate(structure.part(structure.residue_names != "XK2"), spacing=1.5)
>>> found.to_dataframe().columns[0]
'site'""")
