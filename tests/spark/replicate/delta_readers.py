"""A program for an environment without Spark: it reads tables of Delta Lake, and writes the rows as Arrow files.

``python delta_readers.py deltalake TABLE OUTPUT``; ``polars`` instead of ``deltalake`` reads with that.
"""

import sys
from typing import Any

import pyarrow as pa


def main(reader: str, table: str, output: str) -> None:
    """Read one table."""
    found = _rows(reader, table)
    with pa.ipc.new_file(output, found.schema) as writer:
        writer.write_table(found)


def _rows(reader: str, table: str) -> Any:
    if reader == "polars":
        import polars

        return polars.read_delta(table).to_arrow()
    import deltalake

    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table))
    return pa.table(query.execute("SELECT * FROM t").read_all())


if __name__ == "__main__":
    main(*sys.argv[1:])
