"""Vector code for LLVM: the back end of traced radial functions on the CPU.

Numba compiles for the host, or for what NUMBA_CPU_NAME and NUMBA_CPU_FEATURES say; the vector
length and the instructions are chosen from that target, so that cached code stays right.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np
from llvmlite import binding, ir


def _target_features() -> set[str]:
    """Return the features that Numba compiles for: those of NUMBA_CPU_FEATURES, else the host's."""
    if numba.config.CPU_FEATURES is not None:
        return set(numba.config.CPU_FEATURES.split(","))
    try:
        features = binding.get_host_cpu_features()
    except RuntimeError:  # LLVM does not know the host
        return set()
    vectors = numba.config.ENABLE_AVX  # NUMBA_ENABLE_AVX=0 turns off all of them
    return {f"+{name}" for name, present in features.items() if present and (vectors or not name.startswith("avx"))}


def _level(features: set[str]) -> str:
    if "+avx512f" in features and "+avx512dq" in features:
        return "avx512"
    if "+avx2" in features and "+fma" in features:
        return "avx2"
    return "generic"


#: Instruction set in use: avx512, avx2 or generic.
LEVEL = _level(_target_features())
#: Vector lanes by bits of a float.
LANES = {32: 16 if LEVEL == "avx512" else 8, 64: 8 if LEVEL == "avx512" else 4}

I32, I64 = ir.IntType(32), ir.IntType(64)


def pointer(context: Any, builder: Any, kind: Any, array: Any, element: Any) -> Any:
    """Return the address of a numba array's first element."""
    return builder.bitcast(context.make_array(kind)(context, builder, array).data, element.as_pointer())


def constant(value: int) -> Any:
    """Return a 64-bit whole number."""
    return ir.Constant(I64, value)


@cache
def _chebyshev(name: str, degree: int) -> list[float]:
    """Return power-basis coefficients, lowest first, of the polynomials behind exp and erfc.

    ``exp2``: 2^f on [-1/2, 1/2]. ``erfcx``: exp(x^2) erfc(x) in t = 1/(1 + x/2), x >= 0.
    """
    from scipy import special

    if name == "exp2":
        fit = np.polynomial.Chebyshev.interpolate(np.exp2, degree, [-0.5, 0.5])
    else:
        fit = np.polynomial.Chebyshev.interpolate(lambda t: special.erfcx(2 * (1 / t - 1)) / t, degree, [0.0, 1.0])
    return [float(c) for c in fit.convert(kind=np.polynomial.Polynomial).coef]


class Vector:
    """Operations on vectors of floats (or one float) in an LLVM block.

    Parameters
    ----------
    builder : llvmlite.ir.IRBuilder
    bits : {32, 64}
    lanes : int
        1 for scalars.
    fast : bool
        Whether LLVM may reorder and contract; off where rounding errors are compensated.
    """

    def __init__(self, builder: Any, bits: int, lanes: int, fast: bool = True) -> None:
        self.builder = builder
        self.bits = bits
        self.lanes = lanes
        self.flags = ("fast",) if fast else ()
        self.element = ir.FloatType() if bits == 32 else ir.DoubleType()
        self.integer = ir.IntType(bits)
        self.type = self._wide(self.element)

    def _wide(self, element: Any) -> Any:
        return element if self.lanes == 1 else ir.VectorType(element, self.lanes)

    def _fill(self, element: Any, value: Any) -> Any:
        return ir.Constant(self._wide(element), value if self.lanes == 1 else [value] * self.lanes)

    # memory

    def broadcast(self, scalar: Any) -> Any:
        """Return a vector of one scalar."""
        if self.lanes == 1:
            return scalar
        undefined = ir.Constant(self._wide(scalar.type), ir.Undefined)
        single = self.builder.insert_element(undefined, scalar, ir.Constant(I32, 0))
        return self.builder.shuffle_vector(
            single, undefined, ir.Constant(ir.VectorType(I32, self.lanes), [0] * self.lanes))

    def load(self, pointer: Any, index: Any) -> Any:
        """Return the vector that starts at pointer[index]."""
        address = self.builder.bitcast(self.builder.gep(pointer, [index]), self.type.as_pointer())
        return self.builder.load(address, align=self.bits // 8)

    def load_one(self, pointer: Any, index: Any) -> Any:
        """Return pointer[index] in all lanes."""
        return self.broadcast(self.builder.load(self.builder.gep(pointer, [index]), align=self.bits // 8))

    def store(self, pointer: Any, index: Any, value: Any) -> None:
        """Write a vector from pointer[index] on."""
        address = self.builder.bitcast(self.builder.gep(pointer, [index]), value.type.as_pointer())
        self.builder.store(value, address, align=self.bits // 8)

    # operations of traced programs

    def const(self, value: float) -> Any:
        """Return a number in all lanes."""
        return self._fill(self.element, float(np.float32(value)) if self.bits == 32 else float(value))

    def constant_vector(self, values: list[float]) -> Any:
        """Return a constant vector."""
        return ir.Constant(self.type, [ir.Constant(self.element, v) for v in values])

    def call(self, name: str, arguments: list[Any], result: Any = None) -> Any:
        """Call an LLVM intrinsic or a C function."""
        kind = ir.FunctionType(result or self.type, [a.type for a in arguments])
        module = self.builder.module
        function = module.globals.get(name) or ir.Function(module, kind, name)
        return self.builder.call(function, arguments, fastmath=self.flags if result is None else ())

    def _intrinsic(self, name: str, *arguments: Any) -> Any:
        suffix = f"f{self.bits}" if self.lanes == 1 else f"v{self.lanes}f{self.bits}"
        return self.call(f"llvm.{name}.{suffix}", list(arguments))

    def add(self, a: Any, b: Any) -> Any:
        """Return a + b."""
        return self.builder.fadd(a, b, flags=self.flags)

    def sub(self, a: Any, b: Any) -> Any:
        """Return a - b."""
        return self.builder.fsub(a, b, flags=self.flags)

    def mul(self, a: Any, b: Any) -> Any:
        """Return a * b."""
        return self.builder.fmul(a, b, flags=self.flags)

    def div(self, a: Any, b: Any) -> Any:
        """Return a / b, where a reciprocal by estimate and Newton's step is faster by that, good to 1e-7."""
        if not self.flags or not self._has_scaling:
            return self.builder.fdiv(a, b, flags=self.flags)
        name, nothing = "llvm.x86.avx512.rcp14.ps.512", ir.Constant(self.type, None)
        y = self.call(name, [b, nothing, ir.Constant(ir.IntType(16), -1)])
        y = self.fma(y, self.fma(self.builder.fneg(b), y, self.const(1.0)), y)
        return self.mul(a, y)

    @property
    def _has_scaling(self) -> bool:
        """Whether there are AVX-512's instructions for estimates and powers of two of these vectors."""
        return LEVEL == "avx512" and self.bits == 32 and self.lanes == 16

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """Return a * b + c, rounded once where the processor can do so quickly."""
        if LEVEL == "generic":
            return self.add(self.mul(a, b), c)
        return self._intrinsic("fma", a, b, c)

    def less(self, a: Any, b: Any) -> Any:
        """Return a < b by lane."""
        return self.builder.fcmp_ordered("<", a, b, flags=self.flags)

    def select(self, condition: Any, a: Any, b: Any) -> Any:
        """Return a where the condition holds, else b."""
        return self.builder.select(condition, a, b)

    def min(self, a: Any, b: Any) -> Any:
        """Return the smaller."""
        return self.select(self.less(a, b), a, b)

    def max(self, a: Any, b: Any) -> Any:
        """Return the larger."""
        return self.select(self.less(b, a), a, b)

    def sqrt(self, a: Any) -> Any:
        """Return the square root."""
        return self._intrinsic("sqrt", a)

    def fabs(self, a: Any) -> Any:
        """Return the absolute value."""
        return self._intrinsic("fabs", a)

    def _polynomial(self, x: Any, coefficients: list[float]) -> Any:
        result = self.const(coefficients[-1])
        for c in coefficients[-2::-1]:
            result = self.fma(result, x, self.const(c))
        return result

    def exp(self, a: Any) -> Any:
        """Return the exponential, in float32 for a within :data:`vmdpotential.interactions.tracing.EXP_DOMAIN`."""
        if self.bits == 64:
            return self._intrinsic("exp", a)
        n = self._intrinsic("rint", self.mul(a, self.const(np.log2(np.e))))
        # a log2(e) - n in two parts, because the product alone loses the last digits of a large a
        high = float(np.float32(np.log2(np.e)))
        f = self.fma(a, self.const(high), self.mul(n, self.const(-1.0)))
        f = self.fma(a, self.const(np.log2(np.e) - high), f)
        power = self._polynomial(f, _chebyshev("exp2", 6))
        if self._has_scaling:
            nothing, every = ir.Constant(self.type, None), ir.Constant(ir.IntType(16), -1)
            return self.call("llvm.x86.avx512.mask.scalef.ps.512", [power, n, nothing, every, ir.Constant(I32, 4)])
        bits = self.builder.add(self.builder.fptosi(n, self._wide(self.integer)), self._fill(self.integer, 127))
        scale = self.builder.bitcast(self.builder.shl(bits, self._fill(self.integer, 23)), self.type)
        return self.mul(scale, power)

    def erfc(self, a: Any) -> Any:
        """Return the complementary error function."""
        if self.bits == 64:
            if self.lanes == 1:
                return self.call("erfc", [a])
            result = ir.Constant(self.type, ir.Undefined)
            for lane in range(self.lanes):
                index = ir.Constant(I32, lane)
                value = self.call("erfc", [self.builder.extract_element(a, index)], self.element)
                result = self.builder.insert_element(result, value, index)
            return result
        x = self.min(self.fabs(a), self.const(9.3))  # beyond, it is 1e-39, and the square leaves the domain of exp
        t = self.div(self.const(1.0), self.fma(x, self.const(0.5), self.const(1.0)))
        square = self.mul(self.mul(x, x), self.const(-1.0))
        right = self.mul(self.exp(square), self.mul(t, self._polynomial(t, _chebyshev("erfcx", 12))))
        return self.select(self.less(a, self.const(0.0)), self.sub(self.const(2.0), right), right)

    # inverse square root

    def _rough(self) -> str:
        """Return the processor's instruction for an estimate of 1/sqrt; empty where there is none."""
        if LEVEL == "avx512" and self.lanes * self.bits == 512:
            return f"llvm.x86.avx512.rsqrt14.{'ps' if self.bits == 32 else 'pd'}.512"
        if LEVEL != "generic" and self.bits == 32:
            return {8: "llvm.x86.avx.rsqrt.ps.256", 4: "llvm.x86.sse.rsqrt.ps"}.get(self.lanes, "")
        return ""

    def rsqrt_estimate(self, a: Any) -> Any:
        """Return about 1/sqrt(a): 12 to 14 bits where the processor has an instruction, else full precision."""
        name = self._rough()
        if name.endswith("512"):
            mask = ir.IntType(16 if self.bits == 32 else 8)
            return self.call(name, [a, ir.Constant(self.type, None), ir.Constant(mask, -1)])
        return self.call(name, [a]) if name else self.div(self.const(1.0), self.sqrt(a))

    def rsqrt_twice(self, a: Any, estimate: Any, steps: int = 1) -> Any:
        """Return 2/sqrt(a) by Newton steps, the last y (3 - a y^2); the factor 2 goes into the charges.

        One step takes an estimate of 12 to 14 bits to 23 to 27, two in float64 to 53.
        """
        if not self._rough():
            return self.add(estimate, estimate)
        y = estimate
        minus = self.builder.fneg(a)
        for _ in range(steps - 1):
            y = self.mul(self.mul(y, self.const(0.5)), self.fma(minus, self.mul(y, y), self.const(3.0)))
        return self.mul(y, self.fma(minus, self.mul(y, y), self.const(3.0)))
