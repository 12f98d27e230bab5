"""Compiled kernels that are kept: whole, checked, made once, and by no one else."""

import hashlib
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from vmdpotential import cache, progress
from vmdpotential.engines.cuda import build as cuda
from vmdpotential.engines.cuda import driver as pycuda_driver
from vmdpotential.sums.cuda import KERNEL_FOLDER


def python(code, folder, **environment):
    """Start Python with a folder for kernels."""
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=os.environ | {"VMDPOTENTIAL_CACHE": str(folder)} | environment)


def said(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.strip(), err


@pytest.fixture
def place(monkeypatch, tmp_path):
    """Return a folder that is the cache's in this process."""
    monkeypatch.setenv("VMDPOTENTIAL_CACHE", str(tmp_path / "cache"))
    cache.forget()
    yield tmp_path / "cache"
    monkeypatch.undo()
    cache.forget()


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:20], lambda data: data[: len(data) // 2],
                                    lambda data: data[:999] + bytes([data[999] ^ 1]) + data[1000:],
                                    lambda data: bytes(len(data))],
                         ids=["empty", "checksum", "half", "bit", "zeros"])
def test_a_damaged_entry_is_none_and_is_removed(damage, place):
    content = np.random.default_rng(0).bytes(3000)
    cache.write("entry", content)
    assert cache.read("entry") == content
    path = place / "kernels" / "entry"
    path.write_bytes(damage(path.read_bytes()))
    assert cache.read("entry") is None
    assert not path.exists()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows keeps users' folders apart")
@pytest.mark.parametrize(("mode", "owner"), [(0o777, None), (0o770, None), (0o1777, None), (0o700, 4242)])
@pytest.mark.parametrize("part", ["kernels", "kernels/cuda"])
def test_a_folder_that_others_reach_is_refused(mode, owner, part, place, monkeypatch, caplog):
    (place / "kernels" / "cuda").mkdir(mode=0o700, parents=True)
    (place / part).chmod(mode)
    if owner and os.geteuid() == 0:
        os.chown(place / part, owner, -1)
    elif owner:
        monkeypatch.setattr(os, "geteuid", lambda: owner)
    cache.write("planted", b"code", "cuda")
    result = cache.folder("cuda")
    assert place not in result.parents
    assert stat.S_IMODE(result.stat().st_mode) == 0o700
    assert [record.getMessage() for record in caplog.records] == [
        f"vmdpotential: {place / part} {'belongs to another user' if owner else 'can be written by others'}"
        f"{'' if owner else ' (chmod go-w)'}: kernels are compiled again in every run"]
    assert not list((place / "kernels" / "cuda").iterdir())


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows keeps users' folders apart")
def test_folders_are_made_for_the_user_alone(place):
    place.parent.chmod(0o1777)
    mask = os.umask(0)
    try:
        result = cache.folder("cuda")
    finally:
        os.umask(mask)
    assert result == place / "kernels" / "cuda"
    assert {stat.S_IMODE(path.stat().st_mode) for path in (place, place / "kernels", result)} == {0o700}


def test_a_cache_that_cannot_be_written_is_replaced(place):
    place.write_text("a file in its place")
    result = cache.folder()
    assert result.is_dir()
    assert place not in result.parents
    cache.write("entry", b"content")
    assert cache.read("entry") == b"content"


def test_users_without_a_home_are_served(monkeypatch):
    """As in a container that runs under any number."""
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    for name in ("VMDPOTENTIAL_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(cache.Path, "home", nowhere)
    cache.forget()
    try:
        assert cache.folder().is_dir()
        cache.write("entry", b"content")
        assert cache.read("entry") == b"content"
    finally:
        monkeypatch.undo()
        cache.forget()


def test_what_cannot_be_written_is_not_kept(place, monkeypatch):
    def full(*_):
        raise OSError(28, "no space left")

    monkeypatch.setattr(cache.os, "fsync", full)
    cache.write("entry", b"content")
    assert cache.read("entry") is None
    assert not list((place / "kernels").iterdir())


def test_files_that_nobody_finishes_are_collected(place):
    old, new = cache.folder() / "a.tmp", cache.folder() / "b.tmp"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    cache.write("entry", b"content")
    assert sorted(path.name for path in cache.folder().iterdir()) == ["b.tmp", "entry"]


def test_entries_of_older_versions_are_removed(place, monkeypatch):
    """Those that no run used for long, and beyond a size those that were not used for longest."""
    (cache.folder() / "cuda").mkdir()
    for name, days in (("used", 100), ("unused", 100), ("recent", 30)):
        cache.write(name, b"x" * 100)
        os.utime(cache.folder() / name, (time.time() - 86400 * days,) * 2)
        if name == "used":
            assert cache.read("used")
    (cache.folder() / "lock").touch()
    os.utime(cache.folder() / "lock", (0, 0))
    cache.write("new", b"x" * 100)
    assert sorted(os.listdir(cache.folder())) == ["cuda", "lock", "new", "recent", "used"]
    monkeypatch.setattr(cache, "MOST", 2 * 132)
    cache.write("newer", b"x" * 100)
    assert sorted(os.listdir(cache.folder())) == ["cuda", "lock", "new", "newer", "used"]


@pytest.mark.slow
def test_a_process_that_is_killed_keeps_nobody_waiting(place):
    code = ("import time\nfrom vmdpotential import cache\n"
            "with cache.locked('entry'):\n    print('locked', flush=True)\n    time.sleep(600)\n")
    first = python(code, place)
    assert first.stdout.readline() == "locked\n"
    waiting = python("from vmdpotential import cache\nwith cache.locked('entry'):\n    print('mine')\n", place)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(2)
    assert said(python("from vmdpotential import cache\nwith cache.locked('another'):\n    print('mine')\n", place))
    first.send_signal(signal.SIGKILL)
    assert said(waiting)[0] == "mine"
    first.communicate()


def test_waiting_ends(place, monkeypatch):
    monkeypatch.setattr(cache, "_locked", lambda *_: False)
    monkeypatch.setattr(cache, "PATIENCE", 0.2)
    reports = []
    with progress.listen_to_progress(lambda *report: reports.append(report)), cache.locked("entry"):
        pass
    assert set(reports) == {(progress.COMPILING, 0.0)}


def test_kernels_of_a_gpu_are_kept_and_healed(place, monkeypatch):
    """PyCUDA's part played by its namesakes."""
    compiled = []

    def compile_(text, nvcc, options, no_extern_c, arch, cache_dir):
        assert (nvcc, no_extern_c, cache_dir) == ("nvcc", True, False)
        compiled.append((text, arch))
        return f"{arch}: {text}".encode()

    compiler = SimpleNamespace(compile=compile_, get_nvcc_version=lambda nvcc: "release 12")
    driver = SimpleNamespace(module_from_buffer=bytes.decode, CompileError=type("CompileError", (Exception,), {}))
    monkeypatch.setattr(pycuda_driver, "compiler", lambda: compiler)
    monkeypatch.setattr(pycuda_driver, "cuda_driver", lambda: driver)

    def load(capability=(9, 0)):
        with progress.clock() as clock:
            module = cuda.compile_module(KERNEL_FOLDER / "points.cu", {"REAL": "double"}, "", "nvcc", capability)
        assert module.startswith("sm_{}{}: #define REAL double".format(*capability))
        return clock.compiling > 0

    assert [load(), load()] == [True, False]
    assert [load((8, 0)), load((8, 0))] == [True, False]
    entries = sorted(path for path in (place / "kernels" / "cuda").iterdir() if path.name != "lock")
    assert len(entries) == 2
    for damaged in entries:
        damaged.write_bytes(damaged.read_bytes()[:-1])
    assert [load(), load()] == [True, False]
    assert len(compiled) == 3


def test_a_thread_that_waits_for_another_process_keeps_no_other_thread_waiting(tmp_path, monkeypatch):
    """The entry "held" is compiled by another process; another entry is free meanwhile."""
    monkeypatch.setattr(cache, "_locked", lambda file, place, own=cache._locked: place != held and own(file, place))
    held = int.from_bytes(hashlib.sha256(b"held").digest()[:3], "big")
    monkeypatch.setattr(cache, "PATIENCE", 5.0)
    waiting, passed = threading.Event(), threading.Event()

    def wait():
        with progress.listen_to_progress(lambda *_: waiting.set()), cache.locked("held"):
            assert passed.is_set()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    assert waiting.wait(4)
    begin = time.monotonic()
    with cache.locked("free"):
        passed.set()
        assert time.monotonic() - begin < 4
    cache.PATIENCE = 0.0
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes in folders")
def test_a_pipe_in_place_of_the_lock_keeps_nobody_waiting(place):
    os.mkfifo(cache.folder() / "lock")
    with cache.locked("entry"):
        pass
