"""Random calls of the tools for agents: nothing outside of the root folder is read, written or told.

Each call runs in a process that is forked from this one and confined like those of the server.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import tempfile
import time
import traceback
from pathlib import Path
from random import Random
from typing import Any

from vmdpotential.parameters import Command, Parameter
from vmdpotential.plugins.agents.confined import Confinement, run_confined
from vmdpotential.plugins.agents.tools import available_commands, offered_parameters

DATA = Path(__file__).parents[1] / "data"
SMALL = ("amide_nhe.pdb", "dna_phosphate_first.pdb", "models.pdb", "cell_of_1A.dcd", "acetate_v3000.sdf")

#: What only a file outside of the root folder has, and seconds of a call until it is stopped.
SECRET, SECONDS = "QZXSECRET", 4.0

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
    command = rng.choice(commands)
    values = {}
    for parameter in offered_parameters(command):
        if (parameter.required and rng.random() < 0.95) or rng.random() < 0.12:
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


def _check(root: Path, name: str, values: dict[str, Any]) -> str:
    """Return what is wrong with the answer of a call, empty for nothing."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        try:
            import sys

            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nowhere, stream)
            os.chdir(root)
            sys.addaudithook(Confinement(root))
            out = io.StringIO()
            run_confined({"root": str(root), "command": name, "values": values}, out)
            os.write(writer, out.getvalue().splitlines()[-1].encode()[:60_000])
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
    os.close(reader)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if SECRET.encode() in text:
        return f"the secret is told: {text[:500]!r}"
    if b"Traceback" in text:
        return text.decode()
    if text and len(text) < 60_000:
        answer = json.loads(text)
        if "error" in answer and (len(answer["error"]) > 4000 or not answer["error"].isprintable()):
            return f"message: {answer['error'][:300]!a}"
        if not ("error" in answer or "lines" in answer):
            return f"neither a result nor an error: {text[:300]!r}"
    return ""


def run(seed: int, count: int, only: int | None = None) -> int:
    """Make the calls; return the number of violations."""
    os.environ["VMDPOTENTIAL_MEMORY"], os.environ["VMDPOTENTIAL_THREADS"] = "60000000", "1"
    commands = list(available_commands())
    violations = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as place:
        for index in range(count) if only is None else [only]:
            if index % 200 == 0 or only is not None:
                folder = Path(place) / str(index)
                folder.mkdir()
                root, outside = _fill(folder.resolve())
                before = _state(outside)
            name, values = make_call(Random(f"{seed} {index}"), commands)
            wrong = _check(root, name, values)
            if _state(outside) != before or set(os.listdir(folder)) != {"root", "outside"}:
                wrong += " a file outside of the root folder has changed"
                before = _state(outside)
            if wrong:
                violations += 1
                print(f"--- {index} {name} {json.dumps(values)[:600]}: {wrong}", flush=True)
    return violations
