// The search of the sphere nearest to a point, or in which the point is deepest.
#include "kernel.h"
#ifndef __CUDACC__

struct NearestSpheres {
    const double *points;          // (points, 3)
    const double *centres, *radii; // of the spheres, sorted by cells
    const index_t *order;          // number of each sphere before sorting
    const index_t *starts;         // cell c has the spheres from starts[c] to starts[c + 1]
    double *best;                  // (points,) distances to the nearest surface, negative inside; improved
    index_t *which;                // (points,) the nearest spheres
    index_t shape[3];
    double origin[3];
    double side, largest, enough;  // of cells; radius; a distance below which no nearer sphere is searched for
};

DEVICE index_t cell_of(double x, double origin, double side, index_t count)
{
    const double cell = floor((x - origin) / side);
    return cell < 0 ? 0 : cell > count - 1 ? count - 1 : (index_t)cell;
}

// Shells of cells around a point are searched until no sphere farther away can be nearer.
KERNEL(find_nearest_spheres, NearestSpheres, p)
{
    const double *at = args.points + 3 * p;
    index_t home[3], farthest = 0;
    double wall = 1e300;  // distance to the nearest wall of the point's cell
    for (int d = 0; d < 3; d++) {
        home[d] = cell_of(at[d], args.origin[d], args.side, args.shape[d]);
        const double inside = at[d] - args.origin[d] - home[d] * args.side;
        wall = fmin(wall, fmin(inside, args.side - inside));
        farthest = farthest > home[d] ? farthest : home[d];
        farthest = farthest > args.shape[d] - 1 - home[d] ? farthest : args.shape[d] - 1 - home[d];
    }
    wall = fmax(0, wall);
    double least = args.best[p];
    index_t result = args.which[p];
    for (index_t shell = 0; shell <= farthest && least >= args.enough
             && (shell == 0 || least > (shell - 1) * args.side + wall - args.largest); shell++) {
        index_t low[3], high[3];
        for (int d = 0; d < 3; d++) {
            low[d] = home[d] > shell ? home[d] - shell : 0;
            high[d] = home[d] + shell < args.shape[d] ? home[d] + shell : args.shape[d] - 1;
        }
        for (index_t i = low[0]; i <= high[0]; i++) {
            for (index_t j = low[1]; j <= high[1]; j++) {
                // all cells inside the shell have been searched
                const bool face = llabs(i - home[0]) == shell || llabs(j - home[1]) == shell;
                for (index_t k = home[2] - shell; k <= home[2] + shell; k += face || !shell ? 1 : 2 * shell) {
                    if (k < 0 || k >= args.shape[2])
                        continue;
                    const index_t cell = (i * args.shape[1] + j) * args.shape[2] + k;
                    for (index_t n = args.starts[cell]; n < args.starts[cell + 1]; n++) {
                        const double *centre = args.centres + 3 * n;
                        const double e = at[0] - centre[0], f = at[1] - centre[1], g = at[2] - centre[2];
                        const double reach = least + args.radii[n], square = e * e + f * f + g * g;
                        if (reach > 0 && square < reach * reach) {
                            least = sqrt(square) - args.radii[n];
                            result = args.order[n];
                        }
                    }
                }
            }
        }
    }
    args.best[p] = least;
    args.which[p] = result;
}
#endif
