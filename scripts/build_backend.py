"""The build backend (PEP 517): setuptools, which packs kernels that are compiled for this machine's processor first.

Wheels contain libraries of compiled kernels that any Python can load, so that they need no particular Python:
``py3-none-PLATFORM``. ``scripts/wheels`` builds them for other systems too, which the variables name:
VMDPOTENTIAL_TARGET (such as aarch64-linux-gnu.2.17) and VMDPOTENTIAL_PLATFORM (the wheel's tag).
"""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import build_sdist, get_requires_for_build_sdist, prepare_metadata_for_build_wheel

__all__ = ["build_editable", "build_sdist", "build_wheel", "get_requires_for_build_editable",
           "get_requires_for_build_sdist", "get_requires_for_build_wheel", "prepare_metadata_for_build_editable",
           "prepare_metadata_for_build_wheel"]

ROOT = Path(__file__).parent.parent

prepare_metadata_for_build_editable = build_meta.prepare_metadata_for_build_editable


def _kernels() -> Any:
    """Return the module that compiles kernels, without the package, whose requirements are not installed here."""
    spec = importlib.util.spec_from_file_location("kernels_build", ROOT / "vmdpotential" / "kernels" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _requirements() -> list[str]:
    """Return the wheel with a compiler where the system has none."""
    build = _kernels()
    try:
        build.find_compiler()
    except build.CompilerError:
        return ["ziglang"]
    return []


def _compile() -> None:
    build = _kernels()
    try:
        build.build_package(target=os.environ.get("VMDPOTENTIAL_TARGET", ""))
    except build.CompilerError as error:
        sys.exit(f"vmdpotential's kernels cannot be compiled: {error}")


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return what building a wheel needs in addition to setuptools."""
    return build_meta.get_requires_for_build_wheel(config_settings) + _requirements()


def get_requires_for_build_editable(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return what an editable installation needs in addition to setuptools."""
    return build_meta.get_requires_for_build_editable(config_settings) + _requirements()


def build_wheel(wheel_directory: str, config_settings: dict[str, Any] | None = None,
                metadata_directory: str | None = None) -> str:
    """Compile the kernels, and build a wheel for any Python on the platform."""
    _compile()
    platform = os.environ.get("VMDPOTENTIAL_PLATFORM") or sysconfig.get_platform().replace("-", "_").replace(".", "_")
    settings = dict(config_settings or {})
    settings["--build-option"] = [*settings.get("--build-option", []), f"--plat-name={platform}"]
    return build_meta.build_wheel(wheel_directory, settings, metadata_directory)


def build_editable(wheel_directory: str, config_settings: dict[str, Any] | None = None,
                   metadata_directory: str | None = None) -> str:
    """Compile the kernels in the checkout, and build an editable wheel."""
    _compile()
    return build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
