"""Many inputs: one that fails, or ends its process, stops no other, and a run that was stopped is continued."""

import csv
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import helpers
import pytest
from helpers import shell
from messages import naming
from structure_files import MDA

from vmdpotential.errors import InputError, UsageError
from vmdpotential.io import read_map, read_structure
from vmdpotential.io.files.recognise import is_structure
from vmdpotential.plugins.batch.inputs import BatchItem, inputs_of, run_batch, unique_names_of

WATER = """\
ATOM      1  O   HOH A   1       0.000   0.000   0.000  1.00  0.00           O
ATOM      2  H1  HOH A   1       0.957   0.000   0.000  1.00  0.00           H
ATOM      3  H2  HOH A   1      -0.240   0.927   0.000  1.00  0.00           H
END
"""


def make(item):
    """Write what an input says into a file, or do what it says."""
    structure, (output,) = item.path, item.files
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
    return {"net_charge": 1.0, "atoms": len(text), "error": None, "file": output.name}


def table(folder):
    with (folder / "report.csv").open(newline="") as stream:
        return {row["name"]: row for row in csv.DictReader(stream)}


def write(folder, **texts):
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.pdb").write_text(text)
    return [folder / f"{name}.pdb" for name in texts]


def run(paths, folder, options=(("spacing", 1.0),), **more):
    items = [BatchItem(name, path.absolute(), outputs={"output": [folder.absolute() / f"{name}.txt"]})
             for path, name in zip(paths, unique_names_of(paths), strict=True)]
    return run_batch(make, items, folder, dict(options), **more)


def test_structures_are_those_of_a_folder_or_a_list(tmp_path):
    for name in ("b.pdb", "a.cif.gz", "c.PDB", "d.gro", "e.psf", "notes.txt", ".f.pdb"):
        (tmp_path / name).touch()
    (tmp_path / "g.pdb").mkdir()
    (tmp_path / "h.pdb").symlink_to(tmp_path / "gone.pdb")  # it is reported as one that failed
    assert [path.name for path in inputs_of(tmp_path, is_structure)] == ["a.cif.gz", "b.pdb", "c.PDB", "d.gro", "h.pdb"]
    listed = tmp_path / "list"
    listed.write_text("# all of them\r\nx/1abc.pdb\n\n  with blank.pdb \n")
    assert inputs_of(listed, is_structure) == [Path("x/1abc.pdb"), Path("with blank.pdb")]
    listed.write_text("# none\n")
    for nothing in (listed, tmp_path / "g.pdb"):
        with pytest.raises(InputError, match=r"no structure|no files"):
            inputs_of(nothing, is_structure)
    with naming(InputError, "missing"):
        inputs_of(tmp_path / "missing", is_structure)


def test_names_are_without_suffixes_and_no_two_alike():
    paths = ["a/1abc.pdb", "b/1ABC.cif.gz", "1abc_2.pdb", "1abc.pdb", "x.y.gro", ".pdb"]
    assert unique_names_of([Path(path) for path in paths]) == ["1abc", "1ABC_2", "1abc_2_2", "1abc_3", "x.y", ".pdb"]


@pytest.mark.nightly
def test_failures_stop_nothing_and_the_rest_is_kept(tmp_path):
    paths = write(tmp_path / "in", one="one", die="die", much="much", two="two", odd="odd", bad="bad")
    paths += [tmp_path / "in" / "missing.pdb", *write(tmp_path / "other", one="more")]
    out = tmp_path / "out"
    result = run(paths, out, workers=2)
    rows = table(out)
    assert [row["status"] for row in rows.values()] == [
        "done", "failed", "failed", "done", "failed", "failed", "failed", "done"]
    assert [row["name"] for row in result.failed] == ["die", "much", "odd", "bad", "missing"]
    assert rows["die"]["message"] == "its process ended (SIGKILL, out of memory?)"
    assert rows["much"]["message"] == "MemoryError"
    assert rows["odd"]["message"] == "ZeroDivisionError: by zero"
    assert rows["bad"]["message"] == "has no atoms; use another cell"
    assert "No such file" in rows["missing"]["message"]
    first = rows["one"]
    assert (first["message"], first["net_charge"], first["atoms"], first["error"]) == ("is one", "1", "3", "")
    assert float(first["seconds"]) >= 0
    assert (out / "one.txt").read_text() == "ONE"
    assert (out / rows["one_2"]["file"]).read_text() == "MORE"
    assert sorted(path.name for path in out.iterdir()) == ["one.txt", "one_2.txt", "report.csv", "two.txt"]

    # once more: what is done stays; what failed is tried again; what has changed is another run's
    before = (out / "one.txt").stat().st_mtime_ns
    paths[1].write_text("alive")
    (out / "two.txt").unlink()
    result = run(paths[:4], out)
    assert result.before == 1
    assert [row["status"] for row in result.rows] == ["done", "done", "failed", "done"]
    assert (out / "one.txt").stat().st_mtime_ns == before
    paths[0].write_text("changed")
    result = run(paths[:4], out)  # a file that has changed is computed again, and stops nothing
    assert [row["status"] for row in result.rows] == ["done", "done", "failed", "done"]
    assert result.before == 2
    assert (out / "one.txt").read_text() == "CHANGED"
    before = (out / "one.txt").stat().st_mtime_ns
    with naming(UsageError, "one.txt: ", " force"):
        run(paths[:1], out, options=[("spacing", 0.5)])
    assert (out / "one.txt").stat().st_mtime_ns == before
    run(paths[:1], out, options=[("spacing", 0.5)], force=True)
    assert (out / "one.txt").stat().st_mtime_ns != before


def test_links_whose_target_is_missing_and_files_that_return(tmp_path):
    (path,) = write(tmp_path / "in", one="one")
    (tmp_path / "in" / "two.pdb").symlink_to(tmp_path / "gone.pdb")
    out = tmp_path / "out"
    assert [row["name"] for row in run(inputs_of(tmp_path / "in", is_structure), out).failed] == ["two"]
    (tmp_path / "gone.pdb").write_text("two")
    path.unlink()
    path.symlink_to(tmp_path / "gone.pdb")  # another file under the same name is another run's
    with pytest.raises(UsageError):
        run(inputs_of(tmp_path / "in", is_structure), out)
    path.unlink()
    path.write_text("again")
    assert not run(inputs_of(tmp_path / "in", is_structure), out).failed
    assert (out / "one.txt").read_text() == "AGAIN"
    assert (out / "two.txt").read_text() == "TWO"


def test_a_file_that_is_no_table_stays(tmp_path):
    paths = write(tmp_path / "in", one="one")
    (tmp_path / "report.csv").write_text("mine\n")
    with naming(UsageError, "report.csv"):
        run(paths, tmp_path)
    assert (tmp_path / "report.csv").read_text() == "mine\n"


@pytest.mark.slow
def test_a_killed_run_goes_on(tmp_path):
    paths = write(tmp_path / "in", one="one", two="two", kill="kill", three="three")
    out = tmp_path / "out"
    script = (f"import sys; sys.path[:0] = {[str(Path(__file__).parent), str(Path(helpers.__file__).parent)]!r}\n"
              "from test_batch import run, Path\n"
              "from vmdpotential.plugins.batch import inputs as batch\n"
              "batch.INTERVAL, batch.TIMES = 0.0, 0.0\n"
              f"run([Path(path) for path in {[str(path) for path in paths]!r}], Path({str(out)!r}), workers=1)")
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == -signal.SIGKILL
    rows = table(out)
    assert [row["status"] for row in rows.values()] == ["done", "done", "pending", "pending"]
    before = (out / "one.txt").stat().st_mtime_ns
    paths[2].write_text("four")
    result = run(paths, out)
    assert [row["status"] for row in result.rows] == ["done"] * 4
    assert result.before == 2
    assert (out / "one.txt").stat().st_mtime_ns == before
    assert [(out / row["file"]).read_text() for row in result.rows] == ["ONE", "TWO", "FOUR", "THREE"]
    assert not list(out.glob(".*"))


# ---- the command ---------------------------------------------------------------------------------------


@pytest.fixture
def models(tmp_path, monkeypatch):
    """Return a folder of deposited structures: mmCIF without hydrogens, and PDB with and without."""
    monkeypatch.setenv("VMDPOTENTIAL_THREADS", "1")
    monkeypatch.chdir(tmp_path)
    folder = Path("models")
    folder.mkdir()
    shutil.copy(MDA / "mmcif" / "1YJP.cif", folder)
    (folder / "water.pdb").write_text(WATER)
    shutil.copy(MDA / "1osm.pdb.gz", folder)
    with (folder / "1osm.pdb.gz").open("r+b") as stream:  # as after a download that was cut
        stream.truncate(20_000)
    (folder / "notes.txt").write_text("none of them")
    return folder


@pytest.mark.slow
def test_any_command_over_a_folder_of_models(models, capsys):
    """Each of them, by real files: what is written, the figures, and the exit code."""
    code, _, err = shell(capsys, "batch", "prepare", models, "-o", "prepared", "--format", "pqr", "csv", "--json")
    assert code == 3, err
    rows = table(Path("prepared"))
    assert {name: row["status"] for name, row in rows.items()} == {
        "1YJP": "done", "1osm": "failed", "water": "done"}
    assert not list(Path("prepared").glob("1osm*"))
    for name in ("1YJP", "water"):
        assert rows[name]["file"] == f"{name}.pqr; {name}.csv"
        assert int(rows[name]["atoms"]) == len(read_structure(Path("prepared") / f"{name}.pqr"))
    # the files of a batch are the folder of the next
    code, out, err = shell(capsys, "batch", "map", "prepared", "-o", "maps", "--spacing", "2", "--boundary", "open",
                           "--json", "--workers", "2")
    assert code == 0, err
    assert json.loads(out)["done"] == 2
    for name in ("1YJP", "water"):
        structure = read_structure(Path("prepared") / f"{name}.pqr")
        values = read_map(Path("maps") / f"{name}.npz")
        assert float(table(Path("maps"))[name]["minimum"]) == pytest.approx(values.values.min(), rel=1e-5)
        assert float(table(Path("maps"))[name]["net_charge"]) == pytest.approx(structure.net_charge, abs=1e-3)
    assert shell(capsys, "batch", "slice", "maps", "-o", "pictures", "--dpi", "50")[0] == 0
    assert sorted(path.name for path in Path("pictures").glob("*.png")) == ["1YJP.png", "water.png"]
    # rows of a table: other options for each
    Path("rows.csv").write_text("name,structure,map,probe\nsmall,prepared/1YJP.pqr,maps/1YJP.npz,1.4\n"
                                "wide,prepared/1YJP.pqr,maps/1YJP.npz,3\n")
    words = ["batch", "surface", "rows.csv", "-o", "surfaces", "--figure", ".png", "--spacing", "1"]
    code, out, err = shell(capsys, *words)
    assert code == 0, err
    result = table(Path("surfaces"))
    assert float(result["wide"]["probe"]) == 3
    assert result["small"]["file"] == "small.csv; small.png"
    assert float(result["wide"]["area"]) != float(result["small"]["area"])
    assert json.loads(shell(capsys, *words, "--json")[1])["done_before"] == 2
    assert json.loads(shell(capsys, *words, "--json", "--no-resume")[1])["done_before"] == 0


@pytest.mark.parametrize(("words", "parameter"), [
    (["map", "in"], "output"), (["map", "in", "-o", "-"], ""), (["devices", "in", "-o", "m"], "task"),
    (["live", "in", "-o", "m"], "task"), (["batch", "in", "-o", "m"], "task"),
    (["map", "in", "-o", "m", "--field", "f.npz"], "field"),
    (["map", "in", "-o", "m", "--format", "dx", "npz"], "format"), (["compare", "in", "-o", "m"], ""),
    (["energy", "in", "-o", "m"], "between"),
    (["surface", "in/one.pdb", "in/one.pdb", "-o", "m"], "map"), (["map", "in", "in/one.pdb", "-o", "m"], ""),
    (["map", "in", "-o", "m", "--spacing", "x"], "spacing"), (["map", "in", "-o", "m", "--pages"], "")])
def test_what_does_not_fit_is_refused(words, parameter, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "in", one=WATER)
    code, out, err = shell(capsys, "batch", *words, "--json")
    assert code == 2, err
    assert json.loads(out)["error"]["parameter"] == parameter
    assert not Path("m").exists()


@pytest.mark.parametrize("content", [
    "structure,spacings\na.pdb,1\n", "structure,spacing\na.pdb,x\n", "structure,spacing\na.pdb\n",
    "structure,spacing\n,1\n", "structure,spacing\n", "structure,output\na.pdb,a.npz\n", "", "structure\na.pdb,b\n"])
def test_tables_that_are_wrong(content, tmp_path, capsys):
    (tmp_path / "rows.csv").write_text(content)
    code, _, err = shell(capsys, "batch", "map", tmp_path / "rows.csv", "-o", tmp_path / "m")
    assert code == 2
    assert "rows.csv" in err
    assert not (tmp_path / "m").exists()
