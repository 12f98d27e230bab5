"""The speed of the machine: measured once, kept, and what seconds of estimates are scaled by; the measured ratio is set
here.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers import water

from vmdpotential import cache, registry
from vmdpotential.engines import get_engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.maps import potential_map
from vmdpotential.molecule.samples import water_box
from vmdpotential.sums import ChargeStatistics, Request, machine

CPU = get_engine("cpu")


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Measurements that were made, each with a ratio of 3, and an empty cache."""
    made = []

    def measure(engine):
        made.append(engine.name)
        return 3.0

    monkeypatch.setenv("VMDPOTENTIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(machine, "measure", measure)
    cache.forget()
    machine._ratio.cache_clear()
    yield made
    cache.forget()
    machine._ratio.cache_clear()


def later_process():
    machine._ratio.cache_clear()


@pytest.mark.parametrize("threads", [1, 4])
def test_seconds_are_scaled_to_the_machine_and_its_threads(measured, monkeypatch, threads):
    monkeypatch.setenv("VMDPOTENTIAL_THREADS", str(threads))
    fixed = CPU.costs.fixed
    assert machine.expected_seconds(fixed + 8.0, CPU) == pytest.approx(3 * (fixed + 8 / threads))
    assert machine.expected_seconds(fixed / 2, CPU) == pytest.approx(3 * fixed / 2)


def test_the_speed_is_measured_once_for_all_processes(measured, monkeypatch):
    for _ in range(3):
        assert machine.measured_ratio(CPU) == 3
        later_process()
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(lambda _: machine.measured_ratio(CPU), range(8))) == {3}
    assert measured == ["cpu"]
    monkeypatch.setattr(machine, "_processor", lambda: "another one")
    later_process()
    assert machine.measured_ratio(CPU) == 3
    assert measured == ["cpu", "cpu"]


def test_kernels_may_be_compiled_while_the_speed_is_measured(measured, monkeypatch):
    def measure(engine):
        with cache.locked("kernel", "cuda"):  # as of a GPU whose kernels are new
            return 2.0

    monkeypatch.setattr(machine, "measure", measure)
    thread = threading.Thread(target=lambda: measured.append(machine.measured_ratio(CPU)), daemon=True)
    thread.start()
    thread.join(20)
    assert measured == [2.0]


@pytest.mark.parametrize("content", [b"fast", b"nan", b"inf", b"-1.0", b"0.0"])
def test_a_damaged_file_is_measured_again(measured, content):
    machine.measured_ratio(CPU)
    (entry,) = [path for path in cache.folder(machine.FOLDER).iterdir() if path.name != "lock"]
    cache.write(entry.name, content, machine.FOLDER)
    later_process()
    assert machine.measured_ratio(CPU) == 3
    assert measured == ["cpu", "cpu"]
    later_process()
    assert machine.measured_ratio(CPU) == 3
    assert measured == ["cpu", "cpu"]


def test_a_cache_that_cannot_be_written(measured, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("VMDPOTENTIAL_CACHE", str(tmp_path / "file"))
    cache.forget()
    assert machine.measured_ratio(CPU) == 3
    assert measured == ["cpu"]


def test_a_plan_states_seconds_of_this_machine(measured, monkeypatch):
    monkeypatch.setenv("VMDPOTENTIAL_THREADS", "1")
    positions, charges = water_box(12.0)
    lattice, bound = Lattice(np.zeros(3), np.full(3, 0.6), (40, 40, 40)), registry.get("interaction", "coulomb").bind()
    request = Request(lattice, None, bound, ChargeStatistics.of(positions, charges))
    plan = registry.get("method", "direct").plan(request, CPU)
    assert f"about {3 * plan.estimate.seconds:.2g} s" in str(plan)


def test_a_map_measures_nothing(measured):
    potential_map(water(12), spacing=1.0, padding=2.0, engine="cpu", medium="explicit")
    potential_map(water(12), spacing=1.0, padding=2.0, engine="cpu", method="pme", medium="explicit")
    assert not measured


def test_a_method_is_worth_waiting_for_by_the_seconds_of_this_machine(measured, monkeypatch):
    monkeypatch.setenv("VMDPOTENTIAL_THREADS", "1")
    within = machine.MAX_SECONDS / 3
    assert machine.is_worth_waiting(0.9 * within, 1e-3, CPU)
    assert not machine.is_worth_waiting(1.1 * within, 1e-3, CPU)
    assert machine.is_worth_waiting(1.1 * within, 0.2 * within, CPU)  # but not much longer than the fastest


def test_what_is_measured():
    assert machine.MIN_SPEED_RATIO < machine.measure(CPU) < machine.MAX_SPEED_RATIO
