"""Files that hold several frames or models, of which a reader of structures takes the first one."""

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
    """Say nothing of the first frame inside the block, after which a chosen one takes its place."""
    token = _chosen.set(True)
    try:
        yield
    finally:
        _chosen.reset(token)


def first_of(path: Path, what: str, atoms: int) -> None:
    """Warn that the first one of several frames or models is used, unless another one is chosen."""
    if not _chosen.get():
        log.warning("%s: holds several %s; the first one (%d atoms) is used", path, what, atoms)
