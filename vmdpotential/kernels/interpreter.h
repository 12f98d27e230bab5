// Traced functions that have no struct in radial.h: their steps run one after the other, each for a block of pairs, so
// that choosing the operation costs little. vmdpotential.interactions.compiled.interpreter_instructions makes the steps.
#pragma once

#include "functions.h"

// What runs for blocks of N vectors V of pairs: write the inputs, run, read the results.
template <class V, int N> class Interpreter {
    typedef traced::number_of<V> Number;
    const int *steps, *results;
    const int count;
    const Number *tables;
    void *memory;
    V *registers;

public:
    // steps (count, 5), constants (constant_count,), which follow `inputs` registers, and results are Instructions.
    Interpreter(const int *steps, int count, const Number *constants, int constant_count, const Number *tables,
                const int *results, int register_count, int inputs)
        : steps(steps), results(results), count(count), tables(tables),
          memory(malloc(register_count * sizeof(V[N]) + sizeof(V)))
    {
        registers = (V *)(((uintptr_t)memory + sizeof(V) - 1) / sizeof(V) * sizeof(V));
        for (int k = 0; k < constant_count; k++)
            for (int n = 0; n < N; n++)
                input(inputs + k)[n] = traced::fill<V>(constants[k]);
    }
    ~Interpreter() { free(memory); }
    Interpreter(const Interpreter &) = delete;

    V *input(int k) { return registers + k * N; }
    const V *result(int k) const { return registers + results[k] * N; }

#define EACH(value)                 \
    for (int n = 0; n < N; n++)     \
        to[n] = value;              \
    break
    void run()
    {
        for (const int *step = steps; step < steps + 5 * count; step += 5) {
            V *to = registers + step[1] * N;
            const V *a = registers + step[2] * N, *b = registers + step[3] * N, *c = registers + step[4] * N;
            switch (step[0]) {  // the order of compiled.OPERATIONS
            case 0: EACH(a[n] + b[n]);
            case 1: EACH(a[n] - b[n]);
            case 2: EACH(a[n] * b[n]);
            case 3: EACH(traced::div(a[n], b[n]));
            case 4: EACH(a[n] * b[n] + c[n]);
            case 5: EACH(traced::min(a[n], b[n]));
            case 6: EACH(traced::max(a[n], b[n]));
            case 7: EACH(traced::select(a[n] < b[n], traced::fill<V>(1), V{}));
            case 8: EACH(traced::select(a[n] != V{}, b[n], c[n]));
            case 9: EACH(traced::sqrt(a[n]));
            case 10: EACH(traced::exp(a[n]));
            case 11: EACH(traced::erfc(a[n]));
            case 12: EACH(traced::interpolate(a[n], tables + step[3]));
            }
        }
    }
#undef EACH
};
