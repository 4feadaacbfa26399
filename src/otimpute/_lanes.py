"""Several numbers at a time in compiled loops: one instruction of the processor treats them all.

LLVM does not vectorise our short loops by itself: it unrolls those of a length it knows, and guards the others against arrays
that overlap. A value of this type is a vector of numbers that stays in a register, `WIDTH` in double or `NARROW_WIDTH` in
single precision, with + − × ÷, `load` and `store` (a row of an array that is so wide), `spread` and more.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import intrinsic, lower_builtin, models, register_model
from numpy.typing import NDArray

from ._compile import compiled

WIDTH, NARROW_WIDTH = 8, 16  # 64 bytes each, the widest registers there are
_BYTES = 64
_INDEX = ir.IntType(32)


def aligned_zeros(*shape: int) -> NDArray[np.float64]:
    """An array ``[*shape, WIDTH]`` whose rows do not straddle lines of the cache."""
    size = int(np.prod(shape)) * WIDTH
    memory = np.zeros(size + WIDTH)
    first = -memory.ctypes.data % _BYTES // 8
    return memory[first : first + size].reshape(*shape, WIDTH)


class _Lanes(types.Type):  # type: ignore[misc]
    """Vectors of one kind of number."""

    def __init__(self, number: Any, width: int, element: Any, letter: str) -> None:
        self.number, self.width, self.vector = number, width, ir.VectorType(element, width)
        self.bits = ir.VectorType(ir.IntType(8 * _BYTES // width), width)
        self.suffix = f"v{width}{letter}"
        super().__init__(name=f"lanes of {number}")

    def constant(self, number: float) -> Any:
        return ir.Constant(self.vector, [number] * self.width)


_DOUBLE = _Lanes(types.float64, WIDTH, ir.DoubleType(), "f64")
_SINGLE = _Lanes(types.float32, NARROW_WIDTH, ir.FloatType(), "f32")
_KINDS = {types.float64: _DOUBLE, types.float32: _SINGLE}


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, kind.vector)


def _define(operation: Any, instruction: str) -> None:
    """Give lanes a binary operation."""

    @infer_global(operation)
    class _Template(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args: Any, kws: Any) -> Any:  # noqa: ARG002
            alike = len(args) == 2 and args[0] == args[1] and isinstance(args[0], _Lanes)
            return args[0](*args) if alike else None

    for kind in _KINDS.values():

        @lower_builtin(operation, kind, kind)
        def _lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
            return getattr(builder, instruction)(*args, flags=("fast",))


for _name, _operations in {
    "fadd": (operator.add, operator.iadd),
    "fsub": (operator.sub, operator.isub),
    "fmul": (operator.mul, operator.imul),
    "fdiv": (operator.truediv, operator.itruediv),
}.items():
    for _operation in _operations:
        _define(_operation, _name)


def _pointer(context: Any, builder: Any, kind: Any, array: Any, place: Any) -> Any:
    """Of row ``place`` of an array as wide as lanes are."""
    lanes = _KINDS[kind.dtype]
    data = context.make_array(kind)(context, builder, array).data
    first = builder.mul(place, ir.Constant(place.type, lanes.width))
    return builder.bitcast(builder.gep(data, [first]), lanes.vector.as_pointer())


@intrinsic
def load(context: Any, array: Any, place: Any) -> Any:  # noqa: ARG001
    """Row ``place`` of an array as wide as lanes are."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = builder.load(_pointer(context, builder, signature.args[0], *args))
        value.align = signature.args[0].dtype.bitwidth // 8
        return value

    return _KINDS[array.dtype](array, types.intp), generate


@intrinsic
def store(context: Any, array: Any, place: Any, value: Any) -> Any:  # noqa: ARG001
    """Make ``value`` row ``place`` of an array as wide as lanes are."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, place, value = args
        stored = builder.store(value, _pointer(context, builder, signature.args[0], array, place))
        stored.align = signature.args[0].dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, types.intp, value), generate


def _spread(builder: Any, vector: Any, number: Any) -> Any:
    alone = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.Constant(_INDEX, 0))
    return builder.shuffle_vector(alone, alone, ir.Constant(ir.VectorType(_INDEX, vector.count), [0] * vector.count))


@intrinsic
def spread(context: Any, number: Any) -> Any:  # noqa: ARG001
    """The same number in all lanes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return _spread(builder, signature.return_type.vector, args[0])

    return _KINDS[number](number), generate


def _call(builder: Any, name: str, result: Any, args: Any) -> Any:
    """Of an instruction that LLVM knows by name."""
    kind = ir.FunctionType(result, [each.type for each in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args, fastmath=("fast",))


def _instruction(name: str, n_arguments: int) -> Any:
    """What LLVM does with one or two vectors, lane by lane."""

    def type_of(context: Any, *values: Any) -> Any:  # noqa: ARG001
        kind = values[0]

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
            return _call(builder, f"llvm.{name}.{kind.suffix}", kind.vector, args)

        return kind(*values), generate

    if n_arguments == 1:
        return intrinsic(lambda context, value: type_of(context, value))
    return intrinsic(lambda context, one, other: type_of(context, one, other))


root, rounded, _floor = _instruction("sqrt", 1), _instruction("rint", 1), _instruction("floor", 1)
larger, smaller = _instruction("maxnum", 2), _instruction("minnum", 2)


@intrinsic
def choose_less(context: Any, one: Any, other: Any, if_less: Any, if_not: Any) -> Any:  # noqa: ARG001
    """``if_less`` where one number is less than the other, else ``if_not``, lane by lane."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[2], args[3])

    return one(one, other, if_less, if_not), generate


@intrinsic
def total(context: Any, value: Any) -> Any:  # noqa: ARG001
    """The sum over all lanes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        number = value.vector.element
        return _call(builder, f"llvm.vector.reduce.fadd.{value.suffix}", number, [ir.Constant(number, -0.0), *args])

    return value.number(value), generate


@intrinsic
def largest(context: Any, value: Any) -> Any:  # noqa: ARG001
    """The largest number in any lane."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return _call(builder, f"llvm.vector.reduce.fmax.{value.suffix}", value.vector.element, args)

    return value.number(value), generate


@intrinsic
def lane_of(context: Any, value: Any, number: Any) -> Any:  # noqa: ARG001
    """The first lane that has this number; there must be one."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        equal = builder.fcmp_ordered("==", args[0], _spread(builder, value.vector, args[1]))
        flags = builder.zext(builder.bitcast(equal, ir.IntType(value.width)), ir.IntType(64))
        return builder.cttz(flags, ir.Constant(ir.IntType(1), 1))

    return types.intp(value, number), generate


@intrinsic
def random_units(context: Any, key: Any) -> Any:  # noqa: ARG001
    """Random numbers from 0 to 1 in single precision, another one in each lane, that follow from a 32-bit ``key``.

    The mixing steps and their constants are those of C. Wellons' hash "lowbias32" in its improved form.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        bits = _SINGLE.bits

        def constant(number: int) -> Any:
            return ir.Constant(bits, [number] * NARROW_WIDTH)

        places = ir.Constant(bits, [(0x85EBCA6B * lane) % 2**32 for lane in range(NARROW_WIDTH)])
        x = builder.add(_spread(builder, bits, args[0]), places)
        for shift, factor in ((16, 0x21F0AAAD), (15, 0x735A2D97), (15, None)):
            x = builder.xor(x, builder.lshr(x, constant(shift)))
            x = x if factor is None else builder.mul(x, constant(factor))
        unit = builder.sitofp(builder.lshr(x, constant(8)), _SINGLE.vector)
        return builder.fmul(unit, _SINGLE.constant(2.0**-24))

    return _SINGLE(types.uint32), generate


@intrinsic
def _exponent(context: Any, value: Any) -> Any:  # noqa: ARG001
    """The largest n with 2ⁿ ≤ value, of positive numbers in double precision."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        bits = builder.bitcast(args[0], _DOUBLE.bits)
        biased = builder.lshr(bits, ir.Constant(_DOUBLE.bits, [52] * WIDTH))
        return builder.sitofp(builder.sub(biased, ir.Constant(_DOUBLE.bits, [1023] * WIDTH)), _DOUBLE.vector)

    return _DOUBLE(_DOUBLE), generate


@intrinsic
def _times_power(context: Any, value: Any, n: Any) -> Any:  # noqa: ARG001
    """``value · 2ⁿ`` in double precision."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        shift = builder.shl(builder.fptosi(args[1], _DOUBLE.bits), ir.Constant(_DOUBLE.bits, [52] * WIDTH))
        return builder.bitcast(builder.add(builder.bitcast(args[0], _DOUBLE.bits), shift), _DOUBLE.vector)

    return _DOUBLE(_DOUBLE, _DOUBLE), generate


@compiled
def log(x):  # type: ignore[no-untyped-def]
    """Of positive numbers, to 1e-15: ``x = m 2ⁿ`` with m near 1, and ``log m = 2 artanh((m − 1) / (m + 1))`` as a series."""
    n = _exponent(x * spread(math.sqrt(2.0)))
    m = _times_power(x, spread(0.0) - n)
    t = (m - spread(1.0)) / (m + spread(1.0))
    square = t * t
    series = spread(1.0 / 21)
    for k in range(19, 0, -2):
        series = series * square + spread(1.0 / k)
    return n * spread(math.log(2.0)) + spread(2.0) * t * series


@compiled
def exp(x):  # type: ignore[no-untyped-def]
    """Of numbers up to 0, to 1e-15; below −700 as if −700: ``x = n log 2 + r`` with a small r, and a series for that."""
    x = larger(x, spread(-700.0))
    n = _floor(x * spread(1.0 / math.log(2.0)) + spread(0.5))
    r = x - n * spread(0.693145751953125) - n * spread(1.42860682030941723212e-6)  # log 2 in two parts, the first one short
    series = spread(1.0)
    for k in range(13, 0, -1):
        series = series * r * spread(1.0 / k) + spread(1.0)
    return _times_power(series, n)


@intrinsic
def add_to(context: Any, counters: Any, place: Any, number: Any) -> Any:  # noqa: ARG001
    """Add to one of some counters that threads share, and return what it was before; what they wrote until then is seen."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        counters, place, number = args
        data = context.make_array(signature.args[0])(context, builder, counters).data
        return builder.atomic_rmw("add", builder.gep(data, [place]), number, "acq_rel")

    return types.int64(counters, types.intp, types.int64), generate
