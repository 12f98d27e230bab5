"""Base class of the results of the command ``view``: a page, or a scene of Mol*."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vmdpotential.io.files import output
from vmdpotential.molecule.structure import Structure


def title_of(structure: Structure, otherwise: str) -> str:
    """Return the title of a structure, or the name of its file if there is none, or one in capitals as in PDB files.

    Such a title is hard to read, and files that were made from an entry often still have that of the entry.
    """
    title = " ".join(structure.title.split())
    return ("" if title.isupper() else title) or Path(next(iter(structure.sources), "")).name or title or otherwise


@dataclass(frozen=True, kw_only=True)
class Document:
    """A file that shows a structure and maps.

    Parameters
    ----------
    content : bytes
        Content of the file.
    title : str
        Title of the document.
    summary : mapping
        Numbers of atoms and ions, and the points, spacing and range of each map.
    warnings : tuple of str
        Warnings for the user.
    """

    content: bytes = field(repr=False)  # megabytes
    title: str
    summary: Mapping[str, Any]
    warnings: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return len(self.content)

    def save(self, path: Path | str, force: bool = False) -> None:
        """Write the file, completely or not at all.

        Raises
        ------
        UsageError
            When the file exists and `force` is not set.
        OutputError
            When it cannot be written.
        """
        with output.writing_files([Path(path)], force) as (temporary,):
            temporary.write_bytes(self.content)
