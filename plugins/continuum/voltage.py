"""The potential that two reservoirs at different potentials make across a slab without a molecule.

The solution below the slab is at a voltage against that above. Its ions are at equilibrium with their own side, so that
the equation there has the potential minus that of the side (B. Roux, Biophys. J. 73 (1997) 2980). Without a molecule
the potential depends on z alone: it decays to that of each side with the Debye length, and is linear in the slab.
Ions in a pore belong to the side that is nearer.
"""

from __future__ import annotations

import numpy as np

from vmdpotential.arrays import Floats


class AppliedPotential:
    """The potential across a slab, in the unit of the voltage.

    Parameters
    ----------
    low, high : float, A
        Heights of the slab's faces.
    ratio : float
        Permittivity of the slab over that of the solution.
    kappa : float, 1/A
        Inverse Debye length of the solution; 0 for one without ions, whose potential is uniform on both sides.
    voltage : float
        Of the solution below, against that above.
    """

    def __init__(self, low: float, high: float, ratio: float, kappa: float, voltage: float) -> None:
        self._low, self._high, self._kappa, self._voltage = low, high, kappa, voltage
        #: What the solution loses on each side, up to the face.
        self._lost = voltage * ratio / ((high - low) * kappa + 2 * ratio) if kappa > 0 else 0.0

    def at(self, z: Floats) -> Floats:
        """Return the potential at heights, A."""
        above, below = (np.maximum(each, 0.0) for each in (z - self._high, self._low - z))
        part = np.clip((self._high - z) / (self._high - self._low), 0, 1)
        across = self._lost + (self._voltage - 2 * self._lost) * part
        # at the faces, what is lost decays
        result: Floats = across - self._lost * (-np.expm1(-self._kappa * above))
        return result + self._lost * (-np.expm1(-self._kappa * below))

    def slope(self, z: Floats) -> Floats:
        """Return its derivative at heights, A."""
        inside = (z >= self._low) & (z <= self._high)
        away = np.maximum(np.maximum(z - self._high, self._low - z), 0.0)
        within = -(self._voltage - 2 * self._lost) / (self._high - self._low)
        result: Floats = np.where(inside, within, -self._lost * self._kappa * np.exp(-self._kappa * away))
        return result

    def of_side(self, z: Floats, spacing: float) -> Floats:
        """Return the mean potential of the reservoirs that ions in the cells of nodes at heights, A, belong to."""
        above = (z - 0.5 * (self._low + self._high)) / spacing
        result: Floats = self._voltage * np.clip(0.5 - above, 0, 1)
        return result
