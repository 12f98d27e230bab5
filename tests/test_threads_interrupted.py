"""Threads and Ctrl-C: whenever it comes, the work ends."""

import contextlib
import linecache
import signal
import sys

import pytest

from vmdpotential.compiling import threads


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
