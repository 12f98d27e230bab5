"""The objects that commands made in a PyMOL session, and how a placement of ions is undone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vmdpotential.errors import TaskError, UsageError


@dataclass(frozen=True)
class ObjectRecord:
    """An object that a command made: the header of its map (else empty), and its fingerprint at that time."""

    header: Mapping[str, str]
    fingerprint: tuple[Any, ...]


@dataclass(frozen=True)
class Step:
    """What undoes a run: the names it made, which objects were shown, and objects of ours that it replaced."""

    names: tuple[str, ...]
    shown: tuple[str, ...]
    replaced: Mapping[str, ObjectRecord]
    session: Any = None


@dataclass
class Session:
    """The objects that were made in one PyMOL; an object that the user has changed since is the user's."""

    cmd: Any
    records: dict[str, ObjectRecord] = field(default_factory=dict)
    placements: list[Step] = field(default_factory=list)
    dialog: Any = None
    live: Any = None
    #: Number of the orbital that was drawn last.
    orbital: int | None = None
    #: Objects whose water was hidden with their first surface.
    without_water: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, cmd: Any) -> Session:
        """Return that of a PyMOL, kept on its cmd module or instance."""
        if not hasattr(cmd, "_vmdpotential"):
            cmd._vmdpotential = cls(cmd)
        session: Session = cmd._vmdpotential
        return session

    def end_live(self) -> str:
        """End the live map and return the line for the user.

        Raises
        ------
        TaskError
            When there is none.
        """
        live, self.live = self.live, None
        if live is None:
            raise TaskError("there is no live map")
        return str(live.stop())

    def add(self, name: str, header: Mapping[str, str]) -> None:
        """Note that an object was made."""
        self.records[name] = ObjectRecord(header, self._fingerprint(name))

    def is_ours(self, name: str) -> bool:
        """Return whether an object is there, as it was made here."""
        record = self.records.get(name)
        return (record is not None and name in self.cmd.get_names("all")
                and record.fingerprint == self._fingerprint(name))

    def header(self, name: str) -> Mapping[str, str]:
        """Return the header of a map that was made here, empty for another."""
        return self.records[name].header if self.is_ours(name) else {}

    def check_free(self, names: Sequence[str]) -> None:
        """Refuse a run, called as the first of the names, that would replace objects of the user's.

        Raises
        ------
        UsageError
        """
        for name in names:
            if name in self.cmd.get_names("all") and not self.is_ours(name):
                raise UsageError("name", f"the object {name} exists already, and was not made by this plugin",
                                 "choose another name", value=names[0])

    def start(self, names: Sequence[str]) -> Step:
        """Remember the session as it is before a run that replaces these objects."""
        present = self.cmd.get_names("all")
        replaced = {name: self.records[name] for name in names if name in present and name in self.records}
        return Step(tuple(names), tuple(self.cmd.get_names("all", enabled_only=1)), replaced, self._saved(replaced))

    def revert(self, step: Step) -> list[str]:
        """Delete the objects of a run, restore those it replaced and hid; return the names that were deleted."""
        deleted = [name for name in step.names if self.is_ours(name)]
        for name in deleted:
            self.cmd.delete(name)
        for name in step.names:
            self.records.pop(name, None)
        if step.session is not None and not set(step.replaced) & set(self.cmd.get_names("all")):
            self.cmd.set_session(step.session, partial=1, quiet=1)
            self.records.update(step.replaced)
        for name in set(step.shown) & set(self.cmd.get_names("all")):
            self.cmd.enable(name)
        return deleted

    def undo(self) -> str:
        """Undo the last placement of ions and return the line for the user.

        Raises
        ------
        TaskError
            When there is none.
        """
        if not self.placements:
            raise TaskError("there is no placement of ions to undo")
        step = self.placements.pop()
        changed = [name for name in step.names if name in self.cmd.get_names("all") and not self.is_ours(name)]
        deleted = self.revert(step)
        text = f"deleted {' and '.join(deleted)}" if deleted else "the objects had been deleted already"
        if step.session is not None:
            text += f"; restored {' and '.join(step.replaced)}"
        if changed:
            text += f"; kept {' and '.join(changed)}, changed since"
        return text

    def _saved(self, names: Iterable[str]) -> Any:
        """Return PyMOL's session with these objects only, None for none."""
        requested = " ".join(names)
        return self.cmd.get_session(requested, partial=1, quiet=1) if requested else None

    def _fingerprint(self, name: str) -> tuple[Any, ...]:
        """Return data by which an object differs from another one of the same name."""
        kind = self.cmd.get_type(name)
        if kind == "object:molecule":
            coordinates = self.cmd.get_coords(f"%{name}", 0)
            total = () if coordinates is None else tuple(coordinates.sum(0, dtype="float64").round(2).tolist())
            return kind, self.cmd.count_atoms(f"%{name}"), total
        if kind == "object:map":
            return kind, self.cmd.get_volume_field(name).shape, tuple(map(tuple, self.cmd.get_extent(name)))
        return (kind,)
