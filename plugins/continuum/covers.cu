// The ball below whose surface each atom is deepest, of the nearest ones.
#include "kernel.h"
#ifndef __CUDACC__

static const int COVERING = 8;

struct Covers {
    const double *positions, *radii, *wide;    // (atoms, 3), (atoms,); radii of the spheres of the probe's centre
    const double *centres;                     // (balls, 3), which are sorted by cubes, as in class PointCubes
    const index_t *balls, *starts;             // (balls,) atoms, and (cubes + 1,)
    index_t *owners;                           // (atoms,) results
    double *depths, *free;                     // (atoms,)
    index_t counts[3];
    double low[3], side, tiny, far;            // far: no two spheres that are farther apart intersect, A
};

struct Near {
    index_t atoms[COVERING];
    double squares[COVERING];                  // of their distances, which increase
    int found;
};

static void take_cube(const Covers &args, index_t i, index_t cube, Near &near)
{
    for (index_t n = args.starts[cube]; n < args.starts[cube + 1]; n++) {
        double square = 0;
        for (int d = 0; d < 3; d++) {
            const double apart = args.positions[3 * i + d] - args.centres[3 * n + d];
            square += apart * apart;
        }
        if (near.found == COVERING && square >= near.squares[COVERING - 1])
            continue;
        int place = near.found < COVERING ? near.found++ : COVERING - 1;
        for (; place > 0 && near.squares[place - 1] > square; place--) {
            near.squares[place] = near.squares[place - 1];
            near.atoms[place] = near.atoms[place - 1];
        }
        near.squares[place] = square;
        near.atoms[place] = args.balls[n];
    }
}

// Shells of cubes around an atom's, until no ball farther out is among the nearest ones, or matters.
KERNEL(find_covers, Covers, i)
{
    index_t cube[3], most = 0;
    for (int d = 0; d < 3; d++) {
        cube[d] = (index_t)floor((args.positions[3 * i + d] - args.low[d]) / args.side);
        const index_t beyond = args.counts[d] - 1 - cube[d];
        most = most > cube[d] ? most : cube[d];
        most = most > beyond ? most : beyond;
    }
    Near near;
    near.found = 0;
    for (index_t shell = 0; shell <= most; shell++) {
        const double reached = (shell - 1) * args.side;  // around the atom, in the shells before
        if (near.found && shell && (sqrt(near.squares[0]) + args.far <= reached
                                    || (near.found == COVERING && near.squares[COVERING - 1] <= reached * reached)))
            break;
        index_t first[3], last[3];
        for (int d = 0; d < 3; d++) {
            first[d] = cube[d] > shell ? cube[d] - shell : 0;
            last[d] = cube[d] + shell < args.counts[d] ? cube[d] + shell : args.counts[d] - 1;
        }
        for (index_t x = first[0]; x <= last[0]; x++)
            for (index_t y = first[1]; y <= last[1]; y++) {
                const index_t row = (x * args.counts[1] + y) * args.counts[2];
                const bool side = llabs(x - cube[0]) == shell || llabs(y - cube[1]) == shell;
                for (index_t z = first[2]; z <= last[2]; z++)
                    if (side || llabs(z - cube[2]) == shell)
                        take_cube(args, i, row + z, near);
            }
    }
    // spheres of the solvent molecule's centre: what each of the others cuts off is taken as independent
    double free = 1;
    args.depths[i] = -1e300;
    for (int n = 0; n < near.found; n++) {
        const index_t ball = near.atoms[n];
        const double apart = sqrt(near.squares[n]), below = args.radii[ball] - apart, own = args.wide[i];
        if (below > args.depths[i]) {
            args.depths[i] = below;
            args.owners[i] = ball;
        }
        if (ball == i)
            continue;
        const double away = apart > args.tiny ? apart : args.tiny;
        const double cosine = (own * own + away * away - args.wide[ball] * args.wide[ball]) / (2 * own * away);
        free *= (1 + (cosine < -1 ? -1 : cosine > 1 ? 1 : cosine)) / 2;
    }
    args.free[i] = free;
}
#endif
