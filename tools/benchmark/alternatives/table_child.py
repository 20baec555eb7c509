"""Reads a table in the environment of another package, and writes it as Parquet."""

import sys


def main(kind: str, place: str, table: str, file: str) -> None:
    """Write the rows of a table into a file."""
    if kind == "duckdb":
        import duckdb

        with duckdb.connect(place, read_only=True) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            query = f"SELECT * FROM {table} WHERE NOT _cdc_deleted"
            connection.execute(f"COPY ({query}) TO '{file}' (FORMAT parquet)")
        return
    import pyarrow.parquet as pq

    from pgoutput_construct import lake

    pq.write_table(lake.read(place, table), file)


if __name__ == "__main__":
    main(*sys.argv[1:])
