"""Blocks on GPUs' threads and on a Dask cluster: the same bits as in one process, whatever is lost meanwhile."""

import contextlib
import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import test_batch
from draws import Draws, total
from messages import naming

from vmdpotential import progress
from vmdpotential.errors import BackendError, InputError, TaskError, UsageError
from vmdpotential.execution import blocks, cluster, pools
from vmdpotential.execution.blocks import BlockResults
from vmdpotential.execution.tree import merge_in_tree, merged_at_once
from vmdpotential.execution.work import WorkNeeds

WHOLE = total(BlockResults(Draws(7), range(40), size=4)).tobytes()


@dataclass(frozen=True)
class Fails(Draws):
    """Something happens at a frame: an error, the end of its process once or always, a wait."""

    flag: Path = Path()

    def block(self, numbers):
        if int(self.stop) in numbers:
            if self.how == "input":
                raise InputError("a.dcd: frame 21 is damaged", "use other {frames}")
            if self.how == "odd":
                raise ZeroDivisionError("by\nzero")
            if self.how == "wait":
                self.flag.touch()
                time.sleep(30)
            if self.how == "die" or not self.flag.exists():
                self.flag.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return Draws(self.seed).block(numbers)


class Gpus:
    """An engine with three GPUs."""

    bound = threading.local()

    def devices(self):
        return [SimpleNamespace(bound=lambda n=n: self.bind(n)) for n in range(3)]

    @contextlib.contextmanager
    def bind(self, number):
        self.bound.number = number
        yield


@dataclass(frozen=True)
class OnGpus(Draws):
    slow: int = -1

    def needs(self):
        return WorkNeeds("gpus")

    def block(self, numbers):
        time.sleep(0.05 if numbers[0] == self.slow else 0.002)
        progress.report_progress("kernels", 0.5)
        if str(numbers[0]) == self.stop:
            raise InputError("a.dcd: is damaged")
        return {**Draws(self.seed).block(numbers), "gpu": np.array(Gpus.bound.number)}


@pytest.fixture
def gpus(monkeypatch):
    engine = Gpus()
    for module in (blocks, pools):
        monkeypatch.setattr(module, "get_engine", lambda name: engine)


@pytest.mark.usefixtures("gpus")
def test_each_gpu_has_a_thread_and_order_is_kept():
    results = list(BlockResults(OnGpus(7, slow=4), range(40), size=4))
    assert total(results).tobytes() == WHOLE
    assert {int(result["gpu"]) for result in results} == {0, 1, 2}


@pytest.mark.usefixtures("gpus")
def test_few_blocks_are_under_way(monkeypatch):
    started, before = [], threading.active_count()
    monkeypatch.setattr(OnGpus, "block", lambda self, numbers: started.append(numbers[0]) or {"sum": np.zeros(3)})
    run = iter(BlockResults(OnGpus(7), range(1000), size=1))
    next(run)
    time.sleep(0.05)
    assert 1 <= len(started) <= 6
    run.close()
    assert threading.active_count() == before


@pytest.mark.usefixtures("gpus")
def test_errors_and_stops_end_all_threads(tmp_path):
    before = threading.active_count()
    with naming(InputError, "damaged"):
        list(BlockResults(OnGpus(7, stop="12"), range(40), size=4))

    def stop(label, fraction):
        if fraction > 0.4:
            raise KeyboardInterrupt

    run = BlockResults(OnGpus(7), range(40), size=4, folder=tmp_path / "blocks")
    with progress.listen_to_progress(stop), pytest.raises(KeyboardInterrupt):
        list(run)
    assert threading.active_count() == before
    again = BlockResults(OnGpus(7), range(40), size=4, folder=tmp_path / "blocks", resume=True)
    assert len(again.kept) >= 4
    assert total(again).tobytes() == WHOLE


def test_missing_dask_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with naming(BackendError, "[dask]"):
        next(iter(BlockResults(Draws(7), range(4), scheduler="tcp://127.0.0.1:9")))


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed", reason="needs Dask")
    with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=60,
            scheduler_kwargs={"dashboard": False}, memory_limit=0) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def address(client):
    return client.scheduler.address


def open_ports():
    """Return how many sockets this process and its children listen on."""
    process = pytest.importorskip("psutil").Process()
    connections = [connection for each in (process, *process.children(recursive=True))
                   for connection in each.net_connections("tcp")]
    return sum(connection.status == "LISTEN" for connection in connections)


@pytest.mark.slow
def test_workers_of_this_machine_open_no_port():
    before, counts = open_ports(), []
    with progress.listen_to_progress(lambda label, fraction: counts.append(open_ports())):
        assert total(BlockResults(Draws(7), range(40), size=4, workers=2)).tobytes() == WHOLE
    assert counts
    assert max(counts) == before


@dataclass(frozen=True)
class Environment(Draws):
    def block(self, numbers):
        return {"threads": np.array(int(os.environ["VMDPOTENTIAL_THREADS"]))}


@pytest.mark.slow
def test_workers_of_this_machine_share_its_processors(monkeypatch):
    monkeypatch.setenv("VMDPOTENTIAL_THREADS", "4")
    assert {int(arrays["threads"]) for arrays in BlockResults(Environment(7), range(8), size=4, workers=2)} == {2}


def test_work_that_other_processes_cannot_have_is_refused():
    @dataclass(frozen=True)
    class Local(Draws):
        pass

    with pytest.raises(UsageError) as raised:
        list(BlockResults(Local(7), range(8), size=4, workers=2))
    assert raised.value.parameter == "workers"


@dataclass(frozen=True)
class Merges(Draws):
    """Sums that are merged; on which process that happened is no part of the work."""

    def merge(self, a, b):
        return {name: a[name] + b[name] for name in a}


@pytest.mark.parametrize("count", [*range(1, 20), 64, 65])
def test_a_tree_has_one_form_however_it_is_merged(count):
    def merge(a, b):
        return f"({a}{b})"

    letters = [chr(96 + n) for n in range(1, count + 1)]
    tree = merge_in_tree(iter(letters), merge)
    assert tree == merged_at_once(letters, merge)
    assert [letter for letter in tree if letter not in "()"] == letters
    heights = np.cumsum([(letter == "(") - (letter == ")") for letter in tree])
    assert heights.max() == np.ceil(np.log2(count))


@pytest.mark.slow
def test_pieces_merge_to_the_same_bits_wherever_they_are_computed(address, tmp_path):
    options = {"size": 17, "piece": 3}
    here = list(BlockResults(Merges(7), range(40), **options))
    assert [int(block["count"]) for block in here] == [17, 17, 6]
    ways = {"processes": {"workers": 2, "folder": tmp_path / "here"}, "resumed": {"folder": tmp_path / "here",
            "resume": True}, "Dask": {"scheduler": address, "folder": tmp_path / "Dask"}}
    for name, way in ways.items():
        run = BlockResults(Merges(7), range(40), **options, **way)
        assert [result["sum"].tobytes() for result in run] == [actual["sum"].tobytes() for actual in here], name
    assert len(list((tmp_path / "here").glob("*.npz"))) == 14  # pieces
    assert len(list((tmp_path / "Dask").glob("*.npz"))) == 3  # the workers of the cluster have merged


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(address, tmp_path):
    run = BlockResults(Fails(7, "21", "once", tmp_path / "flag"), range(40), size=4, scheduler=address)
    assert total(run).tobytes() == WHOLE
    assert (tmp_path / "flag").exists()


@pytest.mark.slow
def test_errors_of_workers_are_one_line(address):
    at = {"scheduler": address}
    with naming(InputError, "frame 21 "):
        list(BlockResults(Fails(7, "21", "input"), range(40), size=4, **at))
    with naming(TaskError, "frames 20 to 23: ZeroDivisionError"):
        list(BlockResults(Fails(7, "21", "odd"), range(40), size=4, **at))


@pytest.mark.slow
def test_many_structures_on_workers(address, tmp_path):
    paths = test_batch.write(tmp_path / "in", one="one", bad="bad", odd="odd", two="two")
    result = test_batch.run(paths, tmp_path / "out", scheduler=address)
    assert [row["status"] for row in result.rows] == ["done", "failed", "failed", "done"]
    assert [row["message"] for row in result.rows][1:] == [
        "has no atoms; use another cell", "ZeroDivisionError: by zero", "is two"]
    assert (tmp_path / "out" / "two.txt").read_text() == "TWO"


@dataclass(frozen=True)
class Slow(Draws):
    def block(self, numbers):
        time.sleep(0.02)
        return super().block(numbers)


@pytest.mark.slow
def test_a_lost_scheduler_is_told_and_blocks_are_kept(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="needs Dask")
    monkeypatch.setattr(cluster, "PATIENCE", 1.0)
    with naming(BackendError, "tcp://127.0.0.1:9 "):
        next(iter(BlockResults(Draws(7), range(4), scheduler="tcp://127.0.0.1:9")))
    folder = tmp_path / "blocks"
    lost = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://", host="127.0.0.1", silence_logs=60,
        dashboard_address="127.0.0.1:0", scheduler_kwargs={"dashboard": False})
    try:
        results = iter(BlockResults(Slow(7), range(400), size=4, folder=folder, scheduler=lost.scheduler_address))
        next(results)
        lost.sync(lost.scheduler.close)
        with naming(TaskError, "resume"):
            list(results)
    finally:
        with contextlib.suppress(TimeoutError):  # there is no scheduler to say goodbye to
            lost.close(timeout=0.5)
    assert BlockResults(Slow(7), range(400), size=4, folder=folder, resume=True).kept


@dataclass(frozen=True)
class Counts(Draws):
    """An error of some class at every call, which is counted in a file."""

    flag: Path = Path()

    def block(self, numbers):
        with open(self.flag, "a") as file:
            file.write("x")
        raise {"value": ValueError, "machine": FileNotFoundError}[self.how]("odd")


@pytest.mark.slow
@pytest.mark.parametrize(("how", "count"), [("value", 1), ("machine", 1 + pools.RETRIES)])
def test_only_errors_of_a_workers_machine_are_worth_another_worker(address, tmp_path, how, count):
    with naming(TaskError, "odd"):
        list(BlockResults(Counts(7, "", how, tmp_path / "flag"), range(4), size=4, scheduler=address))
    assert (tmp_path / "flag").read_text() == count * "x"


@pytest.mark.parametrize("files", [{}, {"ca-file": "none.pem", "client.cert": "none.pem", "client.key": "none.pem"}])
def test_tls_without_certificates_names_what_dask_reads(files):
    dask = pytest.importorskip("dask", reason="needs Dask")
    pytest.importorskip("distributed", reason="needs Dask")
    read = {f"distributed.comm.tls.{name}": path for name, path in files.items()}
    with dask.config.set(read), naming(BackendError, "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT"):
        cluster.cluster_pool("tls://127.0.0.1:9", None).__enter__()
