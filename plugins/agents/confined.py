"""One command in a process that neither reads nor writes files outside of a folder, nor connects to other machines.

Standard input has one JSON object with ``root``, ``command``, ``values`` and ``file_size``. Standard output gets lines
of JSON: of the progress, and at last of the result or the error. An audit hook of Python guards what the checks of the
call do not see, such as files that a topology includes.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, TextIO

#: What Python reports before it changes a file, and the places of the paths among its arguments.
_CHANGES = {"os.remove": (0,), "os.rename": (0, 1), "os.mkdir": (0,), "os.rmdir": (0,), "os.link": (0, 1),
            "os.symlink": (1,), "os.truncate": (0,), "os.chmod": (0,), "os.chown": (0,), "os.utime": (0,),
            "os.setxattr": (0,), "os.removexattr": (0,), "os.mkfifo": (0,), "os.mknod": (0,), "shutil.rmtree": (0,)}

#: Folders of the system, whose files may be read: libraries, fonts, time zones, and what is known of the machine.
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc", "/opt", "/proc", "/sys", "/dev")

#: Flags of opened files that change them.
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

#: Seconds between reports of progress.
EVERY = 0.5


class Confinement:
    """An audit hook that refuses files outside of the root folder, and connections.

    Parameters
    ----------
    root : Path
        Without links.
    """

    def __init__(self, root: Path) -> None:
        from vmdpotential import cache

        self._writable = [str(root), os.path.realpath(tempfile.gettempdir()), os.path.realpath(cache.folder())]
        packages = [*sys.path, sys.prefix, sys.base_prefix, sys.exec_prefix, str(Path(__file__).parents[2])]
        self._readable = [*self._writable, *_SYSTEM, *(os.path.realpath(each) for each in packages if each)]

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Raise PermissionError before something forbidden happens."""
        if event == "open":
            path, mode, flags = arguments
            writing = bool(flags & _WRITING) if isinstance(flags, int) else bool(set(mode or "r") & set("wax+"))
            self._require(path, self._writable if writing else self._readable)
        elif event in _CHANGES:
            for place in _CHANGES[event]:
                self._require(arguments[place], self._writable)
        elif event in ("os.listdir", "os.scandir"):
            self._require(arguments[0], self._readable)
        elif event in ("subprocess.Popen", "os.exec", "os.posix_spawn"):
            if _is_within(os.path.realpath(str(arguments[0])), self._writable):
                raise PermissionError(13, "programs in the root folder are not run", str(arguments[0]))
        elif event in ("socket.connect", "socket.bind", "os.system"):
            raise PermissionError(13, "not allowed here", event)

    @staticmethod
    def _require(path: Any, folders: list[str]) -> None:
        if isinstance(path, int) or path is None:  # a file that is open, and the present folder
            return
        real = os.path.realpath(os.fsdecode(path))
        if real != os.devnull and not _is_within(real, folders):
            raise PermissionError(13, "outside of the root folder", os.fsdecode(path))


def _is_within(real: str, folders: list[str]) -> bool:
    return any(real == folder or real.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders)


def run_confined(call: dict[str, Any], out: TextIO) -> int:
    """Run the command of a call; write lines of JSON to a stream, and return the exit code of a shell."""
    from vmdpotential import registry
    from vmdpotential.errors import CheckError, VmdpotentialError, plain_spelling
    from vmdpotential.frontend import messages
    from vmdpotential.progress import listen_to_progress

    from .tools import checked_values

    root, last = Path(call["root"]), 0.0
    warnings: list[str] = []

    def tell(**line: Any) -> None:
        print(json.dumps(line), file=out, flush=True)

    def progress(label: str, fraction: float) -> None:
        nonlocal last
        if time.monotonic() - last > EVERY:
            last = time.monotonic()
            tell(progress=label, fraction=fraction)

    try:
        with messages.warnings(warnings.append, plain_spelling), listen_to_progress(progress):
            command = registry.get("command", call["command"])
            values = checked_values(command, call["values"], root)
            written = [str(path) for path in command.writes(values)]
            try:
                report, code = command(**values), 0
            except CheckError as error:
                report, code = error.report, error.exit_code
        tell(data=dict(report.data), lines=list(report.lines), warnings=warnings, written=written, code=code)
        return code
    except (VmdpotentialError, MemoryError) as error:
        known = messages.as_package_error(error)
        tell(error=messages.one_line(error, plain_spelling), parameter=known.parameter, code=known.exit_code)
        return known.exit_code
    except OSError as error:
        tell(error=f"{error.filename or 'a file'}: {error.strerror or error}", parameter="", code=3)
        return 3


def main() -> int:
    """Read a call from standard input, and run it."""
    call = json.load(sys.stdin)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer
    os.chdir(call["root"])
    with contextlib.suppress(ImportError):  # Windows has no limits
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (call["file_size"], call["file_size"]))
    # imported before files are refused: whatever a command may need of the packages' own data is within their folders
    sys.addaudithook(Confinement(Path(call["root"])))
    return run_confined(call, out)


if __name__ == "__main__":
    sys.exit(main())
