"""Values as Python objects, by psycopg's loaders; without psycopg, the bytes as they came."""

import math
import struct
from collections.abc import Mapping
from functools import cache
from typing import Any, Protocol

from pgoutput_construct.wire.messages import Binary, Type, Unchanged

__all__ = ["ValueLoader"]


BINARY_SIZES = {16: 1, 18: 1, 20: 8, 21: 2, 23: 4, 26: 4, 28: 4, 700: 4, 701: 8, 1082: 4, 1083: 8, 1114: 8, 1184: 8,
                1186: 16, 1266: 12, 2950: 16}  # fmt: skip
"""Bytes of the binary format, by OID of the types of fixed size (typlen in pg_type): psycopg's loaders do not check."""


MAX_DIMENSIONS = 6
"""MAXDIM in PostgreSQL's array.h."""


class _Loader(Protocol):
    def load(self, data: bytes) -> Any: ...


class ValueLoader:
    """Loads values by type OID, in text and in binary format.

    A value that its Python type cannot hold (``infinity`` dates, years before 1) stays what PostgreSQL sent: a str
    for text format, Binary for binary format. The same goes for types that psycopg does not know, such as enums.
    Text must come with DateStyle ISO, IntervalStyle postgres and client_encoding UTF8, as the capture asks for.
    """

    def __init__(self, types: Mapping[int, Type] | None = None) -> None:
        """``types`` maps OIDs of types that are not built in to their Type messages; it may grow later."""
        self.types = types if types is not None else {}
        self._transformer = _transformer()
        self._loaders: dict[tuple[int, bool], _Loader] = {}

    def load(self, value: bytes | Unchanged | None, type_oid: int) -> Any:
        """Return a value of a tuple as a Python object; None and UNCHANGED stay as they are."""
        if not isinstance(value, bytes) or self._transformer is None:
            return value
        binary = isinstance(value, Binary)
        known = self._builtin(type_oid)
        if binary and not _is_sound(value, known):
            return value
        try:
            return self._loader(known or type_oid, binary).load(value)
        except MemoryError:
            raise
        except Exception:  # psycopg's loaders trust their input, and raise whatever Python does
            return value if binary else value.decode("utf-8", "surrogateescape")

    def _loader(self, type_oid: int, binary: bool) -> _Loader:
        from psycopg.pq import Format

        key = type_oid, binary
        if key not in self._loaders:
            assert self._transformer is not None
            form = Format.BINARY if binary else Format.TEXT
            self._loaders[key] = self._transformer.get_loader(type_oid, form)
        return self._loaders[key]

    def _builtin(self, type_oid: int) -> int | None:
        """Return the OID of a built-in type, that of its base for a domain (whose Type names the base)."""
        registry = self._transformer.adapters.types
        if registry.get(type_oid) is not None:
            return type_oid
        declared = self.types.get(type_oid)
        base = registry.get(declared.name) if declared is not None and not declared.namespace else None
        return base.oid if base is not None else None


def _is_sound(value: bytes, type_oid: int | None) -> bool:
    """Tell whether binary bytes may be given to a loader: psycopg's, in C, read beyond what is too short."""
    if type_oid is None:
        return False
    if type_oid in _array_oids():
        return _is_sound_array(value)
    return BINARY_SIZES.get(type_oid, len(value)) == len(value)


def _is_sound_array(value: bytes) -> bool:
    """Walk an array in binary format (array_send()): dimensions, then a length and as many bytes an element."""
    try:
        dimensions, _, element = struct.unpack_from("!iiI", value)
        counts = [struct.unpack_from("!i", value, 12 + 8 * number)[0] for number in range(dimensions)]
        at = 12 + 8 * dimensions
        left = math.prod(counts) if counts else 0
        if not 0 <= dimensions <= MAX_DIMENSIONS or min(counts, default=0) < 0 or not 0 <= 4 * left <= len(value) - at:
            return False
        for _ in range(left):
            (length,) = struct.unpack_from("!i", value, at)
            if length < -1 or (length >= 0 and length != BINARY_SIZES.get(element, length)):
                return False
            at += 4 + max(length, 0)
    except struct.error:
        return False
    return bool(at == len(value))


@cache
def _array_oids() -> frozenset[int]:
    from psycopg.postgres import types

    return frozenset(info.array_oid for info in types if info.array_oid)


def _transformer() -> Any:
    try:
        from psycopg.adapt import Transformer
    except ImportError:
        return None
    return Transformer()
