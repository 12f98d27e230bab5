"""Index files of GROMACS (.ndx): groups of atoms by name, ``[ Protein ]`` and the numbers of its atoms, from 1."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from vmdpotential.errors import InputError
from vmdpotential.io.files.text import held, read_text, reading
from vmdpotential.molecule.structure import Integers

#: Bytes of memory for a byte of a file, at most (a digit and a blank become eight bytes, twice).
_MEMORY = 12.0


def read_groups(path: str | Path, count: int) -> dict[str, Integers]:
    """Return the groups of an index file.

    Parameters
    ----------
    path : str or Path
    count : int
        How many atoms the structure has.

    Returns
    -------
    dict
        Rows of atoms, counted from 0, by the names of the groups; a name may hold blanks. A group may be empty.

    Raises
    ------
    InputError
        When the file is none, names an atom that is not there, or gives two groups one name.
    """
    path = held(path)
    with reading(path):
        text = read_text(path, _MEMORY).decode("utf-8", "replace")
        text = re.sub(r";[^\n]*", "", text)
        heads = list(re.finditer(r"^[ \t]*\[([^\n]*)\][ \t]*$", text, re.MULTILINE))
        if not heads or text[: heads[0].start()].strip():
            raise InputError(f"{path}: is no index file: it begins with no group, such as [ Protein ]")
        groups: dict[str, Integers] = {}
        for head, end in zip(heads, [*(match.start() for match in heads[1:]), len(text)], strict=True):
            name = head[1].strip()
            words = text[head.end() : end].split()
            line = text.count("\n", 0, head.start()) + 1
            wrong = next((word for word in words if not re.fullmatch(r"[0-9]{1,12}", word)), None)
            if wrong is not None:
                raise InputError(f"{path}: line {line}: group '{name}' holds '{wrong}', which is no number of an atom")
            rows = np.unique(np.array(words, np.int64)) - 1
            if len(rows) and not 0 <= rows[0] <= rows[-1] < count:
                bad = 0 if rows[0] < 0 else rows[-1] + 1
                raise InputError(f"{path}: line {line}: group '{name}' holds atom {bad}, and the structure has atoms 1 "
                                 f"to {count}", "give the index file of this structure")
            if name in groups and not np.array_equal(groups[name], rows):
                raise InputError(f"{path}: line {line}: there are two groups '{name}' of different atoms",
                                 "rename one of them")
            groups[name] = rows
    return groups
