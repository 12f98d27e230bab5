"""Screened Coulomb: a point charge in an ionic solution, after Debye and Hueckel.

Definition, with the Debye length L (7.85 A for a 1:1 salt at 0.15 M in water at 298 K)::

    V(r) = exp(-r / L) / r

P. Debye, E. Hueckel, "Zur Theorie der Elektrolyte", Phys. Z. 24 (1923) 185-206.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vmdpotential.interactions import Bound, Check, Interaction, Quantity, coulomb
from vmdpotential.interactions.tracing import Scalar, exp
from vmdpotential.units import debye_length

if TYPE_CHECKING:
    from vmdpotential.splitting.long_range import LongRange

#: Relative permittivity of water at 298 K.
WATER_PERMITTIVITY = 78.5


def radial(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return the screened potential."""
    return exp(r2 * rinv * (-1.0 / p.debye_length)) * rinv


def splitting(bound: Bound) -> LongRange:
    """Return its splittings, see :mod:`vmdpotential.splitting.long_range`."""
    from vmdpotential.splitting.long_range import of_screened

    return of_screened(bound)


INTERACTION = Interaction(
    "screened_coulomb",
    radial,
    [Quantity("debye_length", "A", 7.85, 0.1, 1e6, "distance over which the potential is screened by 1/e")],
    medium="screened, {salt:.3g} M, dielectric {dielectric:g}",
    splitting=splitting,
    checks=[
        Check(7.85, 0.36787944117144233 / 7.85),
        Check(10, 0.01353352832366127, {"debye_length": 5}),  # exp(-2)/10 = 0.1353352832366127/10
    ],
)


def in_water(salt: float, temperature: float, dielectric: float = WATER_PERMITTIVITY) -> Bound:
    """Return the potential of a charge in a 1:1 salt (M) at a temperature (K); without salt 1 / r."""
    length = debye_length(salt, temperature, dielectric)
    return INTERACTION.bind(debye_length=length) if salt > 0 else coulomb.INTERACTION.bind()
