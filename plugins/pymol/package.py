"""The files that PyMOL's plugin manager installs; they are made without PyMOL."""

from __future__ import annotations

import zipfile
from pathlib import Path

from vmdpotential import __version__
from vmdpotential.extras import pip_requirement
from vmdpotential.io.files.output import writing_files

#: Name of the plugin's folder in PyMOL's start-up folder, and of the plugin in PyMOL's plugin manager.
NAME = "vmdpotential_plugin"


def plugin_files() -> dict[str, str]:
    """Return the texts of the plugin's files, by their names in the folder.

    They import the package, and install it on request from where this one came.
    """
    here = Path(__file__).parent
    head = f"# Version: {__version__}\n# License: BSD-3-Clause\n# Requires: vmdpotential\n\n"
    line, text = '_REQUIREMENT = "vmdpotential[all]"', (here / "__init__.py").read_text(encoding="utf-8")
    assert line in text
    return {
        "__init__.py": head + text.replace(line, f"_REQUIREMENT = {pip_requirement('all')!r}"),
        "README.md": (here / "README.md").read_text(encoding="utf-8"),
    }


def build_zip(path: str | Path, force: bool = False) -> Path:
    """Write a reproducible zip file that PyMOL can install (Plugin, Plugin Manager, Install New Plugin).

    Raises
    ------
    UsageError
        When the file exists and `force` is not given.
    OutputError
        When it cannot be written.
    """
    path = Path(path)
    with writing_files([path], force) as (temporary,), zipfile.ZipFile(temporary, "w") as archive:
        for name, text in plugin_files().items():
            entry = zipfile.ZipInfo(f"{NAME}/{name}")
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text)
    return path
