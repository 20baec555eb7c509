"""Tables that were copied into the log: their rows, and the state that follows from them."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog import Block, LogWriter, Position
from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._facts.visibility import Snapshot, Visibility
from pgoutput_construct.changelog._segment.events import COPIED_TABLE
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog.compact import CompactionLimits, compact
from pgoutput_construct.changelog.prune import prune
from pgoutput_construct.spark import OpenLog, open_log, read_current, read_table, replicate, write_tables
from tests.changelog.blocks import block_of
from tests.spark.logs import log_options
from tests.spark.test_phases import delete, insert, relation, rows, update

pytestmark = pytest.mark.spark

OPTIONS = log_options()
DESCRIBED = relation(["id"], columns="id code")


class Log:
    """A log that is written piece by piece."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._writer = LogWriter(LocalStore(directory, durable=False))
        self._writer.use(OPTIONS)
        self._session = pgo.Session(OPTIONS.proto_version)
        self._lsn = 100
        self._chunk = 0
        self._commits = list[tuple[int, int]]()

    def transaction(self, xid: int, *changes: bytes) -> None:
        """A transaction commits."""
        self._lsn += 10
        self._commits.append((self._lsn, xid))
        lsn, time = pgo.Lsn(self._lsn), pgo.Timestamp(self._lsn)
        for payload in (
            pgo.build(pgo.Begin(lsn, time, xid)),
            *changes,
            pgo.build(pgo.Commit(lsn, pgo.Lsn(lsn + 1), time)),
        ):
            self._writer.append(block_of(self._session, self._writer.next_seq, payload))
            self._session.parse(payload)

    def copied(
        self,
        snapshot: tuple[int, int, tuple[int, ...]],
        chunks: Iterable[Sequence[bytes]],
        described: bytes = DESCRIBED,
        complete: bool = True,
        oid: int = 1,
        at: int | None = None,
        visibility: Visibility | None = None,
    ) -> None:
        """A table is copied, each chunk with these rows; by default under a snapshot of now."""
        lsn = self._lsn if at is None else at
        first, count = self._chunk, 0
        for inserts in chunks:
            payloads = pa.array([described, *inserts], pa.binary())
            self._writer.append(Block.copied(payloads, self._chunk, lsn, 60, OPTIONS.layout()))
            self._chunk += 1
            count += len(inserts)
        if complete:
            seen = Snapshot(*snapshot, pgo.Lsn(lsn))
            numbers = first, self._chunk - 1, count
            lsns, xids = np.array(self._commits, np.int64).reshape(-1, 2).T
            contains = visibility or Visibility.of_commits(seen, pgo.Lsn(self._lsn + 1), lsns, xids)
            copy = TableCopy(-1, oid, "public", "t", seen, *numbers, contains)
            self._writer.append_event(COPIED_TABLE, seen.lsn, **copy.said())

    def cut(self) -> None:
        """A segment ends."""
        self._writer.publish(Position(pgo.Lsn(self._lsn + 1)))

    def opened(self, spark: Any) -> OpenLog:
        """Open it."""
        self.cut()
        self._writer.close()
        return open_log(spark, self.directory)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """A log without anything."""
    return Log(tmp_path / "log")


def test_only_changes_that_the_snapshot_did_not_see(spark: Any, log: Log, tmp_path: Path) -> None:
    """By visibility, not by position; a copy that is not complete is nothing; the dataset in Parquet says the same."""
    log.transaction(90, DESCRIBED, insert(b"1", b"seen"), insert(b"2", b"seen"), insert(b"3", b"seen"))
    log.cut()
    log.copied((91, 95, (92,)), [[insert(b"9", b"void")]], complete=False)
    log.transaction(92, update(None, None, b"1", b"not seen"))
    log.transaction(94, delete("K", b"3", None))
    log.copied((91, 95, (92,)), [[insert(b"1", b"copied"), insert(b"2", b"copied")], [insert(b"3", b"copied")]])
    log.transaction(95, update("K", (b"2", None), b"4", b"not seen"))
    opened = log.opened(spark)
    assert rows(opened.state("public.t")) == [("1", "not seen"), ("3", "copied"), ("4", "not seen")]
    written = write_tables(opened, tmp_path / "tables")["public.t"]
    assert (written.snapshot, written.insert, written.update, written.delete) == (3, 3, 2, 1)
    found = read_table(spark, written.path)
    assert rows(opened.state("public.t", found)) == [("1", "not seen"), ("3", "copied"), ("4", "not seen")]
    replicate(spark, log.directory, tmp_path / "lake")
    kept = read_current(spark, tmp_path / "lake", "public.t").drop("_commit_lsn", "_seq")
    assert rows(kept) == [("1", "not seen"), ("3", "copied"), ("4", "not seen")]
    copied = found.where("_op = 'snapshot'").select("_commit_lsn", "_xid", "_commit_time").distinct().collect()
    assert [tuple(row) for row in copied] == [(110 + 20, None, None)]


def test_what_a_copy_says_that_it_contains(spark: Any, log: Log, tmp_path: Path) -> None:
    """Its LSNs decide, though xids come again later: in Spark, in small tables, and for what may be pruned."""
    log.transaction(90, DESCRIBED, insert(b"1", b"seen"))  # at 110
    log.cut()
    log.transaction(91, insert(b"2", b"not seen"))  # at 120
    log.transaction(93, insert(b"3", b"seen"))
    log.transaction(94, insert(b"4", b"not seen"))
    log.transaction(95, insert(b"5", b"not seen"))  # at 150
    seen = Visibility(pgo.Lsn(120), frozenset({93}), pgo.Lsn(150))
    log.copied((91, 94, (91,)), [[insert(b"1", b"a"), insert(b"3", b"a")]], at=115, visibility=seen)
    log.transaction(93, insert(b"6", b"not seen"))
    log.transaction(2, update(None, None, b"1", b"not seen"))
    opened = log.opened(spark)
    expected = [("1", "not seen"), ("2", "not seen"), ("3", "a"), *((number, "not seen") for number in "456")]
    assert rows(opened.state("public.t")) == expected
    replicate(spark, log.directory, tmp_path / "lake")
    kept = read_current(spark, tmp_path / "lake", "public.t").drop("_commit_lsn", "_seq")
    assert rows(kept) == expected
    assert prune(log.directory, pgo.Lsn(2**62)).removed == 1
    assert rows(open_log(spark, log.directory).state("public.t")) == expected


def test_the_latest_copy_counts(spark: Any, log: Log) -> None:
    """A second one supersedes what its snapshot saw, all chunks of the first too, and outlasts compaction."""
    log.copied((90, 90, ()), [[insert(b"1", b"a")], [insert(b"2", b"a")]])
    log.transaction(90, DESCRIBED, insert(b"3", b"a"), pgo.build(pgo.Truncate(None, 0, (1,))), insert(b"4", b"a"))
    log.cut()
    log.copied((91, 91, ()), [[insert(b"4", b"b")], []])
    log.transaction(91, insert(b"5", b"a"))
    log.cut()
    log.transaction(92, insert(b"6", b"a"))
    opened = log.opened(spark)
    expected = [("4", "b"), ("5", "a"), ("6", "a")]
    assert rows(opened.state("public.t")) == expected
    assert compact(log.directory, CompactionLimits(least=2, grace=0)).merged
    opened = open_log(spark, log.directory)
    assert rows(opened.state("public.t")) == expected and opened.table("public.t").rows == 3 + 5


def test_a_truncate_that_counts_takes_copied_rows(spark: Any, log: Log) -> None:
    """One that the snapshot saw does not."""
    truncate = pgo.build(pgo.Truncate(None, 0, (1,)))
    log.transaction(80, DESCRIBED, truncate)
    log.transaction(70, DESCRIBED, truncate)
    log.copied((90, 90, ()), [[insert(b"1", b"a")]])
    log.transaction(91, truncate, insert(b"2", b"b"))
    assert rows(log.opened(spark).state("public.t")) == [("2", "b")]


def test_a_copy_that_the_stream_has_not_come_to(spark: Any, log: Log) -> None:
    """That of a new slot is complete first: what commits before its snapshot is in it."""
    log.copied((90, 90, ()), [[insert(b"1", b"a")]], at=125, visibility=Visibility.at(pgo.Lsn(125)))
    log.transaction(70, DESCRIBED, pgo.build(pgo.Truncate(None, 0, (1,))), insert(b"3", b"seen"))  # at 110
    log.transaction(80, update(None, None, b"1", b"seen"))
    log.transaction(91, insert(b"2", b"b"))  # at 130
    assert rows(log.opened(spark).state("public.t")) == [("1", "a"), ("2", "b")]


def test_tables_that_have_nothing_but_a_copy(spark: Any, log: Log) -> None:
    """They are tables, also without a row."""
    log.copied((90, 90, ()), [[]])
    log.copied(
        (90, 90, ()), [[insert(b"1", oid=2)]], relation(["id"], oid=2, columns="id").replace(b"t\0", b"u\0"), oid=2
    )
    opened = log.opened(spark)
    assert opened.tables == ("public.t", "public.u")
    assert rows(opened.state("public.t")) == [] and opened.changes("public.t").count() == 0
    assert rows(opened.state("public.u")) == [("1",)]


def test_identities_that_changed(spark: Any, log: Log) -> None:
    """What was before the copy asks for no key that its rows do not have; what comes after it is followed."""
    log.transaction(80, relation(["gone"], columns="gone code"), insert(b"1", b"x"))
    log.copied((90, 90, ()), [[insert(b"1", b"a"), insert(b"2", b"b")]])
    log.transaction(90, DESCRIBED, update("K", (b"1", None), b"3", b"a"))
    log.transaction(91, relation(["id", "code"], "f", columns="id code"), delete("O", b"2", b"b"))
    log.transaction(92, relation(["code"], "i", columns="id code"), update(None, None, b"4", b"a"))
    assert rows(log.opened(spark).state("public.t"))[0][:2] == ("4", "a")


@pytest.mark.parametrize("epoch", [0, 3])
def test_xids_that_wrap_around(spark: Any, log: Log, epoch: int) -> None:
    """Before and after the end of an epoch; and a log that is longer than half of one."""
    last = 2**32 * (epoch + 1)
    log.transaction(2**31 - 100, DESCRIBED, insert(b"1", b"seen"))
    log.transaction(2**32 - 200, insert(b"2", b"seen"))
    log.transaction(2**32 - 10, insert(b"3", b"not seen"))
    log.transaction(4, insert(b"4", b"seen"))
    seen = Visibility(pgo.Lsn(130), frozenset({4}), pgo.Lsn(141))
    log.copied((last - 10, last + 5, (last - 10, last + 3)), [[insert(b"1", b"a")]], visibility=seen)
    log.transaction(3, insert(b"5", b"not seen"))
    log.transaction(2**31 - 200, insert(b"6", b"not seen"))
    log.transaction(2**32 - 300, insert(b"7", b"not seen"))
    log.transaction(2**30, insert(b"8", b"not seen"))
    found = rows(log.opened(spark).state("public.t"))
    assert found == [("1", "a"), *((number, "not seen") for number in "35678")]


def test_prune_keeps_what_a_state_is_built_from(spark: Any, log: Log) -> None:
    """The latest copy, and what its snapshot did not see though it came before; unless that is given up."""
    log.transaction(80, DESCRIBED, insert(b"1", b"old"))
    log.cut()
    log.copied((90, 90, ()), [[insert(b"1", b"first")]])
    log.cut()
    log.transaction(90, insert(b"2", b"seen"))
    log.cut()
    log.transaction(99, insert(b"3", b"not seen"))
    log.cut()
    log.copied((95, 95, ()), [[insert(b"1", b"a"), insert(b"2", b"a")]], at=115)
    log.transaction(100, insert(b"4", b"not seen"))
    before = rows(log.opened(spark).state("public.t"))
    planned = prune(log.directory, pgo.Lsn(2**62), dry_run=True)
    assert "the state of public.t needs its latest copy" in planned.holds[0]
    done = prune(log.directory, pgo.Lsn(2**62))
    assert done.removed == 2 and rows(open_log(spark, log.directory).state("public.t")) == before
    assert before == [("1", "a"), ("2", "a"), ("3", "not seen"), ("4", "not seen")]
    assert prune(log.directory, pgo.Lsn(2**62), states=False).removed
    with pytest.raises(pgo.ChangeLogError, match=r"no table|were pruned"):
        open_log(spark, log.directory).state("public.t")
