"""The place that `nonbonded` had in version 0.1.0, for scripts of that version."""

import warnings

from vmdpotential.io.topologies.forcefield import nonbonded

__all__ = ["nonbonded"]

warnings.warn("vmdpotential.io.forcefield.nonbonded is now vmdpotential.nonbonded; the old name will go in a later "
              "version", FutureWarning, stacklevel=2)
