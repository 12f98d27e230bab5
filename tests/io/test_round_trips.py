"""Solvated systems as several programs write them: ionized, written in every format, read back by four programs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import gemmi
import MDAnalysis
import numpy as np
import parmed
import pytest
from openmm import app, unit
from structure_files import MDA, OPENMM, TOOLS

from vmdpotential import io
from vmdpotential.molecule.charges import charges_and_report
from vmdpotential.molecule.structure import Structure
from vmdpotential.plugins.ions.place import place_ions

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the other programs warn


def solvated(model: str, force_field: str) -> Callable[[Path], Structure]:
    """Return what makes a peptide in a box of a water model, by OpenMM's own solvation."""
    def make(folder: Path) -> Structure:
        peptide = app.PDBFile(str(TOOLS / "alanine-dipeptide-gbsa" / "alanine-dipeptide.pdb"))
        modeller = app.Modeller(peptide.topology, peptide.positions)
        field = app.ForceField("amber14/protein.ff14SB.xml", force_field)
        modeller.addSolvent(field, model=model, boxSize=(2.4, 2.4, 2.4) * unit.nanometer)
        with open(folder / "made.pdb", "w") as file:
            app.PDBFile.writeFile(modeller.topology, modeller.positions, file)
        return io.read_structure(folder / "made.pdb")
    return make


def read(*parts: str) -> Callable[[Path], Structure]:
    """Return what reads a structure, with a topology where there are two parts."""
    roots = {"MDA": MDA, "TOOLS": TOOLS, "OPENMM": OPENMM}
    paths = [roots[part.split("/", 1)[0]] / part.split("/", 1)[1] for part in parts]
    return lambda folder: io.read_structure(*paths)


#: Name: (what reads it, water model, whether it has bonds, residue name of a sodium ion in it)
SYSTEMS: dict[str, tuple[Callable[[Path], Structure], str, bool, str]] = {
    "psfgen: nanopore, triclinic": (read("MDA/SiN_tric_namd.dcd", "MDA/SiN_tric_namd.psf"), "", True, "SOD"),
    "tleap: alanine dipeptide": (
        read("TOOLS/alanine-dipeptide-explicit/alanine-dipeptide.crd",
             "TOOLS/alanine-dipeptide-explicit/alanine-dipeptide.prmtop"), "", True, "Na+"),
    "OpenMM: TIP3P": (solvated("tip3p", "amber14/tip3p.xml"), "TIP3P", False, "NA"),
    "OpenMM: TIP4P-Ew": (solvated("tip4pew", "amber14/tip4pew.xml"), "TIP4P-Ew", False, "NA"),
}


def _between_hydrogens(structure: Structure) -> int:
    """Return how many bonds OpenMM leaves out: those that keep the hydrogens of a rigid water apart."""
    assert structure.topology is not None
    return int((structure.elements[structure.topology.bonds] == "H").all(1).sum())


def counts_of(name: str, path: Path, result: Structure) -> dict[str, tuple[int, int, int | None]]:
    """Return atoms, residues and bonds (None where the format has none) that other programs find in a file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        actual = {}
        if name in ("pdb", "psf", "pqr"):
            universe = MDAnalysis.Universe(str(path))
            bonds = len(universe.bonds) if name == "psf" else None
            actual["MDAnalysis"] = (len(universe.atoms), len(universe.residues), bonds)
        # ParmEd takes seconds for a large file, and stops at a CIF atom M, a site without an element
        unfit = {"cif": "M" in result.atom_names, "pqr": True}
        if len(result) <= 10_000 and not unfit.get(name):
            reader = parmed.charmm.CharmmPsfFile if name == "psf" else parmed.load_file
            structure = reader(str(path))
            actual["ParmEd"] = (
                len(structure.atoms), len(structure.residues), len(structure.bonds) if name == "psf" else None)
        if name in ("pdb", "cif", "psf"):
            topology = {"pdb": app.PDBFile, "cif": app.PDBxFile, "psf": app.CharmmPsfFile}[name](str(path)).topology
            actual["OpenMM"] = (topology.getNumAtoms(), topology.getNumResidues(),
                               topology.getNumBonds() + _between_hydrogens(result) if name == "psf" else None)
        if name in ("pdb", "cif"):
            model = gemmi.read_structure(str(path))[0]
            actual["gemmi"] = (sum(len(r) for c in model for r in c), sum(map(len, model)), None)
    return actual


@pytest.mark.parametrize("system", SYSTEMS)
def test_ionized_systems_are_read_back(tmp_path, system):
    make, water, has_bonds, sodium = SYSTEMS[system]
    structure, report = charges_and_report(make(tmp_path))
    assert list(report.waters) == ([water] if water else [])
    assert structure.cell is not None
    placed = place_ions(structure, concentration=0.15, count_existing=False)
    result = placed.structure
    assert placed.ions
    assert result.net_charge == pytest.approx(0, abs=1e-3)
    assert sodium in result.residue_names
    names = ["pdb", "cif", "pqr", *["psf"] * has_bonds]
    paths = [tmp_path / f"out.{name}" for name in names]
    io.write_structures(result, paths)
    for name, path in zip(names, paths, strict=True):
        bonds = len(result.topology.bonds) if name == "psf" else None
        expected = (len(result), result.residue_count, bonds)
        actual = counts_of(name, path, result)
        assert actual == dict.fromkeys(actual, expected), name
    charged = MDAnalysis.Universe(str(tmp_path / "out.pqr")).atoms.charges
    np.testing.assert_allclose(charged, result.charges, atol=1e-6)
    if has_bonds:
        assert MDAnalysis.Universe(str(tmp_path / "out.psf")).atoms.charges.sum() == pytest.approx(0, abs=1e-3)
        # each rigid water has its angle, which GROMACS and Amber do not state
        again = io.read_structure(tmp_path / "out.pdb", tmp_path / "out.psf")
        waters = set(np.flatnonzero(np.isin(again.residue_names, ("WAT", "SOL", "TIP3", "HOH"))
                                    & (again.elements == "O")).tolist())
        assert waters <= set(again.topology.angles[:, 1].tolist())
