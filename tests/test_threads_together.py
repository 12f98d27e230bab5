"""Threads that meet at a barrier: all or none come through, and what one raises the caller gets."""

import contextlib
import linecache
import signal
import sys
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


@contextlib.contextmanager
def interrupting(monkeypatch, word):
    """Have Ctrl-C come in the lines of the caller's thread that contain a word, once, and a wait for ever end."""
    seen = []

    def trace(frame, event, argument):
        if frame.f_code.co_filename != threads.__file__ or frame.f_code.co_name not in ("run", "together"):
            return None
        line = linecache.getline(threads.__file__, frame.f_lineno)
        if event == "line" and word in line and not seen:
            seen.append(line)
            raise KeyboardInterrupt
        return trace

    def give_up(*_):
        raise TimeoutError

    monkeypatch.setattr(threads, "count", lambda: 2)
    before, old = sys.gettrace(), signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, 5)
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no alarm signals")
@pytest.mark.parametrize("call", [
    lambda: threads.run(lambda start, stop: None, 4, "work"),
    lambda: threads.together(lambda worker, barrier: None, 3),
])
def test_ctrl_c_between_the_end_of_a_thread_and_the_next_line_ends_the_work(monkeypatch, call):
    with interrupting(monkeypatch, ".pop()"), pytest.raises(KeyboardInterrupt):
        call()
