"""Commands as tools for agents, tried by the official client of the protocol."""

import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import jsonschema
import pytest
from forked_program import write_client
from helpers import shell
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from vmdpotential import registry
from vmdpotential.plugins.agents.tools import available_commands, offered_parameters, tool_of_command

PROTEIN = Path(__file__).parents[2] / "data" / "1hvr.pdb.gz"
PEPTIDE = Path(__file__).parents[1] / "data" / "amide_nhe.pdb"


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    folder.mkdir()
    shutil.copy(PEPTIDE, folder / "peptide.pdb")
    return folder


def with_client(root, talk, *options):
    """Return what `talk` returns for a client's session with a server for the folder."""
    async def session():
        server = StdioServerParameters(command=sys.executable, args=["-m", "vmdpotential", "mcp", str(root), *options],
                                       env=dict(os.environ))
        async with stdio_client(server) as streams, ClientSession(*streams) as client:
            await client.initialize()
            return await talk(client)
    return anyio.run(session)


def test_every_command_is_a_tool_but_those_that_need_somebody():
    tools = {command.name for command in available_commands()}
    assert set(registry.available("command")) - tools == {"batch", "completion", "install", "live", "mcp"}


def test_schemas_are_valid_and_take_the_defaults():
    for command in available_commands():
        tool = tool_of_command(command)
        schema = tool["inputSchema"]
        jsonschema.Draft202012Validator.check_schema(schema)
        plain = {p.name: list(p.default) if p.several else p.default for p in offered_parameters(command)
                 if not p.required and isinstance(p.default, (bool, int, float, str)) and not p.option.parse
                 and p.default != ""}
        required = {name: ["x"] if schema["properties"][name]["type"] == "array" else "x" for name in schema["required"]
                    if "enum" not in schema["properties"][name]}
        if required.keys() == set(schema["required"]):
            jsonschema.validate(plain | required, schema)
        assert not any("description" not in each for each in schema["properties"].values())


def test_a_session(root, capsys):
    """The data are those of the shell, the picture is the file, and what is wrong is told as an error of the call.

    So is a file larger than the limit.
    """
    async def talk(client):
        tools = (await client.list_tools()).tools
        lines = []

        async def progress(*report):
            lines.append(report)

        surface = await client.call_tool("surface", {"structure": "peptide.pdb", "figure": "surface.png"},
                                         progress_callback=progress)
        wrong = await client.call_tool("map", {"structure": "peptide.pdb", "spacing": -1, "output": "map.dx"})
        unknown = await client.call_tool("no such tool", {})
        large = await client.call_tool("map", {"structure": "peptide.pdb", "spacing": 0.2, "output": "map.dx"})
        return tools, surface, wrong, unknown, large

    tools, surface, wrong, unknown, large = with_client(root, talk, "--file-size", "0.005")
    assert {tool.name for tool in tools} == {command.name for command in available_commands()}
    assert not surface.is_error
    text, picture = surface.content
    assert base64.b64decode(picture.data) == (root / "surface.png").read_bytes()
    done, expected, _ = shell(capsys, "surface", PEPTIDE, "--json")
    assert done == 0
    of_shell = json.loads(expected)
    assert surface.structured_content["mean"] == pytest.approx(of_shell["mean"], rel=1e-6)
    assert text.text.splitlines()[0] == of_shell["report"][0]
    assert wrong.is_error
    assert (wrong.structured_content["parameter"], wrong.structured_content["code"]) == ("spacing", 2)
    assert unknown.is_error
    assert large.is_error
    assert large.structured_content["code"] == 3
    assert sorted(path.name for path in root.iterdir()) == ["peptide.pdb", "surface.png"]


@pytest.mark.parametrize(("values", "parameter"), [
    ({"structure": "/etc/passwd"}, "structure"),
    ({"structure": "../outside.pdb"}, "structure"),
    ({"structure": "link.pdb"}, "structure"),
    ({"structure": "peptide.pdb", "output": "../map.dx"}, "output"),
    ({"structure": "peptide.pdb", "output": "link/map.dx"}, "output"),
    ({"structure": "peptide.pdb", "charges": ["peptide.pdb", "/etc/passwd"]}, "charges"),
    ({"structure": "peptide.pdb", "output": "-"}, "output"),
    ({"structure": "peptide.pdb", "topology": "including.top"}, ""),  # which is seen when the file is opened
])
def test_nothing_outside_of_the_root_folder_is_read_or_written(root, values, parameter, forks):
    outside = root.parent / "outside"
    outside.mkdir()
    shutil.copy(PEPTIDE, root.parent / "outside.pdb")
    (root / "link.pdb").symlink_to(root.parent / "outside.pdb")
    (root / "link").symlink_to(outside)
    (root / "including.top").write_text('#include "../outside.pdb"\n')
    call = {"root": str(root), "command": "map", "values": values, "file_size": 10**9}
    code = "import sys; from vmdpotential.plugins.agents.confined import main; sys.exit(main())"
    done = subprocess.run([write_client(root.parent / "python", forks), "-c", code], input=json.dumps(call),
                          capture_output=True, text=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == answer["code"] == 2
    assert answer["parameter"] == parameter
    assert not list(outside.iterdir())
    assert "Traceback" not in done.stderr


def test_a_call_is_stopped_after_the_limit_and_leaves_nothing(root):
    shutil.copy(PROTEIN, root)
    async def talk(client):
        return await client.call_tool("map", {"structure": PROTEIN.name, "spacing": 0.15, "output": "map.dx"})
    answer = with_client(root, talk, "--seconds", "1")
    assert answer.is_error
    assert answer.structured_content["code"] == 3
    assert sorted(path.name for path in root.iterdir()) == [PROTEIN.name, "peptide.pdb"]


def test_a_call_that_the_client_cancels_is_ended(root):
    shutil.copy(PROTEIN, root)
    async def talk(client):
        with anyio.move_on_after(1.5):
            await client.call_tool("map", {"structure": PROTEIN.name, "spacing": 0.15, "output": "map.dx"})
        with anyio.fail_after(60):  # it waits for the one before, which would take far longer
            return await client.call_tool("devices", {})
    assert not with_client(root, talk).is_error
    assert not (root / "map.dx").exists()


@pytest.mark.parametrize("count", [pytest.param(25, marks=pytest.mark.slow),
                                   pytest.param(1000, marks=pytest.mark.nightly)])
def test_random_calls_stay_in_the_root_folder(count):
    done = subprocess.run([sys.executable, "-m", "fuzz", "--tools", str(count), "--seed", "3"],
                          cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
