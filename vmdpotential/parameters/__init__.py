"""Parameters of commands, declared once as annotations and used by every interface.

A command is a function whose parameters are annotated with a type and an :class:`Option`::

    def average(
        structure: Annotated[Path, Option("structure file", positional=True)],
        spacing: Annotated[float, Option("distance of lattice points", unit="A", above=0)] = 0.5,
    ) -> Report: ...

Options that several commands share are the fields of a frozen dataclass, annotated in the same way::

    @dataclass(frozen=True)
    class GridOptions:
        spacing: Annotated[float, Option("distance between grid points", unit="A", above=0)] = 0.5
        padding: Annotated[float, Option("margin around the atoms", unit="A", low=0)] = 10.0

    def orbital(file: Annotated[Path, ...], grid: GridOptions = GridOptions(spacing=0.2)) -> Report: ...

The command then has the parameters ``spacing`` and ``padding``, with the defaults of the given instance, and receives
them as one object. Fields without an :class:`Option` are not parameters of the command.

The shell's options, PyMOL's arguments and help, and the dialogs of viewers are generated from these declarations;
values are strings or Python objects, and are checked here, once.
"""

from vmdpotential.parameters.command import (
    Command,
    Drawing,
    check_output,
    reading,
    result_is_used,
    returning,
    setting,
    warn_unused,
)
from vmdpotential.parameters.option import (
    CheckedOptions,
    Option,
    Parameter,
    Without,
    by_own_names,
    changed,
    documented,
    fields_of,
    items,
    other_names,
    parameters_of,
    parse_numbers,
    takes_aliases,
    takes_fields,
)
from vmdpotential.parameters.report import Report, Rows, written_out

__all__ = ["CheckedOptions", "Command", "Drawing", "Option", "Parameter", "Report", "Rows", "Without", "by_own_names",
           "changed", "check_output", "documented", "fields_of", "items", "other_names", "parameters_of",
           "parse_numbers", "reading", "result_is_used", "returning", "setting", "takes_aliases", "takes_fields",
           "warn_unused", "written_out"]
