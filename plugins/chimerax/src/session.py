"""What the bundle knows of models beyond ChimeraX itself, and the live map, kept in ChimeraX's session files."""

from __future__ import annotations

from typing import Any

from chimerax.core.models import Model
from chimerax.core.state import StateManager
from chimerax.core.triggerset import DEREGISTER

#: Attributes of models that session files keep: unit and medium of a map, and whether water has been hidden.
_KEPT = ("vmdpotential_header", "vmdpotential_without_water")


class KeptAttributes(StateManager):  # type: ignore[misc]
    """Saves and restores attributes of models that ChimeraX does not know, and the live map.

    Parameters
    ----------
    session : ChimeraX's session
    """

    def __init__(self, session: Any) -> None:
        self.session = session

    def _held(self) -> list[tuple[Any, dict[str, Any]]]:
        found = [(model, {name: getattr(model, name) for name in _KEPT if hasattr(model, name)})
                 for model in self.session.models.list(type=Model)]
        return [(model, values) for model, values in found if values]

    def _live(self) -> dict[str, Any] | None:
        live = getattr(self.session, "vmdpotential_live", None)
        if live is None or not live.running or live.volume.deleted:
            return None
        # what was specified is kept as text, as ChimeraX keeps the atoms only
        inputs = {name: getattr(value, "spec", value) for name, value in live.task.inputs.items()}
        return {"command": live.task.command.name, "inputs": inputs, "map": live.volume}

    def include_state(self) -> bool:
        """Return whether there is something to save; without it, the file can be opened without this bundle."""
        return bool(self._held())

    def take_snapshot(self, session: Any, flags: int) -> dict[str, Any]:
        """Return the data for a session file."""
        return {"version": 1, "models": self._held(), "live": self._live()}

    @staticmethod
    def restore_snapshot(session: Any, data: dict[str, Any]) -> KeptAttributes:
        """Set the attributes of restored models; a map whose file is missing is None."""
        for model, values in data["models"]:
            for name, value in values.items() if model is not None else ():
                setattr(model, name, value)
        if data["live"] is not None and data["live"]["map"] is not None:
            def proceed(*event: Any) -> Any:
                from .task import continue_live

                continue_live(session, **data["live"])
                return DEREGISTER

            session.triggers.add_handler("end restore session", proceed)  # when its atoms are there as well
        return keep_attributes(session)

    def reset_state(self, session: Any) -> None:
        """End the live map; the attributes are closed with their models."""
        from .task import end_live

        end_live(session)


def keep_attributes(session: Any) -> KeptAttributes:
    """Return the session's object that saves attributes of models, made at its first use."""
    if not hasattr(session, "vmdpotential_kept"):
        session.vmdpotential_kept = KeptAttributes(session)  # ChimeraX registers such an attribute
    return session.vmdpotential_kept
