"""The witness: what really happened, as recorded by triggers on the server."""

import json
from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgoutput_construct.wire.types import UNIX_TO_POSTGRES
from tools.faults.changes import Change

if TYPE_CHECKING:
    import psycopg

__all__ = ["PUBLICATION", "Witness", "create_tables", "read_witness", "write_witness"]

PUBLICATION = "faults"


@dataclass(frozen=True)
class Witness:
    """The committed transactions of a database, by their xid (32 bits, as the stream has it)."""

    transactions: Mapping[int, list[Change]]
    """Their changes in order; none is empty."""
    commit_times: Mapping[int, int]
    """When they committed: microseconds since 2000-01-01 UTC (track_commit_timestamp)."""
    notes: Counter[str]
    """The messages that belong to no transaction, of those transactions that committed."""

    @property
    def changes(self) -> int:
        """How many changes were committed."""
        return sum(map(len, self.transactions.values()))

    def up_to(self, commit_time: int, decoded: Container[int]) -> "Witness":
        """Return what a log must have that ends with a commit of this time, and may have no more.

        Args:
            commit_time: The time of the log's last commit, in microseconds since 2000-01-01 UTC.
            decoded: The xids of the transactions in the log.

        A server takes the time of a commit shortly before it writes the commit to the WAL: of those in the last second,
        the log has some. Messages that belong to no transaction have no time, so that none is required.
        """
        required = {
            xid: changes
            for xid, changes in self.transactions.items()
            if xid in decoded or self.commit_times[xid] < commit_time - 1_000_000
        }
        return Witness(required, self.commit_times, Counter())


def create_tables(connection: "psycopg.Connection[Any]") -> None:
    """Make the tables, the witness and the publication in an empty database."""
    connection.execute(Path(__file__).with_name("witnessed.sql").read_bytes())


def read_witness(connection: "psycopg.Connection[Any]", messages: bool) -> Witness:
    """Read all that was committed up to now; ``messages`` says whether logical messages count."""
    transactions: dict[int, list[Change]] = {}
    notes: Counter[str] = Counter()
    query = "SELECT xid::xid::text::bigint, op, relation, old, new FROM witness ORDER BY serial"
    for xid, op, relation, old, new in connection.execute(query):
        if op == "note":
            notes[new["mark"]] += messages
        elif op != "message" or messages:
            transactions.setdefault(xid, []).append(Change(op, relation, old, new))
    return Witness(transactions, _commit_times(connection), notes)


def write_witness(witness: Witness, path: Path) -> None:
    """Write one JSON object for each change, to investigate a difference."""
    with path.open("w", encoding="utf-8") as file:
        for xid, changes in witness.transactions.items():
            for change in changes:
                said = {"xid": xid, "op": change.op, "relation": change.relation, "old": change.old, "new": change.new}
                print(json.dumps(said), file=file)


def _commit_times(connection: "psycopg.Connection[Any]") -> dict[int, int]:
    query = """SELECT xid::xid::text::bigint,
                      (extract(epoch FROM pg_xact_commit_timestamp(xid::xid)) * 1000000)::bigint + %s
               FROM (SELECT DISTINCT xid FROM witness) seen"""
    return dict(connection.execute(query, [-UNIX_TO_POSTGRES]).fetchall())
