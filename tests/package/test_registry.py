"""The registry, with packages that are not ours."""

import ast
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from helpers import refused
from messages import Words, naming

from vmdpotential import registry
from vmdpotential.errors import UsageError

CORE = Path(registry.__file__).parent


def install(folder, name, code, target="add"):
    """Put a package with an entry point into a folder, as pip would."""
    (folder / f"{name}.py").write_text(textwrap.dedent(code))
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[vmdpotential.plugins]\n{name} = {name}:{target}\n")


FOREIGN = '''
from typing import Annotated
from vmdpotential import registry
from vmdpotential.parameters import Command, Option, Report

def count(structure: Annotated[str, Option("a word", positional=True)],
          times: Annotated[int, Option("how often", low=1)] = 2) -> Report:
    """Say a word again and again."""
    return Report([structure * times], {"said": structure * times})

def fail(structure: Annotated[str, Option("a word", positional=True)]) -> Report:
    """Divide by nothing."""
    return 1 / 0

def add():
    registry.register("command", "say", Command.of(count, "say", examples=("vmdpotential say no", "say yes")))
    registry.register("command", "fail", Command.of(fail))
'''


@pytest.fixture
def program(tmp_path):
    """Run the shell program with foreign packages installed next to ours."""
    install(tmp_path, "foreign_potential", FOREIGN)
    install(tmp_path, "broken_potential", "import no_such_module\n")
    install(tmp_path, "greedy_potential", """
        from vmdpotential import registry
        def add():
            registry.register("method", "direct", None)
        """)
    install(tmp_path, "leaving_potential", "raise SystemExit(7)\n")
    install(tmp_path, "absent_potential", """
        from vmdpotential import registry
        def add():
            registry.register("command", "absent", "no_such_module:command")
        """)
    install(tmp_path, "plain_potential", """
        from vmdpotential import registry
        def add():
            registry.register("command", "plain", print)
        """)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])

    def run(*arguments):
        return subprocess.run([sys.executable, "-m", "vmdpotential", *arguments], capture_output=True, text=True,
                              env=os.environ | {"PYTHONPATH": path})
    return run


def test_foreign_command_appears_and_runs(program):
    done = program("say", "no", "--times", "3")
    assert (done.returncode, done.stdout, done.stderr) == (0, "nonono\n", "")
    assert "Say a word again and again" in program("--help").stdout
    usage = program("say", "--help").stdout
    assert "  vmdpotential say no\n  vmdpotential say yes\n" in usage
    wrong = program("say", "no", "--times", "0")
    assert wrong.returncode == 2
    assert wrong.stderr == "vmdpotential: --times 0: must be at least 1\n"


def test_an_exception_in_a_foreign_command_names_its_package(program):
    done = program("fail", "now")
    assert done.returncode == 3
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "foreign_potential" in line
    assert "ZeroDivisionError" in line


def test_broken_plugins_are_named_and_the_rest_works(program):
    done = program("plugins")
    assert done.returncode == 0
    assert "broken plugin broken_potential (broken_potential:add): ModuleNotFoundError" in done.stdout
    assert "broken plugin greedy_potential (greedy_potential:add): UsageError: name=direct: a method" in done.stdout
    assert "broken plugin leaving_potential (leaving_potential:add): SystemExit: 7" in done.stdout
    assert "broken plugin absent (no_such_module:command): ModuleNotFoundError" in done.stdout
    assert "broken plugin plain_potential (plain_potential:add): UsageError: target: the command 'plain'" in done.stdout
    assert "largebin" in done.stdout


def test_unknown_names_list_the_known():
    with refused("method", "magic"):
        registry.get("method", "magic")
    with naming(UsageError, Words.CHOICES, "command"):
        registry.register("viewer", "x", None)
    with refused("name"):
        registry.register("engine", "cpu", None)


# summaries.py is written from what is registered
@pytest.mark.parametrize("path", sorted(set(CORE.rglob("*.py")) - {CORE / "frontend" / "summaries.py"}),
                         ids=lambda path: str(path.relative_to(CORE)))
def test_the_core_knows_no_adapter(path):
    """Adapters come through the entry point, and nothing here imports or names one."""
    source = path.read_text("utf-8")
    named = re.findall(r"vmdpotential\.plugins\.\w+", source)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            named += [alias.name for alias in node.names if f"{alias.name}.".startswith("vmdpotential.plugins.")]
        elif isinstance(node, ast.ImportFrom):
            package = ("vmdpotential", *path.relative_to(CORE).parent.parts)
            base = [*package[:len(package) + 1 - node.level]] if node.level else []
            whole = ".".join([*base, *filter(None, [node.module])])
            named += [name for name in (f"{whole}.{alias.name}." for alias in node.names)
                      if name.startswith("vmdpotential.plugins.")]
        elif isinstance(node, ast.Constant) and node.value == "vmdpotential.plugins":
            named.append(node.value)
    allowed = {"registry.py": ["vmdpotential.plugins"]}  # the name of the entry-point group
    assert named == allowed.get(str(path.relative_to(CORE)), [])


def test_our_own_command_comes_through_the_entry_point():
    code = ("from vmdpotential import registry; own = registry._entries['command']; print(own.get('view'))\n"
            "registry.available('command'); print(own['view'])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["None", "vmdpotential.plugins.web.command:command"]


def test_without_plugins_the_core_reads_and_writes_and_names_what_is_missing(tmp_path):
    (tmp_path / "a.mol2").write_text("@<TRIPOS>")
    code = """
import sys
from pathlib import Path
import numpy as np
from vmdpotential import errors, io, registry
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.io.trajectories.frames import Trajectory
registry._loaded = True  # as if there were no plugins
structure = io.read_structure(sys.argv[1], topology=sys.argv[2])
for name in ("out.pdb", "out.cif", "out.pqr", "out.gro"):
    io.write_structure(structure, f"{sys.argv[3]}/{name}")
grid = Grid(Lattice([0, 0, 0], [1, 1, 1], (2, 2, 2)), np.ones((2, 2, 2), np.float32))
for name in ("out.dx", "out.mrc", "out.npz"):
    io.write_map(grid, f"{sys.argv[3]}/{name}")
    assert io.read_map(f"{sys.argv[3]}/{name}").lattice.size == 8
for action in (lambda: io.read_topology(f"{sys.argv[3]}/a.mol2"),
               lambda: io.write_structure(structure, f"{sys.argv[3]}/out.psf"),
               lambda: io.write_map(grid, f"{sys.argv[3]}/out.cube"),
               lambda: Trajectory(Path("a.nc"), 3).numbers()):
    try:
        action()
    except errors.BackendError as error:
        print(str(error).partition("plugin ")[2].partition(",")[0])
"""
    data = CORE.parent / "data"
    done = subprocess.run([sys.executable, "-c", code, data / "dhfr.pdb.gz", data / "dhfr.psf.gz", tmp_path],
                          capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == (["forcefields", "forcefields", "formats", "formats"], "")
    assert {path.name for path in tmp_path.iterdir()} == {"a.mol2", *(f"out.{suffix}" for suffix in (
        "cif", "dx", "gro", "mrc", "npz", "pdb", "pqr"))}


def test_a_commands_structure_is_its_first_parameter():
    """Viewers take parameters in their order."""
    for name in registry.available("command"):
        later = registry.get("command", name).parameters[1:]
        assert not [p for p in later if p.name == "structure" and p.option.positional], name
