"""What ChimeraX draws: the picture of plugins/chimerax/README.md."""

import ctypes
import gzip
import sys
from pathlib import Path

import core
import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]


def test_picture(home, tmp_path):
    try:
        ctypes.CDLL("libOSMesa.so.8")
    except OSError:
        pytest.skip("OSMesa (libosmesa6), which draws without a screen, is not installed")
    pytest.importorskip("PyQt5.QtWidgets", reason="PyQt5 is missing")
    (tmp_path / "1hvr.pdb").write_bytes(gzip.decompress((ROOT / "data" / "1hvr.pdb.gz").read_bytes()))
    path = tmp_path / "picture.png"
    output = core.run(sys.executable, Path(__file__).parent / "picture.py", home, tmp_path / "1hvr.pdb", path)
    assert "surface #1.1, coloured from -5 to 5 kT/e at 298.15 K, water (Poisson-Boltzmann), 0.15 M" in output
    with Image.open(path) as image:
        red, green, blue = np.moveaxis(np.asarray(image.convert("RGB"), int), 2, 0)[..., :560]  # next to it the dialog
    # both signs on the surface are seen, with background around it
    assert 0.02 < ((red - blue > 20) & (red - green > 20)).mean() < 0.5
    assert 0.05 < ((blue - red > 20) & (blue - green > 5)).mean() < 0.5
    # strong colours of both signs
    assert ((red - blue > 60) & (red - green > 60)).mean() > 0.005
    assert (blue - red > 60).mean() > 0.012
    white = (red == 255) & (green == 255) & (blue == 255)
    assert white[50:, 0].all()
    assert white[-1, :].all()
    assert 0.3 < white.mean() < 0.9
    key = np.s_[445, 400:525]
    assert (red[key][:10] > blue[key][:10] + 80).all()
    assert (blue[key][-10:] > red[key][-10:] + 100).all()
    assert (~white[5:35, 10:440]).sum() > 500  # what the colours mean
