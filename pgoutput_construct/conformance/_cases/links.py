"""Cases of links that are slow, silent or half open, and of streams that are large."""

from pgoutput_construct.conformance.case_group import MESSAGES, STREAMED, CaseGroup
from pgoutput_construct.conformance.case_writer import CaseWriter
from pgoutput_construct.conformance.conformance_case import CaseServer, Level
from pgoutput_construct.conformance.steps import ExpectReported, SendKeepalive, SplitWrites, StaySilent
from pgoutput_construct.testing.fake_tables import FakeTable
from pgoutput_construct.wire.types import Lsn

__all__ = ["LINKS", "SIZES"]

LINKS = CaseGroup("links", "Slow, silent and half-open links")
SIZES = CaseGroup("sizes", "Large values, transactions and catalogs")
_BYTES = "protocol-overview: messages on a stream of bytes; fe-misc.c pqReadData()"
_SILENCE = "runtime-config-replication: wal_receiver_timeout; worker.c LogicalRepApplyLoop()"
_LENGTH = "protocol-message-formats: Int32 length; libpq takes messages of up to a gigabyte"


@LINKS.case("in-pieces", _BYTES)
def in_pieces(w: CaseWriter) -> None:
    """Take messages in pieces of 7 bytes, several of which make one, and later two in one segment."""
    orders = w.orders()
    w.add(SplitWrites(7))
    w.commit(orders.insert({"id": 1, "note": "one"}), orders.update({"id": 1, "note": "uno"}))
    w.keepalive()
    w.add(SplitWrites(31))
    w.commit(orders.insert({"id": 2, "note": "x" * 1000}))
    w.add(SplitWrites(0))


@LINKS.case("byte-by-byte", _BYTES, needs=STREAMED)
def byte_by_byte(w: CaseWriter) -> None:
    """Take a streamed transaction byte by byte."""
    orders = w.orders()
    w.add(SplitWrites(1))
    one, two = orders.insert({"id": 1, "note": "one"}), orders.insert({"id": 2, "note": "two"})
    w.stream().segment(one).segment(two).commit()
    w.add(SplitWrites(0))


@LINKS.case("silence", _SILENCE)
def silence(w: CaseWriter) -> None:
    """Take up a stream again on which nothing came for less than the timeout."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    w.add(ExpectReported(1), StaySilent(0.8))
    w.commit(orders.insert({"id": 2, "note": "two"}), StaySilent(0.8), orders.insert({"id": 3, "note": "three"}))


@LINKS.case("pause-within-a-message", _BYTES)
def pause_within_a_message(w: CaseWriter) -> None:
    """Wait for the rest of a message of which only a part has come."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    w.add(ExpectReported(1))
    first, rest = w.halves(orders.insert({"id": 2, "note": "slow"}))
    w.commit(first, StaySilent(0.4), rest, expects=[orders.insert({"id": 2, "note": "slow"})])


@LINKS.case(
    "half-open",
    f"{_SILENCE}: a silent connection is lost",
    level=Level.SHOULD,
    server=CaseServer(wal_sender_timeout=2.0),
)
def half_open(w: CaseWriter) -> None:
    """Take a connection for lost on which nothing comes for longer than the timeout, though it is not closed, and
    connect again."""
    orders = w.orders()
    w.commit(orders.insert({"id": 1, "note": "one"}))
    w.add(ExpectReported(1), StaySilent(8.0, until_left=True))
    w.commit(orders.insert({"id": 2, "note": "two"}))


@LINKS.case("burst", "walsender.c XLogSendLogical(): as fast as the client reads")
def burst(w: CaseWriter) -> None:
    """Take 1,000 small transactions that come at once."""
    orders = w.orders()
    for number in range(1000):
        w.commit(orders.insert({"id": number, "note": "small"}))


@SIZES.case("large-value", f"{_LENGTH}; storage-toast: values of up to a gigabyte")
def large_value(w: CaseWriter) -> None:
    """Take a value of 4 megabytes."""
    w.commit(w.orders().insert({"id": 1, "note": "0123456789abcdef" * (1 << 18)}))


@SIZES.case("large-rows", _LENGTH)
def large_rows(w: CaseWriter) -> None:
    """Take rows of several large values, old and new."""
    table = w.table("documents", {"a": "text", "b": "text", "c": "text"})
    row = {"a": "a" * 100_000, "b": "b" * 200_000, "c": "c" * 300_000}
    w.commit(table.insert(row), table.update({**row, "a": "x"}, row), table.delete({**row, "a": "x"}))


@SIZES.case("many-columns", "limits: 1,600 columns")
def many_columns(w: CaseWriter) -> None:
    """Take a table of 1,600 columns."""
    columns = {"id": "int4", **{f"column_{number}": "int4" for number in range(1, 1600)}}
    table = w.table("widest", columns, key=["id"])
    w.commit(table.insert({"id": 1, "column_1": 1, "column_1599": 1599}))
    w.commit(table.update({"id": 1, **{name: 7 for name in columns if name.endswith("5")}}))


@SIZES.case("long-transaction", "worker.c apply_handle_commit(): a transaction may be of any length")
def long_transaction(w: CaseWriter) -> None:
    """Take a transaction of 5,000 changes, with keepalives in it."""
    orders, alive = w.orders(), SendKeepalive(w.lsn)
    items = [orders.insert({"id": number, "note": f"row {number}"}) for number in range(5000)]
    w.commit(*items[:2000], alive, *items[2000:4000], alive, *items[4000:])


@SIZES.case("long-stream", "reorderbuffer.c: what exceeds logical_decoding_work_mem is streamed", needs=STREAMED)
def long_stream(w: CaseWriter) -> None:
    """Take a streamed transaction of 5,000 changes in 50 segments."""
    orders, stream = w.orders(), w.stream()
    for part in range(50):
        stream.segment(*(orders.insert({"id": 100 * part + n, "note": f"row {n}"}) for n in range(100)))
    stream.commit()


@SIZES.case("many-subtransactions", "worker.c subxact_info_add(), stream_abort_internal()", needs=STREAMED)
def many_subtransactions(w: CaseWriter) -> None:
    """Take a streamed transaction of 500 subtransactions, of which every third is rolled back."""
    orders, stream = w.orders(), w.stream()
    for number in range(500):
        sub = w.xid()
        stream.segment(orders.insert({"id": number, "note": f"of {sub}"}), sub=sub)
        if number % 3 == 2:
            stream.abort(sub)
    stream.commit()


@SIZES.case("ten-thousand-relations", "relation.c LogicalRepRelMap: a hash table of any size")
def ten_thousand_relations(w: CaseWriter) -> None:
    """Take the Relations of 10,000 tables, and know each when its changes come."""
    used = [w.table(f"table_{number}", {"id": "int4", "note": "text"}, key=["id"]) for number in range(20)]
    w.commit(*(table.insert({"id": 1, "note": table.name}) for table in used))
    unit = w.unit()
    start = w.begin(unit, 0)
    for number in range(10_000):
        columns = {"id": "int4", f"of_{number}": "text"}
        w.send(FakeTable(f"other_{number}", columns, ["id"], oid=100_000 + number).relation, Lsn(0), unit)
    w.end(unit, start)
    w.commit(*(table.update({"id": 1, "note": "again"}) for table in reversed(used)))


@SIZES.case("large-message", _LENGTH, needs=MESSAGES)
def large_message(w: CaseWriter) -> None:
    """Take a logical message of 2 megabytes."""
    w.message("large", b"0123456789abcdef" * (1 << 17))
