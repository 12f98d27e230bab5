"""What all tests share: the engines, inputs that take long to make, and one folder of compiled kernels."""

import gc
import os
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
pytest.register_assert_rewrite("broken_inputs", "damaged", "helpers", "openmm_pairs", "pages", "structure_files")

# compiling kernels makes many objects, among those of all packages that tests import, and hardly a cycle
gc.set_threshold(50_000, 20, 20)

#: Files that take long: first, so that two processes end at the same time; the last is that of the longest test.
LONG = ["test_engine_cpu", "test_ions", "test_write_psf", "test_energy", "test_cuda_compiles", "test_foreign",
        "test_nbody", "test_examples", "test_tolerance", "test_documents", "test_pairs_cpu", "test_engines",
        "test_readme", "test_vmd", "test_processors"]


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
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else -1, reverse=True)


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


def pytest_runtest_logreport(report):
    """Keep how long tests take, for the end of scripts/test."""
    if "TEST_TIMES" in os.environ and "PYTEST_XDIST_WORKER" not in os.environ and report.duration > 0.1:
        with open(os.environ["TEST_TIMES"], "a") as file:
            file.write(f"{report.duration:.1f} s  {report.nodeid} ({report.when})\n")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def engine(request):
    """Every engine in turn; ``pytest -m gpu`` selects the runs on a GPU."""
    from helpers import working

    return working(request.param)


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
    from structure_files import TOOLS

    from vmdpotential import read_structure

    folder = TOOLS / "alanine-dipeptide-explicit"
    return read_structure(folder / "alanine-dipeptide.crd", folder / "alanine-dipeptide.prmtop")
