// Traced functions at some distances, by the structs of radial.h and by the interpreter, for tests/interactions/test_radial_functions.py.
#include "kernel.h"
#ifndef __CUDACC__
#include "interpreter.h"
#include "radial.h"

struct Arguments {
    const double *uniforms, *r;  // r: 16 distances
    const double *i, *j, *pair;  // of a term: parameters of both atoms, and of their types
    double *values;              // (2, 16)
    int number;
    bool single;
    const int *steps, *results;
    const double *constants, *tables;
    int step_count, constant_count, register_count, uniform_count;
};

template <class V> struct Work {
    typedef traced::number_of<V> Number;
    Number numbers[2100], r2[16], rinv[16], out[16];
    const Arguments &args;

    Work(const Arguments &args, const double *from, int count) : args(args)
    {
        for (int k = 0; k < count; k++)
            numbers[k] = from[k];
        for (int n = 0; n < 16; n++) {
            r2[n] = args.r[n] * args.r[n];
            rinv[n] = 1 / args.r[n];
        }
    }
    void write(int result, int n, V value)
    {
        store(out + n, value);
        for (int k = n; k < n + traced::type_of<V>::lanes; k++)
            args.values[16 * result + k] = out[k];
    }
};

template <class V, template <class> class Function> static void evaluate(const Arguments &args)
{
    Work<V> work(args, args.uniforms, args.uniform_count);
    const Function<V> function(work.numbers);
    for (int n = 0; n < 16; n += traced::type_of<V>::lanes) {
        const V r2 = load<V>(work.r2 + n), rinv = load<V>(work.rinv + n);
        work.write(0, n, function.value(r2, rinv));
        work.write(1, n, function.derivative(r2, rinv));
    }
}

template <class V, template <class> class Term> static void evaluate_term(const Arguments &args)
{
    Work<V> work(args, args.uniforms, args.uniform_count);
    const Term<V> term(work.numbers);
    V i[4], j[4], pair[4];
    for (int k = 0; k < 4; k++) {
        i[k] = traced::fill<V>((traced::number_of<V>)args.i[k]);
        j[k] = traced::fill<V>((traced::number_of<V>)args.j[k]);
        pair[k] = traced::fill<V>((traced::number_of<V>)args.pair[k]);
    }
    for (int n = 0; n < 16; n += traced::type_of<V>::lanes) {
        const V r2 = load<V>(work.r2 + n), rinv = load<V>(work.rinv + n);
        work.write(0, n, term.slope(r2, rinv, i, j, pair));
        work.write(1, n, term.energy(r2, rinv, i, j, pair));
    }
}

template <class V> static void interpret(const Arguments &args)
{
    const int parts = 16 / traced::type_of<V>::lanes;
    Work<V> work(args, args.constants, args.constant_count), tables(args, args.tables, 8);
    Interpreter<V, parts> program(args.steps, args.step_count, work.numbers, args.constant_count, tables.numbers,
                                  args.results, args.register_count, 2);
    for (int n = 0; n < parts; n++) {
        program.input(0)[n] = load<V>(work.r2 + n * traced::type_of<V>::lanes);
        program.input(1)[n] = load<V>(work.rinv + n * traced::type_of<V>::lanes);
    }
    program.run();
    for (int result = 0; result < 2; result++)
        for (int n = 0; n < parts; n++)
            work.write(result, n * traced::type_of<V>::lanes, program.result(result)[n]);
}

RANGE_KERNEL(evaluate_function, Arguments, first, last)
{
#define CASE(n, Function) \
    case n: args.single ? evaluate<floats, Function>(args) : evaluate<doubles, Function>(args); break;
    switch (args.number) {
    case -1: args.single ? interpret<floats>(args) : interpret<doubles>(args); break;
        RADIAL_FUNCTIONS(CASE)
    }
#undef CASE
}

RANGE_KERNEL(evaluate_pair_term, Arguments, first, last)
{
#define CASE(n, Term) \
    case n: args.single ? evaluate_term<floats, Term>(args) : evaluate_term<doubles, Term>(args); break;
    switch (args.number) {
        PAIR_TERMS(CASE)
    }
#undef CASE
}
#endif
