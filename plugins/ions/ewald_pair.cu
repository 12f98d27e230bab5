// The potential of one charge and all its periodic images at points, in float64, and Metropolis steps of such charges.
//
// The short-range part is that of the nearest image, within a cutoff. The smooth part for a charge at the cell's corner
// has coefficients of cubic B-splines on a mesh over the cell, which is continued periodically by one node before the
// first and two nodes after the last.
#include "kernel.h"
#ifndef __CUDACC__
#include "images.h"
#include "radial_values.h"

enum { BLOCK = 64 };  // points that are computed together

typedef double quad __attribute__((vector_size(32)));

struct OneCharge {
    const double *px, *py, *pz;    // points
    double *out;                   // their potential, to which that of the charge is added
    double position[3], charge;
    const int64_t *start;          // (bins + 1,) first point of each bin
    const double *centres;         // (3, bins)
    index_t bin_count;
    double radius;                 // of a sphere around a bin
    const double *smooth;          // coefficients of the smooth part
    index_t shape[3];
    double basis[3][3], inverse[3][3];
    const double *shifts;
    int shift_count;
    double soft2, cutoff2;
    int number;                    // of the radial function
    const double *uniforms, *constants, *tables;
    const int *steps, *results;
    int uniform_count, step_count, constant_count, table_count, register_count;
};

// The cubic B-spline weights of the 4 nodes around a point, a fraction t above the second node.
template <class V> DEVICE void find_cubic(V t, V *w)
{
    const V s = 1.0 - t;
    w[0] = s * s * s * (1 / 6.0);
    w[1] = (4.0 - 3.0 * t * t * (2.0 - t)) * (1 / 6.0);
    w[2] = (4.0 - 3.0 * s * s * (2.0 - s)) * (1 / 6.0);
    w[3] = t * t * t * (1 / 6.0);
}

// The first numbers of an array, and zeros beyond `count`.
DEVICE doubles load_some(const double *from, int count)
{
    if (count >= DOUBLES)
        return load<doubles>(from);
    double part[DOUBLES] = {};
    for (int i = 0; i < count; i++)
        part[i] = from[i];
    return load<doubles>(part);
}

// The nodes around a block of points on a mesh of cubic B-splines.
struct Nodes {
    const double *const mesh;
    const index_t row, plane;
    const double last[3];              // the last cell along each axis
    double weights[3][4][BLOCK], first[BLOCK];

    // The mesh has three more nodes along each axis than the cell.
    Nodes(const double *mesh, const index_t *shape)
        : mesh(mesh), row(shape[2]), plane(shape[1] * shape[2]),
          last{shape[0] - 4.0, shape[1] - 4.0, shape[2] - 4.0}
    {
    }

    // Set a vector of points, from point k on, in units of the mesh.
    MEMBER void set(int k, const doubles *at)
    {
        const doubles one = traced::fill<doubles>(1), zero = {};
        const double strides[3] = {(double)plane, (double)row, 1};
        doubles node = {};
        for (int n = 0; n < 3; n++) {
            const doubles near = traced::nearest(at[n]), below = near - traced::select(at[n] < near, one, zero);
            const doubles base = traced::min(below, traced::fill<doubles>(last[n]));  // a fraction may round up to 1
            doubles w[4];
            find_cubic(at[n] - base, w);
            for (int m = 0; m < 4; m++)
                store(weights[n][m] + k, w[m]);
            node += base * strides[n];
        }
        store(first + k, node);
    }

    // Add a multiple of the smooth part at some points.
    void add(int count, double factor, double *out) const
    {
        const index_t row = this->row, plane = this->plane;
        for (int i = 0; i < count; i++) {
            const double *from = mesh + (index_t)first[i];
            quad total = {};
            for (int a = 0; a < 4; a++, from += plane) {
                quad sum = {};
                for (int b = 0; b < 4; b++)
                    sum += weights[1][b][i] * load<quad>(from + b * row);
                total += weights[0][a][i] * sum;
            }
            out[i] += factor * ((total[0] * weights[2][0][i] + total[1] * weights[2][1][i])
                                + (total[2] * weights[2][2][i] + total[3] * weights[2][3][i]));
        }
    }
};

// The potential of a charge at the points of a block.
struct ChargePotential {
    const RadialValues radial;
    const Images images;
    const double cutoff2, *smooth;
    index_t shape[3];

    template <class Arguments> explicit ChargePotential(const Arguments &args)
        : radial(args), images(args), cutoff2(args.cutoff2), smooth(args.smooth)
    {
        memcpy(shape, args.shape, sizeof(shape));
    }

    // Squared distances of points, from x[0], y[0], z[0] on, to the nearest image of a position.
    void find_squares(const double *x, const double *y, const double *z, int count, const double *position,
                      double *r2) const
    {
        const Images images = this->images;
        for (int k = 0; k < count; k += DOUBLES) {
            doubles d[3] = {load_some(x + k, count - k) - position[0], load_some(y + k, count - k) - position[1],
                            load_some(z + k, count - k) - position[2]};
            store(r2 + k, images.nearest_square(d));
        }
    }

    void add_short_range(const double *r2, int count, double charge, double *out) const
    {
        double values[BLOCK];
        radial(r2, count, values);
        for (int i = 0; i < count; i++)
            out[i] += r2[i] < cutoff2 ? charge * values[i] : 0;
    }

    void add(const double *x, const double *y, const double *z, int count, const double *position, double charge,
             double *out) const
    {
        const Images images = this->images;
        Nodes nodes(smooth, shape);
        double r2[BLOCK] = {};
        for (int k = 0; k < count; k += DOUBLES) {
            doubles d[3] = {load_some(x + k, count - k) - position[0], load_some(y + k, count - k) - position[1],
                            load_some(z + k, count - k) - position[2]};
            doubles part[3], at[3];
            Images::multiply(d, images.inverse, part);
            for (int n = 0; n < 3; n++) {
                part[n] -= traced::nearest(part[n]);
                at[n] = part[n] + traced::select(part[n] < doubles{}, traced::fill<doubles>(1), doubles{});
                at[n] *= (double)(shape[n] - 3);
            }
            Images::multiply(part, images.basis, d);
            store(r2 + k, images.smallest_square(d));
            nodes.set(k, at);
        }
        add_short_range(r2, count, charge, out);
        nodes.add(count, charge, out);
    }
};

// Add the potential of a charge to points from first to last.
RANGE_KERNEL(add_one_charge, OneCharge, first, last)
{
    const ChargePotential potential(args);
    for (index_t i = first; i < last; i += BLOCK)
        potential.add(args.px + i, args.py + i, args.pz + i, last - i < BLOCK ? (int)(last - i) : BLOCK, args.position,
                      args.charge, args.out + i);
}

// Add its short-range part to the points of bins from first to last.
RANGE_KERNEL(add_short_range_of_charge, OneCharge, first, last)
{
    const ChargePotential potential(args);
    const double reach = sqrt(args.cutoff2) + args.radius, *centres = args.centres;
    double gap2[BLOCK], r2[BLOCK];
    for (index_t group = first; group < last; group += BLOCK) {
        const int bins = last - group < BLOCK ? (int)(last - group) : BLOCK;
        potential.find_squares(centres + group, centres + args.bin_count + group, centres + 2 * args.bin_count + group,
                               bins, args.position, gap2);
        for (int b = 0; b < bins; b++) {
            if (gap2[b] > reach * reach)
                continue;
            const index_t end = args.start[group + b + 1];
            for (index_t i = args.start[group + b]; i < end; i += BLOCK) {
                const int count = end - i < BLOCK ? (int)(end - i) : BLOCK;
                potential.find_squares(args.px + i, args.py + i, args.pz + i, count, args.position, r2);
                potential.add_short_range(r2, count, args.charge, args.out + i);
            }
        }
    }
}

struct SmoothPart {
    const double *unit;            // (NX, NY, NZ) coefficients for a unit charge on the first node
    index_t shape[3];
    double place[3], charge;       // in units of the mesh
    double *total;                 // (NX + 3, NY + 3, NZ + 3) coefficients of the sum, continued periodically
    double *scratch;               // (NY + 4) (NZ + 5) numbers and more
    double *largest;               // (1,) largest absolute value of the sum
};

// Add the smooth part of a charge to planes of a sum from first to last.
RANGE_KERNEL(add_smooth_part, SmoothPart, first, last)
{
    const index_t nx = args.shape[0], ny = args.shape[1], nz = args.shape[2];
    index_t base[3];
    double w[3][4];
    for (int n = 0; n < 3; n++) {
        base[n] = (index_t)traced::min(__builtin_floor(args.place[n]), args.shape[n] - 1.0);
        find_cubic(args.place[n] - base[n], w[n]);
    }
    double *plane = args.scratch, *line = plane + ny * nz, *most = line + 2 * nz + 5;
    for (index_t c = 0; c < nz + 3; c++)
        most[c] = 0;
    const index_t turn = (2 * nz - base[2] - 3) % nz;  // a line then begins with the last of the first node's 4 terms
    for (index_t a = first; a < last; a++) {
        const double *p[4];
        for (int n = 0; n < 4; n++)
            p[n] = args.unit + (a - base[0] - n + 2 * nx) % nx * ny * nz;
#pragma omp simd
        for (index_t k = 0; k < ny * nz; k++)
            plane[k] = w[0][0] * p[0][k] + w[0][1] * p[1][k] + w[0][2] * p[2][k] + w[0][3] * p[3][k];
        for (index_t b = 0; b < ny + 3; b++) {
            const double *r[4];
            for (int n = 0; n < 4; n++)
                r[n] = plane + (b - base[1] - n + 2 * ny) % ny * nz;
#pragma omp simd
            for (index_t k = 0; k < nz; k++)
                line[k] = args.charge * (w[1][0] * r[0][k] + w[1][1] * r[1][k] + w[1][2] * r[2][k] + w[1][3] * r[3][k]);
            for (index_t k = 0; k < nz + 5; k++)
                line[k + nz] = line[k];
            double *row = args.total + (a * (ny + 3) + b) * (nz + 3);
            const double *from = line + turn;
#pragma omp simd
            for (index_t c = 0; c < nz + 3; c++) {
                row[c] += w[2][3] * from[c] + w[2][2] * from[c + 1] + w[2][1] * from[c + 2] + w[2][0] * from[c + 3];
                const double size = fabs(row[c]);
                most[c] = most[c] > size ? most[c] : size;
            }
        }
    }
    for (index_t c = 0; c < nz + 3; c++)
        *args.largest = most[c] > *args.largest ? most[c] : *args.largest;
}

struct SmoothValues {
    const double *u, *v, *w;       // points in units of the mesh
    const double *smooth;          // the sum of smooth parts
    index_t shape[3];
    double *out;
};

// Add the sum of smooth parts at points from first to last.
RANGE_KERNEL(add_smooth_values, SmoothValues, first, last)
{
    Nodes nodes(args.smooth, args.shape);
    for (index_t i = first; i < last; i += BLOCK) {
        const int count = last - i < BLOCK ? (int)(last - i) : BLOCK;
        for (int k = 0; k < count; k += DOUBLES) {
            const doubles at[3] = {load_some(args.u + i + k, count - k), load_some(args.v + i + k, count - k),
                                   load_some(args.w + i + k, count - k)};
            nodes.set(k, at);
        }
        nodes.add(count, 1, args.out + i);
    }
}

struct IonSteps {
    const int64_t *ions, *partners, *targets;  // (S,) the charge that moves; the one whose site it exchanges, or -1; else
    const double *chances;         // its new site, accepted if this is below the Boltzmann factor
    const double *sites;           // (3, W)
    index_t site_count;
    double *where;                 // (3, K) positions of the charges, and
    int64_t *placed;               // (K,) their sites
    index_t count;
    const int64_t *size;           // (K,) row of each charge in
    const double *apart2;          // (Z, Z) squares of the smallest allowed distances, and in
    index_t size_count;
    const bool *barred;            // (Z, W) forbidden sites
    const double *charge;          // (K,)
    const double *fixed;           // (W,) potential without that of the charges
    double *phi;                   // (K,) potential at each charge of everything but itself
    double *pairs;                 // (K, K) potential of a unit charge in place of one at another, 0 on the diagonal
    double scale;                  // from the potential's unit to the energy's
    int64_t *counts;               // (2, 2) tried and accepted hops, tried and accepted exchanges
    double *scratch;               // (K,)
    double *gained;                // (1,) change of the energy
    double unit;                   // charge with the potential 1/r
    const double *smooth;
    index_t shape[3];
    double basis[3][3], inverse[3][3];
    const double *shifts;
    int shift_count;
    double soft2, cutoff2;
    int number;
    const double *uniforms, *constants, *tables;
    const int *steps, *results;
    int uniform_count, step_count, constant_count, table_count, register_count;
};

struct Site {
    double position[3];
    Site(const IonSteps &args, index_t site)
        : position{args.sites[site], args.sites[args.site_count + site], args.sites[2 * args.site_count + site]}
    {
    }
};

// Whether a charge may move to a site; the site and distance of the charge `other` do not count.
static bool may_move(const IonSteps &args, const ChargePotential &potential, index_t ion, index_t site, index_t other)
{
    if (args.barred[args.size[ion] * args.site_count + site])
        return false;
    const Site at(args, site);
    const double *limits = args.apart2 + args.size[ion] * args.size_count;
    double r2[BLOCK];
    for (index_t first = 0; first < args.count; first += BLOCK) {
        const int count = args.count - first < BLOCK ? (int)(args.count - first) : BLOCK;
        const double *x = args.where + first;
        potential.find_squares(x, x + args.count, x + 2 * args.count, count, at.position, r2);
        for (index_t j = first; j < first + count; j++)
            if ((r2[j - first] < limits[args.size[j]] || args.placed[j] == site) && j != ion && j != other)
                return false;
    }
    return true;
}

static bool accepted(double change, double chance) { return change <= 0 || chance < exp(-change); }

static void put(const IonSteps &args, index_t ion, index_t site)
{
    const Site at(args, site);
    args.placed[ion] = site;
    for (int d = 0; d < 3; d++)
        args.where[d * args.count + ion] = at.position[d];
}

static void hop(const IonSteps &args, const ChargePotential &potential, index_t ion, index_t site, double chance)
{
    const index_t count = args.count;
    double *row = args.pairs + ion * count, *moved = args.scratch;
    args.counts[0]++;
    if (!may_move(args, potential, ion, site, ion))
        return;
    memset(moved, 0, count * sizeof(double));
    for (index_t first = 0; first < count; first += BLOCK) {
        const double *x = args.where + first;
        potential.add(x, x + count, x + 2 * count, count - first < BLOCK ? (int)(count - first) : BLOCK,
                      Site(args, site).position, args.unit, moved + first);
    }
    moved[ion] = 0;
    double there = args.fixed[site];
    for (index_t j = 0; j < count; j++)
        there += moved[j] * args.charge[j];
    const double change = args.scale * args.charge[ion] * (there - args.phi[ion]);
    if (!accepted(change, chance))
        return;
    args.counts[1]++;
    for (index_t j = 0; j < count; j++) {
        args.phi[j] += args.charge[ion] * (moved[j] - row[j]);
        args.pairs[j * count + ion] = row[j] = moved[j];
    }
    args.phi[ion] = there;
    put(args, ion, site);
    *args.gained += change;
}

static void exchange(const IonSteps &args, const ChargePotential &potential, index_t ion, index_t partner, double chance)
{
    const index_t count = args.count, here = args.placed[ion], there = args.placed[partner];
    double *row = args.pairs + ion * count, *other = args.pairs + partner * count;
    const double *charge = args.charge;
    args.counts[2]++;
    if (args.size[ion] != args.size[partner] && !(may_move(args, potential, ion, there, partner)
                                                  && may_move(args, potential, partner, here, ion)))
        return;
    // the potentials at both sites without the contributions of the exchanged charges
    const double between = row[partner];
    const double at_here = args.phi[ion] - charge[partner] * between;
    const double at_there = args.phi[partner] - charge[ion] * between;
    const double moved = charge[ion] - charge[partner], change = args.scale * moved * (at_there - at_here);
    if (!accepted(change, chance))
        return;
    args.counts[3]++;
    for (index_t j = 0; j < count; j++) {
        if (j == ion || j == partner)
            continue;
        const double mine = row[j], theirs = other[j];
        args.phi[j] += moved * (theirs - mine);
        args.pairs[j * count + ion] = row[j] = theirs;
        args.pairs[j * count + partner] = other[j] = mine;
    }
    args.phi[ion] = at_there + charge[partner] * between;
    args.phi[partner] = at_here + charge[ion] * between;
    put(args, partner, here);
    put(args, ion, there);
    *args.gained += change;
}

// Metropolis steps, one after the other.
RANGE_KERNEL(do_ion_steps, IonSteps, first, last)
{
    const ChargePotential potential(args);
    for (index_t step = first; step < last; step++) {
        if (args.partners[step] < 0)
            hop(args, potential, args.ions[step], args.targets[step], args.chances[step]);
        else
            exchange(args, potential, args.ions[step], args.partners[step], args.chances[step]);
    }
}
#endif
