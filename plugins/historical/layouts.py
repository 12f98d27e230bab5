"""Layouts of the pairs that a CPU computes at once (S. Pall, B. Hess, Comput. Phys. Commun. 184 (2013) 2641-2650)."""

from __future__ import annotations

from dataclasses import replace

from vmdpotential.errors import UsageError

from .lists import ListedPairs

#: Layouts, named by the number of atoms of a cluster i and of a chunk j, which a vector holds; atoms j of `compressed`
#: are packed.
LAYOUTS = ("2x2", "4x4", "4x8", "4x16", "compressed")


def set_layout(pairs: ListedPairs, layout: str) -> None:
    """Set the layout of a sum, by default the fastest one.

    Raises
    ------
    UsageError
        If there is no layout of that name, or this processor lacks the instructions for it.
    """
    packs, whole = pairs.shape.packed, f"{pairs.shape.m}x{pairs.shape.n}"
    if layout not in LAYOUTS:
        raise UsageError("layout", f"choose one of {', '.join(LAYOUTS)}", value=layout)
    if layout == "compressed" and not packs:
        raise UsageError("layout", "needs a processor with AVX2, in double precision with AVX-512",
                         "use another {layout}", value=layout)
    if layout not in ("compressed", whole):
        raise UsageError("layout", f"the vectors of this processor in {pairs.precision} precision are for {whole}",
                         "choose other vectors by the variable VMDPOTENTIAL_VECTORS", value=layout)
    pairs.shape = replace(pairs.shape, packed=layout == "compressed")
