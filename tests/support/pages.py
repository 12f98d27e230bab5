"""What a page of the command view contains, and a molecule and a map for one."""

import base64
import gzip
import json
from html.parser import HTMLParser

import numpy as np

from vmdpotential.grid.lattice import Grid, Lattice, Provenance
from vmdpotential.molecule.structure import Structure


class Elements(HTMLParser):
    """What a browser would find in a page: elements with attributes, and the texts inside."""

    def __init__(self, text):
        super().__init__()
        self.found, self.inside = [], False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes), []))

        self.inside = True

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.found[-1][2].append(data)

    def of(self, tag):
        return [(attributes, "".join(texts)) for name, attributes, texts in self.found if name == tag]


def content_of(page):
    (text,) = [text for attributes, text in Elements(page.html).of("script") if attributes.get("id") == "content"]
    return json.loads(text)


def unpacked(text, dtype):
    """Unpack numbers by their description: all highest bytes, then all of the next."""
    raw = np.frombuffer(gzip.decompress(base64.b64decode(text)), np.uint8).reshape(np.dtype(dtype).itemsize, -1)
    return np.ascontiguousarray(raw[::-1].T).view(dtype).ravel()


def values_of(content):
    return unpacked(content["data"], "<f2").astype(np.float64).reshape(content["shape"]) * content["scale"]


def words_of(content):
    return np.array(content["words"])[unpacked(content["index"], "<u4")]


def places_of(content):
    return np.cumsum(unpacked(content["places"], "<i4").reshape(3, -1), axis=1).T * content["step"]


def check_values(content, expected):
    """11 bits of each value, down to 2e-9 of the largest."""
    error = np.abs(values_of(content) - expected)
    assert error.max() > 0
    assert (error <= np.maximum(2**-11 * np.abs(expected), 2**-39 * np.abs(expected).max())).all()


def small_molecule():
    """Two residues, one water and one ion."""
    names = ["N", "CA", "C", "O", "N", "CA", "C", "O", "OW", "HW1", "HW2", "NA"]
    positions = np.random.default_rng(5).uniform(8, 14, (12, 3)).round(3)
    positions[-1] = 20, 3.5, 4.25
    return Structure(
        positions, names, ["ALA"] * 4 + ["GLY"] * 4 + ["SOL"] * 3 + ["NA"], [1] * 4 + [2] * 4 + [3] * 3 + [4],
        np.repeat(range(4), [4, 4, 3, 1]), elements=[name[0] for name in names[:11]] + ["Na"], chain_ids=["A"] * 12,
        title="two residues", sources=("small.pdb",))


def random_grid():
    """Values of very different sizes."""
    rng = np.random.default_rng(6)
    lattice = Lattice((1.0, 2.0, 3.0), (0.5, 0.6, 0.7), (50, 40, 30))
    values = rng.normal(size=lattice.shape) * 10 ** rng.uniform(-4, 5, lattice.shape)
    about = Provenance(method="direct", boundary="open", inputs=("a.pdb", "b <b>.psf"), program="vmdpotential 1.2.3")
    return Grid(lattice, values, "kT/e", 310.5, 4.0, about)
