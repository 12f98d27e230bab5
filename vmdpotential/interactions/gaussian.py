"""Gaussian: the potential of a charge that is smeared over a Gaussian, finite everywhere.

Definition, with the standard deviation s::

    V(r) = erf(r / (sqrt(2) s)) / r,    V(0) = sqrt(2 / pi) / s

It is the smooth part of Ewald's sum (P. P. Ewald, Ann. Phys. 369 (1921) 253-287), which VMD's PMEPot plots: its Ewald
factor b is 1 / (sqrt(2) s) (A. Aksimentiev, K. Schulten, Biophys. J. 88 (2005) 3745). Near the charge, where
1 - erfc(x) and its derivatives would lose digits, the series of erf(x) / x in x^2 is used.
"""

from __future__ import annotations

from math import factorial, pi, sqrt
from typing import TYPE_CHECKING, Any

from vmdpotential.interactions import Bound, Check, Interaction, Quantity
from vmdpotential.interactions.tracing import Scalar, erfc, fma, less, select

if TYPE_CHECKING:
    from vmdpotential.splitting.long_range import LongRange

#: Coefficients of the series, whose error is 1e-16 for x^2 < 1.
_SERIES = [2 / sqrt(pi) * (-1) ** n / (factorial(n) * (2 * n + 1)) for n in range(17)]


def ewald_factor(smear: float) -> float:
    """Return the Ewald factor 1 / (sqrt(2) s), 1/A, for a standard deviation s in A; also the inverse conversion."""
    return 1 / (sqrt(2) * smear)


def radial(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return the potential of a Gaussian."""
    factor = 1.0 / (sqrt(2) * p.smear)
    x = r2 * rinv * factor
    x2 = x * x
    value = _SERIES[-1]
    for coefficient in _SERIES[-2::-1]:
        value = fma(value, x2, coefficient)
    return select(less(x2, 1.0), value * factor, (1.0 - erfc(x)) * rinv)


def splitting(bound: Bound) -> LongRange:
    """Return its splittings, see :mod:`vmdpotential.splitting.long_range`."""
    from vmdpotential.splitting.long_range import of_gaussian

    return of_gaussian(bound)


INTERACTION = Interaction(
    "gaussian",
    radial,
    [Quantity("smear", "A", 2.0, 0.01, 1e3, "standard deviation of a charge's Gaussian")],
    medium="{where}{screening}",
    splitting=splitting,
    checks=[
        Check(2.0, 0.8427007929497149 / 2, {"smear": sqrt(2)}),  # erf(1) / 2
        Check(0.1, 0.1124629160182849 / 0.1, {"smear": sqrt(0.5)}),  # erf(0.1) / 0.1
        Check(0.02, sqrt(2 / pi) / 2.0 * (1 - 0.01**2 / 6 + 0.01**4 / 40), {"smear": 2.0}),  # near the middle
    ],
)
