"""Maps of probe atoms against OpenMM and AutoGrid; free energies of molecules against insertions in numpy."""

import csv
import json
import pickle
import shutil
from functools import cache
from importlib import resources
from xml.etree import ElementTree

import numpy as np
import openmm
import pytest
import sums
from helpers import shell
from structure_files import TOOLS

from vmdpotential import io
from vmdpotential.engines import get_engine
from vmdpotential.errors import InputError, UsageError
from vmdpotential.execution.blocks import run_blocks
from vmdpotential.frames.ligand import merge, plan_insertions
from vmdpotential.grid.lattice import Grid, Lattice
from vmdpotential.interactions import probe as pages
from vmdpotential.interactions import sigmoidal_dielectric
from vmdpotential.io.maps.autodock import write_autodock
from vmdpotential.io.topologies.forcefield import nonbonded
from vmdpotential.io.trajectories.frames import Loaded
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.nonbonded import Nonbonded, lorentz_berthelot
from vmdpotential.molecule.structure import Structure
from vmdpotential.probes import autodock
from vmdpotential.probes.energies import probe_sum, type_sum
from vmdpotential.probes.ligands import KELVIN, LIGANDS, Ligand, read_ligand
from vmdpotential.probes.paths import minima_and_barriers
from vmdpotential.units import coulomb_constant

PEPTIDE = TOOLS / "alanine-dipeptide-explicit"
O2 = LIGANDS["O2"]


@cache
def peptide_and_terms():
    structure = io.read_structure(PEPTIDE / "alanine-dipeptide.crd", PEPTIDE / "alanine-dipeptide.prmtop")
    return structure, nonbonded(structure)


def spheres(count, cell, sigma, epsilon, seed=0):
    """Return spheres at random places of a cell, and their Lennard-Jones."""
    positions = np.random.default_rng(seed).uniform(size=(count, 3)) @ cell.vectors
    structure = Structure(positions, np.full(count, "NE"), np.full(count, "NE"), np.arange(count), np.arange(count),
                          elements=np.full(count, "Ne"), cell=cell)
    c6, c12 = lorentz_berthelot(np.array([sigma]), np.array([epsilon]))
    none = np.zeros((0, 2), np.int64)
    return structure, Nonbonded("spheres", ("NE",), np.zeros(count, np.int64), c6, c12, none, none, np.zeros(0),
                                np.zeros(0), np.zeros(0))


@pytest.mark.parametrize("page", [pages.DISPERSION, pages.GAUSSIAN, pages.SCREENED],
                         ids=lambda page: page.name)
def test_pages_state_their_values(page, engine):
    for check in page.checks:
        bound = page.bind(**check.parameters)
        assert bound(check.r) == pytest.approx(check.value, rel=1e-9)
        result = sums.at_points(engine, np.array([[check.r, 0, 0]]), np.zeros((1, 3)), np.ones(1), bound)
        assert result[0] == pytest.approx(check.value, rel=1e-9)


@pytest.mark.slow
def test_a_test_particle_of_openmm(engine):
    structure, terms = peptide_and_terms()
    sigma, epsilon = 3.02, 0.0974
    lattice = Lattice.over_cell(structure.cell, 1.0, structure.positions.min(0))
    ours = probe_sum(terms, sigma, epsilon, 10.0).energies(engine, lattice, structure.positions, structure.cell).ravel()
    system = openmm.System()
    force = openmm.CustomNonbondedForce("4*sqrt(e1*e2)*((s/r)^12-(s/r)^6); s=(s1+s2)/2")
    force.addPerParticleParameter("s")
    force.addPerParticleParameter("e")
    for kind in terms.types:
        system.addParticle(1.0)
        force.addParticle([terms.sigma[kind], terms.epsilon[kind]])
    system.addParticle(1.0)
    force.addParticle([sigma, epsilon])
    force.addInteractionGroup([len(structure)], range(len(structure)))
    force.setNonbondedMethod(openmm.CustomNonbondedForce.CutoffPeriodic)
    force.setCutoffDistance(10.0)  # lengths in A stand for nm, and kcal/mol for kJ/mol
    system.addForce(force)
    system.setDefaultPeriodicBoxVectors(*np.diag(np.diagonal(structure.cell.vectors)))
    context = openmm.Context(system, openmm.VerletIntegrator(1), openmm.Platform.getPlatformByName("CPU"))
    points = lattice.points()
    chosen = np.random.default_rng(0).choice(np.flatnonzero(ours < 100), 200, replace=False)
    for node in chosen:
        context.setPositions(np.concatenate([structure.positions, points[node : node + 1]]))
        theirs = context.getState(getEnergy=True).getPotentialEnergy()._value
        assert ours[node] == pytest.approx(theirs, abs=1e-3)


def test_a_type_of_the_force_field_has_the_pairs_of_its_table(engine):
    structure, terms = peptide_and_terms()
    name = terms.names[int(terms.types[-3])]
    own = type_sum(terms, name, 9.0)
    row = terms.names.index(name)
    lattice = Lattice(structure.positions[0] + 0.7, np.full(3, 1.7), (6, 5, 7))
    actual = own.energies(engine, lattice, structure.positions, None).ravel()
    for point, value in zip(lattice.points(), actual, strict=True):
        r = np.linalg.norm(structure.positions - point, axis=1)
        r, kinds = r[r < 9], terms.types[r < 9]
        expected = (terms.c12[row, kinds] / r**12 - terms.c6[row, kinds] / r**6).sum()
        assert value == pytest.approx(expected, rel=1e-3, abs=1e-4)
    with pytest.raises(UsageError):
        type_sum(terms, "no such type", 9.0)


#: Ten atoms, by their types, places and charges, and what autogrid4 4.2.6 has at some of the nodes of 11 x 11 x 11 that
#: are 1 A apart around (0.5, 0.5, 0.5), with smoothing 0.5 and the dielectric -0.1465.
ATOMS = ["C", "A", "N", "OA", "SA", "C", "OA", "N", "HD", "Zn"]
PLACES = np.array([[0, 0, 0], [3.1, .4, -.3], [-2.2, 2.1, 1.3], [1.1, -3.2, 2.0], [-3.3, -1.4, -2.1], [2.5, 3.4, 2.2],
                   [4.6, -2.5, -3.1], [0.3, 4.1, -3.3], [1.2, 4.3, -3.6], [-4.4, 3.2, -3.0]])
CHARGES = np.array([.1, -.05, -.35, -.4, -.1, .2, -.5, -.3, .35, .9])
NODES = [(0, 0, 0), (10, 10, 10), (2, 8, 5), (9, 4, 7), (5, 5, 10), (0, 7, 3), (7, 1, 1), (3, 3, 9), (10, 5, 5),
         (6, 9, 6)]
AUTOGRID = {
    "C": [-0.033, -0.017, 92.65, -0.051, -0.048, 2.963, 0.941, -0.065, 1.472, 196.786],
    "N": [-0.034, -0.014, 41.06, -0.074, -0.039, 0.714, 0.304, -0.054, 0.581, 92.651],
    "Cl": [-0.043, -0.023, 145.36, -0.055, -0.066, 5.023, 1.532, -0.088, 2.338, 305.745],
    "H": [-0.003, 0.0, 0.668, -0.01, 0.0, -0.024, -0.009, -0.002, -0.005, 2.038],
    "e": [-0.04, 0.032, -0.926, -0.243, -0.138, 3.291, -1.047, -0.302, -0.25, 0.693],
    "d": [0.03, 0.019, 0.111, 0.095, 0.065, 0.082, 0.073, 0.069, 0.099, 0.114],
}


def by_definition(probe, point, table):
    """Return the energy of a probe at a point, by distances as they are or, as in AutoGrid's tables, cut to 0.01 A."""
    total = 0.0
    for kind, place, charge in zip(ATOMS, PLACES, CHARGES, strict=True):
        r, atom = np.linalg.norm(place - point), autodock.KINDS[kind]
        r = np.floor(r * 100) / 100 if table else r
        if probe == "e":
            permittivity = 1 / (sigmoidal_dielectric.INTERACTION.bind()(r) * r)
            distance = max(np.linalg.norm(place - point), 0.5)
            total += autodock.COULOMB_WEIGHT * coulomb_constant("kcal/mol/e") * charge / (distance * permittivity)
            continue
        if r > 8:
            continue
        gaussian = autodock.SOLVATION_WEIGHT * np.exp(-r * r / (2 * 3.6**2))
        if probe == "d":
            total += 0.01097 * atom.volume * gaussian
            continue
        own = autodock.KINDS[probe]
        rmin, depth = (own.rmin + atom.rmin) / 2, autodock.DISPERSION_WEIGHT * np.sqrt(own.depth * atom.depth)
        near = r + (np.arange(-25, 26) / 100 if table else np.clip(rmin - r, -0.25, 0.25))
        six = (rmin / near) ** 6
        total += min(np.min(depth * (six * six - 2 * six)), 1e5)
        total += gaussian * (own.solvation * atom.volume + own.volume * (atom.solvation + 0.01097 * abs(charge)))
    return total


@pytest.mark.parametrize("probe", AUTOGRID)
def test_maps_of_autogrid(probe, engine):
    lattice = Lattice(np.full(3, -4.5), np.ones(3), (11, 11, 11))
    atoms = autodock.Receptor(PLACES, np.array(ATOMS), CHARGES)
    result = autodock.autodock_maps(atoms, lattice, [probe], engine)[probe].values
    for node, theirs in zip(NODES, AUTOGRID[probe], strict=True):
        point = lattice.points([node])[0]
        # its tables are the only difference between it and the definition, and maps have the definition
        assert by_definition(probe, point, table=True) == pytest.approx(theirs, abs=2e-3, rel=1e-4)
        assert result[node] == pytest.approx(by_definition(probe, point, table=False), abs=1e-4, rel=1e-5)


def test_hydrogen_bonds_have_their_wells(engine):
    atoms = autodock.Receptor(np.zeros((1, 3)), np.array(["OA"]), np.zeros(1))
    lattice = Lattice(np.array([1.5, 0.0, 0.0]), np.array([0.1, 1, 1]), (30, 1, 1))
    result = autodock.autodock_maps(atoms, lattice, ["HD"], engine)["HD"].values.ravel()
    at = int(result.argmin())
    assert 1.6 < 1.5 + 0.1 * at < 2.2
    solvation = 0.00051 * 17.1573 * autodock.SOLVATION_WEIGHT
    # the least and the largest energy of one atom are the same, 0.9 of the well along the direction of its lone pairs
    assert result[at] == pytest.approx(-2 * 0.9 * 5 * autodock.BOND_WEIGHT, abs=solvation + 1e-4)


def test_types_of_a_receptor(tpr):
    protein = tpr.part(np.arange(60))
    atoms = autodock.receptor(protein)
    assert atoms.charges.sum() == pytest.approx(protein.known_charges.sum())
    assert set(atoms.kinds) <= set(autodock.KINDS)
    polar = [n for n, name in enumerate(protein.atom_names) if name in ("H", "H1", "H2", "H3")]
    assert (atoms.kinds == "HD").sum() >= len(polar) > 0
    assert not (atoms.kinds == "H").any()  # all others are on carbons


def insertion(structure, terms, ligand, point, cell, turns, kt, cutoff):
    """Return the mean Boltzmann factor of a ligand at a point over orientations, written out."""
    factors = []
    for places in turns:
        energy = 0.0
        for place, sigma, epsilon in zip(places, ligand.sigma, ligand.epsilon, strict=True):
            d = structure.positions - (point + place)
            if cell is not None:
                d = cell.minimum_image(d)
            r2 = (d * d).sum(1)
            near = r2 < cutoff**2
            kinds = terms.types[near]
            s, e = (terms.sigma[kinds] + sigma) / 2, np.sqrt(terms.epsilon[kinds] * epsilon)
            six = (s * s / r2[near]) ** 3
            energy += (4 * e * (six * six - six)).sum()
        factors.append(np.exp(-energy / kt))
    return np.mean(factors)


def free_energy(structure, frames, ligand, terms, *, cutoff=10.0, spacing=1.0, lattice=None, orientations=12, parts=2,
                temperature=300.0, boundary="auto", engine="cpu", size=0):
    sites = zip(ligand.sigma.tolist(), ligand.epsilon.tolist(), strict=True)
    sums = tuple(probe_sum(terms, sigma, epsilon, cutoff) for sigma, epsilon in sites)
    planning = plan_insertions(
        structure, Loaded("frames", frames), ligand, sums, alignment={"group": None}, lattice=lattice, spacing=spacing,
        padding=None, options={"orientations": orientations, "parts": parts, "temperature": temperature,
                               "boundary": boundary, "engine": engine, "fixed_cell": False})
    return planning, merge(planning, run_blocks(planning.work, planning.numbers, size=size or planning.size))


BENT = Ligand("bent", np.array([[0.0, 0, 0], [1.0, 0.2, 0], [-0.4, 0.9, 0.1]]), np.array([3.0, 2.5, 2.6]),
              np.array([0.2, 0.1, 0.15]), "test")


@pytest.mark.parametrize(("system", "ligand"), [("peptide", O2), ("triclinic", LIGANDS["CO"]), ("open", BENT)])
def test_every_node_is_the_mean_of_insertions(system, ligand, engine):
    if system == "peptide":
        structure, terms = peptide_and_terms()
        boundary, lattice = "periodic", Lattice(structure.positions[9] - 2, np.full(3, 1.5), (4, 3, 4))
    else:
        structure, terms = spheres(60, Cell.from_parameters(21, 22, 23, 80, 75, 85), 3.1, 0.15)
        boundary = "periodic" if system == "triclinic" else "open"
        lattice = Lattice(np.full(3, 4.0), np.full(3, 1.5), (4, 3, 4))
    cell = structure.cell if boundary == "periodic" else None
    planning, actual = free_energy(structure, [(structure.positions, structure.cell)], ligand, terms, cutoff=9.0,
                                  lattice=lattice, orientations=5, boundary=boundary, engine=engine.name)
    work = planning.work
    factors = np.exp(-actual.grids["mean"].values.ravel().astype(float) / work.kt)
    for point, factor in zip(lattice.points(), factors, strict=True):
        places = point + lattice.spacing * (np.indices((2, 2, 2)).reshape(3, -1).T * 0.5 - 0.25)
        expected = np.mean([insertion(structure, terms, ligand, place, cell, work.orientations, work.kt, 9.0)
                            for place in places])
        assert factor == pytest.approx(max(expected, np.exp(-20 / work.kt)), rel=3e-4)


@pytest.mark.slow
def test_widom_insertions_at_random(engine):
    structure, terms = spheres(120, Cell.from_parameters(24, 25, 26), 3.2, 0.25, seed=3)
    _, actual = free_energy(structure, [(structure.positions, structure.cell)], O2, terms, parts=3, orientations=40,
                           engine=engine.name, boundary="periodic")
    rng = np.random.default_rng(1)
    points = rng.uniform(size=(4000, 3)) @ structure.cell.vectors
    ways = rng.normal(size=(4000, 3))
    ways *= 0.615 / np.linalg.norm(ways, axis=1)[:, None]
    factors = [insertion(structure, terms, O2, point, structure.cell, [np.array([-way, way])], 300 * KELVIN, 10.0)
               for point, way in zip(points, ways, strict=True)]
    expected, error = np.mean(factors), np.std(factors) / np.sqrt(len(factors))
    assert np.exp(-actual.solvation / (300 * KELVIN)) == pytest.approx(expected, abs=4 * error)


def test_the_chemical_potential_in_a_gas_of_spheres(engine):
    """Spheres at independent places: <exp(-E/kT)> is (1 + B/V)^N with the integral B of Mayer's function."""
    cell, count, kt, cutoff = Cell.from_parameters(22, 22, 22), 40, 300 * KELVIN, 9.0
    neon = LIGANDS["Ne"]
    sigma, epsilon = float(neon.sigma[0]), 4 * float(neon.epsilon[0])  # deeper, so that it is not an ideal gas
    frames = [(spheres(count, cell, sigma, epsilon, seed)[0].positions, cell) for seed in range(40)]
    structure, terms = spheres(count, cell, sigma, epsilon)
    sphere = Ligand("X", np.zeros((1, 3)), np.array([sigma]), np.array([epsilon]), "")
    _, result = free_energy(structure, frames, sphere, terms, cutoff=cutoff, parts=1, boundary="periodic",
                           engine=engine.name, size=1)
    r = np.linspace(1e-3, cutoff, 20001)
    mayer = np.expm1(-np.minimum(4 * epsilon * ((sigma / r) ** 12 - (sigma / r) ** 6) / kt, 700))
    exact = -kt * count * np.log1p(np.trapezoid(4 * np.pi * r**2 * mayer, r) / cell.volume)
    assert result.solvation_error is not None
    assert abs(result.solvation - exact) < 4 * result.solvation_error
    assert result.solvation_error < 0.05 * abs(exact)


def test_sums_are_kept_where_the_cell_stays():
    cell, other = Cell.from_parameters(16, 17, 18), Cell.from_parameters(16.2, 17.1, 17.8)
    structure, terms = spheres(30, cell, 3.1, 0.15)
    frames = [(spheres(30, one, 3.1, 0.15, seed)[0].positions, one)
              for seed, one in enumerate((cell, other, cell, cell))]
    work = free_energy(structure, frames, O2, terms, cutoff=7.0, parts=1, boundary="periodic", size=4)[0].work
    singly = [free_energy(structure, [(positions, cell), frame], O2, terms, cutoff=7.0, parts=1, boundary="periodic")[0]
              .work.block(range(1, 2))["mean"] for positions, frame in zip([frames[0][0]] * 4, frames, strict=True)]
    assert np.array_equal(work.block(range(4))["mean"], sum(singly) / 4)
    assert len(work._kept) == len(work.orientations)
    assert not pickle.loads(pickle.dumps(work))._kept
    cost = work._cost()
    assert min(cost.seconds, cost.reading) > 0
    assert cost.size == work.block(range(1))["mean"].nbytes


def test_oxygen_is_that_of_charmm():
    data = ElementTree.parse(resources.files("openmm.app.data") / "charmm36.xml").getroot()
    kind = data.find("./Residues/Residue[@name='O2']/Atom").get("type")
    atom = data.find(f"./LennardJonesForce/Atom[@type='{kind}']")
    bond = data.find(f"./HarmonicBondForce/Bond[@type1='{kind}'][@type2='{kind}']")
    for site, place in zip(range(2), (-0.5, 0.5), strict=True):
        assert O2.sigma[site] == pytest.approx(10 * float(atom.get("sigma")), rel=1e-6)
        assert O2.epsilon[site] == pytest.approx(float(atom.get("epsilon")) / 4.184, rel=1e-6)
        assert O2.places[site] == pytest.approx([10 * place * float(bond.get("length")), 0, 0])


@pytest.mark.parametrize(("name", "length"), [("N2", 1.0977), ("CO2", 1.162), ("CO", 1.1283)])
def test_bonds_are_those_of_experiments(name, length):
    """Huber and Herzberg (1979), and of CO2 Herzberg (1966); models round them."""
    apart = np.diff(LIGANDS[name].places[:, 0])
    assert apart == pytest.approx(length, abs=0.003)


def test_orientations_are_spread_evenly():
    for name, count, halved in (("O2", 12, 6), ("CO", 12, 12), ("CO2", 30, 15), ("Xe", 12, 1)):
        turns = LIGANDS[name].orientations(count)
        assert len(turns) == halved
    for ligand, count in ((O2, 12), (LIGANDS["CO"], 50), (BENT, 400)):
        turns = np.array(ligand.orientations(count))
        for turn in turns:
            assert np.allclose(np.linalg.norm(turn, axis=1), np.linalg.norm(ligand.places, axis=1))
        atom = turns[:, -1]
        second = np.einsum("ni,nj->ij", atom, atom) / len(atom) / (atom[0] @ atom[0])
        assert np.abs(second - np.eye(3) / 3).max() < 0.02


def test_minima_and_barriers_of_two_wells():
    lattice = Lattice(np.array([-3.0, -2.0, -2.0]), np.full(3, 0.5), (13, 9, 9))
    x, y, z = np.moveaxis(lattice.points().reshape(13, 9, 9, 3), 3, 0)
    values = (x * x - 4) ** 2 / 4 + 0.3 * x + y * y + z * z  # minima near -2 and 2, 4 between them
    result = minima_and_barriers(Grid(lattice, values), below=10.0, least=0.5, wraps=False)
    assert len(result) == 2
    low, high = result
    assert low.position == pytest.approx([-2, 0, 0])
    assert high.position == pytest.approx([2, 0, 0])
    assert (low.barrier, low.lower, high.lower) == (None, None, 0)
    assert high.barrier == pytest.approx(values[:, 4, 4][4:9].max(), rel=1e-6)
    assert not minima_and_barriers(Grid(lattice, values), below=3.0, least=0.5, wraps=False)[1].barrier
    assert len(minima_and_barriers(Grid(lattice, values), below=10.0, least=6.0, wraps=False)) == 1


@pytest.mark.parametrize("text", ["", "# nothing\n", "C 0 0 0 3.4\n", "C 0 0 0 3.4 x\n", "C 0 0 0 -3.4 0.1\n",
                                  "C 0 0 0 nan 0.1\n", "C 1e9 0 0 3.4 0.1\n", "C 0 0 0 3.4 0.1\n" * 60])
def test_ligands_that_cannot_be_read(text, tmp_path):
    path = tmp_path / "ligand.txt"
    path.write_text(text)
    with pytest.raises(InputError):
        read_ligand(path)


def test_a_ligand_of_a_file(tmp_path):
    path = tmp_path / "methane.txt"
    path.write_text("# united atom\nCH4 0 0 0 3.73 0.294\n")
    ligand = read_ligand(path)
    assert (ligand.name, ligand.sigma.tolist(), ligand.epsilon.tolist()) == ("methane", [3.73], [0.294])
    assert len(ligand.orientations(12)) == 1


def test_the_command_with_a_molecule(tmp_path, capsys):
    out, table = tmp_path / "xe.npz", tmp_path / "minima.csv"
    words = ["probe", PEPTIDE / "alanine-dipeptide.crd", "--topology", PEPTIDE / "alanine-dipeptide.prmtop", "--ligand",
             "xe", "--spacing", 2, "--places", 1, "--cutoff", 8, "--paths", table, "-o", out, "--json"]
    code, text, err = shell(capsys, *words)
    assert code == 0, err
    data = json.loads(text)
    grid = io.read_map(out)
    assert (data["ligand"], data["unit"], grid.unit) == ("Xe", "kcal/mol", "kcal/mol")
    assert grid.values.min() == pytest.approx(data["minimum"], rel=1e-5)
    with table.open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(data["minima"]) > 1
    assert float(rows[0]["free energy (kcal/mol)"]) == pytest.approx(data["minimum"], abs=1e-3)


def test_the_command_with_probes(tmp_path, capsys):
    out = tmp_path / "receptor.map"
    words = ["probe", PEPTIDE / "alanine-dipeptide.crd", "--topology", PEPTIDE / "alanine-dipeptide.prmtop", "--atoms",
             "solute", "--spacing", 1, "--probe", "C", "e", "-o", out, "--json"]
    code, text, err = shell(capsys, *words)
    assert code == 0, err
    data = json.loads(text)
    for name in ("C", "e"):
        lines = (tmp_path / f"receptor.{name}.map").read_text().splitlines()
        counts = [int(word) + 1 for word in lines[4].split()[1:]]
        assert lines[3:5] == ["SPACING 1", "NELEMENTS " + " ".join(str(n - 1) for n in data["shape"])]
        assert all(n % 2 for n in counts)
        values = np.array(lines[6:], float)
        assert len(values) == np.prod(counts)
        assert values.min() == pytest.approx(data["probes"][name]["minimum"], abs=1e-3)
        grid = io.read_map(tmp_path / f"receptor.{name}.map")
        assert (grid.unit, list(grid.lattice.shape)) == ("kcal/mol", data["shape"])
        assert grid.lattice.origin == pytest.approx(data["origin"], abs=1e-6)
        assert np.array_equal(grid.values.ravel(order="F"), values.astype(np.float32))
        again = tmp_path / "again.map"
        write_autodock(grid, again, "receptor")
        assert again.read_text() == (tmp_path / f"receptor.{name}.map").read_text()
    shutil.copy(tmp_path / "receptor.C.map", tmp_path / "unnamed")
    assert io.read_map(tmp_path / "unnamed").lattice.shape == tuple(data["shape"])


@pytest.mark.parametrize(("words", "parameter"), [
    ([], "probe"), (["--probe", "C", "--ligand", "O2"], "probe"), (["--probe", "Q"], "probe"),
    (["--probe", "X=1"], "probe"), (["--probe", "X=1,2,3"], "probe"), (["--probe", "X=-1,2"], "probe"),
    (["--probe", "C", "C"], "probe"), (["--ligand", "O7"], "ligand"), (["--ligand", "O2", "--stat", "std"], "stat"),
    (["--probe", "C", "--frames", "0:1"], "ligand"), (["--ligand", "O2", "--around", "nucleic"], "around"),
])
def test_options_that_do_not_fit(words, parameter, tmp_path, capsys):
    code, _, err = shell(capsys, "probe", PEPTIDE / "alanine-dipeptide.crd", "--topology",
                         PEPTIDE / "alanine-dipeptide.prmtop", "--atoms", "solute", *words, "-o", tmp_path / "out.dx")
    assert code == 2
    assert f"--{parameter}" in err
    assert not list(tmp_path.iterdir())


def test_engines_agree(engine):
    structure, terms = peptide_and_terms()
    lattice = Lattice(structure.positions[0] - 8, np.full(3, 0.9), (17, 18, 19))
    one = probe_sum(terms, 3.3, 0.2, 10.0)
    result, other = (one.energies(which, lattice, structure.positions, structure.cell) for which in
                    (engine, get_engine("cpu")))
    low = other < 50
    assert np.abs(result - other)[low].max() < 1e-3
    points = lattice.points()[low.ravel()][::40]
    assert np.abs(result[low][::40] - one.at(points, structure.positions, structure.cell)).max() < 1e-3
