"""What this package makes of a scenario: rows folded from the transactions of a feed, and how these ended."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pgoutput_construct.publisher._feed.feed import About, Feed
from pgoutput_construct.publisher._feed.message_feed import MessageFeed
from pgoutput_construct.publisher._feed.rendering import Renderer
from pgoutput_construct.stream.rows import RowChange, RowReader
from pgoutput_construct.stream.session import Session
from pgoutput_construct.stream.transaction_reader import EndedTransaction
from pgoutput_construct.testing.scenario_alterations import STATEMENTS, Alteration
from pgoutput_construct.testing.scenarios import Scenario, TransactionEnd
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.messages import Binary
from pgoutput_construct.wire.protocol import RelationColumnFlags, ReplicationOptions
from pgoutput_construct.wire.types import Lsn

__all__ = ["ABOUT", "LAYOUT", "Reading", "expected", "feed_of", "payloads_of", "read"]

LAYOUT: Any = {"proto_version": 4, "streaming": "parallel"}
"""How scenarios are laid out."""
ABOUT = About(180000, "7000000000000000000", "postgres", 1, (), LAYOUT)

Rows = dict[tuple[str, str], list[dict[str, Any]]]


@dataclass
class Reading:
    """What a stream comes to."""

    rows: Rows = field(default_factory=dict)
    """The rows of each table that has some, in an order of their own."""
    outcomes: list[TransactionEnd] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    """Names of origins, and prefixes and contents of messages."""
    types: set[tuple[str, str]] = field(default_factory=set)
    """Schemas and names of the types that are not built in."""


def payloads_of(messages: Iterable[m.PgoutputMessage]) -> list[bytes]:
    """Return messages as a server sends them under LAYOUT."""
    session = Session(**LAYOUT)
    return [session.build(message) for message in messages]


def feed_of(payloads: Iterable[bytes], positions: Iterable[Lsn]) -> MessageFeed:
    """Return payloads as a feed; raise PgoutputError where one is damaged, or cannot come."""
    session, feed = Session(**LAYOUT), MessageFeed(ABOUT)
    for lsn, payload in zip(positions, payloads, strict=True):
        feed.add(lsn, session.parse(payload))
    return feed


def read(feed: Feed, scenarios: Iterable[Scenario]) -> Reading:
    """Fold a feed; raise PgoutputError, or LookupError for a change of a row that is not there.

    The statements with which the tables of scenarios are altered are understood.
    """
    alterations = {each.statement: each for scenario in scenarios for _, each in scenario.alterations}
    reading = Reading(types={(t.namespace, t.name) for d in feed.history.descriptions for t in d.types.values()})
    renderer, reader = Renderer(feed, ReplicationOptions(messages=True)), RowReader()
    items = feed.ended if isinstance(feed, MessageFeed) else feed.order()
    reading.outcomes = [_outcome(item) for item in items if isinstance(item, EndedTransaction)]
    for ended in feed.order():
        for _, message, _ in renderer.render(ended):
            reading.said += _said(message)
            for change in reader.read(message):
                _apply(reading.rows, change)
                _alter(reading.rows, change, alterations)
    reading.rows = _sorted(reading.rows)
    return reading


def expected(scenarios: Sequence[Scenario]) -> Reading:
    """Return what scenarios that follow each other must come to."""
    reading = Reading()
    for scenario in scenarios:
        reading.outcomes += scenario.outcomes
        reading.said += scenario.said
        for table in scenario.tables:
            reading.rows[table.fake.namespace, table.name] = scenario.rows[table.name]
        sent = {message.type_oid for _, message in scenario.sent if isinstance(message, m.Type)}
        kinds = (kind for table in scenario.tables for kind in table.fake.types.values())
        reading.types |= {(kind.namespace, kind.name) for kind in kinds if kind.type_oid in sent}
    reading.rows = _sorted(reading.rows)
    return reading


def _sorted(rows: Rows) -> Rows:
    """Return rows in one order, NULLs left out: a column that came later is not in the rows before."""
    return {name: sorted(map(_known, some), key=repr) for name, some in rows.items() if some}


def _known(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in sorted(row.items()) if value is not None}


def _outcome(ended: EndedTransaction) -> TransactionEnd:
    numbers: Any = ended.commit_lsn, ended.end_lsn, ended.time
    return TransactionEnd(ended.transaction.xid, ended.transaction.gid, ended.outcome, *numbers)


def _said(message: m.PgoutputMessage) -> list[str]:
    match message:
        case m.Origin():
            return [message.name]
        case m.Message():
            return [message.prefix, message.content.decode("utf-8", "replace")]
    return []


def _apply(rows: Rows, change: RowChange) -> None:
    """Do to the rows what a change says, as a subscriber does."""
    table = rows.setdefault((change.relation.namespace, change.relation.name), [])
    if change.op == "truncate":
        table.clear()
        return
    before: dict[str, Any] = {}
    if change.op != "insert":
        before = table.pop(_place(table, change))
    if change.new is not None:
        table.append(before | {name: _value(value) for name, value in change.new.items()})


def _alter(rows: Rows, change: RowChange, alterations: Mapping[str, Alteration]) -> None:
    """Alter a table as the trigger of a subscriber does."""
    told = _value((change.new or {}).get("statement"))
    if change.relation.name == STATEMENTS and told in alterations:
        namespace, found = change.relation.namespace, alterations[told]
        rows[namespace, found.table.name] = [found.row(row) for row in rows.pop((namespace, found.was), [])]


def _place(table: Sequence[dict[str, Any]], change: RowChange) -> int:
    """Return where the row is that a change is about: the first with the same key, or the same old row."""
    keys = [column.name for column in change.relation.columns if column.flags & RelationColumnFlags.KEY]
    told = change.old if change.old is not None else change.new or {}
    wanted = [_value(told.get(name)) for name in keys]
    return next(at for at, row in enumerate(table) if [row.get(name) for name in keys] == wanted)


def _value(value: Any) -> Any:
    """Return a value as the model has it: an enum in binary format is its label."""
    return value.decode("utf-8", "replace") if isinstance(value, Binary) else value
