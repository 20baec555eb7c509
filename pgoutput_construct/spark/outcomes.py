"""What is read from the intervals of a replay in Spark: rows that are left, changes without a row, net changes."""

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it
from pyspark.sql import types as T  # noqa: N812

from pgoutput_construct.changelog._segment.block import Numbers
from pgoutput_construct.spark.change_frames import BEFORE, COMPONENT, EPOCH, NEW, PLACE, Survey, column
from pgoutput_construct.spark.changed import Replay, Replayed
from pgoutput_construct.spark.execution import Demand
from pgoutput_construct.spark.layout import Layout
from pgoutput_construct.spark.partitions import events_of, labels_of, netted, replayed

__all__ = ["followed", "remaining", "unfound"]

_UNTYPED = T.StructField("_untyped", T.MapType(T.StringType(), T.StringType()))
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
        _check(done, demand, is_end)
        found = done.rows(done.open if is_end else done.open[:0], names)
        places = {name: done.taken(name, done.open if is_end else done.open[:0]) for name in PLACE}
        return pa.table({name: (found | places)[name] for name in chosen})

    rows = replayed(events, replay, emit, T.StructType([events.schema[name] for name in chosen]))
    if left is None:
        return rows
    mine = F.map_filter("_untyped", lambda name, _: name.isin(list(names)))
    untyped = F.when(F.size(mine) > 0, mine).alias("_untyped")
    return rows.unionAll(left.select(*map(column, names), untyped, *PLACE))


def _check(done: Replayed, demand: Demand, is_end: bool) -> None:
    """Raise ChangeLogError for what is demanded and is not so."""
    if demand.rows and len(done.missing):
        event = done.missing[:1]
        raise demand.row_error(*_place(done, event), _shown(done.old_rows(event), done.rule.identity))
    for name in done.rule.open_ones if demand.values and is_end else ():
        nobody = done.open[done.sources(name, done.open) < 0][:1]
        if len(nobody):
            key = _shown(done.rows(nobody, done.rule.identity), done.rule.identity)
            raise demand.value_error(*_place(done, nobody), key, name)


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


def followed(
    changes: DataFrame, touched: DataFrame, layout: Layout, replay: Replay, found: Survey
) -> tuple[DataFrame, DataFrame]:
    """Return net changes (``net_of``) of keys that are chained, and of ``touched`` those of other keys.

    A chain is a change of the key that leaves out a value: it is that of the row under the key before.
    """
    labels = labels_of(changes, replay)
    events, _ = events_of(None, changes, replay, found, apart=False, labels=labels)
    chained = events.join(labels.select(F.col("__label").alias(COMPONENT)).distinct(), COMPONENT, "left_semi")
    others = touched.join(labels, F.col(COMPONENT) == F.col("__named"), "left_anti")
    return _net(netted(chained, replay, _net_schema(events, replay)), layout), others


def _net_schema(events: DataFrame, replay: Replay) -> T.StructType:
    kinds = {field.name: field.dataType for field in events.schema}
    before = T.StructType([T.StructField(name, kinds[name]) for name in replay.identity])
    numbers = [T.StructField(name, T.LongType()) for name in PLACE]
    return T.StructType(
        [
            *(T.StructField(name, kinds[name]) for name in replay.columns),
            _UNTYPED,
            T.StructField("_before", before),
            T.StructField("_open", _TEXTS),
            T.StructField("_is", T.BooleanType()),
            T.StructField("_lost", T.BooleanType()),
            T.StructField("_missing", T.IntegerType()),
            *numbers,
        ]
    )


def _net(rows: DataFrame, layout: Layout) -> DataFrame:
    """Return net changes as ``net_of`` does."""
    is_there = F.col("_is")
    pairs = {
        name: F.when(is_there & ~F.array_contains("_open", name), F.struct(*layout.pair_of(name)))
        for name in layout.unsent
    }
    return rows.select(
        *layout.key_of(NEW.value, NEW.text),
        F.when(is_there, layout.row_of()).alias("_row"),
        F.struct(*PLACE).alias("_place"),
        *(pair.alias(layout.place(name)) for name, pair in pairs.items()),
        "_open",
        F.struct(*layout.key_of(BEFORE.value, BEFORE.text)).alias("_was"),
        "_lost",
        "_missing",
    )
