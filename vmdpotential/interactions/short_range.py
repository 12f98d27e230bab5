"""Short-range part of a split Coulomb potential: 1/r less an even polynomial, zero from the split radius on.

Every method that sums the long range on a mesh splits 1/r into a part that ends at a radius and a
smooth rest, which inside the radius is an even polynomial P (:mod:`vmdpotential.methods.splitting`)::

    S(r) = 1/r - P(r^2)    for r < radius, else 0

The polynomial is written in r^2 - radius^2 / 2, whose powers stay small in single precision. All
splittings share one degree, and so one compiled kernel.
"""

from typing import Any

from vmdpotential.interactions import Bound, Check, Interaction, Quantity
from vmdpotential.interactions.tracing import Scalar, fma

#: Degree of the polynomial in r^2.
DEGREE = 6


def radial(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return 1/r - P(r^2) by Horner's rule."""
    t = r2 - 0.5 * (p.cutoff * p.cutoff)
    value = p.c6
    for name in ("c5", "c4", "c3", "c2", "c1", "c0"):
        value = fma(value, t, getattr(p, name))
    return rinv - value


INTERACTION = Interaction(
    "short_range",
    radial,
    [
        Quantity("cutoff", "A", 4.0, 0.01, 1e4, "radius at which the short-range part ends"),
        *(Quantity(f"c{n}", f"1/A^{2 * n + 1}", 0.0, -1e30, 1e30, f"coefficient of (r^2 - cutoff^2/2)^{n}")
          for n in range(DEGREE + 1)),
    ],
    checks=[
        Check(2.0, 0.5, {"cutoff": 4.0}),
        Check(2.0, 0.25, {"cutoff": 4.0, "c0": 0.25}),
        Check(2.0, 0.5 - 0.25 + 4 * 0.01, {"cutoff": 4.0, "c0": 0.25, "c1": 0.01}),  # t = 4 - 8
    ],
)


def bind(radius: float, coefficients: Any) -> Bound:
    """Return the short-range part for a radius (A) and up to 7 coefficients of (r^2 - radius^2/2)^n, 1/A^(2n+1)."""
    return INTERACTION.bind(cutoff=radius, **{f"c{n}": float(c) for n, c in enumerate(coefficients)})
