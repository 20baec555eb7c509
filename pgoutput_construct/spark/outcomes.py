"""What is read from the intervals of a replay in Spark: rows that are left, changes without a row."""

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.spark.change_frames import EPOCH, PLACE, Survey, column
from pgoutput_construct.spark.changed import Replay, Replayed
from pgoutput_construct.spark.execution import Demand
from pgoutput_construct.spark.partitions import events_of, replayed

__all__ = ["remaining", "unfound"]

_TEXTS = T.ArrayType(T.StringType())


def remaining(
    before: DataFrame | None,
    changes: DataFrame,
    replay: Replay,
    found: Survey,
    names: Sequence[str],
    demand: Demand,
    apart: bool,
) -> DataFrame:
    """Return the rows after changes: ``names``, ``_untyped``, ``_commit_lsn`` and ``_seq``; both have ``__shape``.

    With ``apart`` rows before that nothing touches are left where they are. What is demanded and is not so makes an
    action fail.
    """
    events, left = events_of(before, changes, replay, found, apart)
    # What full rows are replayed by is in their columns.
    events = events.drop("_commit_time", EPOCH, *(["_unchanged"] if replay.keys is None else []))
    chosen = [*names, "_untyped", *PLACE]

    def emit(done: Replayed, is_end: bool) -> pa.Table:
        _check(done, demand)
        found = done.rows(done.open if is_end else done.open[:0], names)
        places = {name: done.taken(name, done.open if is_end else done.open[:0]) for name in PLACE}
        return pa.table({name: (found | places)[name] for name in chosen})

    rows = replayed(events, replay, emit, T.StructType([events.schema[name] for name in chosen]))
    if left is None:
        return rows
    mine = F.map_filter("_untyped", lambda name, _: name.isin(list(names)))
    untyped = F.when(F.size(mine) > 0, mine).alias("_untyped")
    return rows.unionAll(left.select(*map(column, names), untyped, *PLACE))


def _check(done: Replayed, demand: Demand) -> None:
    """Raise ChangeLogError for what is demanded and is not so."""
    if demand.rows and len(done.missing):
        event = done.missing[:1]
        raise demand.row_error(*_place(done, event), _shown(done.old_rows(event), done.rule.identity))


def _place(done: Replayed, event: Numbers) -> tuple[int, int]:
    lsn, seq = (done.taken(name, event)[0].as_py() for name in PLACE)
    return lsn, seq


def _shown(row: Mapping[str, pa.Array], names: Sequence[str]) -> str:
    texts = dict(row["_untyped"][0].as_py() or ())
    values = {name: texts.get(name, row[name][0].as_py()) for name in names}
    known = {name: value for name, value in values.items() if value is not None}
    return json.dumps(known, default=str, ensure_ascii=False, separators=(",", ":"))  # as Spark's to_json writes it


def unfound(before: DataFrame | None, changes: DataFrame, replay: Replay, found: Survey) -> DataFrame:
    """Return the updates and deletes whose rows are not there: ``_commit_lsn, _seq, _op, _row, _unchanged``.

    ``_row`` is the key, or the row, that was to be found: texts by column.
    """
    events, _ = events_of(before, changes, replay, found, apart=True)
    kept, names = (*PLACE, "_op", "_unchanged"), [*replay.identity, "_untyped"]

    def emit(done: Replayed, is_end: bool) -> pa.Table:
        old = done.old_rows(done.missing)
        arrays = [*(done.taken(name, done.missing) for name in kept), *(old[name] for name in names)]
        return pa.Table.from_arrays(arrays, [*kept, *(f"c{number}" for number in range(len(names)))])

    fields = [T.StructField(f"c{number}", events.schema[name].dataType) for number, name in enumerate(names)]
    rows = replayed(events, replay, emit, T.StructType([*(events.schema[name] for name in kept), *fields]))
    texts, parts = F.col(f"c{len(replay.identity)}"), list[Column]()
    for number, name in enumerate(replay.identity):
        value, kind = F.col(f"c{number}"), events.schema[name].dataType
        text = F.hex(value) if isinstance(kind, T.BinaryType) else value.cast("string")
        parts += [F.lit(name), F.coalesce(texts[F.lit(name)], text)]
    row = F.create_map(*parts).cast("map<string,string>").alias("_row")
    open_ones = F.array(*map(F.lit, replay.open_ones)).cast(_TEXTS)
    unchanged = F.coalesce(F.array_intersect("_unchanged", open_ones), F.array().cast(_TEXTS))
    return rows.select(*PLACE, "_op", row, unchanged.alias("_unchanged"))
