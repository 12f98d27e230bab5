"""Options of the placement of ions in a solvated structure: kinds, numbers and sites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from vmdpotential.maps.options import LEAST_TOLERANCE, registered_choices
from vmdpotential.molecule.conversions import StructureLike
from vmdpotential.parameters import CheckedOptions, Option
from vmdpotential.units import DEFAULT_TEMPERATURE, MAX_SALT

from .counts import COUNT_METHODS, parse_list
from .edit import NAMING_CONVENTIONS
from .montecarlo import DEFAULT_SWEEPS
from .salts import parse_salt
from .sites import SITE_METHODS, SITE_TOLERANCE


@dataclass(frozen=True, kw_only=True)
class IonOptions(CheckedOptions):
    """All options of the placement of ions, see :func:`~vmdpotential.plugins.ions.place.place_ions`."""

    cation: Annotated[str, Option(
        "positive ion, by its name in any program (SOD, Na+, MG); auto is that of the salt, or else SOD",
        front=True)] = "auto"
    anion: Annotated[str, Option(
        "negative ion, by its name in any program (CLA, Cl-); auto is that of the salt, or else CLA",
        front=True)] = "auto"
    neutralize: Annotated[bool, Option("neutralise the net charge of the system", front=True)] = True
    concentration: Annotated[float, Option(
        "concentration of salt in addition to neutralising ions", unit="mol/L", low=0, high=MAX_SALT, front=True)] = 0.0
    salt: Annotated[Mapping[str, float] | None, Option(
        "composition of the salt by fractions of formula units, such as NaCl:0.7,KCl:0.2,MgCl2:0.1; cation and anion "
        "then only neutralise",
        metavar="FORMULA:FRACTION,...", parse=parse_salt, heading="ions")] = None
    count: Annotated[str, Option(
        "method that computes the number of salt ions from the concentration: add (after neutralising), sltcap or "
        "split (both consider the charge of the solute)",
        choices=COUNT_METHODS, heading="ions")] = "add"
    count_existing: Annotated[bool, Option(
        "count ions that are already in the structure as part of the salt", heading="ions")] = True
    ions: Annotated[Mapping[str, int] | None, Option(
        "exact numbers of ions, such as SOD=11,CLA=2, instead of neutralisation and a concentration",
        metavar="NAME=N,...", parse=parse_list, heading="ions")] = None
    site: Annotated[str, Option(
        "waters that ions replace: those with the most favourable potential, random ones, or a sample of the Boltzmann "
        "distribution (monte-carlo)",
        choices=SITE_METHODS, heading="ions")] = "potential"
    from_solute: Annotated[float, Option(
        "least distance to solute atoms", unit="A", low=0, high=1000, aliases=("solute_distance",),
        heading="ions")] = 5.0
    between: Annotated[float, Option(
        "least distance between ions", unit="A", low=0, high=1000, aliases=("ion_distance",), heading="ions")] = 5.0
    seed: Annotated[int | None, Option(
        "seed of the random numbers for the sites random and monte-carlo; unless given, one is chosen and reported",
        low=0, heading="ions")] = None
    sweeps: Annotated[int, Option(
        "number of Monte Carlo steps for each ion", low=0, high=10**7, heading="ions")] = DEFAULT_SWEEPS
    refine: Annotated[bool, Option("move ions to better free sites after all are placed", heading="ions")] = True
    keep: Annotated[str | None, Option(
        "selection of waters that ions must not replace", metavar="SEL", selection=True, heading="ions")] = None
    naming: Annotated[str, Option(
        "naming convention of the ions written; auto is that of the input", choices=NAMING_CONVENTIONS,
        heading="ions")] = "auto"
    temperature: Annotated[float, Option(
        "temperature of kT, and of the Boltzmann distribution of the sites monte-carlo",
        unit="K", above=0, high=1e6, heading="medium")] = DEFAULT_TEMPERATURE
    dielectric: Annotated[float | None, Option(
        "relative permittivity of the medium in which ion energies are computed; unless given, 78.5 for monte-carlo "
        "and 1 otherwise",
        above=0,
        high=1e6, aliases=("dielectric_constant",), heading="medium")] = None
    tolerance: Annotated[float, Option(
        "largest relative rms error of the potential at the sites, measured at 200 of them", low=LEAST_TOLERANCE,
        high=0.1, heading="method and accuracy")] = SITE_TOLERANCE
    engine: Annotated[str, Option(
        "compute engine of the potential: cpu, cuda, or auto for a GPU if there is one",
        choices=partial(registered_choices, "engine"), heading="execution", role="engine")] = "auto"
    templates: Mapping[str, StructureLike] | None = None
