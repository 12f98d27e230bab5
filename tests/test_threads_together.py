"""Threads that wait for each other in compiled code: all or none come through, and what one raises the caller gets."""

import threading

import pytest

from vmdpotential.compiling import meeting, threads


@pytest.mark.parametrize("workers", [1, 4])
def test_every_worker_sees_what_all_did_before_they_met(workers):
    done, seen, names = [], [], set()

    def task(worker, counters):
        done.append(worker)
        meeting.take(counters, threads.WRITTEN)
        assert meeting.wait(counters, threads.WRITTEN, workers)
        seen.append(sorted(done))
        names.add(threading.get_ident())

    threads.together(task, workers)
    assert seen == [list(range(workers))] * workers
    assert len(names) == workers
    assert threading.get_ident() in names


def test_every_part_is_taken_once():
    taken = [[] for _ in range(4)]

    def task(worker, counters):
        while (part := meeting.take(counters, threads.TAKEN)) < 1000:
            taken[worker].append(part)

    threads.together(task, 4)
    assert sorted(part for item in taken for part in item) == list(range(1000))


@pytest.mark.parametrize("guilty", [0, 2])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_of_one_releases_all(guilty, error):
    passed = []

    def task(worker, counters):
        if worker == guilty:
            raise error("it")
        meeting.take(counters, threads.WRITTEN)
        passed.append(meeting.wait(counters, threads.WRITTEN, 3))

    with pytest.raises(error):
        threads.together(task, 3)
    assert passed == [False, False]


def test_threads_that_cannot_be_started_are_an_error(monkeypatch):
    def refuse(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads._thread, "start_new_thread", refuse)
    with pytest.raises(RuntimeError, match="start new thread"):
        threads.together(lambda worker, counters: meeting.wait(counters, threads.WRITTEN, 3), 3)
