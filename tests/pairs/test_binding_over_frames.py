"""Energies of binding in a solvent over frames: those of each frame alone, OpenMM's, and sums of residues."""

from dataclasses import replace

import MDAnalysis
import numpy as np
import openmm
import pytest
from helpers import charges_at
from messages import naming
from openmm import app, unit
from openmm.app.internal import customgbforces
from scipy.spatial.transform import Rotation
from structure_files import MDA, TOOLS

from vmdpotential import binding_energy, energy, read_structure
from vmdpotential.errors import InputError, UsageError
from vmdpotential.plugins.pairs.generalized_born import KAPPA_FACTOR
from vmdpotential.units import coulomb_constant, debye_length

HOST = TOOLS / "cb7-viologen" / "leap"
FILES = HOST / "complex-vacuum.pdb", HOST / "complex-vacuum.prmtop"
GUEST = ("resname LIG", "not resname LIG")
START = 12.5  # distance of the centres in the first frame, A
TERMS = ("lennard_jones", "coulomb", "screening", "desolvation_1", "desolvation_2", "surface")


@pytest.fixture(scope="module")
def complexes():
    """Four frames of a host with its guest at its rim."""
    both = read_structure(*FILES)
    guest = both.residue_names == "LIG"
    rng, result = np.random.default_rng(8), []
    apart = both.positions[guest].mean(0) - both.positions[~guest].mean(0)
    for number in range(4):
        positions = both.positions + rng.normal(0, 0.05, (len(both), 3))
        positions[guest] -= (1 - (START + 0.5 * number) / np.linalg.norm(apart)) * apart
        result.append(replace(both, positions=positions.astype(np.float32).astype(np.float64)))
    return result


@pytest.fixture(scope="module")
def frames(complexes, tmp_path_factory):
    path = tmp_path_factory.mktemp("frames") / "frames.dcd"
    universe = MDAnalysis.Universe.empty(len(complexes[0]), trajectory=True)
    with MDAnalysis.Writer(str(path), len(complexes[0])) as writer:
        for each in complexes:
            universe.atoms.positions = each.positions
            writer.write(universe.atoms)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("solvent", ["gb", "pb"])
def test_frames_are_as_alone(complexes, frames, solvent):
    options = {"between": GUEST, "solvent": solvent, "surface_tension": 0.005, "surface_offset": 0.9,
               **({"spacing": 1.2} if solvent == "pb" else {})}
    table = energy(FILES[0], frames, topology=FILES[1], **options).table()
    assert table["frame"] == [0, 1, 2, 3]
    for number, each in enumerate(complexes):
        alone = energy(each, **options).table()
        for name in (*TERMS, "total", "grid_error"):
            assert table[name][number] == pytest.approx(alone[name][0], rel=1e-6, abs=1e-5), name
    bound = binding_energy(complexes[2], *GUEST, model="obc2" if solvent == "gb" else "pb", spacing=1.2)
    assert bound.total == pytest.approx(table["electrostatic"][2], abs=1e-5)
    assert min(table["desolvation_1"]) > 0
    assert max(table["surface"]) < -0.9
    assert all(error > 0 for error in table["grid_error"]) == (solvent == "pb")


def in_contact(*charges, apart=3.5):
    """Return two ions with radii, A."""
    return replace(charges_at([[0.0, 0, 0], [apart, 0, 0]], charges), radii=np.array([1.6, 1.9]))


@pytest.mark.slow
@pytest.mark.parametrize("spacing", [0.5, 1.0])
def test_errors_of_small_complexes_hold(complexes, spacing):
    """At most one of ten, for ions and a guest at the rim of its host in random orientations, against 0.25 A."""
    rng, ratios = np.random.default_rng(2012), []
    ions = [in_contact(1.0, -1.0), in_contact(2.0, -1.0), in_contact(1.0, -1.0, apart=6.0)]
    for each in (*ions, complexes[0], complexes[2]):
        first = np.arange(len(each)) < 1 if len(each) == 2 else each.residue_names == "LIG"
        fine = binding_energy(each, first, ~first, spacing=0.25, radii="auto").total
        for turn in Rotation.random(6, random_state=rng).as_matrix():
            moved = replace(each, positions=each.positions @ turn.T + rng.uniform(0, 1, 3))
            found = binding_energy(moved, first, ~first, spacing=spacing, radii="auto")
            ratios.append(abs(found.total - fine) / found.error)
    assert np.mean(np.array(ratios) < 1) >= 0.9, np.round(ratios, 2)
    assert max(ratios) < 2
    assert np.median(ratios) > 0.15


@pytest.mark.nightly
def test_error_of_the_grid_holds_for_domains():
    """Ten frames of two domains of adenylate kinase at 0.5 A, against 0.25 A: most are within the stated errors."""
    universe = MDAnalysis.Universe(str(MDA / "adk.psf"), str(MDA / "adk_dims.dcd"))
    structure, ratios = read_structure(MDA / "adk_open.pdb", topology=MDA / "adk.psf"), []
    for frame in universe.trajectory[0:65:7]:
        each = replace(structure, positions=frame.positions.astype(np.float64))
        coarse, fine = (binding_energy(each, "resid 122-159", "resid 30-59", spacing=spacing)
                        for spacing in (0.5, 0.25))
        ratios.append((coarse.total - fine.total) / coarse.error)
    assert np.sort(np.abs(ratios))[-2] < 1
    assert np.median(np.abs(ratios)) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("by", ["residue", "atom"])
@pytest.mark.parametrize("solvent", ["gb", "pb"])
def test_rows_add_up_to_the_total(frames, solvent, by, tmp_path):
    options = {"topology": FILES[1], "between": GUEST, "solvent": solvent, "surface_tension": 0.005,
               "surface_offset": 0.9, **({"spacing": 1.2} if solvent == "pb" else {})}
    figure = {"figure": tmp_path / "residues.svg"} if by == "residue" else {}
    total = energy(FILES[0], frames, **options).data["solvent"][0]
    rows = energy(FILES[0], frames, by=by, **options, **figure).data["solvent"][0]["rows"]
    assert len(rows) == {"residue": 2, "atom": len(read_structure(*FILES))}[by]
    for name in ("lennard_jones", "coulomb", "screening", "surface", "total"):
        assert sum(row[name] for row in rows) == pytest.approx(total[name], abs=1e-5), name
    assert sum(row["desolvation"] for row in rows) == pytest.approx(
        total["desolvation_1"] + total["desolvation_2"], abs=1e-5)
    if by == "residue":
        assert "electrostatic" in figure["figure"].read_text()


@pytest.mark.slow
@pytest.mark.parametrize("model", ["obc2", "gbn2"])
def test_domains_of_adenylate_kinase_as_by_openmm(model):
    """Screening and desolvation of two domains: what the energies of OpenMM's complex and both parts differ by."""
    selections = ("resid 122-159", "resid 30-59")
    result = energy(MDA / "adk.psf", MDA / "adk_dims.dcd", frames="0:98:49", between=selections, solvent="gb",
                    gb_model=model).table()
    universe = MDAnalysis.Universe(str(MDA / "adk.psf"), str(MDA / "adk_dims.dcd"))
    masks = [np.isin(universe.atoms.resids, np.arange(first, last + 1)) for first, last in ((122, 159), (30, 59))]
    topology = app.CharmmPsfFile(str(MDA / "adk.psf")).topology
    kind = {"obc2": customgbforces.GBSAOBC2Force, "gbn2": customgbforces.GBSAGBn2Force}[model]
    parameters = kind.getStandardParameters(topology)
    assert [int(atom.residue.id) for atom in topology.atoms()] == universe.atoms.resids.tolist()

    def solvation(chosen, positions):
        force = kind(kappa=10 * KAPPA_FACTOR / debye_length(0.15, 298.15, 78.5))
        system = openmm.System()
        for n in np.flatnonzero(chosen):
            system.addParticle(1)
            force.addParticle([universe.atoms.charges[n], *parameters[n]])
        force.finalize()
        system.addForce(force)
        context = openmm.Context(system, openmm.VerletIntegrator(1), openmm.Platform.getPlatformByName("Reference"))
        context.setPositions(positions[chosen] / 10)
        return context.getState(getEnergy=True).getPotentialEnergy().value_in_unit(unit.kilocalorie_per_mole)

    constant = 138.935485 / 0.4184 / coulomb_constant("kcal/mol/e")
    assert result["frame"] == [0, 49]
    for number, frame in enumerate(result["frame"]):
        positions = universe.trajectory[frame].positions.astype(np.float64)
        both, a, b = (solvation(chosen, positions) for chosen in (masks[0] | masks[1], *masks))
        polar = sum(result[name][number] for name in ("screening", "desolvation_1", "desolvation_2"))
        assert constant * polar == pytest.approx(both - a - b, abs=1e-4)


@pytest.mark.slow
def test_statistics_of_many_frames(tmp_path):
    """The mean of each half is within the errors of both, and a figure shows the terms."""
    water = TOOLS / "alanine-dipeptide-explicit"
    structure = read_structure(water / "alanine-dipeptide.crd", water / "alanine-dipeptide.prmtop")
    peptide = structure.take(np.arange(22))
    path, rng = tmp_path / "frames.dcd", np.random.default_rng(4)
    universe = MDAnalysis.Universe.empty(22, trajectory=True)
    shift = np.zeros((22, 3))
    with MDAnalysis.Writer(str(path), 22) as writer:
        for _ in range(400):  # correlated over about three frames
            shift = 0.7 * shift + rng.normal(0, 0.05, (22, 3))
            universe.atoms.positions = peptide.positions + shift
            writer.write(universe.atoms)
    options = {"between": ("(ACE)", "(NME)"), "solvent": "gb"}
    halves = [energy(peptide, path, frames=part, **options).data["solvent"][0] for part in ("0:200", "200:400")]
    whole = energy(peptide, path, figure=tmp_path / "terms.svg", **options).data["solvent"][0]
    for name in ("coulomb", "screening", "total"):
        means, errors = ([half[f"{name}{suffix}"] for half in halves] for suffix in ("", "_error"))
        assert whole[name] == pytest.approx(np.mean(means))
        assert abs(means[0] - means[1]) < 3.5 * np.hypot(*errors)
        assert whole[f"{name}_error"] > whole[f"{name}_std"] / np.sqrt(400)  # frames are correlated
    assert "polar" in (tmp_path / "terms.svg").read_text()


@pytest.mark.parametrize("boundary", ["auto", "open"])
def test_molecules_that_the_cell_splits_are_made_whole(complexes, frames, boundary, tmp_path):
    """Frames whose atoms are wrapped one by one, and the same without a cell."""
    path, edge = tmp_path / "wrapped.dcd", 40.0
    universe = MDAnalysis.Universe.empty(len(complexes[0]), trajectory=True)
    with MDAnalysis.Writer(str(path), len(complexes[0])) as writer:
        for each in complexes:
            universe.atoms.positions = (each.positions - each.positions[-1]) % edge
            universe.dimensions = [edge, edge, edge, 90, 90, 90]
            writer.write(universe.atoms)
    options = {"topology": FILES[1], "between": GUEST, "solvent": "gb", "surface_tension": 0.005}
    expected = energy(FILES[0], frames, **options).table()
    actual = energy(FILES[0], path, boundary=boundary, electrostatics="cutoff", **options).table()
    for name in (*TERMS, "total"):
        assert actual[name] == pytest.approx(expected[name], abs=2e-3), name


@pytest.mark.parametrize("solvent", ["gb", "pb"])
def test_explicit_water_has_no_place_in_a_continuum(solvent):
    water = TOOLS / "alanine-dipeptide-explicit"
    with naming(InputError, "waters"):
        energy(water / "alanine-dipeptide.crd", topology=water / "alanine-dipeptide.prmtop",
               between=("protein", "water"), solvent=solvent)


def test_what_is_wrong(frames):
    for options, name in (({"between": ("resname LIG", "all")}, "between"), ({"set": {"probe": 1.0}}, "probe"),
                          ({"by": "atom", "figure": "x.svg"}, "figure")):
        with pytest.raises(UsageError) as caught:
            energy(FILES[0], frames, topology=FILES[1], **{"between": GUEST, "solvent": "gb", **options})
        assert caught.value.parameter == name
