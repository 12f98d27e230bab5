"""Records of the objects that commands made in a PyMOL session, and undoing placements of ions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vmdpotential.errors import TaskError, UsageError


@dataclass(frozen=True)
class ObjectRecord:
    """An object that a command made: the header of its map (or an empty one), and its fingerprint at that time."""

    header: Mapping[str, str]
    fingerprint: tuple[Any, ...]


@dataclass(frozen=True)
class Step:
    """Data that undo a run: the names of its objects, the objects shown before, and earlier results it replaced."""

    names: tuple[str, ...]
    shown: tuple[str, ...]
    replaced: Mapping[str, ObjectRecord]
    session: Any = None


@dataclass
class Session:
    """The objects that commands made in one PyMOL session, except those that the user has changed since then."""

    cmd: Any
    records: dict[str, ObjectRecord] = field(default_factory=dict)
    placements: list[Step] = field(default_factory=list)
    dialog: Any = None
    live: Any = None
    #: Number of the last drawn orbital.
    orbital: int | None = None
    #: Names of objects whose first surface has been drawn, so that their water is not hidden again.
    without_water: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, cmd: Any) -> Session:
        """Return the session's records, which are an attribute of PyMOL's cmd module or instance."""
        if not hasattr(cmd, "_vmdpotential"):
            cmd._vmdpotential = cls(cmd)
        return cmd._vmdpotential

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

    def forget(self) -> None:
        """Forget all objects, when another session replaces them."""
        self.records.clear()
        self.placements.clear()
        self.without_water.clear()
        self.orbital = None

    def add(self, name: str, header: Mapping[str, str]) -> None:
        """Record that an object was made."""
        self.records[name] = ObjectRecord(header, self._fingerprint(name))

    def is_unchanged_result(self, name: str) -> bool:
        """Return whether an object exists, was made by a command, and has not been changed."""
        record = self.records.get(name)
        return (record is not None and name in self.cmd.get_names("all")
                and record.fingerprint == self._fingerprint(name))

    def header(self, name: str) -> Mapping[str, str]:
        """Return the header of a map that a command made, an empty one for other maps."""
        return self.records[name].header if self.is_unchanged_result(name) else {}

    def check_free(self, names: Sequence[str]) -> None:
        """Check that a run, whose name is the first of `names`, would not replace objects of the user.

        Raises
        ------
        UsageError
            When an object with one of the names exists that was not made by a command.
        """
        for name in names:
            if name in self.cmd.get_names("all") and not self.is_unchanged_result(name):
                raise UsageError("name", f"the object {name} exists already, and was not made by this plugin",
                                 "choose another name", value=names[0])

    def start(self, names: Sequence[str]) -> Step:
        """Return the data that undo a run which makes or replaces the named objects."""
        present = self.cmd.get_names("all")
        replaced = {name: self.records[name] for name in names if name in present and name in self.records}
        saved = self.cmd.get_session(" ".join(replaced), partial=1, quiet=1) if replaced else None
        return Step(tuple(names), tuple(self.cmd.get_names("all", enabled_only=1)), replaced, saved)

    def revert(self, step: Step) -> list[str]:
        """Delete the objects of a run, restore those it replaced or hid; return the deleted names without groups."""
        made = [name for name in step.names if self.is_unchanged_result(name)]
        deleted = [name for name in made if not self._is_group(name)]
        for name in made:
            self.delete(name)
        for name in step.names:
            self.records.pop(name, None)
        if step.session is not None and not set(step.replaced) & set(self.cmd.get_names("all")):
            self.cmd.set_session(step.session, partial=1, quiet=1)
            self.records.update(step.replaced)
        for name in set(step.shown) & set(self.cmd.get_names("all")):
            self.cmd.enable(name)
        return deleted

    def delete(self, name: str) -> None:
        """Delete an object; the members of a group are kept, as the user may have put others into it."""
        if self._is_group(name):
            self.cmd.group(name, "", "excise")
        else:
            self.cmd.delete(name)

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
        changed = [name for name in step.names
                   if name in self.cmd.get_names("all") and not self.is_unchanged_result(name)]
        deleted = self.revert(step)
        text = f"deleted {' and '.join(deleted)}" if deleted else "the objects have already been deleted"
        if step.session is not None:
            text += f"; restored {' and '.join(name for name in step.replaced if not self._is_group(name))}"
        if changed:
            text += f"; kept {' and '.join(changed)}, changed since"
        return text

    def _is_group(self, name: str) -> bool:
        return str(self.cmd.get_type(name)) == "object:group"

    def _fingerprint(self, name: str) -> tuple[Any, ...]:
        """Return data that distinguish an object from another one with the same name."""
        kind = self.cmd.get_type(name)
        if kind == "object:molecule":
            coordinates = self.cmd.get_coords(f"%{name}", 0)
            total = () if coordinates is None else tuple(coordinates.sum(0, dtype="float64").round(2).tolist())
            return kind, self.cmd.count_atoms(f"%{name}"), total
        if kind == "object:map":
            return kind, self.cmd.get_volume_field(name).shape, tuple(map(tuple, self.cmd.get_extent(name)))
        return (kind,)
