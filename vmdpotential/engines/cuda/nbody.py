"""Sums over all pairs of atoms on a GPU, around nbody.cu."""

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
    ("starts", address("const int")),  # (count + 1) of what each atom leaves out in
    ("excluded", address("const int")),  # numbers of others, sorted
    ("totals", address("struct Totals")),  # (parts, count)
    ("ended", address("int")),  # (blocks) how many parts have ended
    ("doubles", np.float64, MAX_UNIFORMS),  # what the programs read
    ("u", np.float32, MAX_UNIFORMS),
    ("types", np.int32),
    ("count", np.int32),
    ("others_count", np.int32),
    ("part", np.int32),  # others of a part
    ("same", np.int32),  # whether the others are the atoms
], "nbody.cu")

#: Blocks of 128 threads that keep a multiprocessor busy.
BLOCKS = 128


def knobs(count: int, others: int, multiprocessors: int, jerk: bool) -> tuple[int, int, int]:
    """Return how many atoms a thread has, into how many parts the others are split, and the threads of a block.

    Many blocks, which end at about the same time, are faster than few that fill the GPU; where there are enough atoms,
    two a thread read less of each other one.
    """
    many = count >= 16384
    threads = 64 if count <= 2048 else 256 if jerk and many else 128
    each = 2 if many else 1
    blocks = -(-count // (threads * each))
    parts = 2 ** round(np.log2(max(1.0, BLOCKS * 128 / threads * multiprocessors / blocks)))
    most = max(32 * each, 4 * multiprocessors // blocks)  # each part costs a sum of an atom
    return each, min(parts, most, -(-others // (threads if count <= 2048 else 2 * threads))), threads


class AllPairs:
    """A sum over all pairs, ready to run."""

    def __init__(self, work: PairSum) -> None:
        self.work = work
        self.programs = Programs(work)
        real = self.programs.real
        self.total = np.dtype([("force", real, 3)] + [("jerk", real, 3)] * work.jerk
                              + [("energy", np.float64, len(work.potential.terms))] * work.energy, align=True)

    def search(self, atoms: Atoms, others: Atoms | None = None) -> PairList:
        """Refuse: without a cutoff no pairs are out of range.

        Raises
        ------
        UsageError
        """
        raise UsageError("cutoff", "lists of pairs in range are of potentials with a cutoff")

    def kernel(self, gpu: Any, each: int, threads: int) -> Any:
        """Return the kernel for so many atoms a thread."""
        return gpu.kernel("nbody.cu", "all_pairs", self.macros(each, threads), self.programs.source, TASK.itemsize)

    def macros(self, each: int, threads: int) -> dict[str, object]:
        """Return what it is compiled with."""
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
        gpu = device.idlest(1)[0]
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
        """Return a task whose atoms are on the current GPU, and what queues its kernel on a stream.

        `chosen` takes the place of what :func:`knobs` returns.
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
            starts, left_out = left_out_of(len(atoms), atoms.exclusions)
        task["starts"], task["excluded"] = gpu.upload("pairs starts", starts), gpu.upload("pairs excluded", left_out)
        each, parts, threads = chosen or knobs(len(atoms), len(others), gpu.multiprocessors, self.work.jerk)
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


def left_out_of(count: int, exclusions: Integers | None) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return for each atom where its list starts (N + 1,), and the lists: its own number and those excluded, sorted."""
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
