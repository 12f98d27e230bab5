"""Recognition of file formats by the suffix, or by the content if the suffix is missing or unknown."""

from __future__ import annotations

import re
from pathlib import Path

from vmdpotential import registry
from vmdpotential.errors import InputError
from vmdpotential.io.files import text as files

PRMTOP_SUFFIXES = (".prmtop", ".parm7", ".parm")
_SUFFIXES = {
    **dict.fromkeys((".pdb", ".ent", ".pdb1", ".brk"), "pdb"),
    **dict.fromkeys((".cif", ".mmcif", ".pdbx"), "mmcif"),
    **dict.fromkeys(PRMTOP_SUFFIXES, "prmtop"),
    **dict.fromkeys((".rst7", ".inpcrd", ".nc", ".ncrst", ".restrt", ".ncdf", ".netcdf"), "amber-coordinates"),
    **dict.fromkeys((".xtc", ".trr", ".dcd", ".coor", ".namdbin", ".tng", ".h5md"), "frames"),
    **dict.fromkeys((".tpr", ".mol2", ".data", ".gsd", ".pdbqt"), "mdanalysis"),
    ".gro": "gro", ".pqr": "pqr", ".psf": "psf",
    **dict.fromkeys((".cube", ".cub"), "cube"), **dict.fromkeys((".molden", ".mold"), "molden"),
}  # fmt: skip
_PDB_RECORD = re.compile(rb"(HEADER|TITLE |COMPND|REMARK|CRYST1|MODEL |ATOM  |HETATM|SEQRES|SOURCE|AUTHOR)")
_ATOM_LINE = re.compile(rb"^(?:ATOM|HETATM).*$", re.MULTILINE)
_OCCUPANCY = re.compile(rb"\s*-?\d*\.\d+\s*$|\s*$")


def is_structure(path: Path) -> bool:
    """Return whether a file's suffix is that of a format that holds both names and positions."""
    return _SUFFIXES.get(files.format_suffix(path)) in ("pdb", "mmcif", "gro", "pqr")


def kind_of(path: Path) -> str:
    """Return the kind of a file: the name of a reader, or ``amber-coordinates``, ``frames``, ``mdanalysis``.

    Raises
    ------
    InputError
        When the file cannot be read, or neither suffix nor content show its format.
    """
    suffix = files.format_suffix(path)
    if suffix in _SUFFIXES:
        files.first_bytes(path, 1)  # raises here if the file is missing
        return _SUFFIXES[suffix]
    if suffix in registry.available("structure_reader"):  # of a plugin
        return suffix
    start = files.first_bytes(path, 1 << 20)  # headers of PDB files are long
    kind = _binary(start) or _text(files.plain_text(start))
    if kind:
        return kind
    if suffix in (".crd", ".top", ".itp", ".xyz", ".lammpsdump", ".arc", ".txyz"):
        return "mdanalysis" if suffix != ".top" and suffix != ".itp" else "gromacs-topology"
    raise InputError(
        f"{path}: its format is not recognised",
        "convert it to PDB, mmCIF, GRO, PQR, PSF or an Amber prmtop with coordinates; MDAnalysis adds TPR, XYZ, PDBQT, "
        "LAMMPS, H5MD and others"
    )


def _binary(start: bytes) -> str:
    if start[:3] == b"CDF" or start[:4] == b"\x89HDF":
        return "amber-coordinates"
    if start[4:8] == b"CORD" or start[:4] in (b"\x00\x00\x07\xcb", b"\x00\x00\x07\xc9"):  # DCD, XTC, TRR
        return "frames"
    if b"VERSION" in start[:24] and b"\x00" in start[:4]:
        return "mdanalysis"  # TPR
    return ""


def _text(start: bytes) -> str:
    head = start.lstrip()
    lines = start.splitlines()
    first = head.split(None, 1)[0] if head else b""
    if first.startswith((b"%VERSION", b"%FLAG")):
        return "prmtop"
    if first == b"PSF":
        return "psf"
    if re.search(rb"^(data_\S*|_atom_site\.\S+|loop_)\s", head, re.MULTILINE) and not _PDB_RECORD.match(head):
        return "mmcif"
    if _PDB_RECORD.match(head) or _ATOM_LINE.search(start):
        return _pdb_or_pqr(start)
    if len(lines) > 2 and lines[1].split()[:1] and lines[1].split()[0].isdigit():
        if re.match(rb"(\s*-?\d+\.\d{7}){3}", lines[2]):
            return "amber-coordinates"
        if len(lines[1].split()) == 1 and len(lines[2]) >= 44 and lines[2][20:].count(b".") >= 3:
            return "gro"
    if re.search(rb"^\s*\[\s*(defaults|moleculetype|system|atoms)\s*\]", start, re.MULTILINE):
        return "gromacs-topology"
    return ""


def _pdb_or_pqr(start: bytes) -> str:
    """Distinguish PDB from PQR: charge and radius of a PQR do not fit the columns of occupancy and B-factor."""
    atom = _ATOM_LINE.search(start)
    if atom is None:
        return "pdb"
    line = atom[0].rstrip()
    in_columns = all(_OCCUPANCY.match(line[a:b]) for a, b in ((54, 60), (60, 66)))
    coordinates = all(re.match(rb"\s*-?\d*\.?\d+\s*$", line[a : a + 8]) for a in (30, 38, 46))
    return "pdb" if in_columns and coordinates else "pqr"
