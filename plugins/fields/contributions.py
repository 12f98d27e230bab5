"""Selections whose parts of profiles and fields are reported."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import UsageError
from vmdpotential.molecule.selection import SELECTION_WORDS, select
from vmdpotential.molecule.structure import Structure

log = logging.getLogger(__name__)


def contribution_masks(structure: Structure, selections: Sequence[str]) -> dict[str, NDArray[np.bool_]]:
    """Return the masks of selections whose contributions are reported, without words for kinds that are not present.

    Raises
    ------
    UsageError
        For another selection without atoms, and if none is left.
    """
    result: dict[str, NDArray[np.bool_]] = {}
    for name in selections:
        try:
            result[name] = select(structure, name, "from")
        except UsageError:
            if name.strip().lower() not in SELECTION_WORDS or (name == selections[-1] and not result):
                raise
            log.warning("%s: has no %s, whose contribution is left out", structure.where, name)
    return result
