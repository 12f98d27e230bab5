"""Ions of several atoms in a prmtop: all that another prmtop says of them; OpenMM and ParmEd read what is written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openmm
import parmed
import pytest
from messages import naming
from openmm import app
from test_write_amber import AMBER, COORDINATES, TIP3P, TOP, energies, stripped

from vmdpotential import io
from vmdpotential.errors import InputError
from vmdpotential.io.topologies.prmtop import Sections
from vmdpotential.molecule.structure import Structure
from vmdpotential.plugins.forcefields.prmtop_ions import definition_of
from vmdpotential.plugins.ions.command import command

pytestmark = pytest.mark.filterwarnings("ignore")  # the other programs warn

#: Acetate: name, type, charge, place. Its numbers are GAFF's, about; they have to come through, whatever they are.
ACETATE = (("C1", "c3", -0.2126, (0.0, 0.0, 0.0)), ("H1", "hc", 0.0173, (-0.36, 1.03, 0.0)),
           ("H2", "hc", 0.0173, (-0.36, -0.51, 0.89)), ("H3", "hc", 0.0173, (-0.36, -0.51, -0.89)),
           ("C2", "c", 0.8865, (1.55, 0.0, 0.0)), ("O1", "o", -0.8629, (2.11, 1.12, 0.0)),
           ("O2", "o", -0.8629, (2.11, -1.12, 0.0)))
RMIN = {"c3": (1.908, 0.1094), "hc": (1.487, 0.0157), "c": (1.908, 0.086), "o": (1.6612, 0.21)}


def acetate(path: Path, charge: float = 0.0, name: str = "ACT", factor: float = 1.0) -> Path:
    """Write a prmtop of acetate, with a torsion of two terms and an improper, by ParmEd; or of one that is stiffer."""
    residue = name
    made = parmed.Structure()
    for name, kind, own, place in ACETATE:
        element = parmed.periodic_table.AtomicNum[name[0]]
        atom = parmed.Atom(atomic_number=element, name=name, type=kind, charge=own + charge * (name == "O1"),
                           mass=parmed.periodic_table.Mass[name[0]], solvent_radius=1.7, screen=0.72)
        atom.atom_type = parmed.AtomType(kind, None, atom.mass, element)
        half, epsilon = RMIN[kind]
        atom.atom_type.set_lj_params(epsilon, half)
        atom.xx, atom.xy, atom.xz = place
        made.add_atom(atom, residue, 1)
    c, h1, h2, h3, d, o1, o2 = made.atoms
    for kind, pairs in ((parmed.BondType(335.9, 1.092), [(c, h1), (c, h2), (c, h3)]),
                        (parmed.BondType(313.0, 1.524), [(c, d)]), (parmed.BondType(637.7, 1.218), [(d, o1), (d, o2)])):
        made.bond_types.append(kind)
        made.bonds.extend(parmed.Bond(*pair, kind) for pair in pairs)
    for kind, threes in ((parmed.AngleType(39.4, 107.6), [(h1, c, h2), (h1, c, h3), (h2, c, h3)]),
                         (parmed.AngleType(47.0, 109.0), [(h, c, d) for h in (h1, h2, h3)]),
                         (parmed.AngleType(67.0, 117.0), [(c, d, o1), (c, d, o2)]),
                         (parmed.AngleType(78.0, 130.0), [(o1, d, o2)])):
        made.angle_types.append(kind)
        made.angles.extend(parmed.Angle(*three, kind) for three in threes)
    for k, n, phase, more in ((0.8, 1, 0.0, False), (0.08, 3, 180.0, True)):
        kind = parmed.DihedralType(k, n, phase, 1.2, 2.0)
        made.dihedral_types.append(kind)
        made.dihedrals.extend(parmed.Dihedral(h, c, d, o, type=kind, ignore_end=more) for h in (h1, h2, h3)
                              for o in (o1, o2))
    kind = parmed.DihedralType(1.1, 2, 180.0, 1.2, 2.0)
    made.dihedral_types.append(kind)
    made.dihedrals.append(parmed.Dihedral(c, o1, d, o2, improper=True, type=kind))
    for kind in (*made.bond_types, *made.angle_types):
        kind.k *= factor
    for kind in made.dihedral_types:
        kind.phi_k *= factor
    for kinds in (made.bond_types, made.angle_types, made.dihedral_types):
        kinds.claim()
    parmed.amber.AmberParm.from_structure(made).write_parm(str(path))
    return path


def template() -> Structure:
    names, _, charges, places = zip(*ACETATE, strict=True)
    return Structure(np.array(places), np.array(names), np.array(["ACT"] * 7), np.ones(7, int), np.zeros(7, int),
                     elements=np.array([name[0] for name in names]), charges=np.array(charges))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Structure, Path]:
    """Return the ionized system, and the folder of ACT.prmtop, STF.prmtop, acetate.pqr, out.prmtop and out.rst7."""
    folder = tmp_path_factory.mktemp("acetate")
    files = acetate(folder / "ACT.prmtop"), acetate(folder / "STF.prmtop", 0.0, "STF", 1.5)
    io.write_structure(template(), folder / "acetate.pqr")
    made = command(structure=COORDINATES, topology=TOP, ions="ACT=2,STF=1,SOD=3",
                   ion_template=f"ACT={folder / 'acetate.pqr'},STF={folder / 'acetate.pqr'}", site="random", seed=1,
                   from_solute=2.0, between=2.0, parameters=(*files, TIP3P),
                   output=(folder / "out.prmtop", folder / "out.rst7"))
    return made.objects["structure"], folder


def system_of(path: Path) -> openmm.System:
    return app.AmberPrmtopFile(str(path)).createSystem(rigidWater=False, removeCMMotion=False)


def test_openmm_finds_the_terms_of_the_ion_and_all_that_were_there(written: tuple[Structure, Path],
                                                                   tmp_path: Path) -> None:
    after, folder = written
    kept = len(after) - 3 * 7 - 3
    drop = np.ones(len(io.read_topology(TOP)), bool)
    drop[after.topology.extra["rows"]] = False
    expected, _ = energies(stripped(TOP, drop, tmp_path), after.positions[:kept])
    for first in np.flatnonzero(np.isin(after.residue_names, ["ACT", "STF"]))[::7]:
        definition = folder / f"{after.residue_names[first]}.prmtop"
        own, net = energies(definition, after.positions[first : first + 7], range(7))
        assert net == pytest.approx(-1, abs=1e-5)
        assert len([kind for kind, energy in own.items() if abs(energy) > 1e-3]) == 4  # its 1-4 pairs among them
        expected = {kind: energy + own[kind] for kind, energy in expected.items()}
    actual, net = energies(folder / "out.prmtop", after.positions, range(kept, len(after)))
    assert abs(net) < 1e-5
    assert set(actual) == set(expected)
    for kind, energy in expected.items():
        assert actual[kind] == pytest.approx(energy, rel=1e-7, abs=1e-7), kind


def test_each_atom_of_the_ion_is_as_it_was_defined(written: tuple[Structure, Path]) -> None:
    """Of its pairs, the energies above are the test."""
    after, folder = written
    systems = [system_of(folder / name) for name in ("out.prmtop", "ACT.prmtop")]  # which own their forces
    ours, theirs = (next(force for force in system.getForces() if isinstance(force, openmm.NonbondedForce))
                    for system in systems)
    for first in np.flatnonzero(after.residue_names == "ACT")[::7].tolist():
        for atom in range(7):
            for a, b in zip(ours.getParticleParameters(first + atom), theirs.getParticleParameters(atom), strict=True):
                assert a._value == pytest.approx(b._value, rel=1e-6, abs=1e-9)


def test_parmed_reads_names_types_and_molecules(written: tuple[Structure, Path]) -> None:
    after, folder = written
    parm = parmed.load_file(str(folder / "out.prmtop"), str(folder / "out.rst7"))
    assert [atom.name for atom in parm.atoms] == after.atom_names.tolist()
    assert [residue.name for residue in parm.residues] == after.residue_names[after.residue_starts[:-1]].tolist()
    ion = next(residue for residue in parm.residues if residue.name == "ACT")
    assert [(atom.type, atom.solvent_radius, atom.screen, atom.mass) for atom in ion.atoms] == [
        (kind, 1.7, 0.72, parmed.periodic_table.Mass[name[0]]) for name, kind, *_ in ACETATE]
    molecules = Sections(folder / "out.prmtop").integers("ATOMS_PER_MOLECULE", None)  # ParmEd counts them itself
    assert sorted(molecules[-6:]) == [1, 1, 1, 7, 7, 7]
    assert molecules.sum() == len(after)
    assert not parm.has_NBFIX()
    assert sum(dihedral.improper for dihedral in parm.dihedrals if dihedral.atom1 in ion.atoms) == 1
    assert parm.ptr("ntypes") == parmed.load_file(str(TOP)).ptr("ntypes") + 4 + 4 + 1


def test_a_prmtop_that_has_the_ion_needs_no_other(written: tuple[Structure, Path], tmp_path: Path) -> None:
    _, folder = written
    command(structure=folder / "out.rst7", topology=folder / "out.prmtop", ions="ACT=1,SOD=1",
            ion_template=f"ACT={folder / 'acetate.pqr'}", site="random", seed=2, from_solute=2.0, between=2.0,
            output=(tmp_path / "more.prmtop",))
    old, new = (parmed.load_file(str(path)) for path in (folder / "out.prmtop", tmp_path / "more.prmtop"))
    assert len(new.dihedrals) == len(old.dihedrals) + 13
    ions = [residue for residue in new.residues if residue.name == "ACT"]
    assert len(ions) == 3
    for first, last in zip(ions[0].atoms, ions[-1].atoms, strict=True):
        assert (first.rmin, first.epsilon, first.charge) == (last.rmin, last.epsilon, last.charge)


def test_what_is_not_defined_or_defined_otherwise_is_refused_before_any_work(
        written: tuple[Structure, Path], tmp_path: Path) -> None:
    _, folder = written
    options = {"ions": "ACT=2,SOD=2", "ion_template": f"ACT={folder / 'acetate.pqr'}",
               "output": (tmp_path / "a.prmtop",)}
    with naming(InputError, "ACT ", " C1, H1, ", "tleap"):
        command(structure=COORDINATES, topology=TOP, parameters=(TIP3P,), **options)
    other = acetate(tmp_path / "other.prmtop", charge=0.01)
    with naming(InputError, "ACT O1 is -0.8529 e, ", " -0.8629 e"):
        command(structure=COORDINATES, topology=TOP, parameters=(other, TIP3P), **options)


def test_definitions_that_cannot_be_taken_over_whole_are_refused(written: tuple[Structure, Path],
                                                                 tmp_path: Path) -> None:
    _, folder = written
    def first_residue(path: Path, row: int = 0) -> tuple[Structure, str, list[str]]:
        names = io.read_topology(path)
        atoms = slice(*names.residue_starts[row : row + 2])
        return names, str(names.residue_names[atoms][0]), names.atom_names[atoms].tolist()
    with naming(InputError, "CHARMM"):
        definition_of(*first_residue(AMBER / "parmed_fad.prmtop"))
    with naming(InputError, "ALA"):
        definition_of(*first_residue(TOP, 1))
    parm = parmed.load_file(str(folder / "ACT.prmtop"))
    parm.parm_data["LENNARD_JONES_ACOEF"][1] *= 1.01
    parm.write_parm(str(tmp_path / "own.prmtop"))
    with pytest.raises(InputError):
        definition_of(*first_residue(tmp_path / "own.prmtop"))
