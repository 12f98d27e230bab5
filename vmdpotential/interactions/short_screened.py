"""Short-range part of a split screened potential: exp(-r / L) / r less the smooth part, zero from the split radius on.

Within the radius exp(-r / L) is cosh(r / L) - sinh(r / L), an even function of r and an odd one, and the smooth part
(:mod:`vmdpotential.splitting.screened`) is even, so that two polynomials suffice, without an exponential::

    S(r) = C(r^2) / r - P(r^2)    for r < radius, else 0

Both are written in r^2 - radius^2 / 2 as in :mod:`vmdpotential.interactions.short_range`.
"""

from typing import Any

from vmdpotential.interactions import Bound, Check, Interaction, Quantity, short_range
from vmdpotential.interactions.tracing import Scalar

_EVEN, _ODD = short_range.Radial(short_range.DEGREE + 1), short_range.Radial(short_range.DEGREE, "d")


def radial(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return C(r^2) / r - P(r^2)."""
    return _ODD.polynomial(r2, p) * rinv - _EVEN.polynomial(r2, p)


INTERACTION = Interaction(
    "short_screened",
    radial,
    [*short_range.interaction(_EVEN.degree).quantities,
     *(Quantity(f"d{n}", f"1/A^{2 * n}" if n else "", 0.0, -1e300, 1e300, f"coefficient of (r^2 - cutoff^2/2)^{n} / r")
       for n in range(_ODD.degree + 1))],
    checks=[
        Check(2.0, 0.5, {"cutoff": 4.0, "d0": 1.0}),
        Check(2.0, (0.75 - 4 * 0.05) / 2 - (0.25 - 4 * 0.01),  # t = 4 - 8
              {"cutoff": 4.0, "d0": 0.75, "d1": 0.05, "c0": 0.25, "c1": 0.01}),
    ],
)


def bind(radius: float, even: Any, odd: Any) -> Bound:
    """Return the short-range part for a radius (A), and the coefficients of P, 1/A^(2n+1), and of C, 1/A^2n."""
    return INTERACTION.bind(cutoff=radius, **{f"{letter}{n}": float(c) for letter, coefficients in
                                              (("c", even), ("d", odd)) for n, c in enumerate(coefficients)})
