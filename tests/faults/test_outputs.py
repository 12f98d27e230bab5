"""Several outputs are one: kills at every step, renames and syncs that fail, what is kept of files replaced."""

import errno
import json
import math
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
from messages import Words, naming
from steps import forked, hidden

from vmdpotential import progress
from vmdpotential.errors import OutputError, UsageError
from vmdpotential.frontend import cli
from vmdpotential.io.files import hidden as hiding
from vmdpotential.io.files import output
from vmdpotential.parameters import Command, Option, Report

ION = "ATOM 1 C X 1 0.0 0.0 0.0 1.0 1.0\n"

links = pytest.mark.skipif(os.name == "nt", reason="links need a right on Windows")


@pytest.fixture
def places(tmp_path):
    """Return three outputs in two folders: one that is there, one that is new, one behind a link."""
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    (tmp_path / "a" / "old.dx").write_text("old")
    (tmp_path / "c" / "end.dx").write_text("old")
    (tmp_path / "b" / "link.dx").symlink_to(tmp_path / "c" / "end.dx")
    return [tmp_path / "a" / "old.dx", tmp_path / "a" / "new.dx", tmp_path / "b" / "link.dx"]


def write(places, text="new"):
    with output.writing_files(places, force=True) as temporary:
        for path in temporary:
            path.write_text(text)


def contents(places):
    return [path.read_text() if path.exists() else None for path in places]


OLD, NEW = ["old", None, "old"], ["new"] * 3


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork, which Windows lacks")
def test_killed_at_every_step(places, tmp_path):
    """After each kill every file is complete, the old or the new one; the next run removes what is left and no more."""
    steps, seen, stop = None, set(), 0
    while steps is None:
        stop += 1
        for place, content in zip(places, OLD, strict=True):
            place.write_text(content) if content else place.unlink(missing_ok=True)
        steps = forked(lambda: write(places), tmp_path, stop)
        left = contents(places)
        assert all(text in (old, "new") for text, old in zip(left, OLD, strict=True))
        for folder in ("a", "c"):
            write([tmp_path / folder / "other.dx"])
        assert contents(places) == left
        assert not hidden(tmp_path), stop
        seen.add(tuple(left))
    assert {tuple(OLD), tuple(NEW)} < seen
    assert steps > 20
    assert places[2].is_symlink()


def failing(monkeypatch, name, first, last=None, error=None):
    """Let a function of os fail when it is called for the first-th to the last-th time."""
    function, calls = getattr(os, name), []

    def call(*arguments, **options):
        calls.append(arguments)
        if first <= len(calls) <= (last or first):
            raise error or OSError(errno.EIO, os.strerror(errno.EIO))
        return function(*arguments, **options)

    monkeypatch.setattr(os, name, call)


@pytest.mark.parametrize(("name", "number"), [
    ("replace", 1), ("replace", 2), ("replace", 3), ("link", 1), ("link", 2), *(("fsync", n) for n in range(1, 6)),
    ("mkdir", 1), ("mkdir", 4)])
def test_one_failure_and_nothing_is_written(name, number, places, tmp_path, monkeypatch):
    failing(monkeypatch, name, number)
    with naming(OutputError, Words.NOTHING_WRITTEN):
        write(places)
    monkeypatch.undo()
    assert contents(places) == OLD
    assert not hidden(tmp_path)


@pytest.mark.parametrize("error", [errno.EPERM, errno.ENOTSUP])
def test_without_hard_links(error, places, tmp_path, monkeypatch):
    def unable(*_):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "link", unable)
    failing(monkeypatch, "replace", 3)
    with naming(OutputError, Words.NOTHING_WRITTEN):
        write(places)
    assert contents(places) == OLD
    monkeypatch.undo()
    monkeypatch.setattr(os, "link", unable)
    write(places)
    assert contents(places) == NEW
    assert not hidden(tmp_path)


def test_a_former_file_that_cannot_be_put_back_is_kept(places, tmp_path, monkeypatch):
    failing(monkeypatch, "replace", 2, last=math.inf)
    with pytest.raises(OutputError) as caught:
        write(places)
    assert contents(places) == ["new", None, "old"]
    monkeypatch.undo()
    write([tmp_path / "a" / "other.dx"])
    (kept,) = (tmp_path / "a").glob("vmdpotential-*/*-former")
    assert kept.read_text() == "old"
    assert str(kept.parent) in caught.value.message()


def test_an_interrupt_among_renames(places, tmp_path, monkeypatch):
    failing(monkeypatch, "replace", 2, error=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        write(places)
    assert contents(places) == OLD
    assert not hidden(tmp_path)


@links
def test_mode_owner_and_links_stay(tmp_path):
    target, link, mask = tmp_path / "target.dx", tmp_path / "link.dx", os.umask(0o022)
    os.umask(mask)
    target.write_text("old")
    link.symlink_to("target.dx")
    owners = [(4242, 4343), None] if os.geteuid() == 0 else [None]
    for owner in owners:
        for mode in (0o600, 0o444, 0o200, 0o664):
            if owner:
                os.chown(target, *owner)
            target.chmod(mode)
            with output.writing_files([link], force=True) as (temporary,):
                assert stat.S_IMODE(temporary.parents[1].stat().st_mode) == 0o700  # no other user may read it before
                temporary.write_text("new")
            result = target.stat()
            assert stat.S_IMODE(result.st_mode) == mode
            assert owner is None or (result.st_uid, result.st_gid) == owner
            assert link.is_symlink()
            target.chmod(0o600)
            assert target.read_text() == "new"
    write([tmp_path / "fresh.dx"])
    assert stat.S_IMODE((tmp_path / "fresh.dx").stat().st_mode) == 0o666 & ~mask


@links
def test_links_to_nowhere(tmp_path):
    (tmp_path / "link.dx").symlink_to("later.dx")
    (tmp_path / "lost.dx").symlink_to("none/later.dx")
    with naming(UsageError, Words.EXISTS):
        output.check([tmp_path / "link.dx"])
    with naming(OutputError, Words.LINK):
        output.check([tmp_path / "lost.dx"], force=True)
    write([tmp_path / "link.dx"])
    assert (tmp_path / "later.dx").read_text() == "new"
    with naming(UsageError, Words.NAMED_TWICE):
        output.check([tmp_path / "link.dx", tmp_path / "later.dx"], force=True)


def sample(
    source: Annotated[Path, Option("what is read", positional=True)],
    more: Annotated[tuple[Path, ...], Option("what is read too")] = (),
    target: Annotated[Path | None, Option("what is written", written=True)] = None,
) -> Report:
    """Write a file."""
    output.check([target], force=True)
    return Report([], {})


@links
@pytest.mark.parametrize("name", ["in.dx", "soft.dx", "hard.dx", "more.dx", "../{}/in.dx"])
def test_an_input_is_never_an_output(name, tmp_path):
    for read in ("in.dx", "more.dx"):
        (tmp_path / read).write_text("in")
    (tmp_path / "soft.dx").symlink_to("in.dx")
    os.link(tmp_path / "in.dx", tmp_path / "hard.dx")
    command, target = Command.of(sample), tmp_path / name.format(tmp_path.name)
    with naming(UsageError, target):
        command(source=str(tmp_path / "in.dx"), more=[tmp_path / "none.dx", tmp_path / "more.dx"], target=target)
    command(source=tmp_path / "in.dx", target=tmp_path / "out.dx")
    output.check([target], force=True)  # another run may


@pytest.mark.parametrize("command", [
    "map {in} -o {in} --force", "map {in} --field {in} -o m.dx --force", "ionize {in} -o a.pdb --table {in} --force",
    "ionize in.pdb --topology {in} -o {in} --force", "slice {in} -o f.png --structure f.png --force",
    "view {in} -o page.html --ions page.html --force"])
def test_every_command_keeps_its_inputs(command, tmp_path, monkeypatch, capsys):
    """Before anything is read: what is in the files would be no structure."""
    monkeypatch.chdir(tmp_path)
    for name in ("f.png", "page.html"):
        (tmp_path / name).write_text("precious")
    path = tmp_path / ("in.pqr" if "ionize" in command else "in.npz")
    path.write_text("precious")
    assert cli.main([word.format(**{"in": path.name}) for word in command.split()]) == 2
    assert "is read by the same command, and would be lost" in capsys.readouterr().err
    assert all(path.read_text() == "precious" for path in tmp_path.iterdir())


# ---- leftovers ------------------------------------------------------------------------------------------------


def leave(folder, name="0123abcd"):
    """Make what a killed run leaves; return the hidden folder."""
    path = folder / f"{hiding.mark()}{name}"
    path.mkdir(mode=0o700)
    for name in ("0", "0-former"):
        (path / name).write_text("half")
    return path


def test_only_this_programs_abandoned_folders_are_removed(tmp_path):
    """Of this computer; what a user, or another computer, gave such a name stays, and what links point to."""
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("a user's")
    abandoned = leave(tmp_path)
    (abandoned / "link").symlink_to(precious)
    others = [tmp_path / ".vmdpotential-notes", tmp_path / f"{hiding.mark()}file",
              tmp_path / f"{hiding.mark()}link", tmp_path / ".vmdpotential-00000000-0123abcd"]
    others[0].mkdir()
    others[1].write_text("a user's")
    others[2].symlink_to(precious)
    others[3].mkdir()
    write([tmp_path / "map.dx"])
    assert hidden(tmp_path) == sorted(map(str, others))
    assert (precious / "file").read_text() == "a user's"


def test_no_file_is_moved_because_of_what_a_folder_contains(tmp_path):
    """A journal of earlier versions, in a folder that came from elsewhere."""
    victim, target = tmp_path / "victim", tmp_path / "target"
    victim.write_text("a user's")
    content = json.dumps([[str(target), str(victim), str(target), None, None]])
    folder = tmp_path / "from elsewhere"
    folder.mkdir()
    locks = folder / ".vmdpotential-0123abcd-0123abcd-lock", folder / f"{hiding.mark()}lock"
    for lock in (leave(folder) / "lock", *locks):
        lock.write_text(f"+{content}")
        os.utime(lock, (0, 0))
    target.write_text("evil")
    write([folder / "map.dx"])
    assert victim.read_text() == "a user's"
    assert target.read_text() == "evil"


@pytest.mark.skipif(os.name == "nt", reason="Windows cannot lock folders")
def test_what_a_living_run_writes_stays(tmp_path):
    code = ("import sys, time\nfrom pathlib import Path\nfrom vmdpotential.io.files import output\n"
            "with output.writing_files([Path(sys.argv[1])]) as (path,):\n    path.write_text('half')\n"
            "    print(flush=True)\n    time.sleep(600)\n")
    with subprocess.Popen([sys.executable, "-c", code, tmp_path / "a.dx"], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        with output.writing_files([tmp_path / "b.dx"]) as (path,):  # and another of this process
            path.write_text("b")
            for folder in tmp_path.iterdir():
                os.utime(folder, (0, 0))
            write([tmp_path / "c.dx"])
            assert len(hidden(tmp_path)) == 2
        assert len(hidden(tmp_path)) == 1
        process.send_signal(signal.SIGKILL)
        process.wait()
        write([tmp_path / "d.dx"])
    assert sorted(os.listdir(tmp_path)) == ["b.dx", "c.dx", "d.dx"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root, to make another user's files")
def test_other_users_files_stay(tmp_path):
    path = leave(tmp_path)
    os.chown(path, 4242, 4242)
    write([tmp_path / "map.dx"])
    assert len(list(path.iterdir())) == 2


# ---- what is no regular file ----------------------------------------------------------------------------------


@pytest.fixture
def ion(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ion.pqr").write_text(ION)
    return ["map", "ion.pqr", "--padding", "1"]


def test_maps_on_standard_output(ion, tmp_path, capfdbinary):
    assert cli.main([*ion, "-o", "file.npz", "-o=file.npz"]) == 2
    for format in ("npz", ".dx.gz", "mrc", "cube"):
        capfdbinary.readouterr()
        name = f"file.{format.removeprefix('.')}"
        assert cli.main([*ion, "-o", name]) == 0
        assert cli.main([*ion, "-o", "-", "--format", format]) == 0
        out, err = capfdbinary.readouterr()
        report = out[: out.index(f"wrote {name}\n".encode())]
        data = out[len(report) + len(f"wrote {name}\n") :]
        if format != "npz":  # whose entries have dates
            assert data == (tmp_path / name).read_bytes()
        assert len(data) == len((tmp_path / name).read_bytes())
        assert b"wrote -\n" in err
    assert cli.main([*ion, "-o", "/dev/null", "--format", "dx"]) == 0
    assert not hidden(tmp_path)


@pytest.mark.parametrize(("words", "line"), [
    ("-o -", "-: has no suffix that states the format; give --format"),
    ("-o /dev/null", "/dev/null: has no suffix that states the format; give --format"),
    ("-o - --format pdb", "-.pdb: the suffix is not that of a map format; choose one of"),
    ("-o m.dx --format mrc", "--format mrc: a format is only needed for an output"),
    ("-o - --format dx --json",
     "--json and the data cannot both be written to standard output; write the data to a file"),
    ("-o /dev/stdout --format dx --json", "--json and the data cannot both"),
])
def test_formats_that_are_not_told(words, line, ion, capsys):
    if os.name == "nt" and "/dev" in words:
        pytest.skip("Windows has no /dev")
    assert cli.main([*ion, *words.split()]) == 2
    assert f"vmdpotential: {line}" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
def test_pipes_and_devices(tmp_path):
    os.mkfifo(tmp_path / "pipe.dx")
    reader = subprocess.Popen(["cat", tmp_path / "pipe.dx"], stdout=subprocess.PIPE, text=True)
    write([tmp_path / "pipe.dx", tmp_path / "file.dx", Path("/dev/null")])
    assert reader.communicate()[0] == "new"
    assert (tmp_path / "file.dx").read_text() == "new"
    assert (tmp_path / "pipe.dx").is_fifo()
    output.check([tmp_path / "pipe.dx", Path("/dev/null"), Path("/dev/null")])  # nothing is replaced
    with naming(UsageError, Words.NAMED_TWICE):
        output.check([Path("-"), Path("/dev/stdout")])


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="pipes end otherwise on Windows")
def test_a_reader_that_goes(tmp_path):
    """One exit code, no word, and the other outputs are not written either."""
    (tmp_path / "ion.pqr").write_text(ION)
    for words, left in ((["-o", "-", "--format", "dx", "--field", "f.npz"], []), (["-o", "m.dx"], ["m.dx"])):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([sys.executable, "-m", "vmdpotential", "map", "ion.pqr", "--padding", "1", *words],
                              cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, text=True)
        os.close(writer)
        assert done.returncode == 141
        assert not [line for line in done.stderr.splitlines() if not line.startswith(progress.COMPILING)]
        assert sorted(os.listdir(tmp_path)) == ["ion.pqr", *left]
