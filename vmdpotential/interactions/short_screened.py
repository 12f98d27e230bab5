"""Short-range part of a split screened potential: exp(-r / L) / r less an even polynomial, zero from the split radius on.

Where a mesh sums the rest (:mod:`vmdpotential.splitting.screened`), with the Debye length L::

    S(r) = exp(-r / L) / r - P(r^2)    for r < radius, else 0

P is written as in :mod:`vmdpotential.interactions.short_range`.
"""

from functools import cache
from typing import Any

from vmdpotential.interactions import Bound, Check, Interaction, screened_coulomb, short_range
from vmdpotential.interactions.tracing import Scalar


class Radial(short_range.Radial):
    """exp(-r / L) / r - P(r^2) with a polynomial of some degree."""

    def __call__(self, r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
        """Return the value."""
        return screened_coulomb.radial(r2, rinv, p) - self.polynomial(r2, p)


@cache
def interaction(degree: int) -> Interaction:
    """Return the short-range part with a polynomial of some degree in r^2."""
    return Interaction(
        "short_screened",
        Radial(degree),
        [*short_range.interaction(degree).quantities, *screened_coulomb.INTERACTION.quantities],
        checks=[
            Check(2.0, 0.18393972058572117, {"cutoff": 4.0, "debye_length": 2.0}),  # exp(-1) / 2
            Check(2.0, 0.18393972058572117 - 0.25 + 4 * 0.01,  # t = 4 - 8
                  {"cutoff": 4.0, "debye_length": 2.0, "c0": 0.25, "c1": 0.01}),
        ],
    )


def bind(radius: float, length: float, coefficients: Any) -> Bound:
    """Return the short-range part for a radius and a Debye length (A), and coefficients as in `short_range.bind`."""
    bound = interaction(len(coefficients) - 1)
    return bound.bind(cutoff=radius, debye_length=length, **{f"c{n}": float(c) for n, c in enumerate(coefficients)})
