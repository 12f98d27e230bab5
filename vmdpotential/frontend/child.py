"""The program as a viewer's child process, which ends when the viewer closes standard input."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time

#: Seconds until a program that was interrupted and does not react ends without tidying up.
GRACE = 15.0


def end_with_input() -> None:
    """Pass standard input on, and interrupt this process like Ctrl-C at its end, also while it computes.

    A parent thus ends its child by closing a pipe, on every system, and a child never outlives its parent.
    """
    source, (front, back) = os.dup(0), os.pipe()
    os.dup2(front, 0)
    if sys.platform == "win32":
        import msvcrt

        for descriptor in (source, 0, back):
            msvcrt.setmode(descriptor, os.O_BINARY)

    def copy() -> None:
        # with os.read, because a thread that waits in sys.stdin would block the end of the process
        while data := os.read(source, 1 << 16):
            while data:
                data = data[os.write(back, data):]
        os.close(back)
        if os.name == "nt":
            _thread.interrupt_main()
        else:
            os.kill(os.getpid(), signal.SIGTERM)  # also wakes a main thread that waits
        time.sleep(GRACE)
        os._exit(130)

    threading.Thread(target=copy, daemon=True).start()
