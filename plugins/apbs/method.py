"""The solver ``apbs``: a molecule of low permittivity in a solution of ions, by the Poisson-Boltzmann equation.

APBS (E. Jurrus et al., Protein Sci. 27, 2018, 112; N. A. Baker et al., PNAS 98, 2001, 10037) solves it by multigrid on
lattices of 32 n + 1 nodes along each axis. The points of a map are nodes of a fine lattice, so that nothing is
interpolated; the fine lattice's boundary values come from a coarse lattice around the molecule.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from vmdpotential import memory
from vmdpotential.arrays import Floats
from vmdpotential.engines import Engine
from vmdpotential.errors import BackendError
from vmdpotential.extras import install_command
from vmdpotential.grid.lattice import Lattice, Points, coordinate_bounds
from vmdpotential.maps.solution_ions import ions_of
from vmdpotential.maps.solver import ContinuumSolver, SolverRequest, refuse_lattice
from vmdpotential.sums import Estimate, Plan, Refusal, result_bytes
from vmdpotential.sums.inputs import charges_and_positions
from vmdpotential.sums.result import HostResult
from vmdpotential.units import coulomb_constant

from . import program

#: The number of nodes along an axis is STEP n + 1, for four levels of multigrid; n is at least LEAST, so that the
#: coarse lattice, which has as many nodes, is accurate enough for the boundary values.
STEP, LEAST = 32, 2

#: Bytes and seconds per node of the fine lattice, with the coarse one included, and seconds per atom (measured).
BYTES, SECONDS, ATOM = 240, 3.5e-6, 2e-4

#: Smallest size of the coarse lattice relative to the molecule, as in APBS's tools, and its smallest margin, A: its own
#: boundary values are sums of screened charges, which ignore the volume without ions.
COARSE, BEYOND = 1.7, 20.0


@dataclass(frozen=True, eq=False)
class PbPlan(Plan):
    """The plan of a solution by APBS; see :class:`vmdpotential.sums.Plan`."""

    request: SolverRequest
    fine: Lattice
    first: tuple[int, int, int]
    estimate: Estimate
    engine: str = "cpu"
    method: str = field(default="apbs", init=False)
    error: float | None = field(default=None, init=False)  # not known

    def run(self, positions: ArrayLike, charges: ArrayLike, target: Lattice | Points | None = None) -> HostResult:
        """Return the potential of charges (N,), in the request's unit, at positions (N, 3), A.

        Raises
        ------
        BackendError
            When APBS is not installed.
        TaskError
            When APBS fails.
        """
        self.refuse_parts(target)
        centres, sources = charges_and_positions(positions, charges)
        solution = self.request.solution
        result = program.solve(_input(self, centres), _atoms(centres, sources / solution.charge, solution.radii),
                               self.fine.shape, self.estimate.seconds)
        a, b, c = self.first
        nx, ny, nz = self.request.lattice.shape
        unit = coulomb_constant(solution.unit, solution.temperature) / coulomb_constant("kT/e", solution.temperature)
        values = unit * result[a : a + nx, b : b + ny, c : c + nz]
        return HostResult(np.ascontiguousarray(values, np.float32)[None])

    def __str__(self) -> str:
        nodes = " x ".join(map(str, self.fine.shape))
        return (f"apbs, {nodes} nodes; about {self.estimate.seconds:.2g} s, {memory.size(self.estimate.bytes)}")


class PoissonBoltzmann(ContinuumSolver):
    """The solver of APBS; see :class:`vmdpotential.maps.solver.ContinuumSolver`."""

    name = "apbs"
    field = False
    summary = "Poisson-Boltzmann: a molecule in a continuum of water and ions, by APBS"

    def estimate(self, request: SolverRequest, engine: Engine) -> Estimate | Refusal:
        """Return the estimated time and memory, or a refusal."""
        if not program.is_installed():
            return Refusal("needs the program APBS", install_command("apbs"), BackendError)
        nodes, results = enclosing(request.lattice)[0].size, result_bytes(request)
        if request.planes is not None or results + BYTES * nodes > memory.limit():
            return refuse_lattice(request.lattice, results + BYTES * nodes, lambda coarser: (
                BYTES * enclosing(coarser)[0].size + 4 * coarser.size + 200 * request.charges.count))
        return Estimate(0.5 + SECONDS * nodes + ATOM * request.charges.count, results + BYTES * nodes)

    def plan(self, request: SolverRequest, engine: Engine) -> PbPlan:
        """Return the plan of a solution.

        Raises
        ------
        UsageError
            For a request that the method does not support.
        MemoryPlanError
            When the map does not fit into memory.
        BackendError
            When APBS is not installed.
        """
        estimate = self.require(request, engine)
        fine, first = enclosing(request.lattice)
        return PbPlan(request, fine, first, estimate, engine.name)


def enclosing(lattice: Lattice) -> tuple[Lattice, tuple[int, int, int]]:
    """Return a lattice for APBS that contains the nodes of another one, and the index of the other's first node."""
    shape = np.array(lattice.shape)
    nodes = STEP * np.maximum(LEAST, -(-(shape - 1) // STEP)) + 1
    a, b, c = (int(n) for n in (nodes - shape) // 2)
    nx, ny, nz = (int(n) for n in nodes)
    return Lattice(lattice.origin - lattice.spacing * (a, b, c), lattice.spacing, (nx, ny, nz)), (a, b, c)


def _input(plan: PbPlan, positions: Floats) -> str:
    """Return the text of APBS's input file."""
    solvent, fine = plan.request.solution, plan.fine
    values, radius = solvent.values, float(solvent.radii.max(initial=0.0))
    low, high = coordinate_bounds(positions) if len(positions) else (fine.origin, fine.last)
    middle = (low + high) / 2
    half = (high - low) / 2 + radius
    half = np.maximum(COARSE * half, half + BEYOND)
    low, high = np.minimum(middle - half, fine.origin), np.maximum(middle + half, fine.last)

    def three(numbers: Floats) -> str:
        return " ".join(f"{x:.9f}" for x in numbers)

    return "\n".join([
        "read", f"  mol pqr {program.ATOMS}", "end", "elec", "  mg-auto",
        f"  dime {' '.join(map(str, fine.shape))}",
        f"  cglen {three(1.001 * (high - low))}", f"  cgcent {three((low + high) / 2)}",
        f"  fglen {three(fine.last - fine.origin)}", f"  fgcent {three((fine.origin + fine.last) / 2)}",
        "  mol 1", "  npbe" if values["nonlinear"] else "  lpbe", "  bcfl mdh", "  srfm smol", "  chgm spl2",
        "  sdens 10.0", "  swin 0.3",
        f"  pdie {values['inside']:.6f}", f"  sdie {solvent.dielectric:.6f}", f"  srad {values['probe']:.6f}",
        f"  temp {solvent.temperature:.6f}",
        *(f"  ion charge {z} conc {molar:.9f} radius {values['ion_radius']:.6f}" for z, molar in ions_of(values)),
        "  calcenergy no", "  calcforce no", f"  write pot dxbin {program.MAP}", "end", "quit", ""])


def _atoms(positions: Floats, charges: Floats, radii: Floats) -> str:
    """Return atoms in the PQR format, as far as APBS reads it."""
    rows = np.column_stack([positions, charges, radii]).tolist()
    return "".join(f"ATOM {n} X MOL 1 {x:.6f} {y:.6f} {z:.6f} {q:.8f} {r:.6f}\n"
                   for n, (x, y, z, q, r) in enumerate(rows, 1))


SOLVER = PoissonBoltzmann()
