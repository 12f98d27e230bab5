"""Times that the steps of sums take on each engine, from which methods and meshes are chosen.

``scripts/tune`` measures them on one thread, or on one GPU. Only the ratios within an engine matter for the choice;
:mod:`vmdpotential.sums.machine` scales the sums of these times to the machine and its threads.
"""

from __future__ import annotations

from typing import NamedTuple


class Costs(NamedTuple):
    """Times of an engine for each step of a sum, s.

    Parameters
    ----------
    fixed : float
        Time that does not depend on the size.
    atom : float
        Time per atom, to transfer and to sort it.
    spread : float
        Time per node of a mesh to which an atom's charge is spread.
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
    at_point, gather : float
        Time per arbitrary point of a mesh sum, and per node that it is interpolated from.
    near, sort : float
        Time per pair of an atom and an arbitrary point within a radius, and per atom to sort it for that.
    point_pair, point_pair_field : float
        Time per pair of an atom and an arbitrary point of a direct sum, without and with the field.
    image, wave : float
        Time per pair of an Ewald sum, with the search for its nearest image, and per wave and atom or point.
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
    continuum_node: float = 1.25e-7
    continuum_atom: float = 2.8e-5
    at_point: float = 5e-7
    gather: float = 5e-10
    near: float = 6e-9
    sort: float = 2e-7
    point_pair: float = 6e-10
    point_pair_field: float = 2e-9
    image: float = 8e-10
    wave: float = 4e-9


#: Measured with one thread of an EPYC (Zen 4). Those of pairs are between its times and those of a Zen 5, whose vectors
#: of AVX-512 take half the time.
CPU_COSTS = Costs(fixed=2.4e-3, atom=2.2e-8, spread=3.9e-10, transform_open=6.2e-10, transform_periodic=2.3e-9,
            interpolate=0.0, pair=5.2e-11, candidate=2e-8, point=1.2e-8, direct=9e-11, plain_pair=0.82, stencil=0.4)

#: Measured on an H200; those of arbitrary points are estimated from the rates of its kernels in float64.
CUDA_COSTS = Costs(fixed=1.0e-3, atom=3.1e-9, spread=4.5e-12, transform_open=1.9e-12, transform_periodic=1.4e-12,
             interpolate=1.0e-12, pair=4.7e-13, candidate=0.0, point=6.0e-11, direct=2.5e-13, stencil=0.2,
             continuum_node=6e-9, continuum_atom=1.5e-5, at_point=2e-8, gather=1e-11, near=1e-11, sort=3e-9,
             point_pair=2e-12, point_pair_field=4e-12, image=6e-12, wave=1e-11)
