"""Search for 3Dmol.js, which draws the page, with its version and its licence.

It belongs to another project (BSD-3-Clause), and no package of PyPI has it as a separate file, so it is installed from
its npm package: by npm, or by ``vmdpotential install page``. The following are searched, in this order:

1. the parameter ``viewer_script``, else the variable VMDPOTENTIAL_3DMOL: the script, or the package's folder;
2. ``node_modules`` in the current folder;
3. ``node_modules`` of this Python's environment (``sys.prefix``, also ``lib/node_modules``);
4. ``node_modules`` in the user's data folder (``~/.local/share/vmdpotential``);
5. ``node_modules`` of a global npm (``/usr/local/lib``, ``/usr/lib``).
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vmdpotential.errors import BackendError, InputError

from ..viewers.page_script import user_folder

#: Environment variable with the path of the script, or of the folder of its npm package.
VARIABLE = "VMDPOTENTIAL_3DMOL"

_SCRIPT = Path("build") / "3Dmol-min.js"


@dataclass(frozen=True)
class ViewerScript:
    """3Dmol.js: its text, its licence, its version (empty if unknown) and its path."""

    text: str
    licence: str
    version: str
    path: Path


def find_viewer_script(named: Path | None = None) -> ViewerScript:
    """Return 3Dmol.js from `named` (the script, or the folder of its npm package), or from the places of the search.

    Raises
    ------
    BackendError
        When the script or its licence is not found; the message explains how to install it.
    InputError
        When the file is not 3Dmol.js.
    """
    variable = os.environ.get(VARIABLE)
    if named is None and variable:
        named = Path(variable)
    if named is not None:
        path = _script_in(named)
        if path is None:
            raise BackendError(f"{named}: does not contain 3Dmol.js",
                               "name the file 3Dmol-min.js or the folder of the npm package 3dmol")
        return _read(path)
    for folder in _folders():
        path = _script_in(folder / "3dmol")
        if path is not None:
            return _read(path)
    raise BackendError(
        "3Dmol.js, which the page contains, is not installed; run: vmdpotential install page --yes",
        f"or: npm install --prefix '{user_folder()}' 3dmol, or name its file with {{viewer_script}}")


def _folders() -> Iterator[Path]:
    """Yield the folders of the search."""
    # parents of the current folder (such as /tmp) are excluded: others may write to them, and the page runs the code
    for folder in (Path.cwd(), Path(sys.prefix), Path(sys.prefix) / "lib", user_folder(),
                   Path("/usr/local/lib"), Path("/usr/lib")):
        yield folder / "node_modules"


def _script_in(place: Path) -> Path | None:
    for path in (place, place / _SCRIPT, place / "node_modules" / "3dmol" / _SCRIPT, place / _SCRIPT.name):
        if path.is_file():
            return path
    return None


def _read(path: Path) -> ViewerScript:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a script ({error})") from None
    if "createViewer" not in text or "3Dmol" not in text:
        raise InputError(f"{path}: is not 3Dmol.js", "name the file 3Dmol-min.js of the npm package 3dmol")
    for folder in (path.parent, path.parent.parent):
        if (folder / "LICENSE").is_file():
            licence = (folder / "LICENSE").read_text("utf-8", errors="replace")
            break
    else:
        raise BackendError(f"{path}: its licence, which has to be in the page, is not next to it",
                           "put the file LICENSE of the npm package 3dmol into the same folder")
    return ViewerScript(embeddable(text), licence, _version(folder), path)


def _version(folder: Path) -> str:
    try:
        return str(json.loads((folder / "package.json").read_text("utf-8"))["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def embeddable(text: str) -> str:
    """Return an equivalent script that can be put between script tags.

    Browsers end a script at the first ``</script``, even in a string, and read other line ends as \\n.
    """
    text = re.sub("\r\n?", "\n", text)
    return re.sub(r"<(?=/script|!--)", r"\\x3c", text, flags=re.IGNORECASE)
