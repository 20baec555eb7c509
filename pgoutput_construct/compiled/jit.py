"""Compiles the kernels, and gives them unaligned memory access in the byte order of the wire.

The readers and writers here (``u8`` ... ``put_word``) compile to a single load or store: no alignment, no bounds check,
no negative indexes. Memory safety is therefore the kernel's own duty, by three rules:

1. The bytes come from a peer, so no length or count in them is trusted. A kernel carries ``at`` and ``end``, and before
   every read it compares the size with ``end - at``, never ``at + size`` with ``end``: a length near 2**32 must not
   overflow. It rejects the payload (-1) if too few bytes are left.
2. A count is compared with the bytes that are left before a loop begins: each item takes at least one byte, so a forged
   count cannot make a kernel loop or write beyond its output.
3. Output buffers have room for the worst case, plus a word (``SLACK``), because the last word written may run past the
   end of a value. Where the worst case is too large, the plan has a LIMIT, and values beyond it are left for later.

``tests/pgtypes/test_checked.py`` runs the kernels in plain Python over arrays that check every access, and
``tests/pgtypes/test_guarded.py`` runs the machine code against pages that may not be touched.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from pgoutput_construct.compiled.memory import LINE

__all__ = [
    "WORD",
    "compilation",
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
"""Bytes of a word, which copy_word copies and u64 reads."""
LINES: Final = 3
"""Cache lines that are prefetched for each message."""
AHEAD: Final = 2048
"""Distance of the prefetch in bytes: about ten messages."""
_LOG: Final = logging.getLogger("pgoutput_construct")
_QUICK_SECONDS: Final = 2.0
_COMPILING: Final = "compiling what reads messages: this takes about half a minute, once for each installation"


@contextmanager
def compilation() -> Iterator[None]:
    """Log that kernels are compiled, where calling them the first time takes longer than loading them."""
    logged = threading.Timer(_QUICK_SECONDS, _LOG.info, [_COMPILING])
    logged.daemon = True
    logged.start()
    try:
        yield
    finally:
        logged.cancel()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function with numba on its first call; it must not use Python objects, and must not allocate.

    The machine code is stored in numba's cache, or compiled once per process if no cache directory is writable.
    """
    return _compiled(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function that is inlined into kernels: a call would pass seven words for each array argument."""
    return _compiled(function, forceinline=True)


def digest(*directories: Path) -> str:
    """Return a digest of all Python files under some directories."""
    found = blake2b(digest_size=6)
    for path in (path for directory in directories for path in sorted(directory.rglob("*.py"))):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


ROOMS: Final = tuple(Path(__file__).parents[1] / name for name in ("compiled", "pgtypes", "columnar"))
"""The directories with kernels, and with constants that are compiled into kernels of other modules."""
_SOURCES: Final = digest(*ROOMS)


def _compiled(function: Callable[..., Any], **settings: bool) -> Any:
    # numba's cache is keyed by the kernel's own file, although the code of other files is inlined. Stale machine code
    # would read and write arrays with another layout, so the digest of all of these files is part of the key.
    function.__qualname__ = f"{function.__qualname__}.{_SOURCES}"
    # Without numba's runtime (_nrt), whose atomic reference counts of arrays take three quarters of the time of a walk.
    settings |= {"nogil": True, "_nrt": False}
    try:
        return njit(cache=True, **settings)(function)
    except RuntimeError:  # no writable directory for numba's cache
        return njit(**settings)(function)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, at: Any, bits: int) -> Any:
    """Return a pointer to a word of ``bits`` bits at any byte offset of an array."""
    content = context.make_array(array_type)(context, builder, array)
    return builder.bitcast(builder.gep(content.data, [at]), ir.IntType(bits).as_pointer())


def _reader(bits: int, swapped: bool = True) -> Any:
    """Return a function that reads a big-endian word, or one in this machine's byte order if not ``swapped``.

    numpy cannot read unaligned words, and numba's indexing handles negative indexes for each byte; with these readers a
    walk takes half the time. They check nothing: the kernels check before they read.
    """

    def read(typing: Any, data: Any, at: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = _pointer(context, builder, signature.args[0], arguments[0], arguments[1], bits)
            word = builder.load(pointer, align=1)
            if bits > 8 and swapped:
                word = builder.bswap(word)
            return builder.zext(word, ir.IntType(64)) if bits < 64 else word

        return types.int64(data, types.intp), build

    return intrinsic(read)


u8, u16, u32, u64 = (_reader(bits) for bits in (8, 16, 32, 64))
"""Read an unsigned word; u64 gives a signed number, which the caller views as unsigned."""

memory_word = _reader(64, swapped=False)
"""Read eight bytes in this machine's byte order."""
entry_at = memory_word
"""Read an entry of an int64 array of any shape, by its index in the flattened array; numba's indexing is slower."""


def _writer(bits: int, swapped: bool = False) -> Any:
    """Return a function that writes the low bits of a number at any byte offset.

    In this machine's byte order, or in that of the wire if ``swapped``.
    """

    def write(typing: Any, target: Any, at: Any, number: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = _pointer(context, builder, signature.args[0], arguments[0], arguments[1], bits)
            number = arguments[2] if bits == 64 else builder.trunc(arguments[2], ir.IntType(bits))
            builder.store(builder.bswap(number) if swapped else number, pointer, align=1)
            return context.get_dummy_value()

        return types.void(target, types.intp, types.int64), build

    return intrinsic(write)


put8, put32, put64 = (_writer(bits) for bits in (8, 32, 64))
"""Write the low bits of a number in this machine's byte order, as Arrow and numpy have it."""


def _bits_of(kind: Any, size: int) -> Any:
    """Return a function that returns the bits of a floating-point number of this type."""

    def bits(typing: Any, number: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            rounded = context.cast(builder, arguments[0], types.float64, kind)
            return builder.zext(builder.bitcast(rounded, ir.IntType(size)), ir.IntType(64))

        return types.int64(types.float64), build

    return intrinsic(bits)


single_bits, double_bits = _bits_of(types.float32, 32), _bits_of(types.float64, 64)
"""Return the bits of a number as a float4, or as a float8."""

put_entry = put64
"""Write an entry of an int64 array of any shape, by its index in the flattened array."""

put_length = _writer(32, swapped=True)
"""Write a big-endian number of 32 bits."""


@intrinsic  # type: ignore[untyped-decorator]
def copy_word(typing: Any, target: Any, at: Any, source: Any, start: Any) -> Any:
    """Copy eight bytes, unaligned."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        read = _pointer(context, builder, kinds[2], arguments[2], arguments[3], 8 * WORD)
        write = _pointer(context, builder, kinds[0], arguments[0], arguments[1], 8 * WORD)
        builder.store(builder.load(read, align=1), write, align=1)
        return context.get_dummy_value()

    return types.void(target, types.intp, source, types.intp), build


@intrinsic  # type: ignore[untyped-decorator]
def _prefetch_line(typing: Any, data: Any, at: Any) -> Any:
    """Prefetch the cache line at an offset, which may be outside of the array."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], arguments[0], arguments[1], 8)
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
        builder.call(function, [pointer, word(0), word(3), word(1)])  # for reading, in all cache levels, data
        return context.get_dummy_value()

    return types.void(data, types.intp), build


@intrinsic  # type: ignore[untyped-decorator]
def put_word(typing: Any, target: Any, at: Any, word: Any) -> Any:
    """Write a big-endian word of eight bytes at any byte offset."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        write = _pointer(context, builder, signature.args[0], arguments[0], arguments[1], 8 * WORD)
        builder.store(builder.bswap(arguments[2]), write, align=1)
        return context.get_dummy_value()

    return types.void(target, types.intp, types.int64), build


@inlined
def prefetch(data: Any, at: int) -> None:
    """Prefetch the bytes AHEAD of a message that starts at ``at``, which the walk reads some messages later.

    The hardware prefetcher helps only within long messages; without this, half of a walk's time is waiting for memory.
    """
    for line in range(LINES):
        _prefetch_line(data, at + AHEAD + LINE * line)


@kernel
def find_nul(data: Any, at: int, end: int) -> int:
    """Return the offset of the next NUL, -1 if there is none before ``end``."""
    for offset in range(at, end):
        if u8(data, offset) == 0:
            return offset
    return -1
