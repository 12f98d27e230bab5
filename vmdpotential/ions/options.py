"""Options of the placement of ions in a solvated structure: kinds, numbers and sites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from vmdpotential.engines import Engine
from vmdpotential.ions.counts import COUNT_METHODS, parse_list
from vmdpotential.ions.edit import CONVENTIONS
from vmdpotential.ions.montecarlo import SWEEPS
from vmdpotential.ions.salts import parse_salt
from vmdpotential.ions.sites import SITE_METHODS, TOLERANCE
from vmdpotential.maps.options import LEAST_TOLERANCE, choices
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Option
from vmdpotential.units import DEFAULT_TEMPERATURE


@dataclass(frozen=True, kw_only=True)
class IonOptions:
    """All options of the placement of ions, see :func:`~vmdpotential.ions.place.place_ions`."""

    cation: Annotated[str, Option(
        "positive ion, in any program's name (SOD, Na+, MG); auto is SOD, or the salt's", front=True)] = "auto"
    anion: Annotated[str, Option("negative ion (CLA, Cl-); auto is CLA, or the salt's", front=True)] = "auto"
    neutralize: Annotated[bool, Option("compensate the net charge", front=True)] = True
    concentration: Annotated[float, Option(
        "concentration of salt in addition to neutralising ions", unit="mol/L", low=0, high=10, front=True)] = 0.0
    salt: Annotated[Mapping[str, float] | None, Option(
        "composition of the salt by fractions of formula units, such as NaCl:0.7,KCl:0.2,MgCl2:0.1; cation and anion "
        "then only neutralise",
        metavar="FORMULA:FRACTION,...", parse=parse_salt)] = None
    count: Annotated[str, Option(
        "how the number of salt ions follows from the concentration: add after neutralising, SLTCAP, or SPLIT",
        choices=COUNT_METHODS)] = "add"
    count_existing: Annotated[bool, Option(
        "count ions already in the structure as part of the salt")] = True
    ions: Annotated[Mapping[str, int] | None, Option(
        "exactly these ions instead, such as SOD=11,CLA=2", metavar="NAME=N,...", parse=parse_list)] = None
    site: Annotated[str, Option(
        "waters that ions replace: those with the most favourable potential, random ones, or a sample of the Boltzmann "
        "distribution (monte-carlo)",
        choices=SITE_METHODS)] = "potential"
    from_solute: Annotated[float, Option(
        "least distance to solute atoms", unit="A", low=0, high=1000, aliases=("solute_distance",))] = 5.0
    between: Annotated[float, Option(
        "least distance between ions", unit="A", low=0, high=1000, aliases=("ion_distance",))] = 5.0
    seed: Annotated[int | None, Option(
        "seed of the random numbers for random sites and monte-carlo; chosen and reported unless given", low=0)] = None
    sweeps: Annotated[int, Option("number of Monte Carlo steps for each ion", low=0, high=10**7)] = SWEEPS
    refine: Annotated[bool, Option("move ions to better free sites after all are placed")] = True
    keep: Annotated[str | None, Option(
        "selection of waters that ions must not replace", metavar="SEL", selection=True)] = None
    naming: Annotated[str, Option(
        "naming convention of the ions written; auto is that of the input", choices=CONVENTIONS)] = "auto"
    temperature: Annotated[float, Option(
        "temperature for energies in kT", unit="K", above=0, high=1e6)] = DEFAULT_TEMPERATURE
    dielectric: Annotated[float | None, Option(
        "relative permittivity for energies and monte-carlo; 78.5 with monte-carlo and 1 otherwise, unless given",
        above=0,
        high=1e6, aliases=("dielectric_constant",))] = None
    tolerance: Annotated[float, Option(
        "largest relative rms error of the potential at the sites, measured at 200 of them", low=LEAST_TOLERANCE,
        high=0.1)] = TOLERANCE
    engine: Annotated[str | Engine, Option(
        "compute engine of the potential: cpu, cuda, or auto for a GPU if there is one",
        choices=partial(choices, "engine"))] = "auto"
    templates: Mapping[str, Structure] | None = None
