"""What rounding leaves of a sum: stated once, for every engine, and held by ``verify`` and the tests."""

#: Relative rms error against float64 that a sum of pairs may have by rounding, by precision (see
#: :mod:`vmdpotential.engines`). Values are float32 in every precision.
ROUNDING = {"single": 1e-5, "compensated": 2e-6, "double": 2e-7}

#: The same for sums at points, which are in float64 on every engine.
POINTS = 1e-10
