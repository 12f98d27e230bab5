"""What the plugins of viewers share, and the command ``install``, which installs them."""

from __future__ import annotations


def register() -> None:
    """Register the command and the program's answers to VMD's plugin."""
    from vmdpotential import registry

    registry.register("command", "install", f"{__name__}.install:command")
    registry.register("answer", "tcl", f"{__name__}.vmd:tcl_answer")
    registry.register("answer", "tcl-options", f"{__name__}.display:vmd_options")
    registry.register("answer", "declarations", f"{__name__}.vmd:command_declarations")
