"""Largest rounding errors of sums on every engine, which ``verify`` and the tests check."""

#: Largest relative rms error of a sum of pairs against float64, by precision (see :mod:`vmdpotential.engines`). Maps
#: are float32 in every precision.
ROUNDING_ERRORS = {"single": 1e-5, "compensated": 2e-6, "double": 2e-7}

#: Largest relative rms error of sums at points, which are in float64 on every engine.
POINTS = 1e-10
