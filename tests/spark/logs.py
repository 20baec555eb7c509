"""Change logs for tests: from recordings, and captured from a live server."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

import pgoutput_construct as pgo
from pgoutput_construct.changelog._segment.events import PUBLICATION_FACTS, TABLE_FACTS
from pgoutput_construct.changelog._segment.footer import Position
from pgoutput_construct.changelog._store.store import Address, LogStore
from pgoutput_construct.postgres import LogOptions, LogWriter, capture, current_lsn
from tests.changelog.blocks import block_of
from tests.live.capture import emit_marker
from tests.live.recording import Recording
from tests.publisher.facts import Fact

__all__ = [
    "ORDERS",
    "capturing",
    "log_options",
    "orders_after",
    "write_log",
    "write_orders",
    "write_publication",
    "write_recording",
]

PAUSE = 0.4
"""Seconds in which a capture receives what has been decoded so far."""

ORDERS = pgo.Relation(
    None,
    16385,
    "public",
    "orders",
    "d",
    (pgo.RelationColumn(1, "id", 23, -1), pgo.RelationColumn(0, "total", 1700, (12 << 16 | 2) + 4)),
)
"""A table with a key."""


def log_options(
    proto_version: int = 1, streaming: str = "off", binary: bool = False, two_phase: bool = False
) -> LogOptions:
    """Return the options of a log that no server has written."""
    return LogOptions(
        slot="slot",
        publications=("pub",),
        proto_version=proto_version,
        streaming=streaming,  # type: ignore[arg-type]
        binary=binary,
        two_phase=two_phase,
        server_version=180000,
        system_identifier="1",
        database="test",
    )


def write_log(
    directory: Address | LogStore,
    payloads: Sequence[bytes],
    options: LogOptions,
    rows: int = 100,
    errors: Mapping[int, bytes] = {},
    facts: Iterable[Fact] = (),
) -> None:
    """Write payloads as a log with ``rows`` in a segment, and between them what the catalog said of tables.

    ``errors`` replaces some payloads, after the stream state is known.
    """
    told = deque(facts)
    session = pgo.Session(options.proto_version, options.streaming)
    with LogWriter(directory) as writer:
        writer.use(options)
        for seq, payload in enumerate(payloads):
            while told and told[0].place <= seq:
                fact = told.popleft()
                writer.append_fact(TABLE_FACTS, fact.lsn, **fact.details, since=writer.next_seq, unchanged=-1)
            data = errors.get(seq, payload)
            writer.append(block_of(session, seq, data))
            session.parse(payload)
            if writer.pending >= rows:
                writer.publish(Position())
        writer.publish(Position())


def write_publication(directory: Address | LogStore, operations: Sequence[str], tables: Sequence[int]) -> None:
    """Write what the catalog says of a publication of tables, by OID, as the next row of a log."""
    published = [{"oid": oid, "schema": "public", "name": f"t{oid}", "member": oid} for oid in tables]
    details = {"publication": "pub", "operations": list(operations), "tables": published, "snapshot": [1, 1, []]}
    with LogWriter(directory) as writer:
        writer.use(log_options())
        writer.append_fact(PUBLICATION_FACTS, pgo.Lsn(1), **details, since=0, unchanged=0)
        writer.publish(Position())


def write_orders(directory: Address | LogStore, transactions: Iterable[int]) -> None:
    """Write, or continue, a log of transactions that insert, update and delete orders, and give one another key."""
    payloads = [pgo.build(message) for number in transactions for message in _transaction(number)]
    write_log(directory, payloads, log_options(), rows=20)


def orders_after(transactions: Iterable[int]) -> dict[int, str | None]:
    """Return the totals of the orders that there are after them, by id."""
    rows: dict[int, str | None] = {}
    for message in (each for number in transactions for each in _transaction(number)):
        old, new = getattr(message, "old", None), getattr(message, "new", None)
        if old is not None:
            del rows[int(old[0])]
        if new is not None:
            rows[int(new[0])] = None if new[1] is None else new[1].decode()
    return rows


def _transaction(number: int) -> Iterator[Any]:
    """Yield the messages of a transaction; the second and later ones change rows of the one before."""
    end, first = pgo.Lsn(1000 * (number + 1)), 10 * number
    time, ids = pgo.Timestamp(number * 1_000_000), [b"%d" % (first + each) for each in range(10)]
    yield pgo.Begin(end, time, 700 + number)
    yield ORDERS
    for each in ids:
        yield pgo.Insert(None, ORDERS.relation_oid, (each, b"1.50"))
    yield pgo.Update(None, ORDERS.relation_oid, None, None, (ids[0], b"%d.25" % number))
    yield pgo.Delete(None, ORDERS.relation_oid, "K", (ids[1], None))
    yield pgo.Update(None, ORDERS.relation_oid, "K", (ids[2], None), (b"%d" % (first + 10_002), b"2.50"))
    if number:
        yield pgo.Update(None, ORDERS.relation_oid, None, None, (b"%d" % (first - 7), None))
        yield pgo.Delete(None, ORDERS.relation_oid, "K", (b"%d" % (first - 6), None))
    yield pgo.Commit(end, pgo.Lsn(end + 10), time)


def write_recording(
    directory: Address | LogStore, recording: Recording, rows: int = 100, errors: Mapping[int, bytes] = {}
) -> None:
    """Write a stored recording as a log."""
    mode = recording.mode
    options = log_options(mode.proto_version, mode.streaming, mode.binary, mode.two_phase)
    write_log(directory, recording.payloads, options, rows, errors)


@contextmanager
def capturing(dsn: str, slot: str, publications: Sequence[str], directory: Path) -> Iterator[Callable[[], None]]:
    """Capture while the block runs, and then up to the end of the WAL; yields what lets the capture catch up."""
    done, errors = threading.Event(), list[BaseException]()

    def run(**options: object) -> None:
        try:
            capture(dsn, slot, publications, directory, messages=True, two_phase=True, new_log=True, **options)  # type: ignore[arg-type]
        except BaseException as error:
            errors.append(error)

    def catch_up() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            emit_marker(connection, b"catch up")
        time.sleep(PAUSE)

    thread = threading.Thread(target=run, kwargs={"stop": done.is_set})
    thread.start()
    try:
        yield catch_up
    finally:
        done.set()
        thread.join(300)
    if errors:
        raise errors[0]
    assert not thread.is_alive(), "the capture has not ended"
    with psycopg.connect(dsn, autocommit=True) as connection:
        emit_marker(connection, b"the end")
        end = current_lsn(connection)
    capture(dsn, slot, publications, directory, messages=True, two_phase=True, until_lsn=end)
