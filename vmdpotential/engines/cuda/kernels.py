"""What a package uses that brings CUDA kernels of its own: this interface stays as it is.

``idlest(1)`` returns a :class:`Gpu`, which ``with gpu:`` makes current: ``kernel``, ``symbol``, ``upload``, ``buffer``,
``lanes`` and ``trim`` are its methods. `struct` declares the task that a kernel reads, with `address` for its pointers;
:data:`TASK` and `base_task` are that of a lattice sum, `unit` its unit of length, `source` the device code of a radial
function, `empty` an array in pinned memory, `errors` turns the driver's errors into ours, and `driver` is
``pycuda.driver``. A sum whose smooth part is on other nodes than those of a mesh inherits from :class:`NodeSum`, which
spreads charges, interpolates and sums pairs, and gets a :class:`Job` to `solve`.
"""

from vmdpotential.engines.cuda.build import address, struct
from vmdpotential.engines.cuda.device import Gpu, driver, errors, idlest
from vmdpotential.engines.cuda.maps import TASK, Job, base_task, unit
from vmdpotential.engines.cuda.nodes import NodeSum
from vmdpotential.engines.cuda.pinned import empty
from vmdpotential.engines.cuda.radial import source

__all__ = ["TASK", "Gpu", "Job", "NodeSum", "address", "base_task", "driver", "empty", "errors", "idlest", "source",
           "struct", "unit"]
