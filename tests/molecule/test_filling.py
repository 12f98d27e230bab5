"""Which cells are those of all their matter: deposited entries, stripped and solvated systems from other packages."""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import shell

import vmdpotential as vp
from vmdpotential.maps import choose_cell
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.filling import LEAST, filled_fraction
from vmdpotential.molecule.samples import water_box
from vmdpotential.molecule.selection import select

ROOT = Path(__file__).resolve().parents[2]


def wheel(package, *path):
    return Path(importlib.util.find_spec(package).origin).parent.joinpath("data", *path)


@pytest.fixture(scope="module")
def box():
    return vp.read_structure(ROOT / "data" / "dhfr.pdb.gz")


@pytest.mark.parametrize("name", [
    "1BD2.pdb.gz", "1A28", "19hc.pdb.gz", "3KPR.cif.gz", "5PTI.cif.gz", "4E43.pdb", "7ETN.cif.gz"])
def test_an_asymmetric_unit_written_as_p1_has_an_open_boundary(name, caplog):
    path = next(path for path in sorted(wheel("MDAnalysisTests").rglob("*"))
                if path.name.lower().startswith(name.lower()))
    entry = vp.read_structure(path)
    entry = replace(entry, cell=replace(entry.cell, space_group="P 1"))
    assert choose_cell(entry, "auto", "auto") is None
    assert "boundary" in caplog.text
    assert choose_cell(entry, "auto", "periodic") is entry.cell


@pytest.mark.parametrize(("package", "path"), [
    ("openmmtools", ("dna_dodecamer_explicit", "minimized_dna_dodecamer.pdb")),
    ("openmmtools", ("alanine-dipeptide-explicit", "alanine-dipeptide.pdb")),
    ("MDAnalysisTests", ("cobrotoxin.pdb",)),
    ("MDAnalysisTests", ("gromos11_traj_solv.pdb.gz",)),
])
def test_a_solvated_system_stays_periodic(package, path, caplog):
    path = wheel(package, *path)
    system = vp.read_structure(path if path.exists() else next(wheel(package).rglob(path.name)))
    assert choose_cell(system, "auto", "auto") is system.cell
    assert not caplog.records


def test_membranes_stay_periodic():
    paths = sorted(Path(importlib.util.find_spec("openmm").origin).parent.rglob("D*PC.pdb"))
    assert len(paths) > 1
    for path in paths:
        membrane = vp.read_structure(path)
        assert choose_cell(membrane, "auto", "auto") is membrane.cell


def test_a_stripped_protein_is_summed_alone(box, tmp_path, capsys):
    protein = box.take(select(box, "protein"))
    assert protein.cell is not None
    assert filled_fraction(protein)[0] < 0.3 < LEAST < 0.9 < filled_fraction(box)[0]
    vp.write_structure(protein, tmp_path / "protein.pdb")
    call = ("map", tmp_path / "protein.pdb", "--medium", "vacuum", "--spacing", 3, "--padding", 2, "--json",
            "-o", tmp_path / "m.npz", "--force")
    code, out, err = shell(capsys, *call)
    assert (code, json.loads(out)["boundary"]) == (0, "open")
    assert "--boundary periodic" in err
    code, out, err = shell(capsys, *call, "--boundary", "periodic")
    assert (code, json.loads(out)["boundary"]) == (0, "periodic")


def test_sums_at_points_and_energies_have_the_same_boundary(box, caplog):
    protein = box.take(select(box, "protein"))
    protein = replace(protein, charges=np.random.default_rng(0).normal(size=len(protein)))
    place = protein.positions.mean(0)[None] + 0.37
    alone = vp.potential_at(replace(protein, cell=None), place)
    np.testing.assert_allclose(vp.potential_at(protein, place), alone, rtol=1e-6)
    assert caplog.records
    assert abs(vp.potential_at(protein, place, boundary="periodic") - alone) > 1e-3 * abs(alone)


@pytest.mark.parametrize(("cell", "periodic"), [((25, 25, 80), True), ((80, 80, 80), False)])
def test_a_slab_of_water_is_periodic_and_a_drop_is_not(cell, periodic):
    positions, charges = water_box(25.0)
    residues = np.arange(len(charges)) // 3
    system = vp.Structure(positions, np.tile(["OH2", "H1", "H2"], len(charges) // 3), np.full(len(charges), "TIP3"),
                          residues + 1, residues, charges=charges, cell=Cell.from_parameters(*cell))
    assert (choose_cell(system, "auto", "auto") is not None) is periodic


def test_coarse_grained_water_fills_its_cell():
    """Beads of four waters each, 4.7 A apart, as in Martini."""
    places = 4.7 * np.stack(np.meshgrid(*[np.arange(8.0)] * 3), -1).reshape(-1, 3)
    places += np.random.default_rng(1).normal(size=places.shape) * 0.7
    beads = vp.Structure(places, np.full(512, "W"), np.full(512, "W"), np.arange(512), np.arange(512),
                         cell=Cell.from_parameters(37.6, 37.6, 37.6))
    assert filled_fraction(beads)[0] > LEAST
