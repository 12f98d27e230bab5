"""Many structures: one that fails, or ends its process, stops nothing, and a run that was stopped goes on."""

import csv
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from vmdpotential import registry
from vmdpotential.errors import CheckError, InputError, UsageError
from vmdpotential.execution.batch import names, run_batch, structures_of
from vmdpotential.io import read_map

WATER = """\
ATOM      1  O   HOH A   1       0.000   0.000   0.000  1.00  0.00           O
ATOM      2  H1  HOH A   1       0.957   0.000   0.000  1.00  0.00           H
ATOM      3  H2  HOH A   1      -0.240   0.927   0.000  1.00  0.00           H
END
"""


def make(structure, output):
    """Write what a structure says into a file, or do what it says."""
    text = structure.read_text()
    if text == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if text == "kill":
        time.sleep(0.5)  # the others are done by then
        os.kill(os.getppid(), signal.SIGKILL)
    if text == "much":
        raise MemoryError
    if text == "odd":
        raise ZeroDivisionError("by\nzero")
    if text == "bad":
        raise InputError(f"{structure}: has no atoms", "use another {cell}")
    logging.getLogger("vmdpotential.test").warning("%s: is %s", structure, text)
    output.write_text(text.upper())
    return {"net_charge": 1.0, "atoms": len(text), "error": None}


def table(folder):
    with (folder / "report.csv").open(newline="") as stream:
        return {row["name"]: row for row in csv.DictReader(stream)}


def write(folder, **texts):
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.pdb").write_text(text)
    return [folder / f"{name}.pdb" for name in texts]


def run(paths, folder, options=(("spacing", 1.0),), **more):
    return run_batch(make, paths, folder, ".txt", dict(options), **more)


def test_structures_are_those_of_a_folder_or_a_list(tmp_path):
    for name in ("b.pdb", "a.cif.gz", "c.PDB", "d.gro", "e.psf", "notes.txt", ".f.pdb"):
        (tmp_path / name).touch()
    (tmp_path / "g.pdb").mkdir()
    (tmp_path / "h.pdb").symlink_to(tmp_path / "gone.pdb")  # it is reported as one that failed
    assert [path.name for path in structures_of(tmp_path)] == ["a.cif.gz", "b.pdb", "c.PDB", "d.gro", "h.pdb"]
    listed = tmp_path / "list"
    listed.write_text("# all of them\r\nx/1abc.pdb\n\n  with blank.pdb \n")
    assert structures_of(listed) == [Path("x/1abc.pdb"), Path("with blank.pdb")]
    listed.write_text("# none\n")
    for nothing in (listed, tmp_path / "g.pdb"):
        with pytest.raises(InputError, match="no structure"):
            structures_of(nothing)
    with pytest.raises(InputError, match="missing"):
        structures_of(tmp_path / "missing")


def test_names_are_without_suffixes_and_no_two_alike():
    paths = ["a/1abc.pdb", "b/1ABC.cif.gz", "1abc_2.pdb", "1abc.pdb", "x.y.gro", ".pdb"]
    assert names([Path(path) for path in paths]) == ["1abc", "1ABC_2", "1abc_2_2", "1abc_3", "x.y", ".pdb"]


def test_failures_stop_nothing_and_the_rest_is_kept(tmp_path):
    paths = write(tmp_path / "in", one="one", die="die", much="much", two="two", odd="odd", bad="bad")
    paths += [tmp_path / "in" / "missing.pdb", *write(tmp_path / "other", one="more")]
    out = tmp_path / "out"
    found = run(paths, out, workers=2)
    rows = table(out)
    assert [row["status"] for row in rows.values()] == [
        "done", "failed", "failed", "done", "failed", "failed", "failed", "done"]
    assert [row["name"] for row in found.failed] == ["die", "much", "odd", "bad", "missing"]
    assert rows["die"]["message"] == "its process ended (SIGKILL, out of memory?)"
    assert rows["much"]["message"] == "MemoryError"
    assert rows["odd"]["message"] == "ZeroDivisionError: by zero"
    assert rows["bad"]["message"] == "has no atoms; use another cell"
    assert "No such file" in rows["missing"]["message"]
    one = rows["one"]
    assert (one["message"], one["net_charge"], one["atoms"], one["error"]) == ("is one", "1", "3", "")
    assert float(one["seconds"]) >= 0
    assert (out / "one.txt").read_text() == "ONE"
    assert (out / rows["one_2"]["file"]).read_text() == "MORE"
    assert sorted(path.name for path in out.iterdir()) == ["one.txt", "one_2.txt", "report.csv", "two.txt"]

    # once more: what is done stays; what failed is tried again; what has changed is another run's
    before = (out / "one.txt").stat().st_mtime_ns
    paths[1].write_text("alive")
    (out / "two.txt").unlink()
    found = run(paths[:4], out)
    assert found.before == 1
    assert [row["status"] for row in found.rows] == ["done", "done", "failed", "done"]
    assert (out / "one.txt").stat().st_mtime_ns == before
    paths[0].write_text("changed")
    found = run(paths[:4], out)  # a file that has changed is computed again, and stops nothing
    assert [row["status"] for row in found.rows] == ["done", "done", "failed", "done"]
    assert found.before == 2
    assert (out / "one.txt").read_text() == "CHANGED"
    before = (out / "one.txt").stat().st_mtime_ns
    with pytest.raises(UsageError, match=r"one\.txt: exists, and is of another run; use force"):
        run(paths[:1], out, options=[("spacing", 0.5)])
    assert (out / "one.txt").stat().st_mtime_ns == before
    run(paths[:1], out, options=[("spacing", 0.5)], force=True)
    assert (out / "one.txt").stat().st_mtime_ns != before


def test_links_whose_target_is_missing_and_files_that_return(tmp_path):
    (one,) = write(tmp_path / "in", one="one")
    (tmp_path / "in" / "two.pdb").symlink_to(tmp_path / "gone.pdb")
    out = tmp_path / "out"
    assert [row["name"] for row in run(structures_of(tmp_path / "in"), out).failed] == ["two"]
    (tmp_path / "gone.pdb").write_text("two")
    one.unlink()
    one.symlink_to(tmp_path / "gone.pdb")  # another file under the same name is another run's
    with pytest.raises(UsageError):
        run(structures_of(tmp_path / "in"), out)
    one.unlink()
    one.write_text("again")
    assert not run(structures_of(tmp_path / "in"), out).failed
    assert (out / "one.txt").read_text() == "AGAIN"
    assert (out / "two.txt").read_text() == "TWO"


def test_a_file_that_is_no_table_stays(tmp_path):
    paths = write(tmp_path / "in", one="one")
    (tmp_path / "report.csv").write_text("mine\n")
    with pytest.raises(UsageError, match="exists, and is no table of a batch"):
        run(paths, tmp_path)
    assert (tmp_path / "report.csv").read_text() == "mine\n"


@pytest.mark.slow
def test_a_killed_run_goes_on(tmp_path):
    paths = write(tmp_path / "in", one="one", two="two", kill="kill", three="three")
    out = tmp_path / "out"
    script = (f"import sys; sys.path[:0] = [{str(Path(__file__).parent)!r}]\n"
              "from test_batch import run, Path\n"
              "from vmdpotential.execution import batch\n"
              "batch.INTERVAL, batch.TIMES = 0.0, 0.0\n"
              f"run([Path(path) for path in {[str(path) for path in paths]!r}], Path({str(out)!r}), workers=1)")
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == -signal.SIGKILL
    rows = table(out)
    assert [row["status"] for row in rows.values()] == ["done", "done", "pending", "pending"]
    before = (out / "one.txt").stat().st_mtime_ns
    paths[2].write_text("four")
    found = run(paths, out)
    assert [row["status"] for row in found.rows] == ["done"] * 4
    assert found.before == 2
    assert (out / "one.txt").stat().st_mtime_ns == before
    assert [(out / row["file"]).read_text() for row in found.rows] == ["ONE", "TWO", "FOUR", "THREE"]
    assert not list(out.glob(".*"))


@pytest.mark.slow
def test_maps_of_many_structures_are_those_of_each(tmp_path, monkeypatch):
    monkeypatch.setenv("VMDPOTENTIAL_THREADS", "1")
    command = registry.get("command", "map")
    folder, out = tmp_path / "in", tmp_path / "maps"
    one, *_ = write(folder, one=WATER, cut=WATER[:90] + "\n", none="")
    with pytest.raises(CheckError, match="2 of 3 structures failed") as caught:
        command(structure=folder, batch=True, output=out, spacing=1.0, format="dx")
    report = caught.value.report
    assert caught.value.exit_code == 3
    assert report.lines[0] == "3 structures: 1 done, 2 failed"
    assert [row["structure"] for row in report.data["failed"]] == [str(folder / "cut.pdb"), str(folder / "none.pdb")]
    row = table(out)["one"]
    assert (row["atoms"], row["net_charge"], row["message"]) == ("3", "0", "")
    assert row["points"] == " x ".join(map(str, read_map(out / "one.dx").lattice.shape))
    command(structure=one, output=tmp_path / "one.dx", spacing=1.0)
    assert np.array_equal(read_map(out / "one.dx").values, read_map(tmp_path / "one.dx").values)
    for name in ("cut", "none"):
        (folder / f"{name}.pdb").unlink()
    assert command(structure=folder, batch=True, output=out, spacing=1.0, format="dx").data["done_before"] == 1


def test_what_does_not_fit_a_batch_is_refused(tmp_path):
    command = registry.get("command", "map")
    given = {"structure": tmp_path, "batch": True}
    for more, message in (
            ({}, "output: a folder is needed"), ({"output": "-"}, "output: a folder is needed"),
            ({"output": "m", "field": "f.npz"}, "field: is of one structure"),
            ({"output": "m", "topology": "a.psf"}, "topology: is of one structure"),
            ({"output": "m", "format": "xyz"}, "of no map format"),
            ({"output": "m", "workers": 2, "batch": False}, "workers=?.*is for many structures"),
            ({"output": "m", "scheduler": "tcp://a:1", "batch": False}, "scheduler.*is for many structures")):
        with pytest.raises(UsageError, match=message):
            command(**{**given, **more})
