"""Ion placement in real systems: sites and energies against brute force, files against other programs."""

import csv
import itertools
import json
import math
import warnings
from dataclasses import replace

import ewald
import numpy as np
import pytest
from helpers import refused, slow
from messages import Words, naming
from scipy import constants
from structure_files import MDA, OPENMM, TOOLS

from vmdpotential import read_structure
from vmdpotential.errors import InputError
from vmdpotential.plugins.forcefields.forcefield import nonbonded
from vmdpotential.plugins.ions.command import command
from vmdpotential.plugins.ions.edit import name_ion
from vmdpotential.plugins.ions.place import place_ions

WATERS = {"WAT", "TIP3", "SOL", "HOH"}


# ---- where ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def jac():
    return read_structure(TOOLS / "dhfr" / "JAC.inpcrd", topology=TOOLS / "dhfr" / "JAC.prmtop")


@pytest.fixture(scope="module")
def adk():
    return read_structure(MDA / "adk_oplsaa.gro", topology=MDA / "adk_oplsaa.tpr")


@pytest.fixture(scope="module")
def sin():
    return read_structure(MDA / "SiN_tric_namd.dcd", topology=MDA / "SiN_tric_namd.psf")


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


@pytest.fixture(scope="module", params=slow(CASES, ["adk-salt", "adk-sltcap"]))
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
    # each ion is on the oxygen of a water that is gone
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


def pair_potentials(sites, chosen, cell):
    """Ewald's potential at some sites (rows) of a unit charge at every one (columns), zero for its own images."""
    apart = (sites[chosen, None] - sites).reshape(-1, 3)
    matrix = ewald.potential(apart, np.zeros((1, 3)), np.ones(1), cell.vectors).reshape(len(chosen), -1)
    matrix[np.arange(len(chosen)), chosen] = 0.0
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
    chosen = np.unique(np.linspace(0, len(sites) - 1, 8).astype(int))  # the sums are long
    fixed = ewald.potential(sites[chosen], before.positions[atoms], before.charges[atoms], cell.vectors)
    pairs = pair_potentials(sites, chosen, cell) * charges
    for row, place in enumerate(chosen):
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
    with refused("keep"):
        place_ions(jac, keep="//*/1-5")


# ---- names -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_names_follow_the_input(jac, adk, sin):
    assert name_ion(jac, "SOD", "cation")[:3] == ("Na+", "Na+", "Na+")
    assert name_ion(jac, "MG", "cation")[:3] == ("MG", "MG", "Mg2+")
    assert name_ion(adk, "SOD", "cation")[:2] == ("NA+", "NA")  # as the ions that are there
    assert name_ion(adk, "CLA", "anion")[:2] == ("CL-", "CL")
    charmm = replace(adk, residue_names=np.where(adk.residue_names == "NA+", "SOD", adk.residue_names))
    assert name_ion(charmm, "CLA", "anion")[:2] == ("CLA", "CLA")  # of one program, whatever its waters are called
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
    with refused("cation", "XX"):
        name_ion(jac, "XX", "cation")


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
    for name, actual in (("bonds", psf.bonds), ("angles", psf.angles)):
        terms = getattr(before.topology, name)
        expected = (~np.isin(terms, removed).any(1)).sum()
        waters = np.isin(before.residue_names, list(WATERS))
        if name == "angles" and not waters[terms].any():  # rigid ones get an angle each
            expected += (np.isin(after.residue_names, list(WATERS)) & (after.elements == "O")).sum()
        assert len(actual) == expected
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
    report = command(structure=OPENMM / "POPC.pdb", concentration=0.1, output=[out])
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


# ---- as programs and viewers call it -------------------------------------------------------------------


def test_viewers_pass_a_structure_and_need_no_output(sin):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = command(structure=sin, ions="SOD=2,CLA=2", between="4")
    assert report.objects["structure"].residue_names[-4:].tolist() == ["SOD", "SOD", "CLA", "CLA"]
    assert report.data["files"] == []


def test_placed_ions_have_no_parameters_of_the_file_that_does_not_know_them(jac):
    placed = place_ions(jac, concentration=0.1).structure
    with naming(InputError, Words.NO_LENNARD_JONES):
        nonbonded(placed)
