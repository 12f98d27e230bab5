"""A page as the result of a notebook's cell."""

from pathlib import Path

import pytest

import vmdpotential as vp


@pytest.fixture
def shell():
    from IPython.core.interactiveshell import InteractiveShell

    InteractiveShell.clear_instance()
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


@pytest.mark.parametrize("cell", [
    "from vmdpotential.plugins.web import view_page\nview_page(structure, grid, title='In a cell')",
    "import vmdpotential as vp\nvp.view(path, map_file, prepare='never', title='In a cell')",
])
def test_a_cell_shows_the_page_in_a_frame_that_works(shell, browser, small, tmp_path, cell):
    files = tmp_path / "small.cif", tmp_path / "map.npz"
    vp.write_structure(small.structure, files[0])
    vp.write_map(small.grid, files[1])
    shell.user_ns |= {"structure": small.structure, "grid": small.grid, "path": files[0], "map_file": files[1]}
    done = shell.run_cell(cell)
    done.raise_error()
    data, _ = shell.display_formatter.format(done.result)
    assert "iframe" in data["text/html"]
    path = Path(tmp_path, "notebook.html")
    path.write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{data['text/html']}</body>", "utf-8")
    browser.open(path, wait=False)
    with browser.frame() as frame:
        frame.wait("window.vmdpotential && window.vmdpotential.ready")
        frame.run("window.vmdpotential.ready")
        assert frame.run("document.title") == "In a cell"
        frame.wait("vmdpotential.state.surface?.length")
        assert frame.run("vmdpotential.atoms.count") == 5
        assert frame.run("window.origin") == "null"  # a sandbox: it can reach nothing of the notebook
        assert frame.problems() == []
    assert browser.requests() == [path.as_uri()]
