"""Errors and warnings as an interface tells them, with parameters as it spells them."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator

from vmdpotential.errors import MemoryPlanError, Spelling, VmdpotentialError, spelled


def one_line(error: VmdpotentialError | MemoryError, spell: Spelling) -> str:
    """Return what a user is told of an error."""
    if isinstance(error, MemoryError):
        error = MemoryPlanError("out of memory", "use a larger {spacing} or fewer {atoms}")
    return " ".join(error.message(spell).split())


@contextlib.contextmanager
def warnings(tell: Callable[[str], None], spell: Spelling) -> Iterator[None]:
    """Pass what the package logs meanwhile, one line each, to `tell`."""
    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = spelled(str(record.msg), spell)  # before names and numbers are put in, which are data
            tell(" ".join((text % record.args if record.args else text).split()))

    logger, handler = logging.getLogger("vmdpotential"), Handler(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
