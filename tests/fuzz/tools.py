"""Random calls of the tools for agents: nothing outside of the root folder is read, written or told.

The official client of the protocol talks to our server in this process. Only what the server starts differs: a call
runs in a process that is forked from this one, which has loaded the libraries, and confined like those of the server.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import anyio
from mcp import Client

from vmdpotential.parameters import Command, Parameter
from vmdpotential.plugins.agents import server
from vmdpotential.plugins.agents.confined import Confinement, run_confined
from vmdpotential.plugins.agents.tools import available_commands, offered_parameters

DATA = Path(__file__).parents[1] / "data"
SMALL = ("amide_nhe.pdb", "dna_phosphate_first.pdb", "models.pdb", "cell_of_1A.dcd", "acetate_v3000.sdf")

#: What only a file outside of the root folder has, and seconds of a call until it is stopped.
SECRET, SECONDS = "QZXSECRET", 4.0

#: How often a command comes that needs no file, which is seldom refused and takes seconds, such as `verify`.
WITHOUT_FILE = 0.03

TRICKS = ("..", ".", "-", "/", "~", "/etc/passwd", "/dev/null", "/dev/stdout", "/proc/self/environ", "link.pdb", "*",
          "folder/a.pdb", "../outside/secret.pdb", "inc.top", "a\0b.pdb", "x" * 300, "http://localhost/x.pdb", "`id`",
          "$HOME/x.pdb", "new.dx", "new.png", "new.pdb", "new.csv", "new/new.dx", "amide_nhe.pdb;ls", "NH4=/etc/passwd",
          "NH4=link.pdb", "a=../outside/secret.pdb", "link", "link/new.dx")
WORDS = ("all", "protein", "name CA", "water", "auto", "nan", "inf", "1e999", "-1", "0", "1,2,3", "x=1", "Na+=0.1", "",
         " ", "__import__('os').system('id')", "{structure}", "%s%n", "é", "none")


def _value(rng: Random, parameter: Parameter) -> Any:
    option = parameter.option
    if option.allowed() and rng.random() < 0.7:
        return rng.choice(list(option.allowed()))
    if parameter.type is Path or rng.random() < 0.2:
        return rng.choice((*SMALL, *TRICKS) if rng.random() < 0.6 else SMALL)
    if parameter.type is bool:
        return rng.choice((True, False, "yes", 3))
    if parameter.type in (int, float):
        return rng.choice((0, 1, 2, -1, 0.5, 3.5, 1e9, -1e300, "7", "x", float("inf")))
    return rng.choice((*WORDS, 5, None, [], ["all"], {"a": 1}))


def make_call(rng: Random, commands: list[Command]) -> tuple[str, dict[str, Any]]:
    """Return the name of a tool, and values of some of its parameters."""
    takes_file = [any(p.required and p.type is Path for p in command.parameters) for command in commands]
    command = rng.choices(commands, [1.0 if takes else WITHOUT_FILE for takes in takes_file])[0]
    values: dict[str, Any] = {}
    chance = rng.choice((0.12, 0.04, 0.01))  # with many values, one is mostly refused
    for parameter in offered_parameters(command):
        if (parameter.required and rng.random() < 0.95) or rng.random() < chance:
            each = [_value(rng, parameter) for _ in range(rng.randint(1, 2) if parameter.several else 1)]
            values[parameter.name] = each if parameter.several and rng.random() < 0.8 else each[0]
    if rng.random() < 0.02:
        values[rng.choice(("scheduler", "output_", "", "__class__"))] = "tcp://127.0.0.1:1"
    return command.name, values


def _fill(folder: Path) -> tuple[Path, Path]:
    root, outside = folder / "root", folder / "outside"
    root.mkdir()
    outside.mkdir()
    for name in SMALL:
        shutil.copy(DATA / name, root)
    text = (DATA / "amide_nhe.pdb").read_text()
    (outside / "secret.pdb").write_text(f"TITLE     {SECRET}\n{text}")
    (root / "link.pdb").symlink_to(outside / "secret.pdb")
    (root / "link").symlink_to(outside)
    (root / "inc.top").write_text(f'#include "{outside}/secret.pdb"\n')
    return root, outside


def _state(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*")}


def _load() -> None:
    """Run two commands, so that the processes of calls have their libraries."""
    with tempfile.TemporaryDirectory() as place:
        path = shutil.copy(DATA / SMALL[0], place)
        for name in ("prepare", "patches"):
            run_confined({"root": place, "command": name, "values": {"structure": path}}, io.StringIO())


async def _forked(root: Path, _: server.Limits, name: str, values: dict[str, Any], progress: object) -> dict[str, Any]:
    """Run a call in place of :func:`.server.run_call`; what is no answer of ours is a ``violation``."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reader)
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nowhere, stream)
            os.chdir(root)
            sys.addaudithook(Confinement(root))
            out = io.StringIO()
            run_confined({"root": str(root), "command": name, "values": values}, out)
            with open(writer, "w", encoding="utf-8", closefd=False) as answer:
                answer.write(out.getvalue().splitlines()[-1])
        except BaseException:
            os.write(writer, traceback.format_exc().encode()[-4000:])
        finally:
            os._exit(0)
    os.close(writer)
    end, text = time.monotonic() + SECONDS, b""
    os.set_blocking(reader, False)
    while time.monotonic() < end:
        try:
            piece = os.read(reader, 1 << 16)
        except BlockingIOError:
            time.sleep(0.002)
            continue
        if not piece:
            break
        text += piece
    else:
        text = b'{"error": "stopped"}'
    os.close(reader)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    try:
        answer = json.loads(text)
    except ValueError:
        return {"error": "no answer", "violation": text.decode(errors="replace")}
    wrong = "" if "error" in answer or "lines" in answer else "neither a result nor an error"
    return answer | ({"violation": wrong} if wrong else {})


async def _check(client: Client, name: str, values: dict[str, Any], kinds: Counter[str]) -> str:
    """Return what is wrong with the answer of a call, empty for nothing."""
    result = await client.call_tool(name, values)
    data = result.structured_content or {}
    kinds["made" if not result.is_error else "stopped" if data["error"] == "stopped" else "refused"] += 1
    if SECRET in result.model_dump_json():
        return f"the secret is told: {result.content!r:.500}"
    if result.is_error and (len(data["error"]) > 4000 or not data["error"].isprintable()):
        return f"message: {data['error'][:300]!a}"
    return str(data.get("violation", ""))


async def _run(seed: int, indices: range | list[int]) -> int:
    commands, kinds, violations = list(available_commands()), Counter[str](), 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as place:
        for start in range(0, len(indices), 200):
            folder = Path(place) / str(start)
            folder.mkdir()
            root, outside = _fill(folder.resolve())
            before = _state(outside)
            async with Client(server.make_server(root, server.Limits(SECONDS, 0, 0))) as client:
                for index in indices[start : start + 200]:
                    name, values = make_call(Random(f"{seed} {index}"), commands)
                    wrong = await _check(client, name, values, kinds)
                    if _state(outside) != before or set(os.listdir(folder)) != {"root", "outside"}:
                        wrong += " a file outside of the root folder has changed"
                        before = _state(outside)
                    if wrong:
                        violations += 1
                        print(f"--- {index} {name} {json.dumps(values)[:600]}: {wrong}", flush=True)
            shutil.rmtree(folder)
    print(", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
    return violations


def run(seed: int, count: int, only: int | None = None) -> int:
    """Make the calls; return the number of violations."""
    os.environ["VMDPOTENTIAL_MEMORY"], os.environ["VMDPOTENTIAL_THREADS"] = "60000000", "1"
    _load()
    server.run_call = _forked
    return anyio.run(_run, seed, range(count) if only is None else [only])
