"""The server: lists the tools, runs each call in a confined process, and returns its report, data and pictures."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

import vmdpotential

from .tools import available_commands, tool_of_command

#: Largest picture that an answer has, and largest line of an answer, bytes.
LARGEST_PICTURE, LARGEST_LINE = 2_000_000, 20_000_000

#: Seconds that a process that is stopped has to remove its unfinished files.
GRACE = 5.0

INSTRUCTIONS = """Molecular electrostatics: potential maps and coloured surfaces, ions for simulations, \
energies, averages over trajectories, and figures. Every number has a unit, and most have an error. Start with \
'surface' or 'map' for a structure file; 'slice' draws a map."""

#: Gets a line about the progress.
Progress = Callable[[str], Awaitable[None]]


@dataclass(frozen=True)
class Limits:
    """Limits of a call.

    Parameters
    ----------
    seconds : float
    memory : int
        Bytes that a computation may plan.
    file_size : int
        Bytes of the largest file that it may write.
    """

    seconds: float
    memory: int
    file_size: int


async def run_call(root: Path, limits: Limits, name: str, values: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """Run a command in a process of its own, which is ended with this task or after the limit of time.

    Returns
    -------
    dict
        The last line of :func:`.confined.run_confined`; an ``error`` if there is none.
    """
    environment = os.environ | {"VMDPOTENTIAL_MEMORY": str(limits.memory), "MPLBACKEND": "agg"}
    process = await anyio.open_process([sys.executable, "-m", f"{__package__}.confined"], env=environment,
                                       start_new_session=True)
    answer: dict[str, Any] = {}
    try:
        with anyio.move_on_after(limits.seconds) as scope:
            assert process.stdin is not None
            call = {"root": str(root), "command": name, "values": values, "file_size": limits.file_size}
            await process.stdin.send(json.dumps(call).encode())
            await process.stdin.aclose()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_drain, process)
                answer = await _last_line(process, progress)
            await process.wait()
        if scope.cancelled_caught:
            return {"error": f"stopped after {limits.seconds:g} s, the limit of this server", "code": 3}
        return answer or {"error": f"the process ended with the code {process.returncode}", "code": 3}
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)


async def _last_line(process: Process, progress: Progress) -> dict[str, Any]:
    assert process.stdout is not None
    lines, answer = BufferedByteReceiveStream(process.stdout), {}
    with suppress(anyio.EndOfStream, anyio.IncompleteRead):
        while True:
            line = json.loads(await lines.receive_until(b"\n", LARGEST_LINE))
            if "progress" in line:
                await progress(f"{line['progress']}: {100 * line['fraction']:.0f} %")
            else:
                answer = line
    return answer


async def _drain(process: Process) -> None:
    """Read what libraries print, so that the process does not wait for us."""
    assert process.stderr is not None
    async for _ in process.stderr:
        pass


async def _end(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.terminate()  # it removes unfinished files
        with anyio.move_on_after(GRACE):
            await process.wait()
    with suppress(ProcessLookupError, PermissionError):  # also its own processes
        if hasattr(os, "killpg"):
            os.killpg(process.pid, 9)
        else:
            process.kill()
    await process.aclose()


def contents_of_answer(answer: dict[str, Any], root: Path) -> list[types.ContentBlock]:
    """Return the report as text, and the pictures that the command wrote."""
    if "error" in answer:
        return [types.TextContent(type="text", text=answer["error"])]
    text = "\n".join([*answer["lines"], *(f"warning: {line}" for line in answer["warnings"])])
    contents: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
    for name in answer["written"]:
        path = root / name
        if path.suffix == ".png" and path.is_file() and path.stat().st_size <= LARGEST_PICTURE:
            data = base64.b64encode(path.read_bytes()).decode()
            contents.append(types.ImageContent(type="image", data=data, mime_type="image/png"))
    return contents


def make_server(root: Path, limits: Limits) -> Server[Any]:
    """Return the server of the tools for files in a folder.

    Parameters
    ----------
    root : Path
        Without links.
    limits : Limits
    """
    tools = [tool_of_command(command) for command in available_commands()]
    names = {tool["name"] for tool in tools}
    one_at_a_time = anyio.Semaphore(1)

    async def list_tools(context: ServerRequestContext[Any], _: types.PaginatedRequestParams | None
                         ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in tools])

    async def call_tool(context: ServerRequestContext[Any], call: types.CallToolRequestParams) -> types.CallToolResult:
        done = 0

        async def progress(line: str) -> None:
            nonlocal done
            done += 1  # of steps whose number nobody knows; the protocol's numbers must not fall
            await context.session.report_progress(done, None, line)

        if call.name not in names:
            known = ", ".join(sorted(names))
            answer: dict[str, Any] = {"error": f"there is no tool {call.name[:100]!r}; there are {known}", "code": 2}
        else:
            async with one_at_a_time:
                answer = await run_call(root, limits, call.name, dict(call.arguments or {}), progress)
        data = {name: value for name, value in answer.items() if name not in ("lines", "data")} | answer.get("data", {})
        return types.CallToolResult(content=contents_of_answer(answer, root), structured_content=data,
                                    is_error="error" in answer)

    return Server("vmdpotential", version=vmdpotential.__version__, instructions=INSTRUCTIONS,
                  on_list_tools=list_tools, on_call_tool=call_tool)


async def serve(root: Path, limits: Limits) -> None:
    """Answer the client on standard input and output until it closes them."""
    server = make_server(root, limits)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
