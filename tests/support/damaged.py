"""Small good files of every format to damage, and the line that refuses them."""

import numpy as np
import pytest
from fuzz import seeds

from vmdpotential import read_map, read_structure
from vmdpotential.errors import InputError
from vmdpotential.io import read_topology

SEEDS = {suffix: data for kind, files in seeds.seeds().items() for suffix, data in reversed(files) if kind != "ions"}
PDB, CIF, PQR, GRO, PSF = (SEEDS[suffix].decode() for suffix in (".pdb", ".cif", ".pqr", ".gro", ".psf"))
PRMTOP, RST7, DX, CUBE = (SEEDS[suffix].decode() for suffix in (".prmtop", ".rst7", ".dx", ".cube"))
MRC, NPZ = SEEDS[".mrc"], SEEDS[".npz"]
MAPS = {".dx", ".mrc", ".ccp4", ".cube", ".npz", ".map", ".xyz"}


def read(path):
    """Read a file by whatever reads its suffix."""
    if MAPS & set(path.suffixes):
        return read_map(path)
    if path.suffix in (".psf", ".prmtop"):
        return read_topology(path)
    if path.suffix in (".rst7", ".nc", ".xtc", ".trr", ".dcd"):
        topology = path.parent / "names.psf"
        topology.write_text(PSF)
        return read_structure(path, topology)
    return read_structure(path)


def same(a, b):
    for name in ("positions", "charges", "residue_ids", "values"):
        ours, theirs = getattr(a, name, None), getattr(b, name, None)
        assert (ours is None) == (theirs is None)
        assert ours is None or np.array_equal(ours, theirs), name
    ours, theirs = getattr(a, "cell", None), getattr(b, "cell", None)
    assert (ours is None) == (theirs is None)
    assert ours is None or np.array_equal(ours.vectors, theirs.vectors)


def refused(path, match=None, kind=InputError):
    """Read what must be refused, and check that it is one line that names the file and the place in it."""
    with pytest.raises(kind, match=match) as caught:
        read(path)
    line = str(caught.value)
    assert len(line) <= 300
    assert line.isprintable()
    assert path.name in line
    return line


TEXTS = [(".pdb", PDB), (".cif", CIF), (".pqr", PQR), (".gro", GRO), (".psf", PSF), (".prmtop", PRMTOP),
         (".rst7", RST7)]
