"""What the papers of 2007, 2008 and 2013 had, to be compared with today's code.

The GPU kernels of 2007 and 2008 are methods (`benchmark --method largebin`), and so is multilevel summation, `msm`
(Skeel et al. 2002, Hardy et al. 2009). `nbody` sums gravity over all pairs (Elsen et al. 2007), `buffer` has the Verlet
buffer of pair lists (Pall and Hess 2013), `timing` is `benchmark --pairs`.

They register through the entry-point group ``vmdpotential.plugins`` as any package's methods would, and are the
example for those who write one; README.md says how. Of them viewers and `map --help` list `msm` alone.
"""

from __future__ import annotations

#: The methods of each module.
METHODS = {
    "direct": ("simple", "constant", "unrolled", "coalesced"),
    "cutoff": ("largebin", "smallbin", "overlap"),
}

#: Pair forces that `benchmark --pairs` times.
BENCHMARKS = ("rf", "ewald", "gravity", "gravity-jerk", "lennard-jones-coulomb")


def register() -> None:
    """Register the methods by dotted names, which are imported when one is used."""
    from vmdpotential import registry

    for module, names in METHODS.items():
        for name in names:
            registry.register("method", name, f"{__name__}.{module}:{name.upper()}", listed=False)
    registry.register("method", "msm", f"{__name__}.msm:METHOD")
    for name in BENCHMARKS:
        registry.register("pair-benchmark", name, f"{__name__}.timing:{name.upper().replace('-', '_')}")
