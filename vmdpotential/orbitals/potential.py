"""Electrostatic potential of the nuclei and electrons of a wave function, without fitted charges.

The electron density is a sum of Hermite Gaussians (:mod:`vmdpotential.orbitals.products`), whose potentials are known
in closed form and summed by engines (:class:`vmdpotential.engines.gaussians.GaussianSum`).
"""

from __future__ import annotations

from vmdpotential import memory
from vmdpotential.engines import SOFT_CORE, get_engine
from vmdpotential.engines.gaussians import GaussianSum
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.orbitals.products import gaussians
from vmdpotential.orbitals.wavefunction import Wavefunction
from vmdpotential.units import BOHR, DEFAULT_TEMPERATURE, coulomb_constant


def potential_map(wavefunction: Wavefunction, lattice: Lattice, unit: str = "kT/e",
                  temperature: float = DEFAULT_TEMPERATURE, engine: str = "auto") -> Grid:
    """Return the electrostatic potential of the nuclei and electrons at the points of a lattice.

    Parameters
    ----------
    wavefunction : Wavefunction
    lattice : Lattice
    unit : str
        Unit of the values, from :data:`vmdpotential.units.POTENTIAL_UNITS`.
    temperature : float, K
        Temperature that defines kT/e.
    engine : str
        Compute engine.

    Returns
    -------
    Grid
        Map of the potential. Distances to nuclei below 0.01 A count as 0.01 A.

    Raises
    ------
    UsageError
        For a unit that does not exist.
    MemoryPlanError
        If the map does not fit into memory.
    BackendError
        If the engine is not available on this computer.
    """
    backend, factor = get_engine(engine), coulomb_constant(unit, temperature) / BOHR
    memory.require(8 * lattice.size, f"a map of {' x '.join(map(str, lattice.shape))} points", "use a larger {spacing}")
    values = backend.gaussians(gaussian_sum(wavefunction, lattice, factor))
    provenance = Provenance(method="Gaussian basis functions", interaction="coulomb", medium="vacuum, no screening",
                            boundary="open", precision="double", engine=backend.name, inputs=(wavefunction.name,))
    return Grid(lattice, values, unit, temperature, 1.0, provenance)


def gaussian_sum(wavefunction: Wavefunction, lattice: Lattice, factor: float) -> GaussianSum:
    """Return the sum for an engine, whose result is `factor` times the potential in hartree/e."""
    return GaussianSum(Lattice(lattice.origin / BOHR, lattice.spacing / BOHR, lattice.shape), gaussians(wavefunction),
                     wavefunction.positions / BOHR, wavefunction.nuclear_charges, SOFT_CORE / BOHR, factor)
