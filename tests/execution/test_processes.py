"""Long trajectories on GPUs, whose frames several processes compute: same bits, whoever dies and whoever calls."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from vmdpotential.errors import TaskError
from vmdpotential.execution import pools
from vmdpotential.execution.blocks import BlockResults
from vmdpotential.execution.work import Work

WORK = """
import os, signal
from dataclasses import dataclass
from pathlib import Path
import numpy as np
from vmdpotential.execution.work import FrameCost, WorkNeeds, Work

@dataclass(frozen=True)
class Kills(Work):
    flag: Path
    seconds: float

    def needs(self):
        return WorkNeeds(cost=self.cost)

    def cost(self):
        return FrameCost(self.seconds, 0.0, 2**23)

    def block(self, numbers):
        if 5 in numbers and not self.flag.exists():
            self.flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        large = np.zeros(2**20)
        large[: len(numbers)] = numbers
        return {"process": np.array(os.getpid()), "gpu": np.array(os.environ.get("VMDPOTENTIAL_GPUS")), "large": large}
"""

# no guard of __main__: a new process must not run it again
SCRIPT = """
import contextlib, os
from pathlib import Path
from types import SimpleNamespace
import work
from vmdpotential.execution import blocks, processes
from vmdpotential.execution.blocks import BlockResults

print("begun")
processes.START = 1e-9  # seconds
processes.process_count = lambda engine, most, cost: 2
blocks.get_engine = processes.get_engine = lambda name: SimpleNamespace(
    devices=lambda: [SimpleNamespace(bound=contextlib.nullcontext, environment={"VMDPOTENTIAL_GPUS": str(n)})
                     for n in (3, 4)])
for seconds in (0.0, 1.0):
    found = list(BlockResults(work.Kills(Path("flag"), seconds), range(10), size=2))
    assert [result["large"][:2].tolist() for result in found] == [[n, n + 1] for n in range(0, 10, 2)], found
    others = {int(result["process"]) for result in found[1:]}
    assert os.getpid() not in others, others
    assert {str(result["gpu"]) for result in found[1:]} <= {"3", "4"}, found
    # the first block says whether processes are worth it where nothing says so before
    assert (int(found[0]["process"]) == os.getpid()) == (not seconds), found
assert Path("flag").exists() and "VMDPOTENTIAL_GPUS" not in os.environ
"""


def test_processes_take_the_rest_of_a_long_run(tmp_path):
    (tmp_path / "work.py").write_text(WORK)
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "tmp").mkdir()
    run = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True,
                         env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
                                           "TMPDIR": str(tmp_path / "tmp")})
    assert (run.returncode, run.stdout) == (0, "begun\n"), run.stderr
    assert not list(Path(tmp_path / "tmp").iterdir())


class Deadly(Work):
    """Work that ends the process that computes it."""

    def block(self, numbers: range) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Unlucky(Work):
    """Work whose processes die in one block, so many times."""

    folder: Path
    times: int

    def block(self, numbers: range) -> dict[str, np.ndarray]:
        if 5 in numbers and len(list(self.folder.iterdir())) < self.times:
            (self.folder / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"sum": np.array([0.1 * number for number in numbers]).sum(keepdims=True)}


@pytest.mark.slow
def test_a_block_whose_process_was_killed_twice_is_computed(tmp_path):
    actual = list(BlockResults(Unlucky(tmp_path, 2), range(10), size=2, workers=2))
    assert len(list(tmp_path.iterdir())) == 2
    expected = list(BlockResults(Unlucky(tmp_path, 0), range(10), size=2))
    assert [item["sum"].tobytes() for item in actual] == [entry["sum"].tobytes() for entry in expected]


def test_a_block_that_ends_every_process_is_an_error():
    with pytest.raises(TaskError) as raised:
        list(BlockResults(Deadly(), range(3), workers=1))
    assert "SIGKILL" in str(raised.value)


def test_what_only_this_process_has_stays_here():
    for other, expected in ((1.0, True), (lambda: 1.0, False), (type("Own", (), {"__module__": "__main__"}), False)):
        assert pools.is_picklable(SimpleNamespace(other=other)) is expected
