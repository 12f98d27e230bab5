"""Selections of a Structure in MDAnalysis' language (extra ``traj``): ``protein and around 5 resname LIG``.

https://docs.mdanalysis.org/stable/documentation_pages/selections.html
"""

from __future__ import annotations

import contextlib
import logging
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential import extras
from vmdpotential.errors import BackendError, shorten_text, similar_hint
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
#: Tokens after which a selection begins (it also begins after a number); elsewhere a word is a value, such as a name.
_BEFORE = {None, "(", "and", "or", "not", "as", "byres", "bonded", "global"}
#: Keywords that depend on coordinates, which differ in a rotated cell, not on distances alone.
_COORDINATES = {"point", "cyzone", "cylayer", "prop"}
#: Group of an index file, its name in quotes or without blanks.
_GROUP = re.compile(r'(?<![^\s(])group\s+(?:"([^"]*)"|([^\s()"]+))')


def evaluate(structure: Structure, text: str, words: Mapping[str, Callable[[Structure], Mask]]) -> Mask:
    """Return a mask (N,) of the atoms that an expression in MDAnalysis' language selects.

    Parameters
    ----------
    structure : Structure
        Distances are those of nearest periodic images, except in a crystal's asymmetric unit.
    text : str
        The expression.
    words : mapping
        Words such as ``protein`` and ``solute`` with functions that replace MDAnalysis' own definitions, so that they
        have the same meaning as alone; a difference is logged.

    Raises
    ------
    ValueError
        When the text is not a valid expression.
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
            hint = f"{similar_hint(first, known)}{_advice(text)}"
            raise ValueError(f"is not a valid selection: it begins with '{first}'{hint}") from None
        universe = universe_of(package, structure)
        groups: dict[str, Any] = {}

        def group(match: re.Match[str]) -> str:
            name = match[1] if match[1] is not None else match[2]
            groups[f"index{len(groups)}"] = universe.atoms[structure.group(name)]
            return f"group index{len(groups) - 1}"

        tokens = _GROUP.sub(group, text).replace("(", " ( ").replace(")", " ) ").split()
        if structure.cell is not None and _COORDINATES.intersection(tokens) and structure.cell.rotated:
            raise ValueError("depends on x, y and z, but the periodic cell is rotated against these axes")
        replaced = []
        for place, token in enumerate(tokens):
            before = tokens[place - 1] if place else None
            if token in words and token != "all" and (before in _BEFORE or _is_number(before)):
                groups[token] = universe.atoms[words[token](structure)]
                tokens[place] = f"group {token}"
                replaced.append(token)
        try:
            rows = universe.select_atoms(" ".join(tokens), **groups).indices
        except Exception as error:  # MDAnalysis raises SelectionError, NoDataError, and errors of numpy
            raise ValueError(f"is not a valid selection ({_reason(error, text, words)})") from None
        _warn_of_differences(universe, dict.fromkeys(replaced), groups)
    mask = np.zeros(len(structure), bool)
    mask[rows] = True
    return mask


@contextlib.contextmanager
def _mdanalysis() -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        package = extras.load_optional("MDAnalysis", "selections of several words", "traj",
                                       "write a CID, such as //A/10-20")
        warnings.simplefilter("ignore")  # its first import sets filters of its own
        yield package


def _is_number(token: str | None) -> bool:
    return re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", token or "") is not None


def _reason(error: Exception, text: str, words: Iterable[str]) -> str:
    """Return MDAnalysis' message, shortened, and advice."""
    message = " ".join(str(error).split()) or type(error).__name__
    token = re.search(r"Unknown selection token: '(\w+)'", message)
    hint = similar_hint(token[1], (*words, *KEYWORDS, *_FIRST)) if token else ""
    return f"MDAnalysis: {shorten_text(message, 120)}".replace("'None'", "the end") + hint + _advice(text)


def _advice(text: str) -> str:
    """Return the spelling, in this language, of expressions of other programs."""
    advice = ""
    if re.search(r"\bchain\b", text):
        advice += "; 'chain A' is written '//A' or 'chainID A'"
    if re.search(r"\bwithin\b", text):
        advice += "; 'within 5 of resname LIG' is written 'around 5 resname LIG'"
    return advice


def _warn_of_differences(universe: Any, words: Mapping[str, None], groups: Mapping[str, Any]) -> None:
    """Warn of words that select other atoms by MDAnalysis' own tables of names."""
    for word in words:
        try:
            theirs = universe.select_atoms(word)
        except Exception:  # not a word of MDAnalysis
            continue
        if not np.array_equal(theirs.indices, groups[word].indices):
            log.warning("'%s' means %d atoms here, as it does alone; MDAnalysis' own tables of names have %d",
                        word, len(groups[word]), len(theirs))
