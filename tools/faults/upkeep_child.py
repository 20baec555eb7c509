"""The processes of the attack on log maintenance: one writes numbered transactions, one compacts and prunes."""

import random
import sys
from collections.abc import Iterator

import numpy as np

import pgoutput_construct as pgo
from pgoutput_construct.changelog import LogOptions, LogWriter, Position
from pgoutput_construct.changelog._segment.block import NO_XID, Block
from pgoutput_construct.changelog._segment.events import CONNECTED
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog.compact import CompactionLimits, compact, plan_compaction
from pgoutput_construct.changelog.prune import prune
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.columnar.descriptions import OUTSIDE
from pgoutput_construct.wire.options import STATE_PARAMETERS

__all__ = ["KEPT", "OID", "end_of", "number_before"]

OID = 16384
"""The one table; transaction ``n`` inserts ``n``."""
_OPTIONS = LogOptions(
    slot="s", publications=("p",), server_version=180000, system_identifier="1", database="d", timeline=1
)
_STEP = 256
KEPT = 300
"""Transactions that a prune leaves at the end."""


def end_of(number: int) -> pgo.Lsn:
    """Return the position at which a transaction ends."""
    return pgo.Lsn((number + 1) * _STEP)


def number_before(lsn: int) -> int:
    """Return the transaction that ends at a position, -1 for none."""
    return lsn // _STEP - 1


def write(address: str, transactions: int, seed: int) -> None:
    """Resume the log as a capture does, and write until it has enough transactions; segments are cut anywhere."""
    chance = random.Random(seed)
    with LogWriter(LocalStore(address, durable=False)) as writer:
        first = number_before(writer.position.complete_lsn) + 1
        writer.use(_OPTIONS)
        writer.append_event(CONNECTED, writer.position.complete_lsn)
        waiting, complete, open_xid = list[bytes](), writer.position.complete_lsn, NO_XID
        for payload, ended in _payloads(first, transactions):
            waiting.append(payload)
            complete = ended or complete
            if len(waiting) >= chance.randint(1, 60):
                open_xid = _append(writer, waiting, open_xid)
                writer.publish(Position(complete))
                waiting = []
        _append(writer, waiting, open_xid)
        writer.publish(Position(complete))


def _payloads(first: int, end: int) -> Iterator[tuple[bytes, pgo.Lsn | None]]:
    """Yield the messages of transactions, and the position that is complete after the last of each."""
    relation = pgo.Relation(None, OID, "public", "t", "d", (pgo.RelationColumn(0, "id", 20, -1),))
    for number in range(first, end):
        lsn, moment = end_of(number), pgo.Timestamp(number)
        yield pgo.build(pgo.Begin(lsn, moment, number)), None
        if number == first:  # it is sent once a connection
            yield pgo.build(relation), None
        yield pgo.build(pgo.Insert(None, OID, (b"%d" % number,))), None
        yield pgo.build(pgo.Commit(lsn, lsn, moment)), lsn


def _append(writer: LogWriter, payloads: list[bytes], open_xid: int) -> int:
    count = len(payloads)
    states = {name: np.zeros(count, np.bool_) for name in STATE_PARAMETERS}
    numbers = np.zeros(count, np.int64)
    block = Block.from_payloads(
        payloads, numbers, numbers, _OPTIONS.layout(), states, np.full(count, OUTSIDE), open_xid
    )
    writer.append(block)
    return block.open_xid


def maintain(address: str, rounds: int, seed: int) -> None:
    """Compact and prune again and again, within limits that differ."""
    chance = random.Random(seed)
    plan_compaction(address)  # once all is loaded, what is killed is work
    print("ready", flush=True)
    for _ in range(rounds):
        if chance.random() < 0.5:
            compact(
                address, CompactionLimits(rows=chance.choice((100, 500, 2000)), least=chance.randint(2, 8), grace=0)
            )
        elif (last := number_before(ChangeLog(address).complete_lsn) - KEPT) > 0:
            prune(address, end_of(chance.randint(last // 2, last)), states=False)


if __name__ == "__main__":
    {"write": write, "maintain": maintain}[sys.argv[1]](sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
