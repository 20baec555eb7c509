"""Changes as Spark's own CHANGES clause and Delta Lake's change data feed have them: one image of a row in each row.

``_change_type`` is ``insert``, ``delete``, ``update_preimage`` or ``update_postimage``; ``_commit_version`` is the LSN
of the commit, ``_commit_timestamp`` its time. Three things the log has that these know nothing of:

- A server sends the old row of an update where its key changed, or with REPLICA IDENTITY FULL: there are preimages of
  these updates alone. Where it sends the key alone, of a delete too, ``_unchanged`` has all other columns: their values
  are unknown.
- A TRUNCATE removes rows that it does not name: it is a row of the type ``truncate``, without values.
- Rows of a table copy are inserts; they have no time.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.changelog._segment.block import Flags, Numbers
from pgoutput_construct.columnar import UNTYPED
from pgoutput_construct.spark._log_view.change_columns import CHANGE, DELETE, INSERT, changes_schema
from pgoutput_construct.spark._source.source_options import SourceOptions
from pgoutput_construct.stream.rows import OPERATIONS, SNAPSHOT
from pgoutput_construct.wire.messages import Update

_RENAMED: Final = {"_op": "_change_type", "_commit_lsn": "_commit_version", "_commit_time": "_commit_timestamp"}
IMAGE: Final = (*(_RENAMED.get(name, name) for name in CHANGE if name != "_before"),)
"""The columns that an image has besides the table's own."""
_UPDATE: Final = OPERATIONS[Update]
_PREIMAGE: Final = "update_preimage"
_POSTIMAGE: Final = "update_postimage"
_BEFORE: Final = "_before"


def images_schema(columns: pa.Schema) -> pa.Schema:
    """Return the schema of a table's images: its columns, then those of ``IMAGE``."""
    fields = (field for field in changes_schema(columns) if field.name != _BEFORE)
    return pa.schema([field.with_name(_RENAMED.get(field.name, field.name)) for field in fields])


class ChangeForm(NamedTuple):
    """How the view ``table`` has changes."""

    has_images: bool
    """Whether each row is an image, instead of a change."""
    added: tuple[str, ...]
    """The columns besides the table's own."""
    schema: Callable[[pa.Schema], pa.Schema]
    """Returns the columns of the view, given those of the table."""


def form_of(options: SourceOptions) -> ChangeForm:
    """Return the form that the option ``changeColumns`` names."""
    if options.changeColumns == "spark":
        return ChangeForm(True, IMAGE, images_schema)
    return ChangeForm(False, CHANGE, changes_schema)


def images_of(changes: pa.RecordBatch, keys: Collection[str], by_key: Flags, schema: pa.Schema) -> pa.RecordBatch:
    """Return the images of changes; the preimage of an update comes before its postimage.

    Args:
        changes: Changes with all columns of ``changes_schema``.
        keys: The columns of the key with which they were described.
        by_key: Whether the old row of each change has the values of these alone.
        schema: The columns to return, some of those of ``images_schema``.
    """
    columns, count = [name for name in changes.schema.names if name not in CHANGE], changes.num_rows
    old = dict(zip(columns, changes.column(_BEFORE).flatten(), strict=True)) if columns else {}
    operations = changes.column("_op")
    has_old = (
        changes.column(_BEFORE).is_valid().to_numpy(zero_copy_only=False) if columns else np.zeros(count, np.bool_)
    )
    is_pair = _flags(pc.equal(operations, _UPDATE)) & has_old
    rows: Numbers = np.repeat(np.arange(count), 1 + is_pair)
    is_preimage = is_pair[rows] & np.append(rows[1:] == rows[:-1], False)
    is_old = is_preimage | (_flags(pc.equal(operations, DELETE)) & has_old)[rows]
    taken = pa.array(rows)
    arrays = {name: _side(changes.column(name), old[name], rows, is_old) for name in columns}
    arrays |= {
        _RENAMED.get(name, name): changes.column(name).take(taken) for name in CHANGE if name in changes.schema.names
    }
    arrays["_change_type"] = _types(operations.take(taken), is_preimage)
    unknown = [name for name in columns if name not in keys]
    arrays["_unchanged"] = _unchanged(arrays["_unchanged"], unknown, is_old, by_key[rows])
    arrays["_untyped"] = _untyped(arrays["_untyped"], is_old)
    return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)


def _flags(array: pa.Array) -> Flags:
    found: Flags = array.to_numpy(zero_copy_only=False)
    return found


def _side(new: pa.Array, old: pa.Array, rows: Numbers, is_old: Flags) -> pa.Array:
    """Return the values of each row: of the old one, or of the new one."""
    if not is_old.any():
        return new.take(pa.array(rows))
    return pa.concat_arrays([new, old]).take(pa.array(rows + np.where(is_old, len(new), 0)))


def _types(operations: pa.Array, is_preimage: Flags) -> pa.Array:
    coded = operations.dictionary_encode()
    names = {SNAPSHOT: INSERT, _UPDATE: _POSTIMAGE}
    types = pa.array([names.get(each, each) for each in coded.dictionary.to_pylist()], pa.string()).take(coded.indices)
    return pc.if_else(pa.array(is_preimage), _PREIMAGE, types)


def _unchanged(sent: pa.Array, unknown: Sequence[str], is_old: Flags, by_key: Flags) -> pa.Array:
    """Return the columns with unknown values: of an old row that is a key all others, of a new one those not sent."""
    if not is_old.any():
        return sent
    lists = pa.concat_arrays([sent, pa.array([[], unknown], sent.type)])
    indexes = np.where(is_old, len(sent) + by_key, np.arange(len(sent)))
    return lists.take(pa.array(indexes))


def _untyped(texts: pa.Array, is_old: Flags) -> pa.Array:
    """Return the texts of one side each: those of old rows have names that begin with ``_before.``."""
    if texts.null_count == len(texts):
        return texts
    start = f"{_BEFORE}."
    found = [
        [(name.removeprefix(start), text) for name, text in row or () if name.startswith(start) == old] or None
        for row, old in zip(texts.to_pylist(), is_old.tolist(), strict=True)
    ]
    return pa.array(found, UNTYPED)
