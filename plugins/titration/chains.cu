// Monte Carlo of the states of coupled sites: each element is a chain of its own at one pH.
#include <math.h>

#include "kernel.h"

// Cost, kT, above which no change happens in as many moves as there are.
#define NEVER 30.0

struct Chains {
    const double *own;      // (values of pH, rows) energy of each state with all other sites in their first states, kT
    const double *between;  // (rows, rows)
    const index_t *first;   // (sites + 1,) the first row of each site; a site's first state has none
    const index_t *pairs;   // (pair_count, 2) sites that also change together
    const uint64_t *seeds;  // (chains,)
    double *fields;         // (chains, rows) energy of each state with the other sites as they are
    index_t *states;        // (chains, sites) row of each site's state; -1 for the first
    double *sums;           // (chains, rows) number of sweeps in each state
    index_t rows, sites, pair_count, chains_of_each, sweeps, skipped;
};

// A random number in [0, 1): xorshift64* (S. Vigna, ACM Trans. Math. Softw. 42 (2016) 30).
DEVICE double next_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return (double)((x * 2685821657736338717ULL) >> 11) * (1.0 / 9007199254740992.0);
}

// A state of a site, other than the present one.
DEVICE index_t another_state(const Chains &args, index_t site, index_t present, uint64_t *random)
{
    const index_t first = args.first[site], others = args.first[site + 1] - first;
    if (others == 1)
        return present < 0 ? first : -1;
    index_t chosen = first + (index_t)(next_random(random) * (double)others);
    if (chosen >= first + others)
        chosen = first + others - 1;
    return chosen == present ? -1 : chosen;  // -1 takes the place of the present one
}

DEVICE double energy_of(const double *fields, index_t state) { return state < 0 ? 0 : fields[state]; }

DEVICE double between_states(const Chains &args, index_t a, index_t b)
{
    return a < 0 || b < 0 ? 0 : args.between[a * args.rows + b];
}

DEVICE void add_row(const Chains &args, double *fields, index_t state, double sign)
{
    if (state < 0)
        return;
    const double *between = args.between + state * args.rows;
    for (index_t row = 0; row < args.rows; row++)
        fields[row] += sign * between[row];
}

DEVICE void replace_state(const Chains &args, double *fields, index_t before, index_t after)
{
    add_row(args, fields, after, 1);
    add_row(args, fields, before, -1);
}

KERNEL(run_chains, Chains, chain)
{
    double *fields = args.fields + chain * args.rows, *sums = args.sums + chain * args.rows;
    index_t *states = args.states + chain * args.sites;
    uint64_t random = args.seeds[chain];
    for (index_t row = 0; row < args.rows; row++) {
        fields[row] = args.own[chain / args.chains_of_each * args.rows + row];
        sums[row] = 0;
    }
    for (index_t site = 0; site < args.sites; site++)
        states[site] = -1;
    for (index_t sweep = 0; sweep < args.skipped + args.sweeps; sweep++) {
        for (index_t move = 0; move < args.sites + args.pair_count; move++) {
            const bool both = move >= args.sites;
            const index_t a = both ? args.pairs[2 * (move - args.sites)] : move;
            const index_t b = both ? args.pairs[2 * (move - args.sites) + 1] : -1;
            const index_t a0 = states[a], a1 = another_state(args, a, a0, &random);
            double cost = energy_of(fields, a1) - energy_of(fields, a0);
            index_t b0 = -1, b1 = -1;
            if (both) {
                b0 = states[b];
                b1 = another_state(args, b, b0, &random);
                // the field at b is that of a's present state
                cost += energy_of(fields, b1) - energy_of(fields, b0) + between_states(args, a1, b1)
                        - between_states(args, a1, b0) - between_states(args, a0, b1) + between_states(args, a0, b0);
            }
            if (cost > 0 && (cost > NEVER || next_random(&random) >= exp(-cost)))
                continue;
            states[a] = a1;
            replace_state(args, fields, a0, a1);
            if (both) {
                states[b] = b1;
                replace_state(args, fields, b0, b1);
            }
        }
        for (index_t site = 0; sweep >= args.skipped && site < args.sites; site++)
            if (states[site] >= 0)
                sums[states[site]] += 1;
    }
}
