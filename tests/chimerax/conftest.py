"""The real core of ChimeraX, with the bundle built by its bundle builder and found by its toolshed."""

import gzip
import re
import shutil
from html import unescape
from pathlib import Path

import core
import pytest
from salt import IONS

import vmdpotential as vp

ROOT = Path(__file__).resolve().parents[2]
BUNDLE = ROOT / "plugins" / "chimerax"


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """ChimeraX's user folder, with the bundle installed."""
    folder = tmp_path_factory.mktemp("chimerax")
    source = folder / "the bundle"  # with a blank, and outside the checkout, so that nothing is left there
    shutil.copytree(BUNDLE, source, ignore=shutil.ignore_patterns("__pycache__", "build", "dist", "*.egg-info"))
    core.build(source, folder / "home")
    return folder / "home"


@pytest.fixture(scope="session")
def wheel(home):
    (path,) = (home.parent / "the bundle" / "dist").glob("*.whl")
    return path


@pytest.fixture(scope="session")
def running(home):
    """The one session that a process can have."""
    return core.start(home)


@pytest.fixture
def session(running):
    """The session without models."""
    yield running
    running.models.close(running.models.list())


class Log:
    """What a session logs and shows on its status line."""

    def __init__(self, session):
        from chimerax.core.logger import HtmlLog

        class Collector(HtmlLog):
            """Keeps what comes."""

            def log(_, level, message, image_info, is_html):  # noqa: N805
                if message:
                    text = unescape(re.sub(r"<[^>]*>", "", message)) if is_html else message
                    self.entries.append((_.LEVEL_DESCRIPTS[level], text))
                if image_info and image_info[0] is not None:
                    self.images.append(image_info[0])
                return True

            def status(_, message, color, secondary):  # noqa: N805
                self.shown.append(message)
                return True

        self.entries, self.images, self.shown = [], [], []
        self.collector = Collector()
        session.logger.add_log(self.collector)

    @property
    def text(self):
        return "\n".join(text for _, text in self.entries)


@pytest.fixture
def log(session):
    made = Log(session)
    yield made
    session.logger.remove_log(made.collector)


@pytest.fixture
def do(session, log):
    """Run a line as typed into ChimeraX's command line."""
    from chimerax.core.commands import run

    return lambda line: run(session, line, log=False)


@pytest.fixture
def opened(session):
    """Open a PDB, mmCIF or other structure file as ChimeraX's readers do, and return the model."""
    def load(path):
        path = Path(path)
        if path.suffix == ".cif":
            from chimerax.mmcif import open_mmcif as reader
        else:
            from chimerax.pdb import open_pdb as reader
        models, _ = reader(session, str(path), path.stem)
        session.models.add(models)
        (model,) = models
        return model
    return load


@pytest.fixture
def ions(opened, tmp_path):
    (tmp_path / "ions.pdb").write_text(IONS)
    return opened(tmp_path / "ions.pdb")


@pytest.fixture(scope="module")
def protein():
    return vp.read_structure(ROOT / "data" / "dhfr.pdb.gz", topology=ROOT / "data" / "dhfr.psf.gz")


@pytest.fixture
def dhfr(opened, tmp_path):
    (tmp_path / "dhfr.pdb").write_bytes(gzip.decompress((ROOT / "data" / "dhfr.pdb.gz").read_bytes()))
    return opened(tmp_path / "dhfr.pdb")
