"""Every command that takes atoms or maps is in every viewer, from its start."""

import re
import tomllib
from pathlib import Path

import pytest

from vmdpotential.plugins.viewers.adapters import viewer_commands
from vmdpotential.plugins.viewers.vmd import command_declarations

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"


@pytest.fixture(scope="module")
def summaries():
    return {command.name: command.summary for command in viewer_commands(pytest.fail)}


def test_chimerax_declares_every_command_with_its_summary(summaries):
    """ChimeraX knows a command before the package is imported only by this list."""
    declared = tomllib.loads((PLUGINS / "chimerax" / "pyproject.toml").read_text())
    declared = declared["tool"]["chimerax"]["command"]
    assert declared.keys() == {f"potential {name}" for name in summaries}
    anchors = re.findall(r'<h2 id="(\w+)">potential',
                         (PLUGINS / "chimerax/src/docs/user/commands/potential.html").read_text())
    assert set(anchors) == set(summaries)


def test_vmd_has_every_command(summaries):
    assert {name: command["summary"] for name, command in command_declarations()["commands"].items()} == summaries
