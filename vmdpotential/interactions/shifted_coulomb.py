"""Shifted Coulomb: smoothly taken to zero at the cutoff, with zero slope there.

Definition, eq. 2 of Rodrigues et al. 2008::

    V(r) = 1/r (1 - r^2 / rc^2)^2    for r < rc, else 0

C. I. Rodrigues, D. J. Hardy, J. E. Stone, K. Schulten, W. W. Hwu, "GPU acceleration of cutoff pair
potentials for molecular modeling applications", Proc. 5th Conf. Computing Frontiers (2008) 273-282.
"""

from typing import Any

from vmdpotential.interactions import Check, Interaction, Quantity
from vmdpotential.interactions.tracing import Scalar, maximum


def radial(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return the shifted potential, with (1 - r^2/rc^2)^2 written as (rc^2 - r^2)^2 / rc^4.

    The maximum makes it zero from the cutoff on.
    """
    cutoff2 = p.cutoff * p.cutoff
    s = maximum(cutoff2 - r2, 0.0)
    return s * rinv * s / (cutoff2 * cutoff2)


INTERACTION = Interaction(
    "shifted_coulomb",
    radial,
    [Quantity("cutoff", "A", 12.0, 0.1, 1e4, "distance at which the potential reaches zero", ends=True)],
    medium="{where}, shifted to zero at {cutoff:g} A",
    compact=True,
    checks=[
        Check(1, 0.5625, {"cutoff": 2}),  # (1 - 1/4)^2
        Check(6, 0.5625 / 6, {"cutoff": 12}),
        Check(12, 0, {"cutoff": 12}),
        Check(15, 0, {"cutoff": 12}),
    ],
)
