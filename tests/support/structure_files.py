"""The real files that structures are read from, and how structures are compared."""

from __future__ import annotations

import bz2
import gzip
import warnings
from pathlib import Path

import MDAnalysis
import numpy as np
import openmm.app
from helpers import TOOLS
from MDAnalysisTests import datafiles

from vmdpotential.molecule.structure import Structure, Topology

MDA = Path(datafiles.PDB).parent
OPENMM = Path(openmm.app.__file__).parent / "data"
AMBER = MDA / "Amber"
#: PSF files: words of line 1; atoms, bonds, angles, dihedrals, impropers, donors, acceptors, cross-terms
PSF = {
    "watdyn.psf": ("", 15, 15, 5, 0, 0, 0, 0, 0),
    "nosegid.psf": ("", 98, 97, 0, 0, 0, 0, 0, 0),
    "trz_psf.psf": ("", 8184, 8160, 0, 0, 0, 0, 0, 0),
    "namd_cgenff.psf": ("", 130, 132, 232, 333, 11, 0, 0, 0),
    "SiN_tric_namd.psf": ("", 5545, 5274, 7833, 0, 0, 0, 0, 0),
    "adk_closed_NAMD.psf": ("CMAP", 3341, 3365, 6123, 8921, 541, 0, 0, 212),
    "2r9r-1b.psf": ("CMAP", 1284, 1308, 1876, 2456, 328, 0, 0, 144),
    "parmed_ala3.psf": ("CMAP CHEQ", 33, 32, 57, 74, 5, 5, 4, 1),
    "adk.psf": ("CMAP CHEQ", 3341, 3365, 6123, 8921, 541, 376, 323, 0),
    "adk_notop.psf": ("CMAP CHEQ", 3341, 0, 0, 0, 0, 0, 0, 0),
    "tip125_tric_C36.psf": ("CMAP CHEQ", 375, 375, 125, 0, 0, 0, 0, 0),
    "1a2c_ins_code.psf": ("EXT CMAP XPLOR", 571, 574, 1034, 1509, 91, 66, 62, 35),
    "analysis/1k5i_c36.psf.gz": ("EXT CMAP CHEQ XPLOR", 17927, 17961, 7141, 2115, 63, 11520, 5915, 0),
}
PRMTOP = [
    AMBER / "ace_mbondi3.parm7",
    AMBER / "ache_chainid.prmtop.bz2",
    AMBER / "ala.ff19SB.OPC.parm7.bz2",  # 4-site water, CMAP, truncated octahedron
    AMBER / "anti.top",
    AMBER / "bala.prmtop",
    AMBER / "parmed_fad.prmtop",  # Chamber
    TOOLS / "cb7-b2" / "complex-explicit.prmtop",
    TOOLS / "dhfr" / "JAC.prmtop",
]
PER_ATOM = (
    "atom_names", "residue_names", "chain_ids", "segment_ids", "elements", "insertion_codes", "residue_ids",
    "residue_index", "hetero", "occupancies", "b_factors",
)  # fmt: skip


def universe(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MDAnalysis.Universe(str(path))


def atom_lines(path):
    """The atom records of a PDB file, by plain Python: the reference for order and names."""
    opened = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix, open)
    with opened(path, "rt") as file:
        return [line.rstrip("\n").ljust(80) for line in file if line.startswith(("ATOM", "HETATM"))]


def assert_same(actual, expected, names=PER_ATOM, positions=1e-9, cell=1e-6):
    assert len(actual) == len(expected)
    for name in names:
        np.testing.assert_array_equal(getattr(actual, name), getattr(expected, name), err_msg=name)
    np.testing.assert_allclose(expected.positions, actual.positions, rtol=0, atol=positions)
    assert (actual.cell is None) == (expected.cell is None)
    if actual.cell is not None:
        np.testing.assert_allclose(expected.cell.vectors, actual.cell.vectors, atol=cell)


def structure_of(positions, **fields):
    count = len(positions)
    given = {"atom_names": ["C"] * count, "residue_names": ["LIG"] * count, "residue_ids": np.arange(count),
             "residue_index": np.arange(count), **fields}  # fmt: skip
    return Structure(positions=np.array(positions, float), **given)


def of_universe(universe, positions=False):
    """Return the atoms of a universe of MDAnalysis as a structure, without places where they do not matter."""
    atoms = universe.atoms
    return Structure(atoms.positions if positions else np.zeros((len(atoms), 3)), atoms.names.astype(str),
                     atoms.resnames.astype(str), atoms.resids, atoms.resindices)


def small_cif(columns_and_values, cell=""):
    names = "".join(f"_atom_site.{name}\n" for name in columns_and_values)
    rows = "\n".join(" ".join(row) for row in zip(*columns_and_values.values(), strict=True))
    return f"data_x\n{cell}loop_\n{names}{rows}\n"


SMALL = {
    "id": ["1", "2"], "label_atom_id": ["\"O5'\"", "'C 1'"], "label_comp_id": ["LIG", "'L G'"],
    "label_seq_id": ["1", "."], "auth_seq_id": ["?", "7"], "Cartn_x": ["1.5", "2.5(3)"], "Cartn_y": ["0", "1e1"],
    "Cartn_z": ["-1", "0.0"], "occupancy": ["?", "0.5"],
}  # fmt: skip


def charmm_of(path):
    """Return a PSF as ParmEd reads it."""
    import parmed

    return parmed.charmm.CharmmPsfFile(str(path))


def amber_of(path):
    """Return a prmtop or Amber's coordinates as ParmEd reads them."""
    import parmed

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return parmed.load_file(str(path))


def bonded_atoms(terms, size, keep=None):
    """Return the atoms of ParmEd's terms, each read in the direction that begins with the lower atom, sorted."""
    rows = [[getattr(term, f"atom{i + 1}").idx for i in range(size)] for term in terms if keep is None or keep(term)]
    return ordered(np.array(rows, int).reshape(-1, size))


def ordered(rows):
    """Return rows of atoms, each from its lower end, sorted."""
    rows = np.where((rows[:, :1] > rows[:, -1:]), rows[:, ::-1], rows)
    return rows[np.lexsort(rows.T)]


def same_terms(topology, other):
    for name in Topology.TERMS:
        np.testing.assert_array_equal(getattr(topology, name), getattr(other, name), err_msg=name)
