"""Real runs that are killed; `kills.py` beside this kills more of them."""

import os

import pytest


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork, which Windows lacks")
def test_killed_runs_leave_nothing():
    from kills import survey

    found, _ = survey(24)
    assert sum(found.values()) == 24
    assert {left for _, _, left in found} == {"old", "new"}
