// A smooth permittivity: the fraction of the space at each node that is free of atoms' densities.
#include "kernel.h"
#ifndef __CUDACC__

struct FreeFractions {
    const double *centres, *widths;   // (atoms, 3), (atoms,)
    float *free;                      // (shape)
    index_t shape[3], atoms;
    double origin[3], spacing[3], reach, core;
};

// Multiply `free` in some planes by 1 - exp(-(r / width)^2) of each atom within `reach` widths. r is at least `core`.
RANGE_KERNEL(multiply_free_fractions, FreeFractions, first, last)
{
    const double *h = args.spacing;
    for (index_t n = 0; n < args.atoms; n++) {
        const double far = args.widths[n] * args.reach, factor = -1 / (args.widths[n] * args.widths[n]);
        index_t begin[3], end[3];
        double off[3];
        for (int d = 0; d < 3; d++) {
            off[d] = args.origin[d] - args.centres[3 * n + d];
            const index_t low = (index_t)ceil((-far - off[d]) / h[d]), high = (index_t)floor((far - off[d]) / h[d]) + 1;
            const index_t bottom = d ? 0 : first, top = d ? args.shape[d] : last;
            begin[d] = low > bottom ? low : bottom;
            end[d] = high < top ? high : top;
        }
        for (index_t i = begin[0]; i < end[0]; i++) {
            const double x = i * h[0] + off[0];
            for (index_t j = begin[1]; j < end[1]; j++) {
                const double y = j * h[1] + off[1], square = x * x + y * y;
                for (index_t k = begin[2]; k < end[2]; k++) {
                    const double z = k * h[2] + off[2], r2 = square + z * z;
                    if (r2 < far * far)
                        args.free[(i * args.shape[1] + j) * args.shape[2] + k] *=
                            (float)-expm1(factor * fmax(r2, args.core * args.core));
                }
            }
        }
    }
}
#endif
