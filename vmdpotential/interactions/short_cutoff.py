"""Short-range part of the split shifted Coulomb potential: that of 1/r, and a term in r.

The shifted potential is 1/r - 2 r / rc^2 + r^3 / rc^4 within the cutoff rc. If the smooth part is summed on a mesh
(:mod:`vmdpotential.splitting.shifted`), the term in r also belongs to the short-range part, as a mesh cannot
represent its kink at r = 0::

    S(r) = 1/r + slope r - P(r^2)    for r < radius, else 0

with slope = -2 / rc^2; P is written as in :mod:`vmdpotential.interactions.short_range`.
"""

from typing import Any

from vmdpotential.interactions import Bound, Check, Interaction, Quantity, short_range
from vmdpotential.interactions.tracing import Scalar, fma


def radial(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return 1/r + slope r - P(r^2)."""
    return fma(p.slope * r2, rinv, short_range.INTERACTION.radial(r2, rinv, p))


INTERACTION = Interaction(
    "short_cutoff",
    radial,
    [*short_range.INTERACTION.quantities, Quantity("slope", "1/A^2", 0.0, -1e300, 1e300, "factor of r")],
    checks=[
        Check(2.0, 0.5 - 0.02, {"cutoff": 4.0, "slope": -0.01}),
        Check(2.0, 0.5 - 0.02 - 0.25, {"cutoff": 4.0, "slope": -0.01, "c0": 0.25}),
    ],
)


def bind(short: Bound, slope: float) -> Bound:
    """Return a short-range part of 1/r with a term slope * r (slope in 1/A^2)."""
    return INTERACTION.bind(**short.values, slope=slope)
