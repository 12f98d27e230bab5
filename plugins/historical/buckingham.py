"""Buckingham: exponential repulsion and dispersion of two atoms.

Definition, with A in kcal/mol, B in 1/A and C in kcal/mol A^6::

    E(r) = A exp(-B r) - C / r^6

R. A. Buckingham, "The classical equation of state of gaseous helium, neon and argon", Proc. R. Soc. Lond. A 168 (1938)
264-283. It falls to minus infinity at short distances, where it has no meaning.
"""

from typing import Any

from vmdpotential.interactions import Check, Interaction
from vmdpotential.interactions.tracing import Scalar, exp

from ..pairs.pair_terms import CombinationRule


def radial(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return the energy."""
    return p.a * exp(-(p.b * (r2 * rinv))) - p.c * (rinv * rinv) ** 3


def slope(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return -1/r dE/dr = A B exp(-B r) / r - 6 C / r^8."""
    rinv2 = rinv * rinv
    return p.a * p.b * exp(-(p.b * (r2 * rinv))) * rinv - 6.0 * p.c * rinv2**4


INTERACTION = Interaction(
    "buckingham", radial, pair={"a": 0, "b": -1, "c": 6}, slope=slope,
    checks=[Check(2, 1000 * 0.0024787521766663585 - 1, {"a": 1000, "b": 3, "c": 64})],  # exp(-6)
)


def _combine(i: Any, j: Any, pair: Any) -> dict[str, Scalar]:
    return {"a": i.root_a * j.root_a, "b": i.half_b + j.half_b, "c": i.root_c * j.root_c}


#: Geometric means of A and C, and the arithmetic mean of B.
RULE = CombinationRule("buckingham", {"root_a": 0, "half_b": -1, "root_c": 3}, {}, _combine)
