"""C functions called from kernels by their address.

The address is an argument, because numba does not cache a kernel that contains one.
"""

import ctypes
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from pgoutput_construct.compiled.jit import kernel

__all__ = ["address_of", "copy_from", "foreign"]

_BITS = {ctypes.c_int: 32, ctypes.c_void_p: 64, ctypes.c_ssize_t: 64}


def address_of(function: Any) -> int:
    """Return the address of a ctypes function, the first argument of a function that ``foreign`` returns."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def foreign(result: Any, *arguments: Any) -> Any:
    """Return a function for kernels that calls the C function at an address with a tuple of integers.

    Args:
        result: The C type of the result, one of ctypes' c_int, c_void_p and c_ssize_t; None for void, which returns 0.
        arguments: The C types of the arguments.
    """

    def call(typing: Any, address: Any, given: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            words = [ir.IntType(_BITS[argument]) for argument in arguments]
            returned = ir.VoidType() if result is None else ir.IntType(_BITS[result])
            function = builder.inttoptr(values[0], ir.FunctionType(returned, words).as_pointer())
            passed = zip(cgutils.unpack_tuple(builder, values[1]), words, strict=True)
            found = builder.call(function, [builder.trunc(v, w) if w.width < 64 else v for v, w in passed])
            if result is None:
                return ir.Constant(ir.IntType(64), 0)
            return builder.sext(found, ir.IntType(64)) if returned.width < 64 else found

        return types.int64(types.int64, types.UniTuple(types.int64, len(arguments))), build

    return intrinsic(call)


@intrinsic  # type: ignore[untyped-decorator]
def _copy(typing: Any, target: Any, at: Any, address: Any, size: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        content = context.make_array(signature.args[0])(context, builder, arguments[0])
        source = builder.inttoptr(arguments[2], ir.IntType(8).as_pointer())
        cgutils.raw_memcpy(builder, builder.gep(content.data, [arguments[1]]), source, arguments[3], 1)
        return context.get_dummy_value()

    return types.void(target, types.intp, types.int64, types.int64), build


@kernel
def copy_from(address: int, size: int, target: Any, at: int) -> None:
    """Copy ``size`` bytes from an address to an offset in an array; the caller guarantees that both are in bounds."""
    _copy(target, at, address, size)
