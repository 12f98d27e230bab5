"""A real PyMOL without a window, its own for each test."""

import contextlib
import io

import pymol2
import pytest

from vmdpotential.plugins.pymol import commands


@pytest.fixture
def cmd():
    """PyMOL's cmd of a fresh instance in which the commands are registered."""
    session = pymol2.PyMOL()
    session.start()
    commands.register(session.cmd)
    yield session.cmd
    session.stop()


@pytest.fixture
def do(cmd, capfd):
    """Run lines as typed into PyMOL and return what it prints, without the echo of the line."""
    def run(*lines):
        capfd.readouterr()
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            for line in lines:
                cmd.do(line, echo=0)
        out, error = capfd.readouterr()
        return printed.getvalue() + out + error
    return run
