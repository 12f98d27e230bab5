// Radial functions in float64 at many distances, by their structs in radial.h or by the interpreter.
#pragma once

#include "interpreter.h"
#include "radial.h"

// The arguments of a kernel have members `soft2`, the squared distance below which that one counts, and those that
// vmdpotential.interactions.compiled.radial_arguments returns.
class RadialValues {
    enum { TOGETHER = 64 / DOUBLES };  // vectors for which the interpreter runs at a time
    typedef Interpreter<doubles, TOGETHER> Program;
    typedef void (*Function)(const RadialValues &, const double *, int, double *, double *);

    const double *uniforms, soft2;
    Program program;
    const Function function;

    MEMBER doubles clamped(const double *r2) const
    {
        return traced::max(load<doubles>(r2), traced::fill<doubles>(soft2));
    }

    template <template <class> class Struct, bool DERIVATIVE>
    static void evaluate(const RadialValues &self, const double *r2, int count, double *values, double *derivatives)
    {
        const Struct<doubles> of(self.uniforms);
        for (int k = 0; k < count; k += DOUBLES) {
            const doubles s = self.clamped(r2 + k), rinv = traced::inverse_root(s);
            store(values + k, of.value(s, rinv));
            if (DERIVATIVE)
                store(derivatives + k, of.derivative(s, rinv));
        }
    }

    template <bool DERIVATIVE>
    static void interpret(const RadialValues &self, const double *r2, int count, double *values, double *derivatives)
    {
        Program &program = const_cast<Program &>(self.program);
        for (int k = 0; k < count; k += 64) {
            const int vectors = (count - k < 64 ? count - k + DOUBLES - 1 : 64) / DOUBLES;
            for (int n = 0; n < TOGETHER; n++) {
                const doubles s = self.clamped(r2 + k + (n < vectors ? n : 0) * DOUBLES);
                program.input(0)[n] = s;
                program.input(1)[n] = traced::inverse_root(s);
            }
            program.run();
            memcpy(values + k, program.result(0), vectors * sizeof(doubles));
            if (DERIVATIVE)
                memcpy(derivatives + k, program.result(1), vectors * sizeof(doubles));
        }
    }

    template <bool DERIVATIVE> static Function choose(int number)
    {
#define CASE(n, Struct) \
    case n: return evaluate<Struct, DERIVATIVE>;
        switch (number) {
            RADIAL_FUNCTIONS(CASE)
        }
#undef CASE
        return interpret<DERIVATIVE>;
    }

public:
    template <class Arguments> explicit RadialValues(const Arguments &args, bool derivative = false)
        : uniforms(args.uniforms), soft2(args.soft2),
          program(args.steps, args.step_count, args.constants, args.number < 0 ? args.constant_count : 0, args.tables,
                  args.results, args.register_count, 2),
          function(derivative ? choose<true>(args.number) : choose<false>(args.number))
    {
    }

    // The function, and its derivative with respect to r2 if there is one, at `count` squared distances. All arrays are
    // read and written up to a whole vector.
    void operator()(const double *r2, int count, double *values, double *derivatives = nullptr) const
    {
        function(*this, r2, count, values, derivatives);
    }
};
