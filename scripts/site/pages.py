"""Write the pages of the documentation into a folder for Sphinx: copies of written pages, and generated pages."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import vmdpotential
from vmdpotential import registry
from vmdpotential.frontend.arguments import headings
from vmdpotential.frontend.declarations import as_text
from vmdpotential.parameters import Command, Parameter

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "scripts" / "examples"
#: Folder of the output of examples.
DRAWN = ROOT / "build" / "examples"

#: Written pages, by their paths in the checkout.
TUTORIALS = [f"scripts/tutorials/{name}" for name in ("pymol", "vmd", "chimerax", "md", "membranes", "python",
                                                    "method-developer")]
GUIDE = [f"scripts/guide/{name}" for name in ("input", "structure", "media", "trajectories", "use")]
COMPARISON = "scripts/site/comparison"
WRITTEN = ["README.md", *(f"{name}.md" for name in (*TUTORIALS, *GUIDE, COMPARISON)), "ARCHITECTURE.md",
           "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md", "LICENSE", "data/README.md", *(
    str(path.relative_to(ROOT)) for part in ("plugins", "vmdpotential")
    for path in sorted((ROOT / part).rglob("*.md")))]

#: Packages and single modules in the reference, which are those that programs call.
PACKAGES = ("figures", "frames", "grid", "molecule", *(f"plugins.{name}" for name in (
    "batch", "compare", "complementarity", "densities", "fields", "forcefields", "ions", "live", "orbitals", "pairs",
    "patches", "pores", "preparation", "probes", "titration")))
MODULES = ("engines", "errors", "interactions", "interactions.tracing", "io", "io.maps", "io.trajectories.frames",
           "kernels.build", "kernels.launch", "maps", "maps.solvation", "maps.solver", "parameters",
           "points", "progress", "registry", "results", "sums", "sums.potential_sum", "sums.result", "surfaces",
           "tasks", "units")


@dataclass(frozen=True)
class Task:
    """A page of the reference, for one task."""

    text: str
    commands: str
    functions: str
    examples: str = ""
    theory: str = ""
    #: The page and title in the guide.
    guide: str = ""
    #: Shell examples, if those of the commands belong to another task.
    lines: tuple[str, ...] = ()


#: The pages by task. Every command, exported function and example is on at least one of them.
TASKS = {
    "Structures": Task(
        "Read a structure with its charges, complete what a deposited one lacks, and select atoms of it.",
        "prepare", "read_structure prepare assign_charges select write_structure Structure Topology "
        "Cell Trajectory", guide="input: What is added to a deposited structure?"),
    "Maps": Task(
        "The electrostatic potential on a grid, in vacuum or screened, without a cutoff; or at points.",
        "map batch", "potential_map potential_at read_map open_map write_map Grid Lattice Provenance Medium MapOptions",
        "figure_of_a_protein", "vmdpotential/sums", "structure: How do I make a map?"),
    "Continuum": Task(
        "The Poisson-Boltzmann equation: a molecule in water and salt, energies of solvation and of binding.",
        "map energy", "potential_map solvation_energy binding_energy Medium", "binding_over_frames",
        "plugins/continuum",
        "media: How do I set permittivities, ions, radii or a membrane?", (
            "map protein.pdb --method pb --screened 0.15 --spacing 0.5 -o potential.dx",
            "energy complex.pdb --topology complex.prmtop --between protein 'resname LIG' --solvent pb",
            "energy complex.prmtop trajectory.xtc --between protein 'resname LIG' --solvent gb --by residue")),
    "Slices, surfaces and comparisons": Task(
        "Figures of planes through a map, the potential on a molecular surface, and the difference of two maps.",
        "slice surface compare", "draw_slice surface compare thumbnail Plane", "figure_of_a_protein",
        "", "structure: How do I colour a molecular surface?"),
    "Complementarity": Task(
        "How opposite the potentials of two molecules are on the faces by which they touch.", "complementarity",
        "complementarity", "faces_of_a_dimer", "plugins/complementarity",
        "structure: Are two molecules complementary?"),
    "Patches": Task(
        "Charged patches of the surface over frames, and how often residues are in them.", "patches", "patches",
        "patches_of_a_mutant", "plugins/patches", "trajectories: Which residues are in charged patches?", (
            "patches system.prmtop trajectory.xtc --atoms protein --threshold 1 -o patches.csv",)),
    "Ions": Task(
        "Neutralising ions and salt at favourable sites of a solvated structure.",
        "ionize", "place_ions place_replicas", "ions_for_gromacs ions_for_namd ions_for_amber",
        "plugins/ions", "structure: How do I place ions?"),
    "Energies, forces and distributions": Task(
        "Coulomb and Lennard-Jones energies and forces between selections, and radial distribution functions.",
        "energy forces rdf", "energy forces rdf nonbonded Interaction Quantity", "energy_by_residue",
        "plugins/pairs", "trajectories: How do I get energies and forces between selections?"),
    "Averages, profiles and fields": Task(
        "Over a trajectory: the mean potential, profiles along an axis, potential and field at atoms and points.",
        "average profile field", "average profile field Trajectory", "membrane_profile", "vmdpotential/sums",
        "trajectories: How do I average a map over frames?"),
    "Densities": Task(
        "Densities of atoms over a trajectory, and hydration sites.", "density", "density", "density_of_water",
        "plugins/densities", "trajectories: How do I get densities and hydration sites?"),
    "Probes": Task(
        "AutoGrid's maps, Lennard-Jones energies of probe atoms, and free energies of small molecules.",
        "probe", "probe", "oxygen_in_a_protein", "plugins/probes", "trajectories: Where can a small molecule go?"),
    "Orbitals": Task(
        "Orbitals, densities and potentials from files of quantum chemistry.", "orbital", "orbital",
        "orbitals_of_benzene", "plugins/orbitals", "structure: How do I map orbitals and electron densities?"),
    "Ions in pores": Task(
        "The free energy of an ion along a path through a membrane, a pore or a molecule.", "born", "born",
        "ions_through_a_pore",
        "plugins/pores", "structure: How does an ion get through a pore?", (
            "born channel.pdb --ion K+ --set membrane=auto --figure potassium.png",)),
    "Titration": Task(
        "pKa values and titration curves of a protein, and its net charge against the pH.", "titrate", "titrate",
        "titration_of_lysozyme", "plugins/titration", "structure: How do I get pKa values?"),
    "Viewers and the web page": Task(
        "Install the plugins of PyMOL, VMD and ChimeraX, follow what a viewer shows, make a page for a browser, and "
        "let an assistant run the commands.",
        "install view live mcp", "view", "live_map", guide="use: Which viewers are there?"),
    "Plugins and this machine": Task(
        "List hardware and plugins, test and time the program, and add methods, interactions or commands of your own.",
        "devices verify benchmark benchmark-pairs plugins completion",
        "register available VmdpotentialError BackendError ChargeError "
        "CheckError IncompleteError InputError MemoryPlanError NoRoomError OutputError StoppedError TaskError "
        "UsageError",
        guide="use: What do exit codes and errors mean?"),
}


def written_pages(folder: Path) -> dict[str, str]:
    """Return the written pages by their paths in the checkout; copy the pictures and files that they link."""
    pages = {}
    for name in WRITTEN:
        text = (ROOT / name).read_text(encoding="utf-8")
        pages[name] = with_pictures(folder, name, text)
        for target in re.findall(r"\]\(([^):#]+)\)", text):
            file = (ROOT / name).parent / target
            if file.is_file() and str(file.resolve().relative_to(ROOT)) not in WRITTEN:
                (folder / name).parent.joinpath(target).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, (folder / name).parent / target)
    return pages


def with_pictures(folder: Path, name: str, text: str) -> str:
    """Return a tutorial with the pictures that its blocks draw in tests/documents/test_documents.py, and with links to
    the pages of examples.
    """
    if not name.startswith(("scripts/tutorials/", "scripts/guide/")):
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
    """Write a page unless it exists unchanged, so that Sphinx does not build it again."""
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
    if not parameter.required and (text := as_text(default)):
        return _cell(f"{kind}; default {text} {option.unit}".rstrip())
    return _cell(f"{kind} ({option.unit})" if option.unit else kind)


def _help(parameter: Parameter) -> str:
    option, limits = parameter.option, []
    for word, limit in (("above", option.above), ("at least", option.low), ("at most", option.high)):
        if limit is not None:
            limits.append(f"{word} {limit:g}")
    return option.help + (f" ({', '.join(limits)})" if limits else "") + ("; required" if parameter.required else "")


def _cell(text: str) -> str:
    parts = text.split("`")  # code is left unchanged
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
    """Run the examples whose pictures are older than their scripts; tests may already have drawn the others."""
    for script in sorted(EXAMPLES.glob("*.py")):
        drawn = drawn_by(script)
        if not drawn or drawn[0].stat().st_mtime < script.stat().st_mtime:
            print(f"drawing the pictures of {script.relative_to(ROOT)}", flush=True)
            subprocess.run([sys.executable, script, DRAWN / script.stem], check=True, cwd=ROOT)


def modules() -> list[str]:
    """Return the modules of the reference."""
    results = [f"vmdpotential.{name}" for name in (*PACKAGES, *MODULES)]
    for name in PACKAGES:
        package = importlib.import_module(f"vmdpotential.{name}")
        results += [info.name for info in pkgutil.iter_modules(package.__path__, f"vmdpotential.{name}.")]
    return sorted(results)


def task_page(title: str, task: Task) -> str:
    """Return the page of a task: commands and functions with their examples, worked examples, guide and theory."""
    commands = [registry.get("command", name) for name in task.commands.split()]
    names = task.functions.split()
    parts = [f"# {title}", task.text, "## Commands", "\n".join(["| command | purpose |", "|---|---|", *(
        f"| [`{command.name}`](../commands/{command.name}.md) | {_cell(_first(command.description))} |"
        for command in commands)])]
    if shown := dict.fromkeys(task.lines or (line for command in commands for line in command.examples)):
        parts.append("\n".join(["```sh", *(f"vmdpotential {line}" for line in shown), "```"]))
    if names:
        parts += ["## Python", "After `import vmdpotential as vp`:",
                  "\n".join(["| name | purpose |", "|---|---|", *map(_row, names)]),
                  *(f"```python\n{code}```" for code in map(_docstring_example, names) if code)]
    for number, script in enumerate(EXAMPLES / f"{name}.py" for name in task.examples.split()):
        heading = _first(ast.get_docstring(ast.parse(script.read_text("utf-8"))) or "").rstrip(".")
        parts += [*["## Worked examples"][number:], f"[{heading}](../examples/{script.stem}.md)"]
        parts += [f"![{heading}](../examples/pictures/{script.stem}/{path.name})" for path in drawn_by(script)[:1]]
    page, _, question = task.guide.partition(": ")
    anchor = re.sub(r"[^\w -]", "", question.lower()).replace(" ", "-")
    theory = f", and the [theory](../{task.theory}/THEORY.md)" if task.theory else ""
    parts += ["## More", f"[{question}](../scripts/guide/{page}.md#{anchor}) in the guide{theory}.", ""]
    return "\n\n".join(parts)


def check_tasks() -> None:
    """Raise an error if a command, function or example is on no page by task, or if a page names an unknown one."""
    for part, present in (("commands", registry.available("command")), ("functions", vmdpotential.__all__),
                          ("examples", [script.stem for script in EXAMPLES.glob("*.py")])):
        listed = {name for task in TASKS.values() for name in getattr(task, part).split()}
        if different := listed ^ set(present):
            raise SystemExit(f"{part} in TASKS and in the package differ: {', '.join(sorted(different))}")


def _docstring_example(name: str) -> str:
    """Return the example of an exported function, without prompts and output."""
    target = getattr(vmdpotential, name)
    if inspect.isclass(target):
        return ""
    return "".join(line.source for line in doctest.DocTestParser().get_examples(inspect.getdoc(target) or ""))


def _row(name: str) -> str:
    """Return an exported name as a row of a table, with a link to its documentation."""
    target = getattr(vmdpotential, name)
    kind = "class" if inspect.isclass(target) else "func"
    return (f"| {{py:{kind}}}`{name} <{target.__module__}.{target.__qualname__}>` "
            f"| {_cell(_first(inspect.getdoc(target) or ''))} |")


def _first(text: str) -> str:
    """Return the first line, with code as in Markdown and without the braces around parameters."""
    line = re.sub(r":\w+:`", "`", text.split("\n\n", 1)[0].replace("\n", " ").replace("``", "`"))
    return re.sub(r"(?<!\{)\{(\w+)( [^}]*)?\}", r"\1\2", line)


def public_page() -> str:
    """Return the page of the names that the package exports."""
    entries = [_row(name) for name in vmdpotential.__all__]
    rows = [f"| [{name.removeprefix('vmdpotential.')}]({name}.rst) | {_cell(_first(_module_text(name)))} |"
            for name in modules()]
    return "\n".join([
        "# Python", "", "`import vmdpotential as vp` has these names:", "", "| name | what |", "|---|---|", *entries,
        "", "## Modules", "", "| module | what |", "|---|---|", *rows, ""])


def _module_text(name: str) -> str:
    return inspect.getdoc(importlib.import_module(name)) or ""


def _contents(pages: list[str], *options: str) -> str:
    return "\n".join(["```{toctree}", *(f":{option}" for option in options), "", *pages, "```"])


def gallery_page() -> str:
    """Return the page of all pictures, each with the commands that draw it."""
    parts = ["# Gallery", "The pictures of the [examples](index.md), each with what draws it. Imports and paths are "
             "left out here; the linked pages have the whole programs, which run as they are."]
    for script in sorted(EXAMPLES.glob("*.py")):
        source = script.read_text(encoding="utf-8")
        title, _, text = (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")
        code = source.split("out.mkdir(parents=True, exist_ok=True)\n")[-1].strip()
        pictures = [f"![{title}](examples/pictures/{script.stem}/{path.name})" for path in drawn_by(script)]
        parts += [f"## {title.rstrip('.')}", *pictures, text.split("\n\n")[0], f"```python\n{code}\n```",
                  f"[The whole example](examples/{script.stem}.md)"]
    return "\n\n".join([*parts, ""])


def gallery(columns: int = 3) -> str:
    """Return a table with a picture of each example, the last one that it draws, above its title."""
    shown = []
    for script in sorted(EXAMPLES.glob("*.py")):
        title = _first(ast.get_docstring(ast.parse(script.read_text("utf-8"))) or "").rstrip(".")
        page = f"examples/{script.stem}.md"
        shown += [(f"[![{title}](examples/pictures/{script.stem}/{path.name})]({page})", f"[{title}]({page})")
                  for path in drawn_by(script)[-1:]]
    lines = [f"| {' | '.join(cells)} |" for start in range(0, len(shown), columns)
             for cells in zip(*shown[start:start + columns], strict=True)]
    return "\n".join([lines[0], "|---" * columns + "|", *lines[1:]])


def index() -> str:
    """Return the first page: a description of the program, the gallery, and the contents, which the side bar shows."""
    theory = [name.removesuffix(".md") for name in WRITTEN if name.endswith("THEORY.md")]
    first = [f"plugins/{name}/README" for name in ("pymol", "vmd", "chimerax", "web")]
    viewers = [*first, *(name.removesuffix(".md") for name in WRITTEN
                         if name.startswith("plugins/") and name.endswith("README.md")
                         and name.removesuffix(".md") not in first)]
    examples = [f"examples/{script.stem}" for script in sorted(EXAMPLES.glob("*.py"))]
    commands = [f"commands/{name}" for name in registry.available("command")]
    parts = [("Start", ["Install, and first pictures <README>", "gallery", *TUTORIALS]),
             ("Guide", [*GUIDE, COMPARISON]), ("Reference by task", [f"tasks/{_file(title)}" for title in TASKS]),
             ("Viewers and plugins", viewers), ("Examples", examples), ("Theory", theory),
             ("Commands", commands), ("Python", ["python/index"]), ("The package", [
                 "ARCHITECTURE", "CONTRIBUTING", "CODE_OF_CONDUCT", "vmdpotential/engines/SPEED", "CHANGELOG",
                 "data/README"])]
    tasks = "\n".join(["| task | what it does |", "|---|---|", *(
        f"| [{title}](tasks/{_file(title)}.md) | {task.text} |" for title, task in TASKS.items())])
    first_page = (Path(__file__).parent / "landing.md").read_text(encoding="utf-8").strip()
    more = ("All pictures, with the commands: [gallery](gallery.md). How results differ from those of other programs: "
            f"[comparison]({COMPARISON}.md).")
    return "\n\n".join([first_page, gallery(), more, "## By task", tasks, *(
        _contents(pages, "hidden:", "maxdepth: 1", f"caption: {title}") for title, pages in parts), ""])


def _file(title: str) -> str:
    return title.lower().replace(",", "").replace(" ", "-")


def main(folder: Path) -> None:
    """Write all pages, and remove pages of an earlier run that no longer exist."""
    check_tasks()
    draw_examples()
    pages = written_pages(folder)
    for name in registry.available("command"):
        pages[f"commands/{name}.md"] = command_page(registry.get("command", name))
    for script in sorted(EXAMPLES.glob("*.py")):
        pages[f"examples/{script.stem}.md"] = example_page(script)
        shutil.copytree(DRAWN / script.stem, folder / "examples" / "pictures" / script.stem, dirs_exist_ok=True,
                        ignore=lambda _, names: [name for name in names if not name.endswith(".png")])
    for title, task in TASKS.items():
        pages[f"tasks/{_file(title)}.md"] = task_page(title, task)
    pages["python/index.md"] = public_page()
    for name in modules():
        short = name.removeprefix("vmdpotential.")
        # not in the side bar, of which Sphinx makes a copy for each page: with all modules, that is most of its time
        pages[f"python/{name}.rst"] = (f":orphan:\n\n{short}\n{'=' * len(short)}\n\n"
                                       f".. automodule:: {name}\n   :members:\n")
    pages["index.md"] = index()
    pages["gallery.md"] = gallery_page()
    for path in folder.rglob("*"):
        if path.suffix in (".md", ".rst") and str(path.relative_to(folder)) not in pages:
            path.unlink()
    for name, text in pages.items():
        put(folder / name, text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
