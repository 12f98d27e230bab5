"""Sums over all pairs of atoms on a GPU, with the kernel of nbody.cu."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.engines.cuda import device
from vmdpotential.engines.cuda.build import address, struct
from vmdpotential.engines.cuda.programs import MAX_UNIFORMS, Programs, Records
from vmdpotential.engines.pairs import Atoms, Floats, Integers, PairList, PairResult, PairSum
from vmdpotential.errors import UsageError

#: Struct AllPairsTask of nbody.cu.
TASK = struct("AllPairsTask", [
    ("atoms", address("const struct Atom")),  # (count)
    ("others", address("const struct Atom")),  # (others_count)
    ("velocities", address("const struct Four")),  # (count)
    ("other_velocities", address("const struct Four")),  # (others_count)
    ("table", address("const struct Table")),  # (types, types)
    ("starts", address("const int")),  # (count + 1) first index of each atom in `excluded`
    ("excluded", address("const int")),  # numbers of the others that an atom excludes, sorted
    ("totals", address("struct Totals")),  # (parts, count)
    ("ended", address("int")),  # (blocks) number of finished parts
    ("doubles", np.float64, MAX_UNIFORMS),  # constants of the programs
    ("u", np.float32, MAX_UNIFORMS),
    ("types", np.int32),
    ("count", np.int32),
    ("others_count", np.int32),
    ("part", np.int32),  # number of others in a part
    ("same", np.int32),  # whether the others are the atoms
], "nbody.cu")

#: Number of blocks of 128 threads that keep a multiprocessor busy.
BLOCKS = 128


def launch_sizes(count: int, others: int, multiprocessors: int, jerk: bool) -> tuple[int, int, int]:
    """Return the number of atoms of a thread, of parts into which the others are divided, and of threads of a block.

    Many blocks, which end at about the same time, are faster than few that just fill the GPU. With enough atoms, a
    thread has two of them and uses each other atom that it reads twice.
    """
    many = count >= 16384
    threads = 64 if count <= 2048 else 256 if jerk and many else 128
    each = 2 if many else 1
    blocks = -(-count // (threads * each))
    parts = 2 ** round(np.log2(max(1.0, BLOCKS * 128 / threads * multiprocessors / blocks)))
    most = max(32 * each, 4 * multiprocessors // blocks)  # the parts' sums of each atom have to be added
    return each, min(parts, most, -(-others // (threads if count <= 2048 else 2 * threads))), threads


class AllPairs:
    """A sum over all pairs; see :class:`vmdpotential.engines.pairs.PreparedPairs`."""

    def __init__(self, work: PairSum) -> None:
        self.work = work
        self.programs = Programs(work)
        real = self.programs.real
        self.total = np.dtype([("force", real, 3)] + [("jerk", real, 3)] * work.jerk
                              + [("energy", np.float64, len(work.potential.terms))] * work.energy, align=True)

    def search(self, atoms: Atoms, others: Atoms | None = None) -> PairList:
        """Raise an error, because there is no list of pairs without a cutoff.

        Raises
        ------
        UsageError
            Always.
        """
        raise UsageError("cutoff", "a list of pairs in range needs one", "run the sum over all pairs")

    def kernel(self, gpu: Any, each: int, threads: int) -> Any:
        """Return the kernel for a number of atoms of a thread and of threads of a block."""
        return gpu.kernel("nbody.cu", "all_pairs", self.macros(each, threads), self.programs.source, TASK.itemsize)

    def macros(self, each: int, threads: int) -> dict[str, object]:
        """Return the macros of the kernel."""
        unroll = 8 if self.work.jerk or each == 1 else 32 // each
        return self.programs.macros | {"JERK": int(self.work.jerk), "EACH": each, "THREADS": threads, "UNROLL": unroll}

    def run(self, atoms: Atoms, others: Atoms | None = None) -> PairResult:
        """Return the sum over all pairs, or over those of the atoms and the other atoms."""
        second = atoms if others is None else others
        empty = not len(atoms) or not len(second)
        centre = np.zeros(3) if empty else atoms.positions.mean(0)
        if others is not None and not empty:
            centre = (centre + others.positions.mean(0)) / 2
        table = self.programs.table(atoms)
        gpu = device.least_busy_gpus(1)[0]
        with gpu, device.errors(f"GPU {gpu.number} ({gpu.name})"):
            own = self._nothing(atoms) if empty else self._sum(gpu, atoms, second, centre, table)
            if others is not None:
                transposed = table.transpose(1, 0, 2)
                other = self._nothing(others) if empty else self._sum(gpu, others, atoms, centre, transposed)
        result = self._result(own, atoms, centre)
        if others is None:
            return result
        theirs = self._result(other, others, centre)
        virial = None if result.virial is None or theirs.virial is None else result.virial + theirs.virial
        return PairResult(result.forces, result.energies, virial, result.jerks, theirs)

    def _nothing(self, atoms: Atoms) -> NDArray[Any]:
        return np.zeros(len(atoms), self.total)

    def _result(self, totals: NDArray[Any], atoms: Atoms, centre: Floats) -> PairResult:
        forces = totals["force"].astype(np.float64)
        return PairResult(forces, totals["energy"] / 2 if self.work.energy else None,
                          (atoms.positions - centre).T @ forces if self.work.virial else None,
                          totals["jerk"].astype(np.float64) if self.work.jerk else None)

    def _sum(self, gpu: Any, atoms: Atoms, others: Atoms, centre: Floats, table: Records) -> NDArray[Any]:
        task, launch = self.prepare(gpu, atoms, others, centre, table)
        launch(None)
        totals = np.empty(len(atoms), self.total)
        device.driver().memcpy_dtoh(totals, int(task["totals"]))
        return totals

    def prepare(self, gpu: Any, atoms: Atoms, others: Atoms, centre: Floats, table: Records,
                chosen: tuple[int, int, int] | None = None) -> tuple[Any, Any]:
        """Return a task with its atoms on the current GPU, and a function that queues its kernel on a stream.

        `chosen` replaces the numbers that :func:`launch_sizes` returns.
        """
        task, same = np.zeros((), TASK), others is atoms
        for side, name, velocities in ((atoms, "atoms", "velocities"), (others, "others", "other_velocities")):
            if name == "others" and same:
                task[name], task[velocities] = task["atoms"], task["velocities"]
                continue
            records = self.programs.records(side)
            records[:, :3] = side.positions - centre
            task[name] = gpu.upload(f"pairs {name}", records)
            if self.work.jerk:
                four = np.zeros((len(side), 4), self.programs.real)
                if side.velocities is not None:
                    four[:, :3] = side.velocities
                task[velocities] = gpu.upload(f"pairs {velocities}", four)
        task["table"], task["types"] = gpu.upload("pairs table", table), len(table)
        starts, left_out = np.zeros(len(atoms) + 1, np.int32), np.zeros(1, np.int32)
        if same:
            starts, left_out = exclusion_lists(len(atoms), atoms.exclusions)
        task["starts"], task["excluded"] = gpu.upload("pairs starts", starts), gpu.upload("pairs excluded", left_out)
        each, parts, threads = chosen or launch_sizes(len(atoms), len(others), gpu.multiprocessors, self.work.jerk)
        part = -(-len(others) // (parts * threads)) * threads
        parts, blocks = -(-len(others) // part), -(-len(atoms) // (threads * each))
        task["totals"] = gpu.buffer("pairs totals", parts * len(atoms) * self.total.itemsize)
        task["ended"] = gpu.upload("pairs ended", np.zeros(blocks, np.int32))
        task[self.programs.field][: len(self.programs.uniforms)] = self.programs.uniforms
        task["count"], task["others_count"], task["part"], task["same"] = len(atoms), len(others), part, same
        kernel, argument = self.kernel(gpu, each, threads), task.tobytes()

        def launch(stream: Any) -> None:
            kernel.prepared_async_call((blocks, parts, 1), (threads, 1, 1), stream, argument)

        return task, launch


def exclusion_lists(count: int, exclusions: Integers | None) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the starts (N + 1,) of the atoms' lists, and the lists: the atom and those it excludes, sorted."""
    if exclusions is None or not len(exclusions):
        return np.arange(count + 1, dtype=np.int32), np.arange(count, dtype=np.int32)
    pairs = np.asarray(exclusions, np.int32)  # sorted
    first, second = np.ascontiguousarray(pairs.T)
    less, more = np.bincount(second, minlength=count), np.bincount(first, minlength=count)
    starts = np.zeros(count + 1, np.int32)
    np.cumsum(less + more + 1, out=starts[1:])
    own = (starts[:-1] + less).astype(np.int32)
    lists = np.empty(starts[-1], np.int32)
    lists[own] = np.arange(count, dtype=np.int32)
    number = np.arange(len(pairs), dtype=np.int32)
    lists[number + (own + 1 - (np.cumsum(more) - more))[first]] = second
    by_second = np.argsort(second, kind="stable")
    lists[number + (starts[:-1] - (np.cumsum(less) - less))[second[by_second]]] = first[by_second]
    return starts, lists
