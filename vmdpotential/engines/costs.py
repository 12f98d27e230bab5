"""What the parts of an engine's work cost: the one table by which methods and meshes are chosen.

``scripts/tune`` measures it. Only the ratios within an engine matter for a choice.
"""

from __future__ import annotations

from typing import NamedTuple


class Costs(NamedTuple):
    """Seconds of an engine for one of each part of the work of a map.

    Parameters
    ----------
    fixed : float
        Whatever the size.
    atom : float
        An atom: its way to the engine and its place in the order.
    spread : float
        A node that one atom's charge goes to.
    transform_open, transform_periodic : float
        A point of the Fourier transform times the logarithm (base 2) of their number.
    interpolate : float
        A lattice point and node along one axis.
    pair : float
        An atom and lattice point that an engine evaluates, with the polynomial of a short-range part.
    candidate : float
        An atom looked at for a tile of 8^3 lattice points.
    point : float
        A lattice point of the pair sum.
    direct : float
        An atom and lattice point of a direct sum.
    plain_pair : float
        A pair of an interaction without a polynomial, over `pair`.
    stencil : float
        A charge of a level and a node within its reach, over `pair`.
    """

    fixed: float
    atom: float
    spread: float
    transform_open: float
    transform_periodic: float
    interpolate: float
    pair: float
    candidate: float
    point: float
    direct: float
    plain_pair: float = 0.6
    stencil: float = 0.1


class PointCosts(NamedTuple):
    """Seconds for one of each part of the work of sums at arbitrary points.

    Parameters
    ----------
    fixed, point : float
        A sum by a mesh, whatever its size, and for a point.
    spread, gather : float
        A node that an atom spreads to, and one that a point takes from.
    node_open, node_periodic : float
        A point of the Fourier transform.
    near : float
        A pair within the split radius.
    pair, pair_field : float
        A pair of a direct sum, and one with the field.
    image : float
        A pair of Ewald's sum, of which the nearest image is looked for.
    wave : float
        An atom or point, and a wave of Ewald's sum.
    sort : float
        An atom brought into the order in which pairs within a radius are found.
    """

    fixed: float
    point: float
    spread: float
    gather: float
    node_open: float
    node_periodic: float
    near: float
    pair: float
    pair_field: float
    image: float
    wave: float
    sort: float


#: The CPU engine with two threads of an EPYC (Zen 4) processor.
CPU = Costs(fixed=8e-3, atom=1.7e-7, spread=2.5e-10, transform_open=2.8e-10, transform_periodic=1e-9, interpolate=6e-11,
            pair=9.3e-11, candidate=0.0, point=7.9e-9, direct=5.2e-11, stencil=0.08)

#: An H200.
CUDA = Costs(fixed=1.0e-3, atom=3.1e-9, spread=4.5e-12, transform_open=1.9e-12, transform_periodic=1.4e-12,
             interpolate=1.0e-12, pair=4.7e-13, candidate=0.0, point=6.0e-11, direct=2.5e-13, stencil=0.2)

#: The CPU engine with one thread of an EPYC (Zen 5) processor.
CPU_POINTS = PointCosts(fixed=0.01, point=3.5e-7, spread=1.3e-9, gather=2e-9, node_open=1.2e-8, node_periodic=4e-8,
                        near=1.7e-8, pair=1.5e-9, pair_field=3.5e-9, image=6e-9, wave=1.8e-9, sort=3e-7)

#: An H200; estimated from its costs of maps and the rates of its kernels in float64.
CUDA_POINTS = PointCosts(fixed=2e-3, point=2e-8, spread=4.5e-12, gather=1e-11, node_open=4e-11, node_periodic=4e-11,
                         near=1e-11, pair=2e-12, pair_field=4e-12, image=6e-12, wave=1e-11, sort=3e-9)
