"""Index files of GROMACS (.ndx): named groups of atoms, ``[ Protein ]`` followed by atom numbers from 1."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from vmdpotential.errors import InputError
from vmdpotential.io.files.text import buffered_stream, read_text, reading_file
from vmdpotential.molecule.structure import Integers

#: Most bytes of memory for each byte of a file (a digit and a blank become two copies of eight bytes).
_MEMORY = 12.0


def read_groups(path: str | Path, count: int) -> dict[str, Integers]:
    """Return the groups of an index file.

    Parameters
    ----------
    path : str or Path
        The index file.
    count : int
        Number of atoms in the structure.

    Returns
    -------
    dict
        Indices of the atoms, from 0, by group name. A name may contain blanks; a group may be empty.

    Raises
    ------
    InputError
        When the file is not an index file, lists an atom that the structure does not have, or has two different
        groups of the same name.
    """
    path = buffered_stream(path)
    with reading_file(path):
        text = read_text(path, _MEMORY).decode("utf-8", "replace")
        text = re.sub(r";[^\n]*", "", text)
        heads = list(re.finditer(r"^[ \t]*\[([^\n]*)\][ \t]*$", text, re.MULTILINE))
        if not heads or text[: heads[0].start()].strip():
            raise InputError(f"{path}: is not an index file: it does not begin with a group such as [ Protein ]")
        groups: dict[str, Integers] = {}
        for head, end in zip(heads, [*(match.start() for match in heads[1:]), len(text)], strict=True):
            name = head[1].strip()
            words = text[head.end() : end].split()
            line = text.count("\n", 0, head.start()) + 1
            wrong = next((word for word in words if not re.fullmatch(r"[0-9]{1,12}", word)), None)
            if wrong is not None:
                raise InputError(f"{path}: line {line}: group '{name}' contains '{wrong}', which is not an atom number")
            rows = np.unique(np.array(words, np.int64)) - 1
            if len(rows) and not 0 <= rows[0] <= rows[-1] < count:
                bad = 0 if rows[0] < 0 else rows[-1] + 1
                raise InputError(f"{path}: line {line}: group '{name}' contains atom {bad}, but the structure has "
                                 f"atoms 1 to {count}", "give the index file of this structure")
            if name in groups and not np.array_equal(groups[name], rows):
                raise InputError(f"{path}: line {line}: two groups of different atoms are named '{name}'",
                                 "rename one of them")
            groups[name] = rows
    return groups
