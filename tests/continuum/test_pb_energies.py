"""Energies by `pb`: of solvation, of binding, of a part of the charges; the spacing that a tolerance leads to."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from helpers import TOOLS, charges_at, slow
from messages import Words, naming

from vmdpotential import read_structure, solvation_energy
from vmdpotential.errors import InputError, MemoryPlanError, TaskError, UsageError
from vmdpotential.grid.lattice import Lattice
from vmdpotential.io.structures.pqr import write_pqr
from vmdpotential.maps import potential_map
from vmdpotential.molecule.radii import atomic_radii
from vmdpotential.plugins.pairs.binding import binding_energy
from vmdpotential.plugins.pairs.energy_command import command as energy_
from vmdpotential.sums.refinement import BY_SPACING, PlanAttempt, refine_to_tolerance
from vmdpotential.units import coulomb_constant, debye_length

WATER, INSIDE = 78.5, 2.0
PLACE = np.array([0.13, 0.07, 0.21])


def peptide():
    """Return two residues of T4 lysozyme, with charges and radii."""
    folder = TOOLS / "T4-lysozyme-L99A-implicit"
    protein = read_structure(folder / "receptor.pdb", topology=folder / "receptor.prmtop")
    return protein.part(np.arange(len(protein)) < protein.residue_starts[2])


@pytest.mark.slow
def test_tolerance_chooses_the_spacing():
    two = peptide()
    coarse = potential_map(two, method="pb", spacing=1.0, padding=4.0)
    error = max(coarse.provenance.error, coarse.provenance.error_away)
    result = potential_map(two, method="pb", spacing=1.0, padding=4.0, tolerance=0.7 * error)
    assert max(result.provenance.error, result.provenance.error_away) <= 0.7 * error
    assert result.lattice.spacing[0] < 0.9
    assert np.array_equal(potential_map(two, method="pb", spacing=1.0, padding=4.0, tolerance=0.1).lattice.spacing,
                          coarse.lattice.spacing) == (error < 0.1)
    energy = solvation_energy(two, spacing=1.0, tolerance=0.01)
    assert energy.error <= 0.01 * abs(energy.total)
    with pytest.raises(TaskError) as caught:
        refine_to_tolerance(1e-5, 0.3, lambda spacing: PlanAttempt(None, spacing), BY_SPACING)
    assert caught.value.parameter == "tolerance"


@pytest.mark.slow
@pytest.mark.parametrize("salt", [0.15, 0.001, 0.0])
def test_sources_are_linear_in_the_continuum_of_all_atoms(salt):
    two = peptide()
    lattice = Lattice.around(two.positions, 0.8, 5.0)
    first = np.arange(len(two)) < two.residue_starts[1]
    whole, *parts = (potential_map(two, method="pb", lattice=lattice, sources=n, parameters={"salt": salt})
                     for n in (None, first, ~first))
    assert parts[0].values + parts[1].values == pytest.approx(whole.values, abs=2e-4 * float(abs(whole.values).max()))
    assert not parts[0].solvation.energies[~first].any()
    assert parts[0].solvation.total != pytest.approx(whole.solvation.total, rel=0.05)
    for options, parameter in (({"method": "direct"}, "sources"), ({"method": "pb", "atoms": ~first}, "sources")):
        with pytest.raises(UsageError) as caught:
            potential_map(two, sources=first, lattice=lattice, **options)
        assert caught.value.parameter == parameter


@pytest.mark.slow
def test_energy_between_two_ions_in_water():
    """Far apart each is as if alone and the other's charge is screened; in one medium all of it is Coulomb's law."""
    places = PLACE + np.array([[0.0, 0, 0], [14.0, 0, 0]])
    ions = replace(charges_at(places, [1.0, -2.0]), radii=np.array([2.0, 2.0]))
    options = {"spacing": 0.6, "radii": "auto"}
    result = binding_energy(ions, [True, False], [False, True], parameters={"salt": 0}, **options)
    coulomb = coulomb_constant("kcal/mol/e")
    assert result.coulomb == pytest.approx(-2 * coulomb / INSIDE / 14, rel=1e-6)
    # what an ion loses to the ball of the other: G. Born's and P. Debye's dipole of a cavity, to the leading order
    assert result.coulomb + result.screening == pytest.approx(-2 * coulomb / WATER / 14, rel=0.05)
    lost = 0.5 * coulomb / WATER / 14**4 * 2.0**3 * (2 * (WATER - INSIDE) / (2 * WATER + INSIDE))
    assert result.desolvation == pytest.approx((lost, 4 * lost), abs=0.1)
    same = binding_energy(ions, [True, False], [False, True], dielectric=INSIDE, parameters={"salt": 0}, **options)
    assert same.total == pytest.approx(same.coulomb, abs=2e-3 * abs(same.coulomb))
    for second, parameters, name in (([True, True], {}, "between"), ([False, True], {"nonlinear": 1}, "set")):
        with pytest.raises(UsageError) as caught:
            binding_energy(ions, [True, False], second, parameters=parameters, **options)
        assert caught.value.parameter == name


@pytest.mark.slow
def test_binding_is_the_difference_of_energies_of_solvation():
    two = peptide()
    first = np.arange(len(two)) < two.residue_starts[1]
    result = binding_energy(two, first, ~first, spacing=0.8)
    kinds = [solvation_energy(two, spacing=0.5, atoms=chosen).total for chosen in ("all", first, ~first)]
    change = kinds[0] - kinds[1] - kinds[2]
    assert result.screening + sum(result.desolvation) == pytest.approx(change, abs=2 * result.error)
    assert min(result.desolvation) > 0
    assert result.error < 0.3 * max(result.desolvation)


def ratios_to_stated(spacing, cases, **parameters):
    """Return the actual errors of energies over the stated ones; cases are structures and energies, kcal/mol."""
    results = []
    for molecule, exact in cases:
        result = solvation_energy(molecule, spacing=spacing, parameters={"salt": 0, **parameters}, radii="auto")
        results.append(abs(result.total - exact) / result.error)
    return np.array(results)


def below_the_surface(depth, radius=3.0, count=6):
    """Yield a charge below the surface of a sphere, and its energy (J. G. Kirkwood, J. Chem. Phys. 2 (1934) 351)."""
    degree = np.arange(2000)
    factors = (INSIDE - WATER) * (degree + 1) / (WATER * (degree + 1) + INSIDE * degree) / INSIDE / radius
    energy = 0.5 * coulomb_constant("kcal/mol/e") * factors @ (1 - depth / radius) ** (2 * degree)
    rng = np.random.default_rng(1934)
    for _ in range(count):
        centre, direction = rng.uniform(0, 1, 3), rng.normal(size=3)
        place = centre + (radius - depth) * direction / np.linalg.norm(direction)
        yield replace(charges_at([centre, place], [0.0, 1.0]), radii=np.array([radius, 0.0])), energy


def test_stated_error_of_a_charge_close_to_the_surface():
    """However the surface cuts the grid next to it: the two lattices may differ less than either is wrong."""
    ratios = np.concatenate([ratios_to_stated(spacing, below_the_surface(depth))
                             for spacing in (1.0, 0.5) for depth in (0.3, 0.5, 1.0)])
    assert np.mean(ratios <= 1) >= 0.9
    assert ratios.max() < 2
    assert np.median(ratios) > 0.2


def in_a_ball(charges, places, radius, inside):
    """Return the energy, kcal/mol, of charges in a ball around the origin (J. G. Kirkwood, the same)."""
    dots, squares = places @ places.T / radius**2, (places**2).sum(1) / radius**2
    squares = np.outer(squares, squares)
    terms, before, energy = np.ones_like(dots), np.zeros_like(dots), 0.0  # t^n P_n, of products t of distances
    for n in range(2000):
        factor = (inside - WATER) * (n + 1) / (WATER * (n + 1) + inside * n) / inside / radius
        energy += 0.5 * coulomb_constant("kcal/mol/e") * factor * charges @ terms @ charges
        terms, before = ((2 * n + 1) * dots * terms - n * squares * before) / (n + 1), terms
    return energy


@pytest.mark.parametrize(("most", "deepest"), slow([(1, 0.0), (1, 4.0), (6, 4.0), (12, 0.5)],
                                                   [(1, 4.0), (6, 4.0), (12, 0.5)]))
def test_stated_error_of_charges_in_a_ball(most, deepest):
    """Of one, in the centre or off it, and of several: the surface is wrong in the same way for all of them."""
    rng, ratios = np.random.default_rng(1920 + most + int(deepest)), []
    for _ in range(60):
        radius, spacing, inside = rng.uniform(1.2, 4), rng.uniform(0.3, 1), rng.uniform(1, 4)
        count, centre = int(rng.integers(1, most + 1)), rng.uniform(0, 1, 3)
        directions = rng.normal(size=(count, 3))
        depths = rng.uniform(0.05, min(radius, deepest), (count, 1)) if deepest else np.full((count, 1), radius)
        places = (radius - depths) * directions / np.linalg.norm(directions, axis=1)[:, None]
        charges = rng.normal(0, 0.6, count)
        ball = replace(charges_at([centre, *(centre + places)], [0.0, *charges]), radii=np.append(radius, 0 * charges))
        result = solvation_energy(ball, spacing=spacing, parameters={"salt": 0, "inside": inside}, radii="auto")
        ratios.append(abs(result.total - in_a_ball(charges, places, radius, inside)) / result.error)
    assert np.mean(np.array(ratios) <= 1) >= 0.95
    assert max(ratios) < 1.5
    assert np.median(ratios) > 0.15


@cache
def pieces_of_lysozyme(probe):
    """Return pairs of residues and their energies, kcal/mol, extrapolated from fine grids."""
    folder = TOOLS / "T4-lysozyme-L99A-implicit"
    protein = read_structure(folder / "receptor.pdb", topology=folder / "receptor.prmtop")
    starts = protein.residue_starts
    pieces = [protein.part(np.arange(starts[n], starts[n + 2])) for n in range(3, 150, 14)]
    cases = []
    for piece in pieces:
        finer, finest = (solvation_energy(piece, spacing=each, parameters={"salt": 0, "probe": probe}).total
                         for each in (0.4, 0.2))
        cases.append((piece, finest + (finest - finer) / (3 if probe else 1)))  # by the second order, or the first
    return cases


@pytest.mark.slow
@pytest.mark.parametrize(("spacing", "probe"), [(1.0, 1.4), (0.5, 1.4), (1.0, 0.0), (0.5, 0.0)])
def test_stated_error_is_that_of_a_molecule(spacing, probe):
    """Neither smaller nor several times larger, also on grids on which those twice as coarse are far off."""
    ratios = ratios_to_stated(spacing, pieces_of_lysozyme(probe), probe=probe)
    assert np.mean(ratios <= 1) >= 0.9
    assert ratios.max() < 1.5
    assert np.median(ratios) > (0.2 if probe else 0.15)


@pytest.mark.slow
def test_error_of_binding_is_that_of_the_difference():
    """The errors of the energies of solvation, kcal/mol, cancel where the shape is the same."""
    folder = TOOLS / "cb7-viologen" / "leap"
    complex_ = read_structure(folder / "complex-vacuum.pdb", topology=folder / "complex-vacuum.prmtop")
    coarse, fine = (binding_energy(complex_, "resname LIG", "not resname LIG", spacing=spacing)
                    for spacing in (1.0, 0.4))
    assert abs(coarse.total - fine.total) < coarse.error < 20 * abs(coarse.total - fine.total)
    assert fine.error < coarse.error


@pytest.mark.slow
def test_energy_command_in_water(tmp_path):
    folder = TOOLS / "cb7-viologen" / "leap"
    between = ("resname LIG", "not resname LIG")
    options = {"topology": folder / "complex-vacuum.prmtop", "between": between, "solvent": "pb"}
    data = energy_(structure=folder / "complex-vacuum.pdb", spacing=1.0, **options).data
    result = data["solvent"][0]
    parts = [result[name] for name in ("coulomb", "screening", "desolvation_1", "desolvation_2")]
    assert result["electrostatic"] == pytest.approx(sum(parts))
    assert result["total"] == pytest.approx(sum(parts) + data["pairs"][0]["lennard_jones"])
    assert result["coulomb"] == pytest.approx(data["pairs"][0]["coulomb"] / INSIDE, rel=1e-3)  # two molecules
    assert abs(result["electrostatic"]) < abs(result["coulomb"])
    whole = read_structure(folder / "complex-vacuum.pdb", topology=options["topology"])
    radii = atomic_radii(whole, np.ones(len(whole), bool), "mbondi2")[0]
    write_pqr(replace(whole, radii=radii), tmp_path / "complex.pqr")
    alone = energy_(structure=tmp_path / "complex.pqr", spacing=1.0, between=between, solvent="pb", radii="mbondi2",
                    output=tmp_path / "energies.csv")
    assert alone.data["solvent"][0]["total"] == pytest.approx(result["electrostatic"],
                                                                      abs=result["grid_error"])
    assert alone.data["solvent"][0]["lennard_jones"] is None
    assert len((tmp_path / "energies.csv").read_text().splitlines()) == 2
    with naming(InputError, Words.NO_LENNARD_JONES):
        energy_(structure=tmp_path / "complex.pqr", between=between)
    polar = energy_(structure=folder / "complex-vacuum.pdb", spacing=1.0, **options, **{"set": {"inside": 4.0}}).data
    assert polar["solvent"][0]["coulomb"] == pytest.approx(result["coulomb"] * INSIDE / 4, rel=1e-6)


@pytest.mark.parametrize(("inside", "solvent"), [(80.0, 2.0), (200.0, 1.0)])
def test_molecules_that_are_much_more_polar_than_the_solvent_are_refused(inside, solvent):
    with pytest.raises(UsageError):
        solvation_energy(born(2.0), spacing=1.0, parameters={"salt": 0.0, "inside": inside}, dielectric=solvent)


def born(radius):
    return replace(charges_at([[0.13, 0.07, 0.21]], [1.0]), radii=np.array([radius]))


@pytest.mark.parametrize(("radius", "inside", "solvent"), [(50.0, INSIDE, WATER), (3.0, 78.5, 20.0)])
def test_large_ion_and_polar_one(radius, inside, solvent):
    """The map of the large one is inside of it as a whole."""
    result = solvation_energy(born(radius), spacing=1.0, parameters={"salt": 0.0, "inside": inside}, dielectric=solvent)
    exact = 0.5 * coulomb_constant("kcal/mol/e") * (1 / solvent - 1 / inside) / radius
    assert result.total == pytest.approx(exact, rel=0.02)


def test_radius_that_needs_too_much_memory_is_named():
    with naming(MemoryPlanError, "1e+06 A"):
        solvation_energy(born(1e6))


@pytest.mark.parametrize("radius", [2.0, 5.0, 10.0, 20.0])
@pytest.mark.parametrize("salt", [0.0, 0.15])
def test_errors_of_ions_larger_than_the_lattice_hold(radius, salt):
    ion = replace(charges_at([PLACE], [1.0]), radii=np.array([radius]))
    kappa = 1 / debye_length(salt, 298.15, WATER) if salt else 0.0
    tail = kappa / (1 + kappa * (radius + 2.0)) / WATER  # M. Born 1920, with ions from 2 A beyond the surface
    exact = 0.5 * coulomb_constant("kcal/mol/e") * ((1 / WATER - 1 / INSIDE) / radius - tail)
    solvation = solvation_energy(ion, parameters={"salt": salt})
    assert abs(solvation.total - exact) < solvation.error < 4 * abs(solvation.total - exact)
