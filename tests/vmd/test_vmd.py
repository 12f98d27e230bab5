"""The VMD plugin under tclsh: tests/vmd/vmdpotential.test with the real program as the child and the golden case."""

import gzip
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import gemmi
import golden
import numpy as np
import pytest
from deposited import crystal_file
from forked_program import write_client
from scipy.spatial import cKDTree

import vmdpotential as vp
from vmdpotential.figures.surfaces import vertex_colours
from vmdpotential.io import read_structure, write_structure
from vmdpotential.plugins.viewers.adapters import viewer_commands
from vmdpotential.plugins.viewers.map_surfaces import with_surface
from vmdpotential.plugins.viewers.vmd import mesh_spacing

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "plugins" / "vmd"
TCLSH = shutil.which("tclsh")
#: A Python that has VMD's core as the module vmd, if there is one.
CORE = os.environ.get("VMDPOTENTIAL_VMD_PYTHON")
needs_tclsh = pytest.mark.skipif(TCLSH is None, reason="tclsh is missing (Debian: apt-get install tcl)")


def tcl_list(items):
    """Numbers and plain words, or lists of them, as a Tcl list."""
    return "{" + " ".join(tcl_list(item) if isinstance(item, (list, tuple)) else str(item) for item in items) + "}"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with the program, the golden case and what is expected of it, and an empty folder for scratch files."""
    folder = tmp_path_factory.mktemp("vmd plugin [exit] {")
    (folder / "tmp").mkdir()
    program = folder / "vmdpotential run"
    # the plugin hides PYTHONPATH from its child, as VMD's own must not be seen by it
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m vmdpotential "$@"\n')
    program.chmod(0o700)
    golden.write(folder)
    entry = gemmi.read_pdb_string(gzip.decompress((ROOT / "data" / "1hvr.pdb.gz").read_bytes()))
    entry.write_pdb(str(folder / "deposited.pdb"))
    write_structure(read_structure(folder / "deposited.pdb"), folder / "deposited.cif")
    crystal_file(folder / "crystal.pdb")
    system, ions = golden.structure(), golden.ions()
    probe = np.concatenate([np.arange(5), np.arange(5, len(system), 97)])
    values = golden.interpolated(system.positions[probe])
    # a file of six digits, summed in single precision: what matters is the largest node around the atom
    around = np.floor(system.positions[probe])[:, None] + np.array(list(np.ndindex(2, 2, 2)))
    scales = np.abs(golden.potential(around.reshape(-1, 3))).reshape(-1, 8).max(1)
    kept = len(system) - 3 * len(ions)
    expected = {
        "map_options": tcl_list(word for name, value in golden.VIEWER_OPTIONS.items() for word in (f"-{name}", value)),
        "ion_options": tcl_list(word for name, value in golden.ION_OPTIONS.items() for word in (f"-{name}", value)),
        "probe": "{index " + " ".join(map(str, probe)) + "}",
        "values": tcl_list(f"{value:.9g}" for value in values),
        "scales": tcl_list(f"{scale:.4g}" for scale in scales),
        "commands": tcl_list(command.name for command in viewer_commands(pytest.fail)),
        "ions": tcl_list(word for name, place in ions for word in (name, place)),
        "ion_rows": tcl_list(range(kept, kept + len(ions))),
        "atoms": len(system),
        "ionized": kept + len(ions),
    }
    (folder / "expected.tcl").write_text("\n".join(f"{name} {value}" for name, value in expected.items()))
    return folder


def run(home, *arguments, stdin=None, **environment):
    variables = {
        **os.environ, "VMDPOTENTIAL": str(home / "vmdpotential run"), "VMDPOTENTIAL_GOLDEN": str(home),
        "VMDPOTENTIAL_PLUGIN": str(PLUGIN), "TMPDIR": str(home / "tmp"), "HOME": str(home), **environment}
    return subprocess.run(
        arguments, env=variables, stdin=stdin or subprocess.DEVNULL, capture_output=True, text=True, timeout=900,
        cwd=home)


def check(done, least, recorded=True):
    """Assert that all tests of a run of tcltest passed, or those that were chosen; some need the recorder."""
    output = done.stdout + done.stderr
    summary = re.search(r"Total\s+(\d+)\s+Passed\s+(\d+)\s+Skipped\s+(\d+)\s+Failed\s+(\d+)", output)
    assert summary, output
    total, passed, skipped, failed = map(int, summary.groups())
    assert failed == 0, output
    # by a condition; those that were not chosen are only counted
    assert not recorded or "SKIPPED:" not in output, output
    assert passed == total - skipped > least
    assert done.returncode == 0


@pytest.fixture(scope="module")
def forked(home, forks):
    """The program as forks of one process."""
    return write_client(home / "forked [program]", forks)


PARTS = ("map-*", "live-* frames-* copies-*",
         "select-* values-* files-* deposited-* surface-* density-* orbital-* view-* slice-* alternates-*")


@pytest.mark.slow
@needs_tclsh
@pytest.mark.parametrize("part", [*PARTS, "others"])
def test_plugin_under_tclsh(home, forked, part):
    # PYTHONHOME is what VMD's launcher sets for its own Python; the program's would not even start with it
    chosen = ("-skip", " ".join(PARTS)) if part == "others" else ("-match", part)
    check(run(home, TCLSH, ROOT / "tests" / "vmd" / "vmdpotential.test", *chosen, VMDPOTENTIAL=str(forked),
              PYTHONHOME="/no/such/python"), 5)
    assert list((home / "tmp").iterdir()) == []  # nothing is left behind


if CORE:
    @pytest.mark.slow
    @pytest.mark.parametrize("part", [*PARTS, "others"])
    def test_plugin_in_the_core_of_vmd(home, forked, part):
        chosen = f"-skip {{{' '.join(PARTS)}}}" if part == "others" else f"-match {{{part}}}"
        # at the end, Tcl's exit cannot end Python, and is an error
        script = ("import contextlib, sys, vmd\n"
                  "with contextlib.suppress(ValueError):\n    vmd.evaltcl(f'source {{{sys.argv[1]}}}')")
        check(run(home, CORE, "-c", script, ROOT / "tests" / "vmd" / "vmdpotential.test", VMDPOTENTIAL=str(forked),
                  TCLTEST_OPTIONS=chosen), 1, recorded=False)
        assert list((home / "tmp").iterdir()) == []


@pytest.mark.nightly
@pytest.mark.slow
@needs_tclsh
def test_what_the_tutorial_shows(home):
    """Each part ends with some molecules, maps of the last one, and no job."""
    text, picture = (ROOT / "scripts" / "tutorials" / "vmd.md").read_text(), "slice-from-vmd.png"
    script = f"source {{{ROOT / 'tests' / 'vmd' / 'recorder.tcl'}}}\nlappend auto_path {{{PLUGIN}}}\n" \
             "package require vmdpotential\n"
    for part in re.findall(r"(?ms)^```tcl\n(.*?)^```", text):
        script += part.replace("data/dhfr", "golden").replace("data/1hvr", "deposited") + (
            "potential wait\n"
            "puts \"COUNTS [molinfo num] [molinfo top get numvolumedata] [llength [potential jobs]]\"\n")
    (home / picture).unlink(missing_ok=True)
    (home / "shown.tcl").write_text(script + "exit\n")
    # not as a file to source, but as typed
    with (home / "shown.tcl").open() as typed:
        done = run(home, TCLSH, stdin=typed)
    assert not done.stderr
    assert re.findall("COUNTS (.*)", done.stdout) == ["2 1 0", "5 1 0"]
    assert (home / picture).stat().st_size > 1000
    assert list((home / "tmp").iterdir()) == []


@pytest.mark.slow
@needs_tclsh
def test_colours_at_vertices_are_those_of_the_command_surface(home):
    """HIV protease: the triangles that VMD draws, and the colours of its scale, against the Python function."""
    script = f"""source {{{ROOT / "tests" / "vmd" / "recorder.tcl"}}}
lappend auto_path {{{PLUGIN}}}
proc color {{args}} {{::recorder::record color {{*}}$args}}
package require vmdpotential
mol new deposited.pdb
potential map -spacing 1 -range -4,6 -wait 1
set channel [open drawn.txt w]
foreach entry [lindex [lsearch -inline -glob $::recorder::calls {{color change rgblist *}}] 3] {{puts $channel $entry}}
foreach call $::recorder::calls {{
    if {{[lindex $call 2] eq "tricolor"}} {{puts $channel [join [lrange $call 3 end]]}}
}}
close $channel
exit
"""
    (home / "drawn.tcl").write_text(script)
    with (home / "drawn.tcl").open() as typed:
        done = run(home, TCLSH, stdin=typed)
    assert not done.stderr
    lines = [[float(word) for word in line.split()] for line in (home / "drawn.txt").read_text().splitlines()]
    scale = {int(number): rgb for number, *rgb in lines[:1024]}
    triangles = np.array(lines[1024:])
    structure = vp.prepare(read_structure(home / "deposited.pdb")).structure
    grid = vp.potential_map(structure, spacing=1)
    computed = structure.take(with_surface(structure))
    found = vp.surface(computed, grid, mesh_spacing=mesh_spacing(len(computed)))
    outer = (found.surface.cavities == 0)[found.surface.triangles].all(1)
    assert 50_000 < len(triangles) == np.count_nonzero(outer) < len(outer)
    seen = found.surface.cavities == 0
    distance, nearest = cKDTree(found.surface.vertices[seen]).query(triangles[:, :9].reshape(-1, 3))
    assert distance.max() < 0.01
    colours = np.array([scale[number] for number in triangles[:, 18:].ravel().astype(int)])
    wanted = vertex_colours(found.values[seen], (-4, 6))[nearest, :3]
    assert np.quantile(np.abs(colours - wanted).max(1), 0.999) < 0.01
    assert np.corrcoef(colours.ravel(), wanted.ravel())[0, 1] > 0.999


@pytest.fixture
def display():
    """A display that no one sees."""
    read, write = os.pipe()
    server = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "1000x1000x24", "-nolisten", "tcp"],
                              pass_fds=[write], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(write)
    with os.fdopen(read) as stream:
        number = stream.readline().strip()
    yield f":{number}"
    server.terminate()
    server.wait(20)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("wish"), reason="wish is missing (Debian: apt-get install tk)")
@pytest.mark.skipif(not shutil.which("Xvfb"), reason="Xvfb is missing (Debian: apt-get install xvfb)")
def test_dialog(home, display):
    check(run(home, "wish", ROOT / "tests" / "vmd" / "dialog.test", DISPLAY=display), 10)
    assert list((home / "tmp").iterdir()) == []
