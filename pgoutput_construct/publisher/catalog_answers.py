"""What a publisher answers to a capture, which looks at the catalog beside its stream.

The queries are those of pgoutput_construct.postgres (health, server, publications, catalog); they are known by what
stands in them and nowhere else. Tables are as they were described last; nobody alters them unseen.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from pgoutput_construct.publisher.asking import Answer, Asker, Rows, known, listed
from pgoutput_construct.publisher.refusals import no_copies
from pgoutput_construct.publisher.results import Result
from pgoutput_construct.wire.messages import Relation
from pgoutput_construct.wire.types import Lsn

__all__ = ["CATALOG_ANSWERS"]

_OLD: Final = 2
"""FrozenTransactionId: what wrote all rows of the catalog."""


def _relations(asker: Asker) -> dict[int, Relation]:
    return {each.relation.relation_oid: each.relation for each in list(asker.feed.history.descriptions)}


def _publications(asker: Asker, match: re.Match[str]) -> Result:
    return _select({"pubname": "name"}, [[name] for name in asker.feed.about.publications])


def _operations(asker: Asker, match: re.Match[str]) -> Result:
    columns = {"pubname": "name", "operations": "_text", "without_identity": "_text", "unsent": "_text"}
    return _select(columns, [[name, _ALL, "{}", "{}"] for name in _wanted(asker, match)])


def _publication_facts(asker: Asker, match: re.Match[str]) -> Result:
    columns = {"pubname": "name", "operations": "_text", "via_root": "bool", "puballtables": "bool"}
    tables = json.dumps([_member(relation) for _, relation in sorted(_relations(asker).items())])
    rows = [[name, _ALL, "f", "t", tables, None] for name in _wanted(asker, match)]
    return _select({**columns, "tables": "json", "unsent": "json"}, rows)


def _member(relation: Relation) -> dict[str, Any]:
    numbers = [number for number, _ in enumerate(relation.columns, 1)]
    named = {"oid": relation.relation_oid, "schema": relation.namespace or "pg_catalog", "name": relation.name}
    return named | {"member": None, "filter": None, "columns": None, "published": numbers}


def _table_facts(asker: Asker, match: re.Match[str]) -> Result:
    columns = {"oid": "int8", "nspname": "name", "relname": "name", "relreplident": "char", "created": "int8"}
    columns |= dict.fromkeys(("filenodes", "attached", "truncated", "columns"), "json")
    relations, wanted = _relations(asker), {int(number) for number in re.findall(r"\d+", match["oids"])}
    return _select(columns, [_facts(relations[oid]) for oid in sorted(wanted & relations.keys())])


def _facts(relation: Relation) -> Sequence[str]:
    oid, columns = relation.relation_oid, [*enumerate(relation.columns, 1)]
    facts = [_column(number, each.name, each.type_oid, each.type_modifier) for number, each in columns]
    named = str(oid), relation.namespace or "pg_catalog", relation.name, relation.replica_identity
    return [*named, str(_OLD), json.dumps([[oid, oid]]), "[]", "[]", json.dumps(facts)]


def _column(number: int, name: str, kind: int, modifier: int) -> dict[str, Any]:
    described = {"number": number, "name": name, "type": kind, "modifier": modifier, "xmin": _OLD}
    return described | {"dropped": False, "default": False, "missing": None, "recent": False}


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
    return {**facts, **state, **places, "two_phase": slot.two_phase}


def _snapshot(asker: Asker, match: re.Match[str]) -> Result:
    """Answer that all transactions have ended which are served."""
    following = max(asker.feed.order().last_xid, _OLD) + 1
    return _select({"pg_current_snapshot": "text"}, [[f"{following}:{following}:"]])


def _position(asker: Asker, match: re.Match[str]) -> Result:
    return _select({"?column?": "numeric"}, [[str(int(asker.feed.position))]])


def _digest(asker: Asker, match: re.Match[str]) -> Result:
    return _select({"concat_ws": "text"}, [[str(len(asker.feed.history.descriptions))]])


def _wanted(asker: Asker, match: re.Match[str]) -> list[str]:
    names = listed(match["names"].replace("{", "'").replace("}", "'").replace(",", "','"))
    return sorted(name for name in asker.feed.about.publications if name in names)


def _select(columns: dict[str, str], rows: Rows) -> Result:
    return Result("SELECT", list(columns.items()), rows)


def _nothing(*columns: str) -> Answer:
    return lambda asker, match: _select(dict.fromkeys(columns, "text"), [])


_ALL: Final = "{insert,update,delete,truncate}"
_ARGUMENT: Final = r"pubname = ANY\((?P<names>[^)]*)\)"
CATALOG_ANSWERS: Final[Sequence[tuple[re.Pattern[str], Answer]]] = (
    (known(r"SELECT pg_is_in_recovery\(\)"), lambda *_: _select({"pg_is_in_recovery": "bool"}, [["f"]])),
    (known(r"SELECT CASE WHEN pg_is_in_recovery\(\) THEN .* - '0/0'::pg_lsn"), _position),
    (known(r"SELECT pubname FROM pg_publication"), _publications),
    (known(rf"WITH RECURSIVE wanted .*{_ARGUMENT}.* json_agg\(json_build_object\('oid'.*"), _publication_facts),
    (known(rf"WITH RECURSIVE wanted .*{_ARGUMENT}.* SELECT DISTINCT c\.oid::bigint, .*"), _tables_to_copy),
    (known(rf"WITH RECURSIVE wanted .*{_ARGUMENT}.* ARRAY\(SELECT format\(.*"), _operations),
    (known(r"WITH RECURSIVE tree AS .* FROM unnest\((?P<oids>[^)]*)\) AS wanted .* filenodes.*"), _table_facts),
    (known(r"SELECT set_config\(name, '0', false\) FROM pg_settings .*"), _tables_to_copy),
    (known(r"SELECT to_jsonb\(s\), .* WHERE (?P<name>NULL|'\w*')::text IS NULL OR .*"), _slots),
    (known(r"SELECT pg_current_snapshot\(\)::text"), _snapshot),
    (known(r"WITH tables AS \(SELECT oid, xmin FROM pg_class .*"), _digest),
    (known(r"SELECT DISTINCT relation::bigint FROM pg_locks .*"), _nothing("relation")),
    (known(r"SELECT 'transaction ' \|\| xid .*"), _nothing("writer")),
    (known(r"SELECT total_txns FROM pg_stat_replication_slots .*"), _nothing("total_txns")),
    (known(r"SELECT FROM pg_stat_replication .*"), _nothing("nothing")),
)
"""The queries, and what answers each."""
