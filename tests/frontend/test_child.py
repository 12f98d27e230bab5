"""The program as VMD's child process: what Tcl reads of its answers, and its end."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from vmdpotential.frontend import cli
from vmdpotential.plugins.viewers.tcl import TclWord, tcl_list, tcl_word

TCLSH = shutil.which("tclsh")
needs_tclsh = pytest.mark.skipif(TCLSH is None, reason="tclsh is missing (Debian: apt-get install tcl)")


def evaluated(script):
    done = subprocess.run([TCLSH], input=script, capture_output=True, text=True, encoding="utf-8",
                          env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert not done.stderr
    return done.stdout


@needs_tclsh
@pytest.mark.parametrize("text", ["", "a b", "{", "[exit]", 'a"b', "$x;#", "a\\", "tab\tline\nend", "é", "{a} \\", "#"])
def test_text_is_one_word(text):
    assert evaluated(f"puts -nonewline {tcl_word(text)}") == text
    assert tcl_word(text).isascii()
    nested = f"set data {tcl_word({'a b': [1, [text]]})}\nputs -nonewline [lindex [dict get $data {{a b}}] 1 0]"
    assert evaluated(nested) == text


@needs_tclsh
def test_every_kind_of_value():
    data = {"a": [1, -2.5e3, True, None, False], "b": {}, "c": [], "d": {"e f": ("}", "x y")}, "": "\u1234",
            "f": TclWord.of_numbers([1.5, 2, -3, 4], "{%.1f %.1f}")}
    script = f"set data {{{tcl_list(data)}}}\n" + "\n".join(f"puts [{words}]" for words in (
        "dict get $data a", "dict size $data", "llength [dict get $data c]", "lindex [dict get $data d {e f}] 0",
        "scan [dict get $data {}] %c", "lindex [dict get $data f] 1 0"))
    assert evaluated(script).split("\n") == ["1 -2500.0 1 {} 0", "6", "0", "}", f"{0x1234}", "-3.0", ""]


def test_the_declarations_are_a_dictionary_in_one_line(capsys):
    assert cli.main(["plugins", "--declarations", "--tcl"]) == 0
    line = capsys.readouterr().out
    assert line.count("\n") == 1
    assert cli.main(["plugins", "--declarations", "--json"]) == 0
    assert line == tcl_list(json.loads(capsys.readouterr().out)) + "\n"


def test_the_end_of_the_input_interrupts_the_program():
    """The input is passed on before, so that a command can read it."""
    script = ("import sys, time\nfrom vmdpotential.frontend import child, interrupts\nchild.end_with_input()\n"
              "with interrupts.handled():\n    try:\n        print(len(sys.stdin.buffer.read(300_000)), flush=True)\n"
              "        time.sleep(60)\n    except KeyboardInterrupt:\n        print('interrupted')\n")
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdin.write("x" * 300_000)
    process.stdin.flush()
    assert process.stdout.readline() == "300000\n"
    assert process.poll() is None
    assert process.communicate()[0] == "interrupted\n"
    assert process.returncode == 0
