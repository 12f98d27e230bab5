"""What a kernel module is compiled for; :mod:`vmdpotential.engines.cpu.build` replaces it in the copies it makes."""

from vmdpotential.interactions.tracing import Program

#: The traced radial function.
PROGRAM = Program((("input", "rinv"),), ())
#: One of vmdpotential.engines.PRECISIONS.
PRECISION = "single"
#: Whether pairs beyond distance 1 must be masked.
MASKED = False
#: Of the B-splines between atoms, mesh and lattice.
ORDER = 6
