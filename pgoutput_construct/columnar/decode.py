"""Rows of one table: payloads in, Arrow batches of typed columns out."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from pgoutput_construct.columnar.index import index_batch
from pgoutput_construct.columnar.rows import Decoded, Payloads, Streams, check_names, rows_schema
from pgoutput_construct.columnar.table import table_rows
from pgoutput_construct.stream.timeline import Description

__all__ = ["decode_blocks", "decode_rows"]


def decode_blocks(
    payloads: Payloads,
    in_stream: Streams,
    description: Description,
    columns: pa.Schema,
    *,
    proto_version: int,
    streaming: str,
    threads: int = 1,
) -> Iterator[Decoded]:
    """Index payloads (one entry a row), and yield their rows in blocks: see ``table_rows``.

    Raises ProtocolError for columns whose names cannot stand beside each other (check_names).
    """
    check_names(columns)
    index = index_batch(payloads, in_stream, proto_version=proto_version, streaming=streaming)
    yield from table_rows(index, np.arange(len(index)), description, columns, rows_schema(columns), threads)


def decode_rows(
    payloads: Payloads, in_stream: Streams, description: Description, columns: pa.Schema, **options: Any
) -> pa.Table:
    """Decode the rows of one table into a table of ``rows_schema(columns)``, one chunk a block.

    ``options`` are those of ``decode_blocks``. Raises RowError for the first payload that is no such message or does
    not fit the description.
    """
    batches = []
    for block in decode_blocks(payloads, in_stream, description, columns, **options):
        if block.errors:
            raise block.errors[0]
        batches.append(block.batch)
    return pa.Table.from_batches(batches, schema=rows_schema(columns))
