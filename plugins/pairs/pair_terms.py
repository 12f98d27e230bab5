"""Pair potentials: sums of interactions whose parameters follow from those of the two atoms.

A :class:`PairPotential` is a sum of terms. A term is an interaction, whose uniform parameters are bound, and a
:class:`CombinationRule` that combines the parameters of two atoms: the product of two charges as the factor of a
potential, coefficients by the geometric or the Lorentz-Berthelot rule, or from a table of types. All terms are traced
together into one program of the distance and both atoms, which an engine runs for every pair::

    E = sum of terms,    force on i = slope (x_i - x_j),    slope = -1/r dE/dr = -2 dE/d(r^2)

Energies are in kcal/mol and lengths in A; charges come as sqrt(C) q with the Coulomb constant C of that unit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from vmdpotential.errors import UsageError
from vmdpotential.interactions import Bound, Interaction
from vmdpotential.interactions.derivative import differentiate_trace
from vmdpotential.interactions.program import TracedProgram, evaluate_all, run_program
from vmdpotential.interactions.tracing import RecordingBackEnd, Scalar, TracedNode, linear_program

from . import lennard_jones


@dataclass(frozen=True, eq=False)
class CombinationRule:
    """Combination rule: how the parameters of a pair follow from those of its atoms.

    Parameters
    ----------
    name : str
    atoms : mapping
        Parameters of an atom, and the power of length in their units.
    pair : mapping
        Parameters in a table for the types of both atoms, and the power of length in their units.
    combine : callable
        ``combine(i, j, pair)`` returns the parameters of the pair by name; ``weight`` multiplies the interaction, and
        the names in :data:`MORE` are optional.
    """

    name: str
    atoms: Mapping[str, float]
    pair: Mapping[str, float]
    combine: Callable[[Any, Any, Any], dict[str, Scalar]]


#: Names that a rule may return in addition to the parameters of an interaction, which uses them where that is faster.
MORE = {"weight", "rmin", "depth"}


def _lorentz_berthelot(i: Any, j: Any, pair: Any) -> dict[str, Scalar]:
    """Return a6 = 12 eps rmin^6, a12 = a6 rmin^6, rmin (arithmetic mean) and depth = 12 eps (geometric mean)."""
    rmin, depth = i.half_rmin + j.half_rmin, i.root_depth * j.root_depth
    six = (rmin * rmin) ** 3
    a6 = depth * six
    return {"a6": a6, "a12": a6 * six, "rmin": rmin, "depth": depth}


# named functions, as rules are pickled and sent to other processes


def _charges(i: Any, j: Any, pair: Any) -> dict[str, Scalar]:
    return {"weight": i.charge * j.charge}


def _geometric(i: Any, j: Any, pair: Any) -> dict[str, Scalar]:
    return {"a6": i.root_a6 * j.root_a6, "a12": i.root_a12 * j.root_a12}


def _looked_up(names: Sequence[str], i: Any, j: Any, pair: Any) -> dict[str, Scalar]:
    return {name: getattr(pair, name) for name in names}


#: Charges, sqrt(kcal/mol A).
CHARGES_RULE = CombinationRule("charges", {"charge": 0.5}, {}, _charges)
#: a6 and a12 are products of the atoms' square roots of them.
GEOMETRIC_RULE = CombinationRule("geometric", {"root_a6": 3, "root_a12": 6}, {}, _geometric)
#: Half of the distance of the minimum (A), and sqrt(12 epsilon).
LORENTZ_BERTHELOT = CombinationRule("lorentz-berthelot", {"half_rmin": 1, "root_depth": 0}, {}, _lorentz_berthelot)


def table_rule(interaction: Interaction) -> CombinationRule:
    """Return the rule that looks up the parameters of a pair by the types of both atoms."""
    return CombinationRule("table", {}, interaction.pair, partial(_looked_up, tuple(interaction.pair)))


#: Lennard-Jones' a6 and a12 from a table.
TABLE_RULE = table_rule(lennard_jones.INTERACTION)


@dataclass(frozen=True, eq=False)
class PairTerm:
    """One interaction of a pair potential: its name in results, the interaction, and the rule for its pairs."""

    name: str
    bound: Bound
    rule: CombinationRule

    def __post_init__(self) -> None:
        interaction = self.bound.interaction
        combined = {*self.rule.combine(_names(self.rule.atoms), _names(self.rule.atoms), _names(self.rule.pair))}
        if combined - MORE != set(interaction.pair):
            raise UsageError(
                "interaction", f"needs {', '.join(interaction.pair) or 'no parameters'} of a pair, and the rule "
                f"{self.rule.name} returns {', '.join(sorted(combined - MORE)) or 'none'}", value=interaction.name)

    def value(self, radial: Callable[..., Scalar], r2: Scalar, rinv: Scalar, i: Any, j: Any, pair: Any,
              uniform: Mapping[str, Scalar]) -> Scalar:
        """Return the value of `radial` for a pair, with the parameters that the rule combines."""
        parameters = self.rule.combine(i, j, pair)
        weight = parameters.pop("weight", None)
        result = radial(r2, rinv, SimpleNamespace(**uniform, **parameters))
        return result if weight is None else result * weight


def _names(names: Mapping[str, float], prefix: str = "") -> SimpleNamespace:
    """Return an object that has a new input as the attribute of each name."""
    return SimpleNamespace(**{n: TracedNode("input", prefix + n) for n in names})


@dataclass(frozen=True, eq=False)
class PairPotential:
    """A sum of terms with one cutoff.

    Parameters
    ----------
    terms : sequence of Term
    """

    terms: tuple[PairTerm, ...]

    def __post_init__(self) -> None:
        if len({term.bound.cutoff for term in self.terms}) != 1:
            raise UsageError("cutoff", "all terms of a pair potential need the same cutoff")

    @property
    def cutoff(self) -> float | None:
        """Distance beyond which all terms are zero, A; None if there is none."""
        return self.terms[0].bound.cutoff

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the terms, in the order of energies."""
        return tuple(term.name for term in self.terms)

    @property
    def atoms(self) -> dict[str, float]:
        """Parameters of an atom that the terms need, and the power of length in their units."""
        return {name: power for term in self.terms for name, power in term.rule.atoms.items()}

    @property
    def tables(self) -> dict[str, float]:
        """Parameters that are looked up by the types of two atoms, and the power of length in their units."""
        return {name: power for term in self.terms for name, power in term.rule.pair.items()}

    @property
    def corrects_excluded(self) -> bool:
        """Whether excluded pairs contribute."""
        return any(term.bound.interaction.excluded for term in self.terms)

    def scaled(self, outputs: Sequence[str] = ("slope",), length: float = 1.0, excluded: bool = False) -> ScaledPairs:
        """Return the program for an engine.

        Parameters
        ----------
        outputs : sequence of str
            Results of the program, in this order: ``slope`` (-1/r dE/dr of all terms), ``energy`` (one result for
            each term).
        length : float, A
            The unit of distances.
        excluded : bool
            Whether the program is for excluded pairs.

        Raises
        ------
        UsageError
            When an interaction contains a length as a plain number instead of a parameter with a unit, or a rule has
            parameters of only one of two atoms.
        """
        return _scaled(self, tuple(outputs), length, excluded)


@dataclass(frozen=True)
class ScaledPairs:
    """A pair potential as engines need it: a program in their own unit of length.

    Parameters
    ----------
    program : Program
        Program with the inputs ``r2``, ``rinv``, ``i.name``, ``j.name`` and ``pair.name``.
    values : tuple of float
        Uniform parameters, in the program's order.
    length : float, A
        The unit of length: the parameters of atoms must be divided by length^power, and resulting slopes by length^2.
        Energies are in kcal/mol.
    cutoff2 : float
        Square of the cutoff in that unit; infinite without a cutoff.
    """

    program: TracedProgram
    values: tuple[float, ...]
    length: float
    cutoff2: float


def _nothing(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    return 0.0


def _slope(term: PairTerm, radial: Callable[..., Scalar], written: Callable[..., Scalar] | None,
           leaves: tuple[Any, Any, Any], uniform: Mapping[str, Scalar]) -> Scalar:
    """Return -2 d/d(r^2) of a function of a term, from the slope that the interaction provides, if any."""
    i, j, pair = leaves
    r2, rinv = TracedNode("input", "r2"), TracedNode("input", "rinv")
    if written is not None:
        return term.value(written, r2, rinv, i, j, pair, uniform)
    value = radial(r2, rinv, SimpleNamespace(**uniform, **{n: TracedNode("input", f"of.{n}") for n in
                                                           term.bound.interaction.pair}))
    derivative = differentiate_trace(value, r2, rinv)
    if derivative is None:
        return 0.0
    parameters = term.rule.combine(i, j, pair)
    weight = parameters.pop("weight", None)
    slope = _replaced(derivative * -2.0, {f"of.{n}": v for n, v in parameters.items()})
    return slope if weight is None else slope * weight


def _replaced(value: TracedNode, leaves: Mapping[str, Scalar]) -> TracedNode:
    """Return an expression with other expressions in place of some inputs."""
    program = linear_program([value], [])
    inputs = {step[1]: leaves.get(step[1], TracedNode(step[0], step[1])) for step in program.steps
              if step[0] in ("input", "param")}
    result: TracedNode = run_program(program, RecordingBackEnd(), inputs)[program.results[0]]
    return result


@lru_cache(maxsize=64)
def _scaled(potential: PairPotential, outputs: tuple[str, ...], length: float, excluded: bool) -> ScaledPairs:
    """Return :meth:`PairPotential.scaled`; kept, as tracing takes time."""
    leaves = (_names(potential.atoms, "i."), _names(potential.atoms, "j."), _names(potential.tables, "pair."))
    r2, rinv = TracedNode("input", "r2"), TracedNode("input", "rinv")
    energies: list[Scalar] = []
    total: Scalar = 0.0
    values: dict[str, float] = {}
    for term in potential.terms:
        page = term.bound.interaction
        uniform = {q.name: TracedNode("param", f"{term.name}.{q.name}") for q in page.quantities}
        values |= {f"{term.name}.{q.name}": term.bound.values[q.name] / length**q.length_power for q in page.quantities}
        radial, written = ((page.excluded or _nothing, page.excluded_slope) if excluded
                           else (page.radial, page.slope))
        energies.append(term.value(radial, r2, rinv, *leaves, uniform))
        total = total + _slope(term, radial, written, leaves, uniform)
    results: list[Scalar] = []
    for output in outputs:
        results += energies if output == "energy" else [total]
    scaled = ScaledPairs(linear_program(results, list(values)), tuple(values.values()), length,
                         np.inf if potential.cutoff is None else (potential.cutoff / length) ** 2)
    mine, its = ({name[2:] for name in scaled.program.inputs if name[:2] == side} for side in ("i.", "j."))
    if mine != its:
        raise UsageError("interaction", f"depends on {', '.join(sorted(mine ^ its))} of only one of two atoms, and the "
                         "forces on both have to be opposite", value=", ".join(potential.names))
    if length != 1:
        _require_units(potential, scaled, outputs, excluded)
    return scaled


def _require_units(potential: PairPotential, scaled: ScaledPairs, outputs: tuple[str, ...], excluded: bool) -> None:
    """Raise UsageError if a program in other units has other results, as a plain number in it is a length."""
    natural = _scaled(potential, outputs, 1.0, excluded)
    powers = {f"{side}.{name}": power for side in "ij" for name, power in potential.atoms.items()}
    powers |= {f"pair.{name}": power for name, power in potential.tables.items()}
    r = np.array([0.11, 0.37, 0.93]) * (potential.cutoff or 10.0)
    there: list[Any] = []
    here: list[Any] = []
    for program, values, length, results in ((natural.program, natural.values, 1.0, here),
                                             (scaled.program, scaled.values, scaled.length, there)):
        x = r / length
        inputs = {name: 1.3 / length**power for name, power in powers.items()}
        results += evaluate_all(program, inputs | dict(zip(program.parameters, values, strict=True))
                                | {"r2": x * x, "rinv": 1 / x})
    units = [2 * (o == "slope") for o in outputs for _ in (potential.terms if o == "energy" else (o,))]
    for a, b, power in zip(there, here, units, strict=True):
        if not np.allclose(a / scaled.length**power, b, rtol=1e-9, atol=0):
            names = ", ".join(term.bound.interaction.name for term in potential.terms)
            raise UsageError("interaction", "contains a length that is not a parameter with a unit",
                             "make it a parameter", value=names)
