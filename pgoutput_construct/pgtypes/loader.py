"""Values as Python objects, by psycopg's loaders: the one module of the core that uses psycopg, when it is asked to."""

import math
import struct
from collections.abc import Mapping
from typing import Any, Final, Protocol

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES, TYPE_NAMES
from pgoutput_construct.pgtypes.value_codec import MAX_DIMENSIONS, split_items
from pgoutput_construct.wire.messages import FORMS, VALUES, Binary, Type, Unchanged
from pgoutput_construct.wire.types import Marker

__all__ = ["FORMATS", "ValueLoader", "base_oid", "formatted", "kind_text"]

_PLAIN: Final[Mapping[str, type[bytes]]] = {"text": bytes, "binary": Binary}
FORMATS: Final[Mapping[object, type[bytes]]] = {VALUES[kind]: _PLAIN[format_] for kind, format_ in FORMS.items()}
"""The classes of values that are read, each with that of its format: bytes for text, Binary for binary format.

Values of any other class stay as they came.
"""

_KINDS: Final[Mapping[object, str]] = {value: name for name, value in VALUES.items()}


class _Loader(Protocol):
    def load(self, data: bytes) -> Any: ...


def base_oid(type_oid: int, types: Mapping[int, Type]) -> int:
    """Return the OID of a domain's built-in base type, any other OID as it is; ``types`` are Type messages by OID."""
    # logicalrep_write_typ() sends a domain's own OID with the name of its base type; "" is pg_catalog.
    declared = types.get(type_oid)
    base = TYPE_NAMES.get(declared.name) if declared is not None and not declared.namespace else None
    return type_oid if base is None else base.oid


class ValueLoader:
    """Loads values by type OID, in text and in binary format.

    A value that its Python type cannot hold (``infinity`` dates, years before 1) stays what PostgreSQL sent: a str
    for text format, Binary for binary format. The same goes for types that psycopg does not know, such as enums.
    Text must come with DateStyle ISO, IntervalStyle postgres and client_encoding UTF8, as the capture asks for.
    """

    def __init__(self, types: Mapping[int, Type] | None = None) -> None:
        """``types`` maps OIDs of types that are not built in to their Type messages; it may grow later.

        Raises PgoutputError where psycopg is not installed.
        """
        self.types = types if types is not None else {}
        self._transformer = _transformer()
        self._loaders: dict[tuple[int, bool], _Loader] = {}

    def load(self, value: bytes | Unchanged | None, type_oid: int) -> Any:
        """Return a value of a tuple as a Python object; what is not of FORMATS stays as it is."""
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
        except Exception:  # psycopg's loaders trust their input, and raise whatever Python does
            return value if binary else value.decode("utf-8", "surrogateescape")

    def _loader(self, type_oid: int, binary: bool) -> _Loader:
        from psycopg.pq import Format

        key = type_oid, binary
        if key not in self._loaders:
            self._loaders[key] = self._transformer.get_loader(type_oid, Format.BINARY if binary else Format.TEXT)
        return self._loaders[key]


def formatted(value: bytes) -> bytes | None:
    """Return a value as bytes, which are text, or as Binary; None for one that is of none of FORMATS."""
    plain = FORMATS.get(type(value))
    return value if plain is type(value) else None if plain is None else plain(value)


def kind_text(value: bytes | Marker) -> str:
    """Return a value that is of none of FORMATS as people read it: the name of its kind, and its bytes."""
    if isinstance(value, bytes):
        return f"{_KINDS.get(type(value), type(value).__name__)} \\x{value.hex()}"
    return _KINDS[value]


def _alike(type_oid: int, binary: bool) -> int:
    """Return the type whose format a built-in type has: its own, or that of another one."""
    builtin = BUILTIN_TYPES.get(type_oid)
    other = 0 if builtin is None else builtin.binary_like if binary else builtin.text_like
    return other or type_oid


def _is_sound(value: bytes, type_oid: int) -> bool:
    """Return whether binary bytes may be given to a loader: psycopg's, in C, read beyond what is too short."""
    builtin = BUILTIN_TYPES.get(type_oid)
    if builtin is None:
        return False
    return _is_sound_array(value) if builtin.element_oid else _has_size(type_oid, len(value))


def _has_size(type_oid: int, length: int) -> bool:
    builtin = BUILTIN_TYPES.get(type_oid)
    # namesend() sends the text alone; every other type of fixed size sends as many bytes as it has in memory.
    return builtin is None or builtin.name == "name" or builtin.size in (-1, length)


def _is_sound_array(value: bytes) -> bool:
    """Walk an array in binary format (array_send()): dimensions, then a length and as many bytes an element."""
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
        remedy = "pip install '.[postgres]' in a clone of the project, or ask for the bytes: RowReader(values='raw')"
        raise PgoutputError(f"Python values are loaded by psycopg, which is not installed: {remedy}") from error
    return Transformer()
