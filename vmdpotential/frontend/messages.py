"""Errors and warnings as an interface tells them, with parameters as it spells them."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator

from vmdpotential.errors import MemoryPlanError, Spelling, VmdpotentialError, Words, spelled


def ours(error: VmdpotentialError | MemoryError) -> VmdpotentialError:
    """Return an error as one of ours, which memory that ends is not."""
    if isinstance(error, MemoryError):
        return MemoryPlanError("out of memory", "use a larger {spacing}, fewer {atoms} or a lower {dpi}")
    return error


def one_line(error: VmdpotentialError | MemoryError, spell: Spelling) -> str:
    """Return the line for the user about an error."""
    return " ".join(ours(error).message(spell).split())


@contextlib.contextmanager
def warnings(tell: Callable[[str], None], spell: Spelling, verbose: bool = False) -> Iterator[None]:
    """Pass what the package logs meanwhile, one line each, to `tell`: its warnings, or with `verbose` all."""
    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            # before names and numbers are put in, which are data
            text = spelled(record.msg.template if isinstance(record.msg, Words) else str(record.msg), spell)
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
