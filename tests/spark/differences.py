"""Tables of a warehouse, in memory, compared with those of a server."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pgoutput_construct import lake
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.spark._replicate import read_current, read_history
from pgoutput_construct.spark._state.equality import codes_of, combined

__all__ = ["difference", "stored_rows"]


def stored_rows(spark: Any, warehouse: Path, table: str, *, history: bool = False) -> pa.Table:
    """Return the rows of a table; Spark, which takes a job for them, reads those that ``lake`` cannot.

    ``test_table_readers`` shows that both read the same.
    """
    try:
        return lake.read(warehouse, table, history=history)
    except PgoutputError as error:
        if "pgoutput_construct.spark.read_" not in str(error):
            raise
    return (read_history if history else read_current)(spark, warehouse, table).toArrow()


def difference(rows: pa.Table, source: pa.Table) -> str | None:
    """Return how rows differ from those of a server, None for not at all: ``spark.compare`` in memory."""
    both = pa.concat_tables([rows, source.select(rows.column_names).cast(rows.schema)]).combine_chunks()
    codes = combined(len(both), (codes_of(_without_maps(each)) for each in both.columns))
    sides = np.bincount(codes[: len(rows)], minlength=len(both)), np.bincount(codes[len(rows) :], minlength=len(both))
    differ = np.flatnonzero(sides[0] != sides[1])
    examples = [f"{'+' if sides[0][each] > sides[1][each] else '-'} {_row(both, codes, each)}" for each in differ[:5]]
    return f"{len(differ)} kinds of rows differ: {examples}" if examples else None


def _row(rows: pa.Table, codes: Any, code: Any) -> Any:
    return rows.slice(int(np.flatnonzero(codes == code)[0]), 1).to_pylist()[0]


def _without_maps(values: pa.ChunkedArray) -> pa.Array:
    """Return values whose maps are texts: the order of entries does not count."""
    if not pa.types.is_map(values.type):
        return pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    return pa.array([each and repr(sorted(each)) for each in values.to_pylist()], pa.string())
