"""What a package uses that brings CUDA kernels of its own: this interface stays as it is.

``idlest(1)`` returns a :class:`Gpu`, which ``with gpu:`` makes current: ``kernel``, ``symbol``, ``upload``, ``buffer``,
``lanes`` and ``trim`` are its methods. ``struct`` declares the task that a kernel reads, :data:`TASK` and `base_task`
are that of a lattice sum, `unit` its unit of length, `source` the device code of a radial function, `empty` an array in
pinned memory, `errors` turns the driver's errors into ours, and `driver` is ``pycuda.driver``.
"""

from vmdpotential.engines.cuda.build import struct
from vmdpotential.engines.cuda.device import Gpu, driver, errors, idlest
from vmdpotential.engines.cuda.maps import TASK, base_task, unit
from vmdpotential.engines.cuda.pinned import empty
from vmdpotential.engines.cuda.radial import source

__all__ = ["TASK", "Gpu", "base_task", "driver", "empty", "errors", "idlest", "source", "struct", "unit"]
