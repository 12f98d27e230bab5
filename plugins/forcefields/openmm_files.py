"""OpenMM force-field files as text that is safe to load, with includes resolved and without code.

OpenMM runs the Python code of ``<Script>`` and ``<InitializationScript>``, evaluates one attribute as Python, loads the
files of ``<Include>``, and unpickles the functions of a ``PythonForce`` in a System. Files that are installed with
OpenMM, or with a package that registers force fields with it, are trusted like the program itself; all others are
checked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from vmdpotential.errors import InputError, one_line
from vmdpotential.io.files.text import read_text, reading_file

#: Most files of a force field.
MOST_FILES = 200

_SCRIPTS = ("Script", "InitializationScript")
#: The attribute that OpenMM evaluates as Python, and its harmless values.
_EVALUATED, _PLAIN = "useDispersionCorrection", ("True", "False", "true", "false", "0", "1")
#: The class of an object in a System, matched as by OpenMM's parser, which skips any text between the attribute's name
#: and the quote, and does not decode character references to letters.
_CLASS = re.compile(r"""\stype[\s=][^"']*["']([^"']*)""")
_REMEDY = "remove it from the file; {allow_scripts} of energy and forces runs it, for files that you trust"


class ForceFieldFile(NamedTuple):
    """A file of a force field: its path, and its text without includes."""

    path: Path
    text: str


def force_field(paths: Sequence[Path], scripts: bool = False) -> list[ForceFieldFile]:
    """Return the files of a force field and the files that they include, in the order in which OpenMM loads them.

    Parameters
    ----------
    paths : sequence of Path
        Files, also by the names of those installed with OpenMM.
    scripts : bool
        Whether the files may contain Python code.

    Raises
    ------
    InputError
        When a file cannot be read, is not XML, or contains code; or for more than :data:`MOST_FILES` files.
    """
    results: list[ForceFieldFile] = []
    waiting = [_located(path) for path in paths]
    known = set(waiting)
    while waiting:
        path = waiting.pop(0)
        with reading_file(path):
            root, text = _parsed(path)
            if not scripts and not _is_installed(path):
                _check(root, path)
            includes = root.findall("Include")
            for element in includes:
                name = element.get("file", "")
                local = path.parent / name
                other = _located(local if local.is_file() else Path(name))
                if other not in known:
                    known.add(other)
                    waiting.append(other)
                root.remove(element)
            if len(known) > MOST_FILES:
                raise InputError(f"{path}: its includes lead to more than {MOST_FILES} files",
                                 "give the files themselves")
            results.append(ForceFieldFile(path, ElementTree.tostring(root, encoding="unicode") if includes else text))
    return results


def system(path: Path, classes: Collection[str]) -> str:
    """Return the text of a System that consists only of objects of known classes.

    Raises
    ------
    InputError
        When the file cannot be read, or contains an object of another class.
    """
    text = read_text(path).decode("utf-8")
    other = next((name for name in _CLASS.findall(text) if name not in classes), None)
    if other is not None:
        raise InputError(f"{path}: contains a {one_line(other[:40])}, which is not an energy of pairs",
                         "remove it from the System, or compute it with OpenMM")
    return text


def _parsed(path: Path) -> tuple[ElementTree.Element, str]:
    text = read_text(path, 30).decode("utf-8")
    try:
        return ElementTree.fromstring(text), text
    except (ElementTree.ParseError, ValueError) as error:
        raise InputError(f"{path}: is not a force field of OpenMM ({error})", "write it again") from None


def _located(path: Path) -> Path:
    """Return the file that OpenMM loads for a path: an existing file, or else the installed one of this name."""
    if path.is_file():
        return path
    inside = next((folder / path for folder in _folders() if (folder / path).is_file()), None)
    if inside is None and not path.exists():
        raise InputError(f"{path}: there is no such file, and none of that name comes with OpenMM",
                         "check its name and folder")
    return inside or path


def _folders() -> list[Path]:
    """Return the folders of the installed force fields."""
    from openmm.app import forcefield

    return [Path(folder) for folder in forcefield._getDataDirectories()]


def _is_installed(path: Path) -> bool:
    resolved = path.resolve()
    return any(resolved.is_relative_to(folder.resolve()) for folder in _folders())


def _check(root: ElementTree.Element, path: Path) -> None:
    """Raise InputError when a file contains code that OpenMM would execute."""
    for element in root.iter():
        if element.tag in _SCRIPTS:
            raise InputError(f"{path}: contains a <{element.tag}>, which is a program that OpenMM would run", _REMEDY)
        value = element.get(_EVALUATED, "True")
        if value not in _PLAIN:
            raise InputError(f"{path}: {_EVALUATED} is '{one_line(value[:40])}', which OpenMM would run as a program; "
                             "it is True or False", _REMEDY)
