"""What memory there is: of the machine, of control groups, by limits of the process."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from helpers import interaction, slow

from vmdpotential import maps, memory, registry
from vmdpotential.engines import get_engine
from vmdpotential.grid.lattice import Lattice
from vmdpotential.sums import ChargeStatistics, Estimate, Request, direct

resource = pytest.importorskip("resource", reason="not on Windows")

GB = 10**9

MEMINFO = "MemTotal:       65536000 kB\nMemFree:         1000000 kB\nMemAvailable:   48828125 kB\n"  # 50 GB


def tree(root, files):
    for name, text in {"proc/meminfo": MEMINFO, "proc/self/status": "VmSize:\t 1000 kB\nVmData:\t 10 kB\n"}.items():
        files.setdefault(name, text)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(text))
    return root


def stat(inactive, active, total=""):
    return (f"anon 5\nfile {inactive + active + 7}\n{total}inactive_file {inactive}\n{total}active_file {active}\n"
            "inactive_anon 3\n")


def mount(kind, place, source="/", options="rw"):
    return f"35 31 0:32 {source} {place} rw,relatime shared:9 - {kind} {kind} {options}\n"


V2, V1 = mount("cgroup2", "/sys/fs/cgroup"), mount("cgroup", "/sys/fs/cgroup/memory", options="rw,memory")


def v2(folder, most, used, **more):
    names = {"memory.max": most, "memory.current": used, "memory.high": "max", "memory.stat": stat(0, 0)} | {
        name.replace("_", "."): value for name, value in more.items()}
    return {f"sys/fs/cgroup/{folder}{name}": f"{value}\n" for name, value in names.items()}


def v1(folder, most, used, inactive=0, active=0):
    return {f"sys/fs/cgroup/memory/{folder}memory.limit_in_bytes": most,
            f"sys/fs/cgroup/memory/{folder}memory.usage_in_bytes": used,
            f"sys/fs/cgroup/memory/{folder}memory.stat": stat(10**12, 10**12) + stat(inactive, active, "total_")}


ALONE = {"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": V2}
DEEP = {"proc/self/cgroup": "0::/user/job/step\n", "proc/self/mountinfo": V2}


@pytest.mark.parametrize(("files", "free"), [
    ({}, 50 * GB),
    # a container of its own name space
    (ALONE | v2("", 2 * GB, GB), GB),
    (ALONE | v2("", "max", GB), 50 * GB),
    (ALONE | v2("", 2 * GB, 3 * GB), 0),
    # copies of files can be dropped, those in use by half
    (ALONE | v2("", 2 * GB, int(1.5 * GB), memory_stat=stat(GB, GB // 2)), int(1.75 * GB)),
    (ALONE | v2("", 2 * GB, GB, memory_high=int(1.5 * GB)), GB // 2),
    # groups within groups: the least counts, wherever it is
    (DEEP | v2("user/job/step/", "max", GB) | v2("user/job/", 3 * GB, 2 * GB) | v2("user/", 9 * GB, 2 * GB), GB),
    (DEEP | v2("user/job/step/", 2 * GB, GB // 2) | v2("user/job/", 9 * GB, GB) | v2("user/", 4 * GB, 3 * GB), GB),
    (DEEP | v2("user/", 3 * GB, GB), 2 * GB),
    # the groups of the machine, of which a container sees a part
    ({"proc/self/cgroup": "0::/docker/a1/in\n", "proc/self/mountinfo": mount("cgroup2", "/sys/fs/cgroup", "/docker/a1")}
     | v2("in/", 3 * GB, GB) | v2("", 5 * GB, GB), 2 * GB),
    ({"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mount("cgroup2", "/sys/fs/cgroup", "/docker/a1")}
     | v2("", 5 * GB, GB), 4 * GB),
    ({"proc/self/cgroup": "0::/../elsewhere\n", "proc/self/mountinfo": V2} | v2("", 5 * GB, GB), 4 * GB),
    # version 1, with and without 2 next to it
    ({"proc/self/cgroup": "9:name=systemd:/x\n4:memory:/slurm/job\n1:cpu:/x\n0::/\n", "proc/self/mountinfo": V1 + V2}
     | v1("slurm/job/", 4 * GB, 3 * GB, GB, GB) | v1("slurm/", 9223372036854771712, 8 * GB), int(2.5 * GB)),
    ({"proc/self/cgroup": "4:cpu,memory:/docker/a1\n", "proc/self/mountinfo":
      mount("cgroup", "/sys/fs/cgroup/memory", "/docker/a1", "rw,cpu,memory")} | v1("", 4 * GB, GB), 3 * GB),
    # odd places and nonsense
    ({"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mount("cgroup2", "/my\\040groups")}
     | {name.replace("sys/fs/cgroup", "my groups"): text for name, text in v2("", 2 * GB, GB).items()}, GB),
    (ALONE | v2("", "lots", "", memory_stat="\n\nx\n"), 50 * GB),
    ({"proc/self/cgroup": "0::/gone\n", "proc/self/mountinfo": ""}, 50 * GB),
])
def test_what_the_system_leaves(files, free, tmp_path, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert memory.limit(tree(tmp_path, dict(files))) == max(free - memory.RESERVE, 0)


def test_what_limits_of_the_process_leave(tmp_path, monkeypatch):
    limits = {resource.RLIMIT_AS: 2 * GB, resource.RLIMIT_DATA: resource.RLIM_INFINITY}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (limits[kind], resource.RLIM_INFINITY))
    assert memory.limit(tree(tmp_path, {})) == 2 * GB - 1_024_000 - memory.RESERVE
    limits[resource.RLIMIT_DATA] = GB
    assert memory.limit(tmp_path) == GB - 10_240 - memory.RESERVE
    monkeypatch.setenv("VMDPOTENTIAL_MEMORY", "3G")
    assert memory.limit(tmp_path) == 3 * GB


def test_a_limit_is_kept_from_when_it_is_set(monkeypatch):
    """What is free is remembered for a moment: not beyond a change of the limits."""
    monkeypatch.delenv("VMDPOTENTIAL_MEMORY", raising=False)
    monkeypatch.setattr(time, "monotonic", lambda: 1e6)  # the moment does not end
    before = memory.limit(reserve=0)
    taken = memory._numbers(Path("/proc/self/status"), "VmData").get("VmData", 0)
    old = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (taken + before // 2, old[1]))
    try:
        assert memory.limit(reserve=0) <= before // 2
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, old)
    assert memory.limit(reserve=0) > before // 2


def test_without_proc(tmp_path, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert memory.limit(tmp_path) == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") - memory.RESERVE


@pytest.mark.skipif(sys.platform != "linux", reason="needs limits of address space, and /proc")
@pytest.mark.parametrize("spacing", slow(["0.02", "0.5"], ["0.02"]))
def test_a_map_larger_than_the_address_space(spacing, tmp_path):
    """One line, and no end by the system: neither for a map that does not fit nor where libraries hardly do."""
    ion = tmp_path / "ion.pqr"
    ion.write_text("ATOM      1  NA  NA      1       0.000   0.000   0.000  1.0000 1.0000\n")
    most = 2 * GB if spacing == "0.02" else GB // 4

    done = subprocess.run(
        [sys.executable, "-m", "vmdpotential", "map", ion, "-o", tmp_path / "a.dx", "--spacing", spacing,
         "--method", "direct"],
        capture_output=True, text=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)))
    assert done.returncode == 3, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "of memory, " in done.stderr
    assert not (tmp_path / "a.dx").exists()


def test_auto_takes_a_method_that_fits(monkeypatch):
    """Where the first needs more memory than there is, the next one is taken; where none fits, the first."""
    class Made(direct.Direct):
        def __init__(self, name, seconds, needed):
            self.name, self.made = name, Estimate(seconds, needed)

        def estimate(self, request, engine):
            return self.made

    made = {name: Made(name, *what) for name, what in {
        "huge": (1, 9 * GB), "large": (2, 3 * GB), "fits": (3, GB), "slow": (4, 10)}.items()}
    monkeypatch.setitem(registry._entries, "method", made)
    positions, charges = np.zeros((1, 3)), np.ones(1)
    request = Request(Lattice((1, 1, 1), 1.0, (4, 4, 4)), None, interaction("coulomb"),
                      ChargeStatistics.of(positions, charges))
    for room, name in (("9.5G", "huge"), ("4G", "large"), ("2G", "fits"), ("1M", "slow")):
        monkeypatch.setenv("VMDPOTENTIAL_MEMORY", room)
        chosen, *_ = maps.choose_method(maps.SumOptions(), request, positions, charges, get_engine("cpu"))
        assert chosen.name == name


def test_sizes_beyond_any_number_are_written():
    assert memory.size(1_500_000_000) == "1.5 GB"
    assert memory.size(10**400).endswith(" TB")
