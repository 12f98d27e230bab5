"""Profiles along an axis: closed forms, a bilayer by mesh and by atoms, cells that breathe and drift, the command."""

import csv
import json
from functools import cache
from pathlib import Path

import MDAnalysis
import numpy as np
import openmm
import pytest
from helpers import charges_at, refused, relative_rms, shell, water

import vmdpotential as vp
from vmdpotential.errors import InputError, UsageError
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.io.trajectories.frames import Trajectory
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.charges import charges_and_report
from vmdpotential.molecule.selection import select
from vmdpotential.plugins.fields.profile import profile, profile_of_map
from vmdpotential.plugins.fields.profile_command import command as profile_
from vmdpotential.plugins.fields.waves import middle, waves
from vmdpotential.units import coulomb_constant

C = coulomb_constant("V")
POPC = Path(openmm.__file__).parent / "app" / "data" / "POPC.pdb"
#: A cell whose a and b lie in the xy plane and whose c does not are on it.
SLANTED = Cell(np.array([[20.0, 0, 0], [4.0, 18.0, 0], [3.0, 5.0, 40.0]]))


def layer(z, charge, edge=24.0, count=8):
    """Return positions and charges of a square layer of ions, as many e in all."""
    xy = (np.stack(np.meshgrid(np.arange(count), np.arange(count)), -1).reshape(-1, 2) + 0.5) * edge / count
    return np.column_stack([xy, np.full(count**2, z)]), np.full(count**2, charge / count**2)


def layers(*of, length=60.0, edge=24.0):
    """Return a structure of layers (z, charge)."""
    made = [layer(z, charge, edge) for z, charge in of]
    return charges_at(np.concatenate([p for p, _ in made]), np.concatenate([q for _, q in made]),
                      Cell.from_parameters(edge, edge, length))


def at(profile, quantity, z):
    """Return a quantity of the total at places, between the nodes."""
    x = np.append(profile.z, 2 * profile.z[-1] - profile.z[-2])
    return np.interp(z, x, np.append(profile.values[0, quantity], profile.values[0, quantity, 0]))


def write(path, frames):
    """Write frames (positions, cell) as a DCD."""
    with MDAnalysis.Writer(str(path), len(frames[0][0])) as writer:
        universe = MDAnalysis.Universe.empty(len(frames[0][0]), trajectory=True)
        for positions, cell in frames:
            universe.atoms.positions = positions
            universe.dimensions = cell.parameters
            writer.write(universe.atoms)
    return Trajectory(path, len(frames[0][0]))


def test_a_dipole_layer_makes_a_known_jump():
    result = profile(layers((31.0, 5.0), (29.0, -5.0)), spacing=0.1, smear=0.2)
    surface = 5.0 * 2 / 24**2  # e/A: dipole of an area
    jump = 4 * np.pi * C * surface
    # a period takes it back by a field that is the same everywhere outside
    np.testing.assert_allclose(at(result, 1, [5.0, 20, 40, 55]), jump / 60, rtol=1e-6)
    assert at(result, 2, 36) - at(result, 2, 24) == pytest.approx(jump * (1 - 12 / 60), rel=1e-6)
    assert abs(result.values[0].mean(1)).max() < 1e-12 * abs(result.values).max()
    # the double integral has no field at the edges, and keeps the jump
    assert result.integral[0] == 0
    assert result.integral[-1] == pytest.approx(jump, rel=1e-6)
    # the field inside is that of a capacitor
    assert at(result, 1, 30.0) == pytest.approx(-4 * np.pi * C * 5 / 24**2 + jump / 60, rel=1e-5)


@pytest.mark.parametrize("extra", [0.0, 0.01])
def test_the_double_integral_is_that_of_the_point_charges(extra):
    """By its definition, whatever the nodes and the width of charges are: a sum over the charges to the left."""
    box = water(20.0)
    charges = box.charges + extra
    made = charges_at(box.positions, charges, Cell.from_parameters(20, 20, 20))
    for options in ({"spacing": 0.05, "smear": 0.0}, {"spacing": 0.5}, {"spacing": 0.5, "smear": 3.0}):
        actual = profile(made, **options)
        edges = np.append(actual.z, actual.z[0] + 20)
        place = (box.positions[:, 2] - actual.z[0]) % 20 + actual.z[0]
        expected = [-4 * np.pi * C / 400 * (charges * np.maximum(z - place, 0)).sum() for z in edges]
        np.testing.assert_allclose(actual.integral, expected, atol=1e-9 * np.abs(expected).max())
    assert abs(actual.integral[-1]) > 0.5  # what it makes of a cell that is cut through molecules


def test_the_slab_correction_leaves_no_field_in_the_vacuum():
    plates = layers((20.0, 5.0), (40.0, -5.0))
    left = {"left": plates.charges > 0, "right": plates.charges < 0}
    tinfoil, fixed = (profile(plates, spacing=0.1, smear=0.2, slab_correction=corrected, sources=left)
                      for corrected in (False, True))
    np.testing.assert_allclose(fixed.values[0], fixed.values[1:].sum(0), atol=1e-9)
    inside = 4 * np.pi * C * 5 / 24**2  # of a capacitor
    np.testing.assert_allclose(at(tinfoil, 1, [5.0, 55.0]), -inside / 3, rtol=1e-6)
    assert tinfoil.artificial == pytest.approx(-inside / 3, rel=1e-6)
    np.testing.assert_allclose(at(fixed, 1, [5.0, 12.0, 50.0]), 0, atol=1e-9)
    assert at(fixed, 1, 30.0) == pytest.approx(inside, rel=1e-6)
    assert at(fixed, 2, 15.0) - at(fixed, 2, 45.0) == pytest.approx(inside * 20, rel=1e-6)
    np.testing.assert_allclose(at(fixed, 2, [3.0, 8.0, 16.0]), at(fixed, 2, 5.0), atol=1e-9)
    assert fixed.values[0, 2].mean() == pytest.approx(0, abs=1e-9)


def test_the_double_integral_of_a_slab_is_its_corrected_potential():
    result = profile_(structure=layers((20.0, 5.0), (40.0, -5.0)), spacing=0.1, smear=0.0, slab_correction=True,
                      integral=True)
    corrected = result.profile.values[0, 2]
    places = np.array([80, 160, 250, 350, 450, 590])
    drop = result.integral[places] - result.integral[3]  # at the edge, the corrected one has both values of the vacuum
    assert drop == pytest.approx(corrected[places] - corrected[3], abs=2e-3 * np.ptp(corrected))


def test_what_the_slab_correction_refuses():
    box = water(20.0)
    for made in (charges_at(box.positions, box.charges, Cell.from_parameters(20, 20, 20)),
                 charges_at(box.positions, box.charges + 0.01, Cell.from_parameters(20, 20, 60))):
        with pytest.raises(UsageError) as raised:
            profile(made, slab_correction=True)
        assert raised.value.parameter == "slab_correction"


@cache
def bilayer():
    return charges_and_report(vp.read_structure(POPC), "charmm36", "auto")[0]


@cache
def bilayer_map():
    return vp.potential_map(bilayer(), interaction="gaussian", parameters={"smear": 1.5}, spacing=1.5, unit="kT/e")


@pytest.mark.slow
def test_a_bilayer_by_mesh_and_by_atoms():
    structure = bilayer()
    grid = bilayer_map()
    of_map = profile_of_map(grid, zero="left")
    result = profile(structure, spacing=float(grid.lattice.spacing[2]), smear=1.5, zero="left",
                    sources={"lipid": select(structure, "lipid"), "water": select(structure, "water")})
    np.testing.assert_allclose(of_map.z, result.z, atol=1e-5)
    assert list(result.names) == ["total", "lipid", "water"]
    for quantity, error in ((1, 1e-2), (2, 4e-3)):
        assert relative_rms(of_map.values[0, quantity], result.values[0, quantity]) < error
    # each contribution has ten times the size of what is left of them
    assert abs(result.values[1, 2] - result.values[1, 2].mean()).max() > 5 * np.ptp(result.values[0, 2]) / 2
    np.testing.assert_allclose(result.values[0], result.values[1:].sum(0), atol=1e-9)
    whole = profile(structure, smear=1.5)
    assert abs(whole.values[0].mean(1)).max() < 1e-12  # nothing is left over a period
    assert abs(result.integral[-1]) > 0.5  # V, where the potential is what it was


def test_zero_over_a_region_and_the_middle_of_a_layer():
    structure = bilayer()
    lipid, waters = select(structure, "lipid"), select(structure, "water")
    plain, centred = profile(structure, zero=waters), profile(structure, center=lipid, zero=waters)
    assert plain.zero == "region"
    assert centred.z[0] == pytest.approx(-centred.period / 2)
    # the density of the waters weighs the potential
    weight = np.histogram(structure.positions[waters, 2] % 73.136, 147, (0, 73.136))[0].astype(float)
    between = (plain.values[0, 2] + np.roll(plain.values[0, 2], -1)) / 2
    assert weight @ between / weight.sum() == pytest.approx(0, abs=2e-3)
    shift = np.interp(np.arange(147) / 147 * 73.136 - 36.568 + middle(
        structure.positions[lipid, 2] / 73.136) * 73.136, plain.z, plain.values[0, 2], period=73.136)
    assert relative_rms(shift, centred.values[0, 2]) < 0.05
    with refused("center"):
        middle(np.arange(50) / 50)
    # the mean of the places themselves, and not of their angles; of the image where most are
    for shift in (0.0, 0.7):
        assert (middle(np.array([0.0, 0.1, 0.1, 0.45]) + shift) - 0.1625 - shift + 0.5) % 1 == pytest.approx(0.5)
    assert middle(np.append(np.arange(50) / 50, np.full(25, 0.25))) == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("cell", [Cell.from_parameters(20, 20, 40), SLANTED])
def test_drift_and_breathing_change_nothing_of_what_is_centred(tmp_path, cell):
    rng = np.random.default_rng(4)
    fraction = rng.random((300, 3)) * [1, 1, 0.5]
    charges = rng.normal(size=300)
    charges -= charges.mean()
    made = []
    for n in range(8):
        breath = 1 + 0.01 * np.sin(n)
        vectors = cell.vectors * breath
        made.append(((fraction + np.array([0.1 * n, 0, 0.23 * n])) @ vectors, Cell(vectors)))
    structure = charges_at(made[0][0], charges, cell)
    group = np.arange(300) < 200
    result = profile(structure, write(tmp_path / "frames.dcd", made), center=group)
    assert result.frames == 8
    assert result.blocks == 8
    lengths = [40 * (1 + 0.01 * np.sin(n)) for n in range(8)]
    assert result.period == pytest.approx(np.mean(lengths), rel=1e-5)
    assert result.deviation == pytest.approx(np.std(lengths), rel=1e-3)
    reference = profile(charges_at(fraction @ cell.vectors, charges, cell), center=group)
    assert result.errors is None  # of eight frames
    # densities go with 1/volume, potentials with 1/length of the cell: 1 % of breath
    assert relative_rms(result.values[0, 2], reference.values[0, 2]) < 0.02
    blurred = profile(structure, Trajectory(tmp_path / "frames.dcd", 300))
    assert relative_rms(blurred.values[0, 2], reference.values[0, 2]) > 0.3


def test_what_cannot_be_done():
    slanted = Cell(np.array([[20.0, 20, 0], [20, 0, 20], [0, 20, 20]]))
    with refused("axis", "x"):
        profile(charges_at(np.zeros((1, 3)), [1.0], slanted), axis=0)
    with refused("axis", "x"):
        profile(charges_at(np.zeros((1, 3)), [1.0], SLANTED), axis=0)
    with pytest.raises(InputError):
        profile(charges_at(np.zeros((1, 3)), [1.0]))
    with refused("spacing", "20"):
        profile(charges_at(np.zeros((1, 3)), [1.0], SLANTED), spacing=20.0)
    grid = Grid(Lattice((0, 0, 0), 1.0, (4, 4, 4)), np.zeros((4, 4, 4)))
    with pytest.raises(InputError):
        profile_of_map(grid)


def test_the_command(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = shell(capsys, "profile", POPC, "--from", "lipid", "water", "--center", "lipid", "--zero", "water",
                           "--integral", "-o", "a.csv", "--figure", "a.svg", "--json")
    assert code == 0, err
    data = json.loads(out)
    assert data["names"] == ["total", "lipid", "water"]
    with open("a.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(data["z"]) == 147
    assert float(rows[3]["potential of lipid (V)"]) == pytest.approx(data["potential"][1][3], abs=1e-6)
    assert float(rows[-1]["potential by double integral (V)"]) == pytest.approx(data["integral"][-2], abs=1e-5)
    assert "Charge density" in Path("a.svg").read_text()
    grid = bilayer_map()
    vp.write_map(grid, "map.npz")
    code, out, err = shell(capsys, "profile", "map.npz", "--json")
    assert code == 0, err
    assert len(json.loads(out)["z"]) == grid.lattice.shape[2]
    for words, message in ((("map.npz", "--center", "lipid"), "--center: this option is for a structure"),
                           ((POPC, "--frames", "1:"), "--frames: a trajectory is needed"),
                           ((POPC, "--from", "(XYZ)"), "--from '(XYZ)': selects no atoms")):
        code, _, err = shell(capsys, "profile", *words)
        assert code == 2
        assert message in err


def test_a_parameter_may_be_a_word_of_python():
    command = vp.registry.get("command", "profile")
    assert "from" in [parameter.name for parameter in command.parameters]
    structure = layers((31.0, 5.0), (29.0, -5.0))
    for name in ("from", "from_"):
        assert command(structure=structure, **{name: ["all"]}).data["names"] == ["total", "all"]


def test_sums_over_waves_are_the_definition():
    rng = np.random.default_rng(1)
    fraction, charges = rng.uniform(-2, 3, 500), rng.normal(size=500)
    fraction[:3] = -1e-18, 1.0, 0.5
    for count in (1, 7, 90):
        expected = np.exp(-2j * np.pi * np.outer(np.arange(count + 1), fraction)) @ charges
        np.testing.assert_allclose(waves(fraction, charges, count), expected, rtol=0, atol=1e-6)
