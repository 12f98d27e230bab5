"""The command ``titrate``: pKa values and titration curves of a protein."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from vmdpotential import progress
from vmdpotential.arrays import Floats
from vmdpotential.commands.options import Source, TrajectoryOptions
from vmdpotential.engines import get_engine
from vmdpotential.errors import InputError, count_of
from vmdpotential.frames.cells import CellFrames
from vmdpotential.frames.options import Execution
from vmdpotential.frames.task import MergedSums, run_task
from vmdpotential.grid.lattice import Grid
from vmdpotential.interactions.screened_coulomb import WATER_PERMITTIVITY
from vmdpotential.maps import MapOptions, Medium, potential_map
from vmdpotential.maps.options import Engine
from vmdpotential.maps.solute import in_continuum
from vmdpotential.molecule.selection import is_water
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Command, ReportRows, WithoutFields
from vmdpotential.preparation.charged import residue_charges
from vmdpotential.preparation.follow import Follower
from vmdpotential.results import Axes, Figure, Result, TableColumns

from .energies import Solvent
from .figures import draw_curves, titration_figure
from .options import TitrationOptions, TitrationOutput, ph_values, series_of_ph
from .over_frames import SITE_FIGURES, FrameTitrations
from .sites import TitratedStructure, no_sites, titrated_structure
from .titration import PH

#: Fields of a source that do not matter, as all states are computed, and waters left out.
STATE_FIELDS = ("force_field", "water", "prepare", "ph", "pka")

#: Margin of maps around the atoms, A.
MAP_PADDING = 10.0

#: Which of the values of pH of all curves are in the figure.
DRAWN = (PH >= 0) & (PH <= 14)


def titrate(
    source: Annotated[Source, WithoutFields("topology", "index", *STATE_FIELDS)],
    trajectory: TrajectoryOptions = TrajectoryOptions(),
    options: TitrationOptions = TitrationOptions(),
    engine: Engine = "auto",
    execution: Execution = Execution(),
    outputs: TitrationOutput = TitrationOutput(),
) -> TitrationResult:
    """Compute pKa values and titration curves of a protein by the Poisson-Boltzmann equation.

    The sites are ASP, GLU, HIS with both tautomers, free CYS, TYR, LYS, ARG and the ends of chains, and ligands whose
    model pKa and states are given; other ligands and metals keep their charges, and waters are left out. Missing atoms
    are added, and the hydrogens of amino acids are replaced. The structure is rigid: changes of conformation with
    the pH are neglected. With a trajectory, each frame is titrated, and pKa values and curves are means over frames
    with their standard errors.

    Raises
    ------
    UsageError
        For a pH that is no number or range, and a model pKa of a ligand without two states.
    InputError
        For a structure without sites, or with a topology.
    TaskError
        When the structure cannot be completed, or a solution does not converge.
    BackendError
        When biotite or hydride is not installed.
    """
    values, map_ph = ph_values(options.ph), series_of_ph(options.map_ph)
    outputs.check_all(map_ph, trajectory.trajectory is not None, source.structure)
    shown, over = source.with_frames(trajectory)
    if is_water(shown).all():
        raise InputError(*no_sites(shown))
    structure, chosen, together = in_continuum(shown, "solute", Medium.continuum(), frames=over is not None)
    solvent = Solvent(options.inside, WATER_PERMITTIVITY, options.salt, options.temperature, options.spacing)
    execution = execution.with_block_folder(outputs.output)
    frames = CellFrames.of(structure, over, "open", source.cell, together)
    with progress.clock() as clock:
        titrated = titrated_structure(structure.part(chosen), force_field=options.force_field, radii=options.radii,
                                      charges=residue_charges(source.charges), model_pka=options.model_pka)
        work = FrameTitrations(frames, Follower(titrated.bare, titrated.structure), titrated,
                               np.flatnonzero(chosen)[titrated.rows], solvent, values, np.array(map_ph), engine)
        merged = run_task(work, execution)
        maps = _maps(titrated.structure, merged["charges"].mean, map_ph, solvent, engine)
    result = TitrationResult(titrated=titrated, solvent=solvent, engine=get_engine(engine).name, ph=values,
                             merged=merged, map_ph=map_ph, maps=maps, seconds=clock.seconds,
                             files=outputs.all_files(map_ph), draws=outputs.draws)
    outputs.write_all(result, structure.where)
    return execution.complete(result, merged.count, len(frames.numbers()))


def _maps(structure: Structure, charges: Floats, ph: Sequence[float], solvent: Solvent, engine: str) -> list[Grid]:
    """Return the potential of the mean charges (M, N), e, at M values of pH."""
    options = MapOptions(method="pb", atoms="all", boundary="open", spacing=solvent.spacing,
                         padding=MAP_PADDING, temperature=solvent.temperature, dielectric=solvent.outside,
                         parameters={"inside": solvent.inside, "salt": solvent.salt}, engine=engine)
    made = [potential_map(replace(structure, charges=row), options) for row in charges[: len(ph)]]
    return [replace(grid, provenance=replace(grid.provenance, state=f"pH {value:g}"))
            for grid, value in zip(made, ph, strict=True)]


class TitrationResult(Result):
    """The pKa values of a structure's sites, and curves against the pH: those of one structure, or means over frames.
    """

    titrated: TitratedStructure
    solvent: Solvent
    engine: str
    ph: Floats
    #: The means of :class:`.FrameTitrations`.
    merged: MergedSums
    #: Values of pH of maps, and the potentials of the mean charges there.
    map_ph: Sequence[float]
    maps: Sequence[Grid]
    seconds: float

    @cached_property
    def labels(self) -> Sequence[str]:
        """Names of the sites."""
        return [site.label for site in self.titrated.sites]

    def _mean(self, name: str) -> Floats:
        return self.merged[name].moments.mean

    def _error(self, name: str) -> Floats:
        """Return the standard errors of a mean over frames; NaN where they are not known."""
        known = self.merged[name].uncertainty() if self.merged.count > 1 else None
        return np.full(self._mean(name).shape, np.nan) if known is None else known.error

    @property
    def protonated(self) -> Floats:
        """Fractions (P, S) of the sites that have their proton."""
        return self._mean("protonated")

    @property
    def moments(self) -> tuple[Floats, Floats]:
        """Net charges (P,), e, and dipole moments (P,), D."""
        net, dipole = self._mean("moments")
        return net, dipole

    @property
    def curves(self) -> Floats:
        """Fractions (Q, S) of protonated sites at :data:`.titration.PH`."""
        return self._mean("curves")

    @cached_property
    def isoelectric(self) -> float:
        """The pH at which the net charge is 0; NaN if there is none."""
        net = self._mean("net")
        at = np.flatnonzero((net[:-1] > 0) & (net[1:] <= 0))
        return float(PH[at[0]] + (PH[1] - PH[0]) * net[at[0]] / (net[at[0]] - net[at[0] + 1])) if len(at) else np.nan

    @property
    def pka(self) -> Floats:
        """The pKa (S,) of each site; NaN if it is beyond the computed curves, in any frame."""
        return self._mean("sites")[SITE_FIGURES.index("pka")]

    @cached_property
    def pka_error(self) -> Floats:
        """The standard errors (S,) of means over frames; NaN where they are not known."""
        return self._error("sites")[SITE_FIGURES.index("pka")]

    @cached_property
    def row(self) -> dict[str, Any]:
        """The figures that a batch has of it."""
        return {"sites": len(self.labels), "isoelectric_point": self.isoelectric,
                **dict(zip(self.labels, self.pka.tolist(), strict=True))}

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        columns, net, solvent = self.table(), self.moments, self.solvent
        sites = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return super().entries() | {
            "sites": sites, "frames": self.merged.count, "ph": self.ph, "protonated": self.protonated.T,
            "protonated_error": self._error("protonated").T, "errors": self._mean("errors"),
            "net_charge": net[0], "dipole": net[1], "isoelectric_point": self.isoelectric,
            "asymmetry": float(self._mean("asymmetry")), "map_ph": self.map_ph,
            "inside": solvent.inside, "salt": solvent.salt, "temperature": solvent.temperature,
            "spacing": solvent.spacing, "engine": self.engine, "seconds": self.seconds,
            "prepared": self.titrated.prepared.summary()}

    def shown(self) -> dict[str, Any]:
        """Return the objects for viewers and notebooks, by name."""
        names = ["grid", *(f"ph{value:g}" for value in self.map_ph[1:])]  # viewers colour by the first one
        maps = dict(zip(names, self.maps, strict=False))
        return super().shown() | {"structure": self.titrated.structure} | maps

    def text(self) -> Iterator[str | ReportRows]:
        """Yield the table of sites, and the net charge."""
        solvent, frames = self.solvent, self.merged.count
        yield (f"{count_of(len(self.labels), 'site')}, permittivity {solvent.inside:g} in the protein and "
               f"{solvent.outside:g} around it, {solvent.salt:g} M salt, ion radius {solvent.ion_radius:g} A, "
               f"{solvent.temperature:g} K"
               + (f", means over {frames} frames" if frames > 1 else ""))
        yield ("site          model  intrinsic  desolvation  background    pKa  slope  error"
               + ("  of the mean  deviation" if frames > 1 else ""))
        columns, first = self.table(), self.curves[0]

        def of_frames(n: int) -> str:
            return f" {_number(self.pka_error[n]):>12} {_number(columns['deviation'][n]):>10}" if frames > 1 else ""

        def line(n: int) -> str:
            model, intrinsic, desolvation, background, slope, error = (
                columns[name][n] for name in ("model_pka", "intrinsic_pka", "desolvation", "background", "slope",
                                              "error"))
            return (f"{self.labels[n]:12} {model:6.2f} {intrinsic:10.2f} {desolvation:12.2f} {background:11.2f} "
                    f"{_shown(self.pka[n], first[n]):>6} {slope:6.2f} {error:6.2f}{of_frames(n)}")

        yield ReportRows(line, range(len(self.labels)), len(self.labels))
        if len(self.ph) == 1:
            shares = zip(self.labels, self.protonated[0].tolist(), strict=True)
            partly = ", ".join(f"{label} {share:.2f}" for label, share in shares if 0.01 < share < 0.99)
            yield f"partly protonated at pH {self.ph[0]:g}: {partly or 'no site'}"
        for ph, charge, dipole in list(zip(self.ph, *self.moments, strict=True))[:: max(1, len(self.ph) - 1)]:
            yield f"pH {ph:g}: net charge {charge:+.2f} e, dipole moment {dipole:.0f} D about the centre"
        if np.isfinite(point := self.isoelectric):
            yield f"isoelectric point {point:.2f}"
        if frames > 1:
            sites = self.merged["sites"]
            yield ("the error of the mean is its standard error over frames, the deviation that of single frames; a "
                   "pKa that is beyond the curves in a frame has no mean"
                   if sites.uncertainty() is not None else sites.too_short())
        yield ("errors are those of the lattice and of Monte Carlo; the structure is rigid, and pKa values typically "
               "differ from measured ones by 0.5 to 1")
        yield f"{self.seconds:.2f} s on the {self.engine} engine"

    def table(self) -> dict[str, Sequence[Any]]:
        """Return a row for each site."""
        figures = dict(zip(SITE_FIGURES, self._mean("sites").tolist(), strict=True))
        result = {"site": self.labels, "group": self._groups,
                  "model_pka": [site.model_pka for site in self.titrated.sites], **figures}
        if self.merged.count > 1:
            sites, at = self.merged["sites"], SITE_FIGURES.index("pka")
            known = sites.uncertainty()
            nothing = np.full(len(self.labels), np.nan)
            result |= {"standard_error": self.pka_error.tolist(),
                       "interval": (nothing if known is None else known.interval[at]).tolist(),
                       "deviation": sites.deviation()[at].tolist()}
        return result

    def curve_table(self) -> TableColumns:
        """Return a row for each pH: net charge, dipole moment, and the fraction of each site with its proton."""
        net, dipole = self.moments
        result = {"ph": self.ph, "net_charge": net, "dipole": dipole,
                  **dict(zip(self.labels, self.protonated.T, strict=True))}
        if self.merged.count > 1:
            net, dipole = self._error("moments")
            result |= {"net_charge error": net, "dipole error": dipole,
                       **{f"{label} error": error for label, error in zip(
                           self.labels, self._error("protonated").T, strict=True)}}
        return result

    def plot(self, ax: Axes) -> Axes:
        """Draw the titration curves, with their standard errors over frames as bands."""
        draw_curves(ax, PH[DRAWN], self.curves[DRAWN], self._groups, self._bands).legend()
        return ax

    def draw(self) -> Figure:
        """Return the titration curves, and below them the net charge."""
        return titration_figure(PH[DRAWN], self.curves[DRAWN], self._groups, self._mean("net")[DRAWN],
                                float(self.ph[0]) if len(self.ph) == 1 else None, self._bands)

    @property
    def _bands(self) -> Floats | None:
        return np.nan_to_num(self._error("curves")[DRAWN]) if self.merged.count > 1 else None

    @property
    def _groups(self) -> Sequence[str]:
        return [site.group for site in self.titrated.sites]


def _number(value: float) -> str:
    return f"{value:.2f}" if np.isfinite(value) else "-"


def _shown(value: float, first: float) -> str:
    """Return a pKa, or how it is beyond all curves; `first` is the fraction of protonated sites at the lowest pH."""
    if np.isfinite(value):
        return f"{value:.2f}"
    return f"<{PH[0]:g}" if first < 0.5 else f">{PH[-1]:g}"


command = Command.of(titrate, examples=(
    "titrate entry.pdb --spacing 1.5 --figure curves.png",
    "titrate entry.pdb --salt 0.15 --inside 8 --spacing 2 --map-ph 4,7 --maps maps.dx -o sites.csv --curves curves.csv",
), python="""\
>>> structure = vp.read_structure("data/1hvr.pdb.gz")
>>> found = vp.titrate(structure.part(structure.residue_names != "XK2"), spacing=1.5)
>>> found.to_dataframe().columns[0]
'site'""")
