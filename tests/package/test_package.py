"""What is installed, what it offers, and what importing it costs."""

import ast
import configparser
import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from messages import naming

import vmdpotential
from vmdpotential import registry, tasks

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"gemmi", "matplotlib", "scipy", "MDAnalysis", "pandas"}


def test_public_names_are_listed_and_no_others():
    assert set(vmdpotential.__all__) <= set(dir(vmdpotential))
    with naming(AttributeError, "'spam'"):
        vmdpotential.spam  # noqa: B018


def test_the_version_is_the_same_everywhere():
    version = vmdpotential.__version__
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    assert setup["metadata"]["version"] == "attr: vmdpotential.__version__"
    bundle = tomllib.loads((ROOT / "plugins" / "chimerax" / "pyproject.toml").read_text())["project"]
    stated = {
        "CITATION.cff": r"^version: (.+)$", "scripts/conda/recipe.yaml": r'^  version: "(.+)"$',
        "CHANGELOG.md": r"\A.*?\n## (\S+)",
    }
    for name, pattern in stated.items():
        assert re.search(pattern, (ROOT / name).read_text(), re.MULTILINE | re.DOTALL
                         if name == "CHANGELOG.md" else re.MULTILINE)[1] == version, name
    assert bundle["version"] == version
    assert f"vmdpotential >={version}" in bundle["dependencies"]  # a bundle needs the program of its own version
    tcl = re.sub(r"\.dev", "a", version)  # Tcl knows alpha and beta versions only
    for name in ("pkgIndex.tcl", "vmdpotential.tcl"):
        assert f" vmdpotential {tcl}" in (ROOT / "plugins" / "vmd" / name).read_text(), name


def test_type_checkers_see_every_public_name():
    tree = ast.parse((ROOT / "vmdpotential" / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {alias.asname or alias.name: node.module.partition(".")[2] for node in block.body
                for alias in node.names}
    assert imported == vmdpotential._PUBLIC | {"*": "task_types"}
    assert {*vmdpotential._PUBLIC, *tasks.__all__} == set(vmdpotential.__all__)


@pytest.mark.parametrize("kind", registry.KINDS)
def test_every_registered_name_leads_to_something(kind):
    names = registry.available(kind)
    assert names
    for name in names:
        assert registry.get(kind, name) is not None


def arguments_of(path):
    """Return the functions of a module with the number of their arguments, self and cls aside."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            yield f"{path.relative_to(ROOT)}: {node.name}", len([a for a in names if a not in ("self", "cls")])


def test_no_function_takes_more_than_ten_arguments():
    """Options are passed on as dataclasses."""
    parts = ("vmdpotential", *(f"plugins/{name}" for name in (
        "batch", "benchmark", "complementarity", "densities", "fields", "forcefields", "orbitals", "pairs", "patches",
        "pores", "preparation", "probes", "titration")))
    modules = [path for part in parts for path in (ROOT / part).rglob("*.py")]
    assert len(modules) > 200
    assert [name for path in modules for name, count in arguments_of(path) if count > 10] == []


def modules_after(code):
    code += "\nimport sys, json; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("code", [
    "import vmdpotential.io",
    "from vmdpotential import registry; [registry.get('command', name) for name in registry.available('command')]",
    "import vmdpotential.frontend.cli, contextlib\nwith contextlib.suppress(SystemExit): "
    "vmdpotential.frontend.cli.main(['--help'])",
    "import vmdpotential.frontend.cli, contextlib\nwith contextlib.suppress(SystemExit): "
    "vmdpotential.frontend.cli.main(['map', '--help'])",
])
def test_nothing_heavy_is_imported(code):
    loaded = modules_after(code)
    assert "vmdpotential" in loaded
    assert not loaded & HEAVY


def test_every_package_is_listed():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    found = {".".join(path.parent.relative_to(ROOT).parts) for folder in ("vmdpotential", "plugins")
             for path in (ROOT / folder).rglob("__init__.py")}
    found = {re.sub(r"^plugins\b", "vmdpotential.plugins", name) for name in found if "chimerax" not in name}
    assert {*setup["options"]["packages"].split()} == {*found, "vmdpotential.data"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy, so that nothing is left in the checkout."""
    source = tmp_path_factory.mktemp("source") / "checkout"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(
        ".*", "build", "dist", "*.egg-info", "__pycache__", "demo-results", "shared"))
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps",
                    "--no-build-isolation", "--wheel-dir", out, source], check=True)
    (path,) = out.glob("*.whl")
    with zipfile.ZipFile(path) as opened:
        yield opened


@pytest.mark.slow
def test_wheel_holds_every_module_plugin_and_table(wheel):
    packed = set(wheel.namelist())
    expected = {f"vmdpotential/{name}" for name in ("py.typed", "data/charges.csv.gz")}
    for folder, target in (("vmdpotential", "vmdpotential"), ("plugins", "vmdpotential/plugins")):
        expected |= {f"{target}/{path.relative_to(ROOT / folder)}" for path in (ROOT / folder).rglob("*.*")
                     if path.suffix in (".py", ".cu", ".cuh", ".h", ".so")}
    # what viewers with a language of their own load
    expected |= {f"vmdpotential/plugins/vmd/{path.name}" for path in (ROOT / "plugins" / "vmd").iterdir()}
    assert expected - packed == set()
    # nothing but the package: no tests, no demo data
    tops = {name.partition("/")[0] for name in packed}
    assert tops == {"vmdpotential", f"vmdpotential-{vmdpotential.__version__}.dist-info"}
    assert not [name for name in packed if name.endswith((".pdb.gz", ".psf.gz"))]


@pytest.mark.slow
def test_wheel_states_version_licence_and_requirements(wheel):
    (name,) = [name for name in wheel.namelist() if name.endswith("METADATA")]
    metadata = Parser().parsestr(wheel.read(name).decode())
    assert metadata["Version"] == vmdpotential.__version__
    assert metadata["Requires-Python"] == ">=3.11"
    assert "BSD-3-Clause" in (metadata["License"] or metadata["License-Expression"])
    requirements = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]
    assert "numpy>=1.26.4" in requirements
    assert not [line for line in requirements if "MDAnalysis" in line or "pycuda" in line]
    assert "BSD 3-Clause License" in wheel.read(
        next(name for name in wheel.namelist() if name.endswith("LICENSE"))).decode()
    for path in (ROOT / "data" / "licenses").iterdir():  # of data in the wheel
        assert any(name.endswith(f"/{path.name}") for name in wheel.namelist())


def test_the_conda_recipe_requires_what_the_package_requires():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    recipe = (ROOT / "scripts" / "conda" / "recipe.yaml").read_text()
    run = recipe.partition("\n  run:\n")[2].partition("\n  run_constraints:\n")[0]
    required = {line.strip().removeprefix("- ").replace("matplotlib-base", "matplotlib") for line in run.splitlines()}
    options = setup["options"]
    assert required == {*options["install_requires"].split("\n")[1:], f"python {options['python_requires']}"}
    assert f'version: "{vmdpotential.__version__}"' in recipe
    constraints = recipe.partition("\n  run_constraints:\n")[2].partition("\n\n")[0]
    extras = {line.lower() for extra in setup["options.extras_require"].values() for line in extra.split("\n")}
    assert {line.strip().removeprefix("- ") for line in constraints.splitlines()} <= extras


def test_words_of_a_stopped_run_are_written_once():
    sources = [path for folder in ("vmdpotential", "plugins/pymol", "plugins/chimerax/src")
               for path in (ROOT / folder).rglob("*.py") if "nothing was made" in path.read_text(encoding="utf-8")]
    assert [path.name for path in sources] == ["messages.py"]
