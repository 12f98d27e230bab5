"""Electrostatic potential maps, ion placement and slice images inside ChimeraX.

The bundle adds ``potential map``, ``potential live``, ``potential ionize`` and others; ``usage potential map``
lists what a command takes. The work is done by the package vmdpotential, which is imported when one of
them is used for the first time.
"""

from __future__ import annotations

from typing import Any

from chimerax.core.toolshed import BundleAPI


class _API(BundleAPI):  # type: ignore[misc]
    api_version = 1

    @staticmethod
    def register_command(bundle_info: Any, command_info: Any, logger: Any) -> None:
        """Make a command usable; ChimeraX calls this when it is used or asked about for the first time."""
        try:
            from . import cmd
        except ImportError as error:  # raised by the command, as a failed registration is shown as a bug
            from . import missing

            missing.register(command_info.name, command_info.synopsis, error, logger)
        else:
            cmd.register(command_info.name, [command.name for command in bundle_info.commands], logger)

    @staticmethod
    def start_tool(session: Any, bundle_info: Any, tool_info: Any) -> Any:
        """Open the dialog, which ChimeraX's menu of tools asks for."""
        from chimerax.core.errors import UserError

        try:
            from .tool import Potential
        except ImportError as error:
            from . import missing

            raise UserError(f"{tool_info.name}: {missing.describe(error)}") from error
        return Potential(session, tool_info.name)


bundle_api = _API()
