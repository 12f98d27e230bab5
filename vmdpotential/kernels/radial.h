// Radial functions of interactions and terms of pair potentials; written by scripts/make_radial_functions.
//
// `uniforms` are what vmdpotential.interactions.compiled.uniform_values returns. `derivative` is that of `value` with
// respect to r2; slope is -1/r dE/dr. i, j and pair are parameters of both atoms, and of their types, in the order that
// the struct states.
#pragma once

#include "functions.h"

template <class V> struct Coulomb {
    static constexpr int DEGREE = 1;  // power of rinv at constant r2; -1 if the value is none
    explicit Coulomb(const traced::number_of<V> *uniforms) { (void)uniforms; }
    MEMBER V value(V r2, V rinv) const { return rinv; }
    MEMBER V derivative(V r2, V rinv) const
    {
      return (rinv * (rinv * rinv)) * traced::constant<V>(-0.5);
    }
};

template <class V> struct ShiftedCoulomb {
    V u0;
    static constexpr int DEGREE = 1;  // power of rinv at constant r2; -1 if the value is none
    explicit ShiftedCoulomb(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])) {}
    MEMBER V value(V r2, V rinv) const
    {
      const V t1 = traced::max(u0 - r2, traced::constant<V>(0.0));
      return (t1 * rinv) * t1;
    }
    MEMBER V derivative(V r2, V rinv) const
    {
      const V t0 = u0 - r2;
      const V t1 = traced::max(t0, traced::constant<V>(0.0));
      const auto t3 = traced::less(traced::constant<V>(0.0), t0);
      const V t4 = traced::select(t3, traced::constant<V>(-1.0), traced::constant<V>(0.0));
      const V t11 = ((t4 * rinv) + (((traced::constant<V>(-0.5) * rinv) * (rinv * rinv)) * t1)) * t1;
      return t11 + (t4 * (t1 * rinv));
    }
};

template <class V> struct ScreenedCoulomb {
    V u0;
    static constexpr int DEGREE = -1;  // power of rinv at constant r2; -1 if the value is none
    explicit ScreenedCoulomb(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])) {}
    MEMBER V value(V r2, V rinv) const
    {
      const V t2 = traced::max((r2 * rinv) * u0, traced::constant<V>(-87.0));
      return traced::exp(traced::min(t2, traced::constant<V>(88.0))) * rinv;
    }
    MEMBER V derivative(V r2, V rinv) const
    {
      const V t1 = (r2 * rinv) * u0;
      const V t2 = traced::max(t1, traced::constant<V>(-87.0));
      const V t4 = traced::exp(traced::min(t2, traced::constant<V>(88.0)));
      const auto t5 = traced::less(t2, traced::constant<V>(88.0));
      const auto t6 = traced::less(traced::constant<V>(-87.0), t1);
      const V t7 = rinv * rinv;
      const V t10 = traced::select(t6, (t1 * t7) * traced::constant<V>(0.5), traced::constant<V>(0.0));
      const V t16 = ((traced::constant<V>(-0.5) * rinv) * t7) * t4;
      return ((traced::select(t5, t10, traced::constant<V>(0.0)) * t4) * rinv) + t16;
    }
};

template <class V> struct DistanceDependent {
    static constexpr int DEGREE = 2;  // power of rinv at constant r2; -1 if the value is none
    explicit DistanceDependent(const traced::number_of<V> *uniforms) { (void)uniforms; }
    MEMBER V value(V r2, V rinv) const { return rinv * rinv; }
    MEMBER V derivative(V r2, V rinv) const
    {
      const V t0 = rinv * rinv;
      return (t0 * t0) * traced::constant<V>(-1.0);
    }
};

template <class V> struct SigmoidalDielectric {
    V u0, u1;
    static constexpr int DEGREE = -1;  // power of rinv at constant r2; -1 if the value is none
    explicit SigmoidalDielectric(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])), u1(traced::fill<V>(uniforms[1])) {}
    MEMBER V value(V r2, V rinv) const
    {
      const V t2 = traced::max(u1 * (r2 * rinv), traced::constant<V>(-87.0));
      const V t5 = traced::constant<V>(7.7839) * traced::exp(traced::min(t2, traced::constant<V>(88.0)));
      const V t8 = traced::fma(traced::constant<V>(-8.5525), t5, u0);
      return traced::div((traced::constant<V>(1.0) + t5) * rinv, t8);
    }
    MEMBER V derivative(V r2, V rinv) const
    {
      const V t1 = u1 * (r2 * rinv);
      const V t2 = traced::max(t1, traced::constant<V>(-87.0));
      const V t4 = traced::exp(traced::min(t2, traced::constant<V>(88.0)));
      const V t5 = traced::constant<V>(7.7839) * t4;
      const V t6 = traced::constant<V>(1.0) + t5;
      const V t8 = traced::fma(traced::constant<V>(-8.5525), t5, u0);
      const auto t10 = traced::less(t2, traced::constant<V>(88.0));
      const auto t11 = traced::less(traced::constant<V>(-87.0), t1);
      const V t12 = rinv * rinv;
      const V t15 = traced::select(t11, (t1 * t12) * traced::constant<V>(0.5), traced::constant<V>(0.0));
      const V t17 = traced::select(t10, t15, traced::constant<V>(0.0)) * t4;
      const V t18 = t17 * traced::constant<V>(7.7839);
      const V t25 = (t18 * traced::constant<V>(-8.5525)) * traced::div(t6 * rinv, t8);
      const V t26 = ((t18 * rinv) + (((traced::constant<V>(-0.5) * rinv) * t12) * t6)) - t25;
      return traced::div(t26, t8);
    }
};

template <class V> struct ReactionField {
    V u0, u1;
    static constexpr int DEGREE = -1;  // power of rinv at constant r2; -1 if the value is none
    explicit ReactionField(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])), u1(traced::fill<V>(uniforms[1])) {}
    MEMBER V value(V r2, V rinv) const { return rinv + traced::fma(u0, r2, u1); }
    MEMBER V derivative(V r2, V rinv) const
    {
      return ((traced::constant<V>(-0.5) * rinv) * (rinv * rinv)) + u0;
    }
};

template <class V> struct Ewald {
    V u0;
    static constexpr int DEGREE = -1;  // power of rinv at constant r2; -1 if the value is none
    explicit Ewald(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])) {}
    MEMBER V value(V r2, V rinv) const { return (traced::erfc(u0 * (r2 * rinv))) * rinv; }
    MEMBER V derivative(V r2, V rinv) const
    {
      const V t1 = u0 * (r2 * rinv);
      const V t3 = rinv * rinv;
      const V t8 = traced::constant<V>(-1.0) * (traced::min(t1 * t1, traced::constant<V>(87.0)));
      const V t10 = traced::constant<V>(-1.1283791670955126) * traced::exp(t8);
      const V t15 = ((traced::constant<V>(-0.5) * rinv) * t3) * traced::erfc(t1);
      return ((((t1 * t3) * traced::constant<V>(0.5)) * t10) * rinv) + t15;
    }
};

template <class V> struct Gaussian {
    V u0;
    static constexpr int DEGREE = -1;  // power of rinv at constant r2; -1 if the value is none
    explicit Gaussian(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])) {}
    MEMBER V value(V r2, V rinv) const
    {
      const V t1 = (r2 * rinv) * u0;
      const V t2 = t1 * t1;
      const V t4 = traced::fma(traced::constant<V>(1.6342614095367152e-15), t2, traced::constant<V>(-2.7835162072109212e-14));
      const V t5 = traced::fma(t4, t2, traced::constant<V>(4.4632242632864775e-13));
      const V t6 = traced::fma(t5, t2, traced::constant<V>(-6.7113668551641105e-12));
      const V t7 = traced::fma(t6, t2, traced::constant<V>(9.422759064650411e-11));
      const V t8 = traced::fma(t7, t2, traced::constant<V>(-1.2290555301717926e-09));
      const V t9 = traced::fma(t8, t2, traced::constant<V>(1.4807192815879218e-08));
      const V t10 = traced::fma(t9, t2, traced::constant<V>(-1.6365844691234924e-07));
      const V t11 = traced::fma(t10, t2, traced::constant<V>(1.6462114365889246e-06));
      const V t12 = traced::fma(t11, t2, traced::constant<V>(-1.492565035840625e-05));
      const V t13 = traced::fma(t12, t2, traced::constant<V>(0.00012055332981789664));
      const V t14 = traced::fma(t13, t2, traced::constant<V>(-0.0008548327023450852));
      const V t15 = traced::fma(t14, t2, traced::constant<V>(0.005223977625442188));
      const V t16 = traced::fma(t15, t2, traced::constant<V>(-0.026866170645131252));
      const V t17 = traced::fma(t16, t2, traced::constant<V>(0.11283791670955126));
      const V t18 = traced::fma(t17, t2, traced::constant<V>(-0.37612638903183754));
      const V t20 = traced::fma(t18, t2, traced::constant<V>(1.1283791670955126)) * u0;
      const V t23 = (traced::constant<V>(1.0) - traced::erfc(t1)) * rinv;
      return traced::select(traced::less(t2, traced::constant<V>(1.0)), t20, t23);
    }
    MEMBER V derivative(V r2, V rinv) const
    {
      const V t1 = (r2 * rinv) * u0;
      const V t2 = t1 * t1;
      const V t4 = traced::fma(traced::constant<V>(1.6342614095367152e-15), t2, traced::constant<V>(-2.7835162072109212e-14));
      const V t5 = traced::fma(t4, t2, traced::constant<V>(4.4632242632864775e-13));
      const V t6 = traced::fma(t5, t2, traced::constant<V>(-6.7113668551641105e-12));
      const V t7 = traced::fma(t6, t2, traced::constant<V>(9.422759064650411e-11));
      const V t8 = traced::fma(t7, t2, traced::constant<V>(-1.2290555301717926e-09));
      const V t9 = traced::fma(t8, t2, traced::constant<V>(1.4807192815879218e-08));
      const V t10 = traced::fma(t9, t2, traced::constant<V>(-1.6365844691234924e-07));
      const V t11 = traced::fma(t10, t2, traced::constant<V>(1.6462114365889246e-06));
      const V t12 = traced::fma(t11, t2, traced::constant<V>(-1.492565035840625e-05));
      const V t13 = traced::fma(t12, t2, traced::constant<V>(0.00012055332981789664));
      const V t14 = traced::fma(t13, t2, traced::constant<V>(-0.0008548327023450852));
      const V t15 = traced::fma(t14, t2, traced::constant<V>(0.005223977625442188));
      const V t16 = traced::fma(t15, t2, traced::constant<V>(-0.026866170645131252));
      const V t17 = traced::fma(t16, t2, traced::constant<V>(0.11283791670955126));
      const V t18 = traced::fma(t17, t2, traced::constant<V>(-0.37612638903183754));
      const V t20 = traced::constant<V>(1.0) - traced::erfc(t1);
      const V t21 = rinv * rinv;
      const V t22 = t2 * t21;
      const V t26 = (traced::fma(t22, t4, (t22 * traced::constant<V>(1.6342614095367152e-15)) * t2)) * t2;
      const V t32 = traced::fma(t22, t7, traced::fma(t22, t6, traced::fma(t22, t5, t26) * t2) * t2) * t2;
      const V t38 = traced::fma(t22, t10, traced::fma(t22, t9, traced::fma(t22, t8, t32) * t2) * t2) * t2;
      const V t43 = traced::fma(t22, t13, traced::fma(t22, t12, traced::fma(t22, t11, t38) * t2) * t2);
      const V t48 = traced::fma(t22, t15, traced::fma(t22, t14, t43 * t2) * t2) * t2;
      const V t53 = traced::fma(t22, t18, traced::fma(t22, t17, traced::fma(t22, t16, t48) * t2) * t2);
      const V t59 = traced::exp(traced::constant<V>(-1.0) * traced::min(t2, traced::constant<V>(87.0)));
      const V t60 = traced::constant<V>(-1.1283791670955126) * t59;
      const V t63 = ((((t1 * t21) * traced::constant<V>(0.5)) * t60) * traced::constant<V>(-1.0)) * rinv;
      const V t67 = t63 + (((traced::constant<V>(-0.5) * rinv) * t21) * t20);
      return traced::select(traced::less(t2, traced::constant<V>(1.0)), t53 * u0, t67);
    }
};

template <class V> struct CutCoulomb {
    V u0;
    static constexpr int DEGREE = -1;  // power of rinv at constant r2; -1 if the value is none
    explicit CutCoulomb(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])) {}
    MEMBER V value(V r2, V rinv) const { return rinv - u0; }
    MEMBER V derivative(V r2, V rinv) const
    {
      return (traced::constant<V>(-0.5) * rinv) * (rinv * rinv);
    }
};

template <class V> struct ShortRange6 {
    V u0, u1, u2, u3, u4, u5, u6, u7;
    static constexpr int DEGREE = -1;  // power of rinv at constant r2; -1 if the value is none
    explicit ShortRange6(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])), u1(traced::fill<V>(uniforms[1])), u2(traced::fill<V>(uniforms[2])), u3(traced::fill<V>(uniforms[3])), u4(traced::fill<V>(uniforms[4])), u5(traced::fill<V>(uniforms[5])), u6(traced::fill<V>(uniforms[6])), u7(traced::fill<V>(uniforms[7])) {}
    MEMBER V value(V r2, V rinv) const
    {
      const V t0 = r2 - u1;
      const V t4 = traced::fma(traced::fma(traced::fma(traced::fma(u0, t0, u2), t0, u3), t0, u4), t0, u5);
      return rinv - traced::fma(traced::fma(t4, t0, u6), t0, u7);
    }
    MEMBER V derivative(V r2, V rinv) const
    {
      const V t0 = r2 - u1;
      const V t1 = traced::fma(u0, t0, u2);
      const V t2 = traced::fma(t1, t0, u3);
      const V t3 = traced::fma(t2, t0, u4);
      const V t4 = traced::fma(t3, t0, u5);
      const V t11 = traced::fma(traced::constant<V>(1.0), t1, u0 * t0) * t0;
      const V t13 = traced::fma(traced::constant<V>(1.0), t2, t11) * t0;
      const V t15 = traced::fma(traced::constant<V>(1.0), t3, t13) * t0;
      const V t17 = traced::fma(traced::constant<V>(1.0), t4, t15) * t0;
      const V t18 = traced::fma(traced::constant<V>(1.0), traced::fma(t4, t0, u6), t17);
      return ((traced::constant<V>(-0.5) * rinv) * (rinv * rinv)) - t18;
    }
};

template <class V> struct ShortRange8 {
    V u0, u1, u2, u3, u4, u5, u6, u7, u8, u9;
    static constexpr int DEGREE = -1;  // power of rinv at constant r2; -1 if the value is none
    explicit ShortRange8(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])), u1(traced::fill<V>(uniforms[1])), u2(traced::fill<V>(uniforms[2])), u3(traced::fill<V>(uniforms[3])), u4(traced::fill<V>(uniforms[4])), u5(traced::fill<V>(uniforms[5])), u6(traced::fill<V>(uniforms[6])), u7(traced::fill<V>(uniforms[7])), u8(traced::fill<V>(uniforms[8])), u9(traced::fill<V>(uniforms[9])) {}
    MEMBER V value(V r2, V rinv) const
    {
      const V t0 = r2 - u1;
      const V t4 = traced::fma(traced::fma(traced::fma(traced::fma(u0, t0, u2), t0, u3), t0, u4), t0, u5);
      const V t8 = traced::fma(traced::fma(traced::fma(traced::fma(t4, t0, u6), t0, u7), t0, u8), t0, u9);
      return rinv - t8;
    }
    MEMBER V derivative(V r2, V rinv) const
    {
      const V t0 = r2 - u1;
      const V t1 = traced::fma(u0, t0, u2);
      const V t2 = traced::fma(t1, t0, u3);
      const V t3 = traced::fma(t2, t0, u4);
      const V t4 = traced::fma(t3, t0, u5);
      const V t5 = traced::fma(t4, t0, u6);
      const V t6 = traced::fma(t5, t0, u7);
      const V t13 = traced::fma(traced::constant<V>(1.0), t1, u0 * t0) * t0;
      const V t15 = traced::fma(traced::constant<V>(1.0), t2, t13) * t0;
      const V t17 = traced::fma(traced::constant<V>(1.0), t3, t15) * t0;
      const V t19 = traced::fma(traced::constant<V>(1.0), t4, t17) * t0;
      const V t21 = traced::fma(traced::constant<V>(1.0), t5, t19) * t0;
      const V t23 = traced::fma(traced::constant<V>(1.0), t6, t21) * t0;
      const V t24 = traced::fma(traced::constant<V>(1.0), traced::fma(t6, t0, u8), t23);
      return ((traced::constant<V>(-0.5) * rinv) * (rinv * rinv)) - t24;
    }
};

template <class V> struct ShortRange10 {
    V u0, u1, u2, u3, u4, u5, u6, u7, u8, u9, u10, u11;
    static constexpr int DEGREE = -1;  // power of rinv at constant r2; -1 if the value is none
    explicit ShortRange10(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])), u1(traced::fill<V>(uniforms[1])), u2(traced::fill<V>(uniforms[2])), u3(traced::fill<V>(uniforms[3])), u4(traced::fill<V>(uniforms[4])), u5(traced::fill<V>(uniforms[5])), u6(traced::fill<V>(uniforms[6])), u7(traced::fill<V>(uniforms[7])), u8(traced::fill<V>(uniforms[8])), u9(traced::fill<V>(uniforms[9])), u10(traced::fill<V>(uniforms[10])), u11(traced::fill<V>(uniforms[11])) {}
    MEMBER V value(V r2, V rinv) const
    {
      const V t0 = r2 - u1;
      const V t4 = traced::fma(traced::fma(traced::fma(traced::fma(u0, t0, u2), t0, u3), t0, u4), t0, u5);
      const V t8 = traced::fma(traced::fma(traced::fma(traced::fma(t4, t0, u6), t0, u7), t0, u8), t0, u9);
      return rinv - traced::fma(traced::fma(t8, t0, u10), t0, u11);
    }
    MEMBER V derivative(V r2, V rinv) const
    {
      const V t0 = r2 - u1;
      const V t1 = traced::fma(u0, t0, u2);
      const V t2 = traced::fma(t1, t0, u3);
      const V t3 = traced::fma(t2, t0, u4);
      const V t4 = traced::fma(t3, t0, u5);
      const V t5 = traced::fma(t4, t0, u6);
      const V t6 = traced::fma(t5, t0, u7);
      const V t7 = traced::fma(t6, t0, u8);
      const V t8 = traced::fma(t7, t0, u9);
      const V t15 = traced::fma(traced::constant<V>(1.0), t1, u0 * t0) * t0;
      const V t17 = traced::fma(traced::constant<V>(1.0), t2, t15) * t0;
      const V t19 = traced::fma(traced::constant<V>(1.0), t3, t17) * t0;
      const V t21 = traced::fma(traced::constant<V>(1.0), t4, t19) * t0;
      const V t23 = traced::fma(traced::constant<V>(1.0), t5, t21) * t0;
      const V t25 = traced::fma(traced::constant<V>(1.0), t6, t23) * t0;
      const V t27 = traced::fma(traced::constant<V>(1.0), t7, t25) * t0;
      const V t29 = traced::fma(traced::constant<V>(1.0), t8, t27) * t0;
      const V t30 = traced::fma(traced::constant<V>(1.0), traced::fma(t8, t0, u10), t29);
      return ((traced::constant<V>(-0.5) * rinv) * (rinv * rinv)) - t30;
    }
};

template <class V> struct ShortRange12 {
    V u0, u1, u2, u3, u4, u5, u6, u7, u8, u9, u10, u11, u12, u13;
    static constexpr int DEGREE = -1;  // power of rinv at constant r2; -1 if the value is none
    explicit ShortRange12(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])), u1(traced::fill<V>(uniforms[1])), u2(traced::fill<V>(uniforms[2])), u3(traced::fill<V>(uniforms[3])), u4(traced::fill<V>(uniforms[4])), u5(traced::fill<V>(uniforms[5])), u6(traced::fill<V>(uniforms[6])), u7(traced::fill<V>(uniforms[7])), u8(traced::fill<V>(uniforms[8])), u9(traced::fill<V>(uniforms[9])), u10(traced::fill<V>(uniforms[10])), u11(traced::fill<V>(uniforms[11])), u12(traced::fill<V>(uniforms[12])), u13(traced::fill<V>(uniforms[13])) {}
    MEMBER V value(V r2, V rinv) const
    {
      const V t0 = r2 - u1;
      const V t4 = traced::fma(traced::fma(traced::fma(traced::fma(u0, t0, u2), t0, u3), t0, u4), t0, u5);
      const V t8 = traced::fma(traced::fma(traced::fma(traced::fma(t4, t0, u6), t0, u7), t0, u8), t0, u9);
      const V t11 = traced::fma(traced::fma(traced::fma(t8, t0, u10), t0, u11), t0, u12);
      return rinv - traced::fma(t11, t0, u13);
    }
    MEMBER V derivative(V r2, V rinv) const
    {
      const V t0 = r2 - u1;
      const V t1 = traced::fma(u0, t0, u2);
      const V t2 = traced::fma(t1, t0, u3);
      const V t3 = traced::fma(t2, t0, u4);
      const V t4 = traced::fma(t3, t0, u5);
      const V t5 = traced::fma(t4, t0, u6);
      const V t6 = traced::fma(t5, t0, u7);
      const V t7 = traced::fma(t6, t0, u8);
      const V t8 = traced::fma(t7, t0, u9);
      const V t9 = traced::fma(t8, t0, u10);
      const V t10 = traced::fma(t9, t0, u11);
      const V t17 = traced::fma(traced::constant<V>(1.0), t1, u0 * t0) * t0;
      const V t19 = traced::fma(traced::constant<V>(1.0), t2, t17) * t0;
      const V t21 = traced::fma(traced::constant<V>(1.0), t3, t19) * t0;
      const V t23 = traced::fma(traced::constant<V>(1.0), t4, t21) * t0;
      const V t25 = traced::fma(traced::constant<V>(1.0), t5, t23) * t0;
      const V t27 = traced::fma(traced::constant<V>(1.0), t6, t25) * t0;
      const V t29 = traced::fma(traced::constant<V>(1.0), t7, t27) * t0;
      const V t31 = traced::fma(traced::constant<V>(1.0), t8, t29) * t0;
      const V t33 = traced::fma(traced::constant<V>(1.0), t9, t31) * t0;
      const V t35 = traced::fma(traced::constant<V>(1.0), t10, t33) * t0;
      const V t36 = traced::fma(traced::constant<V>(1.0), traced::fma(t10, t0, u12), t35);
      return ((traced::constant<V>(-0.5) * rinv) * (rinv * rinv)) - t36;
    }
};

template <class V> struct ShortCutoff {
    V u0, u1, u2, u3, u4, u5, u6, u7, u8;
    static constexpr int DEGREE = -1;  // power of rinv at constant r2; -1 if the value is none
    explicit ShortCutoff(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])), u1(traced::fill<V>(uniforms[1])), u2(traced::fill<V>(uniforms[2])), u3(traced::fill<V>(uniforms[3])), u4(traced::fill<V>(uniforms[4])), u5(traced::fill<V>(uniforms[5])), u6(traced::fill<V>(uniforms[6])), u7(traced::fill<V>(uniforms[7])), u8(traced::fill<V>(uniforms[8])) {}
    MEMBER V value(V r2, V rinv) const
    {
      const V t1 = r2 - u2;
      const V t5 = traced::fma(traced::fma(traced::fma(traced::fma(u1, t1, u3), t1, u4), t1, u5), t1, u6);
      return traced::fma(u0 * r2, rinv, rinv - traced::fma(traced::fma(t5, t1, u7), t1, u8));
    }
    MEMBER V derivative(V r2, V rinv) const
    {
      const V t0 = u0 * r2;
      const V t1 = r2 - u2;
      const V t2 = traced::fma(u1, t1, u3);
      const V t3 = traced::fma(t2, t1, u4);
      const V t4 = traced::fma(t3, t1, u5);
      const V t5 = traced::fma(t4, t1, u6);
      const V t8 = rinv * rinv;
      const V t9 = (traced::constant<V>(-0.5) * rinv) * t8;
      const V t13 = traced::fma(traced::constant<V>(1.0), t2, u1 * t1) * t1;
      const V t15 = traced::fma(traced::constant<V>(1.0), t3, t13) * t1;
      const V t17 = traced::fma(traced::constant<V>(1.0), t4, t15) * t1;
      const V t19 = traced::fma(traced::constant<V>(1.0), t5, t17) * t1;
      const V t21 = t9 - traced::fma(traced::constant<V>(1.0), traced::fma(t5, t1, u7), t19);
      return traced::fma(t9, t0, traced::fma(t0 * t8, rinv, t21));
    }
};

template <class V> struct ShortScreened {
    V u0, u1, u2, u3, u4, u5, u6, u7, u8, u9, u10, u11, u12, u13, u14, u15;
    static constexpr int DEGREE = -1;  // power of rinv at constant r2; -1 if the value is none
    explicit ShortScreened(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])), u1(traced::fill<V>(uniforms[1])), u2(traced::fill<V>(uniforms[2])), u3(traced::fill<V>(uniforms[3])), u4(traced::fill<V>(uniforms[4])), u5(traced::fill<V>(uniforms[5])), u6(traced::fill<V>(uniforms[6])), u7(traced::fill<V>(uniforms[7])), u8(traced::fill<V>(uniforms[8])), u9(traced::fill<V>(uniforms[9])), u10(traced::fill<V>(uniforms[10])), u11(traced::fill<V>(uniforms[11])), u12(traced::fill<V>(uniforms[12])), u13(traced::fill<V>(uniforms[13])), u14(traced::fill<V>(uniforms[14])), u15(traced::fill<V>(uniforms[15])) {}
    MEMBER V value(V r2, V rinv) const
    {
      const V t0 = r2 - u1;
      const V t4 = traced::fma(traced::fma(traced::fma(traced::fma(u0, t0, u2), t0, u3), t0, u4), t0, u5);
      const V t10 = traced::fma(traced::fma(traced::fma(u8, t0, u9), t0, u10), t0, u11);
      const V t13 = traced::fma(traced::fma(traced::fma(t10, t0, u12), t0, u13), t0, u14);
      return (traced::fma(traced::fma(t4, t0, u6), t0, u7) * rinv) - traced::fma(t13, t0, u15);
    }
    MEMBER V derivative(V r2, V rinv) const
    {
      const V t0 = r2 - u1;
      const V t1 = traced::fma(u0, t0, u2);
      const V t2 = traced::fma(t1, t0, u3);
      const V t3 = traced::fma(t2, t0, u4);
      const V t4 = traced::fma(t3, t0, u5);
      const V t5 = traced::fma(t4, t0, u6);
      const V t7 = traced::fma(u8, t0, u9);
      const V t8 = traced::fma(t7, t0, u10);
      const V t9 = traced::fma(t8, t0, u11);
      const V t10 = traced::fma(t9, t0, u12);
      const V t11 = traced::fma(t10, t0, u13);
      const V t15 = traced::fma(traced::constant<V>(1.0), t1, u0 * t0) * t0;
      const V t17 = traced::fma(traced::constant<V>(1.0), t2, t15) * t0;
      const V t19 = traced::fma(traced::constant<V>(1.0), t3, t17) * t0;
      const V t21 = traced::fma(traced::constant<V>(1.0), t4, t19) * t0;
      const V t27 = ((traced::constant<V>(-0.5) * rinv) * (rinv * rinv)) * traced::fma(t5, t0, u7);
      const V t31 = traced::fma(traced::constant<V>(1.0), t7, u8 * t0) * t0;
      const V t33 = traced::fma(traced::constant<V>(1.0), t8, t31) * t0;
      const V t35 = traced::fma(traced::constant<V>(1.0), t9, t33) * t0;
      const V t37 = traced::fma(traced::constant<V>(1.0), t10, t35) * t0;
      const V t39 = traced::fma(traced::constant<V>(1.0), t11, t37) * t0;
      const V t40 = traced::fma(traced::constant<V>(1.0), traced::fma(t11, t0, u14), t39);
      return ((traced::fma(traced::constant<V>(1.0), t5, t21) * rinv) + t27) - t40;
    }
};

template <class V> struct DispersionOfProbe {
    V u0, u1, u2, u3;
    static constexpr int DEGREE = -1;  // power of rinv at constant r2; -1 if the value is none
    explicit DispersionOfProbe(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])), u1(traced::fill<V>(uniforms[1])), u2(traced::fill<V>(uniforms[2])), u3(traced::fill<V>(uniforms[3])) {}
    MEMBER V value(V r2, V rinv) const
    {
      const V t0 = r2 * rinv;
      const V t5 = traced::div(u0, t0 + traced::min(traced::max(u0 - t0, u2), u1));
      const V t6 = t5 * t5;
      const V t8 = (t6 * t6) * t6;
      return traced::min(traced::fma(t8, t8, traced::constant<V>(-2.0) * t8), u3);
    }
    MEMBER V derivative(V r2, V rinv) const
    {
      const V t0 = r2 * rinv;
      const V t1 = u0 - t0;
      const V t2 = traced::max(t1, u2);
      const V t4 = t0 + traced::min(t2, u1);
      const V t5 = traced::div(u0, t4);
      const V t6 = t5 * t5;
      const V t7 = t6 * t6;
      const V t8 = t7 * t6;
      const auto t11 = traced::less(traced::fma(t8, t8, traced::constant<V>(-2.0) * t8), u3);
      const V t14 = (t0 * (rinv * rinv)) * traced::constant<V>(0.5);
      const V t17 = t14 * traced::constant<V>(-1.0);
      const V t18 = traced::select(traced::less(u2, t1), t17, traced::constant<V>(0.0));
      const V t21 = (t14 + traced::select(traced::less(t2, u1), t18, traced::constant<V>(0.0))) * t5;
      const V t24 = (traced::div(t21 * traced::constant<V>(-1.0), t4)) * t5;
      const V t25 = t24 + t24;
      const V t26 = t25 * t6;
      const V t30 = ((t26 + t26) * t6) + (t25 * t7);
      const V t33 = traced::fma(t30, t8, traced::fma(t30, t8, t30 * traced::constant<V>(-2.0)));
      return traced::select(t11, t33, traced::constant<V>(0.0));
    }
};

template <class V> struct DesolvationOfProbe {
    V u0;
    static constexpr int DEGREE = 0;  // power of rinv at constant r2; -1 if the value is none
    explicit DesolvationOfProbe(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])) {}
    MEMBER V value(V r2, V rinv) const
    {
      const V t1 = traced::max(r2 * u0, traced::constant<V>(-87.0));
      return traced::exp(traced::min(t1, traced::constant<V>(88.0)));
    }
    MEMBER V derivative(V r2, V rinv) const
    {
      const V t0 = r2 * u0;
      const V t1 = traced::max(t0, traced::constant<V>(-87.0));
      const V t3 = traced::exp(traced::min(t1, traced::constant<V>(88.0)));
      const auto t4 = traced::less(t1, traced::constant<V>(88.0));
      const auto t5 = traced::less(traced::constant<V>(-87.0), t0);
      const V t8 = traced::select(t5, t0 * (rinv * rinv), traced::constant<V>(0.0));
      return traced::select(t4, t8, traced::constant<V>(0.0)) * t3;
    }
};

template <class V> struct CoulombOfProbe {
    V u0, u1, u2;
    static constexpr int DEGREE = -1;  // power of rinv at constant r2; -1 if the value is none
    explicit CoulombOfProbe(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])), u1(traced::fill<V>(uniforms[1])), u2(traced::fill<V>(uniforms[2])) {}
    MEMBER V value(V r2, V rinv) const
    {
      const V t0 = r2 * rinv;
      const V t2 = traced::max(u1 * t0, traced::constant<V>(-87.0));
      const V t5 = traced::constant<V>(7.7839) * traced::exp(traced::min(t2, traced::constant<V>(88.0)));
      const V t8 = traced::fma(traced::constant<V>(-8.5525), t5, u0);
      const V t11 = traced::min(traced::div(t0, u2), traced::constant<V>(1.0));
      return traced::div((traced::constant<V>(1.0) + t5) * rinv, t8) * t11;
    }
    MEMBER V derivative(V r2, V rinv) const
    {
      const V t0 = r2 * rinv;
      const V t1 = u1 * t0;
      const V t2 = traced::max(t1, traced::constant<V>(-87.0));
      const V t4 = traced::exp(traced::min(t2, traced::constant<V>(88.0)));
      const V t5 = traced::constant<V>(7.7839) * t4;
      const V t6 = traced::constant<V>(1.0) + t5;
      const V t8 = traced::fma(traced::constant<V>(-8.5525), t5, u0);
      const V t9 = traced::div(t6 * rinv, t8);
      const V t10 = traced::div(t0, u2);
      const auto t12 = traced::less(t2, traced::constant<V>(88.0));
      const auto t13 = traced::less(traced::constant<V>(-87.0), t1);
      const V t14 = rinv * rinv;
      const V t17 = traced::select(t13, (t1 * t14) * traced::constant<V>(0.5), traced::constant<V>(0.0));
      const V t19 = traced::select(t12, t17, traced::constant<V>(0.0)) * t4;
      const V t20 = t19 * traced::constant<V>(7.7839);
      const V t27 = (t20 * traced::constant<V>(-8.5525)) * t9;
      const V t28 = ((t20 * rinv) + (((traced::constant<V>(-0.5) * rinv) * t14) * t6)) - t27;
      const auto t31 = traced::less(t10, traced::constant<V>(1.0));
      const V t34 = traced::select(t31, (t10 * t14) * traced::constant<V>(0.5), traced::constant<V>(0.0));
      return (traced::div(t28, t8) * traced::min(t10, traced::constant<V>(1.0))) + (t34 * t9);
    }
};

template <class V> struct CoulombOfProbeFar {
    V u0, u1, u2, u3, u4, u5, u6, u7;
    static constexpr int DEGREE = -1;  // power of rinv at constant r2; -1 if the value is none
    explicit CoulombOfProbeFar(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])), u1(traced::fill<V>(uniforms[1])), u2(traced::fill<V>(uniforms[2])), u3(traced::fill<V>(uniforms[3])), u4(traced::fill<V>(uniforms[4])), u5(traced::fill<V>(uniforms[5])), u6(traced::fill<V>(uniforms[6])), u7(traced::fill<V>(uniforms[7])) {}
    MEMBER V value(V r2, V rinv) const
    {
      const V t1 = traced::min(rinv, u3);
      const V t2 = traced::max(r2, u2) * t1;
      const V t4 = traced::max(u1 * t2, traced::constant<V>(-87.0));
      const V t7 = traced::constant<V>(7.7839) * traced::exp(traced::min(t4, traced::constant<V>(88.0)));
      const V t10 = traced::fma(traced::constant<V>(-8.5525), t7, u0);
      const V t13 = traced::min(traced::div(t2, u4), traced::constant<V>(1.0));
      const V t16 = traced::min(r2 - u2, traced::constant<V>(0.0));
      const V t19 = t16 * traced::fma(t16, traced::fma(t16, u5, u6), u7);
      return (traced::div((traced::constant<V>(1.0) + t7) * t1, t10) * t13) + t19;
    }
    MEMBER V derivative(V r2, V rinv) const
    {
      const V t0 = traced::max(r2, u2);
      const V t1 = traced::min(rinv, u3);
      const V t2 = t0 * t1;
      const V t3 = u1 * t2;
      const V t4 = traced::max(t3, traced::constant<V>(-87.0));
      const V t6 = traced::exp(traced::min(t4, traced::constant<V>(88.0)));
      const V t7 = traced::constant<V>(7.7839) * t6;
      const V t8 = traced::constant<V>(1.0) + t7;
      const V t10 = traced::fma(traced::constant<V>(-8.5525), t7, u0);
      const V t11 = traced::div(t8 * t1, t10);
      const V t12 = traced::div(t2, u4);
      const V t14 = r2 - u2;
      const V t15 = traced::min(t14, traced::constant<V>(0.0));
      const V t16 = traced::fma(t15, u5, u6);
      const auto t18 = traced::less(t4, traced::constant<V>(88.0));
      const auto t19 = traced::less(traced::constant<V>(-87.0), t3);
      const auto t20 = traced::less(u2, r2);
      const V t26 = (traced::constant<V>(-0.5) * rinv) * (rinv * rinv);
      const V t27 = traced::select(traced::less(rinv, u3), t26, traced::constant<V>(0.0));
      const V t28 = t27 * t0;
      const V t29 = (traced::select(t20, traced::constant<V>(1.0), traced::constant<V>(0.0)) * t1) + t28;
      const V t31 = traced::select(t19, t29 * u1, traced::constant<V>(0.0));
      const V t33 = traced::select(t18, t31, traced::constant<V>(0.0)) * t6;
      const V t34 = t33 * traced::constant<V>(7.7839);
      const V t40 = ((t34 * t1) + (t27 * t8)) - ((t34 * traced::constant<V>(-8.5525)) * t11);
      const auto t43 = traced::less(t12, traced::constant<V>(1.0));
      const V t46 = traced::select(t43, traced::div(t29, u4), traced::constant<V>(0.0)) * t11;
      const auto t48 = traced::less(t14, traced::constant<V>(0.0));
      const V t49 = traced::select(t48, traced::constant<V>(1.0), traced::constant<V>(0.0));
      const V t55 = (t49 * traced::fma(t15, t16, u7)) + (traced::fma(t49 * u5, t15, t49 * t16) * t15);
      return ((traced::div(t40, t10) * traced::min(t12, traced::constant<V>(1.0))) + t46) + t55;
    }
};

template <class V> struct CoulombOfProbeNear {
    V u0, u1, u2, u3, u4, u5, u6, u7;
    static constexpr int DEGREE = -1;  // power of rinv at constant r2; -1 if the value is none
    explicit CoulombOfProbeNear(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])), u1(traced::fill<V>(uniforms[1])), u2(traced::fill<V>(uniforms[2])), u3(traced::fill<V>(uniforms[3])), u4(traced::fill<V>(uniforms[4])), u5(traced::fill<V>(uniforms[5])), u6(traced::fill<V>(uniforms[6])), u7(traced::fill<V>(uniforms[7])) {}
    MEMBER V value(V r2, V rinv) const
    {
      const V t0 = r2 * rinv;
      const V t2 = traced::max(u1 * t0, traced::constant<V>(-87.0));
      const V t5 = traced::constant<V>(7.7839) * traced::exp(traced::min(t2, traced::constant<V>(88.0)));
      const V t8 = traced::fma(traced::constant<V>(-8.5525), t5, u0);
      const V t11 = traced::min(traced::div(t0, u2), traced::constant<V>(1.0));
      const V t15 = traced::min(r2 - u4, traced::constant<V>(0.0));
      const V t18 = t15 * traced::fma(t15, traced::fma(t15, u5, u6), u7);
      return ((traced::div((traced::constant<V>(1.0) + t5) * rinv, t8) * t11) - u3) - t18;
    }
    MEMBER V derivative(V r2, V rinv) const
    {
      const V t0 = r2 * rinv;
      const V t1 = u1 * t0;
      const V t2 = traced::max(t1, traced::constant<V>(-87.0));
      const V t4 = traced::exp(traced::min(t2, traced::constant<V>(88.0)));
      const V t5 = traced::constant<V>(7.7839) * t4;
      const V t6 = traced::constant<V>(1.0) + t5;
      const V t8 = traced::fma(traced::constant<V>(-8.5525), t5, u0);
      const V t9 = traced::div(t6 * rinv, t8);
      const V t10 = traced::div(t0, u2);
      const V t12 = r2 - u4;
      const V t13 = traced::min(t12, traced::constant<V>(0.0));
      const V t14 = traced::fma(t13, u5, u6);
      const auto t16 = traced::less(t2, traced::constant<V>(88.0));
      const auto t17 = traced::less(traced::constant<V>(-87.0), t1);
      const V t18 = rinv * rinv;
      const V t21 = traced::select(t17, (t1 * t18) * traced::constant<V>(0.5), traced::constant<V>(0.0));
      const V t23 = traced::select(t16, t21, traced::constant<V>(0.0)) * t4;
      const V t24 = t23 * traced::constant<V>(7.7839);
      const V t31 = (t24 * traced::constant<V>(-8.5525)) * t9;
      const V t32 = ((t24 * rinv) + (((traced::constant<V>(-0.5) * rinv) * t18) * t6)) - t31;
      const auto t35 = traced::less(t10, traced::constant<V>(1.0));
      const V t38 = traced::select(t35, (t10 * t18) * traced::constant<V>(0.5), traced::constant<V>(0.0));
      const V t40 = (traced::div(t32, t8) * traced::min(t10, traced::constant<V>(1.0))) + (t38 * t9);
      const auto t41 = traced::less(t12, traced::constant<V>(0.0));
      const V t42 = traced::select(t41, traced::constant<V>(1.0), traced::constant<V>(0.0));
      const V t48 = (t42 * traced::fma(t13, t14, u7)) + (traced::fma(t42 * u5, t13, t42 * t14) * t13);
      return t40 - t48;
    }
};

// i: charge
// j: charge
template <class V> struct CoulombChargesPair {
    static constexpr int PARAMETERS = 1;  // of each atom
    explicit CoulombChargesPair(const traced::number_of<V> *uniforms) { (void)uniforms; }
    MEMBER V slope(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      return ((rinv * rinv) * rinv) * (i[0] * j[0]);
    }
    MEMBER V energy(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      return rinv * (i[0] * j[0]);
    }
};

// i: charge
// j: charge
template <class V> struct ShiftedCoulombChargesPair {
    V u0, u1;
    static constexpr int PARAMETERS = 1;  // of each atom
    explicit ShiftedCoulombChargesPair(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])), u1(traced::fill<V>(uniforms[1])) {}
    MEMBER V slope(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t0 = u0 - r2;
      const auto t1 = traced::less(traced::constant<V>(0.0), t0);
      const V t2 = traced::select(t1, traced::constant<V>(-1.0), traced::constant<V>(0.0));
      const V t7 = traced::max(t0, traced::constant<V>(0.0));
      const V t10 = ((t2 * rinv) + (((traced::constant<V>(-0.5) * rinv) * (rinv * rinv)) * t7)) * t7;
      const V t16 = i[0] * j[0];
      return ((traced::div(t10 + (t2 * (t7 * rinv)), u1)) * traced::constant<V>(-2.0)) * t16;
    }
    MEMBER V energy(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t1 = traced::max(u0 - r2, traced::constant<V>(0.0));
      return traced::div((t1 * rinv) * t1, u1) * (i[0] * j[0]);
    }
};

// i: charge
// j: charge
template <class V> struct ScreenedCoulombChargesPair {
    V u0;
    static constexpr int PARAMETERS = 1;  // of each atom
    explicit ScreenedCoulombChargesPair(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])) {}
    MEMBER V slope(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t1 = (r2 * rinv) * u0;
      const V t2 = traced::max(t1, traced::constant<V>(-87.0));
      const auto t3 = traced::less(t2, traced::constant<V>(88.0));
      const auto t4 = traced::less(traced::constant<V>(-87.0), t1);
      const V t5 = rinv * rinv;
      const V t8 = traced::select(t4, (t1 * t5) * traced::constant<V>(0.5), traced::constant<V>(0.0));
      const V t11 = traced::exp(traced::min(t2, traced::constant<V>(88.0)));
      const V t16 = ((traced::constant<V>(-0.5) * rinv) * t5) * t11;
      const V t17 = ((traced::select(t3, t8, traced::constant<V>(0.0)) * t11) * rinv) + t16;
      return (t17 * traced::constant<V>(-2.0)) * (i[0] * j[0]);
    }
    MEMBER V energy(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t2 = traced::max((r2 * rinv) * u0, traced::constant<V>(-87.0));
      return (traced::exp(traced::min(t2, traced::constant<V>(88.0))) * rinv) * (i[0] * j[0]);
    }
};

// i: charge
// j: charge
template <class V> struct DistanceDependentChargesPair {
    V u0;
    static constexpr int PARAMETERS = 1;  // of each atom
    explicit DistanceDependentChargesPair(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])) {}
    MEMBER V slope(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t0 = rinv * rinv;
      const V t4 = ((traced::div(t0, u0) * t0) * traced::constant<V>(-1.0)) * traced::constant<V>(-2.0);
      return t4 * (i[0] * j[0]);
    }
    MEMBER V energy(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      return traced::div(rinv * rinv, u0) * (i[0] * j[0]);
    }
};

// i: charge
// j: charge
template <class V> struct SigmoidalDielectricChargesPair {
    V u0, u1, u2;
    static constexpr int PARAMETERS = 1;  // of each atom
    explicit SigmoidalDielectricChargesPair(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])), u1(traced::fill<V>(uniforms[1])), u2(traced::fill<V>(uniforms[2])) {}
    MEMBER V slope(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t2 = traced::max(u1 * (r2 * rinv), traced::constant<V>(-87.0));
      const V t5 = traced::constant<V>(7.7839) * traced::exp(traced::min(t2, traced::constant<V>(88.0)));
      const V t7 = traced::div(rinv, traced::fma(traced::constant<V>(-8.5525), t5, u0));
      const V t13 = t7 * (traced::fma(u2 * t5, t7, (traced::constant<V>(1.0) + t5) * (rinv * rinv)));
      return t13 * (i[0] * j[0]);
    }
    MEMBER V energy(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t2 = traced::max(u1 * (r2 * rinv), traced::constant<V>(-87.0));
      const V t5 = traced::constant<V>(7.7839) * traced::exp(traced::min(t2, traced::constant<V>(88.0)));
      const V t6 = traced::fma(traced::constant<V>(-8.5525), t5, u0);
      return traced::div((traced::constant<V>(1.0) + t5) * rinv, t6) * (i[0] * j[0]);
    }
};

// i: charge
// j: charge
template <class V> struct ReactionFieldChargesPair {
    V u0, u1, u2;
    static constexpr int PARAMETERS = 1;  // of each atom
    explicit ReactionFieldChargesPair(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])), u1(traced::fill<V>(uniforms[1])), u2(traced::fill<V>(uniforms[2])) {}
    MEMBER V slope(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      return (((rinv * rinv) * rinv) - u1) * (i[0] * j[0]);
    }
    MEMBER V energy(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      return (rinv + traced::fma(u0, r2, u2)) * (i[0] * j[0]);
    }
};

// i: charge
// j: charge
template <class V> struct ExcludedReactionFieldChargesPair {
    V u0, u1, u2;
    static constexpr int PARAMETERS = 1;  // of each atom
    explicit ExcludedReactionFieldChargesPair(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])), u1(traced::fill<V>(uniforms[1])), u2(traced::fill<V>(uniforms[2])) {}
    MEMBER V slope(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      return u1 * (i[0] * j[0]);
    }
    MEMBER V energy(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      return traced::fma(u0, r2, u2) * (i[0] * j[0]);
    }
};

// i: charge
// j: charge
template <class V> struct EwaldChargesPair {
    V u0;
    static constexpr int PARAMETERS = 1;  // of each atom
    explicit EwaldChargesPair(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])) {}
    MEMBER V slope(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t1 = u0 * (r2 * rinv);
      const V t2 = rinv * rinv;
      const V t7 = traced::constant<V>(-1.0) * (traced::min(t1 * t1, traced::constant<V>(87.0)));
      const V t9 = traced::constant<V>(-1.1283791670955126) * traced::exp(t7);
      const V t15 = ((traced::constant<V>(-0.5) * rinv) * t2) * traced::erfc(t1);
      const V t16 = ((((t1 * t2) * traced::constant<V>(0.5)) * t9) * rinv) + t15;
      return (t16 * traced::constant<V>(-2.0)) * (i[0] * j[0]);
    }
    MEMBER V energy(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      return ((traced::erfc(u0 * (r2 * rinv))) * rinv) * (i[0] * j[0]);
    }
};

// i: charge
// j: charge
template <class V> struct ExcludedEwaldChargesPair {
    V u0;
    static constexpr int PARAMETERS = 1;  // of each atom
    explicit ExcludedEwaldChargesPair(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])) {}
    MEMBER V slope(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t1 = u0 * (r2 * rinv);
      const V t2 = rinv * rinv;
      const V t7 = traced::constant<V>(-1.0) * (traced::min(t1 * t1, traced::constant<V>(87.0)));
      const V t9 = traced::constant<V>(-1.1283791670955126) * traced::exp(t7);
      const V t15 = traced::erfc(t1) - traced::constant<V>(1.0);
      const V t16 = ((traced::constant<V>(-0.5) * rinv) * t2) * t15;
      const V t17 = ((((t1 * t2) * traced::constant<V>(0.5)) * t9) * rinv) + t16;
      return (t17 * traced::constant<V>(-2.0)) * (i[0] * j[0]);
    }
    MEMBER V energy(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      return (((traced::erfc(u0 * (r2 * rinv))) - traced::constant<V>(1.0)) * rinv) * (i[0] * j[0]);
    }
};

// i: charge
// j: charge
template <class V> struct GaussianChargesPair {
    V u0;
    static constexpr int PARAMETERS = 1;  // of each atom
    explicit GaussianChargesPair(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])) {}
    MEMBER V slope(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t1 = (r2 * rinv) * u0;
      const V t2 = t1 * t1;
      const V t4 = rinv * rinv;
      const V t5 = t2 * t4;
      const V t6 = traced::fma(traced::constant<V>(1.6342614095367152e-15), t2, traced::constant<V>(-2.7835162072109212e-14));
      const V t7 = traced::fma(t6, t2, traced::constant<V>(4.4632242632864775e-13));
      const V t8 = traced::fma(t7, t2, traced::constant<V>(-6.7113668551641105e-12));
      const V t9 = traced::fma(t8, t2, traced::constant<V>(9.422759064650411e-11));
      const V t10 = traced::fma(t9, t2, traced::constant<V>(-1.2290555301717926e-09));
      const V t11 = traced::fma(t10, t2, traced::constant<V>(1.4807192815879218e-08));
      const V t12 = traced::fma(t11, t2, traced::constant<V>(-1.6365844691234924e-07));
      const V t13 = traced::fma(t12, t2, traced::constant<V>(1.6462114365889246e-06));
      const V t14 = traced::fma(t13, t2, traced::constant<V>(-1.492565035840625e-05));
      const V t15 = traced::fma(t14, t2, traced::constant<V>(0.00012055332981789664));
      const V t16 = traced::fma(t15, t2, traced::constant<V>(-0.0008548327023450852));
      const V t17 = traced::fma(t16, t2, traced::constant<V>(0.005223977625442188));
      const V t18 = traced::fma(t17, t2, traced::constant<V>(-0.026866170645131252));
      const V t19 = traced::fma(t18, t2, traced::constant<V>(0.11283791670955126));
      const V t24 = (traced::fma(t5, t6, (t5 * traced::constant<V>(1.6342614095367152e-15)) * t2)) * t2;
      const V t30 = traced::fma(t5, t9, traced::fma(t5, t8, traced::fma(t5, t7, t24) * t2) * t2) * t2;
      const V t36 = traced::fma(t5, t12, traced::fma(t5, t11, traced::fma(t5, t10, t30) * t2) * t2) * t2;
      const V t42 = traced::fma(t5, t15, traced::fma(t5, t14, traced::fma(t5, t13, t36) * t2) * t2) * t2;
      const V t48 = traced::fma(t5, t18, traced::fma(t5, t17, traced::fma(t5, t16, t42) * t2) * t2) * t2;
      const V t50 = traced::fma(t5, t19, t48) * t2;
      const V t51 = traced::fma(t5, traced::fma(t19, t2, traced::constant<V>(-0.37612638903183754)), t50);
      const V t57 = traced::exp(traced::constant<V>(-1.0) * traced::min(t2, traced::constant<V>(87.0)));
      const V t58 = traced::constant<V>(-1.1283791670955126) * t57;
      const V t61 = ((((t1 * t4) * traced::constant<V>(0.5)) * t58) * traced::constant<V>(-1.0)) * rinv;
      const V t65 = traced::constant<V>(1.0) - traced::erfc(t1);
      const V t67 = t61 + (((traced::constant<V>(-0.5) * rinv) * t4) * t65);
      const V t68 = traced::select(traced::less(t2, traced::constant<V>(1.0)), t51 * u0, t67);
      return (t68 * traced::constant<V>(-2.0)) * (i[0] * j[0]);
    }
    MEMBER V energy(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t1 = (r2 * rinv) * u0;
      const V t2 = t1 * t1;
      const V t4 = traced::fma(traced::constant<V>(1.6342614095367152e-15), t2, traced::constant<V>(-2.7835162072109212e-14));
      const V t5 = traced::fma(t4, t2, traced::constant<V>(4.4632242632864775e-13));
      const V t6 = traced::fma(t5, t2, traced::constant<V>(-6.7113668551641105e-12));
      const V t7 = traced::fma(t6, t2, traced::constant<V>(9.422759064650411e-11));
      const V t8 = traced::fma(t7, t2, traced::constant<V>(-1.2290555301717926e-09));
      const V t9 = traced::fma(t8, t2, traced::constant<V>(1.4807192815879218e-08));
      const V t10 = traced::fma(t9, t2, traced::constant<V>(-1.6365844691234924e-07));
      const V t11 = traced::fma(t10, t2, traced::constant<V>(1.6462114365889246e-06));
      const V t12 = traced::fma(t11, t2, traced::constant<V>(-1.492565035840625e-05));
      const V t13 = traced::fma(t12, t2, traced::constant<V>(0.00012055332981789664));
      const V t14 = traced::fma(t13, t2, traced::constant<V>(-0.0008548327023450852));
      const V t15 = traced::fma(t14, t2, traced::constant<V>(0.005223977625442188));
      const V t16 = traced::fma(t15, t2, traced::constant<V>(-0.026866170645131252));
      const V t17 = traced::fma(t16, t2, traced::constant<V>(0.11283791670955126));
      const V t18 = traced::fma(t17, t2, traced::constant<V>(-0.37612638903183754));
      const V t23 = traced::fma(t18, t2, traced::constant<V>(1.1283791670955126)) * u0;
      const V t24 = (traced::constant<V>(1.0) - traced::erfc(t1)) * rinv;
      return traced::select(traced::less(t2, traced::constant<V>(1.0)), t23, t24) * (i[0] * j[0]);
    }
};

// i: charge
// j: charge
template <class V> struct CutCoulombChargesPair {
    V u0;
    static constexpr int PARAMETERS = 1;  // of each atom
    explicit CutCoulombChargesPair(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])) {}
    MEMBER V slope(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      return ((rinv * rinv) * rinv) * (i[0] * j[0]);
    }
    MEMBER V energy(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      return (rinv - u0) * (i[0] * j[0]);
    }
};

// i: charge
// j: charge
template <class V> struct ShortRangeChargesPair {
    V u0, u1, u2, u3, u4, u5, u6, u7;
    static constexpr int PARAMETERS = 1;  // of each atom
    explicit ShortRangeChargesPair(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])), u1(traced::fill<V>(uniforms[1])), u2(traced::fill<V>(uniforms[2])), u3(traced::fill<V>(uniforms[3])), u4(traced::fill<V>(uniforms[4])), u5(traced::fill<V>(uniforms[5])), u6(traced::fill<V>(uniforms[6])), u7(traced::fill<V>(uniforms[7])) {}
    MEMBER V slope(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t3 = r2 - u1;
      const V t4 = traced::fma(u0, t3, u2);
      const V t5 = traced::fma(t4, t3, u3);
      const V t6 = traced::fma(t5, t3, u4);
      const V t7 = traced::fma(t6, t3, u5);
      const V t11 = traced::fma(traced::constant<V>(1.0), t4, u0 * t3) * t3;
      const V t13 = traced::fma(traced::constant<V>(1.0), t5, t11) * t3;
      const V t15 = traced::fma(traced::constant<V>(1.0), t6, t13) * t3;
      const V t17 = traced::fma(traced::constant<V>(1.0), t7, t15) * t3;
      const V t18 = traced::fma(traced::constant<V>(1.0), traced::fma(t7, t3, u6), t17);
      const V t19 = ((traced::constant<V>(-0.5) * rinv) * (rinv * rinv)) - t18;
      return (t19 * traced::constant<V>(-2.0)) * (i[0] * j[0]);
    }
    MEMBER V energy(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t0 = r2 - u1;
      const V t4 = traced::fma(traced::fma(traced::fma(traced::fma(u0, t0, u2), t0, u3), t0, u4), t0, u5);
      return (rinv - traced::fma(traced::fma(t4, t0, u6), t0, u7)) * (i[0] * j[0]);
    }
};

// i: charge
// j: charge
template <class V> struct EwaldPolynomialChargesPair {
    V u0, u1, u2, u3, u4, u5, u6, u7, u8, u9, u10, u11, u12, u13, u14, u15, u16, u17, u18, u19, u20, u21, u22, u23, u24, u25, u26;
    static constexpr int PARAMETERS = 1;  // of each atom
    explicit EwaldPolynomialChargesPair(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])), u1(traced::fill<V>(uniforms[1])), u2(traced::fill<V>(uniforms[2])), u3(traced::fill<V>(uniforms[3])), u4(traced::fill<V>(uniforms[4])), u5(traced::fill<V>(uniforms[5])), u6(traced::fill<V>(uniforms[6])), u7(traced::fill<V>(uniforms[7])), u8(traced::fill<V>(uniforms[8])), u9(traced::fill<V>(uniforms[9])), u10(traced::fill<V>(uniforms[10])), u11(traced::fill<V>(uniforms[11])), u12(traced::fill<V>(uniforms[12])), u13(traced::fill<V>(uniforms[13])), u14(traced::fill<V>(uniforms[14])), u15(traced::fill<V>(uniforms[15])), u16(traced::fill<V>(uniforms[16])), u17(traced::fill<V>(uniforms[17])), u18(traced::fill<V>(uniforms[18])), u19(traced::fill<V>(uniforms[19])), u20(traced::fill<V>(uniforms[20])), u21(traced::fill<V>(uniforms[21])), u22(traced::fill<V>(uniforms[22])), u23(traced::fill<V>(uniforms[23])), u24(traced::fill<V>(uniforms[24])), u25(traced::fill<V>(uniforms[25])), u26(traced::fill<V>(uniforms[26])) {}
    MEMBER V slope(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t2 = traced::fma(r2, u1, traced::constant<V>(-1.0));
      const V t3 = t2 * t2;
      const V t7 = traced::fma(traced::fma(traced::fma(traced::fma(u0, t3, u2), t3, u3), t3, u4), t3, u5);
      const V t11 = traced::fma(traced::fma(traced::fma(u7, t3, u8), t3, u9), t3, u10);
      const V t14 = traced::fma(traced::fma(traced::fma(t11, t3, u11), t3, u12), t3, u13);
      const V t17 = i[0] * j[0];
      return (((rinv * rinv) * rinv) - traced::fma(traced::fma(t7, t3, u6), t2, t14)) * t17;
    }
    MEMBER V energy(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t0 = traced::fma(r2, u1, traced::constant<V>(-1.0));
      const V t1 = t0 * t0;
      const V t2 = i[0] * j[0];
      const V t5 = traced::fma(traced::fma(traced::fma(u14, t1, u15), t1, u16), t1, u17);
      const V t10 = traced::fma(traced::fma(traced::fma(u20, t1, u21), t1, u22), t1, u23);
      const V t13 = traced::fma(traced::fma(traced::fma(t10, t1, u24), t1, u25), t1, u26);
      return (rinv - traced::fma(traced::fma(traced::fma(t5, t1, u18), t1, u19), t0, t13)) * t2;
    }
};

// i: charge
// j: charge
template <class V> struct ExcludedEwaldPolynomialChargesPair {
    V u0, u1, u2, u3, u4, u5, u6, u7, u8, u9, u10, u11, u12, u13, u14, u15, u16, u17, u18, u19, u20, u21, u22, u23, u24, u25, u26;
    static constexpr int PARAMETERS = 1;  // of each atom
    explicit ExcludedEwaldPolynomialChargesPair(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])), u1(traced::fill<V>(uniforms[1])), u2(traced::fill<V>(uniforms[2])), u3(traced::fill<V>(uniforms[3])), u4(traced::fill<V>(uniforms[4])), u5(traced::fill<V>(uniforms[5])), u6(traced::fill<V>(uniforms[6])), u7(traced::fill<V>(uniforms[7])), u8(traced::fill<V>(uniforms[8])), u9(traced::fill<V>(uniforms[9])), u10(traced::fill<V>(uniforms[10])), u11(traced::fill<V>(uniforms[11])), u12(traced::fill<V>(uniforms[12])), u13(traced::fill<V>(uniforms[13])), u14(traced::fill<V>(uniforms[14])), u15(traced::fill<V>(uniforms[15])), u16(traced::fill<V>(uniforms[16])), u17(traced::fill<V>(uniforms[17])), u18(traced::fill<V>(uniforms[18])), u19(traced::fill<V>(uniforms[19])), u20(traced::fill<V>(uniforms[20])), u21(traced::fill<V>(uniforms[21])), u22(traced::fill<V>(uniforms[22])), u23(traced::fill<V>(uniforms[23])), u24(traced::fill<V>(uniforms[24])), u25(traced::fill<V>(uniforms[25])), u26(traced::fill<V>(uniforms[26])) {}
    MEMBER V slope(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t0 = traced::fma(r2, u1, traced::constant<V>(-1.0));
      const V t1 = t0 * t0;
      const V t5 = traced::fma(traced::fma(traced::fma(traced::fma(u0, t1, u2), t1, u3), t1, u4), t1, u5);
      const V t9 = traced::fma(traced::fma(traced::fma(u7, t1, u8), t1, u9), t1, u10);
      const V t12 = traced::fma(traced::fma(traced::fma(t9, t1, u11), t1, u12), t1, u13);
      return (-traced::fma(traced::fma(t5, t1, u6), t0, t12)) * (i[0] * j[0]);
    }
    MEMBER V energy(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t0 = traced::fma(r2, u1, traced::constant<V>(-1.0));
      const V t1 = t0 * t0;
      const V t2 = i[0] * j[0];
      const V t5 = traced::fma(traced::fma(traced::fma(u14, t1, u15), t1, u16), t1, u17);
      const V t10 = traced::fma(traced::fma(traced::fma(u20, t1, u21), t1, u22), t1, u23);
      const V t13 = traced::fma(traced::fma(traced::fma(t10, t1, u24), t1, u25), t1, u26);
      return (-traced::fma(traced::fma(traced::fma(t5, t1, u18), t1, u19), t0, t13)) * t2;
    }
};

// i: root_a12, root_a6
// j: root_a12, root_a6
template <class V> struct LennardJonesGeometricPair {
    static constexpr int PARAMETERS = 2;  // of each atom
    explicit LennardJonesGeometricPair(const traced::number_of<V> *uniforms) { (void)uniforms; }
    MEMBER V slope(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t1 = rinv * rinv;
      const V t3 = (t1 * t1) * t1;
      return (((i[0] * j[0]) * t3) - (i[1] * j[1])) * (t3 * t1);
    }
    MEMBER V energy(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t1 = rinv * rinv;
      const V t3 = (t1 * t1) * t1;
      const V t6 = (i[1] * j[1]) * traced::constant<V>(-0.16666666666666666);
      return t3 * (traced::fma((i[0] * j[0]) * traced::constant<V>(0.08333333333333333), t3, t6));
    }
};

// i: half_rmin, root_depth
// j: half_rmin, root_depth
template <class V> struct LennardJonesLorentzBerthelotPair {
    static constexpr int PARAMETERS = 2;  // of each atom
    explicit LennardJonesLorentzBerthelotPair(const traced::number_of<V> *uniforms) { (void)uniforms; }
    MEMBER V slope(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t2 = (i[0] + j[0]) * rinv;
      const V t3 = t2 * t2;
      const V t5 = (t3 * t3) * t3;
      return ((i[1] * j[1]) * traced::fma(t5, t5, -t5)) * (rinv * rinv);
    }
    MEMBER V energy(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t2 = (i[0] + j[0]) * rinv;
      const V t3 = t2 * t2;
      const V t5 = (t3 * t3) * t3;
      const V t8 = traced::fma(t5, t5, traced::constant<V>(-2.0) * t5);
      return ((i[1] * j[1]) * traced::constant<V>(0.08333333333333333)) * t8;
    }
};

// pair: a12, a6
template <class V> struct LennardJonesTablePair {
    static constexpr int PARAMETERS = 0;  // of each atom
    explicit LennardJonesTablePair(const traced::number_of<V> *uniforms) { (void)uniforms; }
    MEMBER V slope(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t0 = rinv * rinv;
      const V t2 = (t0 * t0) * t0;
      return ((pair[0] * t2) - pair[1]) * (t2 * t0);
    }
    MEMBER V energy(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t0 = rinv * rinv;
      const V t2 = (t0 * t0) * t0;
      const V t4 = pair[1] * traced::constant<V>(-0.16666666666666666);
      return t2 * (traced::fma(pair[0] * traced::constant<V>(0.08333333333333333), t2, t4));
    }
};

// i: root_a12, root_a6
// j: root_a12, root_a6
template <class V> struct LennardJonesShiftedGeometricPair {
    V u0;
    static constexpr int PARAMETERS = 2;  // of each atom
    explicit LennardJonesShiftedGeometricPair(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])) {}
    MEMBER V slope(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t1 = rinv * rinv;
      const V t3 = (t1 * t1) * t1;
      return (((i[0] * j[0]) * t3) - (i[1] * j[1])) * (t3 * t1);
    }
    MEMBER V energy(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t1 = rinv * rinv;
      const V t3 = (t1 * t1) * t1;
      const V t5 = (i[0] * j[0]) * traced::constant<V>(0.08333333333333333);
      const V t6 = (i[1] * j[1]) * traced::constant<V>(-0.16666666666666666);
      return (t3 * traced::fma(t5, t3, t6)) - (u0 * traced::fma(t5, u0, t6));
    }
};

// i: half_rmin, root_depth
// j: half_rmin, root_depth
template <class V> struct LennardJonesShiftedLorentzBerthelotPair {
    V u0;
    static constexpr int PARAMETERS = 2;  // of each atom
    explicit LennardJonesShiftedLorentzBerthelotPair(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])) {}
    MEMBER V slope(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t2 = (i[0] + j[0]) * rinv;
      const V t3 = t2 * t2;
      const V t5 = (t3 * t3) * t3;
      return ((i[1] * j[1]) * traced::fma(t5, t5, -t5)) * (rinv * rinv);
    }
    MEMBER V energy(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t0 = i[1] * j[1];
      const V t1 = i[0] + j[0];
      const V t2 = t1 * rinv;
      const V t3 = t2 * t2;
      const V t5 = (t3 * t3) * t3;
      const V t8 = traced::fma(t5, t5, traced::constant<V>(-2.0) * t5);
      const V t10 = t1 * t1;
      const V t12 = (t10 * t10) * t10;
      const V t13 = t0 * t12;
      const V t16 = t13 * traced::constant<V>(-0.16666666666666666);
      const V t18 = u0 * (traced::fma((t13 * t12) * traced::constant<V>(0.08333333333333333), u0, t16));
      return ((t0 * traced::constant<V>(0.08333333333333333)) * t8) - t18;
    }
};

// pair: a12, a6
template <class V> struct LennardJonesShiftedTablePair {
    V u0;
    static constexpr int PARAMETERS = 0;  // of each atom
    explicit LennardJonesShiftedTablePair(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])) {}
    MEMBER V slope(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t0 = rinv * rinv;
      const V t2 = (t0 * t0) * t0;
      return ((pair[0] * t2) - pair[1]) * (t2 * t0);
    }
    MEMBER V energy(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t0 = rinv * rinv;
      const V t2 = (t0 * t0) * t0;
      const V t3 = pair[0] * traced::constant<V>(0.08333333333333333);
      const V t4 = pair[1] * traced::constant<V>(-0.16666666666666666);
      return (t2 * traced::fma(t3, t2, t4)) - (u0 * traced::fma(t3, u0, t4));
    }
};

// i: root_a12, root_a6
// j: root_a12, root_a6
template <class V> struct LennardJonesSwitchedGeometricPair {
    V u0, u1, u2, u3, u4, u5, u6, u7, u8, u9, u10;
    static constexpr int PARAMETERS = 2;  // of each atom
    explicit LennardJonesSwitchedGeometricPair(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])), u1(traced::fill<V>(uniforms[1])), u2(traced::fill<V>(uniforms[2])), u3(traced::fill<V>(uniforms[3])), u4(traced::fill<V>(uniforms[4])), u5(traced::fill<V>(uniforms[5])), u6(traced::fill<V>(uniforms[6])), u7(traced::fill<V>(uniforms[7])), u8(traced::fill<V>(uniforms[8])), u9(traced::fill<V>(uniforms[9])), u10(traced::fill<V>(uniforms[10])) {}
    MEMBER V slope(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t1 = rinv * rinv;
      const V t4 = ((t1 * t1) * t1) * rinv;
      const V t6 = r2 * rinv;
      const V t9 = traced::max(t6 - u0, traced::constant<V>(0.0));
      const V t10 = t9 * t9;
      const V t13 = traced::constant<V>(0.08333333333333333) * (t10 * traced::fma(u1, t9, u2));
      const V t20 = t4 + (traced::constant<V>(0.16666666666666666) * (t10 * traced::fma(u3, t9, u4)));
      return rinv * (((i[0] * j[0]) * (((t4 * t4) * t6) + t13)) - ((i[1] * j[1]) * t20));
    }
    MEMBER V energy(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t1 = rinv * rinv;
      const V t3 = (t1 * t1) * t1;
      const V t6 = traced::max((r2 * rinv) - u0, traced::constant<V>(0.0));
      const V t10 = (t6 * t6) * t6;
      const V t14 = traced::fma(t3, t3, u7 - (t10 * traced::fma(u6, t6, u5)));
      const V t20 = t3 + (u10 - (t10 * traced::fma(u9, t6, u8)));
      const V t21 = ((i[1] * j[1]) * traced::constant<V>(0.16666666666666666)) * t20;
      return (((i[0] * j[0]) * traced::constant<V>(0.08333333333333333)) * t14) - t21;
    }
};

// i: half_rmin, root_depth
// j: half_rmin, root_depth
template <class V> struct LennardJonesSwitchedLorentzBerthelotPair {
    V u0, u1, u2, u3, u4, u5, u6, u7, u8, u9, u10;
    static constexpr int PARAMETERS = 2;  // of each atom
    explicit LennardJonesSwitchedLorentzBerthelotPair(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])), u1(traced::fill<V>(uniforms[1])), u2(traced::fill<V>(uniforms[2])), u3(traced::fill<V>(uniforms[3])), u4(traced::fill<V>(uniforms[4])), u5(traced::fill<V>(uniforms[5])), u6(traced::fill<V>(uniforms[6])), u7(traced::fill<V>(uniforms[7])), u8(traced::fill<V>(uniforms[8])), u9(traced::fill<V>(uniforms[9])), u10(traced::fill<V>(uniforms[10])) {}
    MEMBER V slope(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t1 = i[0] + j[0];
      const V t2 = t1 * t1;
      const V t4 = (t2 * t2) * t2;
      const V t5 = (i[1] * j[1]) * t4;
      const V t7 = rinv * rinv;
      const V t10 = ((t7 * t7) * t7) * rinv;
      const V t12 = r2 * rinv;
      const V t15 = traced::max(t12 - u0, traced::constant<V>(0.0));
      const V t16 = t15 * t15;
      const V t19 = traced::constant<V>(0.08333333333333333) * (t16 * traced::fma(u1, t15, u2));
      const V t25 = t10 + (traced::constant<V>(0.16666666666666666) * (t16 * traced::fma(u3, t15, u4)));
      return rinv * (((t5 * t4) * (((t10 * t10) * t12) + t19)) - (t5 * t25));
    }
    MEMBER V energy(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t1 = i[0] + j[0];
      const V t2 = t1 * t1;
      const V t4 = (t2 * t2) * t2;
      const V t5 = (i[1] * j[1]) * t4;
      const V t7 = rinv * rinv;
      const V t9 = (t7 * t7) * t7;
      const V t12 = traced::max((r2 * rinv) - u0, traced::constant<V>(0.0));
      const V t15 = (t12 * t12) * t12;
      const V t19 = traced::fma(t9, t9, u7 - (t15 * traced::fma(u6, t12, u5)));
      const V t25 = t9 + (u10 - (t15 * traced::fma(u9, t12, u8)));
      const V t26 = (t5 * traced::constant<V>(0.16666666666666666)) * t25;
      return (((t5 * t4) * traced::constant<V>(0.08333333333333333)) * t19) - t26;
    }
};

// pair: a12, a6
template <class V> struct LennardJonesSwitchedTablePair {
    V u0, u1, u2, u3, u4, u5, u6, u7, u8, u9, u10;
    static constexpr int PARAMETERS = 0;  // of each atom
    explicit LennardJonesSwitchedTablePair(const traced::number_of<V> *uniforms) : u0(traced::fill<V>(uniforms[0])), u1(traced::fill<V>(uniforms[1])), u2(traced::fill<V>(uniforms[2])), u3(traced::fill<V>(uniforms[3])), u4(traced::fill<V>(uniforms[4])), u5(traced::fill<V>(uniforms[5])), u6(traced::fill<V>(uniforms[6])), u7(traced::fill<V>(uniforms[7])), u8(traced::fill<V>(uniforms[8])), u9(traced::fill<V>(uniforms[9])), u10(traced::fill<V>(uniforms[10])) {}
    MEMBER V slope(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t0 = rinv * rinv;
      const V t3 = ((t0 * t0) * t0) * rinv;
      const V t5 = r2 * rinv;
      const V t8 = traced::max(t5 - u0, traced::constant<V>(0.0));
      const V t9 = t8 * t8;
      const V t12 = traced::constant<V>(0.08333333333333333) * (t9 * traced::fma(u1, t8, u2));
      const V t18 = t3 + (traced::constant<V>(0.16666666666666666) * (t9 * traced::fma(u3, t8, u4)));
      return rinv * ((pair[0] * (((t3 * t3) * t5) + t12)) - (pair[1] * t18));
    }
    MEMBER V energy(V r2, V rinv, const V *i, const V *j, const V *pair) const
    {
      const V t0 = rinv * rinv;
      const V t2 = (t0 * t0) * t0;
      const V t5 = traced::max((r2 * rinv) - u0, traced::constant<V>(0.0));
      const V t8 = (t5 * t5) * t5;
      const V t12 = traced::fma(t2, t2, u7 - (t8 * traced::fma(u6, t5, u5)));
      const V t18 = t2 + (u10 - (t8 * traced::fma(u9, t5, u8)));
      const V t19 = (pair[1] * traced::constant<V>(0.16666666666666666)) * t18;
      return ((pair[0] * traced::constant<V>(0.08333333333333333)) * t12) - t19;
    }
};

// Numbers and names, and digests by which Python finds them.
#define RADIAL_FUNCTIONS(DO) \
    DO(0, Coulomb) /* b83632d8a9d0f9d2 */ \
    DO(1, ShiftedCoulomb) /* 9b826e51dbffe51e */ \
    DO(2, ScreenedCoulomb) /* 2c814c5520d0f9a2 */ \
    DO(3, DistanceDependent) /* 90f09f542992543b */ \
    DO(4, SigmoidalDielectric) /* a07d896633d5ecaa */ \
    DO(5, ReactionField) /* 7a27d260d803797a */ \
    DO(6, Ewald) /* 42ec19a658927cac */ \
    DO(7, Gaussian) /* 74ec41d5b2374c08 */ \
    DO(8, CutCoulomb) /* 98f1b8fa55d3c51c */ \
    DO(9, ShortRange6) /* ed746e7230749387 */ \
    DO(10, ShortRange8) /* 9c81b30d23353e70 */ \
    DO(11, ShortRange10) /* f560bb4c96826003 */ \
    DO(12, ShortRange12) /* f31def56b9f712b6 */ \
    DO(13, ShortCutoff) /* e224ac2ace8cb1e1 */ \
    DO(14, ShortScreened) /* 32005467da3c900e */ \
    DO(15, DispersionOfProbe) /* 330bf6c58fc30422 */ \
    DO(16, DesolvationOfProbe) /* cc2bb57aedc37ad4 */ \
    DO(17, CoulombOfProbe) /* 8fbe139b61399f20 */ \
    DO(18, CoulombOfProbeFar) /* eb005e189ebdd81b */ \
    DO(19, CoulombOfProbeNear) /* 124b88bef347a5d3 */

// Numbers and names, and digests by which Python finds them.
#define PAIR_TERMS(DO) \
    DO(20, CoulombChargesPair) /* 5be37789e558af90 */ \
    DO(21, ShiftedCoulombChargesPair) /* 53424b4293799163 */ \
    DO(22, ScreenedCoulombChargesPair) /* dadee150537139f0 */ \
    DO(23, DistanceDependentChargesPair) /* 106f97b5131ab803 */ \
    DO(24, SigmoidalDielectricChargesPair) /* 75b3456a2647e5bb */ \
    DO(25, ReactionFieldChargesPair) /* f4898323588d02b8 */ \
    DO(26, ExcludedReactionFieldChargesPair) /* dc13213d994e0cfd */ \
    DO(27, EwaldChargesPair) /* 5ee18a2c71bc12ee */ \
    DO(28, ExcludedEwaldChargesPair) /* 4ed1329bd2533152 */ \
    DO(29, GaussianChargesPair) /* 1b2674b95e90254c */ \
    DO(30, CutCoulombChargesPair) /* 6f466dd4fb90656d */ \
    DO(31, ShortRangeChargesPair) /* ea182cbf608dc7ab */ \
    DO(32, EwaldPolynomialChargesPair) /* 622ceafcb99a71b9 */ \
    DO(33, ExcludedEwaldPolynomialChargesPair) /* e6dbddcba96ee447 */ \
    DO(34, LennardJonesGeometricPair) /* 945828f3f6a4d8dd */ \
    DO(35, LennardJonesLorentzBerthelotPair) /* 7cd54bff7920b6e9 */ \
    DO(36, LennardJonesTablePair) /* cbb7d5ebae618017 */ \
    DO(37, LennardJonesShiftedGeometricPair) /* d9f242d0a0e968f6 */ \
    DO(38, LennardJonesShiftedLorentzBerthelotPair) /* f13a5f20d5dd125c */ \
    DO(39, LennardJonesShiftedTablePair) /* 0f8d656b03151094 */ \
    DO(40, LennardJonesSwitchedGeometricPair) /* 760ab61e929fcfe7 */ \
    DO(41, LennardJonesSwitchedLorentzBerthelotPair) /* 89260ad56ac16d0e */ \
    DO(42, LennardJonesSwitchedTablePair) /* 4e95eec61872b4a7 */
