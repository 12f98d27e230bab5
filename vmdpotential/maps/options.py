"""The options of maps and other sums of potentials: where, in which medium, and how they are summed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

from vmdpotential import registry
from vmdpotential.engines import PRECISIONS
from vmdpotential.interactions.gaussian import ewald_factor
from vmdpotential.interactions.screened_coulomb import WATER
from vmdpotential.maps.medium import Medium
from vmdpotential.molecule.radii import CHOICES
from vmdpotential.molecule.selection import Selection
from vmdpotential.parameters import Option, documented, parse_numbers
from vmdpotential.units import DEFAULT_TEMPERATURE, POTENTIAL_UNITS

if TYPE_CHECKING:
    from vmdpotential.methods import Method

#: A, of interactions that have one, unless asked for otherwise.
CUTOFF = 12.0

#: Of methods that are not exact, unless another is asked for.
TOLERANCE = 1e-4

#: Below this the rounding of single precision values counts.
LEAST_TOLERANCE = 1e-6


def choices(kind: str, listed: bool = False) -> Sequence[str]:
    """Return ``auto`` and the registered names of a kind, or those of them that help lists."""
    return ("auto", *(registry.listed if listed else registry.available)(kind))


def parse_smear(text: str) -> float:
    """Return a standard deviation in A, for ``2.83`` or, by its Ewald factor, ``0.25/A``.

    Raises
    ------
    ValueError
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
    "boundary: open (no images) or periodic (all images); auto is periodic if the atoms fill the cell",
    choices=("auto", "open", "periodic"))]
Engine = Annotated[str, Option(
    "engine that computes: cpu, cuda, or auto for a GPU where there is one", choices=partial(choices, "engine"))]
Unit = Annotated[str, Option("unit of the potential", choices=POTENTIAL_UNITS)]


@dataclass(frozen=True, kw_only=True)
class AtomOptions:
    """Which charges make the potential; a program may give a mask or indices instead of a selection."""

    atoms: Annotated[Selection, Option(
        "atoms whose charges make the potential: all, solute, protein, water ..., or a selection (a CID, an expression"
        " such as 'protein and resid 1:100', or group NAME of an index file), evaluated once, on the structure",
        metavar="all|solute|protein|SEL", front=True, selection=True)] = "all"
    sources: Annotated[Selection | None, Option(
        "atoms whose charges count in a continuum (pb); the others belong to the molecule without charges; all unless "
        "given", metavar="SEL", selection=True)] = None


@dataclass(frozen=True, kw_only=True)
class GridOptions:
    """Where the values of a map are: the spacing of grid points, and the margin around the atoms."""

    spacing: Annotated[float, Option(
        "distance between grid points, at most; in a periodic cell it divides the cell's lengths", unit="A", low=0.01,
        high=100, front=True)] = 0.5
    padding: Annotated[float, Option("margin around the atoms, in an open boundary", unit="A", low=0, high=1000)] = 10.0


@dataclass(frozen=True, kw_only=True)
class MediumOptions:
    """The medium of the charges, by the parameters that commands have; a program may give a `medium` instead."""

    screened: Annotated[float | None, Option(
        "ionic strength of a 1:1 salt, such as 0.15: of the Debye-Hueckel potential in water, or of the solution of "
        "the method pb; unless given, 0.15 for pb and none otherwise", unit="M", low=0, high=10, metavar="SALT",
        aliases=("ionic_strength",))] = None
    temperature: Annotated[float, Option(
        "temperature of the medium, and of kT in units", unit="K", above=0, high=1e6)] = DEFAULT_TEMPERATURE
    dielectric: Annotated[float | None, Option(
        f"relative permittivity of the medium; 1 unless given, or {WATER:g} where it is screened", above=0,
        high=1e6, aliases=("dielectric_constant",))] = None
    medium: Medium | None = None


@dataclass(frozen=True, kw_only=True)
class MethodOptions(MediumOptions):
    """The summation method, and what one that solves for the solution around the charges needs."""

    method: Annotated[str, Option(
        "summation method; auto chooses the fastest that keeps the tolerance",
        choices=partial(choices, "method"), listed=partial(choices, "method", True))] = "auto"
    parameters: Annotated[Mapping[str, float] | None, Option(
        "parameters of the interaction, such as debye_length=8, or of a method that has some (of pb also the ions of "
        "the solution by name and molarity, such as Mg2+=0.1,Cl-=0.2)", name="set", aliases=("interaction_params",),
        metavar="NAME=NUMBER,...", parse=parse_numbers)] = None
    radii: Annotated[str, Option(
        "atomic radii, for the method pb: auto takes those of the file (PQR, prmtop); a set by its name, which PSF and "
        "TPR files and complete PDB files need; or auto+mbondi2: those of the file, else mbondi2, else van der Waals "
        "radii of the elements", choices=CHOICES)] = "auto"

    @property
    def summation(self) -> str:
        """The name of the method, which a medium may determine, or ``auto``."""
        return self.medium.method if self.method == "auto" and self.medium and self.medium.method else self.method

    @property
    def own(self) -> Method | None:
        """The method that is named, where it has parameters of its own."""
        method: Method | None = None if self.summation == "auto" else registry.get("method", self.summation)
        return method if method is not None and method.quantities else None

    @property
    def methods(self) -> list[Method]:
        """The methods there are to choose from: the one that is named, or all that sum charges."""
        if self.summation != "auto":
            return [registry.get("method", self.summation)]
        results: list[Method] = [registry.get("method", name) for name in registry.available("method")]
        return [method for method in results if method.superposes]


@dataclass(frozen=True, kw_only=True)
class SumOptions(MethodOptions):
    """How a potential is summed: method, boundary, interaction and accuracy."""

    boundary: Boundary = "auto"
    cutoff: Annotated[float | None, Option(
        f"cutoff distance of the method cutoff, and of interactions that have one; {CUTOFF:g} unless given", unit="A",
        low=0.5, high=1000)] = None
    algorithm: Annotated[str, Option(
        "how the method cutoff sums: pair by pair, on a mesh to the tolerance, or auto for the faster of both",
        choices=("pair", "mesh", "auto"))] = "pair"
    interaction: Annotated[str, Option(
        "interaction, the potential of one charge as a function of distance; auto is the method's own",
        choices=partial(choices, "interaction"))] = "auto"
    smear: Annotated[float, Option(
        "width (standard deviation) of Gaussian charges, such as 2.8, or the Ewald factor 1 / (sqrt(2) width) of VMD's "
        "PMEPot with its unit, such as 0.25/A; 0 for point charges", unit="A", low=0, high=1000, metavar="A|B/A",
        parse=parse_smear)] = 0.0
    tolerance: Annotated[float | None, Option(
        "largest rms error relative to the rms potential, at all test points and at those far from charges; exact "
        "methods ignore it; 1e-4 unless given. If it is given, the method pb makes its grid finer until its errors "
        "outside the molecule and at its surface are smaller", low=LEAST_TOLERANCE, high=0.1)] = None
    precision: Annotated[str, Option(
        "floating-point precision of the sums; double where auto needs it for the tolerance",
        choices=PRECISIONS)] = "single"
    engine: Engine = "auto"


@documented
@dataclass(frozen=True, kw_only=True)
class MapOptions(SumOptions, GridOptions, AtomOptions):
    """All options of a potential map.

    Parameters
    ----------
    medium : Medium, optional
        Instead of `screened`, `dielectric`, `temperature` and, of a continuum, `method` and `parameters`.
    **keywords

    Examples
    --------
    >>> options = vp.MapOptions(atoms="protein", spacing=2.0, screened=0.15)
    >>> structure = vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz")
    >>> vp.potential_map(structure, options).unit
    'kT/e'
    """

    unit: Unit = "kT/e"
