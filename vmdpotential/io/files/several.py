"""Warning for files of several frames or models, of which a structure reader uses the first one."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

log = logging.getLogger(__name__)

_chosen: ContextVar[bool] = ContextVar("chosen", default=False)


@contextlib.contextmanager
def frame_chosen() -> Iterator[None]:
    """Suppress the warning of :func:`warn_of_several` in the block, because the caller replaces the first frame."""
    token = _chosen.set(True)
    try:
        yield
    finally:
        _chosen.reset(token)


def warn_of_several(path: Path, what: str, atoms: int) -> None:
    """Warn that the first of several frames or models is used, except within :func:`frame_chosen`."""
    if not _chosen.get():
        log.warning("%s: contains several %s; the first one (%d atoms) is used", path, what, atoms)
