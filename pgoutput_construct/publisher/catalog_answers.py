"""What a publisher answers to a capture, which asks for the catalog on a second connection (``catalog_queries``).

Tables are as they were described last; nobody alters them unseen.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

from pgoutput_construct.catalog_queries import (
    BLOCKING_WRITER,
    CURRENT_SNAPSHOT,
    DIGEST,
    FLUSHED_LSN,
    INSERTED_LSN,
    IS_STANDBY,
    LOCKED_TABLES,
    PUBLICATION_FACTS,
    PUBLICATION_NAMES,
    PUBLICATIONS,
    PUBLISHED_TABLES,
    SENDER_STATE,
    SENDER_TIMEOUT,
    SLOTS,
    TABLE_FACTS,
    TYPE_FACTS,
    WORKING_PROCESS,
    CatalogQuery,
)
from pgoutput_construct.publisher.asking import TEXT, Asker, known, listed, spaced
from pgoutput_construct.publisher.published_tables import ListedTable, described_tables
from pgoutput_construct.publisher.refusals import no_copies
from pgoutput_construct.publisher.results import Result
from pgoutput_construct.wire.types import Lsn

__all__ = ["REPLIES", "catalog_answer"]

Arguments: TypeAlias = Mapping[str, str]
"""Those of a query, by name, as they stand in it."""
Row: TypeAlias = Mapping[str, str | None]
"""A row of a result: texts, by column."""

_OLD: Final = 2
"""FrozenTransactionId: what wrote all rows of the catalog."""
_ARGUMENT: Final = re.compile(r"%(?:\((\w+)\)s|%)")
_LITERAL: Final = rf"NULL|true|false|-?\d+|{TEXT}"
_CAST: Final = r"(?:::\w+(?:\[\])?)?"
"""What psycopg may write after a literal."""


def catalog_answer(asker: Asker, words: str) -> Result | None:
    """Return what answers a query of the catalog, with single spaces outside of quotes; None for what is none."""
    for query, reply in REPLIES.items():
        if match := _form(query, asker.feed.about.server_version).fullmatch(words):
            rows = [[row[name] for name in query.columns] for row in reply(asker, match.groupdict())]
            return Result("SELECT", list(query.columns.items()), rows)
    return None


@cache
def _form(query: CatalogQuery, server_version: int) -> re.Pattern[str]:
    """Return the form that a query has with any arguments, which are its groups."""
    text, parts, end, seen = spaced(query.sql(server_version)), list[str](), 0, set[str]()
    for match in _ARGUMENT.finditer(text):
        parts.append(re.escape(text[end : match.start()]))
        name, end = match[1], match.end()
        if name is None:
            parts.append("%")
        else:
            parts.append((rf" ?(?P={name})" if name in seen else rf" ?(?P<{name}>{_LITERAL})") + _CAST)
            seen.add(name)
    return known("".join(parts) + re.escape(text[end:]))


def _publication_names(asker: Asker, arguments: Arguments) -> Iterable[Row]:
    return [{"name": name} for name in _wanted(asker, arguments)]


def _publications(asker: Asker, arguments: Arguments) -> Iterable[Row]:
    as_usual = {"without_identity": "{}", "unsent": "{}", "with_sequences": "f", "without_tables": "f"}
    return [{"name": name, "operations": _operations(asker, name), **as_usual} for name in _wanted(asker, arguments)]


def _operations(asker: Asker, name: str) -> str:
    return "{" + ",".join(asker.feed.operations(name)) + "}"


def _publication_facts(asker: Asker, arguments: Arguments) -> Iterable[Row]:
    for name in _wanted(asker, arguments):
        tables = _as_described(asker, asker.feed.published([name]))
        yield {
            "publication": name,
            "operations": _operations(asker, name),
            "via_root": "t" if any(table.via_root for table in tables) else "f",
            "all_tables": "t",
            "generated": "f",
            "tables": json.dumps([_member(table) for table in tables]),
            "unsent": None,
            "excluded": None,
        }


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


def _table_facts(asker: Asker, arguments: Arguments) -> Iterable[Row]:
    found = _as_described(asker, asker.feed.published(_there(asker)))
    tables = {table.relation_oid: table for table in (*described_tables(asker.feed.history, [""]), *found)}
    asked = {int(number) for number in re.findall(r"\d+", arguments["oids"])}
    return [_facts(tables[oid]) for oid in sorted(asked & tables.keys())]


def _facts(table: ListedTable) -> Row:
    return {
        "oid": str(table.relation_oid),
        "schema": table.namespace,
        "name": table.name,
        "replica_identity": table.replica_identity,
        "identity": None,  # which columns its key has that are not published, the log may not know
        "created": str(_OLD),
        "filenodes": json.dumps([[table.relation_oid, table.relation_oid]]),
        "attached": "[]",
        "joined": "[]",
        "truncated": "[]",
        "columns": json.dumps([_column(each.number, each.name, each.type, each.modifier) for each in table.columns]),
    }


def _column(number: int, name: str, kind: int, modifier: int) -> dict[str, Any]:
    described = {"number": number, "name": name, "type": kind, "modifier": modifier, "xmin": _OLD}
    return described | {"dropped": False, "generated": None, "default": False, "missing": None, "recent": False}


def _published_tables(asker: Asker, arguments: Arguments) -> Iterable[Row]:
    """Refuse what a capture asks before it copies tables: before it makes a slot for that, and when it has one."""
    raise no_copies("nothing can be copied")


def _slots(asker: Asker, arguments: Arguments) -> Iterable[Row]:
    names = [name for name in asker.slots.names() if arguments["slot"] in ("NULL", f"'{name}'")]
    return [{"slot": json.dumps(_slot(asker, name)), "xmin_age": None, "reader": None} for name in names]


def _slot(asker: Asker, name: str) -> dict[str, Any]:
    slot = asker.slots.get(name)
    assert slot is not None
    position = str(Lsn(slot.confirmed))
    facts = {"slot_name": name, "plugin": slot.plugin, "slot_type": "logical", "database": asker.feed.about.database}
    state = {"temporary": slot.temporary, "active": asker.slots.is_active(name), "active_pid": None}
    places = {"restart_lsn": position, "confirmed_flush_lsn": position, "wal_status": "reserved"}
    return {**facts, **state, **places, "two_phase": slot.two_phase, "failover": slot.failover}


def _snapshot(asker: Asker, arguments: Arguments) -> Iterable[Row]:
    """Answer that all transactions have ended which are served."""
    following = max(asker.feed.order().last_xid, _OLD) + 1
    return [{"snapshot": f"{following}:{following}:"}]


def _position(asker: Asker, arguments: Arguments) -> Iterable[Row]:
    return [{"lsn": str(int(asker.feed.position))}]


def _digest(asker: Asker, arguments: Arguments) -> Iterable[Row]:
    found = asker.feed.published(_there(asker))
    return [{"digest": f"{len(asker.feed.history.descriptions)} {hash(tuple(found))}"}]


def _wanted(asker: Asker, arguments: Arguments) -> list[str]:
    names = _array_items(arguments["publications"])
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


REPLIES: Final[Mapping[CatalogQuery, Callable[[Asker, Arguments], Iterable[Row]]]] = {
    SENDER_TIMEOUT: lambda asker, _: [{"seconds": str(asker.wal_sender_timeout)}],
    # The process that sends is no synchronous one, and at work for nobody.
    SENDER_STATE: lambda *_: [{"is_synchronous": "f", "is_at_work": "f"}],
    WORKING_PROCESS: lambda *_: [],
    IS_STANDBY: lambda *_: [{"is_standby": "f"}],
    FLUSHED_LSN: _position,
    INSERTED_LSN: _position,
    CURRENT_SNAPSHOT: _snapshot,
    SLOTS: _slots,
    BLOCKING_WRITER: lambda *_: [],
    PUBLICATION_NAMES: _publication_names,
    PUBLICATIONS: _publications,
    PUBLICATION_FACTS: _publication_facts,
    PUBLISHED_TABLES: _published_tables,
    TABLE_FACTS: _table_facts,
    TYPE_FACTS: lambda *_: [],
    DIGEST: _digest,
    LOCKED_TABLES: lambda *_: [],
}
"""The queries, and what answers each."""
