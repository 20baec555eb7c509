"""Changes of rows that are not there, in tables of a warehouse: an error of the table, or a report beside it."""

from pathlib import Path
from typing import Any

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.spark._replicate import read_current, read_missing, replicate
from tests.spark.test_phases import U, delete, insert, relation, update
from tests.spark.test_whole import ROWS, write
from tests.table_formats import SHORT_IN_PARQUET

pytestmark = pytest.mark.spark

OTHER = [
    pgo.build(pgo.Relation(None, 2, "public", "other", "d", (pgo.RelationColumn(1, "id", 23, -1),))),
    pgo.build(pgo.Truncate(None, 0, (2,))),
]
BAD = [
    update(None, None, b"2", b"x", U),
    delete("K", b"7", None, None),
    update(None, None, b"8", b"y", U),
]


@pytest.mark.parametrize("into", SHORT_IN_PARQUET)
def test_an_error_or_a_report(lake: Any, tmp_path: Path, into: str) -> None:
    """The table stays as it is, and others go on; what is reported is there once, until the table is written anew."""
    log, warehouse = tmp_path / "log", tmp_path / "wh"
    write(log, [[*OTHER, relation(["id"]), *ROWS]])
    replicate(lake, log, warehouse, into)
    write(log, [[*OTHER[:1], insert(b"1", oid=2), relation(["id"]), *BAD]], (), 2)
    with pytest.raises(pgo.ChangeLogError, match=r'public\.t: .*commit 20, seq \d.*"[78]".*all other tables are up to'):
        replicate(lake, log, warehouse, into)
    assert _ids(lake, warehouse, "public.other") == [(1,)]
    assert _ids(lake, warehouse, "public.t") == [("1", "a", "A"), ("2", "b", "B")]
    assert read_missing(lake, warehouse, "public.t").count() == 0
    batch = replicate(lake, log, warehouse, into, on_missing="report")
    assert batch is not None and batch.missing == {"public.t": 2}
    assert _ids(lake, warehouse, "public.t") == [("1", "a", "A"), ("2", "x", "B"), ("8", "y", None)]
    told = read_missing(lake, warehouse, "public.t").orderBy("_seq").collect()
    assert [(row._op, row._row, row._unchanged) for row in told] == [
        ("delete", {"id": "7"}, []),
        ("update", {"id": "8"}, ["big"]),
    ]


def _ids(spark: Any, warehouse: Path, table: str) -> list[tuple[Any, ...]]:
    rows = read_current(spark, warehouse, table).drop("_untyped", "_commit_lsn", "_seq").collect()
    return sorted(map(tuple, rows))
