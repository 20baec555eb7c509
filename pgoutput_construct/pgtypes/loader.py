"""Values as Python objects, through psycopg's loaders; the only module of the core that uses psycopg, on demand."""

import math
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.extras import installation
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES, TYPE_NAMES
from pgoutput_construct.pgtypes.value_codec import MAX_DIMENSIONS, split_items
from pgoutput_construct.wire.messages import FORMS, VALUES, Binary, Type, Unchanged
from pgoutput_construct.wire.types import Marker

__all__ = ["FORMATS", "ValueLoader", "base_oid", "formatted", "kind_text"]

_PLAIN: Final[Mapping[str, type[bytes]]] = {"text": bytes, "binary": Binary}
FORMATS: Final[Mapping[object, type[bytes]]] = {VALUES[kind]: _PLAIN[format_] for kind, format_ in FORMS.items()}
"""The classes of values that are loaded, each with the class of its format: bytes for text, Binary for binary.

Values of any other class are returned unchanged.
"""

_KINDS: Final[Mapping[object, str]] = {value: name for name, value in VALUES.items()}


class _Loader(Protocol):
    def load(self, data: bytes) -> Any: ...


def base_oid(type_oid: int, types: Mapping[int, Type]) -> int:
    """Return the OID of a domain's built-in base type, any other OID unchanged; ``types`` are Type messages by OID."""
    # logicalrep_write_typ() sends a domain's own OID with the name of its base type; "" is pg_catalog.
    declared = types.get(type_oid)
    base = TYPE_NAMES.get(declared.name) if declared is not None and not declared.namespace else None
    return type_oid if base is None else base.oid


class ValueLoader:
    """Loads values by type OID, in text and in binary format.

    A value that its Python type cannot represent (``infinity`` dates, years before 1) stays as PostgreSQL sent it: a
    str for text format, Binary for binary format; so do values of types that psycopg does not know, such as enums. Text
    must be sent under DateStyle ISO, IntervalStyle postgres and client_encoding UTF8, which the capture sets.
    """

    def __init__(self, types: Mapping[int, Type] | None = None) -> None:
        """Create a loader; ``types`` are the Type messages by OID, to which the caller may add later.

        Raises PgoutputError if psycopg is not installed.
        """
        self.types = types if types is not None else {}
        self._transformer = _transformer()
        self._loaders: dict[tuple[int, bool], _Loader] = {}

    def load(self, value: bytes | Unchanged | None, type_oid: int) -> Any:
        """Return a value of a tuple as a Python object; values of no class in FORMATS are returned unchanged."""
        if not isinstance(value, bytes) or (plain := formatted(value)) is None:
            return value
        value, binary = plain, isinstance(plain, Binary)
        oid = _alike(base_oid(type_oid, self.types), binary)
        if binary and not _is_sound(value, oid):
            return value
        try:
            return self._loader(oid, binary).load(value)
        except MemoryError:
            raise
        except Exception:  # psycopg's loaders trust their input, and raise any exception
            return value if binary else value.decode("utf-8", "surrogateescape")

    def text_loader(self, type_oid: int) -> Callable[[bytes], Any]:
        """Return a function that loads text of a type, by the Type messages so far.

        It raises any exception for a value that its Python type cannot represent, which ``load`` then returns.
        """
        load: Callable[[bytes], Any] = self._loader(_alike(base_oid(type_oid, self.types), False), False).load
        return load

    def _loader(self, type_oid: int, binary: bool) -> _Loader:
        key = type_oid, binary
        found = self._loaders.get(key)
        if found is None:
            from psycopg.pq import Format

            found = self._transformer.get_loader(type_oid, Format.BINARY if binary else Format.TEXT)
            self._loaders[key] = found
        return found


def formatted(value: bytes) -> bytes | None:
    """Return a value as bytes (text format) or Binary, without further fields; None if its class is not in FORMATS."""
    plain = FORMATS.get(type(value))
    return value if plain is type(value) else None if plain is None else plain(value)


def kind_text(value: bytes | Marker) -> str:
    """Return a value whose class is not in FORMATS for display: the name of its kind, and its bytes."""
    if isinstance(value, bytes):
        return f"{_KINDS.get(type(value), type(value).__name__)} \\x{value.hex()}"
    return _KINDS[value]


def _alike(type_oid: int, binary: bool) -> int:
    """Return the OID of the type whose format a built-in type shares (``like`` in the specification), or its own."""
    builtin = BUILTIN_TYPES.get(type_oid)
    other = 0 if builtin is None else builtin.binary_like if binary else builtin.text_like
    return other or type_oid


def _is_sound(value: bytes, type_oid: int) -> bool:
    """Return whether a loader may be passed binary bytes: psycopg's C loaders read past the end of short input."""
    builtin = BUILTIN_TYPES.get(type_oid)
    if builtin is None:
        return False
    return _is_sound_array(value) if builtin.element_oid else _has_size(type_oid, len(value))


def _has_size(type_oid: int, length: int) -> bool:
    builtin = BUILTIN_TYPES.get(type_oid)
    # namesend() sends the text alone; every other type of fixed size sends its size in memory (typlen).
    return builtin is None or builtin.name == "name" or builtin.size in (-1, length)


def _is_sound_array(value: bytes) -> bool:
    """Return whether an array in binary format is well-formed (array_send()): dimensions, then sized elements."""
    try:
        dimensions, _, element = struct.unpack_from("!iiI", value)
        if not 0 <= dimensions <= MAX_DIMENSIONS:
            return False
        counts = struct.unpack_from("!" + "i4x" * dimensions, value, 12)
        items = list(split_items(value[12 + 8 * dimensions :]))
    except (struct.error, ValueError):
        return False
    fits = min(counts, default=0) >= 0 and len(items) == (math.prod(counts) if counts else 0)
    return fits and all(item is None or _has_size(element, len(item)) for item in items)


def _transformer() -> Any:
    try:
        from psycopg.adapt import Transformer
    except ImportError as error:
        remedy = f"{installation('postgres')}, or use the raw bytes: RowReader(values='raw')"
        raise PgoutputError(f"Python values need psycopg, which is not installed; {remedy}") from error
    return Transformer()
