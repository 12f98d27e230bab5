"""The command ``mcp``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from vmdpotential.errors import UsageError
from vmdpotential.extras import load_optional
from vmdpotential.parameters import Command, Option, Report


def mcp(root: Annotated[Path, Option(
            "folder with the files; nothing outside of it is read or written", positional=True)],
        seconds: Annotated[float, Option("longest time of a call", unit="s", above=0, high=1e6)] = 600.0,
        memory: Annotated[float, Option("memory that a call may plan", unit="GB", above=0, high=1e6)] = 8.0,
        file_size: Annotated[float, Option("largest file that a call may write", unit="GB", above=0, high=1e6)] = 2.0,
        ) -> Report:
    """Serve the commands as tools of the Model Context Protocol, for agents.

    A client starts this program and talks to it by standard input and output. Every command that needs nobody present
    is a tool, with its options, units, defaults and limits. Each call runs in a process of its own, one after the
    other; results are text, data and pictures. Only names of files in the root folder are taken.
    """
    place = root.resolve()
    if not place.is_dir():
        raise UsageError("root", "is not a folder", "name an existing one", value=str(root))
    load_optional("mcp", "tools for agents", "agents")
    import anyio

    from .server import Limits, serve

    anyio.run(serve, place, Limits(seconds, int(memory * 1e9), int(file_size * 1e9)))
    return Report([], {"root": str(place)})


command = Command.of(mcp, repeatable=False, unattended=False, examples=(
    "mcp structures",
    "mcp . --seconds 60 --memory 2",
))
