"""Fourier transforms on a GPU, by VkFFT through pyvkfft."""

from __future__ import annotations

from typing import Any

import numpy as np

from vmdpotential.engines.cuda.driver import cuda_driver, gpu_array
from vmdpotential.errors import BackendError
from vmdpotential.extras import install_command


def application() -> Any:
    """Return pyvkfft's class of transforms.

    Raises
    ------
    BackendError
        If pyvkfft is not installed, or does not work.
    """
    cuda_driver()
    try:
        from pyvkfft.cuda import VkFFTApp
    except ModuleNotFoundError as error:
        raise BackendError(f"pyvkfft is not installed (no module {error.name})",
                           f"{install_command('cuda')}, or use {{method msm}} or {{engine cpu}}") from None
    except (ImportError, OSError) as error:
        raise BackendError(f"pyvkfft does not work ({_line(error)})",
                           "pip install --force-reinstall --no-binary :all: --no-deps pyvkfft builds it for this CUDA "
                           "toolkit, or use {engine cpu}") from None
    return VkFFTApp


class Transform:
    """The Fourier transform of real values and its inverse, both in place and without normalisation, for one shape.

    Rows along the last axis are padded to 2 (n / 2 + 1) values, and contain n / 2 + 1 complex numbers after the
    transform.

    Parameters
    ----------
    shape : (3,) int
    real : dtype
        float32 or float64.
    stream : pycuda.driver.Stream

    Raises
    ------
    BackendError
        If pyvkfft is missing, or VkFFT does not support the shape.
    """

    def __init__(self, shape: tuple[int, int, int], real: np.dtype[Any], stream: Any) -> None:
        a, b, c = shape
        self._shape, self._real = (a, b, 2 * (c // 2 + 1)), real
        make = application()
        try:
            # sines from a table (useLUT) are three times as accurate as the GPU's
            self._plan = make(self._shape, real.type, ndim=3, inplace=True, stream=stream, norm=0, r2c=True,
                              r2c_odd=c % 2 == 1, useLUT=1)
        except RuntimeError as error:
            raise BackendError(f"the Fourier transform of {a} x {b} x {c} points fails ({_line(error)})",
                               "use {engine cpu}") from None

    def forward(self, values: int) -> None:
        """Queue the transform of the values at an address."""
        self._plan.fft(gpu_array(self._shape, self._real, values))

    def inverse(self, values: int) -> None:
        """Queue the inverse transform of the values at an address."""
        array = gpu_array(self._shape, self._real, values)
        self._plan.ifft(array.view(np.result_type(self._real, np.complex64)))


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())
