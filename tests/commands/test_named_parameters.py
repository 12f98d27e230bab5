"""Parameters that errors name: those of the interface, function or command that was used."""

import ast
import inspect
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import vmdpotential as vp
from vmdpotential import exported, registry
from vmdpotential.errors import VmdpotentialError
from vmdpotential.frontend import cli, messages
from vmdpotential.plugins.viewers.adapters import viewer_commands
from vmdpotential.plugins.viewers.display import surface_options, vmd_options

PLACEHOLDER = re.compile(r"\{([a-z_]+)(?: [^{}]*)?\}")
PACKAGE = Path(vp.__file__).parent


def charged():
    return vp.Structure(positions=np.array([[0.0, 0, 0], [4, 0, 0]]), atom_names=["NA", "CL"],
                        residue_names=["NA", "CL"], residue_ids=np.array([1, 2]),
                        residue_index=np.array([0, 1]), elements=["Na", "Cl"], charges=[1.0, -1.0])


def bare():
    return vp.Structure(positions=np.zeros((1, 3)), atom_names=["C1"], residue_names=["QQQ"], residue_ids=np.array([1]),
                        residue_index=np.array([0]), elements=["C"])


def functions():
    return {name: getattr(vp, name) for name in vp.__all__ if inspect.isfunction(getattr(vp, name))}


def parameters_of(name):
    return set(inspect.signature(getattr(vp, name)).parameters)


REACHED = {
    "between": ("binding_energy", lambda: vp.binding_energy(charged(), "name NA", "name NA"), "second"),
    "first": ("binding_energy", lambda: vp.binding_energy(charged(), "name XX", "name NA"), "first"),
    "set": ("binding_energy", lambda: vp.binding_energy(
        charged(), "name NA", "name CL", parameters={"nonlinear": 1}), "parameters"),
    "ion_template": ("place_ions", lambda: vp.place_ions(charged(), templates={"SOD": charged()}), "templates"),
    "files": ("nonbonded", lambda: vp.nonbonded(charged()), "topology of read_structure"),
    "leave_out": ("potential_map", lambda: vp.potential_map(bare()), "leave_out of prepare"),
    "at": ("field", lambda: vp.field(charged(), at="name XX"), "at"),
    "from": ("field", lambda: vp.field(charged(), at="name NA", from_=["name XX"]), "from_"),
    "topology": ("write_structure", lambda: vp.write_structure(charged(), "x.psf"), "topology of read_structure"),
}


@pytest.mark.parametrize(("function", "call", "shown"), REACHED.values(), ids=REACHED)
def test_errors_in_python_name_parameters_of_the_function(function, call, shown, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(VmdpotentialError) as caught:
        call()
    error = caught.value
    assert shown in re.split("[:;,. =]+ ?", str(error)) or f" {shown}" in str(error)
    for name in [*PLACEHOLDER.findall(error.hint), *filter(None, [error.parameter])]:
        word, _, owner = error.spelling(name).partition(" of ")
        assert word in parameters_of(owner or function), (name, str(error))
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_exported_functions_are_those_of_their_modules():
    for name, function in functions().items():
        assert pickle.loads(pickle.dumps(function)) is function is getattr(vp, name)


def test_every_owner_has_the_parameter():
    for name, owner in exported._OWNERS.items():
        assert {name, "files" if name == "parameters" else name} & parameters_of(owner), (name, owner)
    for name, command in messages._OWNERS.items():
        assert name in {p.name for p in registry.get("command", command).parameters}, (name, command)


def test_placeholders_are_parameters_of_a_command_or_function():
    known = {name.rstrip("_") for function in functions() for name in parameters_of(function)}
    known |= {"templates", "layout", "buffer"}
    for name in registry.available("command"):
        for parameter in registry.get("command", name).parameters:
            known |= {parameter.name, *parameter.option.aliases}
    for command in viewer_commands(print):
        known |= {p.name for p in (*vmd_options(command), *surface_options(command))}
    unknown = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "").endswith(("Error", "Message")):
                plain = [part.value for argument in (*node.args, *(k.value for k in node.keywords))
                         for part in ast.walk(argument) if isinstance(part, ast.Constant)]
                unknown += [(path.name, node.lineno, name) for text in plain if isinstance(text, str)
                            for name in PLACEHOLDER.findall(text) if name not in known]
    assert not unknown


@pytest.mark.parametrize(("command", "name", "spelled"), [
    ("map", "leave_out", "--leave-out of prepare"), ("prepare", "leave_out", "--leave-out"),
    ("view", "force_field", "--force-field of prepare"), ("map", "force_field", "--force-field"),
    ("prepare", "topology", "--topology of map"), ("map", "debye", "debye")])
def test_the_shell_names_the_command_of_an_option_that_another_has(command, name, spelled):
    assert cli._spelling([command, "x.pdb"])(name, "") == spelled


def test_the_hint_of_an_unknown_ligand_names_the_shells_option(tmp_path, capsys):
    (tmp_path / "x.pdb").write_text(
        "HETATM    1 C1   QQQ A   1       0.000   0.000   0.000  1.00  0.00           C\nEND\n")
    assert cli.main(["map", str(tmp_path / "x.pdb"), "-o", str(tmp_path / "x.dx")]) == 3
    assert "--leave-out of prepare" in capsys.readouterr().err
