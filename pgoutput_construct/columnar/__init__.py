"""Batches of payloads to Arrow record batches with typed columns. Needs the extra ``columnar``.

A batch of payloads comes in: a binary array, or bytes. One walk over it, by a generated kernel, makes a BatchIndex:
which message each payload is, whether it is valid, its relation OID and xid, and the offsets of its tuples. From the
index come Arrow batches: the header fields of all messages, or the rows of one table under one Relation. The room knows
no Spark.

    payloads -> index_batch -> BatchIndex -> table_rows(DecodePlan) -> DecodedBlock, block by block

- ``batches``: BatchDecoder: all of this for the payloads of one connection; start reading here
- ``scopes``, ``descriptions``: the stream state of each payload; the Relation of each row
- ``index``: BatchIndex: the one walk, and access by payload
- ``decode_plan``: for one Relation: which kernel or reader decodes each column
- ``table``: blocks of rows; their new and their old tuples
- ``kernels``, ``frame_kernels``: generated: the walks over messages and over frames
- ``column_masks``: what replaces values before they are stored
- ``envelope``, ``copy_format``: frames of a connection, and rows of COPY, to payloads
- ``batch_arrays``, ``header_columns``, ``row_schema``, ``threads``, ``row_checksums``: what these share

Invariants:

- Payloads are not copied. Values are copied once, into Arrow's buffers.
- A kernel accepts a payload exactly if ``wire.parse`` does. What it rejects is an error of its row, explained by the
  construct definitions on demand; it stops nothing.
- No length or count from the wire is used before it was compared with the bytes that are left; that is the memory
  safety of the kernels, which read without bounds checks (``compiled.jit``).
- An optimised path may leave a value to ``pgtypes.column_reader``, but never decodes it differently.
- The result does not depend on the number of threads, nor on how payloads are divided into batches.

Public: the names below. numba is imported on first use of a name that needs it.
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


def __dir__() -> list[str]:
    """Return what is public, also what was not imported yet."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
