"""Answers the SQL of clients: the few queries that subscribers, drivers and our own capture send.

There is no SQL engine: a query is recognised by its text, with whitespace normalized. Three groups are known: settings
and the queries of subscriptions (``_ANSWERS``), our capture's named queries (``catalog_queries``, ``REPLIES``), and
functions that create and drop slots (``_SLOT_ANSWERS``). Source: ``subscriptioncmds.c`` (fetch_table_list(),
check_publications()), ``libpqwalreceiver.c`` and ``streamutil.c`` of PostgreSQL.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

from pgoutput_construct.catalog_queries import (
    BLOCKING_WRITER,
    COMMENTS,
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
from pgoutput_construct.publisher._feed.encodings import UTF8, find_encoding
from pgoutput_construct.publisher._server.query_results import (
    ESCAPING,
    QUOTED,
    TEXT,
    TEXTS,
    Answer,
    QueryContext,
    Result,
    Rows,
    known,
    listed,
    spaced,
)
from pgoutput_construct.publisher._server.replication_commands import ON_WORDS
from pgoutput_construct.publisher.published_tables import ListedTable, described_tables, without_partitions
from pgoutput_construct.publisher.refusals import Refusal, no_copies
from pgoutput_construct.publisher.slots import PLUGIN, ClientTable
from pgoutput_construct.wire.types import Lsn

__all__ = ["REPLIES", "answer", "show", "statements"]


_SHOWN: Final = {"data_directory_mode": "0700", "wal_level": "logical", "wal_segment_size": "16MB"}
"""Settings that replication clients request in addition to those in ParameterStatus (``streamutil.c``)."""
_MOST_SETTINGS: Final = 200
_STATEMENT: Final = re.compile(rf"""(?:{ESCAPING}|{QUOTED}|[^;'"])+""", re.DOTALL)


def statements(text: str) -> list[str]:
    """Split a query into statements at semicolons outside of quotes; raise Refusal for an open quote."""
    parts, end = list[str](), 0
    for match in _STATEMENT.finditer(text):
        parts.append(match[0].strip())
        if text[end : match.start()].strip(";"):
            break
        end = match.end()
    if text[end:].strip(";"):
        raise Refusal("42601", f'unterminated quoted string at or near "{text[end : end + 20]}"')
    return [part for part in parts if part]


def answer(context: QueryContext, statement: str) -> Result:
    """Return the result of a statement; raise Refusal for an unknown one."""
    words = spaced(statement)
    for pattern, reply in (*_ANSWERS, *_SLOT_ANSWERS):
        if match := pattern.fullmatch(words):
            return reply(context, match)
    if (found := _catalog_answer(context, words)) is not None:
        return found
    raise Refusal(
        "0A000",
        f"this publisher does not know the query: {words[:200]}",
        hint="It has no SQL engine; it answers the queries of subscriptions and replication clients.",
    )


def _store(context: QueryContext, name: str, value: str) -> None:
    """Store a setting; their number is limited, since a client can invent names (custom settings with a dot)."""
    if name not in context.settings and len(context.settings) >= _MOST_SETTINGS:
        raise Refusal("54000", f"this publisher stores at most {_MOST_SETTINGS} settings of a session")
    if name == "client_encoding":
        value = find_encoding(UTF8.name if value.upper() == "DEFAULT" else value).name
    context.settings[name] = value


def _set_config(context: QueryContext, match: re.Match[str]) -> Result:
    _store(context, match["name"].lower(), match["value"])
    return Result("SELECT", [("set_config", "text")], [[match["value"]]])


def _set(context: QueryContext, match: re.Match[str]) -> Result:
    _store(context, match["name"].lower(), match["value"].strip("'\""))
    return Result("SET")


def _set_names(context: QueryContext, match: re.Match[str]) -> Result:
    _store(context, "client_encoding", match["value"].strip("'\""))
    return Result("SET")


def _show(context: QueryContext, match: re.Match[str]) -> Result:
    return show(context.settings, match["name"])


def show(settings: Mapping[str, str], name: str) -> Result:
    """Return the result of SHOW; raise Refusal for an unknown setting."""
    known = {key.lower(): value for key, value in {**_SHOWN, **settings}.items()}
    if name.lower() not in known:
        raise Refusal("42704", f'unrecognized configuration parameter "{name}"')
    return Result("SHOW", [(name.lower(), "text")], [[known[name.lower()]]])


def _publications(context: QueryContext, match: re.Match[str]) -> Result:
    there = context.feed.about.publications
    rows: Rows = [[name] for name in listed(match["names"]) if not there or name in there]
    return Result("SELECT", [("pubname", "name")], rows)


def _tables_by_names(context: QueryContext, match: re.Match[str]) -> Result:
    """Answer for servers before 16: the view pg_publication_tables, with its columns for clients from 15 on."""
    with_columns = "attnames" in match[0]
    columns = [("schemaname", "name"), ("tablename", "name"), *_kind(match), *[("attnames", "_name")] * with_columns]
    found = (
        (
            table.namespace,
            table.name,
            *("r" for _ in _kind(match)),
            *[_array([column.name for column in table.columns])] * with_columns,
        )
        for table in _tables(context, match)
    )
    return Result("SELECT", columns, [*dict.fromkeys(found)])


def _tables_by_numbers(context: QueryContext, match: re.Match[str]) -> Result:
    """Answer for servers from 16 on: pg_get_publication_tables() of all publications, with column numbers."""
    columns = [("nspname", "name"), ("relname", "name"), *_kind(match), ("attrs", "int2vector")]
    found = (
        (
            table.namespace,
            table.name,
            *("r" for _ in _kind(match)),
            " ".join(str(column.number) for column in table.columns),
        )
        for table in without_partitions(_tables(context, match))
    )
    return Result("SELECT", columns, [*dict.fromkeys(found)])


def _kind(match: re.Match[str]) -> list[tuple[str, str]]:
    """Return the column relkind, which subscribers request since 19; there are no sequences here."""
    return [("relkind", "char")] * ("relkind" in match[0])


def _tables(context: QueryContext, match: re.Match[str]) -> Sequence[ListedTable]:
    """Return the current tables of the publications in a query, after reading what a capture has written since."""
    context.feed.refresh()
    there = context.feed.about.publications
    names = [name for name in dict.fromkeys(listed(match["names"])) if not there or name in there]
    context.feed.scope(names)
    tables = context.feed.published(names)
    if context.feed.repeats:
        described = context.feed.described_names()
        noted = {ClientTable(each.relation_oid, (each.namespace, each.name)) for each in tables}
        listing = {table: described.get(table.relation_oid, ()) for table in noted}
        context.slots.listed(context.settings.get("application_name", ""), listing)
    return tables


def _foreign_origins(context: QueryContext, match: re.Match[str]) -> Result:
    """Answer check_publications_origin(): the publications with tables that have subscriptions themselves.

    The subscriber warns about copying rows with an origin. Here copies come in the stream, and a log does not know the
    subscriptions of its server.
    """
    return Result("SELECT", [("pubname", "name")], [])


def _array(names: Sequence[str]) -> str:
    quoted = (name.replace("\\", "\\\\").replace('"', '\\"') for name in names)
    return "{" + ",".join(f'"{name}"' for name in quoted) + "}"


def _one(name: str, kind: str, value: Callable[[QueryContext], str]) -> Answer:
    return lambda context, _: Result("SELECT", [(name, kind)], [[value(context)]])


_SCHEMA = r"(?:pg_catalog\.)?"
_ANSWERS: Final[Sequence[tuple[re.Pattern[str], Answer]]] = (
    (known(rf"SELECT {_SCHEMA}set_config\('(?P<name>[^']*)', '(?P<value>[^']*)', (?:true|false)\)"), _set_config),
    (known(r"SET (?:SESSION |LOCAL )?\"?(?P<name>[\w.]+)\"?(?: TO |\s?=\s?)(?P<value>.*)"), _set),
    (known(r"SET (?:SESSION |LOCAL )?NAMES (?P<value>.*)"), _set_names),
    (known(r"SHOW (?P<name>[\w.]+)"), _show),
    (known(r"(?P<command>BEGIN|COMMIT|ROLLBACK)\b.*"), lambda _, match: Result(match["command"].upper())),
    (known(r"SELECT 1"), _one("?column?", "int4", lambda _: "1")),
    (known(rf"SELECT {_SCHEMA}version\(\)"), _one("version", "text", lambda a: a.settings["server_version"])),
    (
        known(rf"SELECT {_SCHEMA}current_database\(\)"),
        _one("current_database", "name", lambda a: a.feed.about.database),
    ),
    (
        known(rf"SELECT t\.pubname FROM pg_catalog\.pg_publication t WHERE t\.pubname IN \((?P<names>{TEXTS})\)"),
        _publications,
    ),
    (
        known(
            r"SELECT DISTINCT t\.schemaname, t\.tablename.* FROM pg_catalog\.pg_publication_tables t"
            rf" WHERE t\.pubname IN \((?P<names>{TEXTS})\)"
        ),
        _tables_by_names,
    ),
    (
        known(
            r"SELECT DISTINCT n\.nspname, c\.relname,(?: c\.relkind,)? gpt\.attrs.*pg_get_publication_tables\("
            rf".* WHERE pubname IN \((?P<names>{TEXTS})\).*"
        ),
        _tables_by_numbers,
    ),
    (
        known(r"SELECT DISTINCT P\.pubname AS pubname FROM pg_publication P, .* JOIN pg_subscription_rel .*"),
        _foreign_origins,
    ),
)
"""Patterns of normalized queries, and the function that answers each."""


Arguments: TypeAlias = Mapping[str, str]
"""The arguments of a query by name, as SQL literals."""
Row: TypeAlias = Mapping[str, str | None]
"""A row of a result: texts by column."""

_OLD: Final = 2
"""FrozenTransactionId: the xmin of all catalog rows here."""
_ARGUMENT: Final = re.compile(r"%(?:\((\w+)\)s|%)")
_LITERAL: Final = rf"NULL|true|false|-?\d+|{TEXT}"
_CAST: Final = r"(?:::\w+(?:\[\])?)?"
"""A cast that psycopg may write after a literal."""


def _catalog_answer(context: QueryContext, words: str) -> Result | None:
    """Return the result of a normalized query in ``catalog_queries``; None for any other."""
    for query, reply in REPLIES.items():
        if match := _pattern(query, context.feed.about.server_version).fullmatch(words):
            rows = [[row[name] for name in query.columns] for row in reply(context, match.groupdict())]
            return Result("SELECT", list(query.columns.items()), rows)
    return None


@cache
def _pattern(query: CatalogQuery, server_version: int) -> re.Pattern[str]:
    """Return the pattern of a query with arbitrary arguments, which are its groups."""
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


def _publication_names(context: QueryContext, arguments: Arguments) -> Iterable[Row]:
    return [{"name": name} for name in _requested_publications(context, arguments)]


def _publication_rows(context: QueryContext, arguments: Arguments) -> Iterable[Row]:
    as_usual = {"without_identity": "{}", "unsent": "{}", "with_sequences": "f", "without_tables": "f"}
    as_usual |= {"other_identity": "{}", "detach_pending": "{}"}
    return [
        {"name": name, "operations": _operations(context, name), **as_usual}
        for name in _requested_publications(context, arguments)
    ]


def _operations(context: QueryContext, name: str) -> str:
    return "{" + ",".join(context.feed.operations(name)) + "}"


def _publication_facts(context: QueryContext, arguments: Arguments) -> Iterable[Row]:
    for name in _requested_publications(context, arguments):
        tables = _as_described(context, context.feed.published([name]))
        yield {
            "publication": name,
            "operations": _operations(context, name),
            "via_root": "t" if any(table.via_root for table in tables) else "f",
            "all_tables": "t",
            "generated": "f",
            "written": None,  # the log may not know it
            "tables": json.dumps([_member(table) for table in tables]),
            "unsent": None,
            "excluded": None,
        }


def _as_described(context: QueryContext, tables: Sequence[ListedTable]) -> list[ListedTable]:
    """Return tables with the columns of their latest descriptions, which may be newer than the events in the log.

    A capture relies on the catalog being at least as new as the stream.
    """
    described = {table.relation_oid: table for table in described_tables(context.feed.history, [""])}
    return [table._replace(columns=described.get(table.relation_oid, table).columns) for table in tables]


def _member(table: ListedTable) -> dict[str, Any]:
    numbers = [column.number for column in table.columns]
    named = {"oid": table.relation_oid, "schema": table.namespace, "name": table.name}
    own = {"ancestors": sorted(table.ancestors) or None, "published": numbers}
    return named | {"member": None, "filter": None, "columns": None} | own


def _table_facts(context: QueryContext, arguments: Arguments) -> Iterable[Row]:
    found = _as_described(context, context.feed.published(_there(context)))
    tables = {table.relation_oid: table for table in (*described_tables(context.feed.history, [""]), *found)}
    asked = {int(number) for number in re.findall(r"\d+", arguments["oids"])}
    return [_facts(tables[oid]) for oid in sorted(asked & tables.keys())]


def _facts(table: ListedTable) -> Row:
    return {
        "oid": str(table.relation_oid),
        "schema": table.namespace,
        "name": table.name,
        "replica_identity": table.replica_identity,
        "identity": None,  # the log may not know key columns that are not published
        "created": str(_OLD),
        "filenodes": json.dumps([[table.relation_oid, table.relation_oid]]),
        "attached": "[]",
        "joined": "[]",
        "truncated": "[]",
        "rewritten": "[]",
        "columns": json.dumps([_column(each.number, each.name, each.type, each.modifier) for each in table.columns]),
    }


def _column(number: int, name: str, kind: int, modifier: int) -> dict[str, Any]:
    described = {"number": number, "name": name, "type": kind, "modifier": modifier, "xmin": _OLD}
    return described | {"dropped": False, "generated": None, "default": False, "missing": None, "recent": False}


def _published_tables(context: QueryContext, arguments: Arguments) -> Iterable[Row]:
    """Refuse the query that a capture sends before it copies tables."""
    raise no_copies("nothing can be copied")


def _slots(context: QueryContext, arguments: Arguments) -> Iterable[Row]:
    names = [name for name in context.slots.names() if arguments["slot"] in ("NULL", f"'{name}'")]
    return [{"slot": json.dumps(_slot(context, name)), "xmin_age": None, "reader": None} for name in names]


def _slot(context: QueryContext, name: str) -> dict[str, Any]:
    slot = context.slots.get(name)
    assert slot is not None
    position = str(Lsn(slot.confirmed))
    facts = {"slot_name": name, "plugin": slot.plugin, "slot_type": "logical", "database": context.feed.about.database}
    state = {"temporary": slot.temporary, "active": context.slots.is_active(name), "active_pid": None}
    wal = {"restart_lsn": position, "confirmed_flush_lsn": position, "wal_status": "reserved"}
    return {**facts, **state, **wal, "two_phase": slot.two_phase, "failover": slot.failover}


def _snapshot(context: QueryContext, arguments: Arguments) -> Iterable[Row]:
    """Return a snapshot in which all served transactions have ended."""
    following = max(context.feed.order().last_xid, _OLD) + 1
    return [{"snapshot": f"{following}:{following}:"}]


def _position(context: QueryContext, arguments: Arguments) -> Iterable[Row]:
    return [{"lsn": str(int(context.feed.position))}]


def _digest(context: QueryContext, arguments: Arguments) -> Iterable[Row]:
    found = context.feed.published(_there(context))
    return [{"digest": f"{len(context.feed.history.descriptions)} {hash(tuple(found))}"}]


def _requested_publications(context: QueryContext, arguments: Arguments) -> list[str]:
    names = _array_items(arguments["publications"])
    there = context.feed.about.publications
    return sorted(name for name in names if not there or name in there)


def _array_items(literal: str) -> list[str]:
    """Return the elements of an array literal, as psycopg writes lists: '{shop,"a name"}'."""
    (text,) = listed(literal)
    found = re.findall(r'"((?:[^"\\]|\\.)*)"|([^{},"]+)', text, re.DOTALL)
    return [re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL) or plain for quoted, plain in found]


def _there(context: QueryContext) -> Sequence[str]:
    """Return the publications; if any name is accepted, one that stands for all tables."""
    return context.feed.about.publications or [""]


REPLIES: Final[Mapping[CatalogQuery, Callable[[QueryContext, Arguments], Iterable[Row]]]] = {
    SENDER_TIMEOUT: lambda context, _: [{"seconds": str(context.wal_sender_timeout)}],
    # No standby is synchronous, and the walsender is not decoding for anybody else.
    SENDER_STATE: lambda *_: [{"is_synchronous": "f", "is_at_work": "f"}],
    WORKING_PROCESS: lambda *_: [],
    IS_STANDBY: lambda *_: [{"is_standby": "f"}],
    FLUSHED_LSN: _position,
    INSERTED_LSN: _position,
    CURRENT_SNAPSHOT: _snapshot,
    SLOTS: _slots,
    BLOCKING_WRITER: lambda *_: [],
    PUBLICATION_NAMES: _publication_names,
    PUBLICATIONS: _publication_rows,
    PUBLICATION_FACTS: _publication_facts,
    PUBLISHED_TABLES: _published_tables,
    TABLE_FACTS: _table_facts,
    TYPE_FACTS: lambda *_: [],
    COMMENTS: lambda *_: [],
    DIGEST: _digest,
    LOCKED_TABLES: lambda *_: [],
}
"""Queries, and the function that answers each."""


_ARGUMENTS: Final = ("temporary", "twophase", "failover")
"""The optional arguments of pg_create_logical_replication_slot(), in order."""


def _create(context: QueryContext, match: re.Match[str]) -> Result:
    name, plugin = listed(match["texts"])
    if plugin != PLUGIN:
        raise Refusal("58P01", f'could not access file "{plugin}": only the plugin {PLUGIN} is available')
    given = _arguments(match["given"] or "")
    owner = context.process_id if given["temporary"] else None
    slot = context.slots.create(name, plugin, two_phase=given["twophase"], failover=given["failover"], temporary=owner)
    position = Lsn(slot.confirmed)
    if match["form"].startswith("lsn"):
        return Result("SELECT", [("?column?", "numeric")], [[str(int(position))]])
    if match["form"]:
        return Result("SELECT", [("slot_name", "name"), ("lsn", "pg_lsn")], [[name, str(position)]])
    return Result("SELECT", [("pg_create_logical_replication_slot", "record")], [[f"({name},{position})"]])


def _arguments(text: str) -> dict[str, bool]:
    """Return the optional arguments, positional or named; raise Refusal for unknown ones."""
    found = dict.fromkeys(_ARGUMENTS, False)
    for index, each in enumerate(filter(None, (part.strip().lower() for part in text.split(",")))):
        name, _, value = (word.strip() for word in each.replace(":=", "=>").rpartition("=>"))
        name = name or (_ARGUMENTS[index] if index < len(_ARGUMENTS) else "")
        if name not in found:
            raise Refusal("42883", f"function pg_create_logical_replication_slot() has no argument {each[:40]}")
        found[name] = value.strip("'") in ON_WORDS
    return found


def _drop(context: QueryContext, match: re.Match[str]) -> Result:
    (name,) = listed(match["name"])
    if match["all"] and context.slots.get(name) is None:
        return Result("SELECT", [("pg_drop_replication_slot", "text")], [])
    context.slots.drop(name, context.process_id)
    return Result("SELECT", [("pg_drop_replication_slot", "text")], [[""]])


_FUNCTION: Final = r"(?:pg_catalog\.)?pg_create_logical_replication_slot"
_SLOT_ANSWERS: Final[Sequence[tuple[re.Pattern[str], Answer]]] = (
    (
        known(
            rf"SELECT (?P<form>lsn - '0/0'::pg_lsn FROM |\* FROM |){_FUNCTION}\("
            rf"(?P<texts>{TEXT}, ?{TEXT})(?P<given>(?:,[\w ':=>]+)*)\)"
        ),
        _create,
    ),
    (known(rf"SELECT (?:pg_catalog\.)?pg_drop_replication_slot\((?P<name>{TEXT})\)(?P<all>)"), _drop),
    (
        known(
            r"SELECT pg_drop_replication_slot\(slot_name\) FROM pg_replication_slots"
            rf" (?P<all>WHERE) slot_name = (?P<name>{TEXT})"
        ),
        _drop,
    ),
)
"""Queries, and the function that answers each."""
