"""Gaussian charges: maps against exact sums and closed forms, means over frames, other cells, the command."""

import json
import pickle

import ewald
import numpy as np
import pytest
from helpers import charges_at, refused, relative_rms, slow
from messages import naming
from scipy.special import erf

from vmdpotential import maps, registry
from vmdpotential.commands.map import command
from vmdpotential.engines import get_engine
from vmdpotential.errors import InputError, MemoryPlanError, TaskError
from vmdpotential.frontend.cli import main
from vmdpotential.grid.lattice import Lattice
from vmdpotential.io import read_map
from vmdpotential.molecule.cell import Cell
from vmdpotential.sums import ChargeStatistics, Request, accuracy
from vmdpotential.units import coulomb_constant

CELLS = {"orthorhombic": Cell.from_parameters(13, 15, 14), "triclinic": Cell.from_parameters(14, 13, 15, 75, 82, 105),
         "open": None}
LATTICE = Lattice(np.array([-1.0, 2.0, 0.3]), np.array([1.1, 0.9, 1.3]), (7, 9, 8))
RNG = np.random.default_rng(12)
POSITIONS, CHARGES = RNG.uniform(0, 13, (60, 3)), RNG.normal(size=60) + 0.05


def plan_of(engine, lattice, positions, charges, cell, smear, field=True, tolerance=1e-4):
    """Return a plan that keeps the tolerance, and what it gives; of points where `smear` is 0."""
    expected = maps.SumOptions(method="pme", smear=smear)
    request = Request(lattice, cell, maps.bind_interaction(expected, cell),
                      ChargeStatistics.of(positions, charges, cell),
                      field=field,
                      tolerance=tolerance)
    method, request, exact = maps.choose_method(expected, request, positions, charges, engine)
    return accuracy.run_to_tolerance(method, request, positions, charges, exact, engine)[:2]


def stacked(result):
    return np.stack([result.values(), *(() if result.field() is None else result.field())])


def exact(lattice, positions, charges, cell, smear):
    """Return the maps (4, nx, ny, nz) by their definition."""
    points = lattice.points()
    if cell is not None:
        return ewald.gaussian(points, positions, charges, cell.vectors, smear).reshape(4, *lattice.shape)
    d = points[:, None] - positions
    r = np.linalg.norm(d, axis=-1)
    x = r / (np.sqrt(2) * smear)
    pull = (erf(x) - 2 / np.sqrt(np.pi) * x * np.exp(-x * x)) / r**3
    return np.concatenate([[(erf(x) / r) @ charges], np.einsum("pn,pnd,n->dp", pull, d, charges)]).reshape(
        4, *lattice.shape)


def assert_close(values, reference, tolerance):
    for part, expected in ((values[0], reference[0]), (values[1:], reference[1:])):
        assert relative_rms(part, expected) < tolerance


@pytest.mark.parametrize("smear", slow([1.4, 2.83], [1.4]))
@pytest.mark.parametrize("name", CELLS)
def test_maps_are_ewald_sums_of_gaussians(engine, name, smear):
    cell = CELLS[name]
    plan, result = plan_of(engine, LATTICE, POSITIONS, CHARGES, cell, smear)
    assert plan.work.pairs is None
    assert "no pairs" in str(plan)
    expected = exact(LATTICE, POSITIONS, CHARGES, cell, smear)
    assert_close(stacked(result), expected, 1e-4)
    assert plan.error < 1e-4 * np.sqrt(np.mean(expected[0] ** 2))


def test_direct_sums_gaussians_exactly(engine):
    grid = maps.potential_map(charges_at(POSITIONS, CHARGES), method="direct", smear=2.0, lattice=LATTICE, field=True,
                              unit="V", engine=engine.name)
    result = np.stack([grid.values, *(part.values for part in grid.field)]) / coulomb_constant("V")
    assert_close(result, exact(LATTICE, POSITIONS, CHARGES, None, 2.0), 2e-6)


@pytest.mark.parametrize(("name", "smear", "field"), [
    ("triclinic", 1.5, True), ("open", 2.0, True), ("orthorhombic", 0.0, True), ("open", 0.0, False)])
def test_the_mean_is_that_of_maps(engine, name, smear, field):
    plan, _ = plan_of(engine, LATTICE, POSITIONS, CHARGES, CELLS[name], smear, field, 1e-3)
    mean = pickle.loads(pickle.dumps(plan)).new_mean()
    with pytest.raises(InputError):
        mean.result()
    total = 0.0
    for count in range(1, 4):
        order = np.roll(np.arange(60), 7 * count)  # within the box of an open boundary
        mean.add(POSITIONS[order], CHARGES)
        total = total + stacked(plan.run(POSITIONS[order], CHARGES)).astype(float)
        assert mean.count == count
    assert_close(np.concatenate([stacked(mean.result())] * 2), np.concatenate([total / 3] * 2), 2e-6)
    mean.add(np.zeros((0, 3)), np.zeros(0))
    assert_close(np.concatenate([stacked(mean.result())] * 2), np.concatenate([total / 4] * 2), 2e-6)


@pytest.mark.parametrize("method", ["direct", "cutoff", "msm"])
def test_means_without_a_mesh_are_those_of_maps(method):
    request = Request(LATTICE, None, maps.bind_interaction(maps.SumOptions(method=method), None),
                      ChargeStatistics.of(POSITIONS, CHARGES), error=0.1)
    plan = registry.get("method", method).plan(request, get_engine("cpu"))
    mean = plan.new_mean()
    for share in (1.0, 2.0):
        mean.add(POSITIONS, share * CHARGES)
    assert relative_rms(mean.result().values(), 1.5 * plan.run(POSITIONS, CHARGES).values()) < 1e-6


@pytest.mark.parametrize("name", slow(["triclinic", "orthorhombic"], ["orthorhombic"]))
def test_a_plan_in_another_cell_is_as_good_there(engine, name):
    cell, by = CELLS[name], np.array([1.02, 0.99, 1.01])
    plan, _ = plan_of(engine, LATTICE, POSITIONS, CHARGES, cell, 1.5, tolerance=1e-3)
    other = Cell(cell.vectors * by)
    moved = plan.in_cell(other)
    np.testing.assert_allclose(moved.work.lattice.points() @ np.linalg.inv(other.vectors),
                               LATTICE.points() @ np.linalg.inv(cell.vectors), atol=1e-12)
    assert moved.work.smooth.shape == plan.work.smooth.shape
    result = stacked(moved.run(POSITIONS * by, CHARGES))
    assert_close(result, exact(moved.work.lattice, POSITIONS * by, CHARGES, other, 1.5), 1e-3)
    assert moved.in_cell(cell).work.lattice.origin == pytest.approx(LATTICE.origin)


def test_cells_that_a_plan_cannot_go_to_are_refused():
    cell, engine = CELLS["triclinic"], get_engine("cpu")
    plan, _ = plan_of(engine, LATTICE, POSITIONS, CHARGES, cell, 2.0, False, 1e-2)
    for other in (Cell.from_parameters(14, 13, 15, 75, 82, 104), Cell(cell.vectors @ np.diag([-1.0, 1, 1]))):
        with refused("cell"):
            plan.in_cell(other)
    with refused("cell"):
        plan_of(engine, LATTICE, POSITIONS, CHARGES, None, 2.0, False, 1e-2)[0].in_cell(cell)
    request = Request(LATTICE, cell, maps.bind_interaction(maps.SumOptions(), cell),
                      ChargeStatistics.of(POSITIONS, CHARGES, cell), error=0.1)
    with pytest.raises(TaskError):
        registry.get("method", "msm").plan(request, engine).in_cell(cell)
    with pytest.raises(TaskError):
        registry.get("method", "ewald").plan(request, engine).in_cell(cell)


def test_a_charged_gaussian_sheet():
    """Its potential is Poisson's equation's along z, with a background; charges are too near to be seen singly."""
    smear, length, per_side = 2.0, 30.0, 12
    xy = np.stack(np.meshgrid(*[np.arange(per_side) * 1.0] * 2, indexing="ij"), -1).reshape(-1, 2)
    positions = np.column_stack([xy, np.full(len(xy), 4.0)])
    cell = Cell.from_parameters(per_side, per_side, length)
    lattice = Lattice(np.array([0.3, 0.2, 0.0]), np.array([5.1, 3.3, 1.0]), (2, 3, 30))
    result = plan_of(get_engine("cpu"), lattice, positions, np.full(len(xy), 0.01), cell, smear, tolerance=1e-5)[1]
    z = np.abs((lattice.axes()[2] - 4 + length / 2) % length - length / 2)
    flat = z * erf(z / (np.sqrt(2) * smear)) + smear * np.sqrt(2 / np.pi) * np.exp(-z * z / (2 * smear**2))
    expected = 2 * np.pi * 0.01 * ((z * z + smear**2) / length - flat + length / 6)
    assert relative_rms(result.values(), np.broadcast_to(expected, lattice.shape)) < 1e-5
    assert np.abs(result.field()[:2]).max() < 1e-4 * np.abs(result.field()[2]).max()


def test_gaussians_too_narrow_for_a_mesh_are_refused_with_a_hint(monkeypatch):
    structure = charges_at(POSITIONS, CHARGES, Cell.from_parameters(40, 40, 40))
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "40M")
    with naming(MemoryPlanError, "smear"):
        maps.potential_map(structure, smear=0.2, spacing=4, engine="cpu", tolerance=1e-3, method="pme")
    # where each atom may be summed, that is done
    grid = maps.potential_map(structure, smear=0.2, spacing=4, engine="cpu", boundary="open")
    assert grid.provenance.method == "direct"


def test_smear_is_of_one_interaction():
    structure = charges_at(POSITIONS, CHARGES, CELLS["triclinic"])
    with refused("smear", "1"):
        maps.potential_map(structure, smear=1.0, interaction="screened_coulomb")
    with refused("smear", "1"):
        maps.potential_map(structure, smear=1.0, method="msm")


@pytest.fixture
def peptide(tmp_path):
    """A PQR file of a few charges in a cell, and the same as models of a PDB file with other positions."""
    pqr, frames = tmp_path / "salt.pqr", tmp_path / "frames.pdb"
    cryst = "CRYST1   13.000   15.000   14.000  90.00  90.00  90.00 P 1           1\n"

    def line(n, x, y, z, end):
        return f"ATOM  {n:5d}  C   MOL A{n:4d}    {x:8.3f}{y:8.3f}{z:8.3f}{end}\n"

    def model(shift):
        return "".join(line(n + 1, *(POSITIONS[n] + shift), "  1.00  0.00           C") for n in range(8))

    atoms = [line(n + 1, *POSITIONS[n], f" {1 - 2 * (n % 2):7.3f} 1.500") for n in range(8)]
    pqr.write_text(cryst + "".join(atoms) + "END\n")
    frames.write_text(cryst + "".join(f"MODEL     {n + 1:4d}\n{model(n)}ENDMDL\n" for n in range(3)) + "END\n")
    return pqr, frames


def test_the_command_takes_a_width_or_an_ewald_factor(peptide, tmp_path, capsys):
    pqr, _ = peptide
    made = []
    for text in ("2.8284271", "0.25/A", "2.8284271/A"):
        assert main(["map", str(pqr), "--smear", text, "--json", "-o", str(tmp_path / f"{len(made)}.dx")]) == 0
        made.append(json.loads(capsys.readouterr().out))
    assert [member["smear"] for member in made] == pytest.approx([2.8284271, 2.8284271, 0.25], rel=1e-7)
    assert {item["method"] for item in made} == {"pme"}
    grids = [read_map(entry["file"]) for entry in made]
    assert [grid.provenance.interaction for grid in grids] == [
        "gaussian (smear 2.82843 A)", "gaussian (smear 2.82843 A)", "gaussian (smear 0.25 A)"]
    np.testing.assert_allclose(grids[0].values, grids[1].values, atol=1e-4)
    report = command(structure=charges_at(POSITIONS, CHARGES, CELLS["triclinic"]), smear=2.83)
    assert "charges are Gaussians of 2.83 A, an Ewald factor of 0.2499/A" in report.lines
    for text in ("0/A", "-1", "1/nm", "wide", "nan", "1/"):
        assert main(["map", str(pqr), f"--smear={text}", "-o", str(tmp_path / "no.dx")]) == 2
        assert "--smear" in capsys.readouterr().err


def test_a_frame_is_summed_on_the_lattice_of_another_map(peptide, tmp_path, capsys):
    pytest.importorskip("MDAnalysis", reason="trajectories need MDAnalysis")
    pqr, frames = peptide
    first, second, third = tmp_path / "first.npz", tmp_path / "second.dx", tmp_path / "third.npz"
    common = ["map", str(pqr), "--trajectory", str(frames), "--spacing", "1", "--smear", "2"]
    assert main([*common, "-o", str(first)]) == 0
    assert main([*common, "--frame", "2", "--like", str(first), "-o", str(second)]) == 0
    assert main([*common, "--frame", "-1", "--like", str(second), "-o", str(third)]) == 0
    capsys.readouterr()
    grids = [read_map(path) for path in (first, second, third)]
    for grid in grids[1:]:
        np.testing.assert_allclose(grid.lattice.points(), grids[0].lattice.points(), atol=1e-5)
        # all atoms are 2 A farther along x, y and z
        np.testing.assert_allclose(grid.values, np.roll(grids[0].values, (2, 2, 2), (0, 1, 2)), atol=2e-3)
    assert [grid.provenance.state for grid in grids] == ["frame 0", "frame 2", "frame 2"]
    assert grids[2].provenance.inputs == ("salt.pqr", "frames.pdb frame 2")
    assert main([*common, "--frame", "3", "-o", str(tmp_path / "no.npz")]) == 2
    assert "has 3 frames" in capsys.readouterr().err
