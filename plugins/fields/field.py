"""Electric field and potential at atoms, midpoints of bonds or points, in every frame and by contributions.

There is no cutoff: a periodic cell includes all images, with conducting surroundings and a neutralising background, and
an open boundary all atoms. A short-range part is summed pair by pair, and a smooth part on a mesh, whose interpolation
is differentiated for the field. A screened potential has no background; if there are few sites, all pairs that matter
are summed directly. An atom contributes neither field nor potential at its own position. Of excluded charges
(:data:`EXCLUDED`) only the nearest image is left out; images in other cells contribute, as in a simulation. In a
continuum (``pb``) the reaction field of all charges is included, and charges are excluded from the direct sum only.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from vmdpotential import memory
from vmdpotential.arrays import Floats, Integers
from vmdpotential.engines import get_engine, with_transforms
from vmdpotential.errors import UsageError
from vmdpotential.execution.blocks import block_size
from vmdpotential.execution.work import Arrays, FrameCost, WorkNeeds
from vmdpotential.frames.cells import CellFrames
from vmdpotential.frames.options import Execution
from vmdpotential.frames.sums import FrameRows, FrameSum
from vmdpotential.frames.task import FrameTask, merge_blocks, run_task
from vmdpotential.grid.lattice import Points
from vmdpotential.interactions import SOFT_CORE, Bound
from vmdpotential.io.trajectories.frames import Frame, Frames
from vmdpotential.maps import LEAST_TOLERANCE, Medium, bind_interaction, check_tolerance, choose_cell
from vmdpotential.maps.interaction import medium_of_sum
from vmdpotential.maps.options import Boundary, MethodOptions, Unit
from vmdpotential.maps.options import Engine as EngineName
from vmdpotential.maps.solute import in_continuum
from vmdpotential.maps.solution import solution_of, with_membrane
from vmdpotential.maps.solver import SolventRequest, in_solution
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure
from vmdpotential.parameters import Option, change_options, takes_fields
from vmdpotential.sums import Plan
from vmdpotential.sums.accuracy import choose_rows
from vmdpotential.sums.choice import plan_fastest
from vmdpotential.sums.points import FIRST_ERROR, request_at, rms_ratio
from vmdpotential.sums.potential_sum import Prepared
from vmdpotential.sums.reference import NEGLECTED_WAVES, exact_plan
from vmdpotential.sums.refinement import BY_SPACING, PlanAttempt, refine_to_tolerance
from vmdpotential.sums.result import Errors, Result
from vmdpotential.units import coulomb_constant

from .contributions import parts_of
from .sites import EXCLUDED, FieldSites, Mask, excluded_pairs

#: Default tolerance: relative rms error of the field and of the potential.
DEFAULT_FIELD_TOLERANCE = 1e-5

#: A field smaller than the potential divided by this distance, A, is taken to vanish by symmetry, and its error is then
#: relative to that quotient.
VANISHING = 100.0


@dataclass(frozen=True, eq=False)
class Fields(FrameTask):
    """Potential and field at sites in blocks of frames; picklable.

    Parameters
    ----------
    frames : CellFrames
    charges : (N,) float64, e
    places : FieldSites
    parts : sequence of (A,) int64
    rows : (names, parts) bool
        As in :class:`vmdpotential.plugins.fields.waves.Profiles`.
    left_out : (E, 2) int64
        Indices of sites and of the atoms that are excluded at them.
    interaction : Bound
    plan : Plan or None
        None if there are no charges or no sites.
    solvent : SolventRequest, optional
        The solution around the charges, in a continuum.
    """

    frames: CellFrames
    charges: Floats
    places: FieldSites
    parts: Sequence[Integers]
    rows: Mask
    left_out: Integers
    interaction: Bound
    plan: Plan | None
    solvent: SolventRequest | None = None

    @property
    def engine(self) -> str:
        """Name of the engine."""
        return "cpu" if self.plan is None else self.plan.engine

    def needs(self) -> WorkNeeds:
        """Return the engine, the memory for a frame with images of its atoms or sites and its mesh, and the cost."""
        memory = 1000 * len(self.charges) + (0 if self.plan is None else 2 * self.plan.estimate.bytes)
        return WorkNeeds(self.engine, memory, self._cost if self.frames.source.portable else None)

    def _cost(self) -> FrameCost:
        """Return the time for a frame, measured on the first one, and the size of a block's result."""
        frame, size = self.frames.first, block_size(len(self.frames.numbers()), len(self.charges))
        self.compute([frame])
        start = time.perf_counter()
        result = self.compute([frame, frame])["values.rows"]
        seconds = (time.perf_counter() - start) / 2
        return FrameCost(seconds, self.frames.source.seconds(), result.nbytes // 2 * size)

    def sums(self) -> Mapping[str, FrameSum]:
        """Return the rows of potential, e/A, and field, e/A^2, (names, M, 4), of directions (M, 3), and of numbers."""
        frames = len(self.frames.numbers())
        return {"values": FrameRows(frames), "along": FrameRows(frames), "numbers": FrameRows(frames)}

    def of_frame(self, frame: Frame) -> Mapping[str, ArrayLike]:
        """Return the values of a frame."""
        values, direction = self.of(frame.positions, frame.cell)
        return {"values": values, "along": direction, "numbers": frame.number}

    def of(self, positions: Floats, cell: Cell | None) -> tuple[Floats, Floats]:
        """Return potential and field (names, M, 4) at the sites, and directions of bonds (M, 3), of one frame."""
        places, direction, turn = self.places.of(positions, cell)
        parts = np.zeros((len(self.parts), len(places), 4))
        if self.plan is not None:
            target = Points(places)
            total = self.plan.prepare(target, positions, cell)
            for n, part in enumerate(self.parts):
                atoms, charges = positions[part], self.charges[part]
                if self.solvent is not None:  # atoms without a charge also shape the molecule
                    atoms, charges = positions, np.zeros(len(positions))
                    charges[part] = self.charges[part]
                result = total.run(atoms, charges, target)
                parts[n, :, 0], parts[n, :, 1:] = result.values(), _field_of(result)
            if len(self.left_out):
                kind = np.empty(len(positions), np.int64)
                for n, part in enumerate(self.parts):
                    kind[part] = n
                self._leave_out(parts, kind, places, positions, cell, self.plan, total)
        rows = np.tensordot(self.rows.astype(np.float64), parts, 1)
        rows[..., 1:] = rows[..., 1:] @ turn
        return rows, direction

    def _leave_out(self, parts: Floats, kind: Integers, places: Floats, positions: Floats, cell: Cell | None,
                   plan: Plan, total: Prepared) -> None:
        """Subtract the contribution of the nearest image of each excluded atom."""
        bound, factor = self.interaction, 1.0 if self.solvent is None else self.solvent.permittivity_ratio
        where, atoms = self.left_out.T
        d = places[where] - positions[atoms]
        d = d if cell is None else cell.minimum_image(d)
        r = np.linalg.norm(d, axis=1)
        q = self.charges[atoms]
        here = r < SOFT_CORE
        far = np.where(here, SOFT_CORE, r)
        potential = np.where(here, q * total.self_potential, factor * q * bound(far))
        slope = np.where(here, 0.0, -factor * q * bound.derivative(far) / far)
        np.subtract.at(parts[..., 0], (kind[atoms], where), potential)
        np.subtract.at(parts[..., 1:], (kind[atoms], where), slope[:, None] * d)

    def subset(self, rows: Integers, plan: Plan) -> Fields:
        """Return the work for some of the sites by another plan."""
        kept = np.isin(self.left_out[:, 0], rows)
        left_out = self.left_out[kept]
        left_out[:, 0] = np.searchsorted(rows, left_out[:, 0])
        return replace(self, places=self.places.subset(rows), left_out=left_out, plan=plan)


def _field_of(result: Result) -> Floats:
    """Return the field at points, (P, 3) e/A^2."""
    field = result.field()
    assert field is not None
    return field.T


@dataclass(frozen=True, eq=False)
class FieldSeries:
    """Potential and field at sites in every frame.

    Parameters
    ----------
    places : FieldSites
    names : sequence of str
        ``total`` and the requested contributions, if any.
    frames : (F,) int64
    potential : (F, names, M) float64, in `unit`
    field : (F, names, M, 3) float64, V/A
    along : (F, names, M) float64 or None, V/A
        The field along bonds, from their first atoms to their second.
    unit : str
    cell : Cell or None
        Cell of the first frame; None in an open boundary.
    error : float
        Root mean square error of the field's components, V/A, in the first frame, measured at up to 200 sites against
        an exact sum; 0 if the sum is exact.
    relative_errors : (float, float)
        Rms errors of the potential and of the field in the first frame relative to their rms; 0 if the sum is exact.
    medium : str
        Description of the medium between the charges.
    engine : str
        Name of the engine.
    """

    places: FieldSites
    names: Sequence[str]
    frames: Integers
    potential: Floats
    field: Floats
    along: Floats | None
    unit: str
    cell: Cell | None
    error: float
    relative_errors: tuple[float, float]
    medium: str
    engine: str


@dataclass(frozen=True, kw_only=True)
class FieldOptions(MethodOptions):
    """All options of field and potential at sites, see :func:`field_at`."""

    exclude: Annotated[str, Option(
        "charges that do not contribute at a site: those of its atom (both atoms of a bond), residue or molecule; auto "
        "is residue for bonds and atom otherwise", choices=("auto", *EXCLUDED), heading="sites")] = "auto"
    boundary: Boundary = "auto"
    unit: Unit = "V"
    tolerance: Annotated[float | None, Option(
        f"largest relative rms error of field and potential, measured in the first frame; "
        f"{DEFAULT_FIELD_TOLERANCE:g} unless given. The method pb then reduces its spacing",
        low=LEAST_TOLERANCE, high=0.1, heading="method and accuracy")] = None
    spacing: Annotated[float, Option(
        "grid spacing of a continuum (pb), from which values are interpolated", unit="A", low=0.05, high=2.0,
        heading="grid")] = 0.5
    engine: EngineName = "auto"
    sources: Mapping[str, Mask] | None = None
    cell: Cell | None = None

    def left_out(self, places: FieldSites) -> str:
        """Return which of :data:`EXCLUDED` applies."""
        return self.exclude if self.exclude != "auto" else "residue" if places.kind == "bonds" else "atom"


@takes_fields(FieldOptions)
def field_at(structure: Structure, places: FieldSites, trajectory: Frames | None = None,
             options: FieldOptions | None = None, execution: Execution | None = None, **keywords: Any) -> FieldSeries:
    """Return electric field and potential at sites in every frame.

    Options are keywords, or one object of :class:`FieldOptions`, which keywords then change.

    Parameters
    ----------
    structure : Structure
        With charges; without a trajectory its own positions are the only frame.
    places : FieldSites
    trajectory : Frames, optional
    options : FieldOptions, optional
    execution : Execution, optional
        Where blocks of frames are computed and kept.
    sources : mapping of (N,) bool, optional
        Contributions of groups by name; atoms in none of them make one called ``rest``.
    exclude : {"auto", "atom", "residue", "molecule"}
        Charges that are excluded at each site: its atom (both atoms of a bond), its residue, or its molecule, which is
        a set of bonded atoms. ``auto`` is the residue for bonds and the atom otherwise.
    boundary : {"auto", "open", "periodic"}
    cell : Cell, optional
        Cell of all frames, which replaces their own.
    unit, temperature
        Unit of the potential and temperature of kT/e, see :func:`vmdpotential.units.coulomb_constant`.
    screened, dielectric, medium
        See :func:`vmdpotential.maps.potential_map`.
    tolerance : float, optional
        Largest rms errors of field and potential relative to their rms; 1e-5 unless given.
    method : str
        ``auto``, or a method that sums at points; ``pb`` is the solute in a continuum, and needs `radii`.
    parameters, radii
        Options of ``pb``, see :func:`vmdpotential.maps.potential_map`.
    spacing : float
        Lattice spacing of ``pb``, A; it is reduced if a given tolerance requires it.
    engine : str
        Where an engine has no Fourier transforms, the CPU computes sums on a mesh instead.

    Raises
    ------
    InputError
        Without charges, or for a frame without a cell in a periodic boundary.
    UsageError
        For the exclusion of molecules in a structure without bonds.
    """
    asked = change_options(FieldOptions, options, keywords)
    medium, boundary = medium_of_sum(asked), asked.boundary
    if medium.method:
        choose_cell(structure, asked.summation, boundary)  # raises for a periodic boundary
        boundary = "open"
    structure, solute, together = in_continuum(structure, "solute" if medium.method else "all", medium,
                                               trajectory is not None)
    frames = CellFrames.of(structure, trajectory, boundary, asked.cell, together)
    begin, numbers = frames.first, frames.numbers()
    names, parts, rows = parts_of(len(structure), asked.sources)
    charges = structure.known_charges
    if medium.method:
        charges = np.where(solute, charges, 0.0)
    total = len(numbers) * len(names) * len(places)
    memory.require(80 * total, f"the field at {len(places)} places in {len(numbers)} frames",
                   "choose fewer places, or fewer {frames}")
    bound = bind_interaction(asked, begin.cell)
    tolerance = check_tolerance(DEFAULT_FIELD_TOLERANCE if asked.tolerance is None else asked.tolerance)
    where = places.of(begin.positions, begin.cell)[0]
    left_out = excluded_pairs(structure, places, asked.left_out(places))

    request = request_at(where, begin.positions, charges, begin.cell, bound, tolerance=tolerance, field=True)
    backend = get_engine(asked.engine)
    nothing = not charges.any() or not len(places)
    method = "ewald" if asked.method == "direct" and begin.cell is not None else asked.summation

    solver, solvent = asked.solver, None
    if solver is not None:
        medium = with_membrane(medium, structure, solute)
        solvent = _solvent(structure, solute, asked.radii, medium)
        if len(names) > 1 and medium.parameters.get("nonlinear"):
            raise UsageError("set", "contributions only add up for the linear equation", "leave out nonlinear")
        if len(names) > 1 and medium.parameters.get("voltage"):
            raise UsageError("set", "a voltage is no contribution of atoms", "leave out voltage or {from}")

    def computes(plan: Plan | None) -> tuple[Fields, Arrays]:
        work = Fields(frames, charges, places, parts, rows, left_out, bound, plan, solvent)
        return work, work.compute([begin])

    def solved_with(spacing: float) -> PlanAttempt[tuple[Fields, Arrays, Floats]]:
        """Return the work with its result for the first frame and its errors, and the largest relative error."""
        assert solver is not None
        assert solvent is not None
        plan = solver.plan(in_solution(request, replace(solvent, spacing=spacing)), with_transforms(backend))
        work, result = computes(plan)
        solved = plan.run(begin.positions, charges)
        stated, squares = solved.errors or Errors(0.0), solved.mean_squares()
        absolute = (stated.everywhere * float(np.sqrt(squares[0])),
                    (stated.field or 0.0) * float(np.sqrt(squares[1] / 3)))
        values = np.asarray(result["values.rows"], np.float64)[0, 0]
        sizes = [float(np.sqrt(np.mean(np.square(each)))) for each in (values[:, 0], values[:, 1:])]
        sizes[1] = max(sizes[1], sizes[0] / VANISHING)
        errors = [error / size if size > 0 else 0.0 for error, size in zip(absolute, sizes, strict=True)]
        return PlanAttempt((work, result, np.array([absolute[1], *errors])), max(errors), plan)

    def attempt(error: float) -> PlanAttempt[tuple[Fields, Arrays, Floats]]:
        """Return the work with its result for the first frame, and the errors of field and potential."""
        plan = None if nothing else plan_fastest(request.with_error(error), backend, method)
        work, result = computes(plan)
        if plan is None or plan.error is None:
            return PlanAttempt((work, result, np.zeros(3)), 0.0, plan)
        chosen = choose_rows(len(places))
        exactly = exact_plan(replace(request, target=Points(where[chosen])), backend, NEGLECTED_WAVES * tolerance)
        exact = np.asarray(work.subset(chosen, exactly).compute([begin])["values.rows"], np.float64)[0, 0]
        values = np.asarray(result["values.rows"], np.float64)[0, 0]
        difference = exact - values[chosen]
        field_error = float(np.sqrt(np.mean(np.square(difference[:, 1:]))))
        least = float(np.sqrt(np.mean(np.square(values[:, 0])))) / VANISHING
        errors = (rms_ratio(difference[:, 0], values[:, 0]), rms_ratio(difference[:, 1:], values[:, 1:], least))
        return PlanAttempt((work, result, np.array([field_error, *errors])), max(errors), plan)

    if solver is not None and not nothing:
        work, first, errors = solved_with(asked.spacing).result if asked.tolerance is None else (
            refine_to_tolerance(tolerance, asked.spacing, solved_with, BY_SPACING))
    else:
        work, first, errors = refine_to_tolerance(tolerance, FIRST_ERROR * tolerance, attempt)
    merged = merge_blocks(work.sums(), [first]) if trajectory is None else run_task(
        work, execution, size=block_size(len(numbers), len(structure)))
    values = merged["values"].values
    volts = coulomb_constant("V", dielectric=medium.dielectric)
    values[..., 0] *= medium.constant(asked.unit)
    values[..., 1:] *= volts
    field = values[..., 1:]
    return FieldSeries(
        places, names, merged["numbers"].values, values[..., 0], field,
        np.einsum("fnmd,fmd->fnm", field, merged["along"].values) if places.kind == "bonds" else None, asked.unit,
        begin.cell, volts * float(errors[0]), (float(errors[1]), float(errors[2])),
        medium.describe(bound, structure), work.engine)


def _solvent(structure: Structure, chosen: Mask, radii: str, medium: Medium) -> SolventRequest:
    """Return the solution around the chosen atoms; the radii of all others are 0."""
    solution = solution_of(structure, chosen, radii, medium, "kT/e")
    values = np.zeros(len(structure))
    values[chosen] = solution.radii
    return replace(solution, radii=values)
