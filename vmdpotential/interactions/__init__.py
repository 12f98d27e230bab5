"""Interactions: a module for each, with its definition and reference, parameters, radial function and checks.

Checks are values at some distances that were computed from the definition without this code.

An interaction is the potential of a unit charge (1/A), for maps and pairs, or the energy of two atoms that depends
on parameters of the pair (kcal/mol), for pairs alone (kind ``pair``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from numbers import Real
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential.errors import UsageError
from vmdpotential.interactions.derivative import evaluate_derivative
from vmdpotential.interactions.program import TracedProgram, evaluate_program
from vmdpotential.interactions.tracing import Scalar, trace_radial
from vmdpotential.units import ionic_strength

#: Closest distance, A: an atom nearer to a point contributes the potential at this distance, and no field.
SOFT_CORE = 0.01

if TYPE_CHECKING:
    from vmdpotential.splitting.long_range import LongRange


class Automatic(float):
    """The value of a quantity that is found from the structure, which the word ``auto`` stands for; not a number."""


AUTO = Automatic("nan")


@dataclass(frozen=True)
class Quantity:
    """One parameter of an interaction: name, unit, default, limits and meaning.

    Parameters
    ----------
    name : str
        Name of the attribute in formulas, and key of ``parameters``.
    unit : str
        Unit, in which every length is in A: ``A``, ``1/A^2``.
    default, low, high : float
        Default value and limits.
    description : str
        Text for help and reports.
    automatic : bool
        Whether the value may be :data:`AUTO`, for which it is found.
    ends : bool
        Whether the interaction ends at this distance.

    Examples
    --------
    >>> vp.Quantity("debye_length", "A", 7.85, 0.1, 1e6, "distance over which the potential is screened by 1/e").unit
    'A'
    """

    name: str
    unit: str
    default: float
    low: float
    high: float
    description: str
    automatic: bool = False
    ends: bool = False

    @property
    def length_power(self) -> float:
        """Power of length in the unit, such as 1 for A and -1.5 for 1/A^1.5."""
        unit, sign = (self.unit[2:], -1) if self.unit.startswith("1/") else (self.unit, 1)
        return sign * float(unit.partition("^")[2] or 1) if unit.startswith("A") else 0


def is_automatic(value: object) -> bool:
    """Return whether a value is :data:`AUTO`, or the word for it."""
    return value == "auto" or isinstance(value, Automatic)


def complete_parameters(quantities: Sequence[Quantity], values: Mapping[str, float], owner: str) -> dict[str, float]:
    """Return the values of all parameters; those not given take their defaults.

    Raises
    ------
    UsageError
        For an unknown parameter or one outside its limits; `owner` names what they are parameters of.
    """
    for name in values:
        if name not in {q.name for q in quantities}:
            has = ", ".join(q.name for q in quantities) or "none"
            raise UsageError(name, f"{owner} has no such parameter; it has {has}")
    result: dict[str, float] = {}
    for quantity in quantities:
        given = values.get(quantity.name, quantity.default)
        if quantity.automatic and is_automatic(given):
            result[quantity.name] = AUTO
            continue
        if not isinstance(given, Real):
            raise UsageError(quantity.name, f"a number is needed, not {type(given).__name__}", value=str(given))
        value = float(given)
        if not quantity.low <= value <= quantity.high:
            raise UsageError(quantity.name, f"{owner} allows {quantity.low:g} to {quantity.high:g} "
                             f"{quantity.unit}".rstrip(), value=f"{value:g}")
        result[quantity.name] = value
    return result


@dataclass(frozen=True)
class Check:
    """A distance (A) and parameters at which the value (1/A or kcal/mol) is known from the definition."""

    r: float
    value: float
    parameters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Interaction:
    """A pair potential that depends on the distance alone.

    Parameters
    ----------
    name : str
        Name in the registry.
    radial : callable
        ``radial(r2, rinv, p)``, see :mod:`vmdpotential.interactions.tracing`.
    quantities : sequence of Quantity
        Parameters, which are attributes of ``p``.
    compact : bool
        Whether the function itself is zero beyond the cutoff. If not, engines mask it.
    checks : sequence of Check
        Known values, with which ``verify`` and the tests compare.
    pair : mapping
        Parameters of a pair of atoms, which are also attributes of ``p``, and the power of length in their units. If
        there are any, the function is an energy (kcal/mol), not the potential of a charge.
    slope : callable, optional
        ``slope(r2, rinv, p)``, -1/r dV/dr, which gives the force. Provide it if it takes fewer operations than the
        automatic derivative of `radial`, which is used otherwise.
    excluded : callable, optional
        ``excluded(r2, rinv, p)``, the function of excluded pairs: of a potential whose long range is summed over all
        pairs elsewhere, minus that long-range part. Zero unless given.
    excluded_slope : callable, optional
        The slope of `excluded`, as `slope` is that of `radial`.
    medium : str
        Description of the medium for legends and reports: a template that may contain parameters, ``{where}`` (vacuum,
        explicit water, or a dielectric), ``{screening}`` (", no screening" unless in explicit water), ``{dielectric}``,
        and for a Debye length ``{salt}``. The interaction's name unless given.
    splitting : callable, optional
        Function that returns the splittings of the interaction with its parameters set into a short-range part and a
        smooth one, for sums over all images and on meshes (:mod:`vmdpotential.splitting.long_range`). None if it can
        only be summed pair by pair.

    Examples
    --------
    >>> damped = vp.Interaction("damped", lambda r2, rinv, p: rinv / (1 + r2 / (p.length * p.length)),
    ...                         [vp.Quantity("length", "A", 10.0, 0.1, 1000.0, "distance at which half is left")])
    >>> float(damped.bind(length=2.0)(2.0))
    0.25
    """

    name: str
    radial: Callable[[Scalar, Scalar, Any], Scalar]
    quantities: Sequence[Quantity] = ()
    compact: bool = False
    checks: Sequence[Check] = ()
    pair: Mapping[str, float] = field(default_factory=dict)
    slope: Callable[[Scalar, Scalar, Any], Scalar] | None = None
    excluded: Callable[[Scalar, Scalar, Any], Scalar] | None = None
    excluded_slope: Callable[[Scalar, Scalar, Any], Scalar] | None = None
    medium: str = ""
    splitting: Callable[[Bound], LongRange] | None = None

    @property
    def cutoff(self) -> str:
        """Name of the parameter at which the interaction ends; empty if it has none."""
        return next((quantity.name for quantity in self.quantities if quantity.ends), "")

    def bind(self, **values: float) -> Bound:
        """Return the interaction with its parameters set; those not given take their defaults.

        Raises
        ------
        UsageError
            For an unknown parameter or one outside its limits.
        """
        return Bound(self, complete_parameters(self.quantities, values, f"the interaction {self.name}"))


@dataclass(frozen=True, eq=False)
class Bound:
    """An interaction with the values of its parameters, and the distance at which it is truncated, if any."""

    interaction: Interaction
    values: Mapping[str, float]
    end: float | None = None

    @property
    def cutoff(self) -> float | None:
        """Distance beyond which the interaction is zero, A; None if there is none."""
        name = self.interaction.cutoff
        return self.values[name] if name else self.end

    @property
    def decay(self) -> float | None:
        """Debye length of an interaction that falls as exp(-r / decay) / r, A; None for others."""
        return self.values.get("debye_length")

    @property
    def masked(self) -> bool:
        """Whether engines must leave out pairs beyond the cutoff."""
        return self.cutoff is not None and not self.interaction.compact

    def truncated(self, end: float) -> Bound:
        """Return the interaction cut off at `end` A, without a shift.

        Raises
        ------
        UsageError
            When it has a cutoff of its own, or `end` is not a positive number.
        """
        if self.interaction.cutoff or not 0 < end < np.inf:
            raise UsageError("cutoff", f"{self.interaction.name} cannot be truncated there", value=f"{end:g}")
        return replace(self, end=end)

    def __call__(self, r: ArrayLike, **pair: ArrayLike) -> NDArray[np.float64]:
        """Return the potential of a unit charge (1/A) at distances r (A) in float64, the reference for engines.

        An interaction with parameters of pairs returns an energy (kcal/mol).
        """
        r = np.asarray(r, np.float64)
        result = np.asarray(self.interaction.radial(r * r, 1 / r, SimpleNamespace(**self.values, **pair)), np.float64)
        return result if self.cutoff is None else np.where(r < self.cutoff, result, 0.0)

    def derivative(self, r: ArrayLike) -> NDArray[np.float64]:
        """Return dV/dr (1/A^2) at distances r (A) in float64, the reference for fields."""
        r = np.asarray(r, np.float64)
        program, factor = trace_radial(self.interaction.radial, list(self.values))
        by_r2 = evaluate_derivative(program, {**self.values, "r2": r * r, "rinv": 1 / r})
        result = np.asarray(2 * r * by_r2 * evaluate_program(factor, self.values), np.float64)
        return result if self.cutoff is None else np.where(r < self.cutoff, result, 0.0)

    def scaled(self, length: float = 1.0) -> ScaledInteraction:
        """Return the interaction with all lengths in units of `length` (A).

        A potential in 1/A is homogeneous in all lengths: it is divided by the unit in which r and every
        parameter are measured.

        Raises
        ------
        UsageError
            When the radial function is not homogeneous, because it contains a length as a plain
            number instead of a parameter with a unit.
        """
        return _scaled(self.interaction, tuple(self.values.items()), self.end, length)

    def medium(self, dielectric: float, temperature: float, water: bool = False) -> str:
        """Return a description of the medium for a permittivity, K, and with `water` if water is among the charges."""
        where = f"dielectric {dielectric:g}" if dielectric != 1 else "explicit water" if water else "vacuum"
        words: dict[str, Any] = {**self.values, "dielectric": dielectric, "where": where,
                                 "screening": "" if water and dielectric == 1 else ", no screening"}
        if self.decay is not None:
            words["salt"] = ionic_strength(self.decay, temperature, dielectric)
        return (self.interaction.medium or f"{{where}}, {self.interaction.name}").format_map(words)

    def __str__(self) -> str:
        values = [f"{q.name} {self.values[q.name]:g} {q.unit}".strip() for q in self.interaction.quantities]
        if self.end is not None:
            values.append(f"truncated at {self.end:g} A")
        return self.interaction.name + (f" ({', '.join(values)})" if values else "")


@dataclass(frozen=True)
class ScaledInteraction:
    """An interaction as engines need it: a program in their own unit of length.

    Parameters
    ----------
    program : Program
        The varying part of the radial function.
    values : tuple of float
        Parameters, in the program's order.
    factor : float, 1/A
        Factor by which sums of the program are multiplied.
    length : float, A
        The unit of length.
    cutoff : float or None
        The cutoff in units of `length`.
    """

    program: TracedProgram
    values: tuple[float, ...]
    factor: float
    length: float
    cutoff: float | None


@lru_cache(maxsize=256)
def _scaled(interaction: Interaction, parameters: tuple[tuple[str, float], ...], end: float | None,
            length: float) -> ScaledInteraction:
    """Return :meth:`Bound.scaled`; kept, as tracing takes as long as a small map."""
    bound = Bound(interaction, dict(parameters), end)
    values = {q.name: bound.values[q.name] / length**q.length_power for q in interaction.quantities}
    program, factor = trace_radial(interaction.radial, list(values))
    r = np.array([0.11, 0.37, 0.93]) * (bound.cutoff or 10.0)
    x = r / length
    there = evaluate_program(program, values | {"r2": x * x, "rinv": 1 / x}) * evaluate_program(factor, values) / length
    if not np.allclose(there, bound(r), rtol=1e-9, atol=0):
        raise UsageError(
            "interaction", "contains a length that is not a parameter with a unit", "make it a parameter",
            value=interaction.name,
        )
    return ScaledInteraction(program, tuple(values.values()), float(evaluate_program(factor, values)) / length, length,
                  None if bound.cutoff is None else bound.cutoff / length)
