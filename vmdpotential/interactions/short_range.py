"""Short-range part of a split Coulomb potential: 1/r less an even polynomial, zero from the split radius on.

Every method that sums the long range on a mesh splits 1/r into a part that ends at a radius, and a
smooth part, which is an even polynomial P within the radius (:mod:`vmdpotential.splitting.coulomb`)::

    S(r) = 1/r - P(r^2)    for r < radius, else 0

The polynomial is written in r^2 - radius^2 / 2, whose powers are small, so that single precision suffices.
All splittings for meshes have the same degree, and share one compiled kernel.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from vmdpotential.interactions import Bound, Check, Interaction, Quantity
from vmdpotential.interactions.tracing import Scalar, fma

#: Degree of the polynomial in r^2 that meshes use.
DEGREE = 6
#: Degrees that are compiled with the package; the others of Ewald sums run in an interpreter.
DEGREES = (DEGREE, 8, 10, 12)


@dataclass(frozen=True)
class Radial:
    """1/r - P(r^2) with a polynomial of some degree; a class and not a closure, which cannot be pickled."""

    degree: int
    letter: str = "c"  # first letter of the names of the coefficients

    def __call__(self, r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
        """Return the value."""
        return rinv - self.polynomial(r2, p)

    def polynomial(self, r2: Scalar, p: Any) -> Scalar:
        """Return P(r^2), by Horner's rule."""
        t = r2 - 0.5 * (p.cutoff * p.cutoff)
        value = getattr(p, f"{self.letter}{self.degree}")
        for n in range(self.degree - 1, -1, -1):
            value = fma(value, t, getattr(p, f"{self.letter}{n}"))
        return value


@cache
def interaction(degree: int) -> Interaction:
    """Return the short-range part with a polynomial of some degree in r^2."""
    return Interaction(
        "short_range",
        Radial(degree),
        [
            Quantity("cutoff", "A", 4.0, 0.01, 1e4, "radius at which the short-range part ends", ends=True),
            *(Quantity(f"c{n}", f"1/A^{2 * n + 1}", 0.0, -1e300, 1e300, f"coefficient of (r^2 - cutoff^2/2)^{n}")
              for n in range(degree + 1)),
        ],
        checks=[
            Check(2.0, 0.5, {"cutoff": 4.0}),
            Check(2.0, 0.25, {"cutoff": 4.0, "c0": 0.25}),
            Check(2.0, 0.5 - 0.25 + 4 * 0.01, {"cutoff": 4.0, "c0": 0.25, "c1": 0.01}),  # t = 4 - 8
        ],
    )


INTERACTION = interaction(DEGREE)


def bind(radius: float, coefficients: Any) -> Bound:
    """Return the short-range part for a radius (A) and the coefficients of (r^2 - radius^2/2)^n, 1/A^(2n+1).

    Up to 7 coefficients give the interaction of degree :data:`DEGREE`, and more coefficients one of their degree.
    """
    bound = interaction(max(DEGREE, len(coefficients) - 1))
    return bound.bind(cutoff=radius, **{f"c{n}": float(c) for n, c in enumerate(coefficients)})
