"""Bytes: bytea (varlena.c), and uuid (uuid.c), which a reader may choose to get as bytes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from pgoutput_construct.pgtypes.builtin_types import TYPE_NAMES
from pgoutput_construct.pgtypes.family import ArrowKind, ArrowTypes, Compiled, Family, SqlText
from pgoutput_construct.pgtypes.value_codec import Codec, hexadecimal

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column
    from pyspark.sql import types as T  # noqa: N812 - as Spark's documentation has it

__all__ = ["FAMILY"]

_UUID_SIZE = TYPE_NAMES["uuid"].size


def _hexadecimal_binary(text: str) -> bytes:
    if not text.startswith("\\x"):
        raise ValueError("bytea_output is not hex")
    return bytes.fromhex(text[2:])


def _uuid_text(data: bytes) -> str:
    if len(data) != _UUID_SIZE:
        raise ValueError(f"a uuid has {_UUID_SIZE} bytes, not {len(data)}")
    digits = data.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _arrow() -> ArrowTypes:
    import pyarrow as pa

    binary = ArrowKind(pa.types.is_binary, lambda value, _: isinstance(value, bytes), _bytes)
    chosen = {("uuid", "binary"): pa.binary()}
    return ArrowTypes({"binary": pa.binary()}, [binary], choose=lambda name, words: chosen.get((name, words)))


def _bytes(value: Any, target: "pa.DataType") -> Any:
    return value.bytes if isinstance(value, UUID) else value


def _compiled() -> Mapping[str, Sequence[Compiled]]:
    import pyarrow as pa

    from pgoutput_construct.pgtypes.kernels import planned_casts, text_casts

    of_binary = Compiled(pa.types.is_binary, text_casts.UUID_TEXT, planned_casts.TEXT)
    return {
        "bytea": [Compiled(pa.types.is_binary, text_casts.BYTEA_TEXT, planned_casts.TEXT)],
        "uuid": [Compiled(pa.types.is_string, planned_casts.TEXT, text_casts.UUID_BINARY), of_binary],
    }


def _sql(name: str, target: "pa.DataType") -> SqlText | None:
    """Return the canonical text of a uuid that is binary in Arrow: that of a bytea."""
    import pyarrow as pa

    is_bytes = name == "uuid" and pa.types.is_binary(target)
    return SqlText("'\\x' || replace({value}::text, '-', '')") if is_bytes else None


def _spark(value: "Column", kind: "T.DataType") -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    return F.concat(F.lit("\\x"), F.lower(F.hex(value)))


FAMILY: Final = Family(
    {
        "bytea": Codec(hexadecimal, _hexadecimal_binary),
        "uuid": Codec(_uuid_text, lambda text: bytes.fromhex(text.replace("-", ""))),
    },
    arrow=_arrow,
    compiled=_compiled,
    sql=_sql,
    spark={"BinaryType": _spark},
)
