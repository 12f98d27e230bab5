"""Engines: where the sums are computed.

An engine has a ``name``, says by ``has_transforms`` whether it can do ``pme``, and has these functions,
with the same arguments and the same results on every engine within the stated accuracy:

``direct(lattice, positions, charges, interaction, precision, field)``
    all atoms to all lattice points;
``cutoff(lattice, positions, charges, interaction, precision, cell, field)``
    atoms within the interaction's cutoff, of the periodic images too where a cell is given;
``pme(lattice, positions, charges, mesh, precision, field)``
    all atoms, and all periodic images where the mesh is periodic, by a mesh and the pairs within
    its split radius (:mod:`vmdpotential.splitting.mesh` plans it);
``msm(lattice, positions, charges, plan, precision, field)``
    the same by multilevel summation (:mod:`vmdpotential.splitting.levels` plans it);
``at_points(points, positions, charges, cell, interaction)``
    all atoms to arbitrary points in float64, the nearest image of each where a cell is given.

Potentials are sums of ``q V(r)`` in e/A, without the Coulomb constant. A map is (nx, ny, nz), or with
`field` (4, nx, ny, nz): the potential, and its negative gradient along x, y and z in e/A^2. An atom
nearer than 0.01 A to a point counts as if at that distance, and makes no field there.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vmdpotential import registry
from vmdpotential.errors import BackendError

if TYPE_CHECKING:
    from vmdpotential.grid.lattice import Lattice
    from vmdpotential.interactions import Bound
    from vmdpotential.molecule.cell import Cell
    from vmdpotential.splitting.levels import Plan
    from vmdpotential.splitting.mesh import Mesh

#: How the sums are rounded: float32, float32 with compensated summation, float64.
PRECISIONS = ("single", "compensated", "double")

#: A point nearer to an atom than this, in A, gets the potential at this distance and no field from it.
SOFT_CORE = 0.01


class Engine(Protocol):
    """What every engine offers; arrays are float64, potentials come back in e/A."""

    name: str

    @property
    def has_transforms(self) -> bool:
        """Whether it has the Fourier transforms that pme needs."""

    def describe(self) -> str:
        """Return one line on the hardware that computes."""

    def direct(self, lattice: Lattice, positions: NDArray[np.float64], charges: NDArray[np.float64],
               interaction: Bound, precision: str = "single", field: bool = False) -> NDArray[np.float32]:
        """Return the map of all atoms."""

    def cutoff(self, lattice: Lattice, positions: NDArray[np.float64], charges: NDArray[np.float64],
               interaction: Bound, precision: str = "single", cell: Cell | None = None,
               field: bool = False) -> NDArray[np.float32]:
        """Return the map of the atoms and images within the cutoff."""

    def pme(self, lattice: Lattice, positions: NDArray[np.float64], charges: NDArray[np.float64], mesh: Mesh,
            precision: str = "single", field: bool = False) -> NDArray[np.float32]:
        """Return the map of the full potential by a mesh."""

    def msm(self, lattice: Lattice, positions: NDArray[np.float64], charges: NDArray[np.float64], plan: Plan,
            precision: str = "single", field: bool = False) -> NDArray[np.float32]:
        """Return the map of the full potential by multilevel summation."""

    def at_points(self, points: NDArray[np.float64], positions: NDArray[np.float64], charges: NDArray[np.float64],
                  cell: Cell | None = None, interaction: Bound | None = None) -> NDArray[np.float64]:
        """Return the potential (P,) of all atoms, or their nearest images, at points (P, 3)."""


_reason = ""


def get_engine(name: str = "auto") -> Engine:
    """Return an engine by name; ``auto`` takes cuda where it works, else cpu.

    Raises
    ------
    UsageError
        When there is no engine of that name.
    BackendError
        When the engine cannot work on this machine.
    """
    if name == "auto":
        name = automatic()
    engine: Any = registry.get("engine", name)
    if hasattr(engine, "check"):
        engine.check()
    return engine  # type: ignore[no-any-return]


@cache
def automatic() -> str:
    """Return the name of the engine that ``auto`` stands for; :func:`reason` says why."""
    global _reason
    try:
        registry.get("engine", "cuda").check()
    except BackendError as error:
        _reason = f"the cuda engine does not work here: {error}"
        return "cpu"
    _reason = ""
    return "cuda"


def reason() -> str:
    """Return why ``auto`` takes the cpu engine, empty where it takes cuda."""
    automatic()
    return _reason
