"""Deposited entries from the wheels of MDAnalysis and PDBFixer."""

from pathlib import Path

import MDAnalysisTests
import numpy as np
import pdbfixer

from vmdpotential.molecule.structure import Structure

DATA = Path(MDAnalysisTests.__file__).parent / "data"
ENTRIES = {name: DATA / file for name, file in {
    "1YJP": "mmcif/1YJP.cif", "7ETN": "mmcif/7ETN.cif.gz", "5PTI": "mmcif/5PTI.cif.gz", "1OSM": "1osm.pdb.gz",
    "1HVR": "1hvr.pdb", "4E43": "4E43.pdb", "NMR": "nmr_neopetrosiamide.pdb", "19HC": "19hc.pdb.gz",
    "1A28": "1a28.pdb.gz", "6MSM": "6msm.pdb.bz2", "1BD2": "mmcif/1BD2.cif.gz"}.items()}
ENTRIES["1BHL"] = Path(pdbfixer.__file__).parent / "tests" / "data" / "1BHL.pdb"


def heavy(structure: Structure) -> np.ndarray:
    return ~np.isin(structure.elements, ["H", "D", ""])
