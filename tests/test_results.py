"""Results of commands: one declaration for the report, JSON, tables, data frames and figures."""

import csv
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from test_json_keys import CASES, FILES, folder  # noqa: F401 (a fixture)

from vmdpotential import registry
from vmdpotential.errors import BackendError, StoppedError, UsageError
from vmdpotential.frontend import cli
from vmdpotential.results import Columns, Result, complete, hidden, key, part, put_table, shown


@dataclass
class Lattice:
    shape: tuple[int, ...] = (2, 3)


@dataclass
class Grid:
    lattice: Lattice
    deviation: float = np.inf


class Mean(Result):
    values: np.ndarray
    grid: Grid | None = part("lattice.shape", std="deviation", shown=True)
    charges: Mapping[str, Any] = part()
    file: Path | None
    structure: str = shown()
    words: str = hidden()

    total = key(lambda self: self.values.sum())

    def text(self) -> Iterator[str]:
        yield self.words

    def table(self) -> Columns:
        return {"n": np.arange(3), "value": self.values, "name": ["a", None, "c, d"]}


class More(Mean):
    count: int = 1


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
    assert complete(result, 5, 5) is result
    with pytest.raises(StoppedError) as caught:
        complete(result, 2, 5)
    assert caught.value.report is result


#: Commands whose results have a figure.
DRAWN = ("map", "energy-frames", "rdf", "field", "field-bonds", "profile", "profile-map", "average", "compare",
         "density", "probe", "probe-ligand", "orbital", "slice")


@pytest.mark.slow
def test_every_command_has_a_table_and_many_a_figure(folder, monkeypatch):  # noqa: F811
    monkeypatch.chdir(folder)
    for name, words in CASES.items():
        parser = cli.build_parser(words)
        values = vars(parser.parse_args([str(word) for word in words]))
        command = registry.get("command", values.pop("command"))
        result = command(**{k: v for k, v in values.items() if k not in ("json", "verbose", "tcl")}, **(
            {"force": True} if any(p.name == "force" for p in command.parameters) else {}))
        frame = result.to_dataframe()
        assert len(frame) > 0, name
        assert list(frame.columns) == list(result.table()), name
        if name in DRAWN:
            ax = Figure().add_subplot()
            assert result.plot(ax) is ax, name
            assert ax.has_data(), name
