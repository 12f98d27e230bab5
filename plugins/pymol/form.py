"""The page of one command in the dialog: a field for each argument, made from its declaration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pymol.Qt import QtCore, QtWidgets

from vmdpotential.frontend.adapters import default_name, role
from vmdpotential.parameters import Command, Parameter

from . import arguments


class Form(QtWidgets.QWidget):  # type: ignore[misc]
    """Fields for the arguments of a command; `fields` are the widgets by the arguments' names."""

    def __init__(self, cmd: Any, command: Command) -> None:
        super().__init__()
        self.cmd, self.command = cmd, command
        self.fields: dict[str, Any] = {}
        layout = QtWidgets.QGridLayout(self)
        title = QtWidgets.QLabel(command.summary + ".")
        title.setToolTip(command.description)
        title.setWordWrap(True)
        layout.addWidget(title, 0, 0, 1, 3)
        for row, (argument, parameter) in enumerate(arguments.arguments(command).items(), 1):
            field = self._make(parameter)
            help_ = QtWidgets.QLabel(arguments.describe(parameter))
            help_.setWordWrap(True)
            help_.setStyleSheet("color: gray")
            name = QtWidgets.QLabel(argument.replace("_", " "))
            name.setBuddy(field)
            field.setObjectName(argument)
            field.setToolTip(help_.text())
            field.setAccessibleName(argument.replace("_", " "))
            field.setAccessibleDescription(help_.text())
            self.fields[argument] = field
            layout.addWidget(name, row, 0)
            layout.addLayout(self._with_button(field, argument), row, 1) if _is_file(parameter) else layout.addWidget(
                field, row, 1)
            layout.addWidget(help_, row, 2)
        layout.setColumnStretch(1, 2)
        layout.setColumnStretch(2, 3)
        layout.setRowStretch(layout.rowCount(), 1)
        self.refresh()

    def _make(self, parameter: Parameter | None) -> Any:
        """Return the widget for a parameter, with its default in it."""
        if parameter is None:
            field = QtWidgets.QLineEdit()
            field.setPlaceholderText(default_name(self.command))
            return field
        default, allowed = arguments.default_text(parameter), parameter.option.shown()
        if parameter.type is bool:
            field = QtWidgets.QCheckBox()
            field.setChecked(default == "yes")
        elif role(parameter):
            field = QtWidgets.QComboBox()
            field.setEditable(True)
            field.setInsertPolicy(QtWidgets.QComboBox.InsertPolicy.NoInsert)
            field.setEditText(default)
        elif allowed:
            field = QtWidgets.QComboBox()
            field.addItems([*([""] if parameter.optional else []), *allowed])
            field.setCurrentText(default)
        else:
            field = QtWidgets.QLineEdit(default)
        field.setMinimumWidth(130)
        return field

    def _with_button(self, field: Any, argument: str) -> Any:
        """Return a layout of a file's field and a button that chooses the file."""
        button = QtWidgets.QToolButton()
        button.setText("...")
        button.setToolTip("Choose a file")
        button.clicked.connect(lambda: self._choose_file(field, argument))
        row = QtWidgets.QHBoxLayout()
        row.addWidget(field)
        row.addWidget(button)
        return row

    def _choose_file(self, field: Any, argument: str) -> None:
        ask = (QtWidgets.QFileDialog.getSaveFileName if argument == "output"
               else QtWidgets.QFileDialog.getOpenFileName)
        path = ask(self, argument, str(Path(field.text()).parent) if field.text() else "")[0]
        if path:
            field.setText(path)

    def refresh(self) -> None:
        """Offer the selections and maps that the session has now; what was entered stays."""
        objects = self.cmd.get_names("public_objects")
        maps = [name for name in objects if self.cmd.get_type(name) == "object:map"]
        molecules = [name for name in objects if self.cmd.get_type(name) == "object:molecule"]
        choices = {"structure": ["all", *molecules, *self.cmd.get_names("public_selections")], "map": maps}
        for argument, parameter in arguments.arguments(self.command).items():
            offered = choices.get(role(parameter))
            field = self.fields[argument]
            if offered is None or [field.itemText(n) for n in range(field.count())] == offered:
                continue
            text = field.currentText()
            field.clear()
            field.addItems(offered)
            needed = parameter is not None and parameter.required
            field.setEditText(text or (maps[-1] if needed and maps and role(parameter) == "map" else ""))

    def given(self) -> dict[str, str]:
        """Return what the fields say, as text by the arguments' names."""
        found = {}
        for argument, field in self.fields.items():
            if isinstance(field, QtWidgets.QCheckBox):
                found[argument] = "yes" if field.isChecked() else "no"
            else:
                found[argument] = (field.currentText() if isinstance(field, QtWidgets.QComboBox) else field.text())
        return found

    def scrolled(self) -> Any:
        """Return the form in an area that scrolls."""
        area = QtWidgets.QScrollArea()
        area.setWidget(self)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(QtCore.Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFrameShape(QtWidgets.QFrame.Shape.NoFrame)
        return area


def _is_file(parameter: Parameter | None) -> bool:
    return parameter is not None and parameter.type is Path and not role(parameter) and not parameter.several
