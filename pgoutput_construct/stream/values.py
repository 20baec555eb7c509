"""Values as Python objects, by psycopg's loaders; without psycopg, the bytes as they came."""

from collections.abc import Mapping
from typing import Any, Protocol

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.wire.messages import Binary, Type, Unchanged

__all__ = ["ValueLoader"]


BINARY_SIZES = {16: 1, 18: 1, 20: 8, 21: 2, 23: 4, 26: 4, 28: 4, 700: 4, 701: 8, 1082: 4, 1083: 8, 1114: 8, 1184: 8,
                1186: 16, 1266: 12, 2950: 16}  # fmt: skip
"""Bytes of the binary format, by OID of the types of fixed size (typlen in pg_type): psycopg's loaders do not check."""


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
        if binary and len(value) != BINARY_SIZES.get(type_oid, len(value)):
            return value
        try:
            return self._loader(type_oid, binary).load(value)
        except (ValueError, ArithmeticError, _data_error()):
            return value if binary else value.decode("utf-8", "surrogateescape")

    def _loader(self, type_oid: int, binary: bool) -> _Loader:
        key = type_oid, binary
        if key not in self._loaders:
            self._loaders[key] = self._find(type_oid, binary)
        return self._loaders[key]

    def _find(self, type_oid: int, binary: bool) -> _Loader:
        from psycopg.pq import Format

        known = self._builtin(type_oid)
        if binary and known is None:
            return _AsReceived()
        assert self._transformer is not None
        loader: _Loader = self._transformer.get_loader(known or type_oid, Format.BINARY if binary else Format.TEXT)
        return loader

    def _builtin(self, type_oid: int) -> int | None:
        """Return the OID of a built-in type, that of its base for a domain (whose Type names the base)."""
        registry = self._transformer.adapters.types
        if registry.get(type_oid) is not None:
            return type_oid
        declared = self.types.get(type_oid)
        base = registry.get(declared.name) if declared is not None and not declared.namespace else None
        return base.oid if base is not None else None


class _AsReceived:
    """The loader of binary values whose type nobody knows."""

    def load(self, data: bytes) -> bytes:
        return data


def _transformer() -> Any:
    try:
        from psycopg.adapt import Transformer
    except ImportError:
        return None
    return Transformer()


def _data_error() -> type[Exception]:
    try:
        from psycopg import DataError
    except ImportError:
        return PgoutputError
    return DataError
