"""The stable interface for packages with CUDA kernels of their own.

``least_busy_gpus(1)`` returns a list with one :class:`Gpu`, which ``with gpu:`` makes current; its methods for other
packages are ``kernel``, ``symbol``, ``upload``, ``buffer``, ``streams`` and ``trim``. `struct_type` declares the task
that a kernel reads, with `pointer_type` for its pointers. :data:`TASK` is the task of a lattice sum, `base_task` fills
it, and `internal_unit` returns its unit of length. `radial_source` returns the device code of a radial function,
`empty_pinned` an array in pinned memory, and `cuda_driver` the module ``pycuda.driver``, whose errors
`converted_errors` converts into ours. A sum with a smooth part that is not on a mesh is a subclass of :class:`NodeSum`,
which spreads charges, interpolates and sums pairs; the method `solve` of the subclass gets a :class:`Job`.
"""

from vmdpotential.engines.cuda.build import pointer_type, struct_type
from vmdpotential.engines.cuda.device import Gpu, least_busy_gpus
from vmdpotential.engines.cuda.driver import converted_errors, cuda_driver
from vmdpotential.engines.cuda.pinned import empty_pinned
from vmdpotential.engines.cuda.radial import radial_source
from vmdpotential.sums.cuda.maps import TASK, Job, base_task, internal_unit
from vmdpotential.sums.cuda.nodes import NodeSum

__all__ = [
    "TASK", "Gpu", "Job", "NodeSum", "base_task", "converted_errors", "cuda_driver", "empty_pinned", "internal_unit",
    "least_busy_gpus", "pointer_type", "radial_source", "struct_type",
]
