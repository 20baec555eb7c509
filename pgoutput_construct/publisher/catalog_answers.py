"""What a publisher answers to a capture, which looks at the catalog beside its stream.

The queries are those of pgoutput_construct.postgres (health, server, publications, catalog); they are known by what
stands in them and nowhere else. Tables are as they were described last; nobody alters them unseen.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from pgoutput_construct.publisher.asking import TEXT, Answer, Asker, Rows, known, listed
from pgoutput_construct.publisher.published_tables import ListedTable, described_tables
from pgoutput_construct.publisher.refusals import no_copies
from pgoutput_construct.publisher.results import Result
from pgoutput_construct.wire.types import Lsn

__all__ = ["CATALOG_ANSWERS"]

_OLD: Final = 2
"""FrozenTransactionId: what wrote all rows of the catalog."""


def _publications(asker: Asker, match: re.Match[str]) -> Result:
    return _select({"pubname": "name"}, [[name] for name in _wanted(asker, match)])


def _operations(asker: Asker, match: re.Match[str]) -> Result:
    columns = {"pubname": "name", "operations": "_text", "without_identity": "_text", "unsent": "_text"}
    columns |= {"with_sequences": "bool", "without_tables": "bool"}
    return _select(
        columns, [[name, _published_operations(asker, name), "{}", "{}", "f", "f"] for name in _wanted(asker, match)]
    )


def _published_operations(asker: Asker, name: str) -> str:
    return "{" + ",".join(asker.feed.operations(name)) + "}"


def _publication_facts(asker: Asker, match: re.Match[str]) -> Result:
    columns = {"pubname": "name", "operations": "_text", "via_root": "bool", "puballtables": "bool"}
    rows = [_publication_row(asker, name) for name in _wanted(asker, match)]
    return _select({**columns, "with_generated": "bool", "tables": "json", "unsent": "json", "excluded": "json"}, rows)


def _publication_row(asker: Asker, name: str) -> Sequence[str | None]:
    tables = _as_described(asker, asker.feed.published([name]))
    via_root = "t" if any(table.via_root for table in tables) else "f"
    operations = _published_operations(asker, name)
    return [name, operations, via_root, "t", "f", json.dumps([_member(table) for table in tables]), None, None]


def _as_described(asker: Asker, tables: Sequence[ListedTable]) -> list[ListedTable]:
    """Return tables with the columns of their latest descriptions, which a stream may have before the events say it.

    A capture takes the catalog for at least as new as the stream.
    """
    described = {table.relation_oid: table for table in described_tables(asker.feed.history, [""])}
    return [table._replace(columns=described.get(table.relation_oid, table).columns) for table in tables]


def _member(table: ListedTable) -> dict[str, Any]:
    numbers = [column.number for column in table.columns]
    named = {"oid": table.relation_oid, "schema": table.namespace, "name": table.name}
    own = {"ancestors": sorted(table.ancestors) or None, "published": numbers}
    return named | {"member": None, "filter": None, "columns": None} | own


def _table_facts(asker: Asker, match: re.Match[str]) -> Result:
    columns = {"oid": "int8", "nspname": "name", "relname": "name", "relreplident": "char"}
    columns |= {"identity": "json", "created": "int8"}
    columns |= dict.fromkeys(("filenodes", "attached", "joined", "truncated", "columns"), "json")
    found = _as_described(asker, asker.feed.published(_there(asker)))
    tables = {table.relation_oid: table for table in (*described_tables(asker.feed.history, [""]), *found)}
    asked = {int(number) for number in re.findall(r"\d+", match["oids"])}
    return _select(columns, [_facts(tables[oid]) for oid in sorted(asked & tables.keys())])


def _facts(table: ListedTable) -> Sequence[str | None]:
    oid, columns = table.relation_oid, table.columns
    facts = [_column(each.number, each.name, each.type, each.modifier) for each in columns]
    named = str(oid), table.namespace, table.name, table.replica_identity
    # Which columns its key has that are not published, the log may not know.
    return [*named, None, str(_OLD), json.dumps([[oid, oid]]), "[]", "[]", "[]", json.dumps(facts)]


def _column(number: int, name: str, kind: int, modifier: int) -> dict[str, Any]:
    described = {"number": number, "name": name, "type": kind, "modifier": modifier, "xmin": _OLD}
    return described | {"dropped": False, "generated": None, "default": False, "missing": None, "recent": False}


def _tables_to_copy(asker: Asker, match: re.Match[str]) -> Result:
    """Refuse what a capture asks before it copies tables: before it makes a slot for that, and when it has one."""
    raise no_copies("nothing can be copied")


def _slots(asker: Asker, match: re.Match[str]) -> Result:
    names = [name for name in asker.slots.names() if match["name"] in ("NULL", f"'{name}'")]
    rows = [[json.dumps(_slot(asker, name)), None, None] for name in names]
    return _select({"to_jsonb": "jsonb", "greatest": "int4", "concat_ws": "text"}, rows)


def _slot(asker: Asker, name: str) -> dict[str, Any]:
    slot = asker.slots.get(name)
    assert slot is not None
    position = str(Lsn(slot.confirmed))
    facts = {"slot_name": name, "plugin": slot.plugin, "slot_type": "logical", "database": asker.feed.about.database}
    state = {"temporary": slot.temporary, "active": asker.slots.is_active(name), "active_pid": None}
    places = {"restart_lsn": position, "confirmed_flush_lsn": position, "wal_status": "reserved"}
    return {**facts, **state, **places, "two_phase": slot.two_phase, "failover": slot.failover}


def _snapshot(asker: Asker, match: re.Match[str]) -> Result:
    """Answer that all transactions have ended which are served."""
    following = max(asker.feed.order().last_xid, _OLD) + 1
    return _select({"pg_current_snapshot": "text"}, [[f"{following}:{following}:"]])


def _position(asker: Asker, match: re.Match[str]) -> Result:
    return _select({"?column?": "numeric"}, [[str(int(asker.feed.position))]])


def _timeout(asker: Asker, match: re.Match[str]) -> Result:
    return _select({"extract": "float8"}, [[str(asker.wal_sender_timeout)]])


def _sender(asker: Asker, match: re.Match[str]) -> Result:
    """Answer that the process which sends is no synchronous one, and at work for nobody."""
    return _select({"sync": "bool", "active": "bool"}, [["f", "f"]])


def _digest(asker: Asker, match: re.Match[str]) -> Result:
    found = asker.feed.published(_there(asker))
    return _select({"concat_ws": "text"}, [[f"{len(asker.feed.history.descriptions)} {hash(tuple(found))}"]])


def _wanted(asker: Asker, match: re.Match[str]) -> list[str]:
    names = _array_items(match["names"])
    there = asker.feed.about.publications
    return sorted(name for name in names if not there or name in there)


def _array_items(literal: str) -> list[str]:
    """Return the texts of an array that is written as a literal, as psycopg writes lists: '{shop,"a name"}'."""
    (text,) = listed(literal)
    found = re.findall(r'"((?:[^"\\]|\\.)*)"|([^{},"]+)', text, re.DOTALL)
    return [re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL) or plain for quoted, plain in found]


def _there(asker: Asker) -> Sequence[str]:
    """Return the publications; of a publisher that has any, one with all tables."""
    return asker.feed.about.publications or [""]


def _select(columns: dict[str, str], rows: Rows) -> Result:
    return Result("SELECT", list(columns.items()), rows)


def _nothing(*columns: str) -> Answer:
    return lambda asker, match: _select(dict.fromkeys(columns, "text"), [])


_ARGUMENT: Final = rf"pubname = ANY\( ?(?P<names>{TEXT})(?:::text\[\])?\)"
CATALOG_ANSWERS: Final[Sequence[tuple[re.Pattern[str], Answer]]] = (
    (known(r"SELECT extract\(epoch FROM current_setting\('wal_sender_timeout'\)::interval\)::float8"), _timeout),
    (known(r"SELECT coalesce\(r\.sync_state IN .* FROM pg_stat_activity a LEFT JOIN .*"), _sender),
    (known(r"SELECT pg_is_in_recovery\(\)"), lambda *_: _select({"pg_is_in_recovery": "bool"}, [["f"]])),
    (known(r"SELECT CASE WHEN pg_is_in_recovery\(\) THEN .* - '0/0'::pg_lsn"), _position),
    (known(rf"SELECT pubname FROM pg_publication WHERE {_ARGUMENT}"), _publications),
    (known(rf"WITH RECURSIVE wanted .*{_ARGUMENT}.* json_agg\(json_build_object\('oid'.*"), _publication_facts),
    (known(rf"WITH RECURSIVE wanted .*{_ARGUMENT}.* SELECT DISTINCT c\.oid::bigint, .*"), _tables_to_copy),
    (known(rf"WITH RECURSIVE wanted .*{_ARGUMENT}.* ARRAY\(SELECT format\(.*"), _operations),
    (known(r"WITH RECURSIVE tree AS .* FROM unnest\((?P<oids>[^)]*)\) AS wanted .* filenodes.*"), _table_facts),
    (known(r"WITH RECURSIVE used AS \( SELECT attrelid, attnum, atttypid AS type .*"), _nothing("attrelid", "types")),
    (known(r"SELECT set_config\(name, '0', false\) FROM pg_settings .*"), _tables_to_copy),
    (known(r"SELECT to_jsonb\(s\), .* WHERE (?P<name>NULL|'\w*')::text IS NULL OR .*"), _slots),
    (known(r"SELECT pg_current_snapshot\(\)::text"), _snapshot),
    (known(r"WITH tables AS \(SELECT oid, xmin FROM pg_class .*"), _digest),
    (known(r"SELECT DISTINCT relation::bigint FROM pg_locks .*"), _nothing("relation")),
    (known(r"SELECT 'transaction ' \|\| xid .*"), _nothing("writer")),
    (known(r"SELECT total_txns FROM pg_stat_replication_slots .*"), _nothing("total_txns")),
    (known(r"SELECT coalesce\(r\.sync_state .* FROM pg_stat_activity a .*"), _nothing("is_synchronous", "is_at_work")),
)
"""The queries, and what answers each."""
