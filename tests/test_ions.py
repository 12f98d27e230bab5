"""Ion placement: counts by hand, sites and energies against brute force, files against other programs."""

import csv
import importlib.util
import itertools
import json
import math
import warnings
from dataclasses import replace
from pathlib import Path

import ewald
import numpy as np
import pytest
from scipy import constants

import vmdpotential
from vmdpotential import read_structure
from vmdpotential.commands.ionize import command
from vmdpotential.engines import get_engine
from vmdpotential.engines.cpu import ewald_pair
from vmdpotential.errors import InputError, NoRoomError, UsageError
from vmdpotential.io.forcefield import nonbonded
from vmdpotential.ions import place_ions, potential
from vmdpotential.ions.counts import Species, parse_list, plan_counts, water_molarity
from vmdpotential.ions.edit import name_ion
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure, Topology


def package(name):
    return Path(importlib.util.find_spec(name).origin).parent


JAC = package("openmmtools") / "data" / "dhfr" / "JAC.prmtop"
INPCRD = JAC.with_suffix(".inpcrd")
TESTDATA = package("MDAnalysisTests") / "data"
ADK = TESTDATA / "adk_oplsaa.tpr"
SIN = TESTDATA / "SiN_tric_namd.psf"
POPC = package("openmm") / "app" / "data" / "POPC.pdb"

SOD, CLA, MG, SO4 = Species("SOD", 1), Species("CLA", -1), Species("MG", 2), Species("SO4", -2)
WATERS = {"WAT", "TIP3", "SOL", "HOH"}


# ---- how many ------------------------------------------------------------------------------------------


def numbers(*arguments, **options):
    return {s.name: n for s, n in plan_counts(*arguments, **options).added}


@pytest.mark.parametrize(
    ("charge", "cation", "anion", "expected"),
    [
        (-11, SOD, CLA, {"SOD": 11}),
        (7, SOD, CLA, {"CLA": 7}),
        (0, SOD, CLA, {}),
        (-4, MG, CLA, {"MG": 2}),
        (-5, MG, CLA, {"MG": 3, "CLA": 1}),  # one more counter-ion, one monovalent co-ion
        (5, MG, CLA, {"CLA": 5}),
        (5, SOD, SO4, {"SO4": 3, "SOD": 1}),
        (-5, SOD, SO4, {"SOD": 5}),
        (-4, MG, SO4, {"MG": 2}),
        (-10.9996, SOD, CLA, {"SOD": 11}),
    ],
)
def test_neutralising_ions(charge, cation, anion, expected):
    counts = plan_counts(charge, 5000, cation, anion)
    assert {s.name: n for s, n in counts.added} == expected
    assert counts.added_charge == -round(charge)


@pytest.mark.parametrize(
    ("charge", "cation", "anion", "cations", "anions"),
    [
        (0, SOD, CLA, 27, 27),
        (-11, SOD, CLA, 38, 27),
        (6, MG, CLA, 27, 60),
        (-5, MG, CLA, 30, 55),
        (4, SOD, SO4, 54, 29),
        (-4, SOD, SO4, 58, 27),
        (-4, MG, SO4, 29, 27),
    ],
)
def test_salt_is_added_to_neutralising_ions(charge, cation, anion, cations, anions):
    # 0.15 mol/L in 10,000 molecules of 30.0 A^3, 3.0e-22 L: 27.1 formula units
    counts = numbers(charge, 10000, cation, anion, concentration=0.15)
    assert counts == {cation.name: cations, anion.name: anions}


def test_the_water_molarity_is_that_of_water_and_is_told():
    assert water_molarity() == pytest.approx(997.05 / 18.015, rel=2e-4)  # g/L at 25 C, g/mol
    counts = plan_counts(0, 7023, SOD, CLA, concentration=0.15)
    assert counts.data["added"] == {"SOD": 19, "CLA": 19}  # 20 where a molecule has 31.05 A^3
    assert counts.data["water_volume"] == 7023 * 30.0
    assert "19 SOD, 19 CLA for 0.15 mol/L in 210.7 nm^3 of water, 7023 molecules of 30 A^3" in counts.lines[2]


def test_odd_charge_with_divalent_ions_only_is_refused():
    with pytest.raises(UsageError, match="monovalent"):
        plan_counts(-5, 5000, MG, SO4)


@pytest.mark.parametrize("charge", [-40, -11, -1, 0, 1, 12, 33])
def test_sltcap_is_the_donnan_equilibrium(charge):
    waters, concentration = 20000, 0.1
    pairs = waters * concentration / water_molarity()
    found = numbers(charge, waters, SOD, CLA, concentration=concentration, method="sltcap")
    assert found["SOD"] - found["CLA"] == -charge
    # closed form: the product of the concentrations equals that of the bulk, N+ N- = N0^2
    ideal = math.sqrt(pairs**2 + charge**2 / 4) - abs(charge) / 2
    assert abs(min(found.values()) - ideal) <= 0.5


def test_sltcap_by_hand():
    # N0 = 50 and Q = -30: 50 exp(-asinh(0.3)) = 50 (sqrt(1.09) - 0.3) = 37.2
    assert numbers(-30, 1000 * 50, SOD, CLA, concentration=water_molarity() / 1000, method="sltcap") == {
        "SOD": 67, "CLA": 37,
    }  # fmt: skip


def test_split_by_hand_and_where_it_is_not_valid():
    concentration = water_molarity() / 1000  # N0 = 50 in 50000 waters
    assert numbers(-30, 50000, SOD, CLA, concentration=concentration, method="split") == {"SOD": 65, "CLA": 35}
    assert numbers(8, 50000, SOD, CLA, concentration=concentration, method="split") == {"SOD": 46, "CLA": 54}
    with pytest.raises(UsageError, match="not valid for a charge of -51"):
        plan_counts(-51, 50000, SOD, CLA, concentration=concentration, method="split")


@pytest.mark.parametrize("method", ["sltcap", "split"])
def test_sltcap_and_split_need_monovalent_ions_and_neutralise(method):
    with pytest.raises(UsageError, match="monovalent"):
        plan_counts(-3, 5000, MG, CLA, concentration=0.2, method=method)
    with pytest.raises(UsageError, match="neutralises"):
        plan_counts(-3, 5000, SOD, CLA, concentration=0.2, method=method, neutralize=False)


def test_existing_ions_are_part_of_the_salt_unless_told_otherwise():
    options = {"concentration": 0.15, "existing": [(SOD, 11), (CLA, 4)]}
    # 27 pairs and 7 counter-ions are wanted around a solute of -7; 11 and 4 are there
    assert numbers(0, 10000, SOD, CLA, **options) == {"SOD": 23, "CLA": 23}
    assert numbers(0, 10000, SOD, CLA, count_existing=False, **options) == {"SOD": 27, "CLA": 27}
    assert numbers(0, 10000, SOD, CLA, neutralize=False, **options) == {"SOD": 23, "CLA": 23}
    # more is there than asked for: what remains is neutralised only
    many = {"concentration": 0.15, "existing": [(SOD, 60), (CLA, 50)]}
    assert numbers(3, 10000, SOD, CLA, **many) == {"CLA": 3}
    # divalent ions count by their charge
    assert numbers(0, 10000, SOD, CLA, concentration=0.15, existing=[(MG, 5), (CLA, 10)]) == {"SOD": 17, "CLA": 17}


@pytest.mark.parametrize("method", ["add", "sltcap", "split"])
@pytest.mark.parametrize("charge", range(-9, 10, 3))
@pytest.mark.parametrize("existing", [(0, 0), (5, 0), (0, 7), (40, 40)])
def test_every_count_neutralises(method, charge, existing):
    there = [(SOD, existing[0]), (CLA, existing[1])]
    added = plan_counts(charge, 10000, SOD, CLA, concentration=0.15, method=method, existing=there)
    assert added.added_charge == -charge
    assert all(n > 0 for _, n in added.added)


def test_a_charge_that_is_no_integer_is_stated_or_refused():
    assert "taken as -11" in plan_counts(-10.98, 5000, SOD, CLA).warnings[0]
    with pytest.raises(InputError, match="not an integer"):
        plan_counts(-10.6, 5000, SOD, CLA)
    assert plan_counts(-10.6, 5000, SOD, CLA, neutralize=False).total == 0


def test_ion_lists():
    assert parse_list("SOD=11, CLA=2") == {"SOD": 11, "CLA": 2}
    for text in ("", "SOD", "SOD=", "=3", "SOD=1.5", "SOD=-1", "SOD=1,SOD=2", "11SOD", "SOD=1,,CLA=1"):
        with pytest.raises(ValueError):
            parse_list(text)


# ---- where: real systems ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def jac():
    return read_structure(INPCRD, topology=JAC)


@pytest.fixture(scope="module")
def adk():
    return read_structure(ADK.with_suffix(".gro"), topology=ADK)


@pytest.fixture(scope="module")
def sin():
    return read_structure(SIN.with_suffix(".dcd"), topology=SIN)


CASES = {
    "jac": {},
    "jac-salt": {"concentration": 0.15},
    "jac-random": {"concentration": 0.15, "site": "random", "seed": 7},
    "jac-divalent": {"cation": "MG", "concentration": 0.05},
    "adk-salt": {"concentration": 0.1},
    "adk-sltcap": {"concentration": 0.1, "count": "sltcap", "from_solute": 6, "between": 8},
    "sin-salt": {"concentration": 0.3, "count_existing": False, "from_solute": 4, "between": 4},
    "sin-list": {"ions": {"MG": 2, "CLA": 4, "SOD": 3, "Br-": 3}, "between": 4},
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    system = request.getfixturevalue(request.param.split("-")[0])
    return place_ions(system, **CASES[request.param]), CASES[request.param]


def image_distances(point, atoms, cell):
    """Distances to the nearest image, by trying all around the one that rounding finds."""
    fraction = (atoms - point) @ np.linalg.inv(cell.vectors)
    base = (fraction - np.round(fraction)) @ cell.vectors
    # one step is enough where no angle is below 60 degrees and no two sides differ much
    a, b, c, *angles = cell.parameters
    reach = 1 if min(angles) > 59.9 and max(angles) < 90.1 and max(a, b, c) < 1.5 * min(a, b, c) else 2
    steps = np.array(list(itertools.product(range(-reach, reach + 1), repeat=3)))
    return np.sqrt(np.min([((base + step @ cell.vectors) ** 2).sum(1) for step in steps], axis=0))


def parts(structure):
    """Solute and free ions of a structure, by names, without the program's own selections."""
    water = np.isin(structure.residue_names, list(WATERS))
    ion = np.isin(structure.residue_names, ["NA+", "POT", "CLA", "Na+", "Cl-", "SOD"])
    return np.flatnonzero(~water & ~ion), np.flatnonzero(ion)


def test_neutral_and_one_water_for_each_ion(case):
    placement, options = case
    before, after = placement.original, placement.structure
    count = len(placement.ions)
    assert count > 0
    if "ions" in options:
        assert sum(ion.charge for ion in placement.ions) == 0
    assert abs(after.net_charge) < 2e-4  # the topologies' own rounding
    assert sum(ion.charge for ion in placement.ions) == -round(before.net_charge)
    oxygens = [int(np.isin(s.residue_names, list(WATERS))[np.char.startswith(s.atom_names, "O")].sum())
               for s in (before, after)]
    assert oxygens[0] - oxygens[1] == count == placement.waters_removed
    sites = 4 if "SOL" in before.residue_names else 3
    assert len(after) == len(before) - sites * count + count
    # nothing else changed, and nothing moved
    kept = after.positions[: len(after) - count]
    rows = {tuple(p): i for i, p in enumerate(before.positions.tolist())}
    order = [rows[tuple(p)] for p in kept.tolist()]
    assert order == sorted(order)
    for name in ("atom_names", "residue_names", "residue_ids", "segment_ids", "charges", "elements"):
        np.testing.assert_array_equal(getattr(before, name)[order], getattr(after, name)[: len(after) - count])
    # each ion lies on the oxygen of a water that is gone
    gone = set(range(len(before))) - set(order)
    for ion in placement.ions:
        assert before.atom_names[rows[ion.position]].startswith("O")
        assert rows[ion.position] in gone
    assert len({ion.position for ion in placement.ions}) == count


def test_distances_of_every_atom_and_image(case):
    placement, options = case
    before, cell = placement.original, placement.original.cell
    solute, ions = parts(before)
    sites = np.array([ion.position for ion in placement.ions])
    for row, ion in enumerate(placement.ions):
        others = np.concatenate([before.positions[ions], np.delete(sites, row, 0)])
        to_solute = image_distances(sites[row], before.positions[solute], cell).min()
        to_ions = image_distances(sites[row], others, cell).min()
        assert to_solute >= options.get("from_solute", 5)
        assert to_ions >= options.get("between", 5)
        assert ion.solute_distance == pytest.approx(to_solute, abs=1e-9)
        assert ion.ion_distance == pytest.approx(to_ions, abs=1e-9)


def pair_potentials(sites, some, cell):
    """Ewald's potential at some sites (rows) of a unit charge at every one (columns), zero for its own images."""
    apart = (sites[some, None] - sites).reshape(-1, 3)
    matrix = ewald.potential(apart, np.zeros((1, 3)), np.ones(1), cell.vectors).reshape(len(some), -1)
    matrix[np.arange(len(some)), some] = 0.0
    return matrix


@pytest.mark.slow
def test_energies_are_independent_sums(case):
    placement, _ = case
    before, cell = placement.original, placement.original.cell
    atoms = np.concatenate(parts(before))
    kt = constants.e**2 / (4 * math.pi * constants.epsilon_0 * 1e-10) / (constants.k * 298.15)
    kcal = kt * constants.R * 298.15 / 4184
    by_order = sorted(placement.ions, key=lambda ion: ion.order)
    sites = np.array([ion.position for ion in by_order])
    charges = np.array([ion.charge for ion in by_order], float)
    some = np.unique(np.linspace(0, len(sites) - 1, 8).astype(int))  # the sums are long
    fixed = ewald.potential(sites[some], before.positions[atoms], before.charges[atoms], cell.vectors)
    pairs = pair_potentials(sites, some, cell) * charges
    for row, place in enumerate(some):
        ion = by_order[place]
        energy = ion.charge * (fixed[row] + pairs[row, :place].sum())
        final = ion.charge * (fixed[row] + pairs[row].sum())
        assert ion.energy_kt == pytest.approx(kt * energy, abs=1e-3)
        assert ion.final_energy_kt == pytest.approx(kt * final, abs=1e-3)
        assert ion.energy / ion.energy_kt == pytest.approx(kcal / kt)
        assert ion.final_energy / ion.final_energy_kt == pytest.approx(kcal / kt)


@pytest.mark.slow
def test_each_ion_takes_the_best_site_left(sin):
    """The whole greedy choice again, by definition."""
    placement = place_ions(sin, ions={"SOD": 4, "CLA": 4, "MG": 1}, from_solute=4, between=5, refine=False)
    solute, there = parts(sin)
    atoms = np.concatenate([solute, there])
    oxygens = np.flatnonzero(np.isin(sin.residue_names, list(WATERS)) & (sin.atom_names == "OH2"))
    allowed = np.zeros(len(oxygens), bool)
    for row, oxygen in enumerate(oxygens):
        r = image_distances(sin.positions[oxygen], sin.positions[atoms], sin.cell)
        allowed[row] = r[: len(solute)].min() >= 4 and r[len(solute) :].min() >= 5
    assert 9 < allowed.sum() < len(oxygens)
    oxygens = oxygens[allowed]
    places, allowed = sin.positions[oxygens], np.ones(len(oxygens), bool)
    potential = ewald.potential(places, sin.positions[atoms], sin.charges[atoms], sin.cell.vectors)
    total = 0
    for ion in sorted(placement.ions, key=lambda ion: ion.order):
        site = np.flatnonzero((places == ion.position).all(1)).item()
        assert allowed[site]
        # of sites as good to within 1e-6 e/A any may be taken; the sums' own errors come on top
        assert np.sign(ion.charge) * potential[site] < (np.sign(ion.charge) * potential[allowed]).min() + 3e-6
        allowed &= image_distances(places[site], places, sin.cell) >= 5
        if ion.order < len(placement.ions):
            allowed_places = places[allowed]
            potential[allowed] += ewald.potential(allowed_places, places[[site]], np.array([float(ion.charge)]),
                                                  sin.cell.vectors)
        # the running charge stays as near to zero as these species let it
        assert abs(total + ion.charge) <= 2
        total += ion.charge
    assert total == 2


def test_equal_sites_are_filled_in_the_order_of_the_file():
    # eight waters on the corners of a cube around the solute, all the same to it in a cubic cell
    corners = [np.array(corner) * 6.0 for corner in itertools.product((1, -1), repeat=3)]
    for cell in (None, Cell.from_parameters(40, 40, 40)):
        placement = place_ions(drop(-1.0, corners, cell))
        assert placement.ions[0].position == (6.0, 6.0, 6.0)


@pytest.mark.slow
@pytest.mark.parametrize("periodic", [True, False])
def test_many_sites_are_summed_by_a_mesh_and_agree(periodic, monkeypatch):
    from vmdpotential.methods import at_points

    random = np.random.default_rng(3)
    cell = Cell.from_parameters(50, 60, 55, 80, 95, 110)
    atoms, sites = random.uniform(0, 50, (2000, 3)), random.uniform(-10, 60, (300, 3))
    charges = random.choice([-0.8, 0.4, 0.4], 2000)
    monkeypatch.setattr(at_points, "COSTS", at_points.COSTS._replace(pair=1.0))  # so slow that it is left alone
    found = at_points.within(1e-7, sites, atoms, charges, cell if periodic else None, get_engine("cpu"))
    if periodic:
        expected = ewald.potential(sites, atoms, charges, cell.vectors)
    else:
        expected = (charges / np.linalg.norm(sites[:, None] - atoms, axis=2)).sum(1)
    assert np.sqrt(np.mean((found - expected) ** 2)) < 2e-7


# ---- moves to better sites ---------------------------------------------------------------------------------


def soup(cell):
    """Charged atoms here and there, of -6 e, and waters between them: greedy placement is not the best there."""
    random = np.random.default_rng(9)
    vectors = np.diag([21.0] * 3) if cell is None else cell.vectors
    steps = np.stack(np.meshgrid(*[np.arange(7)] * 3, indexing="ij"), -1).reshape(-1, 3)
    oxygens = ((steps + 0.5) / 7) @ vectors + random.uniform(-0.5, 0.5, (len(steps), 3))
    solute = random.permutation(len(oxygens))[:8]
    system = drop(0.0, np.delete(oxygens, solute, 0), cell)
    charges = np.array([-3, 2, -2, 1, -3, 2, -2, -1.0])
    positions = np.concatenate([oxygens[solute], system.positions[1:]])
    count = len(positions)
    return Structure(positions, ["C1"] * 8 + system.atom_names[1:].tolist(), ["LIG"] * 8 + ["TIP3"] * (count - 8),
                     np.r_[np.ones(8, int), system.residue_ids[1:]], np.r_[np.zeros(8, int), system.residue_index[1:]],
                     charges=np.r_[charges, system.charges[1:]], cell=cell)


def coulomb_at(points, positions, charges, cell):
    if cell is not None:
        return ewald.potential(points, positions, charges, cell.vectors)
    return (charges / np.maximum(np.linalg.norm(points[:, None] - positions, axis=2), 1e-9)).sum(1)


@pytest.mark.parametrize("cell", [None, *(pytest.param(Cell.from_parameters(*parameters), marks=pytest.mark.slow)
                                          for parameters in ((20, 21, 23), (21, 22, 23, 75, 80, 65)))])
def test_no_move_of_one_ion_to_a_free_site_gains(cell):
    """By definition: every ion, at every site that all its distances allow, with all other ions."""
    system = soup(cell)
    kt = constants.e**2 / (4e-10 * math.pi * constants.epsilon_0 * constants.k * 298.15)
    options = {"ions": {"MG": 4, "CLA": 4, "SOD": 2}, "from_solute": 3.5, "between": 5}
    first, placement = place_ions(system, refine=False, **options), place_ions(system, **options)
    assert first.moves == 0 < placement.moves
    oxygens = system.positions[system.atom_names == "OH2"]
    solute, charges = system.positions[:8], system.charges[:8]

    def apart(point, others):
        return np.linalg.norm(point - others, axis=1) if cell is None else image_distances(point, others, cell)

    allowed = oxygens[[apart(o, solute).min() >= 3.5 for o in oxygens]]
    fixed = coulomb_at(allowed, solute, charges, cell)

    def energies(ions):
        """The energy of all ions (e^2/A), and the least that any of them could gain by a move."""
        sites, ionic = np.array([ion.position for ion in ions]), np.array([float(ion.charge) for ion in ions])
        total, best = 0.0, -np.inf
        pairs = coulomb_at((allowed - sites[:, None]).reshape(-1, 3), np.zeros((1, 3)), np.ones(1), cell)
        pairs = pairs.reshape(len(sites), -1)
        free = np.array([apart(site, allowed) >= 5 for site in sites])
        for row in range(len(ions)):
            others = np.arange(len(ions)) != row
            energy = ionic[row] * (fixed + sum(ionic[n] * pairs[n] for n in np.flatnonzero(others)))
            here = np.flatnonzero((allowed == sites[row]).all(1)).item()
            total += (energy[here] + ionic[row] * fixed[here]) / 2
            best = max(best, (energy[here] - energy[free[others].all(0)].min()) / abs(ionic[row]))
            assert ions[row].final_energy_kt == pytest.approx(kt * energy[here], abs=2e-3)
        return total, best

    total, could = energies(placement.ions)
    assert could < 5e-6
    before, after = (sum(ion.energy for ion in each.ions) for each in (first, placement))
    assert after == pytest.approx(332.06371 * total, abs=5e-3)
    assert placement.gain == pytest.approx(before - after, abs=5e-3) != 0
    assert f"of single ions to better sites gained {placement.gain:.3f} kcal/mol" in "\n".join(placement.lines)
    assert placement.data["moves"] == placement.moves
    again = place_ions(system, **options)
    assert again.ions == placement.ions


@pytest.mark.parametrize("parameters", [(20, 21, 23), (21, 22, 23, 75, 80, 65)])
@pytest.mark.parametrize("few", [1, 10**6])
def test_ions_go_to_the_same_sites_where_a_part_of_the_potential_waits(parameters, few, monkeypatch):
    """As it does for many waters only; with `few` it waits until the end, or never for long."""
    system = soup(Cell.from_parameters(*parameters))
    options = {"ions": {"MG": 3, "CLA": 9, "SOD": 9}, "from_solute": 3.0, "between": 3}
    summed = place_ions(system, **options)
    monkeypatch.setattr(ewald_pair, "_NODES_A_SITE", 10**9)
    monkeypatch.setattr(potential, "_FEW", few)
    waited = place_ions(system, **options)
    assert [ion.position for ion in waited.ions] == [ion.position for ion in summed.ions]
    assert waited.moves == summed.moves > 0
    assert waited.gain == pytest.approx(summed.gain, abs=5e-3)


# ---- files, read by other programs -----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("system", ["jac", "adk", "sin"])
def test_files_are_read_by_mdanalysis_and_parmed(system, tmp_path, request):
    import MDAnalysis
    import parmed

    before = request.getfixturevalue(system)
    files = [tmp_path / f"out{suffix}" for suffix in (".psf", ".pdb", ".cif", ".pqr")]
    options = {"count_existing": False, "from_solute": 4, "between": 4} if system == "sin" else {}
    table = tmp_path / "ions.csv"
    report = command(structure=before, output=files, table=table, concentration=0.2, **options)
    placement = report.objects["placement"]
    after, count = placement.structure, len(placement.ions)

    psf = parmed.load_file(str(files[0]))
    universe = MDAnalysis.Universe(str(files[0]), str(files[1]))
    for charges in (np.array([a.charge for a in psf.atoms]), universe.atoms.charges):
        np.testing.assert_allclose(charges, after.charges, atol=1e-6)
        assert abs(charges.sum()) < 3e-4
    pqr = MDAnalysis.Universe(str(files[3]))
    np.testing.assert_allclose(pqr.atoms.charges, after.charges, atol=1e-4)
    np.testing.assert_allclose(universe.atoms.positions, after.positions, atol=6e-4)
    assert universe.dimensions[:3] == pytest.approx(before.cell.parameters[:3], abs=1e-2)
    ions = universe.atoms[-count:]
    assert set(ions.segids) == {"ION2" if system == "sin" else "ION"}  # sin has a segment ION
    assert ions.resids.tolist() == list(range(1, count + 1))
    assert ions.resnames.tolist() == [ion.name for ion in placement.ions]
    assert ions.masses == pytest.approx(
        [{"Na+": 22.99, "NA+": 22.99, "SOD": 22.99, "Cl-": 35.45, "CL-": 35.45, "CLA": 35.45}[n]
         for n in ions.resnames], abs=0.03)  # fmt: skip
    # every bonded term of the kept atoms is there, in other words: those of the waters are not
    rows = {tuple(p): i for i, p in enumerate(before.positions.tolist())}
    removed = np.setdiff1d(np.arange(len(before)), [rows[tuple(p)] for p in after.positions[:-count].tolist()])
    for name, found in (("bonds", psf.bonds), ("angles", psf.angles)):
        terms = getattr(before.topology, name)
        expected = (~np.isin(terms, removed).any(1)).sum()
        waters = np.isin(before.residue_names, list(WATERS))
        if name == "angles" and not waters[terms].any():  # rigid ones get an angle each
            expected += (np.isin(after.residue_names, list(WATERS)) & (after.elements == "O")).sum()
        assert len(found) == expected
    assert all(len(psf.atoms[-i].bonds) == 0 for i in range(1, count + 1))

    cif = read_structure(files[2])
    np.testing.assert_allclose(cif.positions, after.positions, atol=6e-4)
    with table.open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["name"] for row in rows] == [ion.name for ion in placement.ions]
    assert [float(row["energy_kT"]) for row in rows] == pytest.approx([i.energy_kt for i in placement.ions], abs=1e-6)
    assert [float(row["x_A"]) for row in rows] == pytest.approx(after.positions[-count:, 0].tolist(), abs=1e-4)


def test_a_pdb_without_topology_gets_its_charges_from_templates(tmp_path):
    out = tmp_path / "out.pdb"
    report = command(structure=POPC, concentration=0.1, output=[out])
    again = read_structure(out)
    assert len(again) == len(report.objects["structure"])
    assert again.residue_names[-1] == "CL"
    assert again.elements[-1] == "Cl"
    assert sum(again.residue_names == "NA") == report.data["counts"]["added"]["NA"] == 9
    assert report.data["boundary"] == "periodic"
    assert report.data["cell"] == list(again.cell.parameters)
    assert report.data["water_models"] == {"TIP3P": "by default"}
    assert report.lines[0].startswith(f"charges from {report.data['force_field']} templates")
    assert "water TIP3P (by default)" in report.lines[0]
    assert report.lines[1].startswith("periodic boundary (cell ")
    assert json.loads(json.dumps(report.data, allow_nan=False)) == report.data


# ---- reproducible, reversible ----------------------------------------------------------------------------


def positions(placement):
    return [ion.position for ion in placement.ions]


def test_the_same_input_gives_the_same_ions(jac):
    assert positions(place_ions(jac, concentration=0.1)) == positions(place_ions(jac, concentration=0.1))
    random = {"site": "random", "concentration": 0.1}
    first = place_ions(jac, seed=1, **random)
    assert positions(first) == positions(place_ions(jac, seed=1, **random))
    assert positions(first) != positions(place_ions(jac, seed=2, **random))
    unseeded = place_ions(jac, **random)
    assert positions(unseeded) == positions(place_ions(jac, seed=unseeded.seed, **random))
    assert f"seed {unseeded.seed}" in " ".join(unseeded.lines)
    assert first.original is jac


def test_a_periodic_shift_changes_no_choice(sin):
    options = {"concentration": 0.3, "count_existing": False, "from_solute": 4, "between": 4}
    shift = np.array([1, -2, 1]) @ sin.cell.vectors
    whole = np.array(sin.positions)  # every second residue is moved
    for first, last in itertools.pairwise(sin.residue_starts):
        whole[first:last] = sin.positions[first:last] + shift * (first % 2)
    moved = replace(sin, positions=whole)
    assert [i.water for i in place_ions(sin, **options).ions] == [i.water for i in place_ions(moved, **options).ions]


def test_running_again_adds_nothing_and_further_ions_get_a_segment_of_their_own(jac):
    once = place_ions(jac, concentration=0.1)
    assert place_ions(once.structure).counts.total == 0
    twice = place_ions(once.structure, ions={"SOD": 1, "CLA": 1})
    assert twice.structure.segment_ids[-1] == "ION2"
    assert twice.structure.chain_ids[-1] != once.structure.chain_ids[-1]
    assert twice.ions[0].name == "Na+"


def test_waters_may_be_kept(jac):
    first = place_ions(jac)
    number = first.ions[0].water.split()[1]
    second = place_ions(jac, keep=f"//*/{number}")
    assert first.ions[0].position not in positions(second)
    assert len(second.ions) == 11
    with pytest.raises(UsageError, match="selects no water"):
        place_ions(jac, keep="//*/1-5")


# ---- names -----------------------------------------------------------------------------------------------


def test_names_follow_the_input(jac, adk, sin):
    assert name_ion(jac, "SOD", "cation")[:3] == ("Na+", "Na+", "Na+")
    assert name_ion(jac, "MG", "cation")[:3] == ("MG", "MG", "Mg2+")
    assert name_ion(adk, "SOD", "cation")[:2] == ("NA+", "NA")  # as the ions that are there
    assert name_ion(adk, "CLA", "anion")[:2] == ("CL-", "CL")
    assert name_ion(sin, "POT", "cation")[:3] == ("POT", "POT", "POT")
    assert name_ion(sin, "ZN2", "cation")[:3] == ("ZN2", "ZN", "ZN")
    for name in ("K", "K+", "POT", "k"):  # in any program's name, residue, atom and type are the input's
        assert name_ion(sin, name, "cation")[:3] == ("POT", "POT", "POT")
        assert name_ion(jac, name, "cation")[:3] == ("K+", "K+", "K+")
        assert name_ion(adk, name, "cation")[:2] == ("K+", "K")
    assert name_ion(sin, "Na+", "cation")[:3] == ("SOD", "SOD", "SOD")
    assert name_ion(jac, "Na+", "cation", "charmm")[0] == "SOD"
    assert name_ion(jac, "CAL", "cation", "gromacs")[:2] == ("CA", "CA")
    for name, charge in (("SOD", 1), ("CLA", -1), ("CAL", 2), ("LA", 3)):
        assert name_ion(jac, name, "ions").charge == charge
    with pytest.raises(UsageError, match=r"cation=XX: no such ion; known are Li, Na, K, .*, Lu, In, as SOD"):
        name_ion(jac, "XX", "cation")


# ---- small systems whose answer is plain -----------------------------------------------------------------


def drop(charge, oxygens, cell=None, **fields):
    """A charged atom at the origin and waters around it."""
    positions, names, residues, index = [(0.0, 0.0, 0.0)], ["C1"], ["LIG"], [0]
    for number, oxygen in enumerate(oxygens, 1):
        positions += [oxygen, np.add(oxygen, (0.96, 0, 0)), np.add(oxygen, (-0.24, 0.93, 0))]
        names += ["OH2", "H1", "H2"]
        residues += ["TIP3"] * 3
        index += [number] * 3
    charges = [charge, *([-0.834, 0.417, 0.417] * len(oxygens))]
    return Structure(
        positions=np.array(positions), atom_names=names, residue_names=residues, residue_ids=np.array(index) + 1,
        residue_index=index, charges=charges, cell=cell, **fields,
    )


def test_the_nearest_allowed_water_without_a_cell():
    structure = drop(-1.0, [(4, 0, 0), (6, 0, 0), (0, 9, 0)])
    placement = place_ions(structure)
    assert placement.ions[0].position == (6.0, 0.0, 0.0)
    assert placement.ions[0].energy == pytest.approx(-332.0637 / 6, abs=1e-3)
    assert placement.ions[0].ion_distance is None
    assert place_ions(structure, dielectric=80).ions[0].energy == pytest.approx(-332.0637 / 480, abs=1e-4)
    assert placement.structure.residue_names.tolist() == ["LIG"] + ["TIP3"] * 6 + ["SOD"]


def test_a_system_without_a_cell_is_told_and_can_be_given_one(caplog):
    structure = drop(-1.0, [(4, 0, 0), (6, 0, 0), (0, 9, 0)])
    report = command(structure=structure)
    assert report.lines[1] == "open boundary"
    assert (report.data["boundary"], report.data["cell"]) == ("open", None)
    assert "has no periodic cell, so ions see no images" in caplog.text
    assert "{cell}" in caplog.records[0].msg
    caplog.clear()
    report = command(structure=structure, cell="30,30,30")
    assert report.lines[1] == "periodic boundary (cell 30 x 30 x 30 A), Ewald's sum"
    assert (report.data["boundary"], report.data["cell"]) == ("periodic", [30, 30, 30, 90, 90, 90])
    assert not caplog.records
    assert report.objects["structure"].cell.volume == pytest.approx(27000)


@pytest.mark.parametrize("names", ["OH2 H1 H2 OM", "OH2 OM H1 H2"])
@pytest.mark.parametrize("element", ["", "O"])  # PDB files call the site an oxygen
def test_charmms_four_site_water_is_replaced(names, element):
    atoms = names.split()
    place = {"OH2": (0, 0, 0), "H1": (0.586, 0.757, 0), "H2": (0.586, -0.757, 0), "OM": (0.15, 0, 0)}
    centres = np.array([(6, 0, 0), (0, 8, 0), (0, 0, 9)])
    positions = np.concatenate([[(0, 0, 0)], *(np.array([place[name] for name in atoms]) + c for c in centres)])
    elements = [{"O": "O", "H": "H"}[name[0]] if name != "OM" else element for name in atoms]
    structure = Structure(positions, ["CLA", *atoms * 3], ["CLA", *["TIP4"] * 12], [1, *np.repeat([2, 3, 4], 4)],
                          [0, *np.repeat([1, 2, 3], 4)], elements=["Cl", *elements * 3])
    placement = place_ions(vmdpotential.assign_charges(structure))
    assert len(placement.structure) == 1 + 8 + 1
    assert placement.structure.net_charge == pytest.approx(0)
    assert placement.ions[0].position == (6, 0, 0)


def test_the_nearest_image_counts():
    # the image of the solute at x = 20 is nearer to the second water (5.5) than to the first (6)
    cell = Cell.from_parameters(20, 30, 30)
    placement = place_ions(drop(-1.0, [(6, 0, 0), (14.5, 0, 0), (17, 0, 0)], cell))
    assert placement.ions[0].position == (14.5, 0.0, 0.0)
    assert placement.ions[0].solute_distance == pytest.approx(5.5)
    assert placement.ions[0].ion_distance == pytest.approx(20)  # its own image


def test_a_site_at_exactly_the_distance_is_allowed():
    placement = place_ions(drop(-2.0, [(5, 0, 0), (10, 0, 0)]), from_solute=5, between=5)
    assert sorted(positions(placement)) == [(5.0, 0.0, 0.0), (10.0, 0.0, 0.0)]


def test_a_pure_water_box_takes_salt(tmp_path):
    grid = [(x, y, z) for x in range(3, 30, 3) for y in range(3, 30, 3) for z in range(3, 30, 3)]
    structure = drop(0.0, grid, Cell.from_parameters(30, 30, 30)).take(np.arange(1, 1 + 3 * len(grid)))
    placement = place_ions(structure, concentration=0.5)
    assert [(s.name, n) for s, n in placement.counts.added] == [("SOD", 7), ("CLA", 7)]
    assert placement.ions[0].solute_distance is None


def test_kinds_of_room_that_run_out():
    waters = [(6.0, 0, 0), (0, 6.5, 0), (0, 7.5, 0)]
    with pytest.raises(NoRoomError, match=r"1 of 2 ions placed.*20 A from the other ions.*lower between") as error:
        place_ions(drop(-2.0, waters), between=20)
    assert error.value.exit_code == 3
    with pytest.raises(NoRoomError, match=r"0 of 2 .*only 1 of 3 waters.*7 A from the solute.*lower from_solute"):
        place_ions(drop(-2.0, waters), from_solute=7)
    with pytest.raises(NoRoomError, match="only 3 waters"):
        place_ions(drop(-4.0, waters))
    with pytest.raises(NoRoomError, match="own image"):
        place_ions(drop(-1.0, waters, Cell.from_parameters(12, 12, 12)), between=12.5)
    with pytest.raises(NoRoomError, match="own image"):
        place_ions(drop(-1.0, waters, Cell.from_parameters(40, 40, 12)), between=12.5, site="random", seed=1)


def test_unsuitable_structures():
    with pytest.raises(InputError, match="no waters"):
        place_ions(drop(-1.0, []))
    with pytest.raises(InputError, match=r"asymmetric unit of a crystal \(P 2\); expand it to the cell and solvate"):
        place_ions(drop(-1.0, [(6, 0, 0)], Cell.from_parameters(40, 40, 40, space_group="P 2")))
    with pytest.raises(InputError, match="no charges"):
        place_ions(replace(drop(-1.0, [(6, 0, 0)]), charges=None))
    charged = drop(-1.0, [(6, 0, 0), (8, 0, 0)])
    with pytest.raises(InputError, match="TIP33:OH2 with"):
        place_ions(charged.with_charges([*charged.charges[:-1], 0.1]))
    merged = replace(charged, residue_index=[0] + [1] * 6)
    with pytest.raises(InputError, match="second oxygen"):
        place_ions(merged)
    with pytest.raises(InputError, match="not an integer"):
        place_ions(drop(-1.5, [(6, 0, 0)]))


def test_bonds_of_removed_waters_go_and_ions_get_types():
    bonds = np.array([(1, 2), (1, 3), (4, 5), (4, 6)])
    types, masses = ["CT", *(["OT", "HT", "HT"] * 2)], [12.0, *([16.0, 1.0, 1.0] * 2)]
    topology = Topology("psf", np.array(types), np.array(masses), bonds)
    placement = place_ions(drop(-1.0, [(6, 0, 0), (9, 0, 0)], topology=topology))
    edited = placement.structure.topology
    assert edited.bonds.tolist() == [[1, 2], [1, 3]]
    assert edited.types.tolist() == ["CT", "OT", "HT", "HT", "SOD"]
    assert edited.masses[-1] == pytest.approx(22.99, abs=0.01)


# ---- the command -----------------------------------------------------------------------------------------


def shell(capsys, *arguments):
    """Run the command as a shell does; exit code, stdout, stderr."""
    from vmdpotential.frontend import cli

    code = cli.main(["ionize", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_dry_run_says_where_and_writes_nothing(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = shell(capsys, INPCRD, "--topology", JAC, "--dry-run", "-o", "a.pdb", "--table", "a.csv")
    assert code == 0
    assert "neutralising ions: 11 Na+" in out
    assert len([line for line in out.splitlines() if line.split()[:1] == ["Na+"]]) == 11
    assert not list(tmp_path.iterdir())
    code, out, _ = shell(capsys, INPCRD, "--topology", JAC, "--dry-run", "--json", "--site", "random", "--seed", "4")
    data = json.loads(out)
    assert data["seed"] == 4
    assert data["counts"]["net_charge_after"] == pytest.approx(0, abs=2e-4)
    assert len(data["ions"]) == 11


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ([], 2, "--output: a file for the result is needed"),
        (["--dry-run", "--cation", "XX"], 2, "--cation XX: no such ion"),
        (["--dry-run", "--cation", "CLA"], 2, "--cation CLA: its charge is -1"),
        (["--dry-run", "--anion", "SOD"], 2, "--anion SOD: its charge is +1"),
        (["--dry-run", "--concentration", "150"], 2, "at most 10 mol/L"),
        (["--dry-run", "--concentration", "-1"], 2, "at least 0 mol/L"),
        (["--dry-run", "--concentration", "nan"], 2, "finite number"),
        (["--dry-run", "--ions", "SOD:3"], 2, "NAME=NUMBER"),
        (["--dry-run", "--ions", "SOD=3,NA=1"], 2, "same ion"),
        (["--dry-run", "--ions", "SOD=3", "--concentration", "1"], 2, "leave out --concentration"),
        (["--dry-run", "--count", "split", "--concentration", "0.01"], 2, "not valid"),
        (["--dry-run", "--keep", "//*/99999"], 2, "no atoms"),
        (["-o", "a.prmtop"], 2, "prmtop"),
        (["-o", "a.xyz"], 2, "a.xyz"),
        (["-o", "a.pdb", "--table", "a.pdb"], 2, "named twice"),
        (["-o", "no/a.pdb"], 3, "does not exist"),
        (["-o", "there.pdb"], 2, "--force"),
        (["-o", "a.pdb", "--table", "there.pdb"], 2, "--force"),
        (["-o", "a.pdb", "--from-solute", "40"], 3, "0 of 11 ions placed"),
        (["-o", "a.pdb", "a.psf", "--table", "a.csv", "--between", "45"], 3, "of 11 ions placed"),
    ],
)
def test_wrong_usage_is_one_line_and_writes_nothing(options, code, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("there.pdb").write_text("mine\n")
    found, out, error = shell(capsys, INPCRD, "--topology", JAC, *options)
    assert (found, out) == (code, "")
    assert message in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["there.pdb"]
    assert Path("there.pdb").read_text() == "mine\n"


def test_a_psf_needs_bonds(capsys, tmp_path):
    code, _, error = shell(capsys, POPC, "--ions", "SOD=1", "-o", tmp_path / "a.psf")
    assert (code, "needs bonds" in error) == (2, True)


def test_outputs_appear_together_or_not_at_all(sin, tmp_path, monkeypatch):
    from vmdpotential.io import pdb

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pdb, "write_pdb", full)
    with pytest.raises(Exception, match="disk is full"):
        command(structure=sin, ions="SOD=1,CLA=1", between=4, output=[tmp_path / "a.psf", tmp_path / "a.pdb"],
                table=tmp_path / "a.csv")  # fmt: skip
    assert not list(tmp_path.iterdir())


def test_viewers_pass_a_structure_and_need_no_output(sin):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = command(structure=sin, ions="SOD=2,CLA=2", between="4")
    assert report.objects["structure"].residue_names[-4:].tolist() == ["SOD", "SOD", "CLA", "CLA"]
    assert report.data["files"] == []


def test_kept_atoms_are_those_the_new_structure_begins_with(jac):
    placement = place_ions(jac, concentration=0.05)
    kept = placement.kept_atoms
    assert len(kept) + len(placement.ions) == len(placement.structure)
    np.testing.assert_array_equal(placement.structure.positions[: len(kept)], jac.positions[kept])
    np.testing.assert_array_equal(placement.structure.atom_names[: len(kept)], jac.atom_names[kept])


def test_placed_ions_have_no_parameters_of_the_file_that_does_not_know_them(jac):
    placed = place_ions(jac, concentration=0.1).structure
    with pytest.raises(InputError, match="van der Waals"):
        nonbonded(placed)
