"""Disks that are full, limited or read only, and streams that are closed."""

import os
import shlex
import shutil
import subprocess
import sys

import pytest
from broken_inputs import MAP_OF_ION, PROGRAM, check, outputs

from vmdpotential import read_map
from vmdpotential.frontend import cli

resource = pytest.importorskip("resource", reason="not on Windows")

WRITERS = [  # those of other formats of maps are in test_io_maps
    "map in/ion.pqr -o out.dx",
    *(f"slice in/good.dx -o out.{suffix}" for suffix in ("png", "pdf")),
    "ionize in/box.pdb --topology in/box.psf --ions SOD=2,CLA=2 -o out.pdb -o out.psf --table out.csv",
    "ionize in/box.pdb --topology in/box.psf --ions SOD=2,CLA=2 -o out.cif -o out.pqr.gz",
]


@pytest.mark.parametrize("command", WRITERS)
def test_files_larger_than_allowed(command, here, capfd, monkeypatch):
    """A limit on the size of files is a full disk that every user can make."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # it would be cut off, for all who import the same later
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048 if ".gz" in command else 8192, limits[1]))
    try:
        code = cli.main(command.split())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    check(3, "ulimit -f", code, *capfd.readouterr())
    assert os.listdir(here) == ["in"]


@pytest.fixture(scope="session")
def mounting(tmp_path_factory):
    """Return a function that runs a shell script in a folder on a file system of its own: tmpfs with options."""
    folder = tmp_path_factory.mktemp("disk")
    tried = []
    for prefix in (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"]):
        if not shutil.which("unshare"):
            pytest.skip("a full disk needs the program unshare (util-linux), which is not installed")
        test = subprocess.run([*prefix, "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder],
                              capture_output=True, text=True)
        if test.returncode == 0:
            break
        tried.append(test.stderr.strip())
    else:
        pytest.skip(f"a full disk needs the right to mount a tmpfs, which is missing here: {'; '.join(tried)}")

    def run(options, script, inputs):
        whole = f'mount -t tmpfs -o {options} tmpfs "$0" && ln -s "$1" "$0/in"; cd "$0" && {script}'
        return subprocess.run([*prefix, "sh", "-c", whole, folder, inputs], capture_output=True, text=True)

    return run


@pytest.mark.slow
@pytest.mark.parametrize("command", WRITERS[1::3])
def test_full_disk(command, mounting, inputs):
    words = [*command.split(), "--force"]
    there = " ".join(map(str, outputs(words)))
    program = shlex.join([*PROGRAM, *words])
    # room for the outputs that exist, and little more
    size = "12k" if ".gz" in command else "24k"
    script = f"for f in {there}; do echo precious > $f; done; {program}; echo $?; ls -A; cat {there}"
    done = mounting(f"size={size}", script, inputs)
    lines = done.stdout.split()
    check(3, "out.", int(lines[0]), "", done.stderr)
    files = [str(path) for path in outputs(words)]
    assert sorted(lines[1 : 2 + len(files)]) == sorted(["in", *files])
    assert lines[2 + len(files) :] == ["precious"] * len(files)


def test_a_disk_that_cannot_be_written(mounting, inputs):
    script = f"mount -o remount,ro . && {shlex.join([*PROGRAM, *MAP_OF_ION])}; echo $?; ls -A"
    done = mounting("size=64k", script, inputs)
    check(3, "m.dx", int(done.stdout.split()[0]), "", done.stderr)
    assert done.stdout.split()[1:] == ["in"]


def test_standard_output_on_a_full_disk(here):
    with open("/dev/full", "w") as full:
        done = subprocess.run([*PROGRAM, "plugins"], stdout=full, stderr=subprocess.PIPE, text=True)
    check(3, "standard output", done.returncode, "", done.stderr)


@pytest.mark.slow
def test_closed_streams(here):
    command = shlex.join([*PROGRAM, *MAP_OF_ION, "--padding", "1"])
    assert subprocess.run(f"{command} >&- 2>&-", shell=True).returncode == 0
    assert read_map("m.dx").lattice.shape == (5, 5, 5)
    assert subprocess.run(f"{command} >&- 2>&-", shell=True).returncode == 2  # it exists now
