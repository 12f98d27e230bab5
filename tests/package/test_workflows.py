"""The workflows of continuous integration can be read, and call what exists."""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github").rglob("*.yml"))


def steps(workflow: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the steps of a workflow's jobs, or of an action."""
    for job in workflow.get("jobs", {}).values():
        yield from job["steps"]
    yield from workflow.get("runs", {}).get("steps", ())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_steps_call_what_exists(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text())
    needed = {name for job in workflow.get("jobs", {}).values() for name in [job.get("needs")] if name}
    assert needed <= {*workflow.get("jobs", {})}
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    for step in steps(workflow):
        assert ("run" in step) != ("uses" in step), step
        if step.get("uses", "").startswith("./"):
            assert (ROOT / step["uses"] / "action.yml").is_file()
        run = step.get("run", "")
        for script in re.findall(r"^scripts/[\w-]+", run, re.MULTILINE):
            assert os.access(ROOT / script, os.X_OK), script
        for extra in re.findall(r"\.\[(\w+)\]", run):
            assert extra in setup["options.extras_require"]
        for folder in re.findall(r"(?<![\w/])tests(?:/\w+)?", run):
            assert (ROOT / folder).is_dir(), folder


def test_wheels_are_verified_with_what_the_package_requires() -> None:
    """They are installed without requirements first, so that no other version of this package comes from an index."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    required = set(re.findall(r"^[\w-]+", setup["options"]["install_requires"], re.MULTILINE))
    verify = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]["verify"]["steps"]
    (line,) = (step["run"] for step in verify if step.get("run", "").startswith("python -m pip install numpy"))
    assert {*line.split()[4:]} == required


def test_the_oldest_versions_are_tested_with_tests_that_exist() -> None:
    part = re.search(r"^oldest\(\) \{(.*?)^\}", (ROOT / "scripts/test").read_text(), re.MULTILINE | re.DOTALL)
    assert part is not None
    patterns = re.findall(r"tests/(?:(\w+)/(\w+)|(\w+)/\w*\{([\w,]+)\}|\{([\w/,]+)\})(?:\.py)?", part[1])
    named = re.findall(r"(\w+/test_\w+)", re.sub(r"(\w+)/test_\{([\w,]+)\}", lambda m: " ".join(
        f"{m[1]}/test_{name}" for name in m[2].split(",")), part[1]))
    assert patterns
    assert len(named) > 10
    for name in named:
        assert (ROOT / "tests" / f"{name}.py").is_file(), name
