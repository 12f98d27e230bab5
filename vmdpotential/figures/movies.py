"""Movies of figures: GIF by Pillow, which matplotlib needs anyway, or MP4 by the package imageio-ffmpeg."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vmdpotential.errors import UsageError
from vmdpotential.extras import load_optional

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOVIE_SUFFIXES = (".gif", ".mp4")

#: Resolution of movies unless one is given, dots per inch.
MOVIE_DPI = 200


def is_movie(path: Path) -> bool:
    """Return whether a file's suffix is that of a movie."""
    return path.suffix.lower() in MOVIE_SUFFIXES


def check_movie(path: Path, name: Path) -> None:
    """Raise UsageError for a stream, and BackendError if the package for an MP4 (suffix of `name`) is missing."""
    from vmdpotential.io.files import output

    if output.is_stream(path):
        raise UsageError("", f"{path}: a movie needs a file", "name one")
    if name.suffix.lower() == ".mp4":
        _ffmpeg()


def put_movie(figures: Iterable[Figure], place: Path, name: Path, dpi: int, rate: float, caption: str = "") -> None:
    """Write figures of one size as the frames of a movie.

    Parameters
    ----------
    figures : iterable of Figure
    place : Path
        File to write.
    name : Path
        Its final name, whose suffix determines the format.
    dpi : int
    rate : float
        Frames in a second.
    caption : str
        What the movie shows, for the metadata of a GIF.

    Raises
    ------
    BackendError
        If the package for an MP4 is not installed.
    """
    pictures = _pictures(figures, dpi)
    if name.suffix.lower() == ".gif":
        from PIL import Image

        first, *others = (Image.fromarray(picture).quantize(dither=Image.Dither.NONE) for picture in pictures)
        # GIF counts hundredths of a second, and viewers show frames of less than two of them slowly
        first.save(place, "GIF", save_all=True, append_images=others, duration=10 * max(2, round(100 / rate)),
                   loop=0, comment=caption.encode())
        return
    first_picture = next(pictures)
    height, width = first_picture.shape[:2]
    writer = _ffmpeg().write_frames(str(place), (width, height), fps=rate, macro_block_size=2, quality=8,
                                    output_params=["-f", "mp4"])
    writer.send(None)
    try:
        for picture in chain([first_picture], pictures):
            writer.send(np.ascontiguousarray(picture))
    finally:
        writer.close()


def _ffmpeg() -> Any:
    return load_optional("imageio_ffmpeg", "MP4 files", "movies", "write a .gif")


def _pictures(figures: Iterable[Figure], dpi: int) -> Iterator[NDArray[np.uint8]]:
    """Yield the pixels (rows, columns, 3), with even numbers of both; those of the first are those of all."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from vmdpotential.figures.style import figure_style

    size: tuple[int, int] | None = None
    for figure in figures:
        with figure_style():
            figure.set_dpi(dpi)
            canvas: Any = FigureCanvasAgg(figure)
            canvas.draw()
            drawn = np.asarray(canvas.buffer_rgba())[..., :3]
        if size is None:
            rows, columns = drawn.shape[:2]
            size = rows + rows % 2, columns + columns % 2
        picture = np.full((*size, 3), 255, np.uint8)
        rows, columns = min(size[0], drawn.shape[0]), min(size[1], drawn.shape[1])
        picture[:rows, :columns] = drawn[:rows, :columns]
        yield picture
