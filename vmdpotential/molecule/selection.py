"""Atom selections: by kind of residue (water, ion, protein ...), gemmi's CID syntax, or MDAnalysis' language."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vmdpotential.errors import UsageError, check_unmasked, listed_words, similar_hint
from vmdpotential.molecule import language
from vmdpotential.molecule.conversions import StructureLike, as_structure
from vmdpotential.molecule.names import (
    CUT_LIPIDS,
    DUMMY_RESIDUES,
    ION_RESIDUES,
    LIPID_RESIDUES,
    NUCLEIC_RESIDUES,
    PROTEIN_RESIDUES,
    WATER_RESIDUES,
    in_table,
    unique_names,
)
from vmdpotential.molecule.structure import Integers, Structure
from vmdpotential.molecule.water import MASSLESS_SITES

Mask = NDArray[np.bool_]

ALLOWED = (
    "all, solute, protein, nucleic, lipid, water, ions, a CID such as //A/10-20 (chain and residues) or (ALA), or an "
    "expression such as protein and around 5 resname LIG"
)


class ResolvedSelection(str):
    """Text of a selection, for reports, together with the indices of its atoms from a viewer or a program."""

    rows: Integers

    def __new__(cls, text: str, rows: ArrayLike) -> ResolvedSelection:
        """Return the text with atoms, given as indices in any order or as a mask (N,)."""
        result = super().__new__(cls, text)
        rows = np.asarray(rows)
        result.rows = np.flatnonzero(rows) if rows.dtype == bool else np.unique(rows).astype(np.int64)
        return result

    def __reduce__(self) -> tuple[Any, ...]:
        return ResolvedSelection, (str(self), self.rows)


#: Residue names of the ions of common salts.
_SALT = frozenset(name for name, ion in ION_RESIDUES.items()
                  if ion.element in ("Li", "Na", "K", "Rb", "Cs", "F", "Cl", "Br", "I"))

#: Type of a selection of atoms: text, indices or a mask (N,) of the structure's atoms, or an AtomGroup of MDAnalysis
#: (not in the type, as MDAnalysis has no annotations).
Selection = str | NDArray[Any]


def rows_of(selection: Any) -> NDArray[Any]:
    """Return indices or a mask as an array; for an AtomGroup of MDAnalysis, the indices in its Universe."""
    return np.asarray(selection.atoms.ix if hasattr(selection, "ix") else selection)


def named_selection(selection: Selection) -> str:
    """Return a selection as text, which can be compared and reported; for an array, a :class:`ResolvedSelection`."""
    if isinstance(selection, str):
        return selection
    rows = rows_of(selection)
    return ResolvedSelection(f"{int(rows.sum()) if rows.dtype == bool else len(rows)} given atoms", rows)


def _per_residue(structure: Structure, table: Collection[str]) -> Mask:
    """Return a mask (R,) of the residues whose name is in a table."""
    return in_table(structure.residue_names[structure.residue_starts[:-1]], table)


def _spread(structure: Structure, residues: Mask) -> Mask:
    """Return a mask (N,) of the atoms of the residues in a mask (R,)."""
    return np.repeat(residues, np.diff(structure.residue_starts))


def is_oxygen(structure: Structure) -> Mask:
    """Return a mask (N,) of the oxygens: by element, or by name where the file has no element.

    The massless site of water is no oxygen, although CHARMM calls it OM.
    """
    names = np.ascontiguousarray(structure.atom_names)
    if not names.dtype.itemsize or not len(names):
        first_letter_o = np.zeros(len(structure), bool)
    else:
        first_letter_o = names.view(np.uint32).reshape(len(names), -1)[:, 0] == ord("O")
    blank = structure.elements == ""
    oxygen = (structure.elements == "O") | (blank & first_letter_o)
    return np.asarray(oxygen & ~in_table(structure.atom_names, MASSLESS_SITES), bool)


def is_water(structure: Structure) -> Mask:
    """Return a mask (N,) of the atoms of waters: residues with a water's name and an oxygen.

    All sites are included, also the massless ones of 4- and 5-site models.
    """
    residues = _per_residue(structure, WATER_RESIDUES)
    if residues.any():
        starts = structure.residue_starts[:-1]
        residues &= np.add.reduceat(is_oxygen(structure), starts, dtype=np.int64) > 0
    return _spread(structure, residues)


def is_solvated(structure: Structure) -> bool:
    """Return whether most atoms are of waters, as in a simulation box, but not in a crystal structure."""
    return len(structure) > 300 and float(is_water(structure).mean()) > 0.5


def is_ion(structure: Structure) -> Mask:
    """Return a mask (N,) of the monatomic ions: residues of one atom with an ion's name."""
    single = np.diff(structure.residue_starts) == 1
    return _spread(structure, single & _per_residue(structure, ION_RESIDUES))


def is_salt(structure: Structure) -> Mask:
    """Return a mask (N,) of the ions of alkali metals and halogens, which molecules rarely bind specifically."""
    return is_ion(structure) & in_table(structure.residue_names, _SALT)


def is_protein(structure: Structure) -> Mask:
    """Return a mask (N,) of the atoms of amino acids and of the caps of protein chains."""
    return _spread(structure, _per_residue(structure, PROTEIN_RESIDUES))


def is_nucleic(structure: Structure) -> Mask:
    """Return a mask (N,) of the atoms of nucleotides; a residue of one atom is none."""
    several = np.diff(structure.residue_starts) > 1
    return _spread(structure, several & _per_residue(structure, NUCLEIC_RESIDUES))


def is_lipid(structure: Structure) -> Mask:
    """Return a mask (N,) of the atoms of lipids, sterols and detergents.

    A name truncated to three letters (POP for POPC) counts if the residue has at least 30 atoms.
    """
    lengths = np.diff(structure.residue_starts)
    whole = (lengths > 1) & _per_residue(structure, LIPID_RESIDUES)
    cut = (lengths >= 30) & _per_residue(structure, CUT_LIPIDS)
    return _spread(structure, whole | cut)


#: Words that select kinds of residues.
SELECTION_WORDS: dict[str, Callable[[Structure], Mask]] = {
    "all": lambda structure: np.ones(len(structure), bool),
    "solute": lambda structure: ~is_water(structure) & ~_spread(structure, _per_residue(structure, DUMMY_RESIDUES)),
    "protein": is_protein,
    "nucleic": is_nucleic,
    "lipid": is_lipid,
    "lipids": is_lipid,
    "water": is_water,
    "waters": is_water,
    "ion": is_ion,
    "ions": is_ion,
}


def select(structure: StructureLike, selection: Selection, parameter: str = "atoms") -> Mask:
    """Return a mask (N,) of the selected atoms.

    Parameters
    ----------
    structure : Structure or path
        With a trajectory, the structure that the trajectory is opened with: atoms are selected once, not in each frame.
    selection : str or (K,) int or (N,) bool or AtomGroup
        Indices or a mask; an AtomGroup of MDAnalysis, if the structure has all atoms of its Universe; or text, which
        is interpreted by the first of these rules that applies:

        - ``all``, ``solute`` (everything but water and dummy atoms), ``protein``, ``nucleic``, ``lipid``, ``water``,
          ``ions``;
        - ``group NAME``: a group of the structure's index file; a name with blanks is in double quotes;
        - text with a blank (unless it begins with a slash), and ``backbone``, ``nucleicbackbone``, ``nucleicbase``,
          ``nucleicsugar``, ``aromatic``: MDAnalysis' language, in which the words above have the same meaning as alone;
        - gemmi's CID syntax ``/model/chain/residues/atoms`` and its short forms: ``//A``, ``//A/10-20/CA``, ``(ALA)``,
          ``[S]`` (element); a word alone is a chain. Segment names are not part of a CID.
    parameter : str
        Name of the parameter that has this selection, for messages.

    Returns
    -------
    (N,) bool
        Whether each atom is selected.

    Raises
    ------
    UsageError
        When the text is no valid selection, is ambiguous (a chain and a keyword, for example), or selects no atom; for
        an AtomGroup, when the structure has other atoms than its Universe.
    BackendError
        When the text is in MDAnalysis' language, and MDAnalysis is not installed.

    Examples
    --------
    >>> structure = vp.read_structure("data/dhfr.pdb.gz", topology="data/dhfr.psf.gz")
    >>> int(vp.select(structure, "protein").sum())
    2489
    >>> int(vp.select(structure, "//*/(ASP)/CG").sum())
    14
    """
    structure = as_structure(structure)
    if not isinstance(selection, str):
        universe = getattr(selection, "universe", None)
        if universe is not None and len(universe.atoms) != len(structure):
            raise UsageError(
                parameter, f"is an AtomGroup of a Universe with {len(universe.atoms)} atoms, and the structure has "
                f"{len(structure)}", "give the Universe as {structure}, or select by words or indices")
        check_unmasked(selection, "selection")
        _check_rows(rows_of(selection), len(structure), parameter)
    text = named_selection(selection)
    if isinstance(text, ResolvedSelection):
        origins = structure.origins if isinstance(selection, str) else None
        if origins is not None:  # the indices refer to the structure before its completion
            result = np.isin(origins, text.rows)
            if len(text.rows) and not result.any():
                raise UsageError(parameter, "selects only atoms that were left out when the structure was completed",
                                 "select others", value=text)
            if result.any():
                return np.asarray(result, bool)
        return _by_rows(structure, text, parameter)
    text = text.strip()
    try:
        mask = _by_text(structure, text)
    except ValueError as error:
        raise UsageError(parameter, str(error), f"choose {ALLOWED}", value=text) from error
    if not mask.any():
        raise UsageError(parameter, f"selects no atoms{_hint(structure, text)}", f"choose {ALLOWED}", value=text)
    return mask


def _check_rows(rows: NDArray[Any], count: int, parameter: str) -> None:
    """Raise UsageError for an array that is neither indices nor a mask of `count` atoms."""
    if rows.dtype == bool and rows.shape != (count,):
        raise UsageError(parameter, f"is a mask of the shape {rows.shape}, and there are {count} atoms")
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "biu"):
        raise UsageError(parameter, f"is an array of {rows.dtype} of the shape {rows.shape}",
                         "give text, indices (K,) or a mask (N,)")


def _by_rows(structure: Structure, picked: ResolvedSelection, parameter: str) -> Mask:
    rows, count = picked.rows, len(structure)
    if not len(rows):
        raise UsageError(parameter, "selects no atoms", value=picked)
    if rows[0] < 0 or rows[-1] >= count:
        raise UsageError(parameter, f"holds atom {rows[rows >= count][0] if rows[-1] >= count else rows[0]}, counted "
                         f"from 0, and there are {count}", value=picked)
    mask = np.zeros(count, bool)
    mask[rows] = True
    return mask


def _by_text(structure: Structure, text: str) -> Mask:
    word = text.lower()
    if word in SELECTION_WORDS:
        return SELECTION_WORDS[word](structure)
    group = _whole_group(structure, text)
    if group is not None:
        mask = np.zeros(len(structure), bool)
        mask[structure.group(group)] = True
        return mask
    if text in language.KEYWORDS and text in structure.chain_ids:
        raise ValueError(f"is a chain and a word of MDAnalysis' language; write '//{text}' or '{text} and all'")
    if text in language.KEYWORDS or (len(text.split()) > 1 and not text.startswith("/")):
        return language.evaluate(structure, text, SELECTION_WORDS)
    return _by_cid(structure, text)


def _whole_group(structure: Structure, text: str) -> str | None:
    """Return the name of the index group if a text is just ``group NAME``, else None."""
    head, _, name = text.partition(" ")
    name = name.strip()
    if head != "group" or not name:
        return None
    quoted = len(name) > 1 and name[0] == name[-1] == '"'
    if quoted and name[1:-1] in structure.groups:
        return name[1:-1]
    first, *others = name.split()
    if name in structure.groups and others and first in structure.groups:
        raise ValueError(f"is a group of that name, or atoms of the group '{first}'; put the name in double quotes")
    if name in structure.groups or (not others and not quoted):
        return name
    return None


def _hint(structure: Structure, text: str) -> str:
    """Return a hint at the probable meaning of a single word, which a CID reads as a chain."""
    residues = set(unique_names(structure.residue_names)[0].tolist())
    if text in residues:
        return f" (chain '{text}' does not exist; the residue name is written '({text})')"
    if text in structure.groups:
        return f" (chain '{text}' does not exist; the index group is written 'group {text}')"
    if text.strip("()").lower() in SELECTION_WORDS:
        return f" (there is no residue '{text}'; without parentheses it is a word)"
    return f"{similar_hint(text, (*SELECTION_WORDS, *language.KEYWORDS))}; {names_present(structure)}"


def names_present(structure: Structure) -> str:
    """Return the names of a structure's residues and chains, the most frequent first, for messages."""
    starts = structure.residue_starts[:-1]
    parts = []
    for what, values in (("residues", structure.residue_names[starts]), ("chains", structure.chain_ids[starts])):
        counts = Counter(values.tolist())
        counts.pop("", None)
        if counts:
            parts.append(f"{what} present: {listed_words((name for name, _ in counts.most_common()), 60)}")
    return "; ".join(parts) or "the structure has no residue names"


def _by_cid(structure: Structure, text: str) -> Mask:
    """Evaluate a CID by gemmi's matching, on distinct names and numbers instead of on all atoms, to save time."""
    import gemmi

    try:
        selection = gemmi.Selection(text)
    except (ValueError, RuntimeError) as error:
        raise ValueError("is not a valid selection") from error
    path, *properties = selection.str().split(";")
    if not text:
        raise ValueError("is empty")

    one_model = gemmi.Structure()
    one_model.add_model(gemmi.Model(1))
    if not len(list(selection.models(one_model))):
        return np.zeros(len(structure), bool)

    starts = structure.residue_starts[:-1]
    chains, chain_of = unique_names(structure.chain_ids[starts])
    residues = _matching_chains(selection, chains.tolist())[chain_of]
    # the residue part is "(ALA)", names only, or has numbers too: "10.-20.", "33.(ALA)"
    residue_part = path.split("/")[3] if path.count("/") >= 3 else ""
    if residue_part not in ("", "*"):
        candidates = np.flatnonzero(residues)
        names_only = residue_part.startswith("(")
        residues[candidates] &= _matching_residues(selection, structure, starts[candidates], names_only)
    mask = _spread(structure, residues)
    atoms = np.flatnonzero(mask)
    mask[atoms] &= _matching_atoms(gemmi.Selection(path), structure, atoms)
    for condition in properties:
        mask &= _property(structure, condition, text)
    return mask


def _matching_chains(selection: Any, names: list[str]) -> Mask:
    import gemmi

    model = gemmi.Model(1)
    for name in names:
        model.add_chain(gemmi.Chain(name), unique_name=False)
    result = {chain.name for chain in selection.chains(model)}
    return np.array([name in result for name in names], bool)


def _matching_residues(selection: Any, structure: Structure, starts: NDArray[np.int64], names_only: bool) -> Mask:
    import gemmi

    # distinct (name, number, insertion code); numbers only if the selection depends on them
    names, name_of = unique_names(structure.residue_names[starts])
    codes, code_of = unique_names(structure.insertion_codes[starts])
    numbers = structure.residue_ids[starts]
    if names_only:
        numbers, code_of = np.zeros_like(numbers), np.zeros_like(code_of)
    low = int(numbers.min(initial=0))
    key = ((numbers - low) * len(names) + name_of) * len(codes) + code_of
    _, where, inverse = np.unique(key, return_index=True, return_inverse=True)
    chain = gemmi.Chain("A")
    residue = gemmi.Residue()
    for first in where.tolist():
        residue.name = str(names[name_of[first]])
        residue.seqid = gemmi.SeqId(int(numbers[first]), str(codes[code_of[first]]) or " ")
        chain.add_residue(residue)
    for place, added in enumerate(chain):
        added.subchain = str(place)  # labels that survive the search
    result = np.zeros(len(where), bool)
    result[[int(match.subchain) for match in selection.residues(chain)]] = True
    return result[inverse]


def _matching_atoms(selection: Any, structure: Structure, atoms: NDArray[np.int64]) -> Mask:
    import gemmi

    names, name_of = unique_names(structure.atom_names[atoms])
    elements, element_of = unique_names(structure.elements[atoms])
    key = name_of * max(len(elements), 1) + element_of
    _, where, inverse = np.unique(key, return_index=True, return_inverse=True)
    residue = gemmi.Residue()
    for place, first in enumerate(where.tolist()):
        atom = gemmi.Atom()
        atom.name = str(names[name_of[first]])
        atom.element = gemmi.Element(str(elements[element_of[first]]) or _element_of(atom.name))
        atom.serial = place
        residue.add_atom(atom)
    result = np.zeros(len(where), bool)
    result[[atom.serial for atom in selection.atoms(residue)]] = True
    return result[inverse]


def _element_of(atom_name: str) -> str:
    """Return the element that an atom's name suggests, where the file has none: its first letter."""
    letters = atom_name.lstrip("0123456789")
    return letters[:1] or "X"


def _property(structure: Structure, condition: str, text: str) -> Mask:
    """Return a mask (N,) of the atoms that fulfil a condition on occupancy or B factor: q>0.5, b<20."""
    match = re.fullmatch(r"([qb])([<>=])(.+)", condition)
    if not match:
        raise ValueError(f"';{condition}' is not supported")
    values = structure.occupancies if match[1] == "q" else structure.b_factors
    compare = {"<": np.less, ">": np.greater, "=": np.equal}[match[2]]
    return compare(values, float(match[3]))
