"""Parts of the vector code of pair sums: operations of programs, loops and the alignment of the stack."""

# llvmlite has no annotations that mypy could check
# mypy: ignore-errors

from llvmlite import ir

from vmdpotential.compiling.simd import I32, I64, LEVEL, Vector, constant


class PairVectors(Vector):
    """Vector code for programs whose unit of length is twice that of the distances."""

    raw = quarter = None
    #: Addresses of the parameters that have been loaded.
    places: dict = {}  # noqa: RUF012

    def square(self, r2):
        """Return r2 in the program's unit for a squared distance."""
        self.raw, self.quarter = r2, super().mul(r2, self.const(0.25))
        return self.quarter

    def mul(self, a, b):
        """Return a * b; the unit of r2 is applied to the other factor, which is mostly invariant in the loop."""
        if b is self.quarter and b is not None:
            a, b = b, a
        if a is self.quarter and a is not None and b is not a:
            return super().mul(self.raw, super().mul(b, self.const(0.25)))
        return super().mul(a, b)

    def fma(self, a, b, c):
        """Return a * b + c, with the unit of r2 applied as in :meth:`mul`."""
        if b is self.quarter and b is not None:
            a, b = b, a
        if a is self.quarter and a is not None and b is not a:
            return super().fma(self.raw, super().mul(b, self.const(0.25)), c)
        return super().fma(a, b, c)

    def bits_of(self, number):
        """Return the lowest bits of an i16 as a vector of flags."""
        if self.lanes < 16:
            number = self.builder.trunc(number, ir.IntType(self.lanes))
        return self.builder.bitcast(number, ir.VectorType(ir.IntType(1), self.lanes))

    def _numbers(self, name, mask):
        """Return 0, 1, 2 ... packed or unpacked by a mask, with which :meth:`pick` does the same to other vectors.

        A permutation takes half the time of packing.
        """
        whole = ir.VectorType(self.integer, self.lanes)
        count = ir.Constant(whole, list(range(self.lanes)))
        return self.call(f"llvm.x86.avx512.mask.{name}.v{self.lanes}i{self.bits}",
                         [count, ir.Constant(whole, None), mask], whole)

    def packing(self, mask):
        """Return the indices by which :meth:`pick` packs the elements with a set mask, one after another."""
        return self._numbers("compress", mask)

    def unpacking(self, mask):
        """Return the indices by which :meth:`pick` unpacks elements to where the mask is set."""
        return self._numbers("expand", mask)

    def pick(self, vector, numbers):
        """Return the elements of a vector of 512 bits with the given indices."""
        kind = "sf" if self.bits == 32 else "df"
        return self.call(f"llvm.x86.avx512.permvar.{kind}.512", [vector, numbers], self.type)

    def opaque(self, vector):
        """Return the vector hidden from LLVM's optimiser, which then neither reassociates sums nor makes it scalar."""
        kind, width = {"avx512": ("v", 512), "avx2": ("x", 256)}.get(LEVEL, ("", 0))
        if not 128 <= self.lanes * self.bits <= width:  # there is no register of this size
            return vector
        return self.builder.asm(ir.FunctionType(self.type, [self.type]), "", f"={kind},0", [vector], False)

    def shuffle(self, a, b, lanes):
        """Return the given lanes of two concatenated vectors."""
        return self.builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(I32, len(lanes)), lanes))

    def sums(self, vectors):
        """Return the sums over the lanes of vectors, whose number is a power of two, as one vector."""
        width, several = self.lanes, list(vectors)
        while len(several) > 1:
            groups, width = self.lanes // width, width // 2
            low = [2 * width * g + n for g in range(groups) for n in range(width)]
            low += [self.lanes + n for n in low]
            high = [n + width for n in low]
            several = [self.add(self.shuffle(a, b, low), self.shuffle(a, b, high))
                       for a, b in zip(several[::2], several[1::2], strict=True)]
        total, step = several[0], width // 2
        while step:
            total = self.add(total, self.shuffle(total, total, [n ^ step for n in range(self.lanes)]))
            step //= 2
        return self.shuffle(total, total, list(range(0, self.lanes, width)))

    def look_up(self, address, index):
        """Return the elements of a table by a vector of indices."""
        if LEVEL == "avx512" and self.lanes * self.bits == 512 and self.bits == 32:
            mask = ir.Constant(ir.VectorType(ir.IntType(1), 16), [1] * 16)
            pointer8 = self.builder.bitcast(address, ir.IntType(8).as_pointer())
            return self.call("llvm.x86.avx512.mask.gather.dps.512",
                             [ir.Constant(self.type, None), pointer8, index, mask, ir.Constant(I32, 4)], self.type)
        result = ir.Constant(self.type, ir.Undefined)
        for n in range(self.lanes):
            lane = ir.Constant(I32, n)
            entry = self.builder.load(self.builder.gep(address, [self.builder.extract_element(index, lane)]))
            result = self.builder.insert_element(result, entry, lane)
        return result

    def interpolate(self, a, first, *others):
        """Return the linear interpolation at `a` in a table in memory that begins with the parameter `first`."""
        index = self.builder.fptosi(a, ir.VectorType(I32, self.lanes))
        table = self.places[first]
        low = self.look_up(table, index)
        high = self.look_up(self.builder.gep(table, [constant(1)]), index)
        return self.fma(self.sub(a, self.builder.sitofp(index, self.type)), self.sub(high, low), low)


class Loop:
    """A loop over [first, end), which may be empty, with values that are carried from one iteration to the next."""

    def __init__(self, builder, first, end, state, step=1):
        self.builder, self.end, self.step, self.start = builder, end, step, state
        self.before = builder.block
        self.body, self.after = builder.append_basic_block("pass"), builder.append_basic_block("passed")
        builder.cbranch(builder.icmp_signed("<", first, end), self.body, self.after)
        builder.position_at_end(self.body)
        self.index = builder.phi(I64)
        self.index.add_incoming(first, self.before)
        self.state = [builder.phi(value.type) for value in state]
        for phi, value in zip(self.state, state, strict=True):
            phi.add_incoming(value, self.before)

    def close(self, new):
        """End the loop's body with its new state; return the state after the loop."""
        builder = self.builder
        following = builder.add(self.index, constant(self.step))
        last = builder.block
        for phi, value in zip([self.index, *self.state], [following, *new], strict=True):
            phi.add_incoming(value, last)
        builder.cbranch(builder.icmp_signed("<", following, self.end), self.body, self.after)
        builder.position_at_end(self.after)
        out = []
        for old, value in zip(self.start, new, strict=True):
            phi = builder.phi(value.type)
            phi.add_incoming(old, self.before)
            phi.add_incoming(value, last)
            out.append(phi)
        return out


def align_stack(builder, kind):
    """Make LLVM align the stack for vectors, which it otherwise spills across cache lines."""
    with builder.goto_entry_block():
        slot = builder.alloca(kind)
    slot.align = 64
    kept = ir.FunctionType(ir.VoidType(), [slot.type])
    builder.asm(kept, "", "r", [slot], side_effect=True)  # emits no code, but keeps the variable
