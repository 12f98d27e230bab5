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
    files_read,
    options_set,
    result_is_used,
    returning_results,
    warn_unused,
)
from vmdpotential.parameters.declared import (
    CheckedOptions,
    WithoutFields,
    change_options,
    document_options,
    fields_of,
    parameters_of,
    takes_aliases,
    takes_fields,
)
from vmdpotential.parameters.option import (
    Option,
    OptionRole,
    Parameter,
    by_own_names,
    other_names,
    parse_items,
    parse_numbers,
    parse_numbers_or_auto,
)
from vmdpotential.parameters.report import Report, ReportRows, written_out

__all__ = [
    "CheckedOptions", "Command", "Drawing", "Option", "OptionRole", "Parameter", "Report", "ReportRows",
    "WithoutFields", "by_own_names", "change_options", "check_output", "document_options", "fields_of",
    "files_read", "options_set", "other_names", "parameters_of", "parse_items", "parse_numbers",
    "parse_numbers_or_auto", "result_is_used", "returning_results", "takes_aliases", "takes_fields", "warn_unused",
    "written_out",
]
