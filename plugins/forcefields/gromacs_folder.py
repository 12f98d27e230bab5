"""Preprocessing of GROMACS topologies (.top, .itp) as by grompp: includes, conditions and macros."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from vmdpotential.errors import InputError
from vmdpotential.io.files.text import BufferedStream, read_text

#: Names of GROMACS' main program, whose location gives the prefix of the installation.
_PROGRAMS = ("gmx", "gmx_mpi", "gmx_d", "gmx_mpi_d")
#: Folder of GROMACS' data below the prefix of an installation.
_SHARE = Path("share", "gromacs", "top")
#: Deepest nesting of includes; deeper ones are taken for a circle.
_DEEPEST = 50
#: Most passes of replacing macros, whose values may contain macros.
_ROUNDS = 10
#: Most words and characters of a line, after replacing macros or joining continued lines.
_WORDS, _LONGEST = 1000, 10_000
#: Most files and lines of a topology; a file included again is counted again.
MOST_FILES, MOST_LINES = 2000, 20_000_000


def folders() -> list[Path]:
    """Return the existing folders of GROMACS' force fields (``amber99sb-ildn.ff``), in the order of searching.

    These are the folders in GMXLIB, ``$GMXDATA/top``, and those of the installation whose ``gmx`` is in the PATH, of
    this Python's environment, of /usr/local/gromacs and of /usr.
    """
    candidates = [Path(text) for text in os.environ.get("GMXLIB", "").split(os.pathsep) if text]
    if os.environ.get("GMXDATA"):
        candidates.append(Path(os.environ["GMXDATA"], "top"))
    programs = (shutil.which(name) for name in _PROGRAMS)
    prefixes = [Path(program).resolve().parent.parent for program in programs if program]
    prefixes += [Path(sys.prefix), Path("/usr/local/gromacs"), Path("/usr")]
    candidates += [prefix / _SHARE for prefix in prefixes]
    return list(dict.fromkeys(folder for folder in candidates if folder.is_dir()))


def find_include(name: str, path: Path) -> Path | None:
    """Return the file that ``#include "name"`` in the file `path` refers to: in its folder, or in :func:`folders`."""
    own = Path() if isinstance(path, BufferedStream) else Path(path).parent
    return next((result for folder in (own, *folders()) if (result := folder / name).is_file()), None)


class Line(NamedTuple):
    """A preprocessed line.

    Parameters
    ----------
    text : str
        The line without comments, with macros replaced and one blank between words.
    path, number : Path, int
        Its file, and its number there, from 1.
    """

    text: str
    path: Path
    number: int


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of a topology and of the files that it includes, preprocessed as by GROMACS, without empty lines.

    Raises
    ------
    InputError
        When a file cannot be read or is not found (the message lists the folders that were searched), includes form a
        circle or lead to too many files or lines, or a condition has no end.
    """
    return _Preprocessor().lines(path, 0)


@dataclass
class _Preprocessor:
    macros: dict[str, str] = field(default_factory=dict)
    files: int = 0
    lines_read: int = 0

    def lines(self, path: Path, depth: int) -> Iterator[Line]:
        if depth > _DEEPEST:
            raise InputError(f"{path}: files include each other in a circle")
        conditions: list[bool] = []  # whether lines are used, for each open #ifdef
        continued = ""
        text = read_text(path).decode("utf-8", "replace").split("\n")
        self.files, self.lines_read = self.files + 1, self.lines_read + len(text)
        if self.files > MOST_FILES or self.lines_read > MOST_LINES:
            raise InputError(f"{path}: the topology includes more than {MOST_FILES} files or {MOST_LINES} lines",
                             "include each file once")
        for number, line in enumerate(text, 1):
            line = continued + line.partition(";")[0].rstrip()
            if line.endswith("\\"):
                continued = f"{line[:-1]} "
                if len(continued) > _LONGEST:
                    raise InputError(f"{path}: line {number}: is continued to more than {_LONGEST} characters")
                continue
            continued = ""
            words = line.split()
            if not words:
                continue
            if not words[0].startswith("#"):
                if all(conditions):
                    yield Line(" ".join(self._replaced(words, f"{path}: line {number}")), path, number)
                continue
            # "# ifdef X" is also valid
            directive, rest = words[0][1:] or "".join(words[1:2]), words[1 if words[0] != "#" else 2:]
            where = f"{path}: line {number}"
            if directive in ("ifdef", "ifndef") and rest:
                conditions.append((rest[0] in self.macros) == (directive == "ifdef"))
            elif directive in ("else", "endif"):
                if not conditions:
                    raise InputError(f"{where}: #{directive} without #ifdef")
                last = conditions.pop()
                if directive == "else":
                    conditions.append(not last)
            elif not all(conditions):
                continue
            elif directive == "define" and rest:
                self.macros[rest[0]] = " ".join(rest[1:])
            elif directive == "undef" and rest:
                self.macros.pop(rest[0], None)
            elif directive == "include" and rest:
                yield from self.lines(_included(" ".join(rest).strip("\"'<>"), path, where), depth + 1)
        if conditions:
            raise InputError(f"{path}: an #ifdef has no #endif")

    def _replaced(self, words: list[str], where: str) -> list[str]:
        for _ in range(_ROUNDS):
            if not any(word in self.macros for word in words):
                break
            words = [part for word in words for part in self.macros.get(word, word).split()]
            if len(words) > _WORDS or sum(map(len, words)) > _LONGEST:
                raise InputError(f"{where}: has more than {_WORDS} words or {_LONGEST} characters with macros replaced")
        return words


def _included(name: str, path: Path, where: str) -> Path:
    result = find_include(name, path)
    if result is None:
        searched = ", ".join(map(str, folders())) or "none was found"
        raise InputError(f"{where}: includes {name}, which is not in its folder or those of GROMACS ({searched})",
                         "set GMXLIB to the folder that contains it")
    return result
