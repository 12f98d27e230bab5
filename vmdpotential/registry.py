"""Registry of commands, methods, interactions and engines, of this and of other packages.

A name maps to a dotted path ``module:attribute`` that is imported when the name is used, so that
listing costs nothing. Another package adds its own through the entry-point group
``vmdpotential.plugins``: each entry names a function that takes no arguments and calls
:func:`register`. A plugin that fails to load is skipped and listed by :func:`broken`.
"""

from __future__ import annotations

import contextlib
import re
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from vmdpotential.errors import BackendError, UsageError, VmdpotentialError, similar_hint
from vmdpotential.parameters import Command

#: Entry-point group that other packages use.
GROUP = "vmdpotential.plugins"

#: Kinds of objects that can be registered. A ``task`` is a command that is also a function of Python, and a
#: ``function`` is one that is no command; both are names of the package. A ``check`` of `verify` is called with an
#: engine and a seed and returns what it compared, the relative errors and their limits. A ``preparation`` returns a
#: structure with missing atoms and charges, and a ``pka`` the pKa values for it (the plugin preparation has both).
#: A ``structure_reader`` returns the structure of a file; its name is a kind of file
#: (:func:`vmdpotential.io.files.recognise.kind_of`), or the suffix of another one. A ``structure_writer`` is a
#: :class:`vmdpotential.io.structures.StructureWriter`, by the suffix, and a ``map_format`` a
#: :class:`vmdpotential.io.maps.mapformat.MapFormat`; a ``trajectory_format`` is a
#: :class:`vmdpotential.io.trajectories.source.TrajectoryFormat`, and a ``mesh_writer`` writes a coloured surface. A
#: ``parameter_reader`` returns the charges or Lennard-Jones parameters in files (plugin forcefields).
#: An ``answer`` is what viewers read that run the program: `declarations`, `tcl` and `tcl-options` (plugin viewers).
KINDS = ("command", "task", "method", "solver", "sum", "interaction", "pair", "engine", "check", "preparation", "pka",
         "structure_reader", "structure_writer", "map_format", "trajectory_format", "mesh_writer", "parameter_reader",
         "function", "answer")

#: Commands that are also functions of Python, which have the same name.
_TASKS = ("surface", "average")

_OF_FRONTEND = ("plugins", "completion")
_entries: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS} | {
    "command": {
        name: f"vmdpotential.{'frontend' if name in _OF_FRONTEND else 'commands'}.{name}:command"
        for name in ("map", "slice", *_TASKS, "devices", "plugins", "completion", "verify")
    },
    "task": {name: f"vmdpotential.commands.{name}:command" for name in _TASKS},
    "method": {
        name: f"vmdpotential.sums.{name}:METHOD" for name in ("direct", "cutoff", "pme", "ewald")},
    "sum": {name: f"vmdpotential.sums.{name}:prepare" for name in ("cpu", "cuda")},
    "interaction": {
        name: f"vmdpotential.interactions.{name}:INTERACTION"
        for name in ("coulomb", "shifted_coulomb", "screened_coulomb", "distance_dependent", "sigmoidal_dielectric",
                     "reaction_field", "ewald", "gaussian")
    },
    "engine": {name: f"vmdpotential.engines.{name}:ENGINE" for name in ("cpu", "cuda")},
    "structure_reader": {
        **{name: f"vmdpotential.io.structures.{name}:read_{name}" for name in ("pdb", "mmcif", "gro", "pqr")},
        **{name: f"vmdpotential.io.topologies.{name}:read_{name}" for name in ("psf", "prmtop")},
    },
    "structure_writer": {
        **dict.fromkeys((".pdb", ".ent"), "vmdpotential.io.structures.pdbwrite:WRITER"),
        **dict.fromkeys((".cif", ".mmcif"), "vmdpotential.io.structures.mmcif:WRITER"),
        ".pqr": "vmdpotential.io.structures.pqr:WRITER", ".gro": "vmdpotential.io.structures.growrite:WRITER",
    },
    "trajectory_format": {
        **{f".{name}": f"vmdpotential.io.trajectories.formats:{name.upper()}" for name in ("xtc", "trr", "gro", "dcd")},
        **dict.fromkeys((".pdb", ".ent"), "vmdpotential.io.trajectories.formats:PDB"),
        **dict.fromkeys((".cif", ".mmcif", ".pdbx"), "vmdpotential.io.trajectories.formats:MMCIF"),
        "mdanalysis": "vmdpotential.io.trajectories.formats:OTHER",
    },
    "map_format": {
        **dict.fromkeys((".dx", ".dx.gz"), "vmdpotential.io.maps.dx:TEXT"),
        **dict.fromkeys((".mrc", ".map"), "vmdpotential.io.maps.ccp4:MRC"), ".ccp4": "vmdpotential.io.maps.ccp4:CCP4",
        ".npz": "vmdpotential.io.maps.npz:ARCHIVE",
    },
}
#: Plugins of this package, and what they register for the core, by which a missing one is named.
_PROVIDED: dict[str, dict[str, tuple[str, ...]]] = {
    "continuum": {"solver": ("pb",)},
    "forcefields": {
        "structure_reader": ("gromacs-topology", "mdanalysis", "mdanalysis-topology"),
        "structure_writer": (".psf", ".top", ".prmtop", ".parm7", ".parm"),
        "parameter_reader": ("charges", "residue-charges", "prmtop"),
    },
    "formats": {
        "structure_reader": ("amber-coordinates", "cube", "molden"), "structure_writer": (".rst7", ".inpcrd"),
        "map_format": (".cube", ".cub", ".ome.zarr", ".zarr", "autodock"),
        "trajectory_format": (".nc", ".ncdf", ".netcdf", ".ncrst"), "mesh_writer": (".glb", ".ply"),
    },
}
_unlisted: set[tuple[str, str]] = set()
_broken: dict[str, str] = {}
_loaded = False


def register(kind: str, name: str, target: Any, listed: bool = True) -> None:
    """Add an object, or a dotted path ``module:attribute`` to it, under a name.

    With `listed` false it can be used by its name, but the help and the dialogs of most commands do not list it.

    Parameters
    ----------
    kind : str
        Kind of the object, one of :data:`KINDS`.
    name : str
        Name by which options refer to it.
    target : object or str
        The object, or its dotted path.
    listed : bool
        Whether help and dialogs list it.

    Raises
    ------
    UsageError
        When the kind is unknown, the name is taken, or a command is not a
        :class:`~vmdpotential.parameters.Command`.

    Examples
    --------
    >>> coulomb = vp.Interaction("doctest_coulomb", lambda r2, rinv, p: rinv)
    >>> vp.register("interaction", "doctest_coulomb", coulomb, listed=False)
    >>> "doctest_coulomb" in vp.available("interaction")
    True
    """
    if kind not in KINDS:
        raise UsageError("kind", f"choose one of {', '.join(KINDS)}", value=kind)
    kinds = ("command", "task") if kind == "task" else (kind,)
    if name in _entries[kinds[0]]:
        raise UsageError("name", f"a {kinds[0]} of this name is registered already", value=name)
    if not isinstance(target, str):
        _check(kind, name, target)
    for each in kinds:
        _entries[each][name] = target
    if not listed:
        _unlisted.add((kind, name))


def _check(kind: str, name: str, target: Any) -> None:
    if kind in ("command", "task") and not isinstance(target, Command):
        raise UsageError(
            "target", f"the command '{name}' is a {type(target).__name__}", "register Command.of(function)")


def available(kind: str) -> list[str]:
    """Return the names of a kind, those of this package first, in the order in which they were registered.

    Parameters
    ----------
    kind : str
        Kind of the objects, one of :data:`KINDS`.

    Returns
    -------
    list of str
        Names, as they are used in options.

    Raises
    ------
    KeyError
        For an unknown kind.

    Examples
    --------
    >>> "pme" in vp.available("method")
    True
    """
    _load_plugins()
    return list(_entries[kind])


def known(kind: str) -> list[str]:
    """Return the names of a kind, and those that plugins of this package would register if they were not missing."""
    return list(dict.fromkeys([*available(kind), *(name for provided in _PROVIDED.values()
                                                   for name in provided.get(kind, ()))]))


def listed(kind: str) -> list[str]:
    """Return the names of a kind that help and dialogs list."""
    return [name for name in available(kind) if (kind, name) not in _unlisted]


def path(kind: str, name: str) -> str:
    """Return the dotted path of an object that has not been imported, or nothing."""
    target = _entries[kind][name]
    return target if isinstance(target, str) else ""


def get(kind: str, name: str) -> Any:
    """Return the object with a name, which is imported if needed.

    Raises
    ------
    UsageError
        When there is no such name; the message lists the known ones.
    BackendError
        When an object of a plugin cannot be imported; :func:`broken` lists it from then on.
    """
    _load_plugins()
    if name not in _entries[kind]:
        for plugin, provided in _PROVIDED.items():
            if name in provided.get(kind, ()):
                reason = next((text for entry, text in _broken.items() if entry.split()[0] == plugin), "not installed")
                raise BackendError(f"the plugin {plugin}, which has the {kind.replace('_', ' ')} '{name}', cannot be "
                                   f"loaded ({reason})", "repair the installation of vmdpotential")
        raise UsageError(kind, f"is unknown{similar_hint(name, available(kind)) or _described(kind, name)}",
                         f"choose one of {', '.join(listed(kind))}", value=name)
    target = _entries[kind][name]
    if isinstance(target, str):
        module, _, attribute = target.partition(":")
        try:
            result = getattr(import_module(module), attribute)
            _check(kind, name, result)
        except (Exception, SystemExit) as error:  # foreign code may raise anything
            own = module.startswith(f"{GROUP}.")
            if (module.startswith("vmdpotential.") and not own) or (own and isinstance(error, VmdpotentialError)):
                raise
            reason = _broken[f"{name} ({target})"] = f"{type(error).__name__}: {error}"
            owner = f" of the plugin {module.split('.')[2]}" if own else ""
            raise BackendError(f"the {kind.replace('_', ' ')} '{name}'{owner} cannot be loaded ({reason})",
                               "repair or remove its package") from error
        target = _entries[kind][name] = result
    return target


def _described(kind: str, word: str) -> str:
    """Return `` (did you mean 'slice'?)`` for a word that resembles one of the summary of a command."""
    for name in available(kind) if kind == "command" else ():
        with contextlib.suppress(BackendError):
            words = re.findall(r"\w{4,}", get(kind, name).summary.lower())
            if word in words or similar_hint(word, words):
                return f" (did you mean '{name}'?)"
    return ""


def broken(commands: bool = False) -> dict[str, str]:
    """Return the plugins that could not be loaded, as ``{entry point: error}``.

    With `commands`, those of other packages are imported first, so that broken ones are among them.
    """
    _load_plugins()
    if commands:
        for name, target in list(_entries["command"].items()):
            if isinstance(target, str) and not target.startswith("vmdpotential."):
                with contextlib.suppress(BackendError):
                    get("command", name)
    return dict(_broken)


def _load_plugins() -> None:
    global _loaded
    if _loaded:
        return
    _loaded = True
    for entry in entry_points(group=GROUP):
        try:
            entry.load()()
        except (Exception, SystemExit) as error:  # a foreign plugin may raise anything, and must not stop the rest
            _broken[f"{entry.name} ({entry.value})"] = f"{type(error).__name__}: {error}"
