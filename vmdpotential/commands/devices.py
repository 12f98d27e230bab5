"""The command ``devices``."""

from __future__ import annotations

from typing import Any

from vmdpotential import registry
from vmdpotential.errors import BackendError, in_words
from vmdpotential.parameters import Command, Report


def devices() -> Report:
    """List what can compute here: each engine with its hardware, or why it does not work.

    The last line says which engine is taken unless one is asked for.
    """
    from vmdpotential.engines import automatic, get_engine, reason

    lines, data = [], {}
    for name in registry.available("engine"):
        try:
            found = get_engine(name).describe()
            data[name] = {"works": True, "hardware": found}
            lines.append(f"{name}: {found}")
        except BackendError as error:
            why = error.message(in_words)
            data[name] = {"works": False, "reason": why}
            lines.append(f"{name}: does not work: {why}")
    chosen = automatic()
    lines.append(f"auto: {chosen}" + (f", because {reason()}" if reason() else ""))
    report: dict[str, Any] = {"engines": data, "auto": chosen, "reason": reason()}
    return Report(lines, report)


command = Command.of(devices)
