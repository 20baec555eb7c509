"""Applies net changes of tables to rows recorded before them, and compares the result."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from pgoutput_construct.spark import OpenLog, Table, net_changes
from pgoutput_construct.wire.protocol import RelationReplicaIdentity
from tools.faults.noted_tables import NotedTable, sent_value, stored_rows

__all__ = ["has_one_key", "net_mismatch"]


def has_one_key(table: Table) -> bool:
    """Return whether all rows of a table were described as having its key of now."""
    keys = {each.key_columns for each in table.identities} | {table.key_columns}
    is_full = any(each.replica_identity == RelationReplicaIdentity.FULL for each in table.identities)
    return len(keys) == 1 and bool(table.key_columns) and not is_full


def net_mismatch(opened: OpenLog, there: NotedTable, noted: NotedTable, seq: int) -> str | None:
    """Apply the net changes of a table with a key since a seq to rows of then; return how the result differs.

    None where there is nothing to compare: the changes begin with a copy, all of whose rows are other ones.
    """
    changes = opened.changes(noted.name, seq)
    if changes.where("_op = 'snapshot'").count():
        return None
    keys, names = opened.table(noted.name).key_columns, list(noted.columns)
    net = net_changes(changes, keys, names).toArrow()
    kinds = [net.schema.field(name).type for name in names]
    by = [names.index(name) for name in keys]
    base = {}
    for row in there.rows:
        values = tuple(sent_value(value, kind) for value, kind in zip(row, kinds, strict=True))
        base[tuple(values[place] for place in by)] = values
    rows = {} if changes.where("_op = 'truncate'").count() else dict(base)
    upserts = []
    old_keys = _old_keys(net, [kinds[place] for place in by])
    for values, op, unsent, old in zip(
        stored_rows(net, names), net["_op"].to_pylist(), net["_unchanged"].to_pylist(), old_keys, strict=True
    ):
        key = tuple(values[place] for place in by)
        rows.pop(key, None)
        if op == "upsert":
            known = base[old] if unsent and old is not None else values
            upserts.append(tuple(known[n] if name in (unsent or ()) else values[n] for n, name in enumerate(names)))
    found = Counter([*rows.values(), *upserts])
    source = Counter(tuple(map(sent_value, row, kinds)) for row in noted.rows)
    return f"{list(found - source)[:2]} instead of {list(source - found)[:2]}" if found != source else ""


def _old_keys(net: pa.Table, kinds: Sequence[pa.DataType]) -> Iterator[tuple[Any, ...] | None]:
    """Yield the keys under which unsent values are to be found, None for none."""
    for key in net["_key"]:
        if not key.is_valid:
            yield None
            continue
        *values, texts = (key[name] for name in key)
        row = pa.table(
            {str(n): pa.array([value.as_py()], kind) for n, (value, kind) in enumerate(zip(values, kinds, strict=True))}
        )
        untyped = [(str(n), text) for n, text in enumerate(texts.as_py() or ()) if text is not None]
        row = row.append_column("_untyped", pa.array([untyped or None], pa.map_(pa.string(), pa.string())))
        yield next(stored_rows(row, row.column_names[:-1]))
