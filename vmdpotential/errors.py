"""The errors a user can meet, and the exit code of each.

::

    VmdpotentialError            exit code
    ├── UsageError (ValueError)       2   an option or an argument is wrong
    ├── InputError (ValueError)       2   a file cannot be read, or does not fit
    │   └── ChargeError               2   atoms without a charge
    ├── TaskError (RuntimeError)      3   the input is good, the task cannot be done
    │   ├── NoRoomError               3   no water left where an ion may go
    │   ├── MemoryPlanError           3   more memory than there is, refused before it is taken
    │   ├── CheckError                3   something is not right here; a report says what
    │   └── OutputError               3   a result cannot be written
    └── BackendError (RuntimeError)   4   an engine or package asked for by name is missing

A message is one line: what is wrong (with the file, the atom or the option) and the cure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vmdpotential.parameters import Report


class VmdpotentialError(Exception):
    """Base of all errors that this package raises on purpose."""

    exit_code = 2


class UsageError(VmdpotentialError, ValueError):
    """An option or argument is wrong."""


class InputError(VmdpotentialError, ValueError):
    """A file cannot be read, is inconsistent, or is unsuitable for the task."""


class ChargeError(InputError):
    """Atoms have no charge: neither a topology nor a template gives one."""


class TaskError(VmdpotentialError, RuntimeError):
    """The input is good but the task cannot be done."""

    exit_code = 3


class NoRoomError(TaskError):
    """No site is left that keeps the distances asked for."""


class MemoryPlanError(TaskError):
    """The task needs more memory than there is; raised before any is taken."""


class CheckError(TaskError):
    """A check failed.

    Parameters
    ----------
    message : str
    report : Report
        What was checked; the shell prints it before the error.
    """

    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message)
        self.report = report


class OutputError(TaskError):
    """A result cannot be written (no permission, disk full)."""


class BackendError(VmdpotentialError, RuntimeError):
    """An engine or an optional package that was asked for by name is missing."""

    exit_code = 4
