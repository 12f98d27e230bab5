"""Former module of :func:`vmdpotential.nonbonded`, kept for scripts written for version 0.1.0."""

import warnings

from vmdpotential.io.topologies.forcefield import nonbonded

__all__ = ["nonbonded"]

warnings.warn("vmdpotential.io.forcefield.nonbonded is now vmdpotential.nonbonded; the old name will be removed in a "
              "later version", FutureWarning, stacklevel=2)
