"""Selections in MDAnalysis' language (extra ``traj``), of a Structure: ``protein and around 5 resname LIG``.

https://docs.mdanalysis.org/stable/documentation_pages/selections.html
"""

from __future__ import annotations

import contextlib
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import extras
from vmdpotential.errors import BackendError, similar
from vmdpotential.molecule.conversions import universe_of
from vmdpotential.molecule.structure import Structure

Mask = NDArray[np.bool_]

log = logging.getLogger(__name__)

#: Words that are a selection by themselves in this language.
KEYWORDS = ("backbone", "nucleicbackbone", "nucleicbase", "nucleicsugar", "aromatic")

#: Words with which an expression of this language can begin.
_FIRST = ("not", "byres", "bonded", "global", "same", "around", "sphlayer", "sphzone", "isolayer", "cyzone", "cylayer",
          "point", "prop", "relprop", "group", "name", "type", "element", "resname", "resid", "resnum", "segid",
          "chainID", "icode", "index", "bynum", "id", "altLoc", "record_type", "moltype", "molnum", "mass", "charge",
          "radius", "tempfactor", "occupancy", "formalcharge", "smarts", "rdkit", "chirality")
#: After these, after a number and at the start a selection begins; elsewhere a word is a name that is looked for.
_BEFORE = {None, "(", "and", "or", "not", "as", "byres", "bonded", "global"}
#: What needs coordinates in the cell's own frame, not distances alone.
_PLACES = {"point", "cyzone", "cylayer", "prop"}
#: A group of an index file, its name in quotes or without blanks.
_GROUP = re.compile(r'(?<![^\s(])group\s+(?:"([^"]*)"|([^\s()"]+))')


def evaluate(structure: Structure, text: str, words: Mapping[str, Callable[[Structure], Mask]]) -> Mask:
    """Return which atoms, (N,) bool, an expression of MDAnalysis' language means.

    Parameters
    ----------
    structure : Structure
        Distances go over its periodic cell, unless that is a crystal's, whose atoms are a part of what it holds.
    text : str
    words : mapping
        Words that mean here what they mean alone, and not what MDAnalysis' own tables of names say: ``protein``,
        ``solute``; what differs is reported.

    Raises
    ------
    ValueError
        When the text is not of this language.
    BackendError
        When MDAnalysis is not installed.
    """
    with contextlib.ExitStack() as stack:
        try:
            package = stack.enter_context(_mdanalysis())
        except BackendError:
            first, known = text.replace("(", " ").split()[0], (*words, *KEYWORDS, *_FIRST)
            if first in known:
                raise
            # MDAnalysis would not understand the text either
            hint = f"{similar(first, known)}{_advice(text)}"
            raise ValueError(f"is no selection: it begins with '{first}'{hint}") from None
        universe = universe_of(package, structure)
        groups: dict[str, Any] = {}

        def group(match: re.Match[str]) -> str:
            name = match[1] if match[1] is not None else match[2]
            groups[f"index{len(groups)}"] = universe.atoms[structure.group(name)]
            return f"group index{len(groups) - 1}"

        tokens = _GROUP.sub(group, text).replace("(", " ( ").replace(")", " ) ").split()
        if structure.cell is not None and _PLACES.intersection(tokens) and structure.cell.turned:
            raise ValueError("looks for places along x, y and z, and the periodic cell is turned against these")
        asked = []
        for place, token in enumerate(tokens):
            before = tokens[place - 1] if place else None
            if token in words and token != "all" and (before in _BEFORE or _is_number(before)):
                groups[token] = universe.atoms[words[token](structure)]
                tokens[place] = f"group {token}"
                asked.append(token)
        try:
            result = universe.select_atoms(" ".join(tokens), **groups).indices
        except Exception as error:  # it raises SelectionError, NoDataError, and whatever numpy does
            raise ValueError(f"is no selection ({_reason(error, text)})") from None
        _tell(structure, universe, dict.fromkeys(asked), groups)
    mask = np.zeros(len(structure), bool)
    mask[result] = True
    return mask


@contextlib.contextmanager
def _mdanalysis() -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        package = extras.load("MDAnalysis", "selections of several words", "traj", "write a CID, such as //A/10-20")
        warnings.simplefilter("ignore")  # it sets filters of its own when it is imported first
        yield package


def _is_number(token: str | None) -> bool:
    return re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", token or "") is not None


def _reason(error: Exception, text: str) -> str:
    """Return what MDAnalysis says, short, and what is probably meant."""
    said = " ".join(str(error).split()) or type(error).__name__
    return f"MDAnalysis: {said[:120]}".replace("'None'", "the end") + _advice(text)


def _advice(text: str) -> str:
    """Return how words of other languages are written here."""
    said = ""
    if re.search(r"\bchain\b", text):
        said += "; 'chain A' is written '//A' or 'chainID A'"
    if re.search(r"\bwithin\b", text):
        said += "; 'within 5 of resname LIG' is written 'around 5 resname LIG'"
    return said


def _tell(structure: Structure, universe: Any, words: Mapping[str, None], groups: Mapping[str, Any]) -> None:
    """Warn where a word means other atoms in MDAnalysis' own tables of names."""
    for word in words:
        try:
            theirs = universe.select_atoms(word)
        except Exception:  # no word of its
            continue
        if not np.array_equal(theirs.indices, groups[word].indices):
            log.warning("'%s' means %d atoms here, as it does alone; MDAnalysis' own tables of names have %d",
                        word, len(groups[word]), len(theirs))
