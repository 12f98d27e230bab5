"""Results of commands: one declaration for the report, JSON, tables, data frames and figures."""

import csv
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import MDAnalysis
import numpy as np
import pytest
from helpers import TOOLS
from matplotlib.figure import Figure

from vmdpotential import registry
from vmdpotential.errors import BackendError, StoppedError, UsageError
from vmdpotential.frames.options import Execution
from vmdpotential.frontend import cli
from vmdpotential.io import read_structure
from vmdpotential.results import Result, TableColumns, put_table


@dataclass
class Lattice:
    shape: tuple[int, ...] = (2, 3)


@dataclass
class Grid:
    lattice: Lattice
    deviation: float = np.inf


class Mean(Result):
    values: np.ndarray
    grid: Grid | None
    charges: Mapping[str, Any]
    file: Path | None
    structure: str
    words: str

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            "values": self.values, "shape": None if self.grid is None else self.grid.lattice.shape,
            "std": None if self.grid is None else self.grid.deviation, **self.charges, "file": self.file,
            "total": self.values.sum()}

    def shown(self) -> dict[str, Any]:
        """Return the objects for viewers and notebooks, by name; None for those that there are not."""
        return super().shown() | {"grid": self.grid, "structure": self.structure}

    def text(self) -> Iterator[str]:
        yield self.words

    def table(self) -> TableColumns:
        return {"n": np.arange(3), "value": self.values, "name": ["a", None, "c, d"]}


class More(Mean):
    count: int = 1

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {"count": self.count}


MADE = {"values": np.array([1.0, np.nan, 3.0]), "grid": Grid(Lattice()), "charges": {"source": "amber"},
        "file": Path("x"), "structure": "s", "words": "hello", "files": [Path("a.csv")]}


def test_a_result_is_declared_once():
    result = More(**MADE)
    assert result.lines == ["hello", "wrote a.csv"]
    assert json.loads(json.dumps(result.data, allow_nan=False)) == {
        "values": [1.0, None, 3.0], "shape": [2, 3], "std": None, "source": "amber", "file": "x", "total": None,
        "files": ["a.csv"], "count": 1}
    assert result.objects == {"grid": MADE["grid"], "structure": "s"}
    assert repr(result) == "More('hello', objects: grid, structure)"
    assert Mean(**{**MADE, "grid": None}).data["shape"] is None
    assert result.row["points"] == "2 x 3"
    with pytest.raises(UsageError):
        result.plot(None)


def test_tables_are_files_and_data_frames(tmp_path):
    result = Mean(**MADE)
    put_table(result.table(), tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(newline="") as stream:
        assert list(csv.reader(stream)) == [["n", "value", "name"], ["0", "1", "a"], ["1", "", ""], ["2", "3", "c, d"]]
    frame = result.to_dataframe()
    assert list(frame.columns) == ["n", "value", "name"]
    np.testing.assert_array_equal(frame["value"], result.values)


def test_without_pandas_one_sentence_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(BackendError) as caught:
        Mean(**MADE).to_dataframe()
    assert "pandas" in str(caught.value)
    assert caught.value.exit_code == 4


def test_the_result_of_a_run_that_was_stopped_is_kept():
    result = Mean(**MADE)
    assert Execution().complete(result, 5, 5) is result
    with pytest.raises(StoppedError) as caught:
        Execution().complete(result, 2, 5)
    assert caught.value.report is result


# ---- every command -------------------------------------------------------------------------------------

FOLDER = TOOLS / "alanine-dipeptide-explicit"
FILES = FOLDER / "alanine-dipeptide.crd", FOLDER / "alanine-dipeptide.prmtop"
PEPTIDE = (FILES[0], "--topology", FILES[1])
FRAMES = (FILES[0], "frames.dcd", "--topology", FILES[1])
OXYGEN = "//*/(WAT,HOH)/O"

#: Options of each command that make all of its keys; files of the first ones are read by others.
CASES = {
    "map": ["map", *PEPTIDE, "--medium", "explicit", "-o", "map.npz", "--spacing", "2", "--tolerance", "1e-2",
            "--field", "field.npz"],
    "map-continuum": ["map", *PEPTIDE, "-o", "pb.npz", "--spacing", "1.5", "--method", "pb", "--atoms", "protein",
                      "--screened", "0.15"],
    "energy": ["energy", *PEPTIDE, "--between", "(ACE)", "(NME)", "--solvent", "pb", "--spacing", "1.5"],
    "energy-in-solvent": ["energy", *FRAMES, "--between", "(ACE)", "(NME)", "--solvent", "gb", "--by", "residue"],
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
    "born": ["born", *PEPTIDE, "--atoms", "protein", "--spacing", "1.5", "--positions", "2"],
    "titrate": ["titrate", "small.pdb", "--ph", "7", "--curves", "curves.csv"],
    "prepare": ["prepare", "small.pdb", "-o", "small.pqr"],
    "surface": ["surface", FILES[0], "map.npz", "--topology", FILES[1], "--atoms", "protein", "--spacing", "0.8",
                "-o", "surface.csv"],
    "complementarity": ["complementarity", *PEPTIDE, "--between", "(ACE)", "(ALA)", "--spacing", "1.5"],
    "patches": ["patches", *PEPTIDE, "--spacing", "1.5", "--mesh-spacing", "0.8", "--threshold", "0.1", "--least", "1"],
    "slice": ["slice", "map.npz", "-o", "slice.png", "--dpi", "50"],
    "devices": ["devices"],
    "verify": ["verify", "--engine", "cpu", "--method", "direct"],
    "benchmark": ["benchmark", "--engine", "cpu", "--method", "pme", "--box", "20", "--repeats", "1"],
    "benchmark-pairs": ["benchmark-pairs", "rf", "--engine", "cpu", "--box", "25", "--cutoff", "9", "--repeats", "1"],
    "benchmark-bodies": ["benchmark-pairs", "gravity", "--engine", "cpu", "--box", "12", "--repeats", "1"],
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


#: Commands whose results have a figure.
DRAWN = ("map", "energy-frames", "energy-in-solvent", "rdf", "field", "field-bonds", "profile", "profile-map",
         "average", "compare", "density", "probe", "probe-ligand", "orbital", "slice",
         "complementarity", "patches", "titrate", "born")


@pytest.mark.slow
def test_every_command_has_the_keys_that_it_had_a_table_and_many_a_figure(folder, monkeypatch):
    """The keys of ``--json`` are an interface: those that a command has had stay."""
    known = json.loads(Path(__file__).with_name("json_keys.json").read_text())
    monkeypatch.chdir(folder)
    for name, words in CASES.items():
        values = vars(cli.build_parser(words).parse_args([str(word) for word in words]))
        command = registry.get("command", values.pop("command"))
        shown = {"json", "verbose", "tcl", "tcl_surface", "surface_of"}
        result = command(**{key: value for key, value in values.items() if key not in shown})
        assert set(known[name]) - keys(json.loads(json.dumps(result.data, allow_nan=False))) <= {"report"}, name
        frame = result.to_dataframe()
        assert len(frame) > 0, name
        assert list(frame.columns) == list(result.table()), name
        if name in DRAWN:
            ax = Figure().add_subplot()
            assert result.plot(ax) is ax, name
            assert ax.has_data(), name
