"""The tutorials, whose blocks are run in the order shown and leave their pictures for scripts/docs; the reference."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from forked_program import write_client
from pictures import assert_drawn

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted((ROOT / "scripts" / "tutorials").glob("*.md"))
RECIPES = ROOT / "scripts" / "tutorials" / "python.md"


def blocks(path, languages="sh|python"):
    return re.findall(rf"^```({languages})\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


#: The tutorials with commands for a viewer are run by that viewer's tests.
RUN_HERE = [path for path in DOCUMENTS if not blocks(path, "pymol|tcl|chimerax")]


@pytest.mark.slow
@pytest.mark.parametrize("path", RUN_HERE, ids=lambda path: path.stem)
def test_blocks_run_in_the_order_shown(path, tmp_path, forks):
    (tmp_path / "data").symlink_to(ROOT / "data")
    (tmp_path / "bin").mkdir()
    program = write_client(tmp_path / "bin" / "vmdpotential", forks)
    (tmp_path / "bin" / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / "bin" / "python").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "MPLBACKEND": "agg",
                   "CHECK_FIGURES": "1"}
    for language, block in blocks(path):
        command = [program, "-c"] if language == "python" else ["bash", "-euo", "pipefail", "-c"]
        done = subprocess.run([*command, block], cwd=tmp_path, env=environment, capture_output=True, text=True,
                              timeout=300)
        assert done.returncode == 0, f"{block}\n{done.stderr}"
        assert "warning" not in done.stderr.lower(), f"{block}\n{done.stderr}"
    pictures = list(tmp_path.glob("*.png"))
    assert pictures
    for picture in pictures:
        assert_drawn(picture)
        left = ROOT / "build" / "examples" / path.stem  # ignored by git, and where scripts/docs looks for pictures
        left.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(picture, left / picture.name)


def test_every_tutorial_shows_something_to_run():
    viewers = {language for path in DOCUMENTS for language, _ in blocks(path, "pymol|tcl|chimerax")}
    assert viewers == {"pymol", "tcl", "chimerax"}
    for path in DOCUMENTS:
        assert bool(blocks(path)) == (path in RUN_HERE)


def test_scripts_have_at_most_ten_lines():
    scripts = [block for _, block in blocks(RECIPES, "python")]
    assert len(scripts) >= 5
    for script in scripts:
        assert len([line for line in script.splitlines() if line.strip()]) <= 10, script


def test_links_and_pictures_exist():
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path}: {target}"


def test_the_reference_by_task_lists_every_command_name_and_example():
    script = f"import runpy; runpy.run_path({str(ROOT / 'scripts' / 'site' / 'pages.py')!r})['check_tasks']()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
