"""What a page and a scene have in common: they are saved as one file."""

from __future__ import annotations

from pathlib import Path

from vmdpotential.io.files import output


class OneFile:
    """Something that is written as one file, whose bytes are `content`."""

    content: bytes

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
