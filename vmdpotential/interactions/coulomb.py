"""Coulomb: the potential of a point charge in a uniform medium.

Definition::

    V(r) = 1 / r
"""

from typing import Any

from vmdpotential.interactions import Check, Interaction
from vmdpotential.interactions.tracing import Scalar


def radial(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return 1/r."""
    return rinv


INTERACTION = Interaction("coulomb", radial, checks=[Check(1, 1), Check(2, 0.5), Check(80, 0.0125)])
