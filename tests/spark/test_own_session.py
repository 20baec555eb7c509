"""Sessions of our own: the settings that count, those of the caller, which stay as they are, and their threads."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.spark import register
from pgoutput_construct.spark._own_session import FIXED, SparkSessions, active_session, own_session
from tools.faults.flipped_settings import FlippedSettings, Setting, SmallLog

pytestmark = pytest.mark.spark

ZONE, SHUFFLED, ENDPOINT = "spark.sql.session.timeZone", "spark.sql.shuffle.partitions", "fs.s3a.endpoint"
ISOLATED = "spark.sql.artifact.isolation.enabled"
MATTERING = (
    Setting("spark.sql.parser.escapedStringLiterals", "true"),
    Setting(ZONE, "Europe/Berlin"),
    Setting("spark.sql.sources.partitionOverwriteMode", "dynamic"),
    Setting("spark.sql.storeAssignmentPolicy", "LEGACY"),
    Setting("spark.sql.timestampType", "TIMESTAMP_NTZ"),
    Setting("spark.sql.parquet.outputTimestampType", "INT96"),
    Setting("spark.sql.caseSensitive", "false"),
    Setting("spark.sql.ansi.enabled", "false"),
)
"""Settings that changed what statements of ours mean in the caller's session."""

LARGE_ROWS = (
    Setting("spark.sql.iceberg.vectorization.enabled", "false"),
    Setting("spark.sql.parquet.columnarReaderBatchSize", "16"),
    Setting("spark.sql.parquet.enableVectorizedReader", "false"),
)
"""Settings with which fewer rows are in memory at a time."""


@pytest.fixture
def theirs(spark: Any) -> Iterator[Any]:
    """A session of a program, with settings and a view."""
    session = spark.newSession()
    for each in (
        *MATTERING,
        Setting(SHUFFLED, "7"),
        Setting(ENDPOINT, "http://host"),
        *LARGE_ROWS,
        Setting("spark.wap.branch", "b"),
    ):
        session.conf.set(*each)
    session.range(1).createOrReplaceTempView("pgoutput_net_changes")
    yield session
    session.catalog.dropTempView("pgoutput_net_changes")


def test_the_settings_of_a_session_of_our_own(theirs: Any) -> None:
    """Resources and stores are the caller's, the others ours or Spark's; the caller's session stays as it is."""
    # As builders set it on a session that runs: ``conf.set`` refuses the settings of executors.
    theirs._jsparkSession.sessionState().conf().setConfString("spark.executor.memory", "3g")
    before, active = theirs.conf.getAll, SparkSession.getActiveSession()
    session = own_session(theirs, "a test")
    with active_session(session):
        found = session.conf.getAll
        assert session.createDataFrame([(1,)], "n int").count() == 1
        assert not session.catalog.tableExists("pgoutput_net_changes")
    assert {name: found[name] for name in FIXED} == FIXED
    assert (found[SHUFFLED], found[ENDPOINT]) == ("7", "http://host")
    assert {each.name: found.get(each.name) for each in LARGE_ROWS} == dict(LARGE_ROWS)
    assert "spark.wap.branch" not in found
    assert not {each.name for each in MATTERING} & (found.keys() - FIXED.keys())
    assert (theirs.conf.getAll, SparkSession.getActiveSession()) == (before, active)


def test_a_thread_without_an_active_session_has_none_afterwards(theirs: Any) -> None:
    """A program's next query there runs in the session that it names, not in ours."""

    def use() -> tuple[Any, Any, Any]:
        before, session = SparkSession.getActiveSession(), own_session(theirs, "a test")
        with active_session(session):
            during = SparkSession.getActiveSession()
        return before, during is session, SparkSession.getActiveSession()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(use).result() == (None, True, None)


def test_threads_have_the_local_properties_of_the_caller(theirs: Any) -> None:
    """A job group that is canceled, and a pool of the scheduler, are those of jobs in other threads, too."""
    context, names = theirs.sparkContext, ("spark.jobGroup.id", "spark.job.description", "spark.scheduler.pool")
    sessions = SparkSessions(theirs, 2, lambda _: None)
    for group in ("one", "two"):  # the threads of the first are not those of the second
        context.setJobGroup(group, f"jobs of {group}")
        context.setLocalProperty("spark.scheduler.pool", "pool")
        done = sessions.run(
            [0, 1, 2], lambda session, _: [session.sparkContext.getLocalProperty(each) for each in names]
        )
        assert [each for _, each in done] == [[group, f"jobs of {group}", "pool"]] * 3
    for name in names:
        context.setLocalProperty(name, None)


def _is_daemon(process: psutil.Process) -> bool:
    with suppress(psutil.Error):  # it has ended meanwhile
        return any("daemon" in part for part in process.cmdline())
    return False


def test_sessions_share_the_daemon_of_python(theirs: Any) -> None:
    """A program that replicates every minute has not another one each time, of 250 MB each."""
    theirs.conf.set(ISOLATED, "true")  # as by default, in sessions of programs

    def use(session: Any) -> int:
        session.range(2).mapInArrow(lambda batches: batches, "id long").count()
        driver = psutil.Process(session._jvm.java.lang.ProcessHandle.current().pid())
        return sum(map(_is_daemon, driver.children()))

    first = use(own_session(theirs, "a test"))
    assert first and use(own_session(theirs, "a test")) <= first  # one may have ended meanwhile
    sessions = SparkSessions(own_session(theirs, "a test"), 2, lambda _: None)
    assert max(int(each) for _, each in sessions.run([0, 1], lambda session, _: use(session))) <= first


def test_register_changes_nothing_else(spark: Any, theirs: Any) -> None:
    """Each session is registered by itself, whichever is active; other sources are read as before."""
    register(spark)
    spark.createDataFrame([(1,)], "n int")  # the active session is this one
    before = theirs.conf.getAll
    register(theirs)
    assert theirs.conf.getAll == before and SparkSession.getActiveSession() is spark


@pytest.mark.server
@pytest.mark.parametrize("into", ["parquet", "delta iceberg"])
@pytest.mark.long
def test_settings_of_the_caller_change_no_rows(lake: Any, server18: EmbeddedServer, tmp_path: Path, into: str) -> None:
    """Settings that change what statements mean change neither tables of any format nor the caller's own reads."""
    flipped = FlippedSettings(lake, SmallLog.recorded(server18, tmp_path), tmp_path, into.split())
    assert not flipped.begin(*MATTERING) and len(flipped.expected) == 6
    assert not flipped.differences(*MATTERING)
