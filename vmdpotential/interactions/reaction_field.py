"""Reaction field: a uniform medium beyond the cutoff, whose polarisation acts on the charges within.

Definition, with the medium's permittivity e (0 means a conductor)::

    V(r) = 1/r + k r^2 - c,    k = (e - 1) / (2 e + 1) / rc^3,    c = 1/rc + k rc^2

I. G. Tironi, R. Sperb, P. E. Smith, W. F. van Gunsteren, "A generalized reaction field method for molecular
dynamics simulations", J. Chem. Phys. 102 (1995) 5451-5459. The medium also acts on excluded pairs.
"""

from typing import Any

from vmdpotential.interactions import Check, Interaction, Quantity
from vmdpotential.interactions.tracing import Scalar, fma, less, select


def _strength(p: Any) -> Scalar:
    return select(less(p.permittivity, 1.0), 0.5, (p.permittivity - 1.0) / (2.0 * p.permittivity + 1.0)) / p.cutoff**3


def excluded(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return the medium's part, k r^2 - c."""
    k = _strength(p)
    return fma(k, r2, -(1 / p.cutoff + k * (p.cutoff * p.cutoff)))


def radial(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return the potential."""
    return rinv + excluded(r2, rinv, p)


def slope(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return -1/r dV/dr = 1/r^3 - 2 k."""
    return rinv * rinv * rinv - 2.0 * _strength(p)


INTERACTION = Interaction(
    "reaction_field",
    radial,
    [
        Quantity("cutoff", "A", 12.0, 0.1, 1e4, "distance at which the medium begins", ends=True),
        Quantity("permittivity", "", 78.5, 0.0, 1e9, "permittivity of the medium; 0 for a conductor"),
    ],
    slope=slope,
    medium="{where}, reaction field beyond {cutoff:g} A",
    excluded=excluded,
    checks=[
        Check(1, 1 + 0.0625 - 0.75, {"cutoff": 2, "permittivity": 0}),  # k = 1/16
        Check(2, 0, {"cutoff": 2, "permittivity": 4}),
        Check(1, 1 - 0.5, {"cutoff": 2, "permittivity": 1}),
    ],
)
