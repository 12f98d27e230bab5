"""The script that repeats the cluster paper's measurements, and the benchmark of pairs."""

import csv

import pytest
from helpers import script_module

from vmdpotential import registry
from vmdpotential.engines import get_engine
from vmdpotential.errors import UsageError
from vmdpotential.plugins.historical import samples


@pytest.mark.nightly
def test_tables_and_figures_of_a_small_box(tmp_path, monkeypatch):
    script = script_module("reproduce_cluster_paper")
    for name in ("LAYOUTS", "BUFFERED", "MISSING"):
        monkeypatch.setattr(script, name, ("auto",))
    small = samples.water(24.8)
    monkeypatch.setattr(samples, "water", lambda edge: small)
    assert script.main(["-o", str(tmp_path), "--quick"]) == 0
    tables = {path.stem: list(csv.DictReader(path.open())) for path in tmp_path.glob("*.csv")}
    assert set(tables) == {"table_1", "table_2", "table_3", "figure_4", "figure_8"}
    for name in ("table_1", "table_2", "table_3"):
        theirs, ours = ([row for row in tables[name] if (row["who"] == "2013") == paper] for paper in (True, False))
        assert len(theirs) > 3
        assert ours
        for row in ours:
            assert 0.1 < float(row["ratio"]) < 1
            assert float(row["useful_per_s"]) == pytest.approx(float(row["computed_per_s"]) * float(row["ratio"]))
    shares = [float(row["ratio"]) for row in tables["figure_4"]]
    assert shares == sorted(shares)  # the larger the sphere, the less of it is surface
    for row in tables["figure_8"]:
        assert float(row["auto"]) <= float(row["estimate"])
    assert all((tmp_path / f"figure_{n}.png").stat().st_size > 10_000 for n in (4, 8))


def test_benchmark_of_pairs():
    benchmark = registry.get("command", "benchmark-pairs")
    report = benchmark(pairs="gravity", engine="cpu", box=12.0, repeats=1)
    assert report.data["pairs_per_second"] == pytest.approx(report.data["atoms"] ** 2 / report.data["median"])
    report = benchmark(pairs="rf", engine="cpu", box=24.8, cutoff=9.0, drift=0.1, repeats=1)
    assert 0 < report.data["buffer"] < 9
    assert 0 < report.data["useful"] < report.data["slots"]
    assert "buffer" in " ".join(report.lines)
    with pytest.raises(UsageError) as caught:
        benchmark(pairs="rf", engine="cpu", precision="compensated")
    assert caught.value.parameter == "precision"


def test_forces_that_verify_checks():
    for _, error, limit in samples.check_forces(get_engine("cpu"), 0):
        assert 0 < error < limit
