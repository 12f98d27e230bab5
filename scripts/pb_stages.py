#!/usr/bin/env python3
"""Time the stages of the Poisson-Boltzmann solver of an engine, from input arrays to the output array.

The molecule is a cluster of 40 balls with a permittivity of 2 in water with 0.15 M of salt, on 129^3 and 257^3 nodes
0.5 A apart. The script prints medians of five runs, ms.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from vmdpotential.engines import get_engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.plugins.continuum.edges import edge_conductances
from vmdpotential.plugins.continuum.lattices import levels
from vmdpotential.plugins.continuum.multigrid import MultigridSolver
from vmdpotential.surfaces import region


def timed(times: dict[str, float], name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls another one and adds the time that it takes, ms, to `times[name]`."""

    def wrapped(*arguments: Any, **options: Any) -> Any:
        start = time.perf_counter()
        result = call(*arguments, **options)
        times[name] += 1e3 * (time.perf_counter() - start)
        return result

    return wrapped


def problem(engine: Any, nodes: int) -> tuple[Any, ...]:
    """Return the conductances, the contribution of the ions and the sources, in arrays of the engine."""
    rng, extent = np.random.default_rng(1), 0.25 * (nodes - 1)
    lattice = Lattice(np.full(3, -extent), np.full(3, 0.5), (nodes,) * 3)
    centres, radii = rng.normal(scale=extent / 4, size=(40, 3)), np.full(40, extent / 5)
    distances = region.Surface(centres, radii, 0.0).distances(lattice)
    edges = edge_conductances(engine.array(distances), 2.0, np.full(nodes, 78.5), np.full(nodes - 1, 78.5), lattice,
                              engine)
    k2 = np.where(distances > 2, np.float32(78.5 * 0.25 / 7.9**2), np.float32(0))
    sources = np.zeros(lattice.shape, np.float32)
    inner = (slice(1, -1),) * 3
    places = abs(distances[inner]) < 0.25
    sources[inner][places] = rng.normal(size=int(places.sum()))
    return edges, engine.array(k2), engine.array(sources)


def run(engine: Any, nodes: int) -> dict[str, float]:
    """Return the times of one solution, ms."""
    edges, k2, sources = problem(engine, nodes)
    times: dict[str, float] = defaultdict(float)
    unknown = engine.zeros((nodes,) * 3, np.float32)
    start = time.perf_counter()
    solver = timed(times, "levels", MultigridSolver)(engine, *edges, k2, np.zeros((0, 2)), levels((nodes,) * 3))
    solver._residual = timed(times, "residual", solver._residual)
    solver._gradients = timed(times, "gradients", solver._gradients)
    times["iterations"] = solver.solve(unknown, sources, 3e-5)
    times["whole"] = 1e3 * (time.perf_counter() - start)
    return times


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="cpu", help="cpu or cuda")
    parser.add_argument("--nodes", type=int, nargs="+", default=[129, 257], help="along each axis (default 129 257)")
    arguments = parser.parse_args()
    engine = get_engine(arguments.engine)
    for nodes in arguments.nodes:
        run(engine, nodes)
        results = [run(engine, nodes) for _ in range(5)]
        print(f"{nodes}^3 nodes, {engine.describe()}")
        for name in results[0]:
            print(f"  {name:20} {np.median([each.get(name, 0.0) for each in results]):9.2f}")


if __name__ == "__main__":
    main()
