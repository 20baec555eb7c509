"""Tables of a warehouse, read without Spark: into Arrow, and from there into pandas, Polars or DuckDB.

    >>> from pgoutput_construct import lake
    >>> lake.tables("lake")  # doctest: +SKIP
    ['public.orders']
    >>> orders = lake.read("lake", "public.orders")  # doctest: +SKIP

A warehouse is what ``replicate`` writes. Its notes (``_notes``) say which datasets it has, of which tables and up to
where in the log (``_versions``); of Parquet also which directories count (``_parquet_parts``). Spark's rooms write and
read them, too. Tables of Delta Lake and Iceberg are opened by ``deltalake`` and ``pyiceberg``, which have to be
installed for them. Start reading with ``_tables``; what it defines is public.
"""

from pgoutput_construct.extras import needing

with needing("changelog"):
    from pgoutput_construct.lake._tables import (
        Location,
        TableStatus,
        WarehouseStatus,
        locate,
        read,
        read_batches,
        status,
        tables,
    )

__all__ = ["Location", "TableStatus", "WarehouseStatus", "locate", "read", "read_batches", "status", "tables"]
