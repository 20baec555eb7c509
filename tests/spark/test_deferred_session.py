"""A session that is not opened yet: what it answers, and when it is opened."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

import pgoutput_construct as pgo
from pgoutput_construct.spark._deferred_session import (
    NEEDED_BY,
    DeferredSession,
    has_no_spark,
    is_closed,
    needed_by,
)
from pgoutput_construct.spark._execution import is_alive
from pgoutput_construct.spark._heap import heap_of
from pgoutput_construct.spark._own_session import active_session, own_session, settings_of
from pgoutput_construct.spark._parquet_file import codec_of
from pgoutput_construct.spark.formats import deferred_session


class _Conf:
    def get(self, name: str, *default: str | None) -> str:
        return f"of Spark: {name}"


class _Session:
    """Stands for Spark's: what is asked of it is noted."""

    conf = _Conf()
    version = "4"


def _deferred(settings: dict[str, str] | None = None, **given: Any) -> tuple[DeferredSession, list[str]]:
    opened = list[str]()

    def start() -> SparkSession:
        opened.append(NEEDED_BY.get())
        return cast("SparkSession", _Session())

    return DeferredSession(start, settings or {}, **given), opened


def test_settings() -> None:
    """Those that were given, and Spark's defaults of some, are known; others open it."""
    session, opened = _deferred({"spark.master": "local[2]", "spark.driver.memory": "3g"})
    assert session.conf.get("spark.master") == "local[2]"
    assert codec_of(cast("SparkSession", session)) == "snappy"
    assert session.conf.get("spark.sql.extensions", "") == ""
    assert session.conf.get("spark.databricks.other", None) is None
    heap = heap_of(cast("SparkSession", session))
    assert heap is not None and heap.bytes == 3 << 30
    assert settings_of(cast("SparkSession", session))["spark.master"] == "local[2]"
    assert is_closed(session) and not opened
    assert session.conf.get("spark.sql.shuffle.partitions", "4") == "of Spark: spark.sql.shuffle.partitions"
    assert not is_closed(session) and session.conf.get("spark.master") == "of Spark: spark.master"


def test_it_is_opened_once() -> None:
    """By the first of several threads that need it, for what that one does."""
    session, opened = _deferred()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: session.version, range(32))) == ["4"] * 32
    assert len(opened) == 1


def test_what_it_is_for() -> None:
    """Is known where it is opened."""
    session, opened = _deferred()
    with needed_by("public.t"):
        session.opened()
    assert opened == ["public.t"] and NEEDED_BY.get() == ""


def test_a_start_that_fails() -> None:
    """Is not repeated, and means that Spark has ended; an error of this package is another matter."""

    def fail() -> SparkSession:
        raise RuntimeError(f"number {next(numbers)}")

    numbers = iter(range(9))
    session = DeferredSession(fail, {})
    child = DeferredSession(lambda: cast("SparkSession", session.opened()), {}, session)
    assert is_alive(child)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="number 0"):
            child.opened()
    assert not is_alive(child) and not is_alive(session)

    def refuse() -> SparkSession:
        raise pgo.PgoutputError("no Java")

    without = DeferredSession(refuse, {}, can_start=lambda: False)
    with pytest.raises(pgo.PgoutputError):
        without.opened()
    assert is_alive(without) and has_no_spark(without) and not has_no_spark(session)


def test_the_active_session() -> None:
    """Is activated in the thread of the block once that uses it, and not in others."""
    session, _ = _deferred()
    seen = list[str]()
    with session.activated(lambda _: seen.append(threading.current_thread().name), lambda _: seen.append("end")):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(session.opened).result()
        assert not seen
        session.opened()
        session.opened()
        assert seen == [threading.current_thread().name]
    assert seen[-1] == "end"
    with session.activated(seen.append, seen.append):
        pass
    assert len(seen) == 2


def test_an_own_session_of_it() -> None:
    """Is deferred, too, with our settings."""
    session, opened = _deferred({"spark.master": "local[2]", "spark.sql.session.timeZone": "Asia/Kolkata"})
    own = own_session(cast("SparkSession", session), "replicate")
    with active_session(own):
        assert own.conf.get("spark.sql.session.timeZone") == "UTC"
    assert is_closed(own) and not opened


def test_a_thread_of_its_own() -> None:
    """Spark starts in another thread than the one that needs it, for what that one does."""
    seen = list[tuple[str, str]]()

    def start() -> SparkSession:
        seen.append((threading.current_thread().name, NEEDED_BY.get()))
        return cast("SparkSession", _Session())

    with needed_by("public.t"):
        DeferredSession(start, {}).opened()
    assert seen == [("start of Spark", "public.t")]


def test_cancelling() -> None:
    """Waiting for the start of Spark, and any later use, raises an error."""
    begun, released = threading.Event(), threading.Event()

    def start() -> SparkSession:
        begun.set()
        released.wait(300)
        return cast("SparkSession", _Session())

    session = DeferredSession(start, {})
    child = DeferredSession(session.opened, {}, session)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(child.opened)
        assert begun.wait(300)
        child.cancel()
        for each in (waiting.result, child.opened, session.opened):
            with pytest.raises(pgo.PgoutputError, match="it was interrupted"):
                each()
    released.set()


@pytest.mark.parametrize("name", ["SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR"])
def test_settings_from_elsewhere(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Where Spark has settings that are not known here, it is started at once."""
    (tmp_path / "spark-defaults.conf").touch()
    monkeypatch.setattr(SparkSession, "_instantiatedSession", None)
    monkeypatch.setattr("pgoutput_construct.spark.formats.has_java", lambda: False)
    assert is_closed(deferred_session(lambda _: None, "local[2]"))
    monkeypatch.setenv(name, str(tmp_path) if name == "SPARK_CONF_DIR" else "-Dspark.sql.ansi.enabled=false")
    cause = str(tmp_path / "spark-defaults.conf") if name == "SPARK_CONF_DIR" else name
    with pytest.raises(pgo.PgoutputError, match=rf"what .*{cause[-20:]} sets needs Spark\."):
        deferred_session(lambda _: None, "local[2]")
