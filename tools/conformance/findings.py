"""What the failures of clients have in common, in words that could be sent to their maintainers."""

from dataclasses import dataclass
from typing import Final

__all__ = ["FINDINGS", "Finding"]


@dataclass(frozen=True)
class Finding:
    """One defect, limit, or decision of a client."""

    clients: tuple[str, ...]
    title: str
    cases: tuple[str, ...]
    """Patterns of the cases that show it."""
    text: str


_LENGTHS: Final = (
    "damage/*-cut*",
    "damage/*length*",
    "damage/huge-*",
    "damage/relation-huge-*",
    "damage/update-without-new",
)
_BY_HAND: Final = ("psycopg2", "pypgoutput")

FINDINGS: Final[tuple[Finding, ...]] = (
    Finding(
        ("pglogrepl",),
        "Truncated messages panic",
        _LENGTHS,
        "Slices and integers after a message's fixed part are read without comparing with what is left, so that a "
        "truncated or damaged message ends the program with a panic instead of an error.",
    ),
    Finding(
        ("pglogrepl",),
        "A row without columns is refused",
        ("v1/no-columns",),
        "InsertMessage.Decode wants 8 bytes after the type; an Insert into a table without columns has 7.",
    ),
    Finding(
        ("pglogrepl",),
        "Unknown kinds of values and parts are accepted",
        ("damage/value-of-unknown-kind", "damage/update-with-two-keys"),
        "A column whose kind is none of n, u, t and b is handed out as it is, and the byte before the new row of an "
        "Update is not compared with N.",
    ),
    Finding(
        ("pg-walstream",),
        "A change of an unknown table is dropped",
        ("damage/unknown-table",),
        "A change whose OID no Relation has described gives no event and no error: the rest of its transaction commits "
        "without it.",
    ),
    Finding(
        ("pg-walstream",),
        "The part of a Delete is not checked",
        ("damage/delete-of-unknown-part",),
        "A Delete with N in place of K or O is read as if it had an old row.",
    ),
    Finding(
        ("pg-walstream",),
        "The LSNs of keepalives are not confirmed",
        ("feedback/quiet-*",),
        "While nothing is published, the slot stays where it is, and the server retains the WAL of everything else.",
    ),
    Finding(
        ("pg-walstream", "pg-logical-replication"),
        "The name of a publication is not quoted",
        ("handshake/odd-publication",),
        "publication_names is a list of identifiers; a name with upper case, blanks, commas or quotes needs quotes.",
    ),
    Finding(
        ("pg-walstream", "pg-logical-replication", "psycopg2", "pypgoutput", "pg_recvlogical"),
        "A half-open connection is not noticed",
        ("links/half-open",),
        "Nothing is received for longer than wal_sender_timeout, and the client neither leaves nor connects again.",
    ),
    Finding(
        ("pglogrepl", "pg-walstream", "pg-logical-replication"),
        "No statuses while the consumer is slow",
        ("feedback/slow-consumer",),
        "Statuses are sent by the program that takes the changes; while that waits, nothing is sent, and the "
        "server ends "
        "the connection after wal_sender_timeout. PostgreSQL's subscription has no consumer that could be slow "
        "this way.",
    ),
    Finding(
        ("pglogrepl", "pg-logical-replication", "psycopg2", "pypgoutput", "pg_recvlogical"),
        "What comes again is reported again",
        ("reconnects/once",),
        "After a crash of the server a slot may return to an earlier LSN. The library leaves it to its user to "
        "store the "
        "LSN of what was reported, and to ask for what follows.",
    ),
    Finding(
        ("pg-logical-replication",),
        "Negative lengths, and parts of messages, are not checked",
        ("damage/negative-length", "damage/insert-without-new", "damage/update-with-two-keys"),
        "The length of a value is added to the position though it is negative, and the byte before a new row is "
        "skipped.",
    ),
    Finding(
        ("pg-logical-replication",),
        "A connection without synchronization is waited for",
        ("damage/copy-data-*",),
        "A CopyData message with an impossible length makes node-postgres wait for ever; libpq ends the connection.",
    ),
    Finding(
        ("pypgoutput",),
        "Truncated messages are read as if they were whole",
        (*_LENGTHS, "damage/value-of-unknown-kind", "damage/insert-without-new"),
        "What is missing of an integer is 0, a string without an end is waited for in an endless loop, and a "
        "value whose "
        "kind is unknown leaves the rest of its tuple misread.",
    ),
    Finding(
        ("pypgoutput",),
        "Commit times beyond those of Python are refused",
        ("v1/times",),
        "The time of a Begin is converted to datetime, which raises OverflowError after the year 9999.",
    ),
    Finding(
        ("psycopg2",),
        "A parser by hand that trusts its input",
        ("damage/*",),
        "Nothing is compared with the length of the message, nor the end of a transaction with its beginning: this is "
        "what programs with thirty lines of struct do.",
    ),
    Finding(
        ("pypgoutput",),
        "Ends of transactions are not compared with their beginnings",
        ("damage/commit-*", "damage/begin-*", "damage/garbage", "damage/stop-outside-of-streams"),
        "Messages of unknown types are dropped without an error, by its reader and so by this program.",
    ),
    Finding(
        _BY_HAND,
        "Messages of unknown types are dropped",
        ("versions/unknown-*", "two-phase/not-asked-for"),
        "A type that is not known may be a change: what follows it is reported as if nothing were missing.",
    ),
    Finding(
        ("psycopg2", "pypgoutput", "pg_recvlogical"),
        "Frames other than XLogData and keepalives are refused",
        ("versions/other-frame",),
        "An apply worker ignores them on purpose; PostgreSQL 19 adds one, which it sends when it is asked.",
    ),
    Finding(
        ("pglogrepl", "pg-logical-replication", "stream"),
        "Prepared transactions are refused if they were not asked for",
        ("two-phase/not-asked-for",),
        "A slot that was created with two_phase sends them at any version. The error is clear; such a slot "
        "cannot be read.",
    ),
    Finding(
        ("pg_recvlogical",),
        "The file has no lengths",
        ("damage/*",),
        "Whoever reads the file must wait for the rest of a message whose lengths are damaged: it may still come.",
    ),
)
"""In the order of the page."""
