"""The method that sums a map: the one that an option names, or the fastest of all that keep the tolerance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines import Engine
from vmdpotential.errors import UsageError
from vmdpotential.interactions import Bound
from vmdpotential.maps.options import SumOptions
from vmdpotential.methods import Method, Request
from vmdpotential.methods.accuracy import Sample
from vmdpotential.methods.choice import SOON as SOON
from vmdpotential.methods.choice import fastest


def choose_method(options: SumOptions, request: Request, positions: NDArray[np.float64], charges: NDArray[np.float64],
                  engine: Engine, soon: float = SOON) -> tuple[Method, Request, Sample | None]:
    """Return the method that an option names, or the fastest; see :func:`vmdpotential.methods.choice.fastest`.

    Raises
    ------
    UsageError
        When the method, or none, can do what is requested.
    """
    return fastest(_ways(options, request.interaction), request, positions, charges, engine, soon)


def _ways(options: SumOptions, bound: Bound) -> list[Method]:
    """Return the methods that are wanted, of one that has several algorithms each."""
    result: list[Method] = []
    for method in options.methods:
        ways = method.algorithms
        if not ways and options.algorithm != "pair" and options.summation != "auto":
            raise UsageError("algorithm", "only applies to the method cutoff", "use {method cutoff}",
                             value=options.algorithm)
        if ways and options.algorithm not in (*ways, "auto"):
            raise UsageError("algorithm", f"choose one of {', '.join(ways)}, auto", value=options.algorithm)
        if not ways:
            result.append(method)
        elif bound.decay is not None and bound.cutoff is None and options.algorithm != "mesh":
            result.append(method.of_tail or method)
        elif options.algorithm == "auto":
            result.extend(ways.values())
        else:
            result.append(ways[options.algorithm])
    return result
