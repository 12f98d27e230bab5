"""Conversion of atom and residue names of CHARMM, Amber, GROMACS and old PDB files to one convention, almost PDB v3."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

_FAMILIES = {
    "HIS": "HIS HSD HSE HSP HID HIE HIP HISA HISB HISD HISE HISH HISP HIS1 HIS2",
    "CYS": "CYS CYX CYM CYSH CYS1 CYS2",
    "ASP": "ASP ASH ASPP ASPH",
    "GLU": "GLU GLH GLUP GLUH",
    "LYS": "LYS LYN LSN LYSH LYSN",
    "ARG": "ARG ARGN",
    "NME": "NME NMA NAC CT3",
    "NHE": "NHE NH2 CT2",
    "ADE": "ADE A DA RA",
    "CYT": "CYT C DC RC",
    "GUA": "GUA G DG RG",
    "THY": "THY T DT",
    "URA": "URA U RU DU",
    "CHL1": "CHL1 CHL CHOL",
}
AMINO_ACIDS = (
    "ALA", "ARG", "ASN", "ASP", "CYS", "GLN", "GLU", "GLY", "HIS", "ILE",
    "LEU", "LYS", "MET", "PHE", "PRO", "SER", "THR", "TRP", "TYR", "VAL", "HYP",
)  # fmt: skip
NUCLEOTIDE_NAMES = ("ADE", "CYT", "GUA", "THY", "URA")
_FAMILY_OF = {name: family for family, names in _FAMILIES.items() for name in names.split()}


@cache
def family(name: str) -> str:
    """Return the name that stands for all variants of a residue: HIS for HSE, NHIE and HIP."""
    name = name.upper()
    if name in _FAMILY_OF:
        return _FAMILY_OF[name]
    # Amber's names of terminal residues: NALA, CHIE; DA5, A3, DAN
    if len(name) == 4 and name[0] in "NC" and _FAMILY_OF.get(name[1:], name[1:]) in AMINO_ACIDS:
        return _FAMILY_OF.get(name[1:], name[1:])
    if name[-1:] in ("3", "5", "N") and _FAMILY_OF.get(name[:-1]) in NUCLEOTIDE_NAMES:
        return _FAMILY_OF[name[:-1]]
    return name


# by the stem of the hydrogens' names, residues in which these belong to one CH2 (or NH2); programs number them
# 1,2 or 2,3 or 1,3
_METHYLENES = {
    "HA": "GLY",
    "HB": "ARG ASN ASP CYS GLN GLU HIS HYP LEU LYS MET PHE PRO SER TRP TYR",
    "HG": "ARG GLN GLU LYS MET PRO",
    "HD": "ARG LYS PRO HYP",
    "HE": "LYS",
    "HZ": "LYS",
    "HG1": "ILE",
}
_STEMS = {name: [stem for stem, where in _METHYLENES.items() if name in where.split()] for name in AMINO_ACIDS}

_AMINO_HYDROGENS = frozenset(["H", "HN", *(stem + n for stem in ("H", "HT", "HN") for n in "123")])
_PROTEIN_NAMES = {
    **dict.fromkeys(["OT1", "O1", "OC1", "OCT1"], "O"),
    **dict.fromkeys(["OT2", "O2", "OC2", "OCT2", "OT"], "OXT"),
    **dict.fromkeys(["HT2B", "HO"], "HXT"),
}
_SIDE_NAMES = {
    "ILE": {"CD": "CD1", "HD1": "HD11", "HD2": "HD12", "HD3": "HD13"},
    "SER": {"HG1": "HG", "HOG": "HG"},
    "CYS": {"HG1": "HG", "HSG": "HG"},
    "HYP": {"OE": "OD1", "HE": "HD1", "HD": "HD1", "OD": "OD1"},
}
_CAPS = {
    "ACE": {"CAY": "CH3", "CY": "C", "OY": "O",
            **{f"{stem}{n}": f"HH3{n}" for stem in ("H", "HY", "HA") for n in "123"}},
    "NME": {"NT": "N", "CAT": "CH3", "CA": "CH3", "C": "CH3", "HN": "H", "HNT": "H", "HN2": "H",
            **{f"{stem}{n}": f"HH3{n}" for stem in ("H", "HT", "HA") for n in "123"}},
    "NHE": {"NT": "N", "H1": "HN1", "H2": "HN2", "HT1": "HN1", "HT2": "HN2"},
}  # fmt: skip
_NUCLEIC_NAMES = {
    "O1P": "OP1", "O2P": "OP2", "O3P": "OP3", "O5T": "OP3", "C5M": "C7",
    "H5'1": "H5'", "H5'2": "H5''", "H2'1": "H2'", "H2'2": "H2''",
    "HO'2": "HO2'", "HO'3": "HO3'", "HO'5": "HO5'", "H3T": "HO3'", "H5T": "HO5'",
}  # fmt: skip


def common_names(names: Sequence[str], residue_family: str) -> tuple[str, ...] | None:
    """Return the atom names of a residue in one convention, or None if two atoms would get the same name."""
    # old PDB files move the last digit of a hydrogen's name to the front, and some programs that of any name of four
    # letters: 1HB, 2HD1, 1H5*, 0C21
    result = [name[1:] + name[0] if name[:1].isdigit() else name for name in names]
    present = set(result)
    if residue_family in _CAPS:
        renamed = _CAPS[residue_family]
        result = [renamed.get(name, name) for name in result]
    elif "C1'" in present or "C1*" in present:
        result = _nucleic_names([name.replace("*", "'") for name in result])
    elif {"N", "CA", "C"} <= present:
        result = _protein_names(result, residue_family)
    return tuple(result) if len(set(result)) == len(result) else None


def _nucleic_names(names: list[str]) -> list[str]:
    present = set(names)
    renamed = dict(_NUCLEIC_NAMES)
    if "O5T" in present:  # in CHARMM, the hydrogen of the 5'-phosphate is on O5T
        renamed["H5T"] = "HOP3"
    if "C5M" in present:
        renamed |= {f"H5{n}": f"H7{n}" for n in "123"}
    hydroxyls = {"HO2'", "HO'2", "H2'1"}
    if {"O2'", "H2'", "H2''"} <= present and not hydroxyls & present:  # CHARMM: H2' is the hydroxyl's
        renamed |= {"H2'": "HO2'", "H2''": "H2'"}
    return [renamed.get(name, name) for name in names]


def _protein_names(names: list[str], residue_family: str) -> list[str]:
    renamed = _PROTEIN_NAMES | _SIDE_NAMES.get(residue_family, {})
    result = [renamed.get(name, name) for name in names]
    groups = [[name for name in result if name in _AMINO_HYDROGENS]]
    stems = ["H"]
    for stem in _STEMS.get(residue_family, []):
        groups.append([name for name in result if name[:-1] == stem and name[-1].isdigit()])
        stems.append(stem)
    numbered = {}
    for stem, group in zip(stems, groups, strict=True):
        if stem == "H" and len(group) == 1:
            numbered[group[0]] = "H"
        else:
            numbered |= {name: f"{stem}{number}" for number, name in enumerate(sorted(group), 1)}
    return [numbered.get(name, name) for name in result]
