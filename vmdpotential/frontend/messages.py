"""Errors and warnings as lines for the user, with parameters in the syntax of an interface."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Container, Iterator

from vmdpotential import registry
from vmdpotential.errors import MemoryPlanError, Message, Spelling, VmdpotentialError, spell_parameters
from vmdpotential.parameters import Command

#: What is said of a run that the user stopped.
STOPPED = "stopped; nothing was made"


#: Commands that have options of which messages of other commands speak.
_OWNERS = {"leave_out": "prepare", "force_field": "prepare", "water": "prepare", "charges": "prepare",
           "topology": "map", "cell": "map"}


def owner(name: str, parameters: Container[str]) -> Command | None:
    """Return the command with an option that is not among the parameters of the current one; None for other names."""
    if name in parameters or name not in _OWNERS:
        return None
    return registry.get("command", _OWNERS[name])


def as_package_error(error: VmdpotentialError | MemoryError) -> VmdpotentialError:
    """Return an error as one of this package, to which MemoryError is converted."""
    if isinstance(error, MemoryError):
        return MemoryPlanError("out of memory", "use a larger {spacing}, fewer {atoms} or a lower {dpi}")
    return error


def one_line(error: VmdpotentialError | MemoryError, spell: Spelling) -> str:
    """Return the line for the user about an error."""
    return " ".join(as_package_error(error).message(spell).split())


@contextlib.contextmanager
def warnings(tell: Callable[[str], None], spell: Spelling, verbose: bool = False) -> Iterator[None]:
    """Pass the package's log messages to `tell`, as one line each: warnings once, or with `verbose` all messages."""
    given: set[str] = set()

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            # placeholders are replaced before the arguments are inserted, which may contain braces
            text = spell_parameters(record.msg.template if isinstance(record.msg, Message) else str(record.msg), spell)
            line = " ".join((text % record.args if record.args else text).split())
            if line not in given or record.levelno < logging.WARNING:
                given.add(line)
                tell(line)

    level = logging.DEBUG if verbose else logging.WARNING
    logger, handler = logging.getLogger("vmdpotential"), Handler(level)
    before = logger.level
    logger.addHandler(handler)
    if verbose:
        logger.setLevel(level)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
