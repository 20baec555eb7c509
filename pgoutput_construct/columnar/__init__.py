"""Batches of payloads as Arrow batches of typed columns. Needs the extra ``columnar``.

numba is imported by what decodes a batch, and only then: those names are looked up when they are asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pgoutput_construct.extras import needing

with needing("columnar"):
    from pgoutput_construct.columnar.row_schema import DecodedBlock, RowError, columns_schema, rows_schema
    from pgoutput_construct.pgtypes.arrow_types import AS_USUAL, UNTYPED, Choices, arrow_type, chosen_types, unify

if TYPE_CHECKING:
    from pgoutput_construct.columnar.batches import BatchDecoder, DecodedBatch, TableRows
    from pgoutput_construct.columnar.decode_plan import DecodePlan
    from pgoutput_construct.columnar.index import BatchIndex, index_batch
    from pgoutput_construct.columnar.table import table_rows

__all__ = [
    "AS_USUAL",
    "UNTYPED",
    "BatchDecoder",
    "BatchIndex",
    "Choices",
    "DecodePlan",
    "DecodedBatch",
    "DecodedBlock",
    "RowError",
    "TableRows",
    "arrow_type",
    "chosen_types",
    "columns_schema",
    "index_batch",
    "rows_schema",
    "table_rows",
    "unify",
]

_LATER = dict.fromkeys(("BatchDecoder", "DecodedBatch", "TableRows"), "batches")
_LATER |= {"BatchIndex": "index", "index_batch": "index", "DecodePlan": "decode_plan", "table_rows": "table"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needing("columnar"):
        module = import_module(f"{__name__}.{_LATER[name]}")
    return getattr(module, name)
