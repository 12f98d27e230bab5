"""What `verify` checks of ions in membranes and pores, and of voltages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vmdpotential.arrays import Floats
from vmdpotential.engines import Engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.units import coulomb_constant

from ..continuum.molecule import Continuum, Membrane
from ..continuum.node_potential import NodePotential
from ..continuum.pores import find_pores
from ..continuum.solution import TwoLattices
from ..continuum.solved_potential import SolvedPotential
from .energies import Ion, ion_energies

#: Permittivities of the slab and of the solution, and the radius of atoms, A, of the closed forms.
LOW, HIGH, ATOM = 2.0, 10.0, 1.7


def images_in_slab(thickness: float, low: float, high: float) -> float:
    """Return the reaction potential of a unit charge in the middle of a slab, 1/A, by its images.

    A. Parsegian, Nature 221 (1969) 844.
    """
    ratio = (low - high) / (low + high)
    return -2 * float(np.log1p(-ratio)) / (thickness * low)


def potential_in_pore(radius: float, low: float, high: float) -> float:
    """Return the reaction potential of a unit charge on the axis of an endless pore of the permittivity `high`, 1/A.

    By cylindrical harmonics (W. R. Smythe, Static and Dynamic Electricity, McGraw-Hill 1950).
    """
    from scipy.special import i0e, i1e, k0e, k1e

    ends = np.concatenate([[0.0], np.geomspace(1e-8, 12.0, 400)])
    nodes, weights = np.polynomial.legendre.leggauss(6)
    half = 0.5 * np.diff(ends)[:, None]
    x = (ends[:-1, None] + half * (nodes + 1)).ravel()
    values = (high - low) * k0e(x) * k1e(x) * np.exp(-2 * x) / (high * i1e(x) * k0e(x) + low * i0e(x) * k1e(x))
    return float(2 / (np.pi * high * radius) * ((half * weights).ravel() @ values))


def tube(radius: float, length: float, apart: float = 1.0) -> Floats:
    """Return atoms (N, 3), A, of a wall of two layers around a pore along z, whose radius they leave free."""
    rings = []
    for layer in range(2):
        around = radius + ATOM + layer * ATOM
        count = int(np.ceil(2 * np.pi * around / apart))
        for n, z in enumerate(np.arange(-length / 2, length / 2 + apart / 2, apart)):
            angle = 2 * np.pi * (np.arange(count) + 0.5 * (n % 2)) / count
            rings.append(np.stack([around * np.cos(angle), around * np.sin(angle), np.full(count, z)], 1))
    return np.concatenate(rings)


def in_membrane(positions: Floats, radii: Floats, thickness: float, pores: bool = True,
                voltage: float = 0.0) -> Continuum:
    """Return atoms without charges in a slab without salt around z = 0, with its pores."""
    half = 0.5 * thickness
    region = find_pores(positions, radii, 1.4, -half, half) if pores else None
    return Continuum(positions, np.zeros(len(radii)), radii, coulomb_constant("kT/e"), LOW, HIGH, 1.4, 2.0, 0.0,
                     np.zeros((0, 2)), Membrane(-half, half, LOW, region, voltage))


def check_pores(engine: Engine, seed: int) -> list[tuple[str, float, float]]:
    """Return errors of an ion in the middle of a slab, and on the axis of a pore, against closed forms."""
    rng = np.random.default_rng(seed)
    constant, thickness, radius, ion = coulomb_constant("kT/e"), 30.0, 6.0, Ion(1.0, 2.0)
    nothing = in_membrane(np.array([[30.0, 0.0, 0.0]]), np.zeros(1), thickness)
    found = float(next(ion_energies(nothing, np.zeros((1, 3)), ion, 0.5, engine)).total)
    born = (1 / LOW - 1 / HIGH) / ion.radius
    exact = 0.5 * constant * (images_in_slab(thickness, LOW, HIGH) + born)
    length, small = 60.0, Ion(1.0, 1.5)
    shift = rng.uniform(-0.5, 0.5, 3)
    wall = tube(radius, length + 6, 1.3)
    pore = in_membrane(wall + shift * (1, 1, 0), np.full(len(wall), ATOM), length)
    through = float(next(ion_energies(pore, shift[None], small, 1.0, engine)).total)
    # far from the pore the ion is one in the slab
    exactly = 0.5 * constant * (potential_in_pore(radius, LOW, HIGH) + images_in_slab(length, LOW, HIGH))
    return [("pores, an ion in a slab, images", abs(found / exact - 1), 0.01),
            ("pores, an ion on the axis of a pore, closed form", abs(through / exactly - 1), 0.03)]


def check_voltage(engine: Engine, seed: int) -> list[tuple[str, float, float]]:
    """Return errors under a voltage of the potential in an empty slab, and of the field in a ball in it.

    In the slab the potential is linear, and in the solutions it decays with the Debye length; in the ball it is that of
    a ball in a uniform field (J. D. Jackson, Classical Electrodynamics, Wiley 1999, section 4.4).
    """
    thickness, volts, kappa = 30.0, 4.0, 0.12
    z = np.random.default_rng(seed).uniform(-40.0, 40.0, 50)
    points, middle = np.stack([0.1 * z, 0.2 * z, z], 1), np.array([[0.1, 0.2, 0.0]])

    def solved(radius: float, thickness: float, kappa: float, inside: float, size: float) -> SolvedPotential:
        made = in_membrane(middle, np.array([radius]), thickness, pores=False, voltage=volts)
        return SolvedPotential(TwoLattices(replace(made, kappa=kappa, inside=inside),
                                           Lattice.around(middle, 1.0, size), engine, NodePotential(engine.name)))

    lost = volts * LOW / (HIGH * kappa * thickness + 2 * LOW)  # in each solution, by the continuity of the flux
    within = lost + (volts - 2 * lost) * (0.5 - z / thickness)
    decay = lost * np.exp(-kappa * (np.abs(z) - 0.5 * thickness))
    exact = np.where(np.abs(z) < 0.5 * thickness, within, np.where(z > 0, decay, volts - decay))
    empty = float(np.abs(solved(0.0, thickness, kappa, LOW, 12.0).at(points)[0] - exact).max()) / volts
    length, inside = 80.0, 8.0
    along = np.array([-2.0, 2.0])
    below, above = solved(5.0, length, 0.0, inside, 10.0).at(middle + along[:, None] * (0, 0, 1))[0]
    slope = -volts / length * 3 * LOW / (2 * LOW + inside)
    return [("voltage, the potential in an empty slab, closed form", empty, 1e-5),
            ("voltage, the field in a ball, closed form", abs(float(above - below) / 4.0 / slope - 1), 0.02)]
