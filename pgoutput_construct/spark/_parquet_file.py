"""Typed rows as a Parquet file, written by a task: Spark's own writer, fed from Python, takes six times as long."""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import __version__
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

_SPARK_SCHEMA: Final = b"org.apache.spark.sql.parquet.row.metadata"
_SPARK_VERSION: Final = b"org.apache.spark.version"
"""The keys of Spark's schema and version in a footer: since 3.0 dates before 1582 are in the proleptic Gregorian
calendar."""
_CODEC: Final = "spark.sql.parquet.compression.codec"
_CODECS: Final[Mapping[str, str]] = {"uncompressed": "none", "lz4_raw": "lz4"}
"""Spark's names of codecs that are others than Arrow's."""
_GROUP_BYTES: Final = 1 << 26
_SETTINGS: Final[Mapping[str, Any]] = {
    # A column of many different values falls back to plain encoding sooner: a third less time.
    "dictionary_pagesize_limit": 1 << 16,
    "store_decimal_as_integer": True,
    "store_schema": False,
    "write_batch_size": 8192,
}


def codec_of(spark: SparkSession) -> str:
    """Return the compression of a session's files, by Arrow's name."""
    codec = spark.conf.get(_CODEC) or "none"
    return _CODECS.get(codec, codec)


class RowsFile:
    """A file that Spark reads as if it had written it; use it as a context manager, or call ``close``.

    Args:
        sink: The path, or a stream of Arrow.
        schema: The columns of the rows.
        codec: How pages are compressed, by Arrow's name (``codec_of``).
        group_bytes: How many bytes of rows, as they are in memory, are collected for a row group of the file; with 0
            each batch becomes one at once.
    """

    def __init__(self, sink: Any, schema: pa.Schema, codec: str = "snappy", group_bytes: int = _GROUP_BYTES) -> None:
        self._parquet = pq.ParquetWriter(sink, schema, compression=codec, **_SETTINGS)
        rows = from_arrow_schema(schema, prefer_timestamp_ntz=True).json().encode()
        self._footer = {_SPARK_SCHEMA: rows, _SPARK_VERSION: __version__.encode()}
        self._group_bytes = group_bytes
        self._group: list[pa.RecordBatch] = []
        self._bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        self._group.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= self._group_bytes:
            self._write_group()

    def close(self) -> None:
        """Write the remaining rows, and the footer."""
        if self._group:
            self._write_group()
        self._parquet.add_key_value_metadata(self._footer)
        self._parquet.close()

    def __enter__(self) -> "RowsFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._parquet.close()  # a failed file is closed without a footer, so that it is not taken for complete

    def _write_group(self) -> None:
        group, self._group, self._bytes = self._group, [], 0
        self._parquet.write_table(pa.Table.from_batches(group))
