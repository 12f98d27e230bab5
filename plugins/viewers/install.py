"""The command ``install``."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from vmdpotential.errors import UsageError
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
        target, file = (folder or page_script.user_folder()) / "node_modules" / "3dmol", None
        changes, after, title = _changes_of_page(target, uninstall), list[str](), "3Dmol.js"
    else:
        plugin = plan_installation(viewer, folder)
        target, file, title = plugin.folder, plugin.startup, plugin.title
        old = None if file is None else startup.read(file)
        block = None if file is None else startup.find_block(old, file)
        if uninstall and folder is None and block is not None:
            target = Path(os.fsdecode(block["folder"]))
        if not uninstall and target.exists() and not plugin.contains_plugin(target):
            raise UsageError("folder", f"{target} contains other files", "choose another folder")
        changes, after = (_removals if uninstall else _additions)(plugin, target, old)
    lines = [line for change in changes for line in (
        f"{change.past if yes else f'would {change.verb}'} {change.what}", *(f"    {text}" for text in change.details))]
    lines = [*(lines or [f"{title}: nothing is installed"]), *after]
    with contextlib.ExitStack() as undo:
        if yes and not uninstall and not target.exists():
            undo.callback(startup.remove_folder, target)
        for change in changes if yes else ():
            change.make()
        undo.pop_all()
    if yes and not uninstall:
        lines.append(f"to undo this: {_command(viewer, folder, uninstall=True)}")
    elif changes and not yes:
        lines.append(f"nothing has been done; to do it: {_command(viewer, folder, uninstall)}")
    return Installation(viewer=viewer, folder=target, done=yes, uninstalled=yes and uninstall, startup=file,
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


class _Change(NamedTuple):
    """A change of files: what is said of it when it has been made and before, what it changes, and its function."""

    past: str
    verb: str
    what: str
    make: Callable[[], None]
    details: Sequence[str] = ()


def _removal(target: Path) -> _Change:
    return _Change("removed", "remove", str(target), partial(startup.remove_folder, target))


def _changes_of_page(target: Path, uninstall: bool) -> list[_Change]:
    """Return the changes for 3Dmol.js, in the folder that the page searches."""
    if uninstall:
        return [_removal(target)] if target.exists() else []
    return [_Change("downloaded", "download", f"{page_script.ARCHIVE} to {target}",
                    partial(page_script.download, target))]


def _additions(plugin: ViewerInstallation, target: Path, old: bytes | None) -> tuple[list[_Change], list[str]]:
    """Return the changes that install a plugin, and lines for the user."""
    changes = [_Change("wrote", "write", f"{target}: {', '.join(plugin.contents)}",
                       partial(startup.put_folder, target, plugin.contents))]
    if plugin.startup is None:
        return changes, plugin.after
    new = startup.with_block(old, plugin.lines, plugin.startup, target)
    if new == old:
        return changes, [f"{plugin.startup}: loads it already", *plugin.after]
    return [*changes, _Change("added", "add", f"to {plugin.startup}:", partial(startup.replace, plugin.startup, new),
                              plugin.lines)], plugin.after


def _removals(plugin: ViewerInstallation, target: Path, old: bytes | None) -> tuple[list[_Change], list[str]]:
    """Return the changes that remove a plugin, and lines for the user."""
    changes = []
    if plugin.startup is not None and startup.find_block(old, plugin.startup) is not None:
        new = startup.without_block(old, plugin.startup)
        what = "the file, which was made for it" if new is None else "its lines"
        changes.append(_Change("removed", "remove", f"{what}: {plugin.startup}",
                               partial(startup.replace, plugin.startup, new)))
    return [*changes, *([_removal(target)] if plugin.contains_plugin(target) else [])], plugin.undone


command = Command.of(install, unattended=False, examples=(
    "install pymol",
    "install page --yes",
))
