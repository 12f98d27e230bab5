"""What PyMOL's plugin manager installs; it needs no PyMOL to be made."""

from __future__ import annotations

import zipfile
from pathlib import Path

from vmdpotential import __version__
from vmdpotential.io.files.output import writing

#: The folder in PyMOL's start-up folder, and the plugin's name in PyMOL's plugin manager.
NAME = "vmdpotential_plugin"


def plugin_files() -> dict[str, str]:
    """Return the plugin's files, which hand over to the installed package, as ``{name in the folder: text}``."""
    here = Path(__file__).parent
    head = f"# Version: {__version__}\n# License: BSD-3-Clause\n# Requires: vmdpotential\n\n"
    return {
        "__init__.py": head + (here / "__init__.py").read_text(encoding="utf-8"),
        "README.md": (here / "README.md").read_text(encoding="utf-8"),
    }


def build_zip(path: str | Path, force: bool = False) -> Path:
    """Write the zip that PyMOL installs (Plugin, Plugin Manager, Install New Plugin), the same bytes each time.

    Raises
    ------
    UsageError
        When the file exists and `force` is not given.
    OutputError
        When it cannot be written.
    """
    path = Path(path)
    with writing([path], force) as (temporary,), zipfile.ZipFile(temporary, "w") as archive:
        for name, text in plugin_files().items():
            entry = zipfile.ZipInfo(f"{NAME}/{name}")
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text)
    return path
