"""The registry's commands as tools of the Model Context Protocol, for agents that work with structures.

``tools.py`` makes a tool of each command's declaration, ``confined.py`` runs one command in a process of its own, which
cannot leave a folder, ``server.py`` answers a client by both.
"""


def register() -> None:
    """Register the command ``mcp``; called through the entry point in setup.cfg."""
    from vmdpotential import registry

    registry.register("command", "mcp", f"{__name__}.command:command")
