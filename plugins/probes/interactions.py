"""Energies of a probe and an atom, for maps: dispersion and repulsion, desolvation, and Coulomb in water.

Dispersion and repulsion have a minimum of depth 1 at the distance rmin, and the powers 12 and 6 (G. M. Morris et al.,
J. Comput. Chem. 19 (1998) 1639). They are smoothed over a range s as in AutoGrid: the value at r is the least within
s of r::

    V(r) = depth min(cap, (rmin/x)^12 - 2 (rmin/x)^6),    x = r + min(max(rmin - r, -s), s)

The desolvation by the volumes around an atom is a Gaussian, exp(-r^2 / 2 w^2). The Coulomb energy has a permittivity
that rises with the distance (:mod:`vmdpotential.interactions.sigmoidal_dielectric`), and a 1/r that is constant below
some distance. It can also be split into a part that ends at some distance, and a smooth part, which is the energy
itself beyond that distance, and within it a polynomial of r^2 with the same value and derivatives there. In maps, atoms
have an energy as their weight instead of a charge; `depth` is 1 over the unit of length, as engines expect it of a
potential.
"""

from math import factorial
from typing import Any

import numpy as np

from vmdpotential.interactions import Bound, Check, Interaction, Quantity
from vmdpotential.interactions import sigmoidal_dielectric as water
from vmdpotential.interactions.tracing import Scalar, exp, fma, maximum, minimum

_DEPTH = Quantity("depth", "1/A", 1.0, 1e-9, 1e9, "energy at the bottom of the well, or of the Gaussian")
_CUTOFF = Quantity("cutoff", "A", 8.0, 0.1, 1e4, "distance at which the interaction ends", ends=True)
_WELL = [
    _DEPTH, Quantity("rmin", "A", 3.5, 0.01, 100, "distance of the least energy"),
    Quantity("smooth", "A", 0.0, 0.0, 10, "range within which the least energy is taken"),
    Quantity("cap", "", 1e30, 1e-6, 1e30, "greatest energy, in depths"), _CUTOFF,
]


def dispersion(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return dispersion and repulsion."""
    r = r2 * rinv
    ratio = p.rmin / (r + minimum(maximum(p.rmin - r, -1.0 * p.smooth), p.smooth))
    six = (ratio * ratio) ** 3
    return p.depth * minimum(fma(six, six, -2.0 * six), p.cap)


def gaussian(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return exp(-r^2 / 2 w^2)."""
    return p.depth * exp(r2 * (-0.5 / (p.width * p.width)))


def screened(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return the potential in water, with a 1/r that is constant at distances below `closest`."""
    return water.radial(r2, rinv, p) * minimum(r2 * rinv / p.closest, 1.0)


def _polynomial(r2: Scalar, end: Scalar, p: Any) -> Scalar:
    """Return the smooth part within `end`, minus its value there."""
    t = minimum(r2 - end * end, 0.0)
    return t * fma(t, fma(t, p.third, p.second), p.first)


def far(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return the smooth part."""
    return screened(maximum(r2, p.end * p.end), minimum(rinv, 1.0 / p.end), p) + _polynomial(r2, p.end, p)


def near(r2: Scalar, rinv: Scalar, p: Any) -> Scalar:
    """Return the part that ends at the cutoff."""
    return screened(r2, rinv, p) - p.there - _polynomial(r2, p.cutoff, p)


DISPERSION = Interaction("dispersion_of_probe", dispersion, _WELL, checks=[
    Check(3.5, -1.0), Check(7.0, 1 / 4096 - 2 / 64), Check(3.7, -1.0, {"smooth": 0.25}), Check(0.5, 7.0, {"cap": 7.0}),
])
GAUSSIAN = Interaction("desolvation_of_probe", gaussian, [
    _DEPTH, Quantity("width", "A", 3.6, 0.1, 100, "standard deviation"), _CUTOFF,
], checks=[Check(3.6, 0.6065306597126334), Check(7.2, 0.1353352832366127)])
SCREENED = Interaction("coulomb_of_probe", screened, [
    *water.INTERACTION.quantities, Quantity("closest", "A", 0.5, 1e-3, 10, "distance below which 1/r is constant"),
], checks=[Check(10, water.INTERACTION.checks[0].value)])

_THERE = Quantity("there", "1/A", 0.0, -1e3, 1e3, "value at the end")
_DERIVATIVES = [
    Quantity("first", "1/A^3", 0.0, -1e3, 1e3, "derivative by r^2 at the end"),
    Quantity("second", "1/A^5", 0.0, -1e3, 1e3, "half of the second derivative"),
    Quantity("third", "1/A^7", 0.0, -1e3, 1e3, "a sixth of the third derivative"),
]
FAR = Interaction("coulomb_of_probe_far", far, [
    *SCREENED.quantities, Quantity("end", "A", 8.0, 1.0, 1e3, "distance from which it is the energy"), *_DERIVATIVES,
], checks=[Check(10, SCREENED.checks[0].value)])
NEAR = Interaction("coulomb_of_probe_near", near, [*SCREENED.quantities, _CUTOFF, _THERE, *_DERIVATIVES])

#: Those that are compiled with the package.
INTERACTIONS = (DISPERSION, GAUSSIAN, SCREENED, FAR, NEAR)


def split(end: float) -> tuple[Bound, Bound]:
    """Return :data:`SCREENED` as a part that ends at a distance, A, and a smooth part."""
    whole, square = SCREENED.bind(), end * end
    # derivatives of any function, with a relative error of 1e-10
    series = np.polynomial.Chebyshev.interpolate(lambda s: whole(np.sqrt(s)), 24, [0.8 * square, 1.2 * square])
    names = ("first", "second", "third")
    values = {name: float(series.deriv(n)(square)) / factorial(n) for n, name in enumerate(names, 1)}
    return NEAR.bind(cutoff=end, there=float(whole(end)), **values), FAR.bind(end=end, **values)
