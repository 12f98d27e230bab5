"""Every exported name has complete documentation in the sections of numpydoc, and its examples run."""

import doctest
import inspect
import warnings
from pathlib import Path

import pytest
from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import validate

import vmdpotential
from vmdpotential import registry

ROOT = Path(__file__).resolve().parents[2]

#: Missing or wrong: docstring, summary, parameters, their types and meaning, returns, examples.
REQUIRED = {"GL07", "GL08", "SS01", "SS06", "PR01", "PR02", "PR04", "PR07", "PR10", "RT01", "RT03", "EX01"}


def names():
    """Return the exported names, but for errors that are made as their bases are."""
    values = {name: getattr(vmdpotential, name) for name in vmdpotential.__all__}
    return [name for name, value in values.items()
            if not (inspect.isclass(value) and issubclass(value, Exception) and "__init__" not in vars(value))]


@pytest.mark.parametrize("name", names())
def test_documentation_is_complete(name):
    value = getattr(vmdpotential, name)
    result = validate(f"{value.__module__}.{value.__qualname__}")
    assert [error for error in result["errors"] if error[0] in REQUIRED] == []
    if not inspect.isclass(value):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of sections in the wrong form
            raised = NumpyDocString(inspect.getdoc(value))["Raises"]
        assert raised
        assert all(error.desc for error in raised)


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_examples_run(name, tmp_path, monkeypatch):
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    registry.available("interaction")  # plugins are loaded, and what an example registers is for it alone
    for kind, entries in registry._entries.items():
        monkeypatch.setitem(registry._entries, kind, dict(entries))
    value = getattr(vmdpotential, name)
    example = doctest.DocTestParser().get_doctest(inspect.getdoc(value), {"vp": vmdpotential}, name, None, 0)
    assert example.examples
    report = []
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=report.append)
    assert result.failed == 0, "".join(report)
