"""The keys of ``--json`` are an interface: those that a command has had stay."""

import json
from importlib import resources
from pathlib import Path

import MDAnalysis
import numpy as np
import pytest
from helpers import shell
from structure_files import TOOLS

from vmdpotential.io import read_structure

FOLDER = TOOLS / "alanine-dipeptide-explicit"
FILES = FOLDER / "alanine-dipeptide.crd", FOLDER / "alanine-dipeptide.prmtop"
PEPTIDE = (FILES[0], "--topology", FILES[1])
FRAMES = (FILES[0], "frames.dcd", "--topology", FILES[1])
OXYGEN = "//*/(WAT,HOH)/O"

#: Options of each command that make all of its keys; files of the first ones are read by others.
CASES = {
    "map": ["map", *PEPTIDE, "-o", "map.npz", "--spacing", "2", "--tolerance", "1e-2", "--field", "field.npz"],
    "map-continuum": ["map", *PEPTIDE, "-o", "pb.npz", "--spacing", "1.5", "--method", "pb", "--atoms", "protein",
                      "--screened", "0.15"],
    "energy": ["energy", *PEPTIDE, "--between", "(ACE)", "(NME)", "--solvent", "pb", "--spacing", "1.5"],
    "energy-frames": ["energy", *FRAMES, "--between", "protein", "water", "--by", "residue"],
    "forces": ["forces", *PEPTIDE, "--between", "protein", "water", "-o", "forces.csv"],
    "rdf": ["rdf", *FRAMES, "--between", OXYGEN, OXYGEN, "protein", OXYGEN, "--range", "6", "-o", "rdf.csv"],
    "field": ["field", *FRAMES, "--at", "protein", "--from", "water"],
    "field-bonds": ["field", *PEPTIDE, "--bonds", "//*/2/C", "//*/2/O"],
    "profile": ["profile", *FRAMES, "--from", "protein", "water", "--integral"],
    "profile-map": ["profile", "map.npz"],
    "ionize": ["ionize", *PEPTIDE, "--dry-run", "--ions", "SOD=2,CLA=2"],
    "ionize-replicas": ["ionize", *PEPTIDE, "--dry-run", "--ions", "SOD=1,CLA=1", "--site", "random",
                        "--replicas", "2"],
    "average": ["average", *FRAMES, "-o", "mean.npz", "--spacing", "2", "--tolerance", "1e-2", "--stat", "mean,sem"],
    "compare": ["compare", "map.npz", "mean.npz"],
    "density": ["density", *FRAMES, "-o", "density.npz", "--atoms", OXYGEN, "--spacing", "2", "--sites", "sites.csv"],
    "probe": ["probe", *PEPTIDE, "--probe", "C", "X=3,0.1", "--atoms", "protein", "-o", "probe.dx", "--spacing", "2"],
    "probe-ligand": ["probe", *FRAMES, "--ligand", "O2", "-o", "o2.dx", "--spacing", "5", "--paths", "paths.csv",
                     "--orientations", "2", "--places", "1"],
    "orbital": ["orbital", resources.files("iodata.test.data") / "water_sto3g_hf_g03.fchk", "--orbital", "homo", "-o",
                "homo.cube", "--spacing", "0.5"],
    "prepare": ["prepare", "small.pdb", "-o", "small.pqr"],
    "surface": ["surface", FILES[0], "map.npz", "--topology", FILES[1], "--atoms", "protein", "--spacing", "0.8",
                "-o", "surface.csv"],
    "slice": ["slice", "map.npz", "-o", "slice.png", "--dpi", "50"],
    "completion": ["completion", "bash"],
    "devices": ["devices"],
    "verify": ["verify", "--engine", "cpu", "--method", "direct"],
    "benchmark": ["benchmark", "--engine", "cpu", "--method", "pme", "--box", "20", "--repeats", "1"],
    "benchmark-pairs": ["benchmark", "--engine", "cpu", "--pairs", "rf", "--box", "25", "--cutoff", "9",
                        "--repeats", "1"],
    "benchmark-bodies": ["benchmark", "--engine", "cpu", "--pairs", "gravity", "--box", "12", "--repeats", "1"],
    "view": ["view", "small.pqr", "map.npz", "-o", "scene.mvsx"],
}


def keys(value, path=""):
    """Return the keys of a JSON value, those of a list's items once: ``pairs[].total``."""
    if isinstance(value, dict):
        return {f"{path}.{key}".strip(".") for key in value} | {
            name for key, item in value.items() for name in keys(item, f"{path}.{key}")}
    if isinstance(value, list):
        return {name for item in value for name in keys(item, f"{path}[]")}
    return set()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a trajectory and a structure without hydrogens."""
    path = tmp_path_factory.mktemp("json")
    structure = read_structure(*FILES)
    universe = MDAnalysis.Universe.empty(len(structure), trajectory=True)
    rng = np.random.default_rng(3)
    with MDAnalysis.Writer(str(path / "frames.dcd"), len(structure)) as writer:
        for _ in range(8):
            universe.atoms.positions = structure.positions + rng.normal(0, 0.05, (len(structure), 3))
            universe.dimensions = structure.cell.parameters
            writer.write(universe.atoms)
    (path / "small.pdb").write_text(
        "ATOM      1  N   ALA A   1      -0.677  -1.230  -0.491  1.00  0.00           N\n"
        "ATOM      2  CA  ALA A   1      -0.001   0.064  -0.491  1.00  0.00           C\n"
        "ATOM      3  C   ALA A   1       1.499  -0.110  -0.491  1.00  0.00           C\n"
        "ATOM      4  O   ALA A   1       2.065  -0.922   0.251  1.00  0.00           O\n"
        "ATOM      5  CB  ALA A   1      -0.509   0.856   0.727  1.00  0.00           C\n"
        "END\n")
    return path


@pytest.mark.slow
def test_keys_stay(folder, capsys, monkeypatch):
    known = json.loads(Path(__file__).with_name("json_keys.json").read_text())
    monkeypatch.chdir(folder)
    for name, words in CASES.items():
        code, out, err = shell(capsys, *words, "--json")
        assert code == 0, (name, err)
        assert set(known[name]) - keys(json.loads(out)) == set(), name
