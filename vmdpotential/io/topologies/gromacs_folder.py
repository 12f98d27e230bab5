"""Topologies of GROMACS (.top, .itp) as grompp sees them: includes found, conditions decided, macros replaced."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from vmdpotential.errors import InputError
from vmdpotential.io.files.text import Held, read_text

#: Programs of GROMACS, next to whose folder its data are.
_PROGRAMS = ("gmx", "gmx_mpi", "gmx_d", "gmx_mpi_d")
#: Where its data are under a prefix of an installation.
_SHARE = Path("share", "gromacs", "top")
#: Files that include each other deeper than this do so in a circle.
_DEEPEST = 50
#: Times that the value of a macro is looked up for macros in it.
_ROUNDS = 10
#: Words and characters that a line may have: when its macros are replaced, and when it is continued by lines.
_WORDS, _LONGEST = 1000, 10_000
#: Files and lines that a topology may consist of, one that is included again counted again.
MOST_FILES, MOST_LINES = 2000, 20_000_000


def folders() -> list[Path]:
    """Return the folders in which GROMACS has its force fields (``amber99sb-ildn.ff``), those that exist, in its order.

    They are those of GMXLIB, ``$GMXDATA/top``, the installation whose ``gmx`` is found, that of this Python's
    environment, /usr/local/gromacs and /usr.
    """
    places = [Path(text) for text in os.environ.get("GMXLIB", "").split(os.pathsep) if text]
    if os.environ.get("GMXDATA"):
        places.append(Path(os.environ["GMXDATA"], "top"))
    programs = (shutil.which(name) for name in _PROGRAMS)
    prefixes = [Path(program).resolve().parent.parent for program in programs if program]
    places += [prefix / _SHARE for prefix in (*prefixes, Path(sys.prefix), Path("/usr/local/gromacs"), Path("/usr"))]
    return list(dict.fromkeys(place for place in places if place.is_dir()))


def find_include(name: str, path: Path) -> Path | None:
    """Return the file that ``#include "name"`` means in a file at `path`: next to that, else in :func:`folders`."""
    folder = Path() if isinstance(path, Held) else Path(path).parent
    return next((result for place in (folder, *folders()) if (result := place / name).is_file()), None)


class Line(NamedTuple):
    """A line that counts.

    Parameters
    ----------
    text : str
        Without comments, macros replaced, one blank between words.
    path, number : Path, int
        The file it is in, and its number there, from 1.
    """

    text: str
    path: Path
    number: int


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of a topology and of what it includes, as GROMACS' preprocessor leaves them, without empty ones.

    Raises
    ------
    InputError
        When a file cannot be read or is not found (the message says where it was looked for), includes go in a circle
        or lead to too many files or lines, or conditions do not end.
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
        conditions: list[bool] = []  # of the #ifdef that are open: whether what follows counts
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
            # "# ifdef X" is allowed too
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
                raise InputError(f"{where}: its macros make more than {_WORDS} words or {_LONGEST} characters")
        return words


def _included(name: str, path: Path, where: str) -> Path:
    result = find_include(name, path)
    if result is None:
        places = ", ".join(map(str, folders())) or "of which there is impossible"
        raise InputError(f"{where}: includes {name}, which is neither next to it nor in GROMACS' folders ({places})",
                         "name the folder that holds it by GMXLIB")
    return result
