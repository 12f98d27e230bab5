"""Ions in small systems whose answer is plain, or can be found by trying all."""

import json
import math
from dataclasses import replace

import ewald
import numpy as np
import pytest
from messages import Words, naming
from scipy import constants

import vmdpotential
from vmdpotential.errors import InputError, NoRoomError
from vmdpotential.frontend.cli import main
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.structure import Structure, Topology
from vmdpotential.plugins.ions import ewald_pair, potential
from vmdpotential.plugins.ions.command import command
from vmdpotential.plugins.ions.place import place_ions

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
    assert "has no periodic cell, so periodic images are ignored" in caplog.text
    assert "{cell}" in caplog.records[0].msg.template
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
    assert sorted(ion.position for ion in placement.ions) == [(5.0, 0.0, 0.0), (10.0, 0.0, 0.0)]


def test_kinds_of_room_that_run_out():
    waters = [(6.0, 0, 0), (0, 6.5, 0), (0, 7.5, 0)]
    with naming(NoRoomError, "1 of 2 ", "20 A", " between") as error:
        place_ions(drop(-2.0, waters), between=20)
    assert error.value.exit_code == 3
    with naming(NoRoomError, "0 of 2 ", " 1 of 3 ", "7 A ", " from_solute"):
        place_ions(drop(-2.0, waters), from_solute=7)
    with naming(NoRoomError, "3 waters"):
        place_ions(drop(-4.0, waters))
    with naming(NoRoomError, Words.OWN_IMAGE):
        place_ions(drop(-1.0, waters, Cell.from_parameters(12, 12, 12)), between=12.5)
    with naming(NoRoomError, Words.OWN_IMAGE):
        place_ions(drop(-1.0, waters, Cell.from_parameters(40, 40, 12)), between=12.5, site="random", seed=1)


def test_unsuitable_structures():
    with naming(InputError, Words.NO_WATERS):
        place_ions(drop(-1.0, []))
    with naming(InputError, "P 2", " expand=cell"):
        place_ions(drop(-1.0, [(6, 0, 0)], Cell.from_parameters(40, 40, 40, space_group="P 2")))
    with naming(InputError, "charges"):
        place_ions(replace(drop(-1.0, [(6, 0, 0)]), charges=None))
    charged = drop(-1.0, [(6, 0, 0), (8, 0, 0)])
    with naming(InputError, "TIP33:OH2 with"):
        place_ions(charged.with_charges([*charged.charges[:-1], 0.1]))
    merged = replace(charged, residue_index=[0] + [1] * 6)
    with naming(InputError, Words.SECOND_OXYGEN):
        place_ions(merged)
    with naming(InputError, Words.NOT_INTEGER):
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
        return np.linalg.norm(point - others, axis=1) if cell is None else ewald.shortest(others - point, cell.vectors)

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
    assert f"lowered the energy by {placement.gain:.3f} kcal/mol" in "\n".join(placement.lines)
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


def test_a_pure_water_box_takes_salt(tmp_path):
    grid = [(x, y, z) for x in range(3, 30, 3) for y in range(3, 30, 3) for z in range(3, 30, 3)]
    structure = drop(0.0, grid, Cell.from_parameters(30, 30, 30)).take(np.arange(1, 1 + 3 * len(grid)))
    placement = place_ions(structure, concentration=0.5)
    assert [(s.name, n) for s, n in placement.counts.added] == [("SOD", 7), ("CLA", 7)]
    assert placement.ions[0].solute_distance is None


def test_a_dry_structure_lacks_water_before_it_lacks_charges(tmp_path, capsys):
    """The remedy is to solvate it; with charges it would have no room for ions either."""
    path = tmp_path / "dry.pdb"
    path.write_text("ATOM      1  CA  ALA A   1       0.000   0.000   0.000  1.00  0.00           C\n")
    assert main(["ionize", str(path), "--dry-run", "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert "waters" in error["text"]
    assert "solvate" in error["hint"]
