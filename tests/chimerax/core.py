"""ChimeraX's core as a library: a session without a window, from the wheel that holds its Python packages.

The wheel's own ``chimerax/__init__.py`` imports every bundle, and those need Qt; and it lacks the module
that is in for the window. Everything else here is what ChimeraX does when it starts.
"""

import builtins
import collections
import importlib.util
import os
import site
import subprocess
import sys
import types
from pathlib import Path

import appdirs


def start(home):
    """Return a session of ChimeraX whose user folders are below `home`, with the bundles in `home`/site."""
    result = importlib.util.find_spec("chimerax")
    package = types.ModuleType("chimerax")
    package.__path__ = [*result.submodule_search_locations, str(home / "site" / "chimerax")]
    sys.modules["chimerax"] = package
    os.environ["HOME"] = str(home)
    for name, version in (("app_dirs", "1.7"), ("app_dirs_unversioned", None)):
        setattr(package, name, appdirs.AppDirs("ChimeraX", appauthor="UCSF", version=version))
    for folder in ("bin", "data", "lib"):
        setattr(package, f"app_{folder}_dir", str(home / folder))
    builtins.line_profile = lambda function: function
    collections.Mapping = collections.abc.Mapping  # the parser library asks for it where Python 3.9 had it

    from chimerax.core import triggerset

    class UI:
        """What a session asks of its window."""

        is_gui = False
        has_graphics = False

        def __init__(self, session):
            self.triggers = triggerset.TriggerSet()
            self.triggers.add_trigger("ready")

        def thread_safe(self, function, *arguments, **keywords):
            function(*arguments, **keywords)

    sys.modules["chimerax.core.nogui"] = types.ModuleType("chimerax.core.nogui")
    sys.modules["chimerax.core.nogui"].UI = UI

    from chimerax.core import attributes, core_settings, session, toolshed, undo

    made = session.Session("ChimeraX")
    core_settings.init(made)
    session.register_misc_commands(made)
    attributes.RegAttrManager(made)
    site.USER_SITE = str(home / "site")
    toolshed.init(made.logger, session=made, check_available=False)
    made.toolshed = toolshed.get_toolshed()
    made.undo = undo.Undo(made, first=True)

    from chimerax import atomic

    atomic.bundle_api.initialize(made, None)
    return made


class Packaged:
    """A bundle of the wheel, which lacks the metadata that session files need."""

    version, session_write_version, session_versions = "1.7", 1, range(1, 10)

    def __init__(self, package):
        self.package = package
        self.name = "ChimeraX-Core" if package == "chimerax.core" else package

    def get_class(self, name, logger):
        return importlib.import_module(self.package).bundle_api.get_class(name)


def know_packages(toolshed, *packages):
    """Let the toolshed find bundles of the wheel, for session files."""
    known, find = {Packaged(package).name: Packaged(package) for package in packages}, toolshed.find_bundle
    toolshed._installed_packages.update({tuple(bundle.package.split(".")): bundle for bundle in known.values()})
    toolshed.find_bundle = lambda name, *rest, **options: known.get(name) or find(name, *rest, **options)


def build(source, home):
    """Build the bundle's wheel in a folder, install it into `home`/site, and return the wheel's path.

    In a process of its own, because setuptools and the current folder belong to the whole process.
    """
    home.mkdir(exist_ok=True)
    program = (
        "import sys, logging; sys.path.insert(0, sys.argv[1])\n"
        "import pathlib, core\n"
        "session = core.start(pathlib.Path(sys.argv[2]))\n"
        "from chimerax.bundle_builder.bundle_builder_toml import Bundle, read_toml\n"
        "read = read_toml('pyproject.toml')\n"
        # this builder is older than ChimeraX 1.9, which looks in 'tool', too
        "Bundle(session.logger, {**read, 'chimerax': read['tool']['chimerax']}).build_wheel()\n"
    )
    run(sys.executable, "-c", program, Path(__file__).parent, home, cwd=source)
    (wheel,) = (source / "dist").glob("*.whl")
    run(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index",
        "--target", home / "site", wheel)
    return wheel


def run(*command, **settings):
    """Run a program and return what it prints; that is shown when it fails."""
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
