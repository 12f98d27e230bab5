"""Pictures that documents and examples draw."""

import numpy as np
from PIL import Image


def assert_drawn(path):
    """Assert that something is in the middle of a picture, where axes alone leave one colour."""
    with Image.open(path) as picture:
        assert picture.width > 400
        means = np.asarray(picture.convert("RGB").resize((8, 8), Image.Resampling.BOX), float)
    assert means[2:6, 2:5].std(axis=(0, 1)).max() > 2
