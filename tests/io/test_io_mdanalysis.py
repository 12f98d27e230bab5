"""What MDAnalysis reads for us: TPR and other topologies, and frames."""

from __future__ import annotations

import os
import shutil
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import MDAnalysis
import numpy as np
import parmed
import pytest
from helpers import slow
from messages import naming
from numpy.testing import assert_allclose, assert_array_equal
from structure_files import MDA, ordered, universe

from vmdpotential import io
from vmdpotential.errors import InputError
from vmdpotential.io.topologies import psf
from vmdpotential.io.trajectories.frames import read_frame
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.charges import charges_and_report
from vmdpotential.plugins.forcefields import mdanalysis_topologies
from vmdpotential.plugins.forcefields.psfwrite import write_psf
from vmdpotential.plugins.formats import amber_coordinates


@pytest.mark.slow
def test_a_tpr_that_counts_more_than_it_holds(tmp_path):
    """MDAnalysis goes through as many empty grids of CMAP as it says, which may be minutes."""
    content = bytearray((MDA / "tprs" / "all_bonded" / "dummy_2021.tpr").read_bytes())
    path = tmp_path / "a.tpr"
    path.write_bytes(content)
    assert len(io.read_topology(path)) == 14
    assert content[2894:2902] == bytes(8)  # how many grids, and points along a side
    content[2894:2898] = (100_000).to_bytes(4, "big")
    path.write_bytes(content)
    with naming(InputError, "a.tpr: "):
        io.read_topology(path)


TPRS = ["adk_oplsaa.tpr", "aux_edr.tpr", "tprs/2lyz_gmx_4.0.2.tpr"]


@pytest.mark.parametrize("name", slow(TPRS, TPRS[:2]))
def test_tpr(tmp_path: Path, name: str) -> None:
    structure = io.read_structure(MDA / name)
    other = universe(MDA / name)
    assert structure.topology.source == "tpr"
    assert_array_equal(structure.atom_names, other.atoms.names)
    assert_array_equal(structure.residue_index, other.atoms.resindices)
    assert_allclose(structure.charges, other.atoms.charges, rtol=1e-6)
    # charges are read as the decimals that the force field states, so the sum is a whole number
    assert structure.net_charge == pytest.approx(round(structure.net_charge), abs=1e-9)
    assert_array_equal(structure.positions, other.atoms.positions)
    assert_allclose(structure.cell.parameters, other.dimensions, rtol=1e-6)
    assert_array_equal(structure.topology.bonds, other.bonds.indices)

    path = tmp_path / "from_tpr.psf"
    write_psf(structure, path)
    again = psf.read_psf(path)
    assert_array_equal(again.charges, structure.charges)
    assert_array_equal(ordered(again.topology.bonds), ordered(structure.topology.bonds))
    theirs = universe(path)
    assert_allclose(theirs.atoms.charges, structure.charges, rtol=1e-6)
    # types of more than six letters are cut, and the title says what they stand for
    short = dict(line.split()[3::4] for line in again.topology.title if "is short for" in line)
    original = [short.get(kind, kind) for kind in again.topology.types]
    assert_array_equal(original, structure.topology.types)


def test_cross_terms_of_a_tpr_reach_the_psf(tmp_path: Path) -> None:
    """MDAnalysis reads CMAP terms and drops them."""
    structure = io.read_topology(MDA / "tprs" / "virtual_sites" / "extra-interactions-2024.tpr")
    assert structure.topology.cross_terms.tolist() == [[0, 1, 2, 3, 1, 2, 3, 4]]
    write_psf(structure, tmp_path / "out.psf")
    again = psf.read_psf(tmp_path / "out.psf")
    assert again.topology.cross_terms.tolist() == structure.topology.cross_terms.tolist()
    assert "CMAP" in again.topology.flags
    assert len(parmed.charmm.CharmmPsfFile(str(tmp_path / "out.psf")).cmaps) == 1


def test_whose_charges_a_psf_has(tmp_path: Path) -> None:
    """A viewer says in the title that they are its own."""
    structure = psf.read_psf(MDA / "watdyn.psf")
    assert str(charges_and_report(structure)[1]).startswith("charges from the psf topology; ")
    topology = replace(structure.topology, title=(" REMARKS charges from the atoms in VMD",))
    write_psf(replace(structure, topology=topology), tmp_path / "vmd.psf")
    report = charges_and_report(psf.read_psf(tmp_path / "vmd.psf"))[1]
    assert str(report).startswith("charges from the atoms in VMD; ")
    assert report.data["charges"] == "atoms in VMD"


def test_cross_terms_of_several_molecules() -> None:
    atoms = SimpleNamespace(molnums=np.repeat([0, 1, 2], [6, 3, 6]), moltypes=np.repeat(["A", "B", "A"], [6, 3, 6]))
    kept = {"A": np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])}
    assert mdanalysis_topologies._cross_terms(atoms, kept)[:, [0, 4, 7]].tolist() == [[0, 1, 4], [1, 2, 5], [9, 10, 13],
                                                                            [10, 11, 14]]
    assert mdanalysis_topologies._cross_terms(atoms, {}).shape == (0, 8)


@pytest.mark.slow
def test_rigid_waters_of_a_tpr_get_their_angles(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    structure = io.read_topology(MDA / "tprs" / "2lyz_gmx_2024.tpr")
    waters = int((structure.residue_names[structure.residue_starts[:-1]] == "SOL").sum())
    assert waters > 90
    write_psf(structure, tmp_path / "out.psf")
    assert f"has no angles for {waters} rigid waters" in caplog.text
    again = psf.read_psf(tmp_path / "out.psf")
    angles = again.topology.angles[len(structure.topology.angles):]
    names = structure.atom_names[angles]
    assert len(angles) == waters
    assert set(map(tuple, names.tolist())) == {("HW1", "OW", "HW2")}
    assert any(f"angles of {waters} rigid waters are made from their bonds" in line for line in again.topology.title)
    caplog.clear()
    write_psf(again, tmp_path / "again.psf")  # a PSF states what it means
    assert not caplog.records
    assert len(psf.read_psf(tmp_path / "again.psf").topology.angles) == len(again.topology.angles)


def test_mol2() -> None:
    structure = io.read_structure(MDA / "mol2" / "Molecule.mol2")
    assert len(structure) == 49
    assert len(structure.topology.bonds) == 51
    assert structure.cell is None
    assert structure.net_charge == pytest.approx(-0.002, abs=1e-9)  # as the file's charges add up


def test_itp_has_charges_but_no_coordinates() -> None:
    path = MDA / "gromacs_ala10.itp"
    structure = io.read_topology(path)
    assert_allclose(structure.charges, universe(path).atoms.charges)
    assert not structure.positions.any()
    with naming(InputError, "coordinates"):
        io.read_structure(path)


TRAJECTORIES = [
    "adk_oplsaa.xtc", "adk_oplsaa.trr", "aux_edr.xtc", "SiN_tric_namd.dcd", "adk_dims.dcd", "Amber/bala.ncdf",
]  # fmt: skip


@pytest.mark.parametrize("name", TRAJECTORIES)
def test_the_first_of_several_frames_is_told(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with MDAnalysis.coordinates.core.get_reader_for(str(MDA / name))(str(MDA / name)) as reader:
            atoms, count = reader.n_atoms, reader.n_frames
    read_frame(MDA / name, atoms, count - 1)
    assert not caplog.text
    for read in [lambda: read_frame(MDA / name, atoms),
                 *[lambda: amber_coordinates.read_restart(MDA / name)] * name.endswith(".ncdf")]:
        caplog.clear()
        read()
        assert caplog.text.count("frames; the first one is used") == (count > 1)


@pytest.mark.parametrize("name", TRAJECTORIES)
def test_frames_agree_with_mdanalysis(tmp_path: Path, name: str) -> None:
    path = tmp_path / Path(name).name
    shutil.copy(MDA / name, path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader = MDAnalysis.coordinates.core.get_reader_for(str(MDA / name))(str(MDA / name))
        for frame in {0, len(reader) // 2, -1}:
            positions, cell = read_frame(path, reader.n_atoms, frame)
            step = reader[frame]
            assert_allclose(positions, step.positions, rtol=1e-6, atol=1e-6)
            if step.dimensions is None:
                assert cell is None
            else:
                assert_allclose(cell.parameters, step.dimensions, rtol=1e-5)
        count = len(reader)
        reader.close()
    assert os.listdir(tmp_path) == [path.name]  # no .npz, no .lock
    with naming(InputError, f"{count} frames, ", f"frame {count}"):
        read_frame(path, reader.n_atoms, count)
    with naming(InputError, "structure 7"):
        read_frame(path, 7)


def test_frame_of_triclinic_trajectory_fits_its_psf() -> None:
    structure = psf.read_psf(MDA / "SiN_tric_namd.psf")
    positions, cell = read_frame(MDA / "SiN_tric_namd.dcd", len(structure))
    assert isinstance(cell, Cell)
    assert not cell.orthogonal
    # The membrane is bonded across the cell. A DCD keeps lengths and angles, not the orientation: here a does not
    # lie along x but 30 degrees below, and with the cell turned so every bond has its length.
    bonds = positions[structure.topology.bonds]
    across = bonds[:, 0] - bonds[:, 1]
    assert np.linalg.norm(across, axis=1).max() > 10
    cos, sin = np.cos(np.pi / 6), np.sin(np.pi / 6)
    turned = Cell(cell.vectors @ np.array([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]]))
    assert np.linalg.norm(turned.minimum_image(across), axis=1).max() < 4


def test_a_tpr_with_interactions_between_molecules():
    """Its coordinates follow them; GROMACS wrote the same ones as .gro."""
    folder = Path(__file__).parents[1] / "data"
    tpr, gro = (io.read_structure(folder / f"intermolecular_interactions.{suffix}") for suffix in ("tpr", "gro"))
    np.testing.assert_allclose(tpr.positions, gro.positions, atol=6e-3)
    np.testing.assert_allclose(tpr.cell.vectors, gro.cell.vectors, atol=1e-3)
