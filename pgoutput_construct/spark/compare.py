"""A rebuilt state against the source, row by row; the source is fetched by psycopg, without our messages."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql
from psycopg.adapt import Transformer
from psycopg.pq import Format
from psycopg.pq.abc import PGresult
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.columnar.values import holds
from pgoutput_construct.postgres.connection import connect
from pgoutput_construct.spark.failures import plain_errors
from pgoutput_construct.spark.schemas import arrow_schema, column

__all__ = ["Comparison", "compare", "fetch_source"]

_EXAMPLES = 5
_TEXT_ARRAY = 1009


@dataclass(frozen=True)
class Comparison:
    """How a rebuilt table and its source differ."""

    rows: int
    """Rows in the source."""
    rebuilt_rows: int
    """Rows in the rebuilt table."""
    missing: int
    """Rows of the source that were not rebuilt (equal rows are counted one by one)."""
    unexpected: int
    """Rebuilt rows that the source does not have."""
    examples: tuple[str, ...]
    """A few of both, each with a ``-`` (missing) or a ``+`` (unexpected) before it."""

    @property
    def equal(self) -> bool:
        """Whether both have the same rows."""
        return not (self.missing or self.unexpected)


def compare(state: DataFrame, dsn: str, namespace: str, name: str) -> Comparison:
    """Compare a rebuilt table (of ``current_state``) with the table in the database, both ways, row by row."""
    state = state.persist()
    try:
        with plain_errors():
            source = fetch_source(state.sparkSession, dsn, namespace, name, state.schema).persist()
            return _compare(_comparable(state), _comparable(source))
    finally:
        state.unpersist()


def fetch_source(spark: SparkSession, dsn: str, namespace: str, name: str, schema: T.StructType) -> DataFrame:
    """Fetch a table through psycopg as a DataFrame of ``schema`` (a state's: columns, and ``_untyped``).

    The server sends every value as its type's text; psycopg loads those whose column is not string here. The rows
    pass through this process.
    """
    kinds = arrow_schema(schema)
    names = [field for field in kinds.names if field != "_untyped"]
    columns = sql.SQL(", ").join(map(sql.Identifier, names))
    query = sql.SQL("SELECT {} FROM {}").format(columns, sql.Identifier(namespace or "pg_catalog", name))
    with connect(dsn, replication=False) as connection:
        result = connection.execute(query).pgresult
        assert result is not None
        rows = list(_rows(result, names, kinds))
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=kinds), schema)


def _rows(result: PGresult, names: list[str], kinds: pa.Schema) -> Iterator[dict[str, Any]]:
    loaders = [_loader(kinds.field(name).type, result.ftype(index)) for index, name in enumerate(names)]
    for number in range(result.ntuples):
        row: dict[str, Any] = {}
        untyped: dict[str, str] = {}
        for index, (name, load) in enumerate(zip(names, loaders, strict=True)):
            data = result.get_value(number, index)
            row[name] = None if data is None else _load(load, data)
            if data is not None and (row[name] is None or not holds(row[name], kinds.field(name).type)):
                row[name], untyped[name] = None, data.decode()
        yield {**row, "_untyped": untyped or None}


def _loader(kind: pa.DataType, oid: int) -> Callable[[bytes], Any]:
    if pa.types.is_string(kind):
        return bytes.decode
    texts = pa.types.is_list(kind) and pa.types.is_string(kind.value_type)
    load: Callable[[bytes], Any] = Transformer().get_loader(_TEXT_ARRAY if texts else oid, Format.TEXT).load
    return load


def _load(load: Callable[[bytes], Any], data: bytes) -> Any:
    if data.startswith(b"["):  # an array with bounds of its own, which psycopg would drop
        return load(data) if load is bytes.decode else None
    try:
        return load(data)
    except (psycopg.DataError, ArithmeticError, ValueError):
        return None


def _comparable(rows: DataFrame) -> DataFrame:
    # Spark compares no maps.
    entries = F.array_sort(F.map_entries("_untyped")).alias("_untyped")
    return rows.select(*(column(name) for name in rows.columns if name != "_untyped"), entries)


def _compare(state: DataFrame, source: DataFrame) -> Comparison:
    missing, unexpected = source.exceptAll(state).persist(), state.exceptAll(source).persist()
    examples = [f"- {row.asDict()}" for row in missing.take(_EXAMPLES)]
    examples += [f"+ {row.asDict()}" for row in unexpected.take(_EXAMPLES)]
    comparison = Comparison(source.count(), state.count(), missing.count(), unexpected.count(), tuple(examples))
    for frame in (missing, unexpected):
        frame.unpersist()
    return comparison
