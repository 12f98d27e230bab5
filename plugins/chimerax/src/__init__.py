"""Electrostatic potential maps, ion placement and slice images inside ChimeraX.

The bundle adds ``potential map``, ``potential live``, ``potential ionize`` and others; ``usage potential map``
lists the keywords of a command. The commands are those of the package vmdpotential, which is imported when one of
them is used for the first time.
"""

from __future__ import annotations

from typing import Any

from chimerax.core.toolshed import BundleAPI


class _API(BundleAPI):  # type: ignore[misc]
    api_version = 1

    @staticmethod
    def register_command(bundle_info: Any, command_info: Any, logger: Any) -> None:
        """Register a command; ChimeraX calls this when the command or its help is used for the first time."""
        try:
            from . import cmd
        except ImportError as error:  # the command raises it, as ChimeraX shows a failed registration as a bug
            from . import missing

            missing.register(command_info.name, command_info.synopsis, error, logger)
        else:
            cmd.register(command_info.name, [command.name for command in bundle_info.commands], logger)

    @staticmethod
    def start_tool(session: Any, bundle_info: Any, tool_info: Any) -> Any:
        """Open the dialog; ChimeraX calls this for the entry in its menu of tools."""
        from chimerax.core.errors import UserError

        try:
            from .tool import Potential
        except ImportError as error:
            from . import missing

            raise UserError(f"{tool_info.name}: {missing.describe(error)}") from error
        return Potential(session, tool_info.name)

    @staticmethod
    def get_class(name: str) -> Any:
        """Return a class whose objects are in a session file; ChimeraX calls this when it saves or opens one."""
        from . import session

        return getattr(session, name, None)


bundle_api = _API()
