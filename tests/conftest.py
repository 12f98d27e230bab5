"""What all tests share: the engines, inputs that take long to make, and one folder of compiled kernels."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from vmdpotential.kernels.build import build_package

# One folder for all processes, whatever home folder a test gives its own, and for the next runs; not the user's.
CACHE = Path(__file__).resolve().parent.parent / ".pytest_cache" / "vmdpotential"
os.environ.setdefault("VMDPOTENTIAL_CACHE", str(CACHE))

# kernels that have changed since they were compiled; this takes no time if none has
build_package()

# another package, whose tests run with it installed (package/test_extension.py)
collect_ignore = ["extension"]

# asserts that many tests share say what they compared
pytest.register_assert_rewrite("broken_inputs", "damaged", "helpers", "openmm_pairs", "pages", "pictures",
                               "structure_files")

# compiling kernels makes many objects, among those of all packages that tests import, and hardly a cycle
gc.set_threshold(50_000, 20, 20)

#: Files with a test that takes long: first, so that two processes end at the same time.
LONG = ["test_readme", "test_types", "test_documents", "test_examples", "test_extension", "test_fuzz", "test_vmd",
        "test_accuracy", "test_pb", "test_batch", "test_apbs", "test_average_in_slabs"]


#: What runs only by `scripts/test --nightly`, like single tests with the mark `nightly` elsewhere.
NIGHTLY = Path(__file__).resolve().parent / "nightly"

#: Why tests may be skipped in continuous integration, see `unexpected_skips`: starts of reasons.
ALLOWED_SKIPS = ("no GPU", "nvcc is not installed", "OSMesa (libosmesa6)", "this processor has no AVX2",
                 "needs GROMACS' program gmx", "no /usr/share/gromacs/top", "a full disk needs",
                 "not on Windows")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(NIGHTLY):
            item.add_marker("nightly")
        if item.get_closest_marker("nightly"):
            item.add_marker("slow")
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG))


left_for_the_night = 0


def pytest_deselected(items):
    global left_for_the_night
    left_for_the_night += sum(item.get_closest_marker("nightly") is not None for item in items)


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):  # a process of pytest-xdist, all of which collect all tests
        session.config.workeroutput["left for the night"] = left_for_the_night
    elif os.environ.get("CI") and unexpected_skips(session.config) and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    global left_for_the_night
    left_for_the_night = max(left_for_the_night, getattr(node, "workeroutput", {}).get("left for the night", 0))


def unexpected_skips(config):
    """Return the reasons of skips that would leave something untested where everything is installed."""
    reports = config.pluginmanager.get_plugin("terminalreporter").stats.get("skipped", ())
    reasons = {report.longrepr[2].removeprefix("Skipped: ") for report in reports if isinstance(report.longrepr, tuple)}
    return sorted(reason for reason in reasons if not reason.startswith(ALLOWED_SKIPS))


def pytest_terminal_summary(terminalreporter, config):
    if left_for_the_night:
        terminalreporter.write_line(f"left out: {left_for_the_night} tests that scripts/test --nightly runs")
    if os.environ.get("CI"):
        for reason in unexpected_skips(config):
            terminalreporter.write_line(f"failed, because CI is set and this is not allowed to be skipped: {reason}")


seconds_before = 0.0
seconds_of_forks = []  # files of processes that serve, whose children count in os.times() when these end


def processor_seconds():
    return sum(os.times()[:4]) + sum(sum(map(float, path.read_text().split())) for path in seconds_of_forks)


def pytest_collection_finish():
    global seconds_before
    seconds_before = processor_seconds()
    gc.freeze()  # collections, and forks, need not look through what tests import


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Tell in each report what a part of a test took of a processor, with the programs that it ran."""
    global seconds_before
    report = yield
    seconds = processor_seconds()
    report.processor_seconds, seconds_before = seconds - seconds_before, seconds
    return report


def pytest_runtest_logreport(report):
    """Keep what tests take, for the end of scripts/test."""
    if "TEST_TIMES" in os.environ and "PYTEST_XDIST_WORKER" not in os.environ:
        with open(os.environ["TEST_TIMES"], "a") as file:
            file.write(f"{report.processor_seconds:6.1f} s ({report.duration:6.1f})  {report.nodeid} ({report.when})\n")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def engine(request):
    """Every engine in turn; ``pytest -m gpu`` selects the runs on a GPU."""
    from helpers import working

    return working(request.param)


@pytest.fixture(scope="session")
def forks(tmp_path_factory):
    """Where a process serves that runs the program and Python in forks of it, see ``forked_program``."""
    from forked_program import __file__ as script

    place = tmp_path_factory.mktemp("forks") / "socket"
    seconds = place.with_name("socket.seconds")
    seconds.touch()
    with subprocess.Popen([sys.executable, script, "serve", place], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=os.environ | {"PYTHONPATH": str(NIGHTLY.parents[1]), "MPLBACKEND": "agg"}) as server:
        assert server.stdout.readline() == b"ready\n"
        seconds_of_forks.append(seconds)
        yield place
    seconds_of_forks.remove(seconds)


@pytest.fixture
def gpu(monkeypatch):
    """A GPU whose kernels run on the host, see ``cuda_host``."""
    from cuda_host import install

    return install(monkeypatch)


@pytest.fixture(scope="session")
def inputs(tmp_path_factory):
    """A folder of good and broken files, see ``broken_inputs``."""
    from broken_inputs import fill

    from vmdpotential.frontend import cli

    folder = tmp_path_factory.mktemp("inputs")
    fill(folder)
    # kernels are compiled and kept here, so that limits and full disks meet the outputs only
    for command, name, output in (("map", "box.pdb", "a.dx"), ("map", "ion.pqr", "b.dx"), ("ionize", "box.pdb", "")):
        options = ["-o", str(folder / output)] if output else ["--ions=SOD=1", "--dry-run"]
        assert cli.main([command, str(folder / name), *options]) == 0
    return folder


@pytest.fixture
def here(tmp_path, inputs, monkeypatch):
    """An empty working folder in which `in` is the folder of inputs; these must stay as they are."""
    from broken_inputs import state

    (tmp_path / "in").symlink_to(inputs)
    monkeypatch.chdir(tmp_path)
    before = state(inputs)
    yield tmp_path
    assert state(inputs) == before


@pytest.fixture(scope="session")
def tpr():
    """Topology, charges, coordinates and cell in one file."""
    from structure_files import MDA

    from vmdpotential import read_structure

    return read_structure(MDA / "adk_oplsaa.tpr")


@pytest.fixture(scope="session")
def peptide():
    """A small peptide in water, with all parameters of its prmtop."""
    from helpers import TOOLS

    from vmdpotential import read_structure

    folder = TOOLS / "alanine-dipeptide-explicit"
    return read_structure(folder / "alanine-dipeptide.crd", folder / "alanine-dipeptide.prmtop")
