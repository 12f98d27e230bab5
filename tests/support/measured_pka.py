"""Measured pKa values of proteins whose structures are in data/ or come with packages, each with its source."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from entries import DATA, ENTRIES

import vmdpotential as vp
from vmdpotential.plugins.preparation.draft import Draft
from vmdpotential.plugins.preparation.prepare import prepare_structure
from vmdpotential.plugins.preparation.propka import propka_values
from vmdpotential.plugins.titration.titration import PH

ROOT = Path(__file__).resolve().parents[2]


class MeasuredProtein(NamedTuple):
    """A protein, and the pKa values of its sites by their labels without a chain. Limits are left out."""

    structure: Callable[[], vp.Structure]
    values: dict[str, float]


def _ubiquitin() -> vp.Structure:
    """Return PDB entry 1UBQ, which MDAnalysis reads."""
    import MDAnalysis

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        atoms = MDAnalysis.Universe(str(DATA / "1ubq-less-optional.mmtf")).select_atoms("protein")
        return replace(vp.Structure.from_mdanalysis(atoms), topology=None, charges=None, cell=None)  # of a crystal


def _t4_lysozyme() -> vp.Structure:
    """Return the mutant L99A of openmmtools, with names that state no protonation; residue 99 is far from the sites."""
    spec = find_spec("openmmtools")  # importing it prints
    made = vp.read_structure(Path(spec.origin).parent / "data" / "T4-lysozyme-L99A-implicit" / "receptor.pdb")
    names = made.residue_names
    return replace(made, residue_names=np.where(names == "HIE", "HIS", names), chain_ids=np.full(len(made), "A"))


PROTEINS = {
    # by NMR: K. Bartik, C. Redfield, C. M. Dobson, Biophys. J. 66 (1994) 1180; bases and tyrosines as D. Bashford, M.
    # Karplus, Biochemistry 29 (1990) 10219 list them
    "lysozyme": MeasuredProtein(lambda: vp.read_structure(ROOT / "data" / "1aki.pdb.gz"), {
        "GLU7": 2.85, "HIS15": 5.36, "ASP18": 2.66, "GLU35": 6.20, "ASP52": 3.68, "ASP87": 2.07, "ASP101": 4.08,
        "ASP119": 3.20, "LEU129 C-": 2.75, "LYS1 N+": 7.9, "LYS1": 10.6, "LYS13": 10.3, "LYS33": 10.4, "LYS96": 10.7,
        "LYS97": 10.1, "LYS116": 10.2, "TYR20": 10.3, "TYR23": 9.8, "TYR53": 12.1}),
    # by NMR at 10 degrees: D. E. Anderson, W. J. Becktel, F. W. Dahlquist, Biochemistry 29 (1990) 2403
    "T4 lysozyme": MeasuredProtein(_t4_lysozyme, {"HIS31": 9.1, "ASP70": 0.5}),
    # by NMR: M. Sundd, N. Iverson, B. Ibarra-Molero, J. M. Sanchez-Ruiz, A. D. Robertson, Biochemistry 41 (2002) 7586,
    # as the database PKAD-R lists them (doi 10.1142/S2737416525500164); the abstract states their ranges
    "ubiquitin": MeasuredProtein(_ubiquitin, {
        "GLU16": 3.9, "ASP21": 3.1, "GLU24": 4.3, "ASP32": 3.8, "GLU34": 4.5, "ASP39": 3.6, "GLU51": 3.8,
        "ASP52": 3.4, "ASP58": 3.6, "GLU64": 4.5, "GLY76 C-": 3.3}),
    # as table 7 of PubMed Central PMC2760452 lists them
    "trypsin inhibitor": MeasuredProtein(lambda: vp.read_structure(ENTRIES["5PTI"]), {
        "ARG1 N+": 8.1, "ASP3": 3.0, "GLU7": 3.7, "LYS15": 10.6, "LYS26": 10.6, "LYS41": 10.8, "LYS46": 10.6,
        "GLU49": 3.8, "ASP50": 3.4}),
    # table 2 of J. Chem. Theory Comput. 12 (2016) 5411
    "villin headpiece": MeasuredProtein(lambda: vp.read_structure(ENTRIES["1BHL"].with_name("test.pdb")), {
        "ASP44": 3.1, "GLU45": 4.0, "ASP46": 3.5, "GLU72": 4.4}),
}


def differences(protein: MeasuredProtein, titration: vp.Result, name: str = "pka") -> np.ndarray:
    """Return a column of a titration less the measured values; a value beyond its curves is that of their end."""
    table = titration.table()
    found = {label.rpartition(" ")[0]: value for label, value in zip(table["site"], table[name], strict=True)}
    return np.array([np.nan_to_num(found[site], nan=PH[-1]) - value for site, value in protein.values.items()])


def propka_differences(protein: MeasuredProtein) -> np.ndarray:
    """Return the values of PROPKA less the measured ones."""
    found: dict[str, float] = {}

    def source(structure: vp.Structure, draft: Draft, charges: object = ()) -> dict[tuple[int, str], float]:
        values = propka_values(structure, draft)
        for (n, group), value in values.items():
            row = draft.residues[n].source
            end = f" {group}" if group in ("N+", "C-") else ""
            found[f"{structure.residue_names[row]}{structure.residue_ids[row]}{end}"] = value
        return values

    prepare_structure(protein.structure(), pka=source)
    return np.array([found[site] - value for site, value in protein.values.items()])
