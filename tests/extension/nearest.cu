// The square of the distance of each point to the nearest atom.
#include "kernel.h"

struct Nearest {
    const double *points, *atoms;  // (count, 3), (number, 3)
    double *squares;
    index_t number;
};

KERNEL(find_nearest_atom, Nearest, i)
{
    double least = 1e300;
    for (index_t a = 0; a < args.number; a++) {
        double square = 0;
        for (int d = 0; d < 3; d++) {
            const double apart = args.points[3 * i + d] - args.atoms[3 * a + d];
            square += apart * apart;
        }
        least = square < least ? square : least;
    }
    args.squares[i] = least;
}
