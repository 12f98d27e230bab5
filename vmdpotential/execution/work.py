"""What is computed of each block, and a digest of all that a result follows from."""

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


class Cost(NamedTuple):
    """Seconds that a frame takes without its reading; those of its reading; and bytes of a block's result."""

    seconds: float
    reading: float
    size: int


class Needs(NamedTuple):
    """What a work needs of whatever computes it.

    Parameters
    ----------
    engine : str
        Name of the engine; each of its GPUs has a thread, or several processes.
    memory : int, bytes
        Of a block, while other threads compute others; 0 where this is unknown, and one block is computed at a time.
    cost : callable or None
        Estimates what a frame costs, where processes that share GPUs may compute it, which read the frames themselves.
    """

    engine: str = "cpu"
    memory: int = 0
    cost: Callable[[], Cost] | None = None


class Work(ABC):
    """What is computed of each block. It is pickled, and results follow from it and the numbers of the frames alone.

    Its :func:`fingerprint` determines whether the blocks of an earlier run are used.
    """

    @abstractmethod
    def block(self, numbers: range) -> Arrays:
        """Return arrays made of the frames of these numbers; from any thread and process."""

    def needs(self) -> Needs:
        """Return what it needs of whatever computes it."""
        return Needs()


class MergingWork(Work):
    """A work whose blocks can be computed in pieces."""

    @abstractmethod
    def merge(self, a: Arrays, b: Arrays) -> Arrays:
        """Return the result of the frames of both, `a` before `b`, and change neither."""


@runtime_checkable
class Identified(Protocol):
    """An object of which only a part counts for the result."""

    def identity(self) -> object:
        """Return what counts."""


def fingerprint(*parts: object) -> str:
    """Return a digest of what determines a result.

    Numbers, text, arrays, ranges, slices, and sequences, sets, mappings and dataclasses of them count by their values;
    functions and classes by their names; a Path is a file, and counts by its place, size and time of change; an object
    with a method ``identity()`` by what that returns; any other by its pickle, which at worst differs where the object
    does not.
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
    elif isinstance(part, Identified):
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
