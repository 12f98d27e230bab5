"""Orbitals and densities against PySCF, closed forms and iodata's files; damaged files; the command."""

import json
import math
import sys
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path

import iodata
import numpy as np
import pytest
from helpers import shell
from messages import naming
from pyscf import gto, scf
from pyscf.tools import molden

from vmdpotential import io, progress
from vmdpotential.errors import BackendError, InputError, MemoryPlanError, UsageError
from vmdpotential.frontend import cli
from vmdpotential.grid.lattice import Lattice
from vmdpotential.plugins.orbitals import products
from vmdpotential.plugins.orbitals.evaluate import density_map, orbital_map
from vmdpotential.plugins.orbitals.mesh import build_mesh
from vmdpotential.plugins.orbitals.overlap import overlap
from vmdpotential.plugins.orbitals.potential import potential_map, sum_potential
from vmdpotential.plugins.orbitals.products import gaussians
from vmdpotential.plugins.orbitals.read import read_wavefunction
from vmdpotential.units import BOHR

DATA = resources.files("iodata.test.data")

WATER = "O 0 0 0.1; H 0 0.76 -0.5; H 0.1 -0.76 -0.5"
RING = [(element, (r * math.cos(n * math.pi / 3), r * math.sin(n * math.pi / 3), 0.1))
        for element, r in (("C", 1.39), ("H", 2.48)) for n in range(6)]

#: Atoms, basis set, whether functions are Cartesian, and unpaired electrons.
MOLECULES = {
    "water": (WATER, "cc-pVTZ", False, 0),  # f
    "water-cartesian": (WATER, "cc-pVTZ", True, 0),
    "benzene": (RING, "6-31G*", False, 0),  # s and p shells share exponents
    "hydroxyl": ("O 0 0 0; H 0.3 0.2 0.9", "cc-pVDZ", False, 1),
    "neon": ("Ne 0.1 0 0", "cc-pVQZ", False, 0),  # g
    "sulfur-dioxide": ("S 0 0 0.1; O 0 1.2 -0.6; O 0 -1.2 -0.6", "6-31G*", True, 0),
    "oxygen": ("O 0 0 -0.6; O 0.1 0 0.6", "def2-SVP", False, 2),
    "hydrogen-cyanide": ("H 0 0 -1.6; C 0 0 -0.5; N 0 0.1 0.6", "aug-cc-pVDZ", False, 0),  # diffuse
    "silane": ("Si 0 0 0; H .85 .85 .85; H -.85 -.85 .85; H -.85 .85 -.85; H .85 -.85 -.85", "STO-3G", False, 0),
    "lithium-hydride": ("Li 0 0 0; H 0.1 0 1.6", "aug-cc-pVTZ", False, 0),
}


LONG = ("water", "benzene", "lithium-hydride")


@cache
def computed(name, steps=3):
    """Return a molecule and its orbitals, which need not be converged: they are orthonormal at every step."""
    atoms, basis, cartesian, unpaired = MOLECULES[name]
    molecule = gto.M(atom=atoms, basis=basis, cart=cartesian, spin=unpaired, verbose=0)
    field = (scf.UHF if unpaired else scf.RHF)(molecule)
    field.max_cycle = steps
    field.kernel()
    return molecule, field


def written(name, folder):
    path = folder / f"{name}.molden"
    molden.from_scf(computed(name)[1], str(path))
    return path


def by_pyscf(name, lattice):
    """Return the orbitals of both spins at all points, (2, points, orbitals), bohr^-3/2, and their occupations."""
    molecule, field = computed(name)
    functions = molecule.eval_gto("GTOval", lattice.points() / BOHR)
    occupations = np.asarray(field.mo_occ, float)
    if occupations.ndim == 1:
        return np.stack([functions @ field.mo_coeff] * 2), np.stack([occupations / 2] * 2)
    return np.stack([functions @ part for part in field.mo_coeff]), occupations


def around(wavefunction, spacing=0.5, padding=1.5):
    return Lattice.around(wavefunction.positions, spacing, padding)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name
                                  for name in MOLECULES])
def test_as_pyscf_has_it(name, tmp_path, engine):
    wavefunction = read_wavefunction(written(name, tmp_path))
    lattice = around(wavefunction)
    theirs, occupations = by_pyscf(name, lattice)
    for spin, of_spin in zip(("alpha", "beta"), theirs, strict=True):
        for index in range(0, theirs.shape[2], 3):
            ours = orbital_map(wavefunction, lattice, index, spin, "bohr", engine.name).values.ravel()
            assert np.abs(ours - of_spin[:, index]).max() < 1e-5
    alpha, beta = ((orbitals**2 * occupied).sum(1) for orbitals, occupied in zip(theirs, occupations, strict=True))
    for spin, density in ((False, alpha + beta), (True, alpha - beta)):
        ours = density_map(wavefunction, lattice, spin, "bohr", engine.name).values.ravel()
        assert np.abs(ours - density).max() < 1e-5 * max(1, density.max())
    assert wavefunction.electrons == pytest.approx(computed(name)[0].nelectron)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name
                                  for name in MOLECULES])
def test_potentials_as_pyscf_has_them(name, tmp_path, engine):
    wavefunction = read_wavefunction(written(name, tmp_path))
    lattice = around(wavefunction)
    molecule, field = computed(name)
    chosen = np.random.default_rng(0).integers(0, lattice.size, 40)
    points, density = lattice.points()[chosen] / BOHR, np.asarray(field.make_rdm1())
    density = density if density.ndim == 2 else density.sum(0)
    expected = -np.einsum("gij,ij->g", molecule.intor("int1e_grids", grids=points), density)
    for charge, place in zip(molecule.atom_charges(), molecule.atom_coords(), strict=True):
        expected += charge / np.linalg.norm(points - place, axis=1)
    actual = potential_map(wavefunction, lattice, "V", engine=engine.name).values.ravel() / 27.211386245981
    assert np.abs(actual[chosen] - expected).max() < 1e-6
    electrons = gaussians(wavefunction)
    in_bohr = Lattice(lattice.origin / BOHR, lattice.spacing / BOHR, lattice.shape)
    for width in (None, 0.3, 2.0):  # with two meshes one smooths what is wide too
        mesh = None if width is None else build_mesh(electrons, in_bohr.origin, in_bohr.last, width)
        values = sum_potential(engine, in_bohr, electrons, mesh, wavefunction.positions / BOHR,
                               wavefunction.nuclear_charges, 1.0)
        assert np.abs(values.ravel()[chosen] - expected).max() < 1e-6


def test_products_are_expanded_in_parts_that_do_not_change_them(tmp_path, monkeypatch):
    wavefunction = read_wavefunction(written("water", tmp_path))
    whole = gaussians(wavefunction)
    sizes = []
    expanded = products._products
    monkeypatch.setattr(products, "_products", lambda *parts: sizes.append(len(parts[0])) or expanded(*parts))
    monkeypatch.setattr(products, "_COEFFICIENTS", 100)
    parts = gaussians(wavefunction)
    assert max(sizes) == 100 // 5  # water has five occupied orbitals
    for name in ("centres", "exponents", "coefficients"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-12, atol=1e-15)


def test_the_potential_far_away_is_that_of_the_charge(tmp_path):
    wavefunction = read_wavefunction(written("hydroxyl", tmp_path))
    cation = replace(wavefunction, alpha=replace(wavefunction.alpha, occupations=np.where(
        np.arange(len(wavefunction.alpha.occupations)) == 0, 0.0, wavefunction.alpha.occupations)))
    far = Lattice(np.array([100.0, 0, 0]), np.ones(3), (2, 1, 1))
    assert potential_map(cation, far, "V").values[0, 0, 0] == pytest.approx(14.3996 / 100, rel=0.01)
    at_nucleus = Lattice(wavefunction.positions[0], np.ones(3), (1, 1, 1))
    assert 1e3 < potential_map(wavefunction, at_nucleus, "V").values[0, 0, 0] < 14.4 * 8 / 0.01
    ghost = replace(wavefunction, cores=np.array([6.0, 1.0]))  # two electrons in a core
    assert potential_map(ghost, far, "V").values[0, 0, 0] < potential_map(wavefunction, far, "V").values[0, 0, 0]


@pytest.mark.parametrize(("name", "suffix"), [("water", "fchk"), ("water-cartesian", "fchk"), ("hydroxyl", "fchk"),
                                              ("water-cartesian", "wfn"), ("sulfur-dioxide", "wfx"),
                                              ("sulfur-dioxide", "wfn"), ("water", "molden")])
def test_every_format_is_the_same_wave_function(name, suffix, tmp_path):
    path = tmp_path / f"copy.{suffix}"
    iodata.dump_one(complete(iodata.load_one(str(written(name, tmp_path)))), str(path), allow_changes=True)
    wavefunction = read_wavefunction(path)
    lattice = around(wavefunction)
    theirs, occupations = by_pyscf(name, lattice)
    result = density_map(wavefunction, lattice, length="bohr").values.ravel()
    density = sum((orbitals**2 * occupied).sum(1) for orbitals, occupied in zip(theirs, occupations, strict=True))
    assert np.abs(result - density).max() < 1e-5 * max(1, density.max())


def complete(data):
    """Return what iodata has read with what its writers need next to the wave function."""
    data.energy, data.title, data.run_type, data.lot, data.obasis_name = 0.0, "copy", "energy", "hf", "basis"
    data.extra = {**data.extra, "virial_ratio": 2.0, "nuclear_virial": 0.0, "full_virial_ratio": 2.0,
                  "model_name": "hf", "num_perturbations": 0, "keywords": "GTO"}
    return data


@pytest.mark.parametrize(("name", "electrons"), [("he_spdfgh_orbital.wfn", 2), ("he_spdf_orbital.fchk", 2),
                                                 ("h_sto3g.fchk", 1)])
def test_integrals_of_files_by_other_programs(name, electrons):
    wavefunction = read_wavefunction(DATA / name)
    lattice = Lattice.around(wavefunction.positions, 0.2, 9.0)
    volume = float(lattice.spacing.prod())
    for index in range(0, wavefunction.alpha.coefficients.shape[1], 7):
        square = orbital_map(wavefunction, lattice, index).values.astype(float) ** 2
        assert square.sum() * volume == pytest.approx(1, abs=0.02)
    assert density_map(wavefunction, lattice).values.sum(dtype=float) * volume == pytest.approx(electrons, abs=0.05)


def test_names_of_orbitals(tmp_path):
    water, radical = (read_wavefunction(written(name, tmp_path)) for name in ("water", "hydroxyl"))
    assert [water.find(name) for name in ("homo", "lumo", "HOMO-1", "lumo+2", "1")] == [4, 5, 3, 7, 0]
    assert (radical.find("homo", "alpha"), radical.find("homo", "beta")) == (4, 3)
    for name in ("0", "59", "homo-5", "lumo+99", "fermi", "homo5", "-1", ""):
        with pytest.raises(UsageError) as caught:
            water.find(name)
        assert caught.value.parameter == "orbital"
    fractional = replace(water, alpha=replace(water.alpha, occupations=0.7 * water.alpha.occupations))
    assert fractional.find("5") == 4
    with pytest.raises(InputError):
        fractional.find("homo")


@pytest.mark.parametrize("name", ["h2o_sto3g.fchk", "h2o_sto3g.wfn", "water.molden"])
def test_damaged_files(name, tmp_path):
    if name.endswith("molden"):
        content = written("hydroxyl", tmp_path).read_bytes()
    else:
        content = (DATA / name).read_bytes()
    path = tmp_path / name
    needed = content.index(b"Total SCF Density") if name.endswith("fchk") else len(content)
    # a Molden file does not say how many orbitals it has: cut among them, it may be a file of fewer
    for part in np.linspace(0, 0.06 if name.endswith("molden") else 0.98, 14):
        path.write_bytes(content[: int(part * needed)])
        with pytest.raises(InputError) as caught:
            read_wavefunction(path)
        assert name in str(caught.value)
    rng = np.random.default_rng(1)
    for _ in range(25):
        damaged = np.frombuffer(content, np.uint8).copy()
        at = rng.integers(0, len(damaged), 4)
        damaged[at] = rng.choice(np.frombuffer(b"0159-+.eENa \n", np.uint8), 4)
        path.write_bytes(damaged.tobytes())
        try:
            result = read_wavefunction(path)
        except InputError:
            continue
        lattice = Lattice.around(np.clip(result.positions, -20, 20), 5.0, 2.0)
        assert np.isfinite(density_map(result, lattice).values).all()


@pytest.mark.parametrize("content", [b"", b"\0" * 2000, b"[Molden Format]\n[Atoms] AU\n", b"<xml/>"])
@pytest.mark.parametrize("suffix", ["molden", "txt"])
def test_files_of_something_else(content, suffix, tmp_path, capsys):
    path = tmp_path / f"file.{suffix}"
    path.write_bytes(content)
    assert cli.main(["orbital", str(path), "--density", "-o", str(tmp_path / "out.npz")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert [item.name for item in tmp_path.iterdir()] == [path.name]


def test_a_structure_is_no_wave_function(tmp_path):
    path = tmp_path / "water.xyz"
    path.write_text("3\n\nO 0 0 0\nH 0 0 1\nH 0 1 0\n")
    with pytest.raises(InputError):
        read_wavefunction(path)


def test_the_command(tmp_path, capsys):
    path, like = written("hydroxyl", tmp_path), tmp_path / "orbital.cube"
    words = ["orbital", path, "--orbital", "lumo", "--channel", "beta", "-o", like, "--atoms", tmp_path / "oh.pdb",
             "--spacing", 0.25]
    report = json.loads(shell(capsys, *map(str, words), "--json")[1])
    assert (report["orbital"], report["channel"], report["unit"]) == (5, "beta", "A^-3/2")
    assert report["integral"] == pytest.approx(1, abs=0.01)
    assert report["energy"] == pytest.approx(computed("hydroxyl")[1].mo_energy[1][4], abs=1e-6)
    made = io.read_map(like)
    assert (made.unit, made.provenance.quantity) == ("bohr^-3/2", "beta orbital 5")
    assert made.values.min() < -0.1 < 0.1 < made.values.max()
    assert io.read_structure(tmp_path / "oh.pdb").elements.tolist() == ["O", "H"]
    report = json.loads(shell(capsys, "orbital", str(path), "--spin", "--like", str(like), "-o",
                              str(tmp_path / "spin.npz"), "--json")[1])
    assert report["shape"] == list(made.lattice.shape)
    assert report["integral"] == pytest.approx(1, abs=0.01)
    assert io.read_map(tmp_path / "spin.npz").unit == "e/A^3"


def test_the_command_with_a_potential(tmp_path, capsys):
    path = written("hydroxyl", tmp_path)
    code, text, err = shell(capsys, "orbital", path, "--potential", "--potential-unit", "V", "--spacing", 0.5,
                            "-o", tmp_path / "esp.dx", "--json")
    assert code == 0, err
    report, grid = json.loads(text), io.read_map(tmp_path / "esp.dx")
    assert (report["unit"], grid.unit, grid.provenance.quantity) == ("V", "V", "electrostatic potential")
    assert grid.provenance.medium == "vacuum, no screening"
    assert report["integral"] is None
    # another program's cube, whose values are in atomic units and whose file does not say so
    plain = replace(grid, values=grid.values / 27.211386, unit="", provenance=replace(grid.provenance, program=""))
    io.write_map(plain, tmp_path / "other.cube")
    cube = (tmp_path / "other.cube").read_text().splitlines(keepends=True)
    (tmp_path / "other.cube").write_text("".join(["title\n", "comment\n", *cube[2:]]))
    words = ["compare", tmp_path / "esp.dx", tmp_path / "other.cube", "--json"]
    assert shell(capsys, *words)[0] == 2  # of no unit
    code, text, err = shell(capsys, *words, "--unit-of-file", "hartree/e")
    assert code == 0, err
    data = json.loads(text)
    assert (data["unit"], data["rms"] < 1e-4 * data["rms_first"]) == ("V", True)


def test_wrong_options(tmp_path, capsys):
    path = written("water", tmp_path)
    before = sorted(tmp_path.iterdir())
    for words in ([], ["--density", "--spin"], ["--density", "--potential"], ["--orbital", "homo", "--density"],
                  ["--orbital", "99"], ["--density", "--spacing", "0"],
                  ["--orbital", "homo", "--atoms", str(tmp_path / "a.xyz")]):
        assert cli.main(["orbital", str(path), *words, "-o", str(tmp_path / "out.cube")]) == 2
    assert cli.main(["orbital", str(path), "--density"]) == 2
    assert cli.main(["orbital", str(tmp_path / "missing.molden"), "--density", "-o", str(tmp_path / "out.cube")]) == 2
    assert sorted(tmp_path.iterdir()) == before
    assert capsys.readouterr().err.count("\n") == 9


def test_without_iodata(monkeypatch):
    monkeypatch.setitem(sys.modules, "iodata", None)
    with pytest.raises(BackendError) as caught:
        read_wavefunction(DATA / "h2o_sto3g.fchk")
    assert caught.value.exit_code == 4


def test_memory_is_planned(monkeypatch):
    wavefunction = read_wavefunction(DATA / "h2o_sto3g.fchk")
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "1M")
    with pytest.raises(MemoryPlanError):
        orbital_map(wavefunction, around(wavefunction, 0.05), 0)
    with pytest.raises(MemoryPlanError):
        density_map(wavefunction, around(wavefunction, 0.05), spin=True)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_interrupted(threads, monkeypatch):
    wavefunction = read_wavefunction(DATA / "h2o_sto3g.fchk")
    monkeypatch.setenv("VMDPOTENTIAL_THREADS", threads)

    def stop(label, fraction):
        raise KeyboardInterrupt

    with progress.listen_to_progress(stop), pytest.raises(KeyboardInterrupt):
        density_map(wavefunction, around(wavefunction, 0.1))


def test_pseudopotentials_in_two_ways_of_writing_molden_files(tmp_path):
    """Hydrogen iodide by PySCF with LANL2DZ: charges of whole nuclei and [core], and charges that are left."""
    folder = Path(__file__).parent.parent / "data"
    waves = [read_wavefunction(folder / f"ecp_{way}.molden") for way in ("core", "effective")]
    text = (folder / "ecp_core.molden").read_text()
    (tmp_path / "pseudo.molden").write_text(text.replace("[core]\n1 : 46\n2 : 0", "[Pseudo]\nI 1 7\nH 2 1"))
    waves.append(read_wavefunction(tmp_path / "pseudo.molden"))
    lattice = Lattice.around(waves[0].positions, 1.0, 3.0)
    maps = [potential_map(wave, lattice, engine="cpu").values for wave in waves]
    for wave, values in zip(waves, maps, strict=True):
        assert wave.nuclear_charges.tolist() == [7, 1]
        assert wave.nuclear_charges.sum() == wave.electrons
        np.testing.assert_allclose(values, maps[0], rtol=1e-5)
    (tmp_path / "wrong.molden").write_text(text.replace("1 : 46", "1 : 60"))
    (tmp_path / "odd.molden").write_text(text.replace("1 : 46", "x : y"))
    for name in ("wrong", "odd"):
        with naming(InputError, f"{name}.molden"):
            read_wavefunction(tmp_path / f"{name}.molden")


@pytest.mark.parametrize("words", [["--orbital", "homo"], ["--density"]], ids=lambda words: words[0])
def test_other_programs_read_cube_files(tmp_path, words):
    """Values in atomic units and the molecule's atoms, as iodata reads and PySCF computes them."""
    path, cube = written("hydroxyl", tmp_path), tmp_path / "out.cube"
    assert cli.main(["orbital", str(path), *words, "--spacing", "0.4", "-o", str(cube)]) == 0
    molecule, field = computed("hydroxyl")
    read = iodata.load_one(str(cube))
    np.testing.assert_array_equal(read.atnums, molecule.atom_charges())
    np.testing.assert_allclose(read.atcoords, molecule.atom_coords(), atol=1e-5)
    points = read.cube.origin + np.stack(np.indices(read.cube.shape), -1).reshape(-1, 3) @ read.cube.axes
    functions = molecule.eval_gto("GTOval", points)
    if words == ["--density"]:
        expected = np.einsum("pi,ij,pj->p", functions, field.make_rdm1().sum(0), functions)
    else:
        expected = functions @ field.mo_coeff[0][:, molecule.nelec[0] - 1]
    np.testing.assert_allclose(read.cube.data.ravel(), expected, rtol=1e-3, atol=1e-5)
    assert io.read_map(cube).unit == ("e/bohr^3" if words == ["--density"] else "bohr^-3/2")


@pytest.mark.parametrize("name", ["water", "water-cartesian", "neon", "sulfur-dioxide", "oxygen"])
def test_overlaps_against_pyscf(tmp_path, name):
    wave = read_wavefunction(written(name, tmp_path))  # whose orbitals are orthonormal
    orbitals = np.asarray(wave.alpha.coefficients)
    product = orbitals.T @ overlap(wave.shells) @ orbitals
    np.testing.assert_allclose(product, np.eye(len(product)), atol=1e-5)


def test_thousands_of_functions_are_bounded(tmp_path, monkeypatch):
    count = 2000
    basis = "".join(f"{n} 0\n s 1 1.0\n 0.5 1.0\n\n" for n in range(1, count + 1))
    atoms = "".join(f"H {n} 1 {3.0 * n} 0 0\n" for n in range(1, count + 1))
    orbital = "".join(f" {n} {float(n == 1)}\n" for n in range(1, count + 1))
    (tmp_path / "many.molden").write_text(
        f"[Molden Format]\n[Atoms] AU\n{atoms}[GTO]\n{basis}[MO]\nEne= 0\nSpin= Alpha\nOccup= 2\n{orbital}")
    reports = []
    with progress.listen_to_progress(lambda label, fraction: reports.append(label)):
        wave = read_wavefunction(tmp_path / "many.molden")
        assert len(gaussians(wave).exponents) == 1  # the only function in the orbital
    assert {"overlaps", "products of orbitals"} <= set(reports)
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "30M")
    with naming(MemoryPlanError, "2000"):
        read_wavefunction(tmp_path / "many.molden")
    with pytest.raises(MemoryPlanError):  # all pairs of one place
        gaussians(replace(wave, alpha=replace(wave.alpha, coefficients=np.ones((count, 1))), shells=[
            replace(shell, centre=np.zeros(3), exponents=np.array([1 + n / count])) for n, shell in enumerate(
                wave.shells)]))
