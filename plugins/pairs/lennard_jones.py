"""Lennard-Jones: repulsion and dispersion of two atoms, cut off, shifted, or switched off in the force.

Definition, with a12 = 12 C12 and a6 = 6 C6, so that the force has no factors::

    E(r) = a12 / (12 r^12) - a6 / (6 r^6)

With the depth epsilon and the distance rmin of the minimum, a6 = 12 epsilon rmin^6 and a12 = 12 epsilon rmin^12.

There are three forms with a cutoff: truncated; shifted by the energy at the cutoff; or with a force that goes to zero
with zero slope between `switch` and the cutoff, as GROMACS' force-switch (D. van der Spoel, P. J. van Maaren, J. Chem.
Theory Comput. 2 (2006) 1-11): the force of each power, F = n / r^(n+1), becomes
F + A (r - switch)^2 + B (r - switch)^3.
"""

from typing import Any

from vmdpotential.interactions import Check, Interaction, Quantity
from vmdpotential.interactions.tracing import Scalar, fma, maximum


def radial(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return the energy."""
    if hasattr(p, "rmin"):
        ratio = p.rmin * rinv
        six = (ratio * ratio) ** 3
        return p.depth * (1 / 12) * fma(six, six, -2 * six)
    r6 = (rinv * rinv) ** 3
    return r6 * fma(p.a12 * (1 / 12), r6, p.a6 * (-1 / 6))


def slope(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return -1/r dE/dr = a12 / r^14 - a6 / r^8."""
    rinv2 = rinv * rinv
    if hasattr(p, "rmin"):  # with a combination rule of radii, no separate powers are needed
        ratio = p.rmin * rinv
        six = (ratio * ratio) ** 3
        return p.depth * fma(six, six, -six) * rinv2
    r6 = (rinv2 * rinv) ** 2  # Coulomb forces need this cube too
    return (p.a12 * r6 - p.a6) * (r6 * rinv2)


def shifted(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return the energy minus that at the cutoff."""
    end = 1 / p.cutoff**6
    return radial(r2, rinv, p) - end * fma(p.a12 * (1 / 12), end, p.a6 * (-1 / 6))


def _switch(n: int, r: Scalar, beyond: Scalar, p: Any) -> tuple[Scalar, Scalar]:
    """Return the terms that are added to the energy 1/r^n, and to its force n / r^(n+1)."""
    width = p.cutoff - p.switch
    a = -n * ((n + 4) * p.cutoff - (n + 1) * p.switch) / (p.cutoff ** (n + 2) * width**2)
    b = n * ((n + 3) * p.cutoff - (n + 1) * p.switch) / (p.cutoff ** (n + 2) * width**3)
    shift = -1 / p.cutoff**n + a / 3 * width**3 + b / 4 * width**4
    cube = beyond * beyond * beyond
    return shift - cube * fma(b / 4, beyond, a / 3), beyond * beyond * fma(b, beyond, a)


def switched(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return the energy of the switched force."""
    r = r2 * rinv
    beyond = maximum(r - p.switch, 0.0)
    r6 = (rinv * rinv) ** 3
    return (p.a12 * (1 / 12) * fma(r6, r6, _switch(12, r, beyond, p)[0])
            - p.a6 * (1 / 6) * (r6 + _switch(6, r, beyond, p)[0]))


def switched_slope(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return -1/r dE/dr of the switched force."""
    r = r2 * rinv
    beyond = maximum(r - p.switch, 0.0)
    r7 = (rinv * rinv) ** 3 * rinv
    twelve = (1 / 12) * _switch(12, r, beyond, p)[1]
    six = (1 / 6) * _switch(6, r, beyond, p)[1]
    return rinv * (p.a12 * (r7 * r7 * (r2 * rinv) + twelve) - p.a6 * (r7 + six))


PAIR = {"a6": 6, "a12": 12}
CUTOFF = Quantity("cutoff", "A", 12.0, 0.1, 1e4, "distance at which the interaction ends", ends=True)
_ONE = {"a6": 12.0, "a12": 12.0}  # epsilon 1, rmin 1

INTERACTION = Interaction(
    "lennard_jones", radial, pair=PAIR, slope=slope,
    checks=[Check(1, -1, _ONE), Check(2, 1 / 4096 - 2 / 64, _ONE)],
)
SHIFTED = Interaction(
    "lennard_jones_shifted", shifted, [CUTOFF], pair=PAIR, slope=slope,
    checks=[Check(1, -1 - (1 / 4096 - 2 / 64), {**_ONE, "cutoff": 2}), Check(2, 0, {**_ONE, "cutoff": 2})],
)
SWITCHED = Interaction(
    "lennard_jones_switched", switched,
    [CUTOFF, Quantity("switch", "A", 10.0, 0.0, 1e4, "distance from which the force is switched off")],
    pair=PAIR, slope=switched_slope,
    checks=[Check(12, 0, {**_ONE, "cutoff": 12, "switch": 10})],
)
