"""Shells of Gaussian basis functions, as normalised polynomials of x, y and z times exponentials.

A basis function is ``sum_p d_p N(a_p) exp(-a_p r^2)`` times a polynomial of degree l: a monomial (Cartesian
functions) or a real solid harmonic (spherical ones). The integral of the square of each primitive is 1
(H. B. Schlegel, M. J. Frisch, Int. J. Quantum Chem. 54 (1995) 83).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from vmdpotential.arrays import Floats

#: Largest angular momentum that is evaluated (h shells).
LARGEST_MOMENTUM = 5

#: Shells count as zero where their radial part is below this, bohr^-3/2.
NEGLIGIBLE = 1e-8

#: A polynomial: coefficients by powers of x, y and z.
Polynomial = dict[tuple[int, int, int], float]


@dataclass(frozen=True, eq=False)
class Shell:
    """Functions of one angular momentum at one centre that share their radial part.

    Parameters
    ----------
    centre : (3,) float64, bohr
    momentum : int
        Angular momentum.
    exponents, coefficients : (P,) float64, bohr^-2 and 1
        Exponents of the primitives, and contraction coefficients for primitives whose squares integrate to 1.
    functions : tuple of str
        The polynomial of each function, in the order of the orbitals' coefficients: ``1``, ``x``, ``xy`` for Cartesian
        functions, ``c0``, ``c1``, ``s1`` for cos(m phi) and sin(m phi) in real solid harmonics, with - for the
        opposite sign.
    """

    centre: Floats
    momentum: int
    exponents: Floats
    coefficients: Floats
    functions: tuple[str, ...]

    def radial(self) -> Floats:
        """Return the coefficients (P,) of the exponentials, without the normalisation of the polynomials."""
        norm = (2 * self.exponents / np.pi) ** 0.75 * (4 * self.exponents) ** (self.momentum / 2)
        return self.coefficients * norm

    @cached_property
    def reach(self) -> float:
        """Distance from the centre, bohr, beyond which all functions are negligible."""
        # r^l exp(-a r^2) decreases beyond sqrt(l / 2a); the angular part of a function is at most about 4 sqrt(pi)
        size, peak = np.abs(self.radial()), float(np.sqrt(self.momentum / (2 * self.exponents.min())))
        low, high = peak, peak + 1.0

        def value(r: float) -> float:
            return float(size @ np.exp(-self.exponents * r * r)) * r**self.momentum

        while value(high) > NEGLIGIBLE:
            low, high = high, 2 * high
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (middle, high) if value(middle) > NEGLIGIBLE else (low, middle)
        return high


@cache
def monomials(momentum: int) -> tuple[tuple[int, int, int], ...]:
    """Return the powers of x, y and z of all monomials of an angular momentum, in the kernel's order: by z, then x."""
    return tuple((a, momentum - c - a, c) for c in range(momentum + 1) for a in range(momentum - c + 1))


@cache
def in_monomials(momentum: int, functions: tuple[str, ...]) -> Floats:
    """Return the coefficients (functions, monomials) of normalised functions of an angular momentum.

    Raises
    ------
    ValueError
        For a name that no function of this angular momentum has.
    """
    order = {powers: n for n, powers in enumerate(monomials(momentum))}
    result = np.zeros((len(functions), len(order)))
    for row, name in zip(result, functions, strict=True):
        sign = -1.0 if name.startswith("-") else 1.0
        polynomial = _polynomial(momentum, name.removeprefix("-"))
        norm = math.sqrt(sum(p * q * _moment(m, n) for m, p in polynomial.items() for n, q in polynomial.items()))
        for powers, value in polynomial.items():
            row[order[powers]] = sign * value / norm
    return result


def _moment(first: tuple[int, int, int], second: tuple[int, int, int]) -> float:
    """Return the Gaussian mean of the product of two monomials, up to a power of the exponent: (k - 1)!! per axis."""
    result = 1
    for k in (a + b for a, b in zip(first, second, strict=True)):
        result *= 0 if k % 2 else math.prod(range(k - 1, 0, -2))
    return float(result)


def _polynomial(momentum: int, name: str) -> Polynomial:
    if name == "1":
        name = ""
    if set(name) <= set("xyz") and len(name) == momentum:
        return {(name.count("x"), name.count("y"), name.count("z")): 1.0}
    if name[:1] in ("c", "s") and name[1:].isdecimal() and (name[0] == "c") <= int(name[1:]) + 1 <= momentum + 1:
        return _solid_harmonic(momentum, int(name[1:]), name[0] == "s")
    raise ValueError(f"no function of angular momentum {momentum} is called {name[:20]!r}")


def _solid_harmonic(momentum: int, m: int, sine: bool) -> Polynomial:
    """Return a real solid harmonic, the real or imaginary part of (x + iy)^m times a polynomial, not normalised."""
    result: Polynomial = {}
    for k in range((momentum - m) // 2 + 1):
        legendre = ((-1) ** k * math.comb(momentum, k) * math.comb(2 * momentum - 2 * k, momentum)
                    * math.perm(momentum - 2 * k, m))
        for i in range(k + 1):  # r^2k = (x^2 + y^2 + z^2)^k
            for j in range(k - i + 1):
                square = math.comb(k, i) * math.comb(k - i, j)
                for t in range(int(sine), m + 1, 2):  # (x + iy)^m
                    powers = (2 * i + m - t, 2 * j + t, 2 * (k - i - j) + momentum - 2 * k - m)
                    wave = (-1) ** (t // 2) * math.comb(m, t)
                    result[powers] = result.get(powers, 0.0) + legendre * square * wave
    return result
