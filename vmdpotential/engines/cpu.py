"""The CPU engine: kernels in C++, which are compiled with the package."""

from __future__ import annotations

from vmdpotential.engines import Engine
from vmdpotential.errors import count_of


class CpuEngine(Engine):
    """All cores of this machine, or as many threads as the environment variable VMDPOTENTIAL_THREADS sets."""

    name = "cpu"

    def describe(self) -> str:
        """Return the number of threads, and the instruction set of the kernels."""
        from vmdpotential.kernels import threads
        from vmdpotential.kernels.launch import describe_vectors

        return f"{count_of(threads.count(), 'thread')}, {describe_vectors()}"


ENGINE = CpuEngine()
