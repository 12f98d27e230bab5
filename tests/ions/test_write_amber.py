"""Amber's files of ionized systems: ParmEd and OpenMM read them, with every term of what was there before."""

from __future__ import annotations

import bz2
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import openmm
import parmed
import pytest
from MDAnalysisTests import datafiles
from messages import naming
from numpy.testing import assert_allclose, assert_array_equal
from openmm import app, unit
from scipy.io import netcdf_file

from vmdpotential import io
from vmdpotential.errors import InputError, UsageError
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.selection import is_water
from vmdpotential.molecule.structure import Structure
from vmdpotential.plugins.formats.amber_coordinates import VELOCITY_UNIT, read_restart
from vmdpotential.plugins.ions.command import command, with_ion_parameters
from vmdpotential.plugins.ions.place import place_ions

AMBER = Path(datafiles.PDB).parent / "Amber"
TOP, COORDINATES = AMBER / "parmed_ala2_solv.parm7", AMBER / "parmed_ala2_solv.rst7"
TIP3P = Path("amber14/tip3p.xml")
#: Joung and Cheatham's ions for TIP3P: Rmin / 2 and epsilon.
FRCMOD = """ions
MASS
Na+ 22.99
Cl- 35.45

NONBON
  Na+        1.369  0.0874393
  Cl-        2.513  0.0355910

"""

pytestmark = pytest.mark.filterwarnings("ignore")  # the other programs warn


def ionize(structure, topology, **options):
    return command(structure=structure, topology=topology, **options)


def energies(top: Path, positions: np.ndarray, without: range = range(0)) -> tuple[dict[str, float], float]:
    """Return the energies by kind of force, without those of some atoms' pairs, and the net charge, by OpenMM."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        system = app.AmberPrmtopFile(str(top)).createSystem(rigidWater=False, removeCMMotion=False)
    net = 0.0
    for group, force in enumerate(system.getForces()):
        force.setForceGroup(group)
        if isinstance(force, openmm.NonbondedForce):
            net = sum(force.getParticleParameters(i)[0]._value for i in range(system.getNumParticles()))
            for atom in without:
                force.setParticleParameters(atom, 0, 1, 0)
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), openmm.Platform.getPlatformByName("Reference"))
    context.setPositions(positions / 10)
    result: dict[str, float] = {}
    for group, force in enumerate(system.getForces()):
        energy = context.getState(getEnergy=True, groups={group}).getPotentialEnergy()
        result[type(force).__name__] = energy.value_in_unit(unit.kilojoule_per_mole)
    return result, net


def stripped(path: Path, atoms: np.ndarray, folder: Path) -> Path:
    """Return the file that ParmEd makes without some atoms, a mask."""
    parm = parmed.load_file(str(path))
    parm.strip(atoms.astype(int).tolist())
    parm.write_parm(str(folder / "stripped.prmtop"))
    return folder / "stripped.prmtop"


@pytest.fixture(scope="module")
def ionized(tmp_path_factory: pytest.TempPathFactory) -> tuple[Structure, Structure, Path]:
    """Return a system without ions, the same with some, and the folder of ions.prmtop and ions.rst7."""
    folder = tmp_path_factory.mktemp("amber")
    structure = io.read_structure(COORDINATES, TOP)
    placed = place_ions(structure, concentration=0.3, site="random", seed=1, engine="cpu")
    io.write_structures(with_ion_parameters(placed.structure, [TIP3P]), [folder / "ions.prmtop", folder / "ions.rst7"])
    return structure, placed.structure, folder


def test_every_term_is_kept(ionized: tuple[Structure, Structure, Path], tmp_path: Path) -> None:
    before, after, folder = ionized
    kept = len(after) - int((after.residue_names == "Na+").sum() + (after.residue_names == "Cl-").sum())
    assert kept < len(after)
    drop = np.ones(len(before), bool)
    drop[after.topology.extra["rows"]] = False
    expected, _ = energies(stripped(TOP, drop, tmp_path), after.positions[:kept])
    actual, net = energies(folder / "ions.prmtop", after.positions, range(kept, len(after)))
    assert abs(net) < 1e-6
    assert set(actual) == set(expected) >= {"HarmonicBondForce", "HarmonicAngleForce", "PeriodicTorsionForce"}
    for name, energy in expected.items():
        assert actual[name] == pytest.approx(energy, rel=1e-7, abs=1e-7), name


def test_parmed_and_openmm_read_it(ionized: tuple[Structure, Structure, Path]) -> None:
    before, after, folder = ionized
    parm = parmed.load_file(str(folder / "ions.prmtop"), str(folder / "ions.rst7"))
    assert [atom.name for atom in parm.atoms] == after.atom_names.tolist()
    assert [residue.name for residue in parm.residues] == after.residue_names[after.residue_starts[:-1]].tolist()
    assert_allclose(parm.coordinates, after.positions, atol=1e-7)
    assert_allclose(parm.box, before.cell.parameters, atol=1e-6)
    assert sum(parm.parm_data["ATOMS_PER_MOLECULE"]) == len(after)
    assert parm.parm_data["ATOMS_PER_MOLECULE"][-2:] == [1, 1]
    assert parm.parm_data["SOLVENT_POINTERS"][1] == len(parm.parm_data["ATOMS_PER_MOLECULE"])
    assert not parm.atoms[-1].bond_partners
    assert not parm.atoms[-1].exclusion_partners
    ion = app.AmberInpcrdFile(str(folder / "ions.rst7"))
    assert_allclose(ion.boxVectors.value_in_unit(unit.angstrom), before.cell.vectors, atol=1e-6)
    again = io.read_structure(folder / "ions.rst7", folder / "ions.prmtop")
    for name in ("atom_names", "residue_names", "elements"):
        assert_array_equal(getattr(again, name), getattr(after, name), name)
    assert_allclose(again.charges, after.charges, atol=1e-9)
    assert_allclose(again.topology.masses, after.topology.masses, atol=1e-6)


def test_ions_have_the_parameters_of_the_file_that_was_named(ionized: tuple[Structure, Structure, Path],
                                                             tmp_path: Path) -> None:
    _, after, folder = ionized
    parm = parmed.load_file(str(folder / "ions.prmtop"))
    for name, half, epsilon in (("Na+", 1.369, 0.0874393), ("Cl-", 2.513, 0.0355910)):
        atom = next(atom for atom in parm.atoms if atom.name == name)
        assert (atom.rmin, atom.epsilon, atom.type) == (
            pytest.approx(half, rel=1e-6), pytest.approx(epsilon, rel=1e-6), name)
    assert parm.ptr("ntypes") == parmed.load_file(str(TOP)).ptr("ntypes") + 2
    assert not parm.has_NBFIX()

    frcmod = tmp_path / "frcmod.ions"
    frcmod.write_text(FRCMOD)
    for number, file in enumerate((frcmod, folder / "ions.prmtop")):
        path = tmp_path / f"{number}.prmtop"
        io.write_structure(with_ion_parameters(after, [file]), path)
        other = parmed.load_file(str(path))
        for section in ("LENNARD_JONES_ACOEF", "LENNARD_JONES_BCOEF"):
            assert_allclose(other.parm_data[section], parm.parm_data[section], rtol=2e-6)

    # what has such ions needs no file, and no type more
    more = place_ions(io.read_structure(folder / "ions.rst7", folder / "ions.prmtop"), ions={"SOD": 2, "CLA": 2},
                      site="random", seed=2, engine="cpu").structure
    io.write_structure(more, tmp_path / "more.prmtop")
    other = parmed.load_file(str(tmp_path / "more.prmtop"))
    assert other.ptr("ntypes") == parm.ptr("ntypes")
    assert other.atoms[-1].epsilon == pytest.approx(0.0355910, rel=1e-6)
    assert other.atoms[-1].type == "Cl-"


@pytest.mark.parametrize(("name", "without"), [
    ("ala.ff19SB.OPC.parm7.bz2", [4]),  # CMAP; waters of four sites
    ("ache_chainid.prmtop.bz2", [0, 9, 17]),  # CMAP, residues' numbers and chains
    ("parmed_fad.prmtop", [0]),  # Chamber; after this an atom that must be marked by a sign is the first, which is 0
    ("chitosan.prmtop", [0]),  # that of Amber's impropers
])
def test_any_residues_can_be_taken_out(name: str, without: list[int], tmp_path: Path) -> None:
    path = tmp_path / name.removesuffix(".bz2")
    data = (AMBER / name).read_bytes()
    path.write_bytes(bz2.decompress(data) if name.endswith(".bz2") else data)
    structure = io.read_topology(path)
    keep = ~np.isin(structure.residue_index, without)
    part = structure.take(keep)
    io.write_structure(part, tmp_path / "ours.prmtop")
    rng = np.random.default_rng(0)
    side = np.arange(np.ceil(len(part) ** (1 / 3))) * 2.0
    positions = np.stack(np.meshgrid(side, side, side), -1).reshape(-1, 3)[: len(part)]
    positions = positions + rng.uniform(-0.5, 0.5, positions.shape)
    expected, _ = energies(stripped(path, ~keep, tmp_path), positions)
    actual, _ = energies(tmp_path / "ours.prmtop", positions)
    assert ("CMAPTorsionForce" in actual) == ("CMAP" in (tmp_path / "ours.prmtop").read_text())
    assert set(actual) == set(expected)
    for kind, energy in expected.items():
        assert actual[kind] == pytest.approx(energy, rel=1e-7, abs=1e-7), kind
    again = io.read_topology(tmp_path / "ours.prmtop")
    for label in ("atom_names", "residue_names", "residue_index", "chain_ids", "elements"):
        assert_array_equal(getattr(again, label), getattr(part, label), label)


def test_velocities_are_in_units_of_amber(tmp_path: Path) -> None:
    structure = io.read_structure(COORDINATES, TOP)
    speeds = np.random.default_rng(0).normal(size=(len(structure), 3))
    io.write_structure(replace(structure, velocities=speeds), tmp_path / "out.rst7")
    read = parmed.load_file(str(tmp_path / "out.rst7"))
    assert_allclose(read.velocities.reshape(-1, 3), speeds, atol=1e-5)  # ParmEd gives A/ps
    assert_allclose(read.coordinates.reshape(-1, 3), structure.positions, atol=1e-7)
    moving = io.read_structure(tmp_path / "out.rst7", TOP)
    assert_allclose(moving.velocities, speeds, atol=20.455e-7)
    assert_allclose(moving.cell.parameters, structure.cell.parameters, atol=1e-7)
    bent = Cell.from_parameters(31, 32, 33, 90, 105, 90)
    io.write_structure(replace(structure, cell=bent), tmp_path / "bent.prmtop")
    box = parmed.load_file(str(tmp_path / "bent.prmtop")).box
    assert_allclose([*box[:3], box[4]], [31, 32, 33, 105], atol=1e-6)  # it has one angle
    still = tmp_path / "still.rst7"
    io.write_structure(replace(structure, velocities=None), still)
    assert io.read_structure(still, TOP).velocities is None


def test_what_cannot_be_written_is_refused_with_a_hint(tmp_path: Path) -> None:
    output = (tmp_path / "out.prmtop", tmp_path / "out.rst7")
    with naming(InputError, "parameters"):
        ionize(COORDINATES, TOP, output=output)
    placed = place_ions(io.read_structure(COORDINATES, TOP), ions={"SOD": 1, "CLA": 1}, site="random", seed=1)
    with naming(InputError, "Na+, Cl-", "parameters"):
        io.write_structures(placed.structure, output)
    frcmod = tmp_path / "frcmod"
    frcmod.write_text(FRCMOD.replace("Cl- ", "Cl* "))
    with naming(InputError, "frcmod: ", " Cl-;"):
        ionize(COORDINATES, TOP, ions={"SOD": 1, "CLA": 1}, site="random", seed=1, output=output, parameters=(frcmod,))
    frcmod.write_text("ions\n")
    with naming(InputError, "Amber"):
        ionize(COORDINATES, TOP, ions={"SOD": 1, "CLA": 1}, site="random", seed=1, output=output, parameters=(frcmod,))
    with naming(UsageError, output[0]):
        io.write_structure(io.read_structure(AMBER.parent / "adk_open_10res.pdb"), output[0])
    odd = tmp_path / "odd.prmtop"
    odd.write_bytes(TOP.read_bytes() + b"%FLAG LES_FAC\n%FORMAT(5E16.8)\n\n")
    with naming(InputError, "odd.prmtop: ", "LES_FAC (line "):
        io.write_structure(io.read_structure(COORDINATES, odd), output[0])
    odd.write_bytes(re.sub(rb"(?<=%FORMAT\(5E16.8\))( *\n)", rb"\1     ", TOP.read_bytes(), count=1))
    structure = io.read_structure(COORDINATES, odd)
    with naming(InputError, "CHARGE (line "):
        io.write_structure(structure, output[0])
    part = io.read_structure(COORDINATES, TOP).take(np.arange(4, 30))
    with pytest.raises(InputError):
        io.write_structure(part, output[0])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["frcmod", "odd.prmtop"]


def restart(path: Path, positions: np.ndarray, velocities: np.ndarray, scale: float | None) -> None:
    """Write a NetCDF restart as Amber does."""
    with netcdf_file(str(path), "w") as file:
        file.Conventions, file.ConventionVersion = "AMBERRESTART", "1.0"
        file.createDimension("atom", len(positions))
        file.createDimension("spatial", 3)
        file.createVariable("coordinates", "d", ("atom", "spatial"))[:] = positions
        variable = file.createVariable("velocities", "d", ("atom", "spatial"))
        variable[:] = velocities / (scale or 1.0)
        if scale:
            variable.scale_factor = scale


@pytest.mark.parametrize("scale", [VELOCITY_UNIT, None])
def test_a_netcdf_restart_goes_on_as_text(scale: float | None, tmp_path: Path) -> None:
    positions, *_ = read_restart(COORDINATES)
    velocities = np.random.default_rng(1).normal(0, 5, positions.shape)
    restart(tmp_path / "a.ncrst", positions, velocities, scale)
    structure = io.read_structure(tmp_path / "a.ncrst", TOP)
    np.testing.assert_allclose(structure.velocities, velocities, rtol=1e-7)
    np.testing.assert_array_equal(structure.positions, positions)
    io.write_structure(structure, tmp_path / "a.rst7")
    np.testing.assert_allclose(io.read_structure(tmp_path / "a.rst7", TOP).velocities, velocities, atol=2e-6)


def test_velocities_that_are_none_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    positions, *_ = read_restart(COORDINATES)
    velocities = np.zeros_like(positions)
    velocities[3] = np.nan
    restart(tmp_path / "a.ncrst", positions, velocities, VELOCITY_UNIT)
    assert io.read_structure(tmp_path / "a.ncrst", TOP).velocities is None
    assert "not all atoms have velocities" in caplog.text


def sections(path: Path) -> dict[str, list]:
    return parmed.amber.AmberFormat(str(path)).parm_data


def test_solvent_begins_where_it_did(tmp_path: Path) -> None:
    before = io.read_structure(COORDINATES, TOP)
    water = before.residue_starts[:-1][is_water(before)[before.residue_starts[:-1]]]
    after = before.take(~np.isin(before.residue_of, before.residue_of[water[::2]]))
    io.write_structure(after, tmp_path / "a.prmtop")
    there, here = sections(TOP), sections(tmp_path / "a.prmtop")
    left = len(water) - len(water[::2])
    last, number, first = here["SOLVENT_POINTERS"]
    assert (last, first) == (there["SOLVENT_POINTERS"][0], there["SOLVENT_POINTERS"][2])
    assert number == len(here["ATOMS_PER_MOLECULE"]) == first - 1 + left
    # the peptide, which is the largest residue of all, is not there any more
    alone = before.take(is_water(before))
    io.write_structure(alone, tmp_path / "w.prmtop")
    of_water = sections(tmp_path / "w.prmtop")
    assert (of_water["POINTERS"][28], of_water["SOLVENT_POINTERS"][2]) == (3, 1)
    assert there["POINTERS"][28] > 3


def test_extra_points_are_counted_anew(tmp_path: Path) -> None:
    """Of a water whose hydrogens have no mass here."""
    masses = np.array(sections(TOP)["MASS"])
    before = io.read_structure(COORDINATES, TOP)
    light = is_water(before) & (before.elements == "H")
    text = TOP.read_text()
    form = "".join(f"{m:16.8E}" + "\n" * (n % 5 == 4) for n, m in enumerate(np.where(light, 0, masses)))
    text = re.sub(r"(%FLAG MASS *\n%FORMAT\S*\s*\n)(?:[^%\n]*\n)*", lambda match: f"{match[1]}{form.rstrip()}\n", text)
    values = sections(TOP)["POINTERS"]
    values[30] = int(light.sum())
    numbers = "".join(f"{v:8d}" + "\n" * (n % 10 == 9) for n, v in enumerate(values))
    text = re.sub(r"(%FLAG POINTERS *\n%FORMAT\S*\s*\n)(?:[^%\n]*\n)*", lambda match: f"{match[1]}{numbers}\n", text)
    path = tmp_path / "points.prmtop"
    path.write_text(text)
    structure = replace(io.read_structure(COORDINATES, path))
    placed = place_ions(structure, ions={"SOD": 2}, site="random", seed=1, engine="cpu")
    kept = placed.structure.take(np.arange(len(placed.kept_atoms)))
    io.write_structure(kept, tmp_path / "kept.prmtop")
    assert sections(tmp_path / "kept.prmtop")["POINTERS"][30] == light.sum() - 4
