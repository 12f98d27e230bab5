"""What a kernel module is compiled for; :mod:`vmdpotential.engines.cpu.build` replaces it in the copies it makes."""

from vmdpotential.interactions.tracing import Program

#: The traced radial function.
PROGRAM = Program((("input", "rinv"),), ())
#: One of vmdpotential.engines.PRECISIONS.
PRECISION = "single"
#: Whether pairs beyond distance 1 must be masked.
MASKED = False
#: Whether the field is summed beside the potential.
FIELD = False
#: Nodes along each axis between atoms, mesh and lattice.
ORDER = 6
#: By which functions: bspline or nodal.
BASIS = "bspline"
