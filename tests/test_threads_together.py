"""Threads that meet at a barrier: all or none come through, and what one raises the caller gets."""

import threading

import pytest

from vmdpotential.engines.cpu import threads


@pytest.mark.parametrize("workers", [1, 4])
def test_every_worker_sees_what_all_did_before_the_barrier(workers):
    done, seen, names = [], [], set()

    def task(worker, barrier):
        done.append(worker)
        barrier.wait()
        seen.append(sorted(done))
        names.add(threading.get_ident())

    threads.together(task, workers)
    assert seen == [list(range(workers))] * workers
    assert len(names) == workers
    assert threading.get_ident() in names


@pytest.mark.parametrize("guilty", [0, 2])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_of_one_releases_all(guilty, error):
    passed = []

    def task(worker, barrier):
        if worker == guilty:
            raise error("it")
        barrier.wait(20)
        passed.append(worker)

    with pytest.raises(error):
        threads.together(task, 3)
    assert passed == []


def test_threads_that_cannot_be_started_are_an_error(monkeypatch):
    def refuse(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads._thread, "start_new_thread", refuse)
    with pytest.raises(RuntimeError, match="start new thread"):
        threads.together(lambda worker, barrier: barrier.wait(20), 3)
