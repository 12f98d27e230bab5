"""Sigmoidal dielectric: the permittivity rises from that of a protein's inside to that of water with the distance.

Definition, with the bulk's permittivity e0::

    V(r) = 1 / (eps(r) r),    eps(r) = A + B / (1 + k exp(-lambda B r)),    B = e0 - A

E. L. Mehler, T. Solmajer, "Electrostatic effects in proteins: comparison of dielectric and charge models", Protein
Eng. 4 (1991) 903-910: A = -8.5525, k = 7.7839, lambda = 0.003627 / A, e0 = 78.4.
"""

from typing import Any

from vmdpotential.interactions import Check, Interaction, Quantity
from vmdpotential.interactions.tracing import Scalar, exp, fma

LOW = -8.5525
STEEPNESS = 7.7839


def _rise(r2: Scalar, rinv: Scalar, p: Any) -> tuple[Scalar, Scalar, Scalar]:
    """Return lambda B, f = k exp(-lambda B r), and A + A f + B."""
    rate = p.rate * (p.bulk - LOW)
    f = STEEPNESS * exp(-rate * (r2 * rinv))
    return rate, f, fma(LOW, f, p.bulk)


def radial(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return the potential, as (1 + f) / (A + A f + B) / r."""
    _, f, scale = _rise(r2, rinv, p)
    return (1.0 + f) * rinv / scale


def slope(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return -1/r dV/dr = (1 + f) / (A + A f + B) / r^3 + lambda B^2 f / (A + A f + B)^2 / r^2."""
    rate, f, scale = _rise(r2, rinv, p)
    part = rinv / scale
    return part * fma(rate * (p.bulk - LOW) * f, part, (1.0 + f) * (rinv * rinv))


INTERACTION = Interaction(
    "sigmoidal_dielectric",
    radial,
    [
        Quantity("bulk", "", 78.4, 1.0, 1e3, "permittivity at long distances"),
        Quantity("rate", "1/A", 0.003627, 1e-6, 1.0, "how fast the permittivity rises"),
    ],
    slope=slope,
    medium="dielectric rising with distance to {bulk:g}",
    checks=[
        Check(10, 1 / (10 * (LOW + 86.9525 / 1.33230246785418)), {}),  # f = 7.7839 exp(-0.003627 * 86.9525 * 10)
        Check(1000, 1 / 78400, {}),
    ],
)
