"""Blocks of frames next to each other on the threads of a process: the same bits as one after another."""

import threading
from dataclasses import dataclass

import numpy as np
import pytest
from draws import Draws, total
from messages import naming
from test_average import CELL, OPTIONS, files  # noqa: F401

from vmdpotential import io, memory, progress
from vmdpotential.commands.average import command
from vmdpotential.errors import InputError
from vmdpotential.execution import pools
from vmdpotential.execution.blocks import BlockResults
from vmdpotential.execution.work import WorkNeeds
from vmdpotential.kernels import threads


@dataclass(frozen=True)
class OnThreads(Draws):
    """Frames that say what memory a block takes; the second block waits for another one."""

    memory: int = 100
    met = threading.Barrier(2, timeout=60)

    def needs(self):
        return WorkNeeds(memory=self.memory)

    def block(self, numbers):
        if numbers[0] in (0, 4):
            self.met.wait()
        if str(numbers[0]) == self.stop:
            raise InputError("a.dcd: is damaged")
        return {**Draws(self.seed).block(numbers), "threads": np.array(threads.count())}


@pytest.fixture
def five(monkeypatch):
    monkeypatch.setenv("VMDPOTENTIAL_THREADS", "5")
    monkeypatch.setattr(memory, "limit", lambda *_, **__: 250)


@pytest.mark.usefixtures("five")
def test_as_many_as_fit_into_memory_share_the_threads():
    assert len(pools.shares(OnThreads(7), 8)) == 2
    assert len(pools.shares(OnThreads(7, memory=10), 8)) == 5
    assert pools.shares(OnThreads(7), 1) == pools.shares(OnThreads(7, memory=200), 8) == pools.shares(Draws(7), 8)
    heard = []
    with progress.listen_to_progress(lambda label, fraction: heard.append(fraction)):
        results = list(BlockResults(OnThreads(7), range(40), size=4))
    assert {int(result["threads"]) for result in results} == {2}
    assert threads.count() == 5
    assert heard[-1] == 1.0
    assert total(results).tobytes() == total(BlockResults(Draws(7), range(40), size=4)).tobytes()


@pytest.mark.usefixtures("five")
def test_an_error_of_one_ends_all():
    before = threading.active_count()
    with naming(InputError, "damaged"):
        list(BlockResults(OnThreads(7, stop="12"), range(40), size=4))
    assert threading.active_count() == before


@pytest.fixture
def counts(monkeypatch):
    """How many threads computed blocks at the same time, run by run."""
    results = []
    shares = pools.shares

    def counted(*given):
        bindings = shares(*given)
        results.append(len(bindings))
        return bindings

    monkeypatch.setattr(pools, "shares", counted)
    return results


@pytest.mark.parametrize("stat", ["mean", "mean,std"])
def test_an_average_is_the_same_on_any_number_of_threads(files, monkeypatch, stat, counts):  # noqa: F811
    structure, result = io.read_structure(files[0]), []
    for count in "13":
        monkeypatch.setenv("VMDPOTENTIAL_THREADS", count)
        made = command(structure=structure, trajectory=files[1], cell=CELL, stat=stat, **OPTIONS)
        result.append([made.objects[name].values.tobytes() for name in ("grid", *stat.split(",")[1:])])
    assert counts == [0, 3]
    assert result[0] == result[1]
