"""Copies by symmetry: the cell of a crystal and assemblies, in every command."""

import json
import re
from dataclasses import replace

import gemmi
import numpy as np
import pytest
from deposited import ALONG_Y, ASSEMBLY, crystal_file
from fuzz.kinds import REMARK_350
from fuzz.seeds import system
from helpers import shell
from messages import naming
from structure_files import MDA

from vmdpotential import registry
from vmdpotential.commands.options import Source, TrajectoryOptions
from vmdpotential.errors import InputError, UsageError
from vmdpotential.io import read_structure, write_structure
from vmdpotential.io.structures import symmetry
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure

CRYSTAL = MDA / "mmcif" / "1YJP.cif"


def test_the_cell_of_a_crystal():
    structure = read_structure(CRYSTAL)
    made = symmetry.crystal(structure).of_structure(structure)
    assert made.cell.space_group == "P 1"
    file = gemmi.read_structure(str(CRYSTAL))
    operators = list(gemmi.find_spacegroup_by_name(file.spacegroup_hm).operations())
    assert len(made) == len(operators) * len(structure)
    fractional = structure.positions @ np.linalg.inv(structure.cell.vectors)
    for n, operator in enumerate(operators):
        expected = np.array([operator.apply_to_xyz(place.tolist()) for place in fractional])
        actual = made.positions[n * len(structure) : (n + 1) * len(structure)] @ np.linalg.inv(structure.cell.vectors)
        shift = actual - expected
        np.testing.assert_allclose(shift, np.round(shift[0])[None].repeat(len(shift), 0), atol=1e-6)
    with naming(Exception, "no cell"):
        symmetry.crystal(replace(structure, cell=None))


def test_atoms_on_an_axis_are_there_once():
    positions = np.array([[0.0, 0.0, 3.0], [2.0, 1.0, 4.0]])  # the first on the axis of P 2 along c
    structure = Structure(positions, ["O", "O"], ["HOH", "HOH"], [1, 2], [0, 1],
                          cell=Cell.from_parameters(10, 11, 12, space_group="P 1 1 2"))
    assert len(symmetry.crystal(structure).of_structure(structure)) == 3


def test_assemblies(tmp_path):
    path = crystal_file(tmp_path / "two.cif")
    structure = read_structure(path)
    made = symmetry.assembly(structure, path, ASSEMBLY).of_structure(structure)
    assert made.cell is None
    np.testing.assert_allclose(made.positions[len(structure):] - structure.positions,
                               [[0, ALONG_Y, 0]] * len(structure), atol=1e-6)
    assert len(set(made.chain_ids.tolist())) == 2 * len(set(structure.chain_ids.tolist()))
    with pytest.raises(UsageError) as caught:
        symmetry.assembly(structure, path, "7")
    assert caught.value.parameter == "assembly"


@pytest.mark.parametrize("change", [
    lambda text: re.sub("(?m)^REMARK 350   BIOMT.*\n", "", text),  # no operators
    lambda text: text.replace("1  1.000000", "1  3.000000", 1),  # no rotation
    lambda text: text.replace("30.00000", "1e200   ", 1)])
def test_operators_that_are_none_are_refused(change, tmp_path):
    path = tmp_path / "two.pdb"
    write_structure(system(), path)
    path.write_text(change(REMARK_350 + path.read_text()))
    with naming(InputError, path.name):
        symmetry.assembly(read_structure(path), path, "1")


def test_commands_of_a_structure_take_assemblies_and_cells():
    """Those that read one by themselves: plugins of other packages may not."""
    without = set()
    for name in registry.available("command"):
        parameters = {parameter.name: parameter for parameter in registry.get("command", name).parameters}
        if "structure" in parameters and parameters["structure"].required:
            without |= {name} - ({name} if {"assembly", "expand"} <= parameters.keys() else set())
    assert not without


def test_distances_in_the_cell_of_a_crystal(tmp_path, capsys):
    words = ["--between", "name CA", "name O", "--range", "8", "--json"]
    code, _, error = shell(capsys, "rdf", CRYSTAL, *words)
    assert code == 2
    assert "--expand" in error
    assert shell(capsys, "prepare", CRYSTAL, "--expand", "cell", "--prepare", "never", "-o",
                 tmp_path / "cell.cif")[0] == 0
    assert len(read_structure(tmp_path / "cell.cif")) == 2 * len(read_structure(CRYSTAL))
    results = []
    for path, more in ((CRYSTAL, ["--expand", "cell"]), (tmp_path / "cell.cif", [])):
        code, out, _ = shell(capsys, "rdf", path, *words, *more, "-o", tmp_path / f"{len(results)}.csv")
        assert code == 0
        results.append(json.loads(out)["g"])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)


@pytest.mark.parametrize("given", [{"assembly": ASSEMBLY}, {"expand": "cell"}])
def test_frames_are_of_the_copies(given, tmp_path):
    """As if every model had been read by itself and copied."""
    path = crystal_file(tmp_path / "models.cif", models=3)
    structure, frames = Source(structure=path, **given).with_frames(TrajectoryOptions(trajectory=path))
    model = read_structure(path)
    copies = (symmetry.crystal(model) if "expand" in given else symmetry.assembly(model, path, ASSEMBLY))
    file = gemmi.read_structure(str(path))
    count = 0
    for number, frame in enumerate(frames):
        positions = np.array([atom.pos.tolist() for chain in file[number] for residue in chain for atom in residue])
        expected = copies.of_structure(replace(model, positions=positions))
        np.testing.assert_allclose(frame.positions, expected.positions, atol=1e-6)
        assert (frame.cell is None) == ("assembly" in given)
        count += 1
    assert count == 3
    assert len(structure) == len(expected) > len(model)


def test_ions_among_the_waters_of_a_whole_crystal(tmp_path, capsys):
    """A box of half of the waters, of which the other half follows by symmetry, gets ions as the whole box does."""
    rng = np.random.default_rng(5)
    water = np.array([[0.0, 0, 0], [0.9572, 0, 0], [-0.24, 0.9266, 0]])
    nodes = np.stack(np.meshgrid(*[np.arange(8) * 3.1 + 1.5] * 3, indexing="ij"), -1).reshape(-1, 3)
    half = nodes[nodes[:, 2] < 12.4]
    positions = (half[:, None] + water + 0.05 * rng.standard_normal((len(half), 1, 3))).reshape(-1, 3)
    count = len(half)
    structure = Structure(
        positions, ["OH2", "H1", "H2"] * count, ["TIP3"] * 3 * count, np.repeat(np.arange(1, count + 1), 3),
        np.repeat(np.arange(count), 3), cell=Cell.from_parameters(24.8, 24.8, 24.8, space_group="P 1 2 1"))
    path = tmp_path / "asymmetric.pdb"
    write_structure(structure, path)
    code, _, error = shell(capsys, "ionize", path, "--concentration", "0.5", "-o", tmp_path / "no.pdb")
    assert code == 2
    assert "--expand" in error
    code, out, _ = shell(capsys, "ionize", path, "--expand", "cell", "--concentration", "0.5", "-o",
                         tmp_path / "ions.pdb", "--json")
    assert code == 0
    placed = read_structure(tmp_path / "ions.pdb")
    assert json.loads(out)["waters_removed"] == np.isin(placed.residue_names, ["SOD", "CLA"]).sum() > 0
    assert len(placed) == 2 * len(structure) - 2 * json.loads(out)["waters_removed"]


def test_a_live_map_of_an_assembly_takes_the_positions_of_the_file(tmp_path):
    path = crystal_file(tmp_path / "entry.cif")
    structure = read_structure(path)
    live = registry.get("command", "live")
    made = live(structure=structure, assembly=f"{path}:{ASSEMBLY}", spacing=2.0)
    moved = made.objects["live"].update(structure.positions + np.array([0.0, 0.0, 4.0]))
    first = made.objects["grid"]
    assert made.objects["live"].atoms == len(structure)
    for place in (np.zeros(3), np.array([0.0, ALONG_Y, 0.0])):  # both copies moved
        here = structure.positions.mean(0) + place + np.array([0.0, 0.0, 8.0])
        assert np.isfinite(moved(here[None])).all()
        assert not np.isclose(moved(here[None]), first(here[None]))
