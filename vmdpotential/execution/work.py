"""Computations on blocks of frames, and a digest of everything that determines a result."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from vmdpotential.errors import InputError

Arrays = Mapping[str, Any]


class FrameCost(NamedTuple):
    """Cost of a frame: seconds to compute it, seconds to read it; and the bytes of a block's result."""

    seconds: float
    reading: float
    size: int


class WorkNeeds(NamedTuple):
    """Requirements of a computation, which determine the pool that runs it.

    Parameters
    ----------
    engine : str
        Name of the engine. Each of its GPUs gets a thread, or several processes.
    memory : int
        Bytes that a block needs while other threads compute other blocks; 0 if unknown: then one block is computed at a
        time.
    cost : callable or None
        Function that estimates the cost of a frame. None if the work cannot run in several processes that share GPUs
        and read the frames themselves.
    """

    engine: str = "cpu"
    memory: int = 0
    cost: Callable[[], FrameCost] | None = None


class Work(ABC):
    """A computation on blocks of frames. It can be pickled; its results depend only on it and the frame numbers.

    Blocks of an earlier run are used if its :func:`work_fingerprint` is the same.
    """

    @abstractmethod
    def block(self, numbers: range) -> Arrays:
        """Return the arrays computed from the frames of these numbers. Called from any thread and process."""

    def needs(self) -> WorkNeeds:
        """Return its requirements."""
        return WorkNeeds()

    def merge(self, a: Arrays, b: Arrays) -> Arrays:
        """Return the result of the frames of `a` followed by those of `b`, without changing either.

        For works whose blocks are computed in pieces.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method merge, as its blocks are computed in pieces")


@runtime_checkable
class HasIdentity(Protocol):
    """An object of which only some data determine a result."""

    def identity(self) -> object:
        """Return the data that determine the result."""


def work_fingerprint(*parts: object) -> str:
    """Return a digest of everything that determines a result.

    Numbers, text, arrays, ranges, slices, and sequences, sets, mappings and dataclasses of them count by their values;
    functions and classes by their names; a Path as a file, by its location, size and time of change; an object with a
    method ``identity()`` by what that returns; any other object by its pickle, which may differ for equal objects, so
    that blocks are computed again without need.
    """
    digest = hashlib.sha256()
    for part in parts:
        _feed(digest, part)
    return digest.hexdigest()


def _feed(digest: Any, part: object) -> None:
    def feed(*words: object) -> None:
        digest.update(repr(words).encode("utf-8", "surrogatepass"))

    if part is None or isinstance(part, (bool, int, float, complex, str, bytes, range, slice)):
        feed(part)
    elif isinstance(part, (np.ndarray, np.generic)) and part.dtype != object:
        feed(part.dtype.str, part.shape)
        digest.update(np.ascontiguousarray(part).data)
    elif isinstance(part, Path):
        try:
            result = part.stat()
        except OSError as error:
            raise InputError(f"{part}: cannot be read ({error.strerror})") from None
        feed(os.path.realpath(part), result.st_size, result.st_mtime_ns)
    elif isinstance(part, HasIdentity):
        _feed(digest, part.identity())
    elif dataclasses.is_dataclass(part) and not isinstance(part, type):
        feed(type(part).__qualname__)
        _feed(digest, {field.name: getattr(part, field.name) for field in dataclasses.fields(part)})
    elif isinstance(part, Mapping):
        feed("mapping", len(part))
        for name in sorted(part, key=str):
            _feed(digest, name)
            _feed(digest, part[name])
    elif isinstance(part, Set):
        _feed(digest, sorted(part, key=repr))
    elif isinstance(part, (FunctionType, type)):
        feed(part.__module__, part.__qualname__)
    elif isinstance(part, Sequence):
        feed("sequence", len(part))
        for item in part:
            _feed(digest, item)
    else:
        digest.update(pickle.dumps(part, 5))
