"""The live client on live servers: nothing is lost, nothing comes twice, whatever ends the connection."""

import asyncio
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import CommittedChange, TransactionStream, stream
from tests.postgres.shop import PUBLICATION, Shop, wait_until

pytestmark = pytest.mark.server


@pytest.fixture
def shop(server: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A database of its own, whose slot has no two phases."""
    with Shop.create(server, "client", tmp_path, two_phase=False) as shop:
        yield shop


def _stream(shop: Shop, **options: Any) -> TransactionStream[Any]:
    return stream(shop.dsn, shop.slot, [PUBLICATION], **options)


def test_changes(shop: Shop) -> None:
    """Every operation, as Python values, at its transaction's LSN and time."""
    shop.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v numeric, big text)", "ALTER TABLE t ALTER big SET STORAGE EXTERNAL"
    )
    with _stream(shop) as transactions, shop.connect() as connection:
        connection.execute("INSERT INTO t VALUES (1, 1.50, repeat('x', 3000))")
        with connection.transaction():
            connection.execute("UPDATE t SET v = 2 WHERE id = 1")
            connection.execute("UPDATE t SET id = 2 WHERE id = 1")
            connection.execute("DELETE FROM t WHERE id = 2")
        connection.execute("TRUNCATE t")
        first = next(transactions)
        with pytest.raises(ValueError, match="has changes that were not read yet"):
            transactions.confirm(first)
        assert [change[:5] for change in first] == [
            ("public.t", "insert", {"id": 1, "v": Decimal("1.50"), "big": "x" * 3000}, None, ())
        ]
        second = next(transactions)
        found = list(second)
        assert [change[:5] for change in found] == [
            ("public.t", "update", {"id": 1, "v": Decimal(2)}, None, ("big",)),
            ("public.t", "update", {"id": 2, "v": Decimal(2)}, {"id": 1}, ("big",)),
            ("public.t", "delete", None, {"id": 2}, ()),
        ]
        assert first.commit_lsn < found[0].lsn < second.commit_lsn < (second.end_lsn or 0)
        assert first.xid < second.xid and 0 <= second.commit_time - first.commit_time < 60_000_000
        assert [change[:2] for change in next(transactions)] == [("public.t", "truncate")]
        transactions.confirm()
    with _stream(shop, temporary=False) as transactions:
        shop.execute("INSERT INTO t VALUES (7)")
        assert [change.new for change in next(transactions)] == [{"id": 7, "v": None, "big": None}]


def test_what_is_not_confirmed_comes_again(shop: Shop) -> None:
    """To the next stream; also what was skipped."""
    shop.execute(*(f"INSERT INTO item VALUES ({number})" for number in range(3)))
    with _stream(shop) as transactions:
        assert _ids(next(transactions)) == [0]
        transactions.confirm()
        next(transactions)  # and none of its changes
        assert _ids(next(transactions)) == [2]
    with _stream(shop, messages=True) as transactions:
        messages = [[m for m in next(transactions) if isinstance(m, pgo.Insert)] for _ in range(2)]
        assert [[each.new[0] for each in some] for some in messages] == [[b"1"], [b"2"]]
    with _stream(shop, values="raw", binary=True) as transactions:
        assert next(iter(next(transactions))).new == {"id": pgo.Binary(bytes(7) + b"\1"), "name": None}


def _ids(changes: Any) -> list[Any]:
    return [change.new["id"] for change in changes]


def test_connections_that_are_lost(shop: Shop) -> None:
    """In the middle of a transaction and between two: the caller notices nothing."""
    shop.execute("INSERT INTO item SELECT generate_series(1, 8000)", "INSERT INTO item VALUES (0)")
    found: list[int] = []
    with _stream(shop) as transactions:
        for change in next(transactions):
            found.append(change.new["id"])
            if len(found) in {10, 11, 4000}:
                _cut(shop)
        assert found == list(range(1, 8001))
        _cut(shop)
        assert _ids(next(transactions)) == [0]
        transactions.confirm()
        _cut(shop)
        shop.execute("INSERT INTO item VALUES (-1)")
        assert _ids(next(transactions)) == [-1]


def test_messages_over_a_lost_connection(shop: Shop) -> None:
    """The next one sends descriptions again, which the caller has; no row comes twice, and none is left out."""
    shop.execute("INSERT INTO item SELECT generate_series(1, 3)", "INSERT INTO item SELECT generate_series(4, 900)")
    found: list[int] = []
    with _stream(shop, messages=True) as transactions:
        for _ in range(2):
            for message in next(transactions):
                if isinstance(message, pgo.Insert):
                    found.append(int(str(bytes(message.new[0] or b""), "ascii")))  # type: ignore[arg-type]
                    if len(found) in {2, 5, 6, 500}:
                        _cut(shop)
    assert found == list(range(1, 901))


@pytest.mark.parametrize("how", ["created again", "moved"])
def test_a_slot_that_somebody_else_moves(shop: Shop, how: str) -> None:
    """While there is no connection: what is not sent any more is an error, and none of it is skipped silently."""
    with _stream(shop, create_slot=True, status_interval=0.1) as transactions:
        shop.execute("INSERT INTO item VALUES (1)")
        assert _ids(next(transactions)) == [1]
        transactions.confirm()
        _cut(shop)
        end = shop.execute("INSERT INTO item VALUES (2)")
        if how == "moved":
            shop.execute(f"SELECT pg_replication_slot_advance('{shop.slot}', '{end}')")
        else:
            shop.execute(f"SELECT pg_drop_replication_slot('{shop.slot}')")
            shop.execute(f"SELECT pg_create_logical_replication_slot('{shop.slot}', 'pgoutput')")
        with pytest.raises(pgo.ReplicationError, match="it was created again, or another reader moved it"):
            next(transactions)
        with pytest.raises(pgo.ReplicationError, match="ended with an error: close it"):
            next(transactions)


def test_closed_within_a_transaction(shop: Shop) -> None:
    """What the caller has of it is not all: that is no end of an iteration. Another stream's is not confirmed."""
    shop.execute("INSERT INTO item SELECT generate_series(1, 20000)")
    with _stream(shop) as transactions:
        transaction = next(transactions)
        assert next(iter(transaction)).new["id"] == 1
        closing = threading.Thread(target=transactions.close)
        closing.start()
        with pytest.raises(pgo.ReplicationError, match="was closed within <transaction"):
            for _ in transaction:
                closing.join(60)
        with pytest.raises(pgo.ReplicationError, match="ended with an error"):
            next(transactions)
    with _stream(shop) as others, pytest.raises(ValueError, match="is of another stream"):
        others.confirm(transaction)


def test_stopped(shop: Shop) -> None:
    """Within a transaction that has the rest of it, over a lost connection, too; it can be confirmed."""
    shop.execute("INSERT INTO item SELECT generate_series(1, 20000)", "INSERT INTO item VALUES (0)")
    with _stream(shop) as transactions:
        transaction = next(transactions)
        changes = iter(transaction)
        found = [next(changes).new["id"]]
        transactions.stop()
        _cut(shop)
        found += [change.new["id"] for change in changes]
        assert found == [*range(1, 20001)]
        transactions.confirm(transaction)
        assert next(transactions, None) is None and transactions.confirmed_lsn == transaction.end_lsn
    with _stream(shop) as transactions:
        assert _ids(next(transactions)) == [0]
        threading.Timer(0.2, transactions.stop).start()
        assert next(transactions, None) is None  # which waited for it


def test_stopped_while_the_server_is_down(own_server: EmbeddedServer, tmp_path: Path) -> None:
    """What is between two transactions does not wait for another connection."""
    with Shop.create(own_server, "down", tmp_path, two_phase=False) as shop:
        try:
            with _stream(shop) as transactions:
                shop.execute("INSERT INTO item VALUES (0)")
                assert _ids(next(transactions)) == [0]
                own_server.kill()
                threading.Timer(1.0, transactions.stop).start()
                assert next(transactions, None) is None
        finally:
            own_server.start()


def _cut(shop: Shop) -> None:
    # One that sends to a client that does not read ends only when that does: it has its error to send, too.
    query = "SELECT pg_terminate_backend(active_pid, 1000) FROM pg_replication_slots WHERE slot_name = %s AND active"
    with shop.connect() as connection:
        connection.execute(query, [shop.slot])


def test_a_quiet_slot_advances(shop: Shop) -> None:
    """What is not published is confirmed by keepalives, while nothing is unconfirmed."""
    with _stream(shop, status_interval=0.1) as transactions:
        end = shop.execute("CREATE TABLE other (id int)")
        watching = threading.Thread(target=lambda: next(transactions, None), daemon=True)
        watching.start()
        wait_until(lambda: shop.confirmed() >= end)
        transactions.close()
        watching.join(300)
        assert not watching.is_alive()


def test_a_temporary_slot(shop: Shop) -> None:
    """It is gone with its connection, whose loss is an error."""
    with stream(shop.dsn, "for_now", [PUBLICATION], temporary=True) as transactions:
        shop.execute("INSERT INTO item VALUES (1)")
        assert _ids(next(transactions)) == [1]
        shop.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = 'for_now'")
        with pytest.raises(pgo.ReplicationError):
            next(transactions)
    with shop.connect() as connection:
        assert connection.execute("SELECT FROM pg_replication_slots WHERE slot_name = 'for_now'").fetchone() is None


def test_what_cannot_be_read(shop: Shop) -> None:
    """A slot or publication that does not exist; one that is read; one with two phases."""
    with pytest.raises(pgo.ReplicationError, match="replication slot 'none' does not exist"):
        stream(shop.dsn, "none", [PUBLICATION])
    with pytest.raises(pgo.ReplicationError, match="publication 'none' does not exist"):
        stream(shop.dsn, shop.slot, ["none"])
    with _stream(shop), pytest.raises(pgo.ReplicationError, match="is being read by process"):
        _stream(shop)
    shop.execute("SELECT pg_create_logical_replication_slot('two', 'pgoutput', false, true)")
    with pytest.raises(pgo.ReplicationError, match="has two_phase"):
        stream(shop.dsn, "two", [PUBLICATION])
    shop.execute("SELECT pg_drop_replication_slot('two')")


def test_asyncio_iterations_that_end_early(shop: Shop) -> None:
    """They are continued where they ended; nothing is confirmed that the caller has not seen."""
    shop.execute("INSERT INTO item SELECT generate_series(1, 1200)")

    async def run() -> list[int]:
        found: list[int] = []
        async with _stream(shop) as transactions:
            async for transaction in transactions:
                while transaction.end_lsn is None:
                    async for change in transaction:
                        found.append(change.new["id"])
                        with pytest.raises(ValueError, match="not read yet"):
                            transactions.confirm(transaction)
                        if len(found) in {1, 499, 500, 501, 1199, 1200}:
                            break
                transactions.confirm(transaction)
                return found
        raise AssertionError("it ended")

    assert asyncio.run(run()) == list(range(1, 1201))


def test_in_asyncio(shop: Shop) -> None:
    """Other tasks run; a task that is cancelled while it waits loses nothing."""

    async def run() -> list[CommittedChange]:
        found, beats = list[CommittedChange](), 0

        async def beat() -> None:
            nonlocal beats
            while True:
                beats += 1
                await asyncio.sleep(0.01)

        beating = asyncio.create_task(beat())
        async with _stream(shop) as transactions:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(aiter(transactions)), 0.3)
            await asyncio.to_thread(shop.execute, "INSERT INTO item SELECT generate_series(1, 1200)")
            await asyncio.sleep(0.5)
            await asyncio.to_thread(shop.execute, "INSERT INTO item VALUES (0)")
            async for transaction in transactions:
                found += [change async for change in transaction]
                transactions.confirm(transaction)
                if len(found) == 1201:
                    break
        beating.cancel()
        assert beats > 20
        return found

    assert _ids(asyncio.run(run())) == [*range(1, 1201), 0]


def test_a_slot_that_does_not_exist_is_created(shop: Shop) -> None:
    """Its position is a little after the end of the WAL when it was asked for: that is no other server."""
    shop.execute(f"SELECT pg_drop_replication_slot('{shop.slot}')")
    with _stream(shop, create_slot=True) as transactions:
        shop.execute("INSERT INTO item VALUES (1)")
        assert _ids(next(transactions)) == [1]


def test_a_confirmation_over_a_connection_that_breaks(shop: Shop) -> None:
    """The server gets it over the next one, although the socket had taken it."""
    with _stream(shop) as transactions:
        shop.execute("INSERT INTO item VALUES (1)")
        first = next(transactions)
        assert _ids(first) == [1]
        _cut(shop)
        transactions.confirm(first)
        shop.execute("INSERT INTO item VALUES (2)")
        assert _ids(next(transactions)) == [2]
    with shop.connect() as connection:
        query = "SELECT confirmed_flush_lsn >= %s::pg_lsn FROM pg_replication_slots WHERE slot_name = %s"
        assert connection.execute(query, [str(first.end_lsn), shop.slot]).fetchone() == (True,)
