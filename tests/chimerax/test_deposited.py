"""From a deposited structure without most of its hydrogens to a coloured surface, in one command."""

import gzip
from dataclasses import replace
from pathlib import Path

import gemmi
import numpy as np
import pytest
from deposited import crystal_file
from messages import naming
from pieces import volumes
from scipy.spatial import cKDTree

from vmdpotential.io import read_structure, write_structure
from vmdpotential.molecule.selection import select

ENTRY = Path(__file__).resolve().parents[2] / "data" / "1hvr.pdb.gz"


@pytest.fixture(params=["pdb", "cif"])
def entry(request, tmp_path, opened):
    path = tmp_path / f"1hvr.{request.param}"
    content = gzip.decompress(ENTRY.read_bytes())
    if request.param == "pdb":
        path.write_bytes(content)
    else:
        gemmi.read_pdb_string(content).make_mmcif_document().write_file(str(path))
    return opened(path)


@pytest.mark.parametrize("command", ["map", "average"])
def test_the_surface_is_where_the_map_is(session, do, opened, tmp_path, command):
    """A cell that splits a protein: it is made whole for a continuum, and half of its surface was outside the map."""
    folder = ENTRY.parent
    box = read_structure(folder / "dhfr.pdb.gz", topology=folder / "dhfr.psf.gz")
    middle = box.cell.wrap(box.positions + box.cell.vectors.sum(0) / 2)
    write_structure(replace(box, positions=middle), tmp_path / "split.pdb")
    model = opened(tmp_path / "split.pdb")
    shown = model.atoms.coords
    model.add_coordset(2, shown)
    do(f'potential {command} #1 spacing 3 medium water topology "{folder / "dhfr.psf.gz"}"')
    (surface,) = [model for model in session.models.list() if " surface, " in model.name]
    whole = box.positions[select(box, "solute")]
    # the surface is a van der Waals radius outside the atoms
    np.testing.assert_allclose(np.ptp(surface.vertices, axis=0), np.ptp(whole, axis=0), atol=4)
    assert not (surface.vertex_colors[:, :3] == bytearray.fromhex("cccccc")).all(1).any()  # no point without a value
    np.testing.assert_array_equal(session.models.list()[0].atoms.coords, shown)


def test_one_command_draws_the_surface(session, do, log, entry):
    count = entry.num_atoms
    do("potential map #1 spacing 1")
    text = " ".join(text for _, text in log.entries)
    assert text.count("prepared at pH 7") == 1
    assert "approximate charges for CSO, XK2" in text
    assert entry.num_atoms == count
    surface = next(model for model in session.models.list() if " surface, " in model.name)
    assert "-5 to 5 kT/e" in surface.name
    assert len({tuple(colour) for colour in surface.vertex_colors}) > 100


def test_a_part_has_a_surface_in_the_field_of_all(session, do, log, opened, tmp_path):
    (tmp_path / "1hvr.pdb").write_bytes(gzip.decompress(ENTRY.read_bytes()))
    model = opened(tmp_path / "1hvr.pdb")
    chain = model.atoms[model.atoms.chain_ids == "B"].coords
    others = model.atoms[model.atoms.chain_ids == "A"].coords
    do("potential map #1 spacing 2 surfaceOf /B")
    (surface,) = [made for made in session.models.list() if " surface, " in made.name]
    assert cKDTree(chain).query(surface.vertices)[0].max() < 4.5  # a hydrogen and its radius from an atom
    assert (cKDTree(others).query(chain)[0] < 4).sum() > 50
    assert "of /B" in log.text
    do("potential map #1/B spacing 2 surfaceOf :1-10 name half")
    (half,) = [made for made in session.models.list() if "half surface, " in made.name]
    numbers = model.atoms.residues.numbers
    rows = (model.atoms.chain_ids == "B") & (numbers <= 10)
    assert cKDTree(model.atoms[rows].coords).query(half.vertices)[0].max() < 4.5
    from chimerax.core.errors import UserError

    count = len(session.models.list())
    for words in ("surfaceOf solvent", "surfaceOf /Z", "surfaceOf (("):
        with naming(UserError, "surfaceOf"):
            do(f"potential map #1 spacing 2 {words}")
    assert len(session.models.list()) == count


def test_the_surface_is_the_outer_one(session, do, opened, tmp_path):
    """Dihydrofolate reductase has closed cavities."""
    from chimerax.surface import ses_surface_geometry

    folder = ENTRY.parent
    box = read_structure(folder / "dhfr.pdb.gz", topology=folder / "dhfr.psf.gz")
    molecule = box.take(select(box, "solute"))
    write_structure(molecule, tmp_path / "dhfr.pdb")
    write_structure(molecule, tmp_path / "dhfr.psf")
    opened(tmp_path / "dhfr.pdb")
    do(f'potential map #1 spacing 3 topology "{tmp_path / "dhfr.psf"}"')
    (surface,) = [model for model in session.models.list() if " surface, " in model.name]
    outer = volumes(surface.vertices, surface.masked_triangles)
    vertices, _, triangles = ses_surface_geometry(
        np.float32(surface.atoms.coords), surface.atoms.radii)
    every = volumes(vertices, triangles)
    assert len(outer) == 1
    assert every.min() < -10
    assert outer[0] == pytest.approx(every.max(), rel=1e-3)


def test_hydrogens_that_chimerax_adds_are_understood(session, opened, do, log, tmp_path):
    addh = pytest.importorskip("chimerax.addh.cmd")
    from chimerax.atomic import AtomicStructures

    path = tmp_path / "1hvr.pdb"
    path.write_bytes(gzip.decompress(ENTRY.read_bytes()))
    model = opened(path)
    before = model.num_atoms
    addh.cmd_addh(session, AtomicStructures([model]))
    assert model.num_atoms > before + 1000
    do("potential map #1 spacing 2")
    text = " ".join(text for _, text in log.entries)
    assert "added 0 hydrogens" in text


def test_the_cell_and_an_assembly_are_models_that_are_computed(session, opened, do, log, tmp_path):
    crystal = opened(crystal_file(tmp_path / "crystal.cif"))
    count = crystal.num_atoms
    do("potential map #1 spacing 2 expand cell boundary periodic name inside")
    made = next(model for model in session.models.list() if model.name == "inside copies")
    assert made.num_atoms == 6 * count
    assert not crystal.display
    assert "prepared" in " ".join(text for _, text in log.entries)
    do("potential map #1 spacing 2 assembly 9 name pair")
    pair = next(model for model in session.models.list() if model.name == "pair copies")
    assert pair.num_atoms == 2 * count
    coordinates = pair.atoms.coords
    assert coordinates[count:].mean(0)[1] - coordinates[:count].mean(0)[1] == pytest.approx(30, abs=1e-3)
    assert pair.num_bonds == 2 * crystal.num_bonds
    # of a model with two coordinate sets, both are of the assembly
    crystal.add_coordset(2, crystal.atoms.coords + np.array([1, 0, 0.5]))
    do("potential average #1 fit none spacing 2 assembly 9 name mean")
    assert "2 frames" in " ".join(text for _, text in log.entries)
    grid = next(model for model in session.models.list() if model.name == "mean")
    high = grid.data.ijk_to_xyz([size - 1 for size in grid.data.size])
    assert high[1] > coordinates[:, 1].max()
