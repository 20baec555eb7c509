"""What a publisher answers to the SQL of its clients: the few queries that subscribers and drivers send.

It has no SQL engine: it knows queries by their form. Source: ``subscriptioncmds.c`` (fetch_table_list(),
check_publications()), ``libpqwalreceiver.c`` and ``streamutil.c`` of PostgreSQL.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pgoutput_construct.publisher.asking import ESCAPING, QUOTED, TEXTS, Answer, Asker, Rows, known, listed, spaced
from pgoutput_construct.publisher.catalog_answers import catalog_answer
from pgoutput_construct.publisher.encodings import UTF8, find_encoding
from pgoutput_construct.publisher.published_tables import ListedTable, without_partitions
from pgoutput_construct.publisher.refusals import Refusal
from pgoutput_construct.publisher.results import Result
from pgoutput_construct.publisher.slot_answers import SLOT_ANSWERS
from pgoutput_construct.publisher.slots import ClientTable

__all__ = ["answer", "show", "statements"]


_SHOWN: Final = {"data_directory_mode": "0700", "wal_level": "logical", "wal_segment_size": "16MB"}
"""What replication clients ask for beside the settings that each client is told (``streamutil.c``)."""
_MOST_SETTINGS: Final = 200
_STATEMENT: Final = re.compile(rf"""(?:{ESCAPING}|{QUOTED}|[^;'"])+""", re.DOTALL)


def statements(text: str) -> list[str]:
    """Return the statements of a query, which semicolons outside of quotes end; raise Refusal for an open quote."""
    parts, end = list[str](), 0
    for match in _STATEMENT.finditer(text):
        parts.append(match[0].strip())
        if text[end : match.start()].strip(";"):
            break
        end = match.end()
    if text[end:].strip(";"):
        raise Refusal("42601", f'unterminated quoted string at or near "{text[end : end + 20]}"')
    return [part for part in parts if part]


def answer(asker: Asker, statement: str) -> Result:
    """Return the result of a statement; raise Refusal for one that is not known."""
    words = spaced(statement)
    for pattern, reply in (*_ANSWERS, *SLOT_ANSWERS):
        if match := pattern.fullmatch(words):
            return reply(asker, match)
    if (found := catalog_answer(asker, words)) is not None:
        return found
    raise Refusal(
        "0A000",
        f"this publisher does not know the query: {words[:200]}",
        hint="It serves a stream and has no SQL engine; it answers what subscriptions and replication clients ask.",
    )


def _keep(asker: Asker, name: str, value: str) -> None:
    """Keep a setting; of invented ones (PostgreSQL knows those with a dot) only so many, so that memory is bounded."""
    if name not in asker.settings and len(asker.settings) >= _MOST_SETTINGS:
        raise Refusal("54000", f"this publisher keeps {_MOST_SETTINGS} settings of a session at most")
    if name == "client_encoding":
        value = find_encoding(UTF8.name if value.upper() == "DEFAULT" else value).name
    asker.settings[name] = value


def _set_config(asker: Asker, match: re.Match[str]) -> Result:
    _keep(asker, match["name"].lower(), match["value"])
    return Result("SELECT", [("set_config", "text")], [[match["value"]]])


def _set(asker: Asker, match: re.Match[str]) -> Result:
    _keep(asker, match["name"].lower(), match["value"].strip("'\""))
    return Result("SET")


def _set_names(asker: Asker, match: re.Match[str]) -> Result:
    _keep(asker, "client_encoding", match["value"].strip("'\""))
    return Result("SET")


def _show(asker: Asker, match: re.Match[str]) -> Result:
    return show(asker.settings, match["name"])


def show(settings: Mapping[str, str], name: str) -> Result:
    """Return a setting as SHOW gives it; raise Refusal for one that there is not."""
    there = {key.lower(): value for key, value in {**_SHOWN, **settings}.items()}
    if name.lower() not in there:
        raise Refusal("42704", f'unrecognized configuration parameter "{name}"')
    return Result("SHOW", [(name.lower(), "text")], [[there[name.lower()]]])


def _publications(asker: Asker, match: re.Match[str]) -> Result:
    there = asker.feed.about.publications
    rows: Rows = [[name] for name in listed(match["names"]) if not there or name in there]
    return Result("SELECT", [("pubname", "name")], rows)


def _tables_by_names(asker: Asker, match: re.Match[str]) -> Result:
    """Answer for servers before 16: the view pg_publication_tables, with the columns where 15 and later ask."""
    with_columns = "attnames" in match[0]
    columns = [("schemaname", "name"), ("tablename", "name"), *_kind(match), *[("attnames", "_name")] * with_columns]
    found = (
        (
            table.namespace,
            table.name,
            *("r" for _ in _kind(match)),
            *[_array([column.name for column in table.columns])] * with_columns,
        )
        for table in _tables(asker, match)
    )
    return Result("SELECT", columns, [*dict.fromkeys(found)])


def _tables_by_numbers(asker: Asker, match: re.Match[str]) -> Result:
    """Answer for servers from 16 on: pg_get_publication_tables() of all publications, with the columns' numbers."""
    columns = [("nspname", "name"), ("relname", "name"), *_kind(match), ("attrs", "int2vector")]
    found = (
        (
            table.namespace,
            table.name,
            *("r" for _ in _kind(match)),
            " ".join(str(column.number) for column in table.columns),
        )
        for table in without_partitions(_tables(asker, match))
    )
    return Result("SELECT", columns, [*dict.fromkeys(found)])


def _kind(match: re.Match[str]) -> list[tuple[str, str]]:
    """Return the column with the kind of relation, for which subscribers ask since 19: the stream has no sequences."""
    return [("relkind", "char")] * ("relkind" in match[0])


def _tables(asker: Asker, match: re.Match[str]) -> Sequence[ListedTable]:
    """Return the tables of the publications that a query names, as they are now: a capture may have written more."""
    asker.feed.refresh()
    there = asker.feed.about.publications
    names = [name for name in dict.fromkeys(listed(match["names"])) if not there or name in there]
    asker.feed.scope(names)
    tables = asker.feed.published(names)
    if asker.feed.repeats:
        described = asker.feed.described_names()
        noted = {ClientTable(each.relation_oid, (each.namespace, each.name)) for each in tables}
        listing = {table: described.get(table.relation_oid, ()) for table in noted}
        asker.slots.listed(asker.settings.get("application_name", ""), listing)
    return tables


def _foreign_origins(asker: Asker, match: re.Match[str]) -> Result:
    """Answer check_publications_origin(): which publications have tables that are subscribed to from elsewhere.

    It warns of copies of rows that have an origin. There are no copies here but those of the stream, and a log does not
    say which subscriptions its server has.
    """
    return Result("SELECT", [("pubname", "name")], [])


def _array(names: Sequence[str]) -> str:
    quoted = (name.replace("\\", "\\\\").replace('"', '\\"') for name in names)
    return "{" + ",".join(f'"{name}"' for name in quoted) + "}"


def _one(name: str, kind: str, value: Callable[[Asker], str]) -> Answer:
    return lambda asker, _: Result("SELECT", [(name, kind)], [[value(asker)]])


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
"""The queries that are known, by their form with single spaces, and what answers each."""
