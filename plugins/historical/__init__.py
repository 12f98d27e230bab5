"""Algorithms of papers from 2002 to 2013, for comparison with the present code.

The GPU kernels of 2007 and 2008 are methods (`benchmark --method largebin`), and so is multilevel summation, `msm`
(Skeel et al. 2002, Hardy et al. 2009). `nbody` sums gravity over all pairs (Elsen et al. 2007), `buffer` estimates the
Verlet buffer of pair lists, `lists` uses these again for atoms that have moved, `layouts` sets the layout of their
clusters and `polynomial` is Ewald's real-space part (Pall and Hess 2013), `buckingham` is a potential of pairs
(Buckingham 1938), `timing` is the command `benchmark-pairs`.

They register through the entry-point group ``vmdpotential.plugins``, like methods of any other package, and are the
example of such a package; README.md explains how. Viewers and `map --help` list only `msm` of them.
"""

from __future__ import annotations

#: Names of the methods in each module.
METHODS = {
    "direct": ("simple", "constant", "unrolled", "coalesced"),
    "cutoff": ("largebin", "smallbin", "overlap"),
}


def register() -> None:
    """Register the methods by dotted names, which are imported only when a method is used."""
    from vmdpotential import registry

    for module, names in METHODS.items():
        for name in names:
            registry.register("method", name, f"{__name__}.{module}:{name.upper()}", listed=False)
    registry.register("method", "msm", f"{__name__}.msm:METHOD")
    registry.register("pair", "buckingham", f"{__name__}.buckingham:INTERACTION")
    registry.register("command", "benchmark-pairs", f"{__name__}.timing:command")
    registry.register("check", "pair forces", f"{__name__}.samples:check_forces")
