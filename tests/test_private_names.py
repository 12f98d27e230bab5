"""Where the package uses names of Numba that Numba does not document: one module, checked with the versions named."""

import re
from pathlib import Path

import llvmlite
import numba

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "vmdpotential"


def test_one_module_uses_private_names_of_numba():
    users = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")
             if re.search(r"^\s*(from|import) numba\.(core|np|cpython)\b", path.read_text(), re.MULTILINE)}
    assert users == {"compiling/build.py"}


def test_versions_that_were_run_are_named():
    text = (ROOT / "ARCHITECTURE.md").read_text().lower()
    for package in (numba, llvmlite):
        series = ".".join(package.__version__.split(".")[:2])
        assert f"{package.__name__} {series}" in text
