"""The page of one command in a dialog: a field for each parameter, made from its declaration, in any Qt.

Often used parameters are shown at once; the others are folded under "Advanced".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vmdpotential.frontend.declarations import in_front
from vmdpotential.parameters import Command, Parameter

from .adapters import default_text, describe_parameter, object_role

#: Largest width of a field, pixels.
FIELD = 180

#: Least width of a field, in a narrow window such as a panel next to the molecules, pixels.
NARROW = 110


@dataclass(frozen=True)
class FormEntry:
    """A parameter of a command as a viewer offers it.

    Parameters
    ----------
    name : str
        Name in the viewer.
    parameter : Parameter or None
        None for the name of the objects that the command makes.
    default : str
        Default as text, empty for none.
    help : str
        One line.
    front : bool
        Whether it is shown at once.
    """

    name: str
    parameter: Parameter | None
    default: str
    help: str
    front: bool


def form_entries(command: Command, arguments: Mapping[str, Parameter | None],
                 shown: Sequence[Parameter]) -> list[FormEntry]:
    """Return the fields of a command's form: inputs and display first, then other important ones, then the rest.

    Parameters
    ----------
    command : Command
    arguments : mapping
        The parameters by their names in the viewer; None for the name of the new objects.
    shown : sequence of Parameter
        Those of the display.
    """
    fields = [FormEntry(name, parameter, default_text(parameter), describe_parameter(parameter), (
        parameter is not None and (parameter.option.front if parameter in shown else in_front(command, parameter))))
        for name, parameter in arguments.items()]
    return sorted(fields, key=lambda entry: (
        not entry.front, entry.parameter is None or not entry.parameter.required, entry.parameter not in shown))


class CommandForm:
    """Fields for the parameters of a command.

    Parameters
    ----------
    qt : module with QtCore and QtWidgets
    command : Command
    entries : sequence of Entry
        Parameters in the order of their fields.
    choices : function
        Returns the names of the viewer's current objects for a role, ``structure`` or ``map``.

    Attributes
    ----------
    widget : QWidget
    fields : dict
        Widgets by the names of the entries.
    fold : QToolButton
        Button that unfolds the advanced parameters.
    """

    def __init__(self, qt: Any, command: Command, entries: Sequence[FormEntry],
                 choices: Callable[[str], Sequence[str]]) -> None:
        self.qt, self.command, self.entries, self._choices = qt, command, entries, choices
        self.fields: dict[str, Any] = {}
        widgets = qt.QtWidgets
        self.widget = widgets.QWidget()
        letters = self.widget.fontMetrics()
        self._name_width = max(90, *(letters.horizontalAdvance(_words(entry)) for entry in entries))
        layout = widgets.QVBoxLayout(self.widget)
        title = widgets.QLabel(command.summary + ".")
        title.setToolTip(command.description)
        title.setWordWrap(True)
        layout.addWidget(title)
        layout.addLayout(self._grid([entry for entry in entries if entry.front]))
        self.fold = widgets.QToolButton()
        self.fold.setText("Advanced")
        self.fold.setCheckable(True)
        self.fold.setAutoRaise(True)
        self.fold.setToolButtonStyle(qt.QtCore.Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        folded = [entry for entry in entries if not entry.front]
        self.folded = widgets.QWidget()
        self.folded.setLayout(self._grid(folded))
        self.folded.layout().setContentsMargins(0, 0, 0, 0)
        self.fold.toggled.connect(self._unfold)
        self._unfold(False)
        self.fold.setVisible(bool(folded))
        layout.addWidget(self.fold)
        layout.addWidget(self.folded)
        layout.addStretch(1)
        self.refresh()

    def _unfold(self, shown: bool) -> None:
        arrow = self.qt.QtCore.Qt.ArrowType
        self.fold.setArrowType(arrow.DownArrow if shown else arrow.RightArrow)
        self.folded.setVisible(shown)

    def _grid(self, entries: Sequence[FormEntry]) -> Any:
        """Return a layout of rows: name, field, help."""
        widgets = self.qt.QtWidgets
        grid = widgets.QGridLayout()
        for row, entry in enumerate(entries):
            words = _words(entry)
            field = self._make(entry)
            help_ = widgets.QLabel(entry.help)
            help_.setTextFormat(self.qt.QtCore.Qt.TextFormat.PlainText)
            help_.setWordWrap(True)
            help_.setStyleSheet(f"color: {self._secondary_colour()}")
            name = widgets.QLabel(words)
            name.setMinimumWidth(self._name_width)
            name.setBuddy(field)
            field.setObjectName(entry.name)
            field.setToolTip(entry.help)
            field.setAccessibleName(words)
            field.setAccessibleDescription(entry.help)
            self.fields[entry.name] = field
            grid.addWidget(name, row, 0)
            if _is_file(entry.parameter):
                grid.addLayout(self._with_button(field, entry), row, 1)
            else:
                grid.addWidget(field, row, 1)
            grid.addWidget(help_, row, 2)
        # in a narrow window fields become narrower, because their help would otherwise take many lines
        grid.setColumnStretch(1, 2)
        grid.setColumnStretch(2, 3)
        return grid

    def _secondary_colour(self) -> str:
        """Return the colour of help, between those of text and background, in light and dark themes."""
        palette = self.widget.palette()
        text, ground = (brush.color().getRgb()[:3] for brush in (palette.windowText(), palette.window()))
        return "#" + "".join(f"{round(0.7 * a + 0.3 * b):02x}" for a, b in zip(text, ground, strict=True))

    def _make(self, entry: FormEntry) -> Any:
        """Return the widget for a parameter, set to its default."""
        widgets, parameter = self.qt.QtWidgets, entry.parameter
        if parameter is None:
            field = widgets.QLineEdit()
            field.setPlaceholderText(self.command.makes)
        elif parameter.type is bool:
            field = widgets.QCheckBox()
            field.setChecked(entry.default == "yes")
        elif object_role(parameter):
            field = widgets.QComboBox()
            field.setEditable(True)
            field.setInsertPolicy(widgets.QComboBox.InsertPolicy.NoInsert)
            field.setEditText(entry.default)
        elif allowed := parameter.option.shown():
            field = widgets.QComboBox()
            field.addItems([*([""] if parameter.optional else []), *allowed])
            if parameter.several:  # several values are typed; the list only offers single ones
                field.setEditable(True)
                field.setInsertPolicy(widgets.QComboBox.InsertPolicy.NoInsert)
            field.setCurrentText(entry.default)
        else:
            field = widgets.QLineEdit(entry.default)
        field.setMinimumWidth(NARROW)
        field.setMaximumWidth(FIELD)
        return field

    def _with_button(self, field: Any, entry: FormEntry) -> Any:
        """Return a layout of a file's field and a button that opens a file dialog."""
        button = self.qt.QtWidgets.QToolButton()
        button.setText("...")
        button_width = button.sizeHint().width() + 6
        field.setMinimumWidth(NARROW - button_width)
        field.setMaximumWidth(FIELD - button_width)
        button.setToolTip("Choose a file")
        button.clicked.connect(lambda: self._choose_file(field, entry))
        row = self.qt.QtWidgets.QHBoxLayout()
        row.setSpacing(6)
        row.addWidget(field)
        row.addWidget(button)
        return row

    def _choose_file(self, field: Any, entry: FormEntry) -> None:
        dialog = self.qt.QtWidgets.QFileDialog
        written = entry.parameter is not None and entry.parameter.option.written
        ask = dialog.getSaveFileName if written else dialog.getOpenFileName
        path = ask(self.widget, entry.name, str(Path(field.text()).parent) if field.text() else "")[0]
        if path:
            field.setText(path)

    def refresh(self) -> None:
        """Offer the viewer's current selections and maps; entered text is kept."""
        for entry in self.entries:
            if not (kind := object_role(entry.parameter)):
                continue
            offered, field = list(self._choices(kind)), self.fields[entry.name]
            if [field.itemText(n) for n in range(field.count())] == offered:
                continue
            text = field.currentText()
            field.clear()
            field.addItems(offered)
            needs_map = entry.parameter is not None and entry.parameter.required and kind == "map" and offered
            field.setEditText(text or (offered[-1] if needs_map else ""))

    def texts(self) -> dict[str, str]:
        """Return the text of the fields by the names of the entries, in their order."""
        result = {}
        for entry in self.entries:
            field = self.fields[entry.name]
            if isinstance(field, self.qt.QtWidgets.QCheckBox):
                result[entry.name] = "yes" if field.isChecked() else "no"
            else:
                is_combo_box = isinstance(field, self.qt.QtWidgets.QComboBox)
                result[entry.name] = field.currentText() if is_combo_box else field.text()
        return result

    def scrolled(self) -> Any:
        """Return the form in an area that scrolls."""
        area = self.qt.QtWidgets.QScrollArea()
        area.setWidget(self.widget)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(self.qt.QtCore.Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFrameShape(self.qt.QtWidgets.QFrame.Shape.NoFrame)
        return area


def _words(entry: FormEntry) -> str:
    return entry.name.replace("_", " ").strip()


def _is_file(parameter: Parameter | None) -> bool:
    return parameter is not None and parameter.type is Path and not object_role(parameter) and not parameter.several
