"""The command install: files of viewers in a home of the test's own, and the VMD plugin loaded from there."""

import hashlib
import io
import os
import platform
import shutil
import stat
import subprocess
import sys
import tarfile
from http.client import BadStatusLine, IncompleteRead
from pathlib import Path

import pytest
from helpers import refused

import vmdpotential
from vmdpotential.errors import InputError, OutputError
from vmdpotential.frontend.cli import main
from vmdpotential.plugins.viewers import installation, page_script
from vmdpotential.plugins.viewers.install import command
from vmdpotential.plugins.viewers.installation import plan_installation
from vmdpotential.plugins.viewers.tcl import tcl_word
from vmdpotential.plugins.web import script

ROOT = Path(__file__).resolve().parents[2]
TCL_VERSION = vmdpotential.__version__.replace(".dev", "a")  # Tcl knows alpha and beta versions only
ORIGINALS = [
    b"", b"\n", b"menu main on\n", b"menu main on", b"menu main on\n\n\n", b"set a 1\r\nset b 2\r\n",
    b"set a 1\r\nset b 2", b"# caf\xe9 \xff\x00\nmol default style NewCartoon\n", b"set path {a \\\n b} \\",
    b"set path {a \\\n b} \\\n", b"# <<< vmdpotential <<<\n# >>> something else >>>\n",
]
STARTUP = {"vmd": ".vmdrc", "pymol": ".pymolpluginsrc.py"}


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home of [exit] $HOME {"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("APPDATA", raising=False)
    return folder


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("viewer", ["vmd", "pymol", "chimerax"])
@pytest.mark.parametrize("uninstall", [False, True])
def test_nothing_is_done_without_consent(home, viewer, uninstall, capsys):
    (home / ".vmdrc").write_text("menu main on\n")
    before = contents(home)
    assert main(["install", viewer, *(["--uninstall"] if uninstall else [])]) == 0
    out = capsys.readouterr().out
    assert ("--yes" in out) != uninstall  # nothing is installed
    assert ("would write" in out) != uninstall
    assert contents(home) == before


def test_a_preview_of_the_pages_script_shows_the_command(home, capsys):
    assert main(["install", "page"]) == 0
    assert capsys.readouterr().out.endswith("vmdpotential install page --yes\n")


@pytest.mark.parametrize("viewer", ["vmd", "pymol"])
@pytest.mark.parametrize("original", ORIGINALS)
def test_startup_file_is_extended_once_and_restored_to_the_byte(home, viewer, original):
    path = home / STARTUP[viewer]
    path.write_bytes(original)
    path.chmod(0o640)
    command(viewer=viewer, yes=True)
    once = path.read_bytes()
    assert once.startswith(original)
    assert once.count(b"# >>> vmdpotential >>>") == 1
    command(viewer=viewer, yes=True)
    assert path.read_bytes() == once
    path.write_bytes(once + b"\nputs more\r\n")  # what the user adds later stays
    command(viewer=viewer, uninstall=True, yes=True)
    left = path.read_bytes()
    assert left == original + b"\nputs more\r\n"
    path.write_bytes(once)
    command(viewer=viewer, uninstall=True, yes=True)
    assert path.read_bytes() == original
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert set(contents(home)) - {Path(".pymol")} == {Path(STARTUP[viewer])}


@pytest.mark.parametrize("viewer", ["vmd", "pymol"])
def test_a_startup_file_that_was_made_goes_again(home, viewer):
    command(viewer=viewer, yes=True)
    first = (home / STARTUP[viewer]).read_bytes()
    command(viewer=viewer, yes=True)
    assert (home / STARTUP[viewer]).read_bytes() == first
    command(viewer=viewer, uninstall=True, yes=True)
    assert [path for path in contents(home) if path.parts[0] != ".pymol"] == []


def test_a_link_stays_a_link(home):
    target = home / "dotfiles"
    target.mkdir()
    (target / "vmdrc").write_text("menu main on\n")
    (home / ".vmdrc").symlink_to(Path("dotfiles", "vmdrc"))
    command(viewer="vmd", yes=True)
    assert (home / ".vmdrc").is_symlink()
    assert "package require vmdpotential" in (target / "vmdrc").read_text()
    command(viewer="vmd", uninstall=True, yes=True)
    assert (target / "vmdrc").read_text() == "menu main on\n"
    assert sorted(path.name for path in target.iterdir()) == ["vmdrc"]


def test_another_folder_is_found_again(home, tmp_path):
    folder = tmp_path / 'else"where; é'
    report = command(viewer="vmd", folder=folder, yes=True)
    assert (folder / "vmdpotential" / "pkgIndex.tcl").is_file()
    assert "--folder" in report.lines[-1]
    command(viewer="vmd", uninstall=True, yes=True)
    assert not folder.exists()
    assert list(home.iterdir()) == []


def test_what_is_not_ours_is_left_alone(home):
    folder = home / ".vmdplugins" / "vmdpotential"
    folder.mkdir(parents=True)
    (folder / "precious").write_text("data")
    with refused("folder"):
        command(viewer="vmd", yes=True)
    command(viewer="vmd", uninstall=True, yes=True)
    assert (folder / "precious").read_text() == "data"
    assert not (home / ".vmdrc").exists()


def test_uninstall_where_nothing_is(home):
    assert "nothing is installed" in command(viewer="vmd", uninstall=True, yes=True).lines[0]
    assert list(home.iterdir()) == []


def test_a_damaged_block_is_not_guessed_at(home):
    command(viewer="vmd", yes=True)
    path = home / ".vmdrc"
    damaged = path.read_bytes().replace(b"# <<< vmdpotential <<<\n", b"") + b"puts mine\n"
    path.write_bytes(damaged)
    with pytest.raises(InputError):
        command(viewer="vmd", yes=True)
    assert path.read_bytes() == damaged


def test_a_startup_file_that_cannot_be_written_changes_nothing(home, monkeypatch):
    (home / ".vmdrc").write_text("menu main on\n")
    before = contents(home)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError):
        command(viewer="vmd", yes=True)
    assert contents(home) == before


def test_a_startup_file_that_is_a_folder(home):
    (home / ".vmdrc").mkdir()
    with pytest.raises(InputError):
        command(viewer="vmd", yes=True)


def test_folder_with_a_line_end(home):
    with refused("folder"):
        command(viewer="vmd", folder="a\nputs b", yes=True)


def test_chimerax_is_told_what_to_type(home):
    lines = command(viewer="chimerax", yes=True).lines
    folder = home / ".chimerax-bundles" / "vmdpotential"
    assert f'    devel install "{folder}"' in lines
    assert any('pip install "vmdpotential[all]' in line for line in lines)  # as the tutorial has it
    assert (folder / "pyproject.toml").read_bytes() == (ROOT / "plugins/chimerax/pyproject.toml").read_bytes()
    assert (folder / "src" / "__init__.py").is_file()
    assert "toolshed uninstall ChimeraX-VMDPotential" in command(viewer="chimerax", uninstall=True, yes=True).lines[-1]
    assert list(home.iterdir()) == []


@pytest.mark.skipif(not shutil.which("tclsh"), reason="tclsh is missing (Debian: apt-get install tcl)")
@pytest.mark.parametrize("own", [b"set mine 1", None])
def test_vmd_loads_the_plugin_and_its_own_file(home, own, tmp_path):
    if own is not None:
        (home / ".vmdrc").write_bytes(own)
    vmd = tmp_path / "vmd"
    vmd.mkdir()
    (vmd / ".vmdrc").write_text("set default_file 1\n")
    command(viewer="vmd", yes=True)
    script = (
        "proc vmd_install_extension {args} {puts \"MENU $args\"}\nset tk_version 8.6\n"
        f"source {tcl_word(str(home / '.vmdrc'))}\n"
        "puts \"VERSION [package present vmdpotential] [info exists mine] [info exists default_file]\"\n"
        "puts \"PROGRAM [join [potential program] \\n]\"\n")
    environment = {key: value for key, value in os.environ.items() if key != "VMDPOTENTIAL"}
    done = subprocess.run(["tclsh"], input=script, capture_output=True, text=True,
                          env={**environment, "VMDDIR": str(vmd)})
    assert not done.stderr
    assert f"VERSION {TCL_VERSION} {int(own is not None)} {int(own is None)}" in done.stdout
    assert done.stdout.count("MENU vmdpotential vmdpotential_tk") == 2
    words = done.stdout.partition("PROGRAM ")[2].splitlines()
    assert words == plan_installation("vmd").contents["program.txt"].decode().splitlines()
    assert subprocess.run([*words, "--version"], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT)}).stdout.startswith("vmdpotential ")


@pytest.fixture
def registry_of_npm(home, monkeypatch):
    """npm's registry with an archive of a small script; returns what was asked for."""
    text = io.BytesIO()
    with tarfile.open(fileobj=text, mode="w:gz") as archive:
        for name, data in {"package/build/3Dmol-min.js": b"var $3Dmol={createViewer:0};", "package/LICENSE": b"BSD",
                           "package/package.json": b'{"version": "1.2.3"}', "../outside": b"no"}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    asked = []

    def urlopen(address, timeout):
        asked.append(address)
        return io.BytesIO(text.getvalue())

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    monkeypatch.setattr(page_script, "SHA512", hashlib.sha512(text.getvalue()).hexdigest())
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    return asked


def test_the_pages_script_is_installed_without_npm(home, registry_of_npm, monkeypatch):
    assert main(["install", "page"]) == 0
    assert not registry_of_npm
    assert main(["install", "page", "--yes"]) == 0
    assert registry_of_npm == [page_script.ARCHIVE]
    # the script, its licence and its version, and nothing elsewhere
    assert sum(data is not None for data in contents(home).values()) == 3
    monkeypatch.chdir(home)
    monkeypatch.setattr(script.sys, "prefix", str(home))
    viewer = script.find_viewer_script()
    assert (viewer.version, viewer.licence) == ("1.2.3", "BSD")
    assert main(["install", "page", "--uninstall", "--yes"]) == 0
    assert not any(contents(home).values())


@pytest.mark.parametrize("fault", ["other file", "no network", "no answer", "cut"])
def test_another_script_than_the_tested_is_not_installed(home, registry_of_npm, monkeypatch, capsys, fault):
    if fault == "no network":
        monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: (home / "missing").open("rb"))
    elif fault == "other file":
        monkeypatch.setattr(page_script, "SHA512", "0" * 128)
    else:  # what urllib raises for a broken status line, or an answer shorter than it says
        def broken(*_, **__):
            raise BadStatusLine("") if fault == "no answer" else IncompleteRead(b"x", 9)

        monkeypatch.setattr("urllib.request.urlopen", broken)
    assert main(["install", "page", "--yes"]) == 4
    assert page_script.ARCHIVE in capsys.readouterr().err
    assert not (home / "data").exists()


@pytest.mark.parametrize(("system", "place"), [
    ("Windows", "University of Illinois/VMD2/vmd.exe"), ("Darwin", "VMD 2.0.0.app/Contents/vmd2/bin/vmd")])
def test_vmd_2_is_found_where_its_installers_put_it(home, tmp_path, monkeypatch, system, place):
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setenv("PROGRAMFILES", str(tmp_path))
    monkeypatch.setattr(installation, "APPLICATIONS", tmp_path)
    assert installation.find_vmd() is None
    vmd = tmp_path / place
    vmd.parent.mkdir(parents=True)
    vmd.touch()
    assert installation.find_vmd() == vmd
    assert any(str(vmd) in line for line in plan_installation("vmd").after)


def test_the_program_has_no_console_on_windows(home, tmp_path, monkeypatch):
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python.exe"))
    (tmp_path / "pythonw.exe").touch()
    words = plan_installation("vmd").contents["program.txt"].decode().splitlines()
    assert words == [str(tmp_path / "pythonw.exe"), "-m", "vmdpotential"]


def test_vmd_on_windows_has_another_start_up_file(home, monkeypatch):
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    lines = command(viewer="vmd", yes=True).lines
    assert "lappend auto_path" in (home / "vmd.rc").read_text()
    assert "[file join $env(VMDDIR) vmd.rc]" in (home / "vmd.rc").read_text()
    assert not (home / ".vmdrc").exists()
    assert any("HOME" in line for line in lines)
