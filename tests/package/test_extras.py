"""Commands that messages give to install extras: of the installation at hand, since the index may not have it."""

import json
import re
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from vmdpotential import extras
from vmdpotential.errors import BackendError

ROOT = Path(__file__).resolve().parents[2]
INDEX = re.compile(r"\b(?<!un)install ['\"]?vmdpotential\b(?!.*@)")


class Installed:
    """A distribution with this file direct_url.json."""

    def __init__(self, origin):
        self.origin = origin

    def read_text(self, name):
        assert name == "direct_url.json"
        return None if self.origin is None else json.dumps(self.origin)


@pytest.mark.parametrize(("origin", "address", "command"), [
    ({"url": "file:///home/me/check%20out", "dir_info": {}}, "file:///home/me/check%20out",
     "pip install 'vmdpotential[traj] @ file:///home/me/check%20out'"),
    ({"url": "file:///home/me/check%20out", "dir_info": {"editable": True}}, "file:///home/me/check%20out",
     "pip install -e '/home/me/check out[traj]'"),
    ({"url": "https://host/a.git", "vcs_info": {"vcs": "git", "commit_id": "abc", "requested_revision": "main"}},
     "git+https://host/a.git@abc", "pip install 'vmdpotential[traj] @ git+https://host/a.git@abc'"),
    (None, None, "pip install 'vmdpotential[traj]'"),
], ids=["folder", "editable", "repository", "index"])
def test_an_extra_is_installed_from_where_the_package_came(origin, address, command, monkeypatch, tmp_path):
    monkeypatch.setattr(extras, "distributions", lambda name: [Installed(None), Installed(origin)])
    monkeypatch.setattr(extras, "__file__", str(tmp_path / "vmdpotential" / "extras.py"))
    parsed = Requirement(extras.pip_requirement("traj"))
    assert (parsed.name, parsed.extras, parsed.url) == ("vmdpotential", {"traj"}, address)
    assert extras.install_command("traj") == command


def test_a_checkout_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(extras, "distributions", lambda name: [])
    assert Requirement(extras.pip_requirement()).url == ROOT.as_uri()


def test_every_message_names_an_extra_that_there_is():
    (known,) = {tuple(sorted(item.metadata.get_all("Provides-Extra"))) for item in distributions(name="vmdpotential")}
    names = {name for path in [*ROOT.glob("vmdpotential/**/*.py"), *ROOT.glob("plugins/**/*.py")]
             for name in re.findall(r"install_command\(['\"](\w+)['\"]\)", path.read_text())}
    assert len(names) > 4
    assert names <= set(known)


def test_no_text_sends_users_to_an_index():
    """Documents and messages name the checkout, or the address that the package was installed from."""
    paths = [path for pattern in ("*.md", "plugins/**/*.md", "plugins/**/*.py", "plugins/**/*.tcl", "scripts/**/*.md",
                                  "vmdpotential/**/*.md", "vmdpotential/**/*.py") for path in ROOT.glob(pattern)]
    lines = [f"{path}: {line}" for path in paths for line in path.read_text().splitlines() if INDEX.search(line)]
    assert not lines


def test_a_missing_package_is_an_error_with_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "skimage", None)
    with pytest.raises(BackendError) as caught:
        extras.load_optional("skimage", "surfaces", "surface", "use another")
    assert caught.value.hint == f"{extras.install_command('surface')}, or use another"
