// What an equation has at nodes and edges because of the region of the molecule: conductances, shares of ions, and the
// potential that is applied across a slab.
#include "kernel.h"

struct Conductances {
    const float *distances;     // (shape) to the surface, negative inside
    const double *outside;      // (nz,) permittivity of the solvent at each height
    const double *between;      // (nz - 1,) of an edge along z in the solvent: two halves in series
    float *x, *y, *z;           // (shape) conductances of the edges from each node
    index_t shape[3];
    double weights[3], inside;
};

// The permittivity of an edge, whose parts on both sides of the surface are in series. Its nodes are at the distances
// `here` and `there` from the surface. The permittivity of the solvent is `own` at the first node and `other` at the
// second, and `between` for an edge that is all in the solvent.
DEVICE double edge_permittivity(float here, float there, double inside, double own, double other, double between)
{
    const float sum = fabsf(here) + fabsf(there);
    const double part = fabsf(here < 0 ? here : there) / (sum > 1e-30f ? sum : 1e-30f);
    const double outer = here >= 0 ? own : other, cut = inside * outer / (part * outer + (1 - part) * inside);
    return (here < 0) != (there < 0) ? cut : here < 0 ? inside : between;
}

#ifdef __CUDACC__
NODE_KERNEL(compute_conductances, Conductances, shape, i, j, k)
{
    const index_t ny = args.shape[1], nz = args.shape[2], at = (i * ny + j) * nz + k;
    const float *here = args.distances + at;
    const double own = args.outside[k], inside = args.inside;
    args.x[at] = i + 1 < args.shape[0]
        ? (float)(args.weights[0] * edge_permittivity(*here, here[ny * nz], inside, own, own, own)) : 0;
    args.y[at] = j + 1 < ny ? (float)(args.weights[1] * edge_permittivity(*here, here[nz], inside, own, own, own)) : 0;
    args.z[at] = k + 1 < nz ? (float)(args.weights[2] * edge_permittivity(*here, here[1], inside, own,
                                                                         args.outside[k + 1], args.between[k])) : 0;
}
#else
static void fill_plane(const Conductances &args, index_t i)
{
    const index_t nx = args.shape[0], ny = args.shape[1], nz = args.shape[2];
    const double *outside = args.outside, inside = args.inside;
    const double wx = args.weights[0], wy = args.weights[1], wz = args.weights[2];
    for (index_t j = 0; j < ny; j++) {
        const float *__restrict__ here = args.distances + (i * ny + j) * nz;
        const float *__restrict__ next_plane = i + 1 < nx ? here + ny * nz : here;
        const float *__restrict__ next_row = j + 1 < ny ? here + nz : here;
        const index_t row = (i * ny + j) * nz;
        float *__restrict__ x = args.x + row, *__restrict__ y = args.y + row, *__restrict__ z = args.z + row;
        const double factor_x = i + 1 < nx ? wx : 0, factor_y = j + 1 < ny ? wy : 0;
#pragma omp simd
        for (index_t k = 0; k < nz; k++) {
            const double o = outside[k];
            x[k] = (float)(factor_x * edge_permittivity(here[k], next_plane[k], inside, o, o, o));
            y[k] = (float)(factor_y * edge_permittivity(here[k], next_row[k], inside, o, o, o));
        }
#pragma omp simd
        for (index_t k = 0; k < nz - 1; k++)
            z[k] = (float)(wz * edge_permittivity(here[k], here[k + 1], inside, outside[k], outside[k + 1],
                                                  args.between[k]));
        z[nz - 1] = 0;
    }
}

RANGE_KERNEL(compute_conductances, Conductances, first, last)
{
    for (index_t i = first; i < last; i++)
        fill_plane(args, i);
}
#endif

struct OpenedEdges {
    const float *distances;     // (shape) to the surface, negative inside
    const bool *pores;          // (shape) which nodes are in pores, if they are not inside
    float *x, *y, *z;           // (shape) conductances of the edges from each node
    index_t shape[3];
    double weights[3], inside, water;
};

// Set the conductances of edges between nodes in pores, or in a pore and inside, to those in water.
NODE_KERNEL(open_edges, OpenedEdges, shape, i, j, k)
{
    const index_t nz = args.shape[2], at = (i * args.shape[1] + j) * nz + k;
    const index_t steps[3] = {args.shape[1] * nz, nz, 1};
    const bool exists[3] = {i + 1 < args.shape[0], j + 1 < args.shape[1], k + 1 < nz};
    float *const edges[3] = {args.x + at, args.y + at, args.z + at};
    const float here = args.distances[at];
    for (int d = 0; d < 3; d++) {
        if (!exists[d])
            continue;
        const float there = args.distances[at + steps[d]];
        const bool wet = here >= 0 && args.pores[at], other = there >= 0 && args.pores[at + steps[d]];
        if ((wet || here < 0) && (other || there < 0) && (wet || other))
            *edges[d] = (float)(args.weights[d] * edge_permittivity(here, there, args.inside, args.water, args.water,
                                                                    args.water));
    }
}

struct AppliedFlows {
    const float *z, *k2;        // (shape) conductances of edges along z, and the ions' term
    const double *slab_z;       // (nz - 1,) and (nz,) the same for the slab without a molecule
    const double *slab_k2;
    const double *potential;    // (nz,) across that slab
    const double *side;         // (nz,) potential of the reservoir of the ions at each height
    float *sources;             // (shape)
    index_t shape[3];
};

// Add to sources what flows into nodes because the potential across a slab does not solve the equation with a molecule.
NODE_KERNEL(add_applied_flows, AppliedFlows, shape, i, j, k)
{
    const index_t nx = args.shape[0], ny = args.shape[1], nz = args.shape[2], at = (i * ny + j) * nz + k;
    if (i == 0 || j == 0 || k == 0 || i == nx - 1 || j == ny - 1 || k == nz - 1)
        return;
    const double *own = args.potential + k;
    double flow = (args.z[at] - args.slab_z[k]) * (own[1] - own[0])
        + (args.z[at - 1] - args.slab_z[k - 1]) * (own[-1] - own[0]);
    flow -= (args.k2[at] - args.slab_k2[k]) * (own[0] - args.side[k]);
    args.sources[at] += (float)flow;
}

struct RaisedPotential {
    const float *unknown;       // (shape)
    const double *potential;    // (nz,)
    float *out;                 // (shape)
    index_t shape[3];
};

// Add a potential that depends on the height alone.
NODE_KERNEL(raise_potential, RaisedPotential, shape, i, j, k)
{
    const index_t at = (i * args.shape[1] + j) * args.shape[2] + k;
    args.out[at] = args.unknown[at] + (float)args.potential[k];
}

struct Sides {
    const float *distances;
    bool *within;        // (nodes,) whether nodes are inside
};

KERNEL(find_sides, Sides, at) { args.within[at] = args.distances[at] < 0; }

struct IonShares {
    float *shares;          // (shape) fractions of cells that ions can reach
    const bool *within;
    const bool *pores;      // (shape) which nodes are in pores; may be null
    const float *factors;   // (nz,) at each height
    index_t shape[3];
    float water;            // factor in pores
};

// Multiply a fraction by the factor of its height or of pores, and by 0 inside.
NODE_KERNEL(scale_shares, IonShares, shape, i, j, k)
{
    const index_t at = (i * args.shape[1] + j) * args.shape[2] + k;
    const float factor = args.pores && args.pores[at] ? args.water : args.factors[k];
    args.shares[at] = args.within[at] ? 0 : args.shares[at] * factor;
}
