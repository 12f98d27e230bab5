"""Options of maps and other sums of potentials: points, atoms, medium and summation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from vmdpotential import registry
from vmdpotential.interactions.gaussian import ewald_factor
from vmdpotential.interactions.screened_coulomb import WATER_PERMITTIVITY
from vmdpotential.maps.medium import DEFAULT_MEDIUM, MEDIUM_HELP, MEDIUM_KINDS, Medium
from vmdpotential.molecule.radii import RADII_CHOICES
from vmdpotential.molecule.selection import Selection
from vmdpotential.parameters import CheckedOptions, Option, document_options, parse_numbers_or_auto
from vmdpotential.sums.potential_sum import PRECISIONS
from vmdpotential.units import DEFAULT_TEMPERATURE, MAX_SALT, POTENTIAL_UNITS

if TYPE_CHECKING:
    from vmdpotential.maps.solver import ContinuumSolver
    from vmdpotential.sums import Method, PotentialMethod

#: Default cutoff distance, A, of interactions that have one.
DEFAULT_CUTOFF = 12.0

#: Default tolerance of methods that are not exact.
DEFAULT_TOLERANCE = 1e-4

#: Smallest tolerance; below it, the rounding of single-precision values matters.
LEAST_TOLERANCE = 1e-6


def registered_choices(*kinds: str, listed: bool = False) -> Sequence[str]:
    """Return ``auto`` and the registered names of kinds; with `listed`, only those that help texts list."""
    return ("auto", *(name for kind in kinds for name in (registry.listed if listed else registry.known)(kind)))


def named_method(name: str) -> PotentialMethod[Any] | None:
    """Return the method of sums or the solver of a name; None for ``auto``."""
    method: PotentialMethod[Any] | None = None if name == "auto" else registry.get(
        "solver" if name in registry.known("solver") else "method", name)
    return method


def parse_smear(text: str) -> float:
    """Return a standard deviation in A from a text such as ``2.83``, or ``0.25/A`` for an Ewald factor.

    Raises
    ------
    ValueError
        For other texts.
    """
    number, slash, unit = text.partition("/")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not (value >= 0 and unit.strip() == ("A" if slash else "") and (value > 0 or not slash)):
        raise ValueError("a distance in A is needed, or an Ewald factor with its unit, such as 0.25/A")
    return ewald_factor(value) if slash else value


Boundary = Annotated[str, Option(
    "boundary condition: open (no periodic images) or periodic (all images); auto is periodic if the atoms fill the "
    "cell",
    choices=("auto", "open", "periodic"), heading="method and accuracy")]
Engine = Annotated[str, Option(
    "compute engine: cpu, cuda, or auto for a GPU if there is one", choices=partial(registered_choices, "engine"),
    heading="execution", role="engine")]
Unit = Annotated[str, Option("unit of the potential", choices=POTENTIAL_UNITS, heading="output")]
Spacing = Annotated[float, Option(
    "largest distance between grid points; in a periodic cell it is reduced until it divides the cell's lengths",
    unit="A", low=0.01, high=100, heading="main options")]
Tolerance = Annotated[float | None, Option(
    "largest rms error relative to the rms potential, at all test points and at those far from charges; 1e-4 unless "
    "given. Exact methods ignore it. If it is given, the method pb refines its grid until the errors outside the "
    "molecule and at its surface are smaller", low=LEAST_TOLERANCE, high=0.1, heading="method and accuracy")]


@dataclass(frozen=True, kw_only=True)
class AtomOptions(CheckedOptions):
    """Atoms that contribute charges; Python functions take a mask or indices as well as a selection."""

    atoms: Annotated[Selection | None, Option(
        "atoms whose charges contribute; unless given, the solute (without free ions), or all in the medium explicit: "
        "all, solute, protein, water ..., or a selection: a CID such as //A/10-20, an "
        "expression such as 'protein and resid 1:100', or group NAME of an index file; it is evaluated once, on the "
        "structure",
        metavar="all|solute|protein|SEL", heading="main options", selection=True)] = None
    sources: Annotated[Selection | None, Option(
        "atoms whose charges contribute in a continuum (pb), where the other atoms are uncharged but part of the "
        "molecule; all unless given", metavar="SEL", selection=True, heading="medium")] = None


@dataclass(frozen=True, kw_only=True)
class GridOptions(CheckedOptions):
    """Points of a map: their spacing, and the margin around the atoms."""

    spacing: Spacing = 0.5
    padding: Annotated[float, Option(
        "margin of the grid around the atoms, in an open boundary", unit="A", low=0, high=1000, heading="grid")] = 10.0


@dataclass(frozen=True, kw_only=True)
class MediumOptions(CheckedOptions):
    """Medium of the charges, described by the options of commands or, in Python, by a `medium`."""

    screened: Annotated[float | None, Option(
        "concentration of a 1:1 salt in the water that surrounds the charges, in the medium screened or by the method "
        "pb (0.15 unless given); if neither is chosen, it implies screened",
        unit="M", low=0, high=MAX_SALT, metavar="SALT", aliases=("ionic_strength",), heading="main options")] = None
    temperature: Annotated[float, Option(
        "temperature of the medium, and of kT in the unit kT/e", unit="K", above=0, high=1e6,
        heading="medium")] = DEFAULT_TEMPERATURE
    dielectric: Annotated[float | None, Option(
        f"relative permittivity of the medium; unless given, {WATER_PERMITTIVITY:g} with salt or in a continuum, and 1 "
        "otherwise",
        above=0, high=1e6, aliases=("dielectric_constant",), heading="medium")] = None
    medium: str | Medium | None = None

    #: Whether the medium may be one of :data:`MEDIUM_KINDS`, as that of a map.
    takes_words: ClassVar[bool] = False

    def as_sum(self) -> SumOptions:
        """Return the options of a sum in this medium, without options that only other classes have."""
        return SumOptions(**{item.name: getattr(self, item.name) for item in fields(MediumOptions)})


@dataclass(frozen=True, kw_only=True)
class MethodOptions(MediumOptions):
    """Summation method, and the parameters and radii for methods that need them, such as pb."""

    method: Annotated[str, Option(
        "summation method; auto chooses the fastest that keeps the tolerance",
        choices=partial(registered_choices, "method", "solver"),
        listed=partial(registered_choices, "method", "solver", listed=True), heading="method and accuracy")] = "auto"
    parameters: Annotated[Mapping[str, float] | None, Option(
        "parameters of the interaction, such as debye_length=8, or of the method: of pb inside, probe (A), ion_radius "
        "(A), nonlinear, gaussian, membrane (A, or auto), membrane_centre (A), membrane_inside, pores (A), voltage (V) "
        "and ions by name and molarity, such as Mg2+=0.1,Cl-=0.2", name="set",
        aliases=("interaction_params",),
        metavar="NAME=NUMBER,...", parse=parse_numbers_or_auto, heading="method and accuracy")] = None
    radii: Annotated[str, Option(
        "atomic radii for the method pb. auto: those of the file (PQR, prmtop), or if it has none those of mbondi2, "
        "with the van der Waals radius of elements that mbondi2 lacks; bondi, mbondi2 or parse: this set",
        choices=RADII_CHOICES, heading="medium")] = "auto"

    def as_sum(self) -> SumOptions:
        """Return the options of a sum in this medium, by the method if that is a solver."""
        if self.solver is None:
            return super().as_sum()
        return SumOptions(**{item.name: getattr(self, item.name) for item in fields(MethodOptions)})

    @property
    def sets_interaction(self) -> bool:
        """Whether the interaction is given by options, and not by the medium."""
        return False

    @property
    def summation(self) -> str:
        """Name of the method, which may follow from the medium, or ``auto``."""
        own = self.medium.method if isinstance(self.medium, Medium) else ""
        return own if self.method == "auto" and own else self.method

    @property
    def solver(self) -> ContinuumSolver | None:
        """The solver for a continuum that the method names; None for sums over charges."""
        solver: ContinuumSolver | None = registry.get("solver", self.summation) if self.summation in registry.known(
            "solver") else None
        return solver

    @property
    def methods(self) -> list[Method]:
        """Methods of sums to choose from: the named one, or all; none for a continuum."""
        names = registry.available("method") if self.summation == "auto" else [self.summation]
        return [] if self.solver else [registry.get("method", name) for name in names]


@dataclass(frozen=True, kw_only=True)
class SumOptions(MethodOptions):
    """Options of the sum of a potential: method, boundary, interaction and accuracy."""

    boundary: Boundary = "auto"
    cutoff: Annotated[float | None, Option(
        f"cutoff distance of the method cutoff, and of interactions that have one; {DEFAULT_CUTOFF:g} unless given",
        unit="A", low=0.5, high=1000, heading="method and accuracy")] = None
    algorithm: Annotated[str, Option(
        "algorithm of the method cutoff: pair (exact), mesh (within the tolerance), or auto (the faster of both)",
        choices=("pair", "mesh", "auto"), heading="method and accuracy")] = "pair"
    interaction: Annotated[str, Option(
        "interaction: the potential of one charge as a function of distance; auto is the one of the method",
        choices=partial(registered_choices, "interaction"), heading="method and accuracy")] = "auto"
    smear: Annotated[float, Option(
        "width (standard deviation) of Gaussian charges, such as 2.8, or the Ewald factor 1 / (sqrt(2) width) of VMD's "
        "PMEPot with its unit, such as 0.25/A; 0 for point charges", unit="A", low=0, high=1000, metavar="A|B/A",
        parse=parse_smear, heading="method and accuracy")] = 0.0
    tolerance: Tolerance = None
    precision: Annotated[str, Option(
        "floating-point precision of the sums; with method auto, double if the tolerance requires it",
        choices=PRECISIONS, heading="method and accuracy")] = "single"
    engine: Engine = "auto"

    def as_sum(self) -> SumOptions:
        """Return these options."""
        return self

    @property
    def sets_interaction(self) -> bool:
        """Whether the interaction is given by options, and not by the medium."""
        return bool(self.interaction != "auto" or self.smear or self.parameters)


@document_options
@dataclass(frozen=True, kw_only=True)
class MapOptions(SumOptions, GridOptions, AtomOptions):
    """All options of a potential map.

    Parameters
    ----------
    **keywords

    Examples
    --------
    >>> options = vp.MapOptions(atoms="protein", spacing=2.0, screened=0.15)
    >>> structure = vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz")
    >>> vp.potential_map(structure, options).unit
    'kT/e'
    """

    medium: Annotated[str | Medium | None, Option(
        f"{MEDIUM_HELP}{DEFAULT_MEDIUM}", choices=MEDIUM_KINDS, front=True, role="medium")] = None
    unit: Unit = "kT/e"

    #: Medium of maps unless options imply another one.
    default_medium: ClassVar[str] = DEFAULT_MEDIUM
    takes_words = True

    @property
    def word(self) -> str:
        """Word for the medium, where it is known."""
        return self.medium.kind if isinstance(self.medium, Medium) else str(self.medium)

    @property
    def chosen(self) -> Selection:
        """Atoms of a map whose medium is known."""
        assert self.atoms is not None
        return self.atoms
