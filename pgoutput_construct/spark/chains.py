"""Rows whose key changed while values were left out: these values are found by following each row from key to key."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.spark.components import connect
from pgoutput_construct.spark.layout import Layout
from pgoutput_construct.spark.replay import Current, Event, Row, Texts, replayed

__all__ = ["FollowedRows", "followed", "split"]

_SAID: Final = pa.schema([("_open", pa.list_(pa.string())), ("_lost", pa.bool_()), ("_missing", pa.int32())])


def split(touched: DataFrame, layout: Layout) -> tuple[DataFrame, DataFrame]:
    """Take changes (``touching``) apart: those of keys that no chain connects, and the others by ``_component``."""
    chained = F.col("_moved") & ~F.col("_gone") & F.arrays_overlap("_unchanged", F.array(*map(F.lit, layout.unsent)))
    # By hashes: keys that have one in common are replayed together, and nothing is wrong.
    number = F.xxhash64(*layout.key)
    links = touched.where(chained).select(
        F.xxhash64(*(f"_was.{name}" for name in layout.key)).alias("_old"), number.alias("_new")
    )
    labels = connect(links).withColumnsRenamed({"_key": "_named", "_label": "_component"})
    is_of = number == F.col("_named")
    return touched.join(labels, is_of, "left_anti"), touched.join(labels, is_of).drop("_named")


def followed(touched: DataFrame, layout: Layout) -> DataFrame:
    """Return what ``net_of`` does, for changes by ``_component``: they are replayed in their order, one by one."""
    pairs = [layout.place(name) for name in layout.unsent]
    columns = [*layout.key, "_row", "_place", "_at", *pairs, "_was"]
    here = F.struct("_commit_lsn", "_seq")
    events = touched.select(
        *(name for name in columns if name not in ("_place", "_at")),
        here.alias("_place"),
        here.alias("_at"),
        "_component",
        layout.key_texts().alias("_key"),
        F.when(F.col("_moved") & ~F.col("_gone"), layout.key_texts("_was.")).alias("_former"),
        "_gone",
        (F.col("_step") < 1).alias("_needs"),
        "_unchanged",
        F.lit(0).alias("_shape"),
        "_commit_lsn",
        "_seq",
    )
    places = {name: columns.index(pair) for name, pair in zip(layout.unsent, pairs, strict=True)}
    was, at = columns.index("_was"), columns.index("_at")
    # At one place a row takes from the one that it was before that one goes.
    order = ("_commit_lsn", "_seq", "_gone")
    return replayed(events, columns, order, lambda: FollowedRows(places, was, at), _SAID)


@dataclass(slots=True)
class _Known:
    """What is known of the row with a key: it changed, and where the values are that the change did not send."""

    event: int
    gone: bool
    elsewhere: dict[int, int] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    lost: bool = False
    missing: int = 0


class FollowedRows(Current):
    """Rows by their keys, those that are gone too; each with what it has from the row that it was before."""

    def __init__(self, places: Mapping[str, int], was: int, at: int) -> None:
        """Take the places, in what is fetched, of columns that may be left out, the key before, and ``_at``."""
        self._places = places
        self._was = was
        self._at = at
        self._state: dict[Texts, _Known] = {}

    def rows(self) -> Iterable[Row]:
        """Return a row for each key, with what is open of it, whether it is lost, and how often none was there."""
        known = self._state.values()
        return [Row(each.event, each.elsewhere, (each.open, each.lost, each.missing)) for each in known]

    def change(self, number: int, event: Event) -> None:
        """Take in the next event."""
        known = _Known(number, event.gone)
        before = self._state.get(tuple(event.former or event.key))
        for name in () if event.gone else event.unchanged or ():
            if name in self._places:
                self._carry(name, known, before, number)
        self._count(known, self._state.get(tuple(event.key)), event.needs)
        self._state[tuple(event.key)] = known

    def _count(self, known: _Known, here: _Known | None, needs: bool) -> None:
        if here is not None:
            known.missing = here.missing
            known.elsewhere[self._at] = here.elsewhere.get(self._at, here.event)
        if needs and (here is None or here.gone):
            known.missing += 1
            known.elsewhere[self._at] = known.event

    def _carry(self, name: str, known: _Known, before: _Known | None, number: int) -> None:
        place = self._places[name]
        if before is None or before.gone or name in before.open:
            known.open.append(name)
            known.lost |= before is not None and (before.gone or before.lost)
            # The key that the row had in the table before all these changes.
            known.elsewhere[self._was] = number if before is None else before.elsewhere.get(self._was, before.event)
        else:
            known.elsewhere[place] = before.elsewhere.get(place, before.event)
