"""Distance-dependent dielectric: the permittivity grows with the distance, eps(r) = slope r.

Definition, with the slope in 1/A (4 in many docking programs and viewers)::

    V(r) = 1 / (slope r^2)

It approximates the screening by water where no water is present.
"""

from typing import Any

from vmdpotential.interactions import Check, Interaction, Quantity
from vmdpotential.interactions.tracing import Scalar


def radial(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return the potential with eps(r) = slope r."""
    return rinv * rinv / p.slope


INTERACTION = Interaction(
    "distance_dependent",
    radial,
    [Quantity("slope", "1/A", 4.0, 1e-3, 1e3, "permittivity gained per distance")],
    medium="dielectric {slope:g} r",
    checks=[Check(1, 0.25), Check(5, 0.02, {"slope": 2})],
)
