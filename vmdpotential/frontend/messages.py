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
def warnings(tell: Callable[[str], None], spell: Spelling, verbose: bool = False) -> Iterator[None]:
    """Pass what the package logs meanwhile, one line each, to `tell`: its warnings, or with `verbose` all."""
    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = spelled(str(record.msg), spell)  # before names and numbers are put in, which are data
            tell(" ".join((text % record.args if record.args else text).split()))

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
