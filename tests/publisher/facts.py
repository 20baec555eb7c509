"""What the catalog of a server says while its tables are altered as in scenarios: what a capture would read from it."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pgoutput_construct.testing.scenario_tables import ScenarioTable
from pgoutput_construct.testing.scenarios import Scenario
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.types import Lsn

__all__ = ["Fact", "facts_of"]


class Fact(NamedTuple):
    """What the catalog says of a table, as the details of an event."""

    place: int
    """How many messages of the stream had come before."""
    lsn: Lsn
    details: dict[str, Any]


def facts_of(scenarios: Iterable[Scenario]) -> Iterator[Fact]:
    """Yield what it says of all tables at the start of each scenario, and of each that was altered."""
    place = 0
    for scenario in scenarios:
        wrote: dict[tuple[int, int], int] = {}
        first = next(lsn for lsn, _ in scenario.sent if lsn)
        yield from (_fact(place, Lsn(first - 1), table, 1, wrote) for table in scenario.first)
        for count, alteration in scenario.alterations:
            (end, _), xid = scenario.sent[count - 1], _xid(scenario, count)
            yield _fact(place + count, end, alteration.table, xid, wrote)
        place += len(scenario.sent)


def _xid(scenario: Scenario, count: int) -> int:
    """Return the transaction that the last one of so many messages commits."""
    return next(message.xid for _, message in reversed(scenario.sent[:count]) if isinstance(message, m.Begin))


def _fact(place: int, lsn: Lsn, table: ScenarioTable, xid: int, wrote: dict[tuple[int, int], int]) -> Fact:
    """Return a fact; ``wrote`` has by table, and what each column was, the transactions that wrote them."""
    relation = table.fake.relation
    described = dict(zip(table.numbers, relation.columns, strict=True))
    columns = []
    for number in range(1, table.made + 1):
        column = described.get(number)
        told = {} if column is None else {"name": column.name, "type": column.type_oid, "modifier": -1}
        xmin = wrote.setdefault((table.oid, hash((number, *told.values()))), xid)
        columns.append({"number": number, **told, "xmin": xmin, "dropped": not told, "published": bool(told)})
    named = {"oid": table.oid, "schema": relation.namespace, "name": relation.name}
    rest = {"replica_identity": relation.replica_identity, "created": 1, "filenodes": [[table.oid, table.oid]]}
    return Fact(place, lsn, {**named, **rest, "columns": columns, "snapshot": [xid + 1, xid + 1, []]})
