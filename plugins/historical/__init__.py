"""The GPU kernels of 2007 and 2008 as methods, to be compared with today's: `benchmark --method largebin`.

They register through the entry-point group ``vmdpotential.plugins`` as any package's methods would, and are the
example for those who write one; README.md says how. Viewers and `map --help` do not list them.
"""

from __future__ import annotations

#: The methods of each module.
METHODS = {
    "direct": ("simple", "constant", "unrolled", "coalesced"),
    "cutoff": ("largebin", "smallbin", "overlap"),
}


def register() -> None:
    """Register the methods by dotted names, which are imported when one is used."""
    from vmdpotential import registry

    for module, names in METHODS.items():
        for name in names:
            registry.register("method", name, f"{__name__}.{module}:{name.upper()}", listed=False)
