"""The command ``verify``."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Annotated, Any

from vmdpotential import registry
from vmdpotential.engines import PRECISIONS
from vmdpotential.errors import BackendError, CheckError
from vmdpotential.parameters import Command, Option, Report

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vmdpotential.engines import Engine
    from vmdpotential.grid.lattice import Lattice
    from vmdpotential.interactions import Bound
    from vmdpotential.molecule.cell import Cell

#: Relative rms error against float64 that a map may have, by precision.
TOLERANCE = {"single": 1e-5, "compensated": 2e-6, "double": 2e-7}

#: The same for sums at points, which are in float64 on every engine.
POINT_TOLERANCE = 1e-10

#: The same for the full potential, of the mesh and the levels that are used here.
FULL_TOLERANCE = {"pme": 3e-5, "msm": 1e-4}


def verify(
    engine: Annotated[str, Option(
        "what is checked; all that work here unless given",
        choices=lambda: ("all", *registry.available("engine")))] = "all",
    points: Annotated[int, Option("points at which a map is compared", low=10, high=10000)] = 200,
    seed: Annotated[int, Option("of the random box and points", low=0)] = 1,
) -> Report:
    """Compare every engine, method and precision on this machine with the definition in float64.

    A box of random water molecules is summed on a lattice that straddles the tiles of all kernels;
    at random points of it, the map must agree with the sum written out. The exit code is 3 where one
    does not.

    Raises
    ------
    CheckError
        When a row fails; it holds the report.
    """
    import numpy as np

    from vmdpotential.commands.benchmark import water_box
    from vmdpotential.engines import get_engine
    from vmdpotential.grid.lattice import Lattice
    from vmdpotential.methods.reference import full_potential
    from vmdpotential.molecule.cell import Cell

    rng = np.random.default_rng(seed)
    edge = 40.0
    positions, charges = water_box(edge)
    positions = positions + rng.uniform(-1, 1, 3)
    cell = Cell.from_parameters(edge, edge, edge)
    lattice = Lattice(rng.uniform(-1, 1, 3), np.array([0.5, 0.5, 0.5]), (61, 57, 67))
    indices = rng.integers(0, lattice.shape, (points, 3))
    where = lattice.points(indices)
    shifted = registry.get("interaction", "shifted_coulomb").bind(cutoff=10.0)
    truncated = registry.get("interaction", "screened_coulomb").bind(debye_length=8.0).truncated(9.0)
    coulomb = registry.get("interaction", "coulomb").bind()
    cases: list[tuple[str, Bound, Cell | None]] = [
        ("direct", coulomb, None), ("cutoff", shifted, None), ("cutoff", truncated, None), ("cutoff", shifted, cell)]
    references = [definition(where, positions, charges, bound, box) for _, bound, box in cases]
    nearest = definition(where, positions, charges, coulomb, cell, nearest=True)
    full = {None: references[0], cell: full_potential(where, positions, charges, cell, get_engine("cpu"))}
    rows: list[dict[str, Any]] = []
    skipped = {}
    for name in registry.available("engine") if engine == "all" else (engine,):
        try:
            backend = get_engine(name)
        except BackendError as error:
            if engine != "all":
                raise
            skipped[name] = str(error)
            continue
        methods = [method for method in FULL_TOLERANCE if method != "pme" or backend.has_transforms]
        if "pme" not in methods:
            skipped[f"{name} pme"] = "pyvkfft is missing"
        for precision in PRECISIONS:
            for (method, bound, box), reference in zip(cases, references, strict=True):
                start = time.perf_counter()
                if method == "direct":
                    values = backend.direct(lattice, positions, charges, bound, precision)
                else:
                    values = backend.cutoff(lattice, positions, charges, bound, precision, box)
                rows.append(_row(name, method, bound, box, precision, values[tuple(indices.T)], reference,
                                 TOLERANCE[precision], time.perf_counter() - start))
            for method, box in itertools.product(methods, full):
                start = time.perf_counter()
                values = _full(backend, method, lattice, positions, charges, box, precision)
                rows.append(_row(name, method, coulomb, box, precision, values[tuple(indices.T)], full[box],
                                 FULL_TOLERANCE[method], time.perf_counter() - start))
        start = time.perf_counter()
        found = backend.at_points(where, positions, charges, cell)
        rows.append(_row(name, "at points", coulomb, cell, "double", found, nearest, POINT_TOLERANCE,
                         time.perf_counter() - start))
    failed = [row for row in rows if not row["passed"]]
    lines = [
        f"{'PASS' if row['passed'] else 'FAIL'}  {row['engine']:<5} {row['method']:<9} {row['interaction']:<17} "
        f"{row['boundary']:<8} {row['precision']:<11} {row['error']:.1e} (at most {row['tolerance']:.0e}) "
        f"{row['seconds']:7.2f} s" for row in rows
    ]
    lines += [f"not checked: {name}: {reason}" for name, reason in skipped.items()]
    lines.append(f"{len(rows) - len(failed)} of {len(rows)} passed: relative rms error at {points} points against "
                 "the definition in float64")
    report = Report(lines, {"rows": rows, "skipped": skipped, "passed": not failed})
    if failed:
        raise CheckError(f"verify: {len(failed)} of {len(rows)} failed: " + ", ".join(
            f"{row['engine']} {row['method']} {row['boundary']} {row['precision']} {row['error']:.1e}"
            for row in failed), report)
    return report


def definition(points: NDArray[np.float64], positions: NDArray[np.float64], charges: NDArray[np.float64],
               bound: Bound, cell: Cell | None, nearest: bool = False) -> NDArray[np.float64]:
    """Return the sum at points (P, 3) written out in float64, (P,) in e/A.

    With a cell, every image within the cutoff counts, or the nearest of each atom with `nearest`.
    """
    import numpy as np

    if cell is not None and not nearest:
        reach = bound.cutoff or 0.0
        positions, index = cell.images_in_box(positions, points.min(0) - reach, points.max(0) + reach)
        charges = charges[index]
    result = np.empty(len(points))
    for n, point in enumerate(points):
        d = positions - point
        if cell is not None and nearest:
            d = cell.minimum_image(d)
        r = np.maximum(np.sqrt((d * d).sum(1)), 0.01)
        result[n] = charges @ bound(r)
    return result


def _full(backend: Engine, method: str, lattice: Lattice, positions: NDArray[np.float64],
          charges: NDArray[np.float64], cell: Cell | None, precision: str) -> NDArray[np.float32]:
    """Return the full potential by a mesh or by levels whose errors are known, instead of to a tolerance."""
    from vmdpotential.splitting import levels, mesh

    if method == "msm":
        plan = levels.plan(lattice, positions, cell, radius=9.0, spacing=1.0, order=8)
        return backend.msm(lattice, positions, charges, plan, precision)
    nodes = mesh.around(lattice, positions, 1.0, 8, 5.0) if cell is None else mesh.over_cell(cell, 1.0, 8, 5.0)
    return backend.pme(lattice, positions, charges, nodes, precision)


def _row(engine: str, method: str, bound: Bound, cell: Cell | None, precision: str, values: NDArray[Any],
         reference: NDArray[np.float64], tolerance: float, seconds: float) -> dict[str, Any]:
    error = float((((values - reference) ** 2).mean() / (reference**2).mean()) ** 0.5)
    error = error if error < float("inf") else 1e300  # JSON has no inf and no NaN
    return {
        "engine": engine, "method": method, "interaction": bound.interaction.name,
        "boundary": "open" if cell is None else "periodic", "precision": precision, "error": error,
        "tolerance": tolerance, "passed": error <= tolerance, "seconds": seconds,
    }


command = Command.of(verify)
