"""Batches of payloads as Arrow batches of typed columns. Needs the extra ``columnar``, and psycopg for values."""

from pgoutput_construct.columnar.decode import RowError, columns_schema, decode_rows, rows_schema
from pgoutput_construct.columnar.types import UNTYPED, arrow_type, unify

__all__ = [
    "UNTYPED",
    "RowError",
    "arrow_type",
    "columns_schema",
    "decode_rows",
    "rows_schema",
    "unify",
]
