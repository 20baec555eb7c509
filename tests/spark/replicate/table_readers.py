"""A program for an environment without Spark: it reads a table, and writes the rows as an Arrow file.

``python table_readers.py READER TABLE OUTPUT``: READER is one of ``_READERS``; TABLE the directory of a table of Delta
Lake, or the file of the metadata of one of Iceberg; for those that go by ``pgoutput_construct.lake`` WAREHOUSE:NAME.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa


def main(reader: str, table: str, output: str) -> None:
    """Read one table."""
    found = pa.table(_READERS[reader](table))
    with pa.ipc.new_file(output, found.schema) as writer:
        writer.write_table(found)


def _lake(place: str) -> Any:
    from pgoutput_construct import lake

    return lake.read(*place.rsplit(":", 1))


def _duckdb(place: str) -> Any:
    import duckdb

    from pgoutput_construct import lake

    rows = lake.read_batches(*place.rsplit(":", 1))  # noqa: F841 - the statement names it
    return duckdb.sql("SELECT * FROM rows").to_arrow_table()


def _polars_of_arrow(place: str) -> Any:
    import polars

    return polars.from_arrow(_lake(place)).to_arrow()


def _polars_of_delta(table: str) -> Any:
    import polars

    return polars.read_delta(table).to_arrow()


def _polars_of_iceberg(metadata: str) -> Any:
    import polars

    return polars.scan_iceberg(metadata).collect().to_arrow()


def _deltalake(table: str) -> Any:
    import deltalake

    return deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table)).execute("SELECT * FROM t").read_all()


def _pyiceberg(metadata: str) -> Any:
    from pyiceberg.table import StaticTable

    return StaticTable.from_metadata(metadata).scan().to_arrow()


def _sql_catalog(place: str) -> Any:
    """Read ``DATABASE:NAMESPACE.TABLE`` of a catalog in SQLite, which is called ``shared``."""
    from pyiceberg.catalog.sql import SqlCatalog

    database, name = place.rsplit(":", 1)
    return _of_catalog(SqlCatalog("shared", uri=f"sqlite:///{database}").load_table(name))


def _rest_catalog(place: str) -> Any:
    """Read ``URL:NAMESPACE.TABLE`` of a REST catalog."""
    from pyiceberg.catalog.rest import RestCatalog

    address, name = place.rsplit(":", 1)
    return _of_catalog(RestCatalog("shared", uri=address).load_table(name))


def _of_catalog(table: Any) -> Any:
    print(table.spec(), [each.name for each in table.schema().fields])
    return table.scan().to_arrow()


_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "deltalake": _deltalake,
    "duckdb": _duckdb,
    "lake": _lake,
    "polars": _polars_of_arrow,
    "polars-delta": _polars_of_delta,
    "polars-iceberg": _polars_of_iceberg,
    "pyiceberg": _pyiceberg,
    "rest-catalog": _rest_catalog,
    "sql-catalog": _sql_catalog,
}

if __name__ == "__main__":
    main(*sys.argv[1:])
