"""What the bundle knows of models beyond ChimeraX itself, kept in ChimeraX's session files."""

from __future__ import annotations

from typing import Any

from chimerax.core.models import Model
from chimerax.core.state import StateManager

#: Attributes of models that session files keep: unit and medium of a map, and whether water has been hidden.
_KEPT = ("vmdpotential_header", "vmdpotential_without_water")


class KeptAttributes(StateManager):  # type: ignore[misc]
    """Saves and restores attributes of models that ChimeraX does not know.

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

    def include_state(self) -> bool:
        """Return whether there is something to save; without it, the file can be opened without this bundle."""
        return bool(self._held())

    def take_snapshot(self, session: Any, flags: int) -> dict[str, Any]:
        """Return the data for a session file."""
        return {"version": 1, "models": self._held()}

    @staticmethod
    def restore_snapshot(session: Any, data: dict[str, Any]) -> KeptAttributes:
        """Set the attributes of restored models; a map whose file is missing is None."""
        for model, values in data["models"]:
            for name, value in values.items() if model is not None else ():
                setattr(model, name, value)
        return keep_attributes(session)

    def reset_state(self, session: Any) -> None:
        """Do nothing, because the attributes are closed with their models."""


def keep_attributes(session: Any) -> KeptAttributes:
    """Return the session's object that saves attributes of models, made at its first use."""
    if not hasattr(session, "vmdpotential_kept"):
        session.vmdpotential_kept = KeptAttributes(session)  # ChimeraX registers such an attribute
    kept: KeptAttributes = session.vmdpotential_kept
    return kept
