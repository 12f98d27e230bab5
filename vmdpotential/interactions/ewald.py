"""Ewald's real-space part: the potential of a charge less that of a Gaussian charge, which is summed on a mesh.

Definition::

    V(r) = erfc(beta r) / r

P. P. Ewald, "Die Berechnung optischer und elektrostatischer Gitterpotentiale", Ann. Phys. 369 (1921) 253-287. Excluded
pairs have -erf(beta r) / r, which cancels their part of the mesh sum.
"""

from typing import Any

from vmdpotential.interactions import Check, Interaction, Quantity
from vmdpotential.interactions.tracing import Scalar, erfc


def radial(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return erfc(beta r) / r."""
    return erfc(p.beta * (r2 * rinv)) * rinv


def excluded(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return -erf(beta r) / r."""
    return (erfc(p.beta * (r2 * rinv)) - 1.0) * rinv


INTERACTION = Interaction(
    "ewald",
    radial,
    [
        Quantity("cutoff", "A", 10.0, 0.1, 1e4, "distance at which the interaction is cut off", ends=True),
        Quantity("beta", "1/A", 0.312, 1e-4, 100.0, "inverse width of the Gaussian"),
    ],
    excluded=excluded,
    checks=[
        Check(1, 0.15729920705028513, {"beta": 1, "cutoff": 5}),  # erfc(1)
        Check(2, 0.004677734981047266 / 2, {"beta": 1, "cutoff": 5}),  # erfc(2) / 2
    ],
)
