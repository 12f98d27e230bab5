"""Runs that are stopped at a step: what they do to files is counted, and before a chosen step something happens.

``python tests/faults/steps.py N ARGUMENTS...`` runs the program and kills it before its step N; it says on stdout how
many steps there were where N is beyond them.
"""

import os
import signal
import sys
from pathlib import Path

#: What a process does to files, as Python's auditing names it; beside these every os.fsync, before and after.
EVENTS = ("os.rename", "os.link", "os.remove", "os.truncate", "os.chmod", "os.chown")

HIDDEN = ".vmdpotential-"


class Steps:
    """Counts the steps of this process that have to do with a folder, and calls `act` before step number `stop`."""

    def __init__(self, folder, stop, act):
        self.folder, self.stop, self.act = str(folder), stop, act
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
            self.act()


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def hidden(folder):
    """Return what a run left behind in a folder and below."""
    return sorted(str(path) for path in Path(folder).rglob(f"{HIDDEN}*"))


if __name__ == "__main__":
    from vmdpotential.frontend import cli

    steps = Steps(Path.cwd(), int(sys.argv[1]), kill)
    code = cli.main(sys.argv[2:])
    print("steps", steps.count)
    sys.exit(code)
