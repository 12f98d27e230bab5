"""Blocks of frames: the same results however often a run is stopped, and on any worker."""

import os
from pathlib import Path

import numpy as np
import pytest
from draws import Draws, total

from vmdpotential import progress
from vmdpotential.execution import blocks
from vmdpotential.execution.blocks import BlockResults, folder_of
from vmdpotential.execution.work import work_fingerprint


def test_blocks_follow_from_the_frames_alone():
    assert [len(block) for block in blocks.split(range(20))] == [8, 8, 4]
    assert len(blocks.split(range(100_000))) <= blocks.BLOCKS
    assert blocks.block_size(10_000, 10_000) == 40  # for 250 workers
    assert blocks.block_size(1000, 2500) == 32  # and of few atoms not more blocks than are worth it
    for count, atoms in ((100_000, 1_000_000), (100, 100_000), (20, 10**8), (10**7, 100)):
        size = blocks.block_size(count, atoms)
        assert size == 1 or size * atoms <= blocks.ATOMS
        assert 1 <= size <= blocks.MOST
    assert blocks.split(range(1000)[5:100:3], 20)[1] == range(65, 101, 3)[:12]
    assert blocks.split(range(0)) == []


def test_progress_counts_frames_of_all_blocks():
    heard = []
    with progress.listen_to_progress(lambda label, fraction: heard.append((label, round(40 * fraction)))):
        list(BlockResults(Draws(1), range(40), size=10))
    assert {label for label, _ in heard} == {"40 frames"}
    assert sorted({number for _, number in heard}) == list(range(1, 41))
    assert [number for _, number in heard] == sorted(number for _, number in heard)


def test_results_of_other_work_or_damaged_ones_are_computed_anew(tmp_path, caplog, monkeypatch):
    folder = tmp_path / "blocks"
    whole = total(BlockResults(Draws(7), range(40), folder=folder))
    assert len(list(folder.glob("block-*.npz"))) == 5
    for other in (BlockResults(Draws(8), range(40), folder=folder, resume=True),
                  BlockResults(Draws(7), range(40), size=9, folder=folder, resume=True),
                  BlockResults(Draws(7), range(0, 80, 2), folder=folder, resume=True)):
        assert not other.kept
    assert "5 blocks belong to other files, options or another version" in caplog.text
    monkeypatch.setattr(blocks, "__version__", "9.9")
    assert not BlockResults(Draws(7), range(40), folder=folder, resume=True).kept
    monkeypatch.undo()

    path = sorted(folder.glob("block-*.npz"))[1]
    content = bytearray(path.read_bytes())
    content[content.index(b"\x93NUMPY") + 140] ^= 1  # within the sums
    path.write_bytes(content)
    sorted(folder.glob("block-*.npz"))[3].write_bytes(b"")
    run = BlockResults(Draws(7), range(40), folder=folder, resume=True)
    assert len(run.kept) == 4
    assert total(run).tobytes() == whole.tobytes()
    assert f"{path}: is damaged" in caplog.text


def test_what_cannot_be_kept_or_is_sooner_computed_stops_nothing(tmp_path, caplog, monkeypatch):
    whole = total(BlockResults(Draws(7), range(40)))
    (tmp_path / "file").touch()
    run = BlockResults(Draws(7), range(40), folder=tmp_path / "file" / "blocks")
    assert total(run).tobytes() == whole.tobytes()
    assert "blocks are not kept" in caplog.text
    monkeypatch.setattr(blocks, "DISK", 1e-3)
    run = BlockResults(Draws(7), range(40), folder=tmp_path / "blocks")
    assert total(run).tobytes() == whole.tobytes()
    assert not (tmp_path / "blocks").exists()


def test_folder_is_beside_a_file_and_goes_when_all_is_safe(tmp_path):
    folder = folder_of(tmp_path / "mean.dx")
    assert folder == tmp_path / "mean.dx.blocks"
    assert folder_of(None) is folder_of(Path("-")) is folder_of(Path("/dev/null")) is None
    run = BlockResults(Draws(7), range(40), folder=folder)
    list(run)
    (folder / "notes.txt").touch()
    run.clear()
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    (folder / "notes.txt").unlink()
    run.clear()
    assert not folder.exists()
    run.clear()


def test_fingerprint_follows_what_counts(tmp_path):
    path = tmp_path / "a.dcd"
    path.write_bytes(b"1234")
    first = [work_fingerprint(path), work_fingerprint(np.arange(3)), work_fingerprint({"a": 1, "b": (2, None)}),
             work_fingerprint(Draws(1)),
             work_fingerprint(slice(1, None)), work_fingerprint(int), work_fingerprint(["ab", "c"]),
             work_fingerprint(1.0)]
    assert len(set(first)) == len(first)
    assert work_fingerprint(np.arange(3)) == first[1]
    assert work_fingerprint(np.arange(3.0)) != first[1] != work_fingerprint(np.arange(3).reshape(3, 1))
    assert work_fingerprint({"b": [2, None], "a": 1}) == first[2]
    assert work_fingerprint(Draws(1, stop="3")) == first[3] != work_fingerprint(Draws(2))
    assert work_fingerprint(["a", "bc"]) != first[6]
    assert work_fingerprint({"a", "b"}, lambda: 1, int) == work_fingerprint({"b", "a"}, lambda: 1,
                                                                            int) != work_fingerprint({"a"})
    os.utime(path, ns=(1, 1))
    assert work_fingerprint(path) != first[0]


@pytest.mark.parametrize("change", ["exchanged", "other values", "an array is missing"])
def test_blocks_whose_content_was_changed_are_computed_again(change, tmp_path):
    folder = tmp_path / "blocks"
    whole = total(BlockResults(Draws(7), range(40), size=8, folder=folder))
    first, second = sorted(folder.glob("block-*.npz"))[:2]
    content = dict(np.load(first))
    if change == "exchanged":
        content = dict(np.load(second))
    elif change == "other values":
        content |= {name: array + 1 for name, array in content.items() if array.dtype.kind == "f"}
    else:
        del content[next(name for name, array in content.items() if array.dtype.kind == "f")]
    np.savez(first, **content)
    again = total(BlockResults(Draws(7), range(40), size=8, folder=folder, resume=True))
    assert again.tobytes() == whole.tobytes()
