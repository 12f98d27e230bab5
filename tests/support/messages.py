"""What tests check of errors: class, parameter, and the names and numbers in the message; words are in one table."""

import contextlib

import pytest


class Words:
    """Words of messages, for errors that have no parameter, file or number of their own."""

    CHOICES = "choose one of"
    DAMAGED = "damaged"
    EXISTS = "exists"
    GPU_MEMORY = "GPU memory"
    INCOMPLETE = "incomplete"
    LINK = "link to"
    MASKED = "masked"
    MISSING_FOLDER = "does not exist"
    NAMED_TWICE = "named twice"
    NO_ATOMS = "no atoms"
    NO_CELL = "no periodic cell"
    NO_FRAMES = "no frames"
    NO_LENNARD_JONES = "Lennard-Jones"
    NO_WATERS = "no waters"
    NOT_FINITE = "finite numbers"
    NOT_INTEGER = "not an integer"
    NOT_POSITIVE = "must be above 0"
    NOTHING_WRITTEN = "nothing was written"
    OUTSIDE_OF_CELL = "do not fit"
    OWN_IMAGE = "own image"
    SECOND_OXYGEN = "second oxygen"


@contextlib.contextmanager
def naming(kind, *named, parameter=None):
    """Assert that an error is raised whose message has these names and numbers in this order, whatever the words.

    With `parameter`, also that it is about this parameter, or with an empty text, about none.
    """
    with pytest.raises(kind) as caught:
        yield caught
    text, end = str(caught.value), 0
    for each in map(str, named):
        end = text.find(each, end) + len(each)
        assert end >= len(each), f"{each!r} is not in its place in: {text}"
    assert parameter is None or caught.value.parameter == parameter, text
