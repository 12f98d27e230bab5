"""What PyMOL's session files keep beside the objects: units and media of maps, and the live map.

The data are plain text and numbers, so that a PyMOL without this plugin opens the files as well.
"""

from __future__ import annotations

from typing import Any

from pymol import CmdException, colorprinting

from vmdpotential import registry
from vmdpotential.errors import VmdpotentialError
from vmdpotential.parameters import Command

from .session import Session
from .task import Task

#: Entry of a session's data.
KEY = "vmdpotential"


def keep_in_sessions(cmd: Any) -> None:
    """Let PyMOL save and restore what it does not know of this plugin's objects."""
    for tasks, function in ((cmd._pymol._session_save_tasks, save_records),
                            (cmd._pymol._session_restore_tasks, restore_records)):
        if function not in tasks:  # the plugin may be loaded again
            tasks.append(function)


def save_records(data: dict[str, Any], _self: Any) -> int:
    """Add the headers of maps and the live map to a session's data; a part of a session has its objects only."""
    session = Session.of(_self)
    names = {entry[0] for entry in data["names"] if entry}
    kept = {"records": {name: dict(record.header) for name, record in session.records.items()
                        if name in names and session.is_unchanged_result(name)},
            "without_water": sorted(session.without_water & names)}
    live = session.live
    if _is_whole(data) and live is not None and live.running:
        kept["live"] = {"command": live.task.command.name,
                        "inputs": {name: str(value) for name, value in live.task.inputs.items()}}
    if any(kept.values()):
        data[KEY] = kept
    return 1


def restore_records(data: dict[str, Any], _self: Any) -> int:
    """Take the headers of maps from a session's data, and continue its live map."""
    session, kept = Session.of(_self), data.get(KEY, {})
    if _is_whole(data):
        if session.live is not None:
            session.end_live()
        session.forget()
    names = _self.get_names("all")
    for name, header in kept.get("records", {}).items():
        if name in names:
            session.add(name, header)
    session.without_water.update(kept.get("without_water", ()))
    if "live" in kept and _is_whole(data):
        from .live import Live

        try:
            command: Command = registry.get("command", kept["live"]["command"])
            task = Task(_self, command, kept["live"]["inputs"], _warn)
            session.live = Live(task, task.compute(lambda label, fraction: None).objects["live"])
        except (CmdException, VmdpotentialError) as error:
            _warn(f"the live map of the session is not followed: {error}")
    return 1


def _warn(text: str) -> None:
    colorprinting.warning(f" warning: {text}")


def _is_whole(data: dict[str, Any]) -> bool:
    """Return whether a session's data are of everything, not of some objects."""
    return "view" in data
