"""Rows of one table: payloads in, an Arrow table of typed columns out."""

from typing import Any

import numpy as np
import pyarrow as pa

from pgoutput_construct.columnar.decode_plan import DecodePlan
from pgoutput_construct.columnar.index import index_batch
from pgoutput_construct.columnar.row_schema import Payloads, States, check_names
from pgoutput_construct.columnar.table import table_rows
from pgoutput_construct.columnar.threads import checked_threads
from pgoutput_construct.stream.relations import Description


def decode_rows(
    payloads: Payloads,
    in_stream: States,
    description: Description,
    columns: pa.Schema,
    *,
    threads: int = 1,
    **options: Any,
) -> pa.Table:
    """Index payloads, and decode them into a table of ``rows_schema(columns)``, one chunk a block: see ``table_rows``.

    ``options`` are those of ``index_batch``. Raises RowError for the first payload that is no such message or does
    not fit the description, ProtocolError for columns whose names cannot stand beside each other (check_names), and
    PgoutputError for arguments that are none.
    """
    check_names(columns)
    index, reading, batches = index_batch(payloads, in_stream, **options), DecodePlan(description, columns), []
    for block in table_rows(index, np.arange(len(index)), reading, checked_threads(threads)):
        if block.errors:
            raise block.errors[0]
        batches.append(block.batch)
    return pa.Table.from_batches(batches, schema=reading.schema)
