"""Orbitals and densities at the points of a lattice."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from vmdpotential import memory
from vmdpotential.arrays import Floats
from vmdpotential.engines import Engine, get_engine
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.kernels import threads
from vmdpotential.kernels.launch import KernelFile, tiled_plane
from vmdpotential.units import BOHR

from .shells import Shell, in_monomials, monomials
from .wavefunction import Wavefunction

Singles = NDArray[np.float32]

KERNELS = KernelFile(Path(__file__).with_name("evaluate.cu"))

#: Units of length for orbitals (to the power -3/2) and densities (to the power -3).
LENGTHS = ("A", "bohr")

#: Occupations below this are lost in the rounding of a float32.
_EMPTY = 1e-9

#: Number of orbitals whose coefficients are next to each other, as in the kernels.
_TOGETHER = 16

#: Tables of exponentials are padded to a multiple of this, the number of floats in the longest vector.
_VECTOR = 16

#: Exponentials along one axis below this are set to 0, because products of three could be subnormal, which is slow.
_LEAST = 1e-12


def orbital_map(wavefunction: Wavefunction, lattice: Lattice, index: int, spin: str = "alpha",
                length: str = "A", engine: str = "auto") -> Grid:
    """Return an orbital at the points of a lattice.

    Parameters
    ----------
    wavefunction : Wavefunction
    lattice : Lattice
    index : int
        Index of the orbital from 0, see :meth:`~.Wavefunction.find`.
    spin : {"alpha", "beta"}
        Spin of the orbital in an unrestricted calculation.
    length : {"A", "bohr"}
        Unit of length; values are in this unit to the power -3/2.
    engine : str
        Compute engine.

    Returns
    -------
    Grid
        Map whose square integrates to 1.

    Raises
    ------
    UsageError
        For an index or a unit that does not exist.
    MemoryPlanError
        If the map does not fit into memory.
    BackendError
        If the engine is not available on this computer.
    """
    backend, channel = get_engine(engine), wavefunction.channel(spin)
    scale = _per(length, 1.5)
    values = _evaluate(wavefunction.shells, lattice, scale * channel.coefficients[:, [index]], np.zeros(0, np.float32),
                       backend)
    of_spin = "" if wavefunction.restricted else f" {spin}"
    return _grid(wavefunction, lattice, values, f"{of_spin} orbital {index + 1}".strip(), f"{length}^-3/2",
                 backend.name)


def density_map(wavefunction: Wavefunction, lattice: Lattice, spin: bool = False, length: str = "A",
                engine: str = "auto") -> Grid:
    """Return the electron density, or the spin density.

    Parameters
    ----------
    wavefunction : Wavefunction
    lattice : Lattice
    spin : bool
        Whether to compute the density of alpha electrons minus that of beta electrons.
    length : {"A", "bohr"}
        Unit of length; values are in e per cube of this unit.
    engine : str
        Compute engine.

    Returns
    -------
    Grid
        Map whose integral is the number of electrons, or of unpaired electrons.

    Raises
    ------
    UsageError
        For a unit that does not exist.
    MemoryPlanError
        If the map does not fit into memory.
    BackendError
        If the engine is not available on this computer.
    """
    backend, scale = get_engine(engine), _per(length, 1.5)
    sign = -1.0 if spin else 1.0
    coefficients, weights = wavefunction.occupied(sign)
    occupied = np.abs(weights) > _EMPTY
    if occupied.any():
        values = _evaluate(wavefunction.shells, lattice, scale * coefficients[:, occupied],
                           weights[occupied].astype(np.float32), backend)
    else:  # the spin density of a closed shell
        _require_memory(wavefunction.shells, lattice, 0)
        values = np.zeros(lattice.shape, np.float32)
    return _grid(wavefunction, lattice, values, "spin density" if spin else "electron density", f"e/{length}^3",
                 backend.name)


def _per(length: str, power: float) -> float:
    """Return the factor that converts values in bohr^-power to a unit of length to the same power."""
    return float(BOHR**-power) if length == "A" else 1.0


def _require_memory(shells: tuple[Shell, ...], lattice: Lattice, orbitals: int) -> None:
    """Raise an error if the map, tables of exponentials, coefficients and rows of orbitals do not fit into memory."""
    primitives = sum(len(shell.exponents) for shell in shells)
    polynomials = sum(len(monomials(shell.momentum)) for shell in shells)
    needed = 4 * (lattice.size + 6 * primitives * max(lattice.shape) + 3 * polynomials * orbitals
                  + threads.count() * (orbitals + 6) * lattice.shape[2])
    memory.require(needed, f"a map of {' x '.join(map(str, lattice.shape))} points", "use a larger {spacing}")


def _evaluate(shells: tuple[Shell, ...], lattice: Lattice, coefficients: Floats, weights: Singles,
              engine: Engine) -> Singles:
    """Return an orbital (nx, ny, nz), or the weighted sum of the squares of several."""
    _require_memory(shells, lattice, coefficients.shape[1])
    table, parts, row, primitive, monomial = np.zeros((len(shells), 4), np.int64), [], 0, 0, 0
    for index, shell in enumerate(shells):
        polynomials = in_monomials(shell.momentum, shell.functions)
        rows = coefficients[row : row + len(polynomials)]
        parts.append(polynomials.T @ rows)
        table[index] = shell.momentum, primitive, primitive + len(shell.exponents), monomial
        row, primitive, monomial = row + len(rows), table[index, 2], monomial + polynomials.shape[1]
    in_bohr = Lattice(lattice.origin / BOHR, lattice.spacing / BOHR, lattice.shape)
    factors, group = _exponentials(shells, in_bohr), _TOGETHER if len(weights) else 1
    orbitals, more = coefficients.shape[1], -coefficients.shape[1] % group
    grouped = np.ascontiguousarray(np.pad(np.concatenate(parts), ((0, 0), (0, more))).reshape(
        monomial, -1, group).transpose(1, 0, 2), np.float32)
    plane = tiled_plane(lattice.shape)
    with engine.room(4 * lattice.size + factors.nbytes + grouped.nbytes):
        values = engine.empty(lattice.shape, np.float32)
        engine.launch(
            KERNELS["sum_squared_orbitals" if len(weights) else "evaluate_orbital"], lattice.shape[0] * plane,
            "orbitals", plane, table=table, centres=np.array([shell.centre for shell in shells]),
            reaches=np.array([shell.reach for shell in shells]), factors=factors, coefficients=grouped,
            weights=np.pad(weights, (0, more)), values=values, origin=in_bohr.origin, spacing=in_bohr.spacing,
            shape=lattice.shape, primitives=primitive, padded=factors.shape[2], plane=plane, shells=len(shells),
            monomials=monomial, orbitals=orbitals)
        return cast(Singles, engine.to_host(values))


def _exponentials(shells: tuple[Shell, ...], lattice: Lattice) -> Singles:
    """Return exp(-a x^2), (3, P, n), of all primitives at the nodes along each axis, those of x times their factors."""
    counts, exponents = [len(shell.exponents) for shell in shells], np.concatenate([each.exponents for each in shells])
    result = np.zeros((3, len(exponents), -(-max(lattice.shape) // _VECTOR) * _VECTOR), np.float32)
    for d, nodes in enumerate(lattice.axes()):
        values = nodes - np.repeat([shell.centre[d] for shell in shells], counts)[:, None]
        values *= values
        values *= -exponents[:, None]
        np.exp(values, out=values)
        values[values < _LEAST] = 0
        result[d, :, : len(nodes)] = values
    result[0] *= np.concatenate([shell.radial() for shell in shells]).astype(np.float32)[:, None]
    return result


def _grid(wavefunction: Wavefunction, lattice: Lattice, values: Singles, quantity: str, unit: str,
          engine: str) -> Grid:
    provenance = Provenance(quantity=quantity, method="Gaussian basis functions", boundary="open", precision="single",
                            engine=engine, inputs=(wavefunction.name,))
    return Grid(lattice, values, unit, provenance=provenance)
