"""What a page of the command view holds."""

import base64
import gzip
import json
from html.parser import HTMLParser

import numpy as np


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
