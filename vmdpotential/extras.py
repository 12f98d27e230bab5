"""Optional packages, which are imported when a task needs them."""

from __future__ import annotations

import json
import shlex
from importlib import import_module
from importlib.metadata import distributions
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from vmdpotential.errors import BackendError


def load_optional(module: str, what: str, extra: str, instead: str = "") -> Any:
    """Return a module of an optional package.

    Parameters
    ----------
    module : str
    what : str
        Subject of the error message, in the plural, e.g. "H5MD files".
    extra : str
        Extra of this package that installs the optional package.
    instead : str, optional
        Alternative to the installation, for the error's hint.

    Raises
    ------
    BackendError
        When the module cannot be imported.
    """
    try:
        return import_module(module)
    except ImportError as error:
        hint = install_command(extra)
        raise BackendError(f"{what} need the package {module.partition('.')[0]} ({error})",
                           f"{hint}, or {instead}" if instead else hint) from None


def pip_requirement(extra: str = "") -> str:
    """Return pip's requirement for this package and an extra, with the address that it was installed from, if known."""
    name = f"vmdpotential[{extra}]" if extra else "vmdpotential"
    origin = _origin()
    if "url" not in origin:
        return name
    source = origin.get("vcs_info")
    return f"{name} @ " + (f"{source['vcs']}+{origin['url']}@{source['commit_id']}" if source else origin["url"])


def install_command(extra: str) -> str:
    """Return the shell command that adds an extra to this installation."""
    origin = _origin()
    if origin.get("dir_info", {}).get("editable"):
        folder = unquote(urlsplit(origin["url"]).path)
        return f"pip install -e {shlex.quote(f'{folder}[{extra}]')}"
    return f"pip install {shlex.quote(pip_requirement(extra))}"


def _origin() -> dict[str, Any]:
    """Return where the package came from, as pip's file direct_url.json says; empty if from an index."""
    for installed in distributions(name="vmdpotential"):  # in a checkout, its metadata may come first
        if text := installed.read_text("direct_url.json"):
            origin: dict[str, Any] = json.loads(text)
            return origin
    checkout = Path(__file__).resolve().parent.parent
    return {"url": checkout.as_uri()} if (checkout / "setup.cfg").is_file() else {}
