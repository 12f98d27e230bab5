"""Locations of the viewers' plugins, and the start-up lines that load the plugins of this package."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import sys
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from vmdpotential.errors import UsageError
from vmdpotential.extras import pip_requirement

from . import startup
from .tcl import tcl_word

#: Viewers with a plugin.
VIEWER_PROGRAMS = ("vmd", "pymol", "chimerax")

#: Folder of the viewers' plugins, in the installed package or in the source tree.
PLUGINS = Path(__file__).resolve().parent.parent

#: Folder of programs on macOS.
APPLICATIONS = Path("/Applications")


@dataclass(frozen=True)
class ViewerInstallation:
    """Plan of the installation of a viewer's plugin.

    Parameters
    ----------
    title : str
        Name of the viewer.
    folder : Path
        Folder of the plugin's files; it has no others.
    contents : dict
        The files by their names in that folder.
    startup : Path or None
        File that the viewer runs when it starts, to which `lines` are added.
    lines : list of str
    after : list of str
        Lines for the user after the installation.
    undone : list of str
        Lines for the user after the removal.
    """

    title: str
    folder: Path
    contents: dict[str, bytes]
    startup: Path | None = None
    lines: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    undone: list[str] = field(default_factory=list)

    def contains_plugin(self, folder: Path) -> bool:
        """Return whether a folder contains this plugin, by a file that all versions have."""
        mark = {"VMD": "vmdpotential.tcl", "PyMOL": "__init__.py", "ChimeraX": "pyproject.toml"}[self.title]
        try:
            return b"vmdpotential" in (folder / mark).read_bytes()
        except OSError:
            return False


def plan_installation(viewer: str, folder: Path | None = None) -> ViewerInstallation:
    """Return the plan of installing the plugin of one of :data:`VIEWER_PROGRAMS`.

    Parameters
    ----------
    viewer : str
    folder : Path, optional
        Folder in which the plugin gets a folder of its own, instead of the viewer's usual location.

    Raises
    ------
    UsageError
        When the folder's name cannot be written to a start-up file.
    InputError
        When the start-up file cannot be read.
    """
    if folder is not None and len(str(folder).splitlines()) > 1:
        raise UsageError("folder", "its name contains a line break", "choose another folder")
    where = None if folder is None else Path(os.path.abspath(folder.expanduser()))
    return {"vmd": _vmd, "pymol": _pymol, "chimerax": _chimerax}[viewer](where)


def program() -> list[str]:
    """Return the words of a command line that starts this program from any folder, on Windows without a console."""
    without_console = Path(sys.executable).with_name("pythonw.exe")
    if platform.system() == "Windows" and without_console.exists():
        return [str(without_console), "-m", "vmdpotential"]
    script = Path(sys.executable).with_name("vmdpotential.exe" if os.name == "nt" else "vmdpotential")
    if os.access(script, os.X_OK):
        return [str(script)]
    return [sys.executable, "-m", "vmdpotential"]


def find_vmd() -> Path | None:
    """Return the VMD that was installed last, in the places of its installers, or that of the search path, or None."""
    windows = Path(os.environ.get("PROGRAMFILES", "C:/Program Files")) / "University of Illinois"
    places = {"Darwin": (APPLICATIONS, "VMD*.app/Contents/vmd2/bin/vmd"), "Windows": (windows, "VMD*/vmd.exe")}
    folder, pattern = places.get(platform.system(), (Path(), ""))
    in_path = shutil.which("vmd")
    found = sorted(folder.glob(pattern), key=os.path.getmtime) if pattern else [Path(in_path)] if in_path else []
    return found[-1] if found else None


def _vmd(where: Path | None) -> ViewerInstallation:
    home = Path.home()
    folder = (where or home / ".vmdplugins") / "vmdpotential"
    windows = platform.system() == "Windows"
    name = "vmd.rc" if windows else ".vmdrc"
    rc = home / name
    lines = [
        f"lappend auto_path {tcl_word(folder.as_posix())}",
        "if {[catch {package require vmdpotential; ::vmdpotential::install_menus} vmdpotential_message]} {",
        '    puts "vmdpotential: $vmdpotential_message"',
        "}",
    ]
    if startup.was_created(startup.read(rc), rc):
        # VMD runs the user's file instead of its own, which opens the main menu and therefore has to be run as well
        lines = [f"if {{[info exists env(VMDDIR)] && [file exists [file join $env(VMDDIR) {name}]]}} {{",
                 f"    source [file join $env(VMDDIR) {name}]", "}", *lines]
    vmd = find_vmd()
    after = [f"start VMD{'' if vmd is None else f' ({vmd})'} and type: potential help",
             "the dialog is in Extensions, Modeling and Analysis"]
    if windows:
        after.insert(0, f"VMD reads {name} in the folder that the variable HOME names: set HOME to {home}")
    return ViewerInstallation("VMD", folder, {
        **_contents("vmd", "*.tcl", "*.md", "*.png"), "program.txt": os.fsencode("\n".join(program()) + "\n")},
        rc, lines, after)


def _pymol(where: Path | None) -> ViewerInstallation:
    home = Path.home()
    base = Path(os.environ["APPDATA"]) / "pymol" if "APPDATA" in os.environ else home / ".pymol"
    parent = where or base / "startup"
    lines = [
        "import pymol.plugins",
        f"if {str(parent)!r} not in pymol.plugins.get_startup_path(True):",
        f"    pymol.plugins.set_startup_path([{str(parent)!r}, *pymol.plugins.get_startup_path(True)], False)",
    ]
    after = ["start PyMOL and type: help potential_map"]
    if find_spec("pymol") is None:
        after.insert(0, "PyMOL's Python needs the package too; in PyMOL, print(sys.executable) names that Python: "
                        f"PYTHON -m pip install {shlex.quote(pip_requirement('all'))}")
    return ViewerInstallation("PyMOL", parent / "vmdpotential_plugin", _contents("pymol", "*.py", "*.md", "*.png"),
                              startup=home / ".pymolpluginsrc.py", lines=lines, after=after)


def _chimerax(where: Path | None) -> ViewerInstallation:
    folder = (where or Path.home() / ".chimerax-bundles") / "vmdpotential"
    quoted = f'"{folder}"'
    package = pip_requirement("all")
    chimerax = shutil.which("chimerax") or shutil.which("ChimeraX")
    after = [
        "ChimeraX installs bundles itself; type on its command line, and restart it:",
        f'    pip install "{package}"', f"    devel install {quoted}",
    ]
    if chimerax:
        command = f'pip install "{package}"; devel install {quoted}'
        after += ["or in a shell:", f"    {shlex.quote(chimerax)} --nogui --exit --cmd {shlex.quote(command)}"]
    return ViewerInstallation("ChimeraX", folder, _contents("chimerax", "*.*", "src/**/*.*"), after=after,
                              undone=["type on ChimeraX's command line: toolshed uninstall ChimeraX-VMDPotential"])


def _contents(plugin: str, *patterns: str) -> dict[str, bytes]:
    """Return the files of a plugin that match patterns, by their names."""
    source = PLUGINS / plugin
    paths = {path for pattern in patterns for path in source.glob(pattern) if path.is_file()}
    return {str(path.relative_to(source)): path.read_bytes() for path in sorted(paths)
            if "__pycache__" not in path.parts}
