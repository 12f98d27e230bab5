"""Tasks over frames: their named sums are those over all frames, in blocks, in pieces, elsewhere and after a stop."""

from dataclasses import dataclass

import numpy as np
import pytest
from messages import naming

from vmdpotential import progress
from vmdpotential.execution.blocks import FRAMES_LABEL
from vmdpotential.frames.options import Execution
from vmdpotential.frames.statistics import BlockMean, FrameMean, Moments
from vmdpotential.frames.sums import FrameRows, FrameSum, TotalOverFrames
from vmdpotential.frames.task import FrameTask, merge_blocks, run_task
from vmdpotential.io.trajectories.frames import LoadedFrames

POSITIONS = np.random.default_rng(5).normal(size=(130, 12, 3))
#: Vectors from the centre of the first four atoms to that of the others, by frame.
APART = POSITIONS[:, 4:].mean(1) - POSITIONS[:, :4].mean(1)


@dataclass(frozen=True, eq=False)
class Vectors(FrameTask):
    """Vectors between two groups of atoms, in sums of every kind."""

    frames: LoadedFrames
    first: int

    def sums(self):
        return {"block mean": BlockMean(), "frame mean": FrameMean(), "moments": Moments.none((3,)),
                "total": TotalOverFrames(),
                "rows": FrameRows(len(self.frames.numbers()))}

    def of_frame(self, frame):
        apart = frame.positions[self.first :].mean(0) - frame.positions[: self.first].mean(0)
        return dict.fromkeys(self.sums(), apart)


TASK = Vectors(LoadedFrames("random", [(frame, None) for frame in POSITIONS]), 4)


def values(merged):
    """Return all results of the sums."""
    return [merged["block mean"].mean, merged["block mean"].deviation(), merged["block mean"].uncertainty().error,
            merged["frame mean"].moments.mean, merged["frame mean"].uncertainty().error, merged["moments"].mean,
            merged["moments"].variance(), merged["total"].value, merged["rows"].values]


@pytest.mark.parametrize("piece", [0, 3])
def test_sums_are_those_over_all_frames(piece):
    merged = run_task(TASK, size=13, piece=piece)
    assert merged.counts == [13] * 10
    mean, std, (of_blocks, of_frames) = APART.mean(0), APART.std(0), (APART.std(0) / np.sqrt(n) for n in (130, 129))
    expected = [mean, std, of_blocks, mean, of_frames, mean, std**2, APART.sum(0), APART]
    for number, (actual, known) in enumerate(zip(values(merged), expected, strict=True)):
        # the error of few blocks is that of the longest correlation times that they do not exclude
        np.testing.assert_allclose(actual, known, rtol={2: 1.5, 4: 0.6}.get(number, 1e-12), atol=1e-14)


@pytest.mark.slow
def test_sums_are_the_same_bit_by_bit_elsewhere_and_after_a_stop(tmp_path):
    folder = tmp_path / "kept.blocks"
    ways = [Execution(folder=folder), Execution(folder=folder, resume=True), Execution(workers=2)]
    once, *others = ([each.tobytes() for each in values(run_task(TASK, way, size=13, piece=3))] for way in ways)
    assert len(list(folder.iterdir())) == 50
    assert all(other == once for other in others)


@pytest.mark.parametrize("partial", [True, False])
def test_an_interrupted_task_has_the_sums_of_whole_blocks(partial):
    def interrupt(label, fraction):
        if fraction > 0.5:
            raise KeyboardInterrupt

    with progress.listen_to_progress(interrupt):
        if not partial:
            with pytest.raises(KeyboardInterrupt):
                run_task(TASK, Execution(), size=13)
            return
        merged = run_task(TASK, Execution(partial=True), size=13)
    assert 13 <= merged.count < 130
    assert merged.count % 13 == 0
    np.testing.assert_array_equal(merged["rows"].values, APART[: merged.count])
    np.testing.assert_allclose(merged["total"].value, APART[: merged.count].sum(0), rtol=1e-12)


def test_no_block_is_partly_added():
    """What a sum reports while a block is added does not interrupt it, which would add it to some of the sums only."""
    class Reports(FrameSum):
        def add_block(self, block, count):
            progress.report_progress(FRAMES_LABEL, 0.5)

    def interrupt(label, fraction):
        raise KeyboardInterrupt

    blocks = [{"count": np.array(2), "a.sum": np.ones(3)}] * 4
    with progress.listen_to_progress(interrupt):
        merged = merge_blocks({"a": TotalOverFrames(), "b": Reports()}, blocks)
    assert merged["a"].value.tolist() == [4, 4, 4]


def test_what_a_task_or_a_sum_lacks_is_named():
    @dataclass(frozen=True, eq=False)
    class Empty(FrameTask):
        frames: LoadedFrames

        def sums(self):
            return {"total": TotalOverFrames()}

    class Lacking(FrameSum):
        def add_block(self, block, count):
            """Add nothing."""

    with naming(NotImplementedError, "Empty"):
        run_task(Empty(TASK.frames))
    with naming(NotImplementedError, "Lacking"):
        Lacking().of_frames(APART)
    with naming(NotImplementedError, "Lacking"):
        Lacking().merged({}, {}, (1, 1))
