"""What a batch has to do, and the notes that it is decided by."""

import json
import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_type

import pgoutput_construct as pgo
from pgoutput_construct import lake
from pgoutput_construct.lake._notes import Dataset, Moving, Progress, Unnoted, Warehouse
from pgoutput_construct.lake._versions import Version, VersionShape, is_wider
from pgoutput_construct.spark._replicate.batch_loop import _level_of_caller
from pgoutput_construct.spark._replicate.batch_plan import aside_directory, obsolete_datasets
from pgoutput_construct.spark._replicate.dataset_names import DEFAULT_NAMES
from pgoutput_construct.spark._table_formats.merge_statement import is_widened
from pgoutput_construct.spark.formats import FORMATS, format_settings
from tests.spark.histories import table_of

SHAPE = VersionShape({"id": "int32", "v": "string"}, ("id", "v"), ("id",), "d", None)
VERSION = Version('public."odd é"', 7, 3, 99, (2**33, 4), SHAPE)


def _later(columns: dict[str, str], current: str, copy: int | None = None) -> VersionShape:
    return VersionShape(columns, tuple(current.split()), ("id",), "d", copy)


@pytest.mark.parametrize(
    ("later", "added", "obstacle"),
    [
        (_later({"id": "int32", "v": "string"}, "id v"), (), ""),
        (_later({"id": "int32", "v": "string", "w": "int32"}, "id v w"), ("w",), ""),
        (_later({"id": "int32", "v": "string"}, "id"), (), ""),
        (_later({"id": "int32", "v": "string", "w": "int32"}, "id w"), ("w",), ""),
        (_later({"id": "int64", "v": "string"}, "id v"), (), ""),
        (_later({"id": "string", "v": "string"}, "id v"), (), "the column 'id' is string, and was int32"),
        (_later({"id": "int16", "v": "string"}, "id v"), (), "the column 'id' is int16, and was int32"),
        (_later({"id": "int32", "w": "string"}, "id w"), ("w",), "the column 'v' is not known, and was string"),
        (_later({"id": "int32", "w": "string", "v": "string"}, "id w v"), ("v",), "its columns have another order"),
        (
            _later({"id": "int32", "v": "string", "v_dropped_2": "string"}, "id v"),
            (),
            "the column 'v_dropped_2' is string, and was not known",
        ),
        (_later({"id": "int32", "v": "string"}, "id v", 50), (), "it was copied again"),
    ],
)
def test_what_changes_lead_to(later: VersionShape, added: tuple[str, ...], obstacle: str) -> None:
    """Columns that came, went or are wider; not one that was renamed, made again, or has another type, nor a copy."""
    assert (SHAPE.added_in(later), SHAPE.obstacle_to(later)) == (added, obstacle)


@pytest.mark.parametrize(
    ("former", "kind", "wider"),
    [
        ("int32", "int64", True),
        ("int16", "int64", True),
        ("float", "double", True),
        ("decimal128(5, 2)", "decimal128(9, 2)", True),
        ("int64", "int32", False),
        ("int32", "int32", False),
        ("int32", "double", False),
        ("decimal128(5, 2)", "decimal128(9, 3)", False),
        ("decimal128(5, 2)", "string", False),
        ("decimal128(9, 2)", "decimal128(5, 2)", False),
        ("string", "string", False),
        ("timestamp[us, tz=UTC]", "timestamp[us, tz=UTC]", False),
    ],
)
def test_wider_types(former: str, kind: str, wider: bool) -> None:
    """Those that formats alter a column to; of Spark's types the same are."""
    assert is_wider(kind, former) == wider
    was, now = (from_arrow_type(_arrow(each)) for each in (former, kind))
    assert is_widened(was, now) == wider


def _arrow(kind: str) -> pa.DataType:
    found = re.fullmatch(r"decimal128\((\d+), (\d+)\)", kind)
    if kind.startswith("timestamp"):
        return pa.timestamp("us", "UTC")
    return pa.decimal128(int(found[1]), int(found[2])) if found else pa.type_for_alias(kind)


@pytest.mark.parametrize(("dropped", "left"), [(False, ["public.was"]), (True, ["public.t", "public.was"])])
def test_datasets_of_tables_that_are_gone(dropped: bool, left: list[str]) -> None:
    """One whose name another table has goes, unless that is put in its place; its history stays."""
    table = replace(table_of(full=False), relation_oids=(1, 7, 8), dropped=dropped)
    gone = Dataset("public.t", VERSION), Dataset("public.was", replace(VERSION, oid=8))
    other = Dataset("public.other", replace(VERSION, oid=9))
    history = Dataset("public.was.history", replace(VERSION, oid=8), is_history=True)
    datasets = {each.directory: each for each in (*gone, other, history)}
    found = obsolete_datasets([table], datasets, False, DEFAULT_NAMES)
    assert [each.directory for each in found] == left
    assert not [*obsolete_datasets([table], datasets, True, DEFAULT_NAMES)]


def test_the_copy_of_a_history() -> None:
    """It has two dots, which no table's directory has, and comes first: readers take the later one."""
    history = Dataset("public.t.history", VERSION, is_history=True)
    assert sorted([history.directory, aside_directory(history)]) == ["public.t.aside7.history", "public.t.history"]
    assert aside_directory(replace(history, version=replace(VERSION, oid=8))) != aside_directory(history)


def test_notes(tmp_path: Path) -> None:
    """What is written is read; names may be long and odd; a note that is none says what to do."""
    warehouse = Warehouse(tmp_path / "wh")
    assert warehouse.progress() is None and warehouse.datasets() == {}
    moving, unnoted = Moving("public.a", "public.b", "public.b"), Unnoted("public.c", "public.c", 7, False)
    progress = Progress("parquet", 3, 99, done=False, moving=(moving,), unnoted=(unnoted,))
    warehouse.write_progress(progress)
    assert warehouse.progress() == progress
    earlier = {name: value for name, value in asdict(progress).items() if name not in ("moving", "unnoted")}
    (tmp_path / "wh" / "_warehouse.json").write_text(json.dumps(earlier))
    assert warehouse.progress() == replace(progress, moving=(), unnoted=())
    for directory in ("public.odd%20é", "public." + "é" * 120):
        warehouse.write_note(Dataset(directory, VERSION, {"path": "x"}))
        assert warehouse.dataset(directory) == Dataset(directory, VERSION, {"path": "x"})
    assert len(warehouse.datasets()) == 2
    warehouse.remove_note("public.odd%20é")
    assert warehouse.dataset("public.odd%20é") is None
    (tmp_path / "wh" / "_warehouse.json").write_text("{}")
    with pytest.raises(pgo.PgoutputError, match=r"invalid metadata of a warehouse: .* choose another warehouse"):
        warehouse.progress()


def test_notes_of_a_later_version(tmp_path: Path) -> None:
    """Fields that are not known here do not keep anybody from reading; who writes notes would lose them."""
    warehouse, path = Warehouse(tmp_path / "wh"), tmp_path / "wh" / "_warehouse.json"
    warehouse.write_progress(Progress("parquet", batch=3, applied=99))
    warehouse.write_note(Dataset("public.t", VERSION))
    for note in (path, tmp_path / "wh" / "_datasets" / "public.t.json"):
        note.write_text(json.dumps(json.loads(note.read_text()) | {"later": 1}))
        assert lake.status(tmp_path / "wh").tables == (lake.TableStatus(VERSION.table, False, 99, None),)
    for read in (warehouse.progress, warehouse.datasets):
        with pytest.raises(pgo.PgoutputError, match="later"):
            read()


def test_notes_of_parquet_that_are_damaged(tmp_path: Path) -> None:
    """The file, the table and the field are named, with what to do."""
    warehouse = Warehouse(tmp_path)
    warehouse.write_progress(Progress("parquet"))
    for details, field in (({}, "path"), ({"path": "v1", "changes": 1}, "changes")):
        warehouse.write_note(Dataset("public.t", VERSION, details))
        said = rf"_datasets/public\.t\.json: the note of {VERSION.table} is damaged: details.*{field}.*--resync TABLE"
        with pytest.raises(pgo.PgoutputError, match=said):
            lake.locate(tmp_path, VERSION.table)


def test_versions_in_commits(tmp_path: Path) -> None:
    """They are read back from the metadata of any format, which stay small however many columns there are."""
    warehouse = Warehouse(tmp_path / "wh")
    warehouse.store.prepare()
    wide = replace(VERSION, shape=replace(VERSION.shape, columns={f"c{number}": "text" for number in range(1600)}))
    for version in (VERSION, wide):
        text = warehouse.commit_text(version)
        assert Warehouse(tmp_path / "wh").version_of_commit(text) == version
        assert json.loads(text)["last"] == {"commit_lsn": "2/0", "seq": 4} and len(text) < 300
    (tmp_path / "wh" / "_shapes").rename(tmp_path / "away")
    with pytest.raises(pgo.PgoutputError, match=r"unreadable metadata of a commit: .*: replicate --resync TABLE"):
        warehouse.version_of_commit(warehouse.commit_text(wide))


def test_versions_in_commits_at_the_same_time(tmp_path: Path) -> None:
    """A table and its history have one shape, and tables are written in several threads."""
    for number in range(20):
        warehouse = Warehouse(tmp_path / str(number))
        warehouse.store.prepare()
        both = Barrier(2)

        def text(warehouse: Warehouse = warehouse, both: Barrier = both) -> str:
            both.wait()
            return warehouse.commit_text(VERSION)

        with ThreadPoolExecutor(2) as pool:
            found = [each.result() for each in [pool.submit(text) for _ in range(2)]]
        assert [warehouse.version_of_commit(each) for each in found] == [VERSION] * 2


def test_formats() -> None:
    """A session for several has all their jars; a format that is none is named."""
    found = format_settings(("delta", "iceberg"))
    assert found["spark.jars.packages"].count(":") == 4 and found["spark.sql.extensions"].count(",") == 1
    assert not format_settings(["parquet"]) and not FORMATS["parquet"].jars
    with pytest.raises(pgo.PgoutputError, match="unknown table format 'orc': choose one of parquet, delta, iceberg"):
        format_settings(["orc"])


def test_the_line_of_a_warning() -> None:
    """It is the caller's, however deep in the package the warning is given."""
    inside: dict[str, Any] = {"__name__": "pgoutput_construct.inside", "warn": warnings.warn, "level": _level_of_caller}
    exec("def warned(): warn('x', stacklevel=level())\ndef follow(): warned()", inside)
    for function in (inside["warned"], inside["follow"]):
        with pytest.warns(UserWarning) as caught:
            function()
        assert caught[0].filename == __file__
