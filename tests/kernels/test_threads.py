"""Threads: every part is done once, all or none come through, errors and Ctrl-C reach the caller."""

import contextlib
import linecache
import signal
import sys
import threading
import time

import pytest
from helpers import refused
from messages import naming

from vmdpotential import progress
from vmdpotential.kernels import threads


def test_threads_do_every_part_once_and_pass_errors_on(monkeypatch):
    monkeypatch.setenv("VMDPOTENTIAL_THREADS", "5")
    done = []
    threads.run(lambda first, last: done.extend(range(first, last)), 103, "count", grain=7)
    assert sorted(done) == list(range(103))

    def fail(first, last):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        threads.run(fail, 3, "fail")


@pytest.mark.parametrize("text", ["99999999999999999999", "9" * 5000, "0", "-1", "²", "two"])
def test_absurd_numbers_of_threads_are_refused(text, monkeypatch):
    monkeypatch.setenv("VMDPOTENTIAL_THREADS", text)
    with refused("VMDPOTENTIAL_THREADS") as caught:
        threads.count()
    assert len(str(caught.value)) < 120


def test_what_tasks_report_comes_from_the_caller(monkeypatch):
    monkeypatch.setenv("VMDPOTENTIAL_THREADS", "2")
    heard, times = [], []

    def task(first, last):
        with progress.compiling():
            time.sleep(0.25)
        times.append(threading.current_thread())

    with progress.clock() as clock, \
            progress.listen_to_progress(lambda label,
                                        fraction: heard.append((label, fraction, threading.current_thread()))):
        threads.run(task, 2, "work")
    assert {thread for _, _, thread in heard} == {threading.current_thread()}
    assert len(times) == len(set(times)) == 2
    assert heard[0][:2] == (progress.COMPILING, 0.0)
    assert heard[-1][:2] == ("work", 1.0)
    assert clock.compiling >= 0.5


_counting = threading.Lock()


#: A counter of a test.
ARRIVED = 1


def take(board, counter):
    """Increment a counter, as kernels do."""
    with _counting:
        board[counter * threads.LINE] += 1


def wait(board, counter, number):
    """Wait until a counter has reached a number; return False if the threads have to stop."""
    while board[counter * threads.LINE] < number and not board[threads.STOP]:
        time.sleep(0)
    return not board[threads.STOP]


@pytest.mark.parametrize("workers", [1, 4])
def test_every_worker_sees_what_all_did_before_they_met(workers):
    done, seen, names = [], [], set()

    def task(worker, board):
        done.append(worker)
        take(board, ARRIVED)
        assert wait(board, ARRIVED, workers)
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

    def task(worker, board):
        if worker == guilty:
            raise error("it")
        take(board, ARRIVED)
        passed.append(wait(board, ARRIVED, 3))

    with pytest.raises(error):
        threads.together(task, 3)
    assert passed == [False, False]


def test_threads_that_cannot_be_started_are_an_error(monkeypatch):
    def refuse(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "_idle", [])
    monkeypatch.setattr(threads._thread, "start_new_thread", refuse)
    with naming(RuntimeError, "start new thread"):
        threads.together(lambda worker, board: wait(board, ARRIVED, 3), 3)


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
