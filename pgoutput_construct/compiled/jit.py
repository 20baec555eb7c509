"""How the kernels are compiled, and how they read: words at any place, in the byte order of the wire."""

from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from pgoutput_construct.compiled.memory import LINE

__all__ = [
    "WORD",
    "copy_word",
    "digest",
    "double_bits",
    "entry_at",
    "find_nul",
    "inlined",
    "kernel",
    "memory_word",
    "prefetch",
    "put8",
    "put32",
    "put64",
    "put_entry",
    "put_length",
    "put_word",
    "single_bits",
    "u8",
    "u16",
    "u32",
    "u64",
]

WORD = 8
"""Bytes of a word: what copy_word copies at once, and u64 reads."""
LINES: Final = 3
"""Cache lines that are prefetched for each message."""
AHEAD: Final = 2048
"""How many bytes before they are read they are prefetched: those of some ten messages."""


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function with numba when it is first called; it never holds Python objects, and allocates nothing.

    The machine code is kept in numba's cache, once per machine; where no cache can be written, once per process.
    """
    return _compiled(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile what kernels call for each value, as a part of them: a call hands over seven words for each array."""
    return _compiled(function, forceinline=True)


def digest(*directories: Path) -> str:
    """Return a digest of all modules in directories and below them."""
    found = blake2b(digest_size=6)
    for path in (path for directory in directories for path in sorted(directory.rglob("*.py"))):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


ROOMS: Final = tuple(Path(__file__).parents[1] / name for name in ("compiled", "pgtypes", "columnar"))
"""Where kernels and the constants stand that are compiled into kernels of other modules."""
_SOURCES: Final = digest(*ROOMS)


def _compiled(function: Callable[..., Any], **settings: bool) -> Any:
    # numba takes machine code from its cache while the kernel's own file is the same, whatever the kernel calls. Code
    # that was compiled with other modules would read and write arrays that are laid out otherwise.
    function.__qualname__ = f"{function.__qualname__}.{_SOURCES}"
    # Without numba's runtime (_nrt): it counts references to arrays by an atomic instruction at every call, which
    # takes three quarters of the time of a walk over a batch.
    settings |= {"nogil": True, "_nrt": False}
    try:
        return njit(cache=True, **settings)(function)
    except RuntimeError:  # numba finds no directory that it can write its cache to
        return njit(**settings)(function)


def _place(context: Any, builder: Any, array_type: Any, array: Any, at: Any, bits: int) -> Any:
    """Return the pointer to a word of ``bits`` bits that starts at any byte of an array."""
    content = context.make_array(array_type)(context, builder, array)
    return builder.bitcast(builder.gep(content.data, [at]), ir.IntType(bits).as_pointer())


def _reader(bits: int, swapped: bool = True) -> Any:
    """Return a function that reads a big-endian word, or (not ``swapped``) one in the byte order of this machine.

    numpy has no words that are not aligned, and numba's own indexing also looks for negative indexes, byte by byte:
    the walk over a batch takes half the time with these. They do not check: the kernels do, before they read.
    """

    def read(typing: Any, data: Any, at: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            place = _place(context, builder, signature.args[0], arguments[0], arguments[1], bits)
            word = builder.load(place, align=1)
            if bits > 8 and swapped:
                word = builder.bswap(word)
            return builder.zext(word, ir.IntType(64)) if bits < 64 else word

        return types.int64(data, types.intp), build

    return intrinsic(read)


u8, u16, u32, u64 = (_reader(bits) for bits in (8, 16, 32, 64))
"""Read an unsigned word; u64 gives a signed number, which the caller views as unsigned."""

memory_word = _reader(64, swapped=False)
"""Read eight bytes as this machine has them in memory."""
entry_at = memory_word
"""Read an entry of an array of int64, of any shape, by its place among all: numba's own indexing takes longer."""


def _writer(bits: int, swapped: bool = False) -> Any:
    """Return a function that writes the last bits of a number to any place, in the byte order of this machine.

    ``swapped``: in the byte order of the wire.
    """

    def write(typing: Any, target: Any, at: Any, number: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            place = _place(context, builder, signature.args[0], arguments[0], arguments[1], bits)
            number = arguments[2] if bits == 64 else builder.trunc(arguments[2], ir.IntType(bits))
            builder.store(builder.bswap(number) if swapped else number, place, align=1)
            return context.get_dummy_value()

        return types.void(target, types.intp, types.int64), build

    return intrinsic(write)


put8, put32, put64 = (_writer(bits) for bits in (8, 32, 64))
"""Write the last bits of a number as Arrow and numpy hold it."""


def _bits_of(kind: Any, size: int) -> Any:
    """Return a function that gives the bits of a floating-point number of this type."""

    def bits(typing: Any, number: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            rounded = context.cast(builder, arguments[0], types.float64, kind)
            return builder.zext(builder.bitcast(rounded, ir.IntType(size)), ir.IntType(64))

        return types.int64(types.float64), build

    return intrinsic(bits)


single_bits, double_bits = _bits_of(types.float32, 32), _bits_of(types.float64, 64)
"""Return the bits of a number as a float4, or as a float8."""

put_entry = put64
"""Write an entry of an array of int64, by its place among all."""

put_length = _writer(32, swapped=True)
"""Write a number of 32 bits as the wire has it."""


@intrinsic  # type: ignore[untyped-decorator]
def copy_word(typing: Any, target: Any, at: Any, source: Any, start: Any) -> Any:
    """Copy eight bytes from any place to any place."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        read = _place(context, builder, kinds[2], arguments[2], arguments[3], 8 * WORD)
        write = _place(context, builder, kinds[0], arguments[0], arguments[1], 8 * WORD)
        builder.store(builder.load(read, align=1), write, align=1)
        return context.get_dummy_value()

    return types.void(target, types.intp, source, types.intp), build


@intrinsic  # type: ignore[untyped-decorator]
def _prefetch_line(typing: Any, data: Any, at: Any) -> Any:
    """Prefetch the cache line at a place, which may be outside of the array."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature.args[0], arguments[0], arguments[1], 8)
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        builder.call(function, [place, word(0), word(3), word(1)])  # to read, to keep it near, data
        return context.get_dummy_value()

    return types.void(data, types.intp), build


@intrinsic  # type: ignore[untyped-decorator]
def put_word(typing: Any, target: Any, at: Any, word: Any) -> Any:
    """Write a word of eight bytes to any place, the most significant byte first."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        write = _place(context, builder, signature.args[0], arguments[0], arguments[1], 8 * WORD)
        builder.store(builder.bswap(arguments[2]), write, align=1)
        return context.get_dummy_value()

    return types.void(target, types.intp, types.int64), build


@inlined
def prefetch(data: Any, at: int) -> None:
    """Prefetch what is AHEAD of a message that begins here: some messages later, it is read.

    The processor foresees this for itself only in long messages, and waiting for memory took half of a walk's time.
    """
    for line in range(LINES):
        _prefetch_line(data, at + AHEAD + LINE * line)


@kernel
def find_nul(data: Any, at: int, end: int) -> int:
    """Return the position of the next NUL, -1 where there is none before the end."""
    for place in range(at, end):
        if u8(data, place) == 0:
            return place
    return -1
