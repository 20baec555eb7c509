"""Datasets of tables that were renamed: moved to their new names, where a format can do that without writing rows.

A move is not one step: the data come to their new location, the note of that location is written, the old note is
removed, and what is left in the old location is cleared. So that it is exact whatever is interrupted, moves are
announced before they begin (``Progress.moving``), and settled before the next batch does anything else:

- If the new location has a note, the data are there: the old note, and what is left, are removed.
- If only the old location has one, the sink says whether the data have moved (a catalog renames a table at once); if
  so, the move is completed, else what was begun is cleared, and the move is planned again. So only a move to a location
  where others have nothing is announced.

The version of a dataset is with its data, and moves with them; the name of its table is what the note says.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

from pyspark.sql import SparkSession

from pgoutput_construct.lake._notes import Dataset, Moving
from pgoutput_construct.spark._log_view.replicated_tables import Table
from pgoutput_construct.spark._replicate.dataset_names import DatasetNames
from pgoutput_construct.spark._replicate.sink import Sink
from pgoutput_construct.spark._replicate.warehouse_reader import copy_missing, forget_missing


class Move(NamedTuple):
    """What is to be moved."""

    dataset: Dataset
    """The dataset as it is."""
    moving: Moving
    """Where it goes."""


def planned_moves(
    tables: Collection[Table], datasets: Collection[Dataset], taken: Collection[str], names: DatasetNames
) -> list[Move]:
    """Return the moves of datasets whose tables have other names now, each to a location that is free by then.

    Tables that exchange their names, or take the one of another, are not among them.

    Args:
        tables: The tables.
        datasets: The latest dataset of each table, and of each history.
        taken: The directories of all datasets.
        names: The names of datasets.
    """
    by_oid = {table.relation_oid: table for table in tables if not table.dropped}
    wanted, found, taken = list[Move](), list[Move](), {*taken}
    for dataset in datasets:
        table = by_oid.get(dataset.version.oid)
        directory = table and names.directory(table, dataset.is_history)
        if table is not None and directory and directory != dataset.directory:
            wanted.append(Move(dataset, Moving(dataset.directory, directory, table.qualified)))
    while free := [move for move in wanted if move.moving.after not in taken]:
        found.append(free[0])
        wanted.remove(free[0])
        taken ^= {free[0].moving.before, free[0].moving.after}
    return found


def complete_move(spark: SparkSession, sink: Sink, move: Move) -> Dataset:
    """Have the note of a dataset follow its data; return the dataset."""
    moved = sink.moved(move.dataset, move.moving.after)
    moved = replace(moved, version=replace(moved.version, table=move.moving.table))
    copy_missing(sink.warehouse, move.dataset, moved)
    sink.warehouse.write_note(moved)
    sink.warehouse.remove_note(move.dataset.directory)
    _clear(spark, sink, move.dataset)
    return moved


def settle_move(spark: SparkSession, sink: Sink, moving: Moving, datasets: Mapping[str, Dataset]) -> dict[str, Dataset]:
    """Complete or undo a move that was interrupted; return the datasets by directory."""
    found, there = dict(datasets), datasets.get(moving.after)
    # A later move may have brought another table into the old location.
    here = datasets.get(moving.before)
    if here is not None and there is not None and here.version.oid != there.version.oid:
        return found
    if there is None and here is not None:
        if not sink.has_moved(spark, here, moving.after):
            _clear(spark, sink, replace(here, directory=moving.after))
            return found
        del found[moving.before]
        return found | {moving.after: complete_move(spark, sink, Move(here, moving))}
    if there is not None:
        sink.warehouse.remove_note(moving.before)
        _clear(spark, sink, replace(there, directory=moving.before))
        found.pop(moving.before, None)
    return found


def _clear(spark: SparkSession, sink: Sink, dataset: Dataset) -> None:
    sink.clear_moved(spark, dataset)
    forget_missing(sink.warehouse, dataset)
