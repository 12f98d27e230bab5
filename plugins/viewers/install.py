"""The command ``install``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from vmdpotential.errors import InputError, OutputError, UsageError
from vmdpotential.parameters import Command, Option
from vmdpotential.results import Result

from . import page_script, startup
from .installation import VIEWER_PROGRAMS, ViewerInstallation, plan_installation


def install(
    viewer: Annotated[str, Option(
        "viewer for which the plugin is installed; page downloads 3Dmol.js, which draws web pages, from npm's registry",
        choices=(*VIEWER_PROGRAMS, "page"), positional=True, viewer=False)],
    yes: Annotated[bool, Option("make the changes; otherwise only report what would be done", viewer=False)] = False,
    uninstall: Annotated[bool, Option(
        "remove the plugin and its lines in the viewer's start-up file", viewer=False)] = False,
    folder: Annotated[Path | None, Option(
        "folder in which a folder for the plugin is made, instead of in the viewer's usual place",
        viewer=False)] = None,
) -> Installation:
    """Install the plugin for a viewer, and report how to load it.

    The plugin's files are copied. The lines that load them are added once to the viewer's start-up file, between two
    marker comments; the rest of that file stays as it is, byte for byte. Nothing is done without --yes.

    Raises
    ------
    UsageError
        When the folder contains something else.
    InputError
        When the start-up file cannot be read.
    OutputError
        When something cannot be written; then nothing is changed.
    BackendError
        When 3Dmol.js cannot be downloaded.
    """
    if viewer == "page":
        return _page(folder, yes, uninstall)
    plugin = plan_installation(viewer, folder)
    old = None if plugin.startup is None else startup.read(plugin.startup)
    target = plugin.folder
    if uninstall and folder is None:
        target = startup.folder_of(old) or target
    if not uninstall and target.exists() and not plugin.contains_plugin(target):
        raise UsageError("folder", f"{target} contains other files", "choose another folder")
    lines = _uninstall(plugin, target, old, yes) if uninstall else _install(plugin, old, yes)
    if not yes:
        if not uninstall or plugin.contains_plugin(target) or (old is not None and startup.has_block(old)):
            lines.append(f"nothing has been done; to do it: {_command(viewer, folder, uninstall)}")
    elif not uninstall:
        lines.append(f"to undo this: {_command(viewer, folder, uninstall=True)}")
    return Installation(viewer=viewer, folder=target, done=yes, uninstalled=yes and uninstall, startup=plugin.startup,
                        steps=lines)


class Installation(Result):
    """An installed or removed plugin, or a preview of the installation."""

    viewer: str
    folder: Path
    done: bool
    uninstalled: bool
    startup: Path | None
    steps: Sequence[str]

    def entries(self) -> dict[str, Any]:
        """Return the entries of ``--json``."""
        return super().entries() | {
            "viewer": self.viewer, "folder": self.folder, "done": self.done, "uninstalled": self.uninstalled,
            "startup": self.startup}

    def text(self) -> Iterator[str]:
        """Yield the steps that were done, or that --yes would do."""
        yield from self.steps


def _command(viewer: str, folder: Path | None, uninstall: bool) -> str:
    """Return the shell command that installs or removes a plugin."""
    return shlex.join(["vmdpotential", "install", viewer, *(["--folder", str(folder)] if folder is not None else []),
                       *(["--uninstall"] if uninstall else []), "--yes"])


def _page(folder: Path | None, yes: bool, uninstall: bool) -> Installation:
    """Download 3Dmol.js into the folder that the page searches, or remove it."""
    target = (folder or page_script.user_folder()) / "node_modules" / "3dmol"
    would, did = ("would remove", "removed") if uninstall else (
        f"{verb} {page_script.ARCHIVE} to" for verb in ("would download", "downloaded"))
    lines = [f"{did if yes else would} {target}"]
    if uninstall and not target.exists():
        lines = ["3Dmol.js is not installed"]
    elif yes and uninstall:
        startup.remove_folder(target)
    elif yes:
        page_script.download(target)
    else:
        lines.append(f"nothing has been done; to do it: {_command('page', folder, uninstall)}")
    return Installation(viewer="page", folder=target, done=yes, uninstalled=yes and uninstall, startup=None,
                        steps=lines)


def _install(plugin: ViewerInstallation, old: bytes | None, yes: bool) -> list[str]:
    """Copy the plugin and add its lines to the start-up file, if `yes`; return lines that report it."""
    if not plugin.names:
        raise InputError(f"{plugin.source}: the plugin's files are missing", "install the package again")
    lines = [f"{'wrote' if yes else 'would write'} {plugin.folder}: {', '.join([*plugin.names, *plugin.more])}"]
    new = None
    if plugin.startup is not None:
        new = startup.with_block(old, plugin.lines, plugin.startup, plugin.folder)
        if new == old:
            lines.append(f"{plugin.startup}: loads it already")
        else:
            lines += [f"{'added' if yes else 'would add'} to {plugin.startup}:", *(f"    {x}" for x in plugin.lines)]
    if yes:
        existed = plugin.folder.exists()
        startup.put_folder(plugin.source, plugin.folder, plugin.names, plugin.more)
        if plugin.startup is not None and new != old:
            try:
                startup.replace(plugin.startup, new)
            except OutputError:
                if not existed:
                    startup.remove_folder(plugin.folder)
                raise
    return [*lines, *plugin.after]


def _uninstall(plugin: ViewerInstallation, target: Path, old: bytes | None, yes: bool) -> list[str]:
    """Remove the plugin and its lines in the start-up file, if `yes`; return lines that report it."""
    lines = []
    if plugin.startup is not None and old is not None and startup.has_block(old):
        new = startup.removed(old, plugin.startup)
        what = "the file, which was made for it" if new is None else "its lines"
        lines.append(f"{'removed' if yes else 'would remove'} {what}: {plugin.startup}")
        if yes:
            startup.replace(plugin.startup, new)
    if plugin.contains_plugin(target):
        lines.append(f"{'removed' if yes else 'would remove'} {target}")
        if yes:
            startup.remove_folder(target)
    return [*(lines or [f"{plugin.title}: nothing is installed"]), *plugin.undone]


command = Command.of(install, unattended=False, examples=(
    "install pymol",
    "install page --yes",
))
