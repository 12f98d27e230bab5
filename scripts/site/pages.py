"""Put the pages of the documentation into a folder, for Sphinx: written ones and those that code makes."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import vmdpotential
from vmdpotential import registry
from vmdpotential.frontend.arguments import headings
from vmdpotential.parameters import Command, Parameter

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "scripts" / "examples"
#: Where examples leave what they make.
DRAWN = ROOT / "build" / "examples"

#: Pages that are written, by their path in the checkout.
TUTORIALS = [f"scripts/tutorials/{name}" for name in ("pymol", "md", "python", "method-developer")]
WRITTEN = ["README.md", *(f"{name}.md" for name in TUTORIALS), "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md",
           "LICENSE", "data/README.md", *(
    str(path.relative_to(ROOT)) for part in ("plugins", "vmdpotential")
    for path in sorted((ROOT / part).rglob("*.md")))]

#: Packages of whose modules the reference is made, and single modules: what programs call.
PACKAGES = ("densities", "figures", "frames", "grid", "ions", "molecule", "orbitals", "pairs", "probes")
MODULES = ("engines", "errors", "interactions", "io", "io.topologies.forcefield", "io.trajectories.frames", "maps",
           "methods", "parameters", "points", "progress", "registry", "results", "surface", "tasks", "units")


def copy_written(folder: Path) -> None:
    """Copy the written pages, and the pictures and files that they name, to the places that they have in the checkout.
    """
    for name in WRITTEN:
        text = (ROOT / name).read_text(encoding="utf-8")
        put(folder / name, with_pictures(folder, name, text))
        for target in re.findall(r"\]\(([^):#]+)\)", text):
            file = (ROOT / name).parent / target
            if file.is_file() and str(file.resolve().relative_to(ROOT)) not in WRITTEN:
                (folder / name).parent.joinpath(target).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, (folder / name).parent / target)


def with_pictures(folder: Path, name: str, text: str) -> str:
    """Return a tutorial with the pictures that its blocks draw, which tests/test_documents.py leaves; links to
    examples lead to their pages.
    """
    if not name.startswith("scripts/tutorials/"):
        return text
    text = re.sub(r"\(\.\./examples/(\w+)\.py\)", r"(../../examples/\1.md)", text)

    def with_picture(block: re.Match[str]) -> str:
        shown = [block[0]]
        for picture in re.findall(r"[\w-]+\.png", block[0]):
            if (file := DRAWN / Path(name).stem / picture).is_file():
                ((folder / name).parent / "pictures").mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, (folder / name).parent / "pictures" / picture)
                shown.append(f"![What this draws](pictures/{picture})")
        return "\n\n".join(shown)

    return re.sub(r"^```(?:sh|python)\n.*?^```$", with_picture, text, flags=re.MULTILINE | re.DOTALL)


def put(path: Path, text: str) -> None:
    """Write a page, unless it is there already: what has not changed is not made again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def command_page(command: Command) -> str:
    """Return the page of a command: what it does, and its parameters."""
    text = re.sub(r"(?<!\{)\{(\w+)( [^}]*)?\}", r"\1\2", command.description)
    entries = [line for title, parameters in headings(command).items() for line in (
        f"## {title.capitalize()}\n", *(f"{_spelled(p)} {_type(p)}\n: {_cell(_help(p))}\n" for p in parameters))]
    return "\n".join([
        f"# {command.name}", "", text.replace("``", "`"), "", "```sh",
        *(f"vmdpotential {line}" for line in command.examples), "```", "", *entries,
        "`--json`\n: print one JSON object instead of text\n",
        "Options are those of the shell. In PyMOL, ChimeraX and Python they have these names with _ for -, "
        f"without the dashes in front; `vmdpotential {command.name} --help` says the same.", ""])


def _spelled(parameter: Parameter) -> str:
    option = parameter.option
    names = [f"--{name.replace('_', '-')}" for name in (parameter.name, *option.aliases)]
    names += [f"-{option.short}"] if option.short else []
    return f"`{parameter.name.upper()}`" if option.positional else ", ".join(f"`{name}`" for name in names)


def _type(parameter: Parameter) -> str:
    option, default = parameter.option, parameter.default
    if option.choices:
        kind = ", ".join(option.shown())
    elif parameter.type is bool:
        kind = "yes or no"
    else:
        kind = option.metavar or {int: "whole number", float: "number", Path: "file"}.get(parameter.type, "text")
    if parameter.several:
        kind += " ..."
    if not parameter.required and default not in (None, (), "", False):
        kind += f"; default {default}"
    return _cell(f"{kind}{f' {option.unit}' if option.unit else ''}")


def _help(parameter: Parameter) -> str:
    option, limits = parameter.option, []
    for word, limit in (("above", option.above), ("at least", option.low), ("at most", option.high)):
        if limit is not None:
            limits.append(f"{word} {limit:g}")
    return option.help + (f" ({', '.join(limits)})" if limits else "") + ("; required" if parameter.required else "")


def _cell(text: str) -> str:
    parts = text.split("`")  # code is as it is
    parts[::2] = [re.sub(r"([|*_<\[])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def example_page(script: Path) -> str:
    """Return the page of an example: its docstring, its pictures, and its text."""
    source = script.read_text(encoding="utf-8")
    title, _, text = (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")
    code = source.split('"""\n', 2)[-1].strip()
    pictures = [f"![{title}](pictures/{script.stem}/{path.name})" for path in drawn_by(script)]
    return "\n\n".join([f"# {title.rstrip('.')}", text, *pictures, f"`scripts/examples/{script.name}`:",
                        f"```python\n{code}\n```\n"])


def drawn_by(script: Path) -> list[Path]:
    """Return the pictures of an example."""
    return sorted((DRAWN / script.stem).glob("*.png"))


def draw_examples() -> None:
    """Run the examples whose pictures are older than the scripts; the tests leave theirs."""
    for script in sorted(EXAMPLES.glob("*.py")):
        drawn = drawn_by(script)
        if not drawn or drawn[0].stat().st_mtime < script.stat().st_mtime:
            print(f"drawing the pictures of {script.relative_to(ROOT)}", flush=True)
            subprocess.run([sys.executable, script, DRAWN / script.stem], check=True, cwd=ROOT)


def modules() -> list[str]:
    """Return the modules whose docstrings make the reference."""
    results = [f"vmdpotential.{name}" for name in (*PACKAGES, *MODULES)]
    for name in PACKAGES:
        package = importlib.import_module(f"vmdpotential.{name}")
        results += [info.name for info in pkgutil.iter_modules(package.__path__, f"vmdpotential.{name}.")]
    return sorted(results)


def public_page() -> str:
    """Return the page of the names that the package itself has."""
    entries = []
    for name in vmdpotential.__all__:
        target = getattr(vmdpotential, name)
        place = f"{target.__module__}.{target.__qualname__}"
        kind = "class" if inspect.isclass(target) else "func"
        summary = (inspect.getdoc(target) or "").split("\n", 1)[0].replace("``", "`")
        entries.append(f"| {{py:{kind}}}`{name} <{place}>` | {_cell(summary)} |")
    rows = [f"| [{name.removeprefix('vmdpotential.')}]({name}.rst) | {_summary(name)} |" for name in modules()]
    return "\n".join([
        "# Python", "", "`import vmdpotential as vp` has these names:", "", "| name | what |", "|---|---|", *entries,
        "", "## Modules", "", "| module | what |", "|---|---|", *rows, "", _contents(modules(), "hidden:"), ""])


def _summary(name: str) -> str:
    return _cell((inspect.getdoc(importlib.import_module(name)) or "").split("\n", 1)[0].replace("``", "`"))


def _contents(pages: list[str], *options: str) -> str:
    return "\n".join(["```{toctree}", *(f":{option}" for option in options), "", *pages, "```"])


def index() -> str:
    """Return the first page: what the program does, and the contents, which the side bar shows."""
    theory = [name.removesuffix(".md") for name in WRITTEN if name.endswith("THEORY.md")]
    first = [f"plugins/{name}/README" for name in ("pymol", "vmd", "chimerax", "web")]
    viewers = [*first, *(name.removesuffix(".md") for name in WRITTEN
                         if name.startswith("plugins/") and name.removesuffix(".md") not in first)]
    examples = [f"examples/{script.stem}" for script in sorted(EXAMPLES.glob("*.py"))]
    commands = [f"commands/{name}" for name in registry.available("command")]
    parts = [("Start", ["First pictures <README>", *TUTORIALS, "vmdpotential/commands/GUIDE"]),
             ("Viewers and plugins", viewers), ("Examples", examples), ("Theory", theory),
             ("Commands", commands), ("Python", ["python/index"]), ("The package", [
                 "ARCHITECTURE", "CONTRIBUTING", "vmdpotential/engines/SPEED", "CHANGELOG", "data/README"])]
    return "\n\n".join([(Path(__file__).parent / "landing.md").read_text(encoding="utf-8").strip(), *(
        _contents(pages, "hidden:", "maxdepth: 1", f"caption: {title}") for title, pages in parts), ""])


def main(folder: Path) -> None:
    """Make all pages."""
    draw_examples()
    copy_written(folder)
    for name in registry.available("command"):
        put(folder / "commands" / f"{name}.md", command_page(registry.get("command", name)))
    for script in sorted(EXAMPLES.glob("*.py")):
        put(folder / "examples" / f"{script.stem}.md", example_page(script))
        shutil.copytree(DRAWN / script.stem, folder / "examples" / "pictures" / script.stem, dirs_exist_ok=True,
                        ignore=lambda _, names: [name for name in names if not name.endswith(".png")])
    put(folder / "python" / "index.md", public_page())
    for name in modules():
        short = name.removeprefix("vmdpotential.")
        put(folder / "python" / f"{name}.rst",
            f"{short}\n{'=' * len(short)}\n\n.. automodule:: {name}\n   :members:\n")
    put(folder / "index.md", index())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
