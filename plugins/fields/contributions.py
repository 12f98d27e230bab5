"""Selections whose parts of profiles and fields are reported."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

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


def parts_of(atoms: int, sources: Mapping[str, NDArray[np.bool_]] | None,
             ) -> tuple[list[str], list[NDArray[np.int64]], NDArray[np.bool_]]:
    """Return disjoint sets of atoms from which sums over groups, which may overlap, are combined.

    Returns
    -------
    names : list of str
        ``total``, the groups, and ``rest`` if there are atoms in none of them.
    parts : list of (A,) int64
        Sets of atoms that are in the same groups.
    rows : (names, parts) bool
        Which parts are added for each name.
    """
    if not sources:
        return ["total"], [np.arange(atoms)], np.ones((1, 1), bool)
    masks = np.array(list(sources.values()), bool)
    kind = np.unique(2.0 ** np.arange(len(masks)) @ masks, return_inverse=True)[1]
    parts = [np.flatnonzero(kind == n) for n in range(int(kind.max()) + 1)]
    kinds = masks[:, [part[0] for part in parts]].T
    rows = np.concatenate([np.ones((1, len(kinds)), bool), kinds.T])
    names = ["total", *sources]
    rest = ~np.asarray(kinds.any(axis=1))
    if rest.any():
        names.append("rest")
        rows = np.concatenate([rows, rest[None]])
    return names, parts, rows
