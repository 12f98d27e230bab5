"""Coulomb: the potential of a point charge in a uniform medium.

Definition::

    V(r) = 1 / r

With a cutoff, it may be shifted by its value there: V(r) = 1/r - 1/rc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vmdpotential.interactions import Bound, Check, Interaction, Quantity
from vmdpotential.interactions.tracing import Scalar

if TYPE_CHECKING:
    from vmdpotential.splitting.long_range import LongRange


def radial(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return 1/r."""
    return rinv


def slope(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return -1/r dV/dr = 1/r^3."""
    return rinv * rinv * rinv


def shifted(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return 1/r - 1/rc."""
    return rinv - 1 / p.cutoff


def splitting(bound: Bound) -> LongRange:
    """Return its splittings, see :mod:`vmdpotential.splitting.long_range`."""
    from vmdpotential.splitting.long_range import of_coulomb

    return of_coulomb(bound)


INTERACTION = Interaction("coulomb", radial, slope=slope, checks=[Check(1, 1), Check(2, 0.5), Check(80, 0.0125)],
                          medium="{where}{screening}", splitting=splitting)
CUT = Interaction(
    "cut_coulomb", shifted,
    [Quantity("cutoff", "A", 12.0, 0.1, 1e4, "distance at which the potential is zero", ends=True)],
    slope=slope, checks=[Check(1, 0.5, {"cutoff": 2}), Check(2, 0, {"cutoff": 2})],
)
