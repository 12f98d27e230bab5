"""What the command ``view`` makes: a page, or a scene of Mol*."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vmdpotential.io.files import output


@dataclass(frozen=True, kw_only=True)
class Document:
    """A file that shows a structure and maps.

    Parameters
    ----------
    content : bytes
        The whole file.
    title : str
    summary : mapping
        What is in it: number of atoms and ions, and for each map its points, spacing and range.
    warnings : tuple of str
    """

    content: bytes = field(repr=False)  # a megabyte
    title: str
    summary: Mapping[str, Any]
    warnings: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return len(self.content)

    def save(self, path: Path | str, force: bool = False) -> None:
        """Write the file, whole or not at all.

        Raises
        ------
        UsageError
            When the file exists and `force` is not set.
        OutputError
            When it cannot be written.
        """
        with output.writing([Path(path)], force) as (temporary,):
            temporary.write_bytes(self.content)
