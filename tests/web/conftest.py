"""One browser for all tests, and the pages it opens."""

import dataclasses
from pathlib import Path

import golden
import numpy as np
import pytest
from browser import WITHOUT_WEBGL, Browser

import vmdpotential as vp
from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.plugins.web import view_page

HOSTILE = """</script><script>window.hacked=1</script><img src=x onerror="window.hacked=1"> & 'quoted' <!--"""


def pytest_addoption(parser):
    parser.addoption("--pictures", action="store_true", help="keep the pictures that the documents show")


@pytest.fixture
def hostile():
    return HOSTILE


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def browser_without_webgl(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("chromium"), WITHOUT_WEBGL)
    yield browser
    browser.close()


@dataclasses.dataclass
class Case:
    """A page in a file, and what it was made of."""

    path: Path
    page: object
    structure: object
    grid: object
    ions: tuple


def case(folder, structure, grid, ions=None, **options):
    page = view_page(structure, grid, ions, **options)
    path = folder / "page.html"
    page.save(path)
    return Case(path, page, structure, grid, ions.ions if hasattr(ions, "ions") else ())


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """The golden case: an anion, the ions placed around it, and the map before them."""
    structure = golden.structure()
    placement = vp.place_ions(structure, **golden.ION_OPTIONS)
    grid = vp.potential_map(structure, **golden.MAP_OPTIONS)
    return case(tmp_path_factory.mktemp("small"), placement.structure, grid, placement, title="Golden case", margin=50)


@pytest.fixture(scope="session")
def protein(tmp_path_factory):
    """The protein in data/, ionized, with the protein's map in water."""
    data = Path(__file__).resolve().parent.parent.parent / "data"
    structure = vp.read_structure(data / "dhfr.pdb.gz", topology=data / "dhfr.psf.gz")
    placement = vp.place_ions(structure, concentration=0.15)
    grid = vp.potential_map(placement.structure, atoms="protein", spacing=1.0, method="pb", radii="mbondi2")
    return case(tmp_path_factory.mktemp("protein"), placement.structure, grid, placement,
                title="Dihydrofolate reductase with 0.15 mol/L NaCl", names=["protein"])


@pytest.fixture(scope="session")
def sphere(tmp_path_factory):
    """A map that falls linearly, 10 - r, around a point; and one that rises along x; and an atom at the point."""
    lattice = Lattice((-9.0, -8.5, -8.0), (0.5, 0.55, 0.45), (37, 32, 36))
    points = lattice.points()
    ball = 10 - np.linalg.norm(points, axis=1)
    atom = dataclasses.replace(
        golden.structure().take([0]), positions=np.zeros((1, 3)), topology=None, title=HOSTILE,
        residue_names=np.array(["UNK"]), atom_names=np.array(['"<b>']))
    grids = [Grid(lattice, values.reshape(lattice.shape), "V") for values in (ball, points[:, 0])]
    return case(tmp_path_factory.mktemp("sphere"), atom, grids, names=["ball", HOSTILE], level=5)


@pytest.fixture(scope="session")
def media(tmp_path_factory):
    """The golden anion with maps of two media, and one whose values have one sign."""
    structure = golden.structure()
    vacuum, water = (vp.potential_map(structure, atoms="solute", spacing=1.0, medium=medium, boundary="open")
                     for medium in ("vacuum", "screened"))
    squares = dataclasses.replace(vacuum, values=vacuum.values**2, provenance=Provenance(quantity="square"))
    return case(tmp_path_factory.mktemp("media"), structure, [vacuum, water, squares], None, title="Media")
