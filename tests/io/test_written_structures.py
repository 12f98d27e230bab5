"""Structures that are written: read back the same, by other programs too, or refused."""

from __future__ import annotations

from dataclasses import replace

import gemmi
import golden
import numpy as np
import openmm.app
import pytest
from helpers import slow
from messages import Words, naming
from structure_files import MDA, OPENMM, PER_ATOM, TOOLS, assert_same, atom_lines, structure_of, universe

from vmdpotential import io, place_ions
from vmdpotential.errors import ChargeError, OutputError, UsageError, VmdpotentialError
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.radii import atomic_radii

SOURCES = [
    MDA / "adk_oplsaa.pdb", MDA / "1hvr.pdb", MDA / "unordered_res.pdb", MDA / "align.pdb",
    MDA / "sameresid_diffresname.pdb", MDA / "chainIDrepeat.pdb.gz", MDA / "4x8u.pdbx", MDA / "mmcif" / "3KPR.cif.gz",
    MDA / "1A2C.pqr", TOOLS / "dna_dodecamer_explicit" / "minimized_dna_dodecamer.pdb", OPENMM / "swm4ndp.pdb",
]  # fmt: skip
LARGE = SOURCES[:1]


@pytest.mark.parametrize("path", slow(SOURCES, LARGE), ids=lambda path: path.name)
def test_written_pdb_is_read_back(tmp_path, path, caplog):
    structure = io.read_structure(path)
    io.write_structure(structure, tmp_path / "out.pdb.gz")
    again = io.read_structure(tmp_path / "out.pdb.gz")
    warned = "recur in a segment" in caplog.text  # whose other name is not that of the source
    assert warned == bool((again.segment_ids != structure.segment_ids).any())
    wrapped = replace(structure, residue_ids=structure.residue_ids % 10000 if warned else structure.residue_ids)
    assert_same(wrapped, again, [n for n in PER_ATOM if not (warned and n == "segment_ids")],
                positions=5.1e-4, cell=1e-2)
    assert sum(map(len, gemmi.read_pdb(str(tmp_path / "out.pdb.gz"))[0])) == structure.residue_count
    other = universe(tmp_path / "out.pdb.gz")
    assert other.atoms.names.tolist() == structure.atom_names.tolist()
    assert len(other.residues) == structure.residue_count
    np.testing.assert_allclose(other.atoms.positions, structure.positions, atol=1e-3)


@pytest.mark.parametrize("path", slow(SOURCES, LARGE), ids=lambda path: path.name)
def test_written_mmcif_is_read_back_identical(tmp_path, path, caplog):
    structure = io.read_structure(path)
    io.write_structure(structure, tmp_path / "out.cif")
    again = io.read_structure(tmp_path / "out.cif")
    changed = "get new numbers" in caplog.text  # numbers that come again in a chain
    assert changed == (path.name in ("adk_oplsaa.pdb", "unordered_res.pdb", "1A2C.pqr", "sameresid_diffresname.pdb",
                                     "chainIDrepeat.pdb.gz"))
    assert_same(structure, again, [name for name in PER_ATOM if not (changed and name == "residue_ids")])
    # gemmi sorts atoms by chain and residue number; it must find our order
    models = gemmi.read_structure(str(tmp_path / "out.cif"), merge_chain_parts=False)
    np.testing.assert_allclose(gemmi.FlatStructure(models).pos, structure.positions, atol=1e-9)
    assert sum(len(chain) for chain in models[0]) == structure.residue_count


def test_written_mmcif_is_read_by_openmm_and_mdanalysis(tmp_path):
    structure = io.read_structure(TOOLS / "src-explicit" / "1yi6-minimized.pdb")
    # a part in which residue numbers wrap and come again
    structure = structure.take((structure.residue_index < 300) | (abs(structure.residue_index - 10000) < 300))
    io.write_structure(structure, tmp_path / "out.cif")
    file = openmm.app.PDBxFile(str(tmp_path / "out.cif"))
    positions = np.array(file.getPositions(asNumpy=True)._value) * 10
    np.testing.assert_allclose(positions, structure.positions, atol=1e-6)
    assert file.topology.getNumResidues() == structure.residue_count
    assert [atom.name for atom in file.topology.atoms()] == structure.atom_names.tolist()
    lengths = [vector[i]._value * 10 for i, vector in enumerate(file.topology.getPeriodicBoxVectors())]
    assert lengths == pytest.approx(structure.cell.parameters[:3])
    other = universe(tmp_path / "out.cif")
    assert other.atoms.names.tolist() == structure.atom_names.tolist()


def test_openmm_keeps_molecules_that_begin_with_one_number_apart_in_mmcif(tmp_path):
    structure = io.read_structure(TOOLS / "alanine-dipeptide-explicit" / "alanine-dipeptide.pdb").take(np.arange(52))
    starts = structure.residue_starts
    water = structure.residue_names[starts[:-1]].tolist().index("HOH")
    # the first water has the number of the peptide's last residue
    numbers = structure.residue_ids - (structure.residue_index >= water)
    structure = replace(structure, residue_ids=numbers, chain_ids=np.full(52, "X"))
    io.write_structure(structure, tmp_path / "out.cif")
    residues = openmm.app.PDBxFile(str(tmp_path / "out.cif")).topology.residues()
    assert [len(list(residue.atoms())) for residue in residues] == np.diff(starts).tolist()


def test_the_columns_of_vmd():
    """Files that VMD or OpenMM wrote come out byte for byte in the columns that matter."""
    from vmdpotential.io.structures import pdbwrite

    for path in (MDA / "cryst_then_model.pdb", MDA / "namd_cgenff.pdb", OPENMM / "POPC.pdb", MDA / "1hvr.pdb"):
        written = b"".join(pdbwrite._records(io.read_structure(path))).decode().splitlines()
        written = [line for line in written if line.startswith(("ATOM", "HETATM"))]
        original = atom_lines(path)[: len(written)]
        for ours, theirs in zip(written, original, strict=True):
            assert (ours[:6], ours[12:16], ours[17:66], ours[72:76]) == (
                theirs[:6], theirs[12:16], theirs[17:66], theirs[72:76] if path.parent == MDA else "    ")  # fmt: skip
            assert len(ours) == 80


def test_what_is_no_polymer_ends_no_chain(tmp_path):
    acid = replace(io.read_structure(MDA / "1hvr.pdb").take(np.arange(40)), segment_ids=np.full(40, ""))
    names = np.where(np.arange(40) == int(acid.residue_starts[2]) - 1, "OXT", acid.atom_names)
    for residue, ters in (("GLY", 2), ("LIG", 1)):
        changed = np.where(acid.residue_index == 1, residue, acid.residue_names)
        io.write_structure(replace(acid, atom_names=names, residue_names=changed), tmp_path / f"{residue}.pdb")
        assert (tmp_path / f"{residue}.pdb").read_text().splitlines().count("TER") == ters


def test_ter_and_cryst_records(tmp_path):
    structure = io.read_structure(MDA / "adk_oplsaa.pdb")
    io.write_structure(structure, tmp_path / "out.pdb")
    lines = (tmp_path / "out.pdb").read_text().splitlines()
    ters = [i for i, line in enumerate(lines) if line == "TER"]
    assert len(ters) == 1  # one protein
    assert lines[ters[0] - 1][17:20] == "GLY"
    assert lines[ters[0] + 1][17:20] == "SOL"
    assert lines[-1] == "END"
    original = (MDA / "adk_oplsaa.pdb").read_text().partition("CRYST1")[2].splitlines()[0]
    assert next(line for line in lines if line.startswith("CRYST1"))[6:].split() == original.split()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"positions": [[12345.678, 0, 0]]}, "atom 1 .LIG0:C. at 12345.678 0.000 0.000 does not fit .* mmCIF"),
        ({"positions": [[0, -1000, 0]]}, "does not fit .* mmCIF"),
        ({"positions": [[0, 0, 0]], "atom_names": ["LONGER"]}, "the atom name 'LONGER' is too long .* mmCIF"),
        ({"positions": [[0, 0, 0]], "residue_names": ["WATER"]}, "the residue name 'WATER' is too long .* mmCIF"),
        ({"positions": [[0, 0, 0]], "chain_ids": ["AA"]}, "the chain id 'AA' is too long .* mmCIF"),
        ({"positions": [[0, 0, 0]], "cell": Cell(np.eye(3) * 2e5)}, "cell is too large .* mmCIF"),
    ],
)
def test_what_a_pdb_cannot_hold_is_refused_and_mmcif_holds_it(tmp_path, fields, message):
    structure = structure_of(**fields)
    with pytest.raises(UsageError, match=message):
        io.write_structure(structure, tmp_path / "out.pdb")
    assert not list(tmp_path.iterdir())
    io.write_structure(structure, tmp_path / "out.cif")
    assert_same(structure, io.read_structure(tmp_path / "out.cif"), [name for name in PER_ATOM if name != "elements"])


def test_coordinates_at_the_edge_of_their_columns(tmp_path):
    structure = structure_of([[9999.999, -999.999, -0.0004], [0.0005, 0.0015, -0.9996]])
    io.write_structure(structure, tmp_path / "out.pdb")
    np.testing.assert_allclose(io.read_structure(tmp_path / "out.pdb").positions, structure.positions, atol=5.01e-4)
    lines = atom_lines(tmp_path / "out.pdb")
    assert lines[0][30:54] == "9999.999-999.999   0.000"


def test_float32_coordinates_survive_mmcif(tmp_path):
    structure = structure_of(np.random.default_rng(1).normal(size=(50, 3)).astype(np.float32) * 50)
    io.write_structure(structure, tmp_path / "out.cif")
    np.testing.assert_allclose(io.read_structure(tmp_path / "out.cif").positions, structure.positions, atol=5.01e-7)


def test_several_outputs_or_none(tmp_path):
    structure = io.read_structure(MDA / "adk_closed.pdb", MDA / "adk.psf")
    paths = [tmp_path / name for name in ("a b.pdb", "a.cif.gz", "a.psf", "a.pqr")]
    io.write_structures(structure, paths)
    assert_same(structure, io.read_structure(paths[1]))
    again = io.read_structure(paths[0], paths[2])
    np.testing.assert_allclose(again.charges, structure.charges, atol=1e-6)
    with naming(UsageError, paths[1]):
        io.write_structures(structure, [tmp_path / "new.pdb", paths[1]])
    assert not (tmp_path / "new.pdb").exists()
    io.write_structures(structure, paths, force=True)
    with naming(OutputError, Words.MISSING_FOLDER):
        io.write_structure(structure, tmp_path / "no" / "a.pdb")
    first = paths[1].read_bytes()
    io.write_structure(structure, paths[1], force=True)
    assert paths[1].read_bytes() == first


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("a.prmtop", UsageError, "prmtop cannot be written.*Lennard-Jones.*\\.psf"),
        ("prmtop", UsageError, "prmtop cannot be written"),
        ("a.parm7", UsageError, "prmtop cannot be written"),
        ("a.xyz", UsageError, r"cannot be written in this format; name it \.pdb"),
        ("a.pdb.bz2", UsageError, "cannot be written in this format"),
        ("a", UsageError, "cannot be written in this format"),
        ("a.pqr", ChargeError, "needs charges"),
        ("a.psf", ChargeError, "needs charges"),
    ],
)
def test_formats_that_are_refused(tmp_path, name, error, message):
    structure = io.read_structure(MDA / "adk_closed.pdb")
    with pytest.raises(error, match=message):
        io.check_formats(structure, [tmp_path / "fine.pdb", tmp_path / name])
    with pytest.raises(VmdpotentialError):
        io.write_structures(structure, [tmp_path / "fine.pdb", tmp_path / name])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("suffix", "speed"), [(".gro", 9999.0), (".gro", -999.0), (".rst7", 20_440.0)])
def test_velocities_that_columns_do_not_hold(suffix, speed, tmp_path):
    structure = golden.structure()
    fits, wide = np.zeros((len(structure), 3)), np.zeros((len(structure), 3))
    fits[-1, 2], wide[-1, 2] = 0.999 * speed, speed
    io.write_structure(replace(structure, velocities=fits), tmp_path / f"fits{suffix}")
    with naming(UsageError, "velocities"):
        io.write_structure(replace(structure, velocities=wide), tmp_path / f"wide{suffix}")
    assert [path.name for path in tmp_path.iterdir()] == [f"fits{suffix}"]


def test_formats_without_the_orientation_of_a_cell_warn(tmp_path, caplog):
    structure = golden.structure()
    a, b, c = structure.cell.vectors
    turned = replace(structure, cell=Cell(np.stack([b, -a, c])))
    for suffix in (".rst7", ".cif", ".pdb"):
        caplog.clear()
        io.write_structure(turned, tmp_path / f"a{suffix}")
        assert "the rotation of its vectors is lost" in caplog.text, suffix


def test_radii_of_a_file_outlive_ions_and_are_not_mixed_with_others(tmp_path, caplog):
    given = np.arange(len(golden.structure())) % 5 + 1.25
    placed = place_ions(replace(golden.structure(), radii=given), site="random", seed=1)
    kept = placed.kept_atoms
    io.write_structure(placed.structure, tmp_path / "a.pqr")
    written = io.read_structure(tmp_path / "a.pqr").radii
    np.testing.assert_array_equal(written[: len(kept)], given[kept])
    assert (written[len(kept):] > 1).all()  # of the table
    chosen = np.ones(len(placed.structure), bool)
    with caplog.at_level("WARNING"):  # radii of two sources are not mixed
        radii, source = atomic_radii(placed.structure, chosen)
    assert source == "mbondi2"
    assert "SOD1:SOD" in caplog.text
    np.testing.assert_array_equal(radii, atomic_radii(placed.structure, chosen, "mbondi2")[0])
    chosen[len(kept):] = False
    np.testing.assert_array_equal(atomic_radii(placed.structure, chosen)[0], given[kept])
    for wrong in (-1.0, np.inf):
        invalid = replace(golden.structure(), radii=np.full(len(given), wrong))
        assert atomic_radii(invalid, np.ones(len(given), bool))[1] == "mbondi2"
