"""The steps in which a process handles files, before one of which it is killed."""

import os
import signal
import sys
from pathlib import Path

#: What a process does to files, as Python's auditing names it; in addition every os.fsync, before and after.
EVENTS = ("os.rename", "os.link", "os.remove", "os.truncate", "os.chmod", "os.chown", "os.mkdir", "os.rmdir")

HIDDEN = ".vmdpotential-"


class Steps:
    """Counts the steps of this process that concern a folder, and kills it before step number `stop`."""

    def __init__(self, folder, stop):
        self.folder, self.stop = str(folder), stop
        self.count = 0
        fsync = os.fsync

        def counted(handle):
            self.step()
            fsync(handle)
            self.step()

        os.fsync = counted
        sys.addaudithook(self._hear)

    def _hear(self, event, arguments):
        if event in EVENTS or (event == "open" and HIDDEN in str(arguments[0])):
            names = [str(item) for item in arguments if isinstance(item, (str, Path))]
            if any(name.startswith(self.folder) for name in names):
                self.step()

    def step(self):
        self.count += 1
        if self.count == self.stop:
            os.kill(os.getpid(), signal.SIGKILL)


def forked(work, folder, stop):
    """Do some work in a process that is killed before step `stop`; return the number of its steps, None if killed."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1), os.dup2(nowhere, 2)
        steps = Steps(folder, stop)
        if not work():
            os.write(writer, str(steps.count).encode())
        os._exit(0)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    count = os.read(reader, 20)
    os.close(reader)
    assert count or os.WIFSIGNALED(status)
    return int(count) if count else None


def hidden(folder):
    """Return what a run left behind in a folder and below."""
    return sorted(str(path) for path in Path(folder).rglob(f"{HIDDEN}*"))
