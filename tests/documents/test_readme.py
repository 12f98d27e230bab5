"""Everything the documents show is run: shell and Python blocks here, PyMOL blocks in tests/pymol."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from forked_program import write_client

ROOT = Path(__file__).resolve().parents[2]
GUIDE = [ROOT / "scripts" / "guide" / f"{name}.md" for name in ("input", "structure", "media", "trajectories", "use")]
DOCUMENTS = [ROOT / "README.md", *GUIDE, *sorted((ROOT / "vmdpotential").rglob("*.md")),
             *sorted((ROOT / "plugins").rglob("*.md"))]
#: Whose blocks are run one after the other: each goes on with what those before it made.
RUN = [ROOT / "README.md", *GUIDE, ROOT / "plugins" / "web" / "README.md"]


def blocks(language):
    """Return (document, block) for every block of a language, in the order shown."""
    return [
        (path.relative_to(ROOT), block)
        for path in DOCUMENTS
        for block in re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, forks):
    """A folder with data/, as the reader has it; blocks build on the results of earlier ones."""
    folder = tmp_path_factory.mktemp("readme")
    shutil.copytree(ROOT / "data", folder / "data")
    (folder / "bin").mkdir()
    write_client(folder / "bin" / "vmdpotential", forks)
    return folder


def run(folder, *command):
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "MPLBACKEND": "agg"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_page_of_the_guide_is_run():
    assert {*GUIDE} == {*(ROOT / "scripts" / "guide").glob("*.md")}


def test_the_first_page_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_there_is_something_to_run():
    assert blocks("sh")
    assert blocks("python")
    assert blocks("pymol")
    languages = {
        language for path in DOCUMENTS for language in re.findall(r"^```(\w+)", path.read_text(), re.MULTILINE)
    }
    assert languages <= {"sh", "python", "pymol"}  # a block of another language would not be run


@pytest.mark.slow
def test_blocks_in_the_order_shown(folder):
    text = "".join(path.read_text() for path in RUN)
    shown = re.findall(r"^```(sh|python)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    for language, block in shown:
        if language == "python":
            run(folder, folder / "bin" / "vmdpotential", "-c", block)
        elif "scripts/" not in block:
            run(folder, "bash", "-euo", "pipefail", "-c", block)
    assert list(folder.glob("*.png"))
    assert list(folder.glob("*.dx"))


def test_scripts_shown_exist_and_are_run():
    scripts = {script for _, block in blocks("sh") for script in re.findall(r"^(scripts/\w+)", block, re.MULTILINE)}
    assert scripts
    for script in scripts - {"scripts/test"}:  # which runs the others, and this test
        assert script in (ROOT / "scripts" / "test").read_text()
        assert os.access(ROOT / script, os.X_OK)


def test_links_and_pictures_exist():
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path}: {target}"


def test_links_to_titles_lead_to_titles():
    def anchors(path):
        titles = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
        return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}

    for path in [*DOCUMENTS, *(ROOT / "scripts" / "tutorials").glob("*.md")]:
        for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", path.read_text()):
            assert anchor in anchors(path.parent / target if target else path), f"{path}: {target}#{anchor}"
