"""Times that the steps of sums take on each engine, from which methods and meshes are chosen.

``scripts/tune`` measures them on one thread, or on one GPU. Only the ratios within an engine matter for the choice;
:mod:`vmdpotential.methods.machine` scales the sums of these times to the machine and its threads.
"""

from __future__ import annotations

from typing import NamedTuple


class Costs(NamedTuple):
    """Times of an engine for each step of a map, s.

    Parameters
    ----------
    fixed : float
        Time that does not depend on the size.
    atom : float
        Time per atom, to transfer and to sort it.
    spread : float
        Time per node to which an atom's charge is spread.
    transform_open, transform_periodic : float
        Time of the Fourier transforms, per node and per binary logarithm of the number of nodes.
    interpolate : float
        Time per lattice point and node along one axis.
    pair : float
        Time per evaluated pair of an atom and a lattice point, with the polynomial of a short-range part.
    candidate : float
        Time per atom that is tested for a tile of 8^3 lattice points.
    point : float
        Time per lattice point of the pair sum.
    direct : float
        Time per pair of an atom and a lattice point of a direct sum.
    plain_pair : float
        Time per pair of an interaction without a polynomial, as a multiple of `pair`.
    exponential : float
        Additional time per pair and exponential function in its interaction, as a multiple of `direct`.
    stencil : float
        Time per charge of a level and node within its reach, as a multiple of `pair`.
    continuum_node, continuum_atom : float
        Time per node, and per atom, of the linear Poisson-Boltzmann equation.
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
    exponential: float = 2.3
    stencil: float = 0.1
    continuum_node: float = 1.8e-7
    continuum_atom: float = 4e-5


class PointCosts(NamedTuple):
    """Times of an engine for each step of sums at arbitrary points, s.

    Parameters
    ----------
    fixed, point : float
        Time of a sum by a mesh that does not depend on its size, and time per point.
    spread, gather : float
        Time per node that an atom is spread to, and per node that a point is interpolated from.
    node_open, node_periodic : float
        Time of the Fourier transforms, per node.
    near : float
        Time per pair within the split radius.
    pair, pair_field : float
        Time per pair of a direct sum, without and with the field.
    image : float
        Time per pair of an Ewald sum, with the search for its nearest image.
    wave : float
        Time per wave of an Ewald sum and atom or point.
    sort : float
        Time per atom, to sort it for the search of pairs within a radius.
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


#: Measured with one thread of an EPYC (Zen 4) processor.
CPU = Costs(fixed=2.4e-3, atom=2.2e-8, spread=3.9e-10, transform_open=6.2e-10, transform_periodic=2.3e-9,
            interpolate=0.0, pair=6e-11, candidate=3e-8, point=1.2e-8, direct=1.1e-10, plain_pair=1.2,
            stencil=0.4)

#: Measured on an H200.
CUDA = Costs(fixed=1.0e-3, atom=3.1e-9, spread=4.5e-12, transform_open=1.9e-12, transform_periodic=1.4e-12,
             interpolate=1.0e-12, pair=4.7e-13, candidate=0.0, point=6.0e-11, direct=2.5e-13, stencil=0.2,
             continuum_node=6e-9, continuum_atom=1.5e-5)

#: Measured with one thread of an EPYC (Zen 5) processor.
CPU_POINTS = PointCosts(fixed=0.01, point=3.5e-7, spread=1.3e-9, gather=2e-9, node_open=1.2e-8, node_periodic=2e-8,
                        near=1.4e-8, pair=8e-10, pair_field=2.2e-9, image=6e-9, wave=1.8e-9, sort=3e-7)

#: Estimated for an H200 from its times of maps and the rates of its kernels in float64.
CUDA_POINTS = PointCosts(fixed=2e-3, point=2e-8, spread=4.5e-12, gather=1e-11, node_open=4e-11, node_periodic=4e-11,
                         near=1e-11, pair=2e-12, pair_field=4e-12, image=6e-12, wave=1e-11, sort=3e-9)
