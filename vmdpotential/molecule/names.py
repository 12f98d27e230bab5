"""Tables of residue and ion names, upper case, as CHARMM, Amber, GROMACS and the PDB write them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Ion(NamedTuple):
    """A monatomic ion: element and charge (e), and CHARMM's names (or its PDB name if CHARMM does not have the ion)."""

    element: str
    charge: int
    residue: str
    atom: str


def _words(text: str) -> list[str]:
    return text.split()


# "TIP" is TIP3, TIP4 or TIP5, truncated to the three columns of a PDB file
WATER_RESIDUES = frozenset(_words("""
    HOH WAT H2O DOD D2O SOL WATER OH2 TIP
    TIP2 TIP3 TP3 T3P TP3M TIP3P TIPS TIPS3P
    TIP4 TP4 T4P T4E TIP4P TIP4EW TP4E T4EW
    TIP5 TP5 T5P T5PE TIP5P
    SPC SPCE SPC/E SPE OPC OPC3 OP3 SWM SWM4 SWM6 SWM4P
"""))

# element, charge, CHARMM residue, CHARMM atom: other names
_IONS = """
    Li 1 LIT LIT:   LI LI+ LI1 LIT+
    Na 1 SOD SOD:   NA NA+ NA1 NA1+ SOD+ SODIUM NIO IP
    K  1 POT POT:   K K+ K1 K1+ POT+ KIO
    Rb 1 RUB RUB:   RB RB+ RB1
    Cs 1 CES CES:   CS CS+ CS1 CIO
    Tl 1 TL TL:     TL+ TL1
    Ag 1 AG AG:     AG+ AG1
    Cu 1 CU1 CU:    CU1+
    F -1 F F:       F- F1- FLU
    Cl -1 CLA CLA:  CL CL- CL1 CL1- CLA- CHLORIDE CIM IM
    Br -1 BR BR:    BR- BR1- BRO
    I -1 IOD I:     I I- I1- IOD-
    Mg 2 MG MG:     MG2 MG2+ MG+2 MO6
    Ca 2 CAL CAL:   CA CA2 CA2+ CA+2 C0 CAL2
    Sr 2 SR SR:     SR2 SR2+
    Ba 2 BAR BAR:   BA BA2 BA2+
    Zn 2 ZN2 ZN:    ZN ZN2+ ZN+2
    Cd 2 CD2 CD:    CD CD2+
    Mn 2 MN MN:     MN2 MN2+
    Fe 2 FE2 FE2:   FE2+
    Co 2 CO CO:     CO2+
    Ni 2 NI NI:     NI2 NI2+
    Cu 2 CU CU:     CU2 CU2+
    Hg 2 HG HG:     HG2 HG2+
    Pb 2 PB PB:     PB2 PB2+
    Pd 2 PD PD:     PD2+
    Pt 2 PT PT:     PT2+
    Eu 2 EU EU:     EU2+
    Yb 2 YB2 YB2:   YB2+
    Al 3 AL AL:     AL3 AL3+
    Fe 3 FE FE:     FE3 FE3+
    Cr 3 CR CR:     CR3+
    Co 3 3CO CO:    CO3+
    Mn 3 MN3 MN:    MN3+
    Y 3 YT3 Y:      Y Y3+
    La 3 LA LA:     LA3+
    Ce 3 CE CE:     CE3+
    Pr 3 PR PR:     PR3+
    Sm 3 SM SM:     SM3+
    Eu 3 EU3 EU3:   EU3+
    Gd 3 GD3 GD:    GD GD3+
    Tb 3 TB TB:     TB3+
    Ho 3 HO3 HO3:   HO3+
    Er 3 ER3 ER3:   ER ER3+
    Yb 3 YB YB:     YB3+
    Lu 3 LU LU:     LU3+
    In 3 IN IN:     IN3+
"""


def _ions() -> dict[str, Ion]:
    table = {}
    for line in _IONS.strip().splitlines():
        ion, others = line.split(":")
        element, charge, residue, atom = ion.split()
        for name in (residue, *others.split()):
            table[name] = Ion(element, int(charge), residue, atom)
    return table


#: Residues of atoms that are none, such as OPM's marks of the borders of a membrane.
DUMMY_RESIDUES = frozenset({"DUM"})

#: Monatomic ions by their residue names (upper case).
ION_RESIDUES: dict[str, Ion] = _ions()

_AMINO_ACIDS = _words("""
    ALA ARG ASN ASP CYS GLN GLU GLY HIS ILE LEU LYS MET PHE PRO SER THR TRP TYR VAL
    HSD HSE HSP HID HIE HIP CYX CYM ASH GLH LYN HYP ALAD
""")

PROTEIN_RESIDUES = frozenset([
    *_AMINO_ACIDS,
    *("N" + name for name in _AMINO_ACIDS if len(name) == 3),
    *("C" + name for name in _AMINO_ACIDS if len(name) == 3),
    # protonation variants of CHARMM, GROMACS and GROMOS
    *_words("ASPP ASPH GLUP GLUH LSN LYSN LYSH HISA HISB HISD HISE HISH HISP HIS1 HIS2 ARGN CYSH CYS1 CYS2 CYSG"),
    # modified residues that are part of a chain
    *_words("MSE SEP TPO PTR SEC PYL NLE ORN DORN AIB NVA MLY M3L CSO OCS PCA SME KCX LLP"),
    # caps
    *_words("ACE NME NMA NHE NH2 CT1 CT2 CT3 NAC ACT1 FOR"),
])

NUCLEIC_RESIDUES = frozenset([
    *(sugar + base + end for sugar in ("", "D", "R") for base in "ACGTU" for end in ("", "3", "5", "N")
      if sugar + end),
    *_words("A C G T U I DI N DN ADE CYT GUA THY URA PSU 5MC 1MA 2MG 7MG H2U OMC OMG OHE"),
])

_TAILS = _words("DL DM DP DS DO PO SO SD DA SA PL SL DX DG DE DN PA OS PV PP PM QM PS IP AP PH LP YO PY DD DH DT")

LIPID_RESIDUES = frozenset([
    # phospholipids: two letters of the tails, then choline, ethanolamine, serine, acid, glycerol
    *(tail + head for tail in _TAILS for head in ("PC", "PE", "PS", "PA", "PG")),
    *(tail + "PI" + place for tail in ("SA", "DM", "PO", "PN", "PL", "PY")
      for place in ("", *_words("13 14 15 24 25 2A 2B 2C 2D 33 34 35"))),
    *_words("PVCL2 TOCL1 TOCL2 TMCL1 TMCL2 TLCL1 TLCL2 PMCL1 PMCL2 TXCL1 TXCL2 TOCL CARD"),
    *(tail + end for tail in ("LOA", "LOC", "LNA", "LNB", "LNC", "LND") for end in ("CL1", "CL2")),
    *_words("CHL CHL1 CHOL CHNS CHM1 CLR ERG LPPC LYPC SDS TPC DPC DHPC LMPG ADDG ADG ADM BDDM LDAO DDM"),
    *_words("PSM SSM OSM ASM BSM 23SM LSM NSM SPM CER2 CER160 CER180 CER181 CER200 CER220 CER241"),
    *_words("DPPI DOPI BOG BNG C12 LAPAO FOS10 FOS12 PGPC PAPC SDPC"),
    *_words("LAU MYR PAL STE OLE LIN PLM OLA"),
    # Amber's modular lipids: heads and tails are residues of their own
    *_words("PC PE PS PGR PGS PH- OL LA LAL MY ST AR DHA"),
])  # fmt: skip

#: Names of lipids truncated to the three columns of a PDB file; some of them also name small molecules.
CUT_LIPIDS = frozenset(name[:3] for name in LIPID_RESIDUES if len(name) == 4 and name[2] == "P")


def unique_names(names: NDArray[np.str_]) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
    """Return the distinct names and, for each name, its index among them.

    Parameters
    ----------
    names : (N,) str

    Returns
    -------
    unique : (U,) str
    inverse : (N,) int64
        Indices with ``unique[inverse] == names``.
    """
    names = np.ascontiguousarray(names)
    width = names.dtype.itemsize // 4
    letters = names.view(np.uint32).reshape(len(names), -1) if len(names) and width else np.zeros((1, 9))
    if letters.shape[1] > 8 or letters.max() > 255:
        unique, inverse = np.unique(names, return_inverse=True)
        return unique, inverse.astype(np.int64)
    # names of up to eight letters are packed into one integer: sorting integers is ten times faster
    packed = np.zeros(len(names), np.uint64)
    for column in range(width):
        packed = (packed << np.uint64(8)) | letters[:, column].astype(np.uint64)
    # neighbours are mostly equal (waters follow waters), so only the first of each run of equal names is sorted
    starts = np.concatenate([[True], packed[1:] != packed[:-1]])
    first = np.flatnonzero(starts)
    _, where, inverse = np.unique(packed[first], return_index=True, return_inverse=True)
    return names[first[where]], inverse.astype(np.int64)[np.cumsum(starts) - 1]


def mapped_names(names: NDArray[np.str_], function: Callable[[str], Any], dtype: type = np.str_) -> NDArray[Any]:
    """Return the value (N,) of a function of each name (N,), which is called once for every distinct name."""
    different, inverse = unique_names(names)
    return np.array([function(name) for name in different.tolist()], dtype)[inverse]


def with_ion_names(residue_names: NDArray[np.str_], atom_names: NDArray[np.str_]) -> NDArray[np.str_]:
    """Return residue names (N,) in which ions whose residue is only called ION have the name of their atom, as NA+."""
    generic = np.flatnonzero(in_table(residue_names, ("ION", "IONS")))
    generic = generic[in_table(atom_names[generic], ION_RESIDUES)]
    if not len(generic):
        return residue_names
    result = residue_names.astype(f"<U{max(5, residue_names.dtype.itemsize // 4)}")
    result[generic] = atom_names[generic]
    return result


def in_table(names: NDArray[np.str_], table: Collection[str]) -> NDArray[np.bool_]:
    """Return a mask of the names (N,) that are in a table of upper-case names; case is ignored."""
    return mapped_names(names, lambda name: name.upper() in table, bool)
