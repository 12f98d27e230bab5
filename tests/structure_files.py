"""The real files that structures are read from, and how structures are compared."""

from __future__ import annotations

import bz2
import gzip
import warnings
from pathlib import Path

import MDAnalysis
import numpy as np
import openmm.app
import openmmtools
from MDAnalysisTests import datafiles

from vmdpotential.molecule.structure import Structure

MDA = Path(datafiles.PDB).parent
TOOLS = Path(openmmtools.__file__).parent / "data"
OPENMM = Path(openmm.app.__file__).parent / "data"
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


def assert_same(one, other, names=PER_ATOM, positions=1e-9, cell=1e-6):
    assert len(one) == len(other)
    for name in names:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    np.testing.assert_allclose(other.positions, one.positions, rtol=0, atol=positions)
    assert (one.cell is None) == (other.cell is None)
    if one.cell is not None:
        np.testing.assert_allclose(other.cell.vectors, one.cell.vectors, atol=cell)


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
