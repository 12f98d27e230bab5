"""Choice of a map's summation method: the one that an option names, or the fastest that keeps the tolerance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import Engine
from vmdpotential.errors import UsageError
from vmdpotential.interactions import Bound
from vmdpotential.maps.options import SumOptions
from vmdpotential.sums import Method, Request
from vmdpotential.sums.accuracy import Sample
from vmdpotential.sums.choice import QUICK_SUM_FACTOR as QUICK_SUM_FACTOR
from vmdpotential.sums.choice import fastest_method


def choose_method(options: SumOptions, request: Request, positions: NDArray[np.float64], charges: NDArray[np.float64],
                  engine: Engine, soon: float = QUICK_SUM_FACTOR) -> tuple[Method, Request, Sample | None]:
    """Return the method that an option names, or the fastest; see :func:`vmdpotential.sums.choice.fastest_method`.

    Raises
    ------
    UsageError
        If the named method, or every method, cannot sum what is requested.
    """
    return fastest_method(_eligible_methods(options, request.interaction), request, positions, charges, engine, soon)


def check_algorithm(options: SumOptions) -> None:
    """Make sure that no algorithm is chosen for a method that has none.

    Raises
    ------
    UsageError
    """
    if options.algorithm != "pair" and options.summation != "auto":
        raise UsageError("algorithm", "only applies to the method cutoff", "use {method cutoff}",
                         value=options.algorithm)


def _eligible_methods(options: SumOptions, bound: Bound) -> list[Method]:
    """Return the methods that the options allow, with one entry per allowed algorithm of a method."""
    result: list[Method] = []
    for method in options.methods:
        algorithms = method.algorithms
        if not algorithms:
            check_algorithm(options)
        if algorithms and options.algorithm not in (*algorithms, "auto"):
            raise UsageError("algorithm", f"choose one of {', '.join(algorithms)}, auto", value=options.algorithm)
        if not algorithms:
            result.append(method)
        elif bound.decay is not None and bound.cutoff is None and options.algorithm != "mesh":
            result.append(method.of_tail or method)
        elif options.algorithm == "auto":
            result.extend(algorithms.values())
        else:
            result.append(algorithms[options.algorithm])
    return result
