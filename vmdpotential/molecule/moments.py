"""Moments of a molecule's charges: net charge, dipole and quadrupole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.units import DEBYE


@dataclass(frozen=True, eq=False)
class ChargeMoments:
    """The moments of charges about the mean of their positions.

    Parameters
    ----------
    net_charge : float, e
    dipole_vector : (3,) float64, D
        From the negative to the positive end. Of a molecule with a net charge it depends on the centre.
    quadrupole_tensor : (3, 3) float64, D A
        Traceless: the sum of q (3 x x^T - x^2) / 2 (A. D. Buckingham, Q. Rev. Chem. Soc. 13 (1959) 183).
    """

    net_charge: float
    dipole_vector: Floats
    quadrupole_tensor: Floats

    @property
    def dipole(self) -> float:
        """Length of the dipole moment, D."""
        return float(np.linalg.norm(self.dipole_vector))

    @property
    def quadrupole(self) -> float:
        """Principal component of the quadrupole moment that is farthest from 0, D A."""
        values = np.linalg.eigvalsh(self.quadrupole_tensor)
        return float(values[np.argmax(np.abs(values))])


def charge_moments(positions: Floats, charges: Floats) -> ChargeMoments:
    """Return the moments of charges (N,), e, at positions (N, 3), A."""
    x = positions - positions.mean(0)
    second = (charges[:, None] * x).T @ x
    quadrupole = (3 * second - np.trace(second) * np.eye(3)) / 2
    return ChargeMoments(float(charges.sum()), charges @ x / DEBYE, quadrupole / DEBYE)
