"""Names of tables, judged by PostgreSQL's own parser and its own quoting."""

from typing import Any, Final

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.stream.identifiers import (
    KEYWORDS,
    normal_name,
    qualified_name,
    quote_identifier,
    split_list,
    split_name,
)

_NAMES: Final = (
    *("orders", "Orders", "ORDERS", "select", "Select", "user", "table", "temp", "json_table", "order", "name", "a b"),
    *(
        "1st",
        "_1",
        "$a",
        "a$b",
        "a-b",
        "a.b",
        'q"q',
        '"',
        '""',
        " ",
        "ä",
        "Ä",
        "straße",
        "表",
        "tab\tand\nline",
        "\x1b[1m",
    ),
    *("[bold]x[/bold]", "a,b", "\u0131", "\u0130", "x\u202ey", "\u00a0"),
)
_TEXTS: Final = (
    *(
        "orders",
        "public.orders",
        "Public.Orders",
        '"Public".Orders',
        'a."b""c"',
        " a . b ",
        "\ta\n.\nb",
        "a.b.",
        ".a",
        "",
    ),
    *(
        "a..b",
        '""',
        '"".a',
        '"a',
        'a"b"',
        "a b",
        "1a",
        "a1",
        "$a",
        "a$1",
        "_a",
        "a-b",
        "Ä.Ö",
        "ÄO.x",
        "select",
        "SELECT.x",
    ),
    *('"a.b".c', "a.'b'", "a.b,c", "表.é", "a\u00a0.b", "\u00a0a", "a.b;", "x.\U0001f418", "٣", "a٣", "a.1"),
)


@pytest.mark.differs_by_version
def test_one_form_is_that_of_the_server(server: EmbeddedServer) -> None:
    """Names are quoted where quote_ident() quotes them, and for a later server's keywords."""
    with server.connect() as connection:
        words = dict(connection.execute("SELECT word, catcode <> 'U' FROM pg_get_keywords()"))
        quoted = {word for word, is_quoted in words.items() if is_quoted}
        for name in {*_NAMES, *words} - (KEYWORDS - quoted):
            assert quote_identifier(name) == _asked(connection, "quote_ident", name)
    assert quoted == KEYWORDS if server.version >= 18 else quoted < KEYWORDS


def test_names_are_read_as_the_server_reads_them(server: EmbeddedServer) -> None:
    """Exactly the names that parse_ident() accepts are accepted, with the same result."""
    with server.connect() as connection:
        for text in (*_TEXTS, *map(quote_identifier, _NAMES)):
            assert _read(text) == _parsed(connection, text), text


def _asked(connection: psycopg.Connection[Any], function: str, name: str) -> Any:
    row = connection.execute(f"SELECT {function}(%s)".encode(), [name]).fetchone()
    return row and row[0]


def _parsed(connection: psycopg.Connection[Any], text: str) -> tuple[str, ...] | None:
    try:
        parts = _asked(connection, "parse_ident", text)
    except psycopg.errors.InvalidParameterValue:
        return None
    return tuple(parts) if len(parts) > 1 else ("public", *parts)


def _read(text: str) -> tuple[str, ...] | None:
    try:
        return split_name(text)
    except PgoutputError:
        return None


@given(
    st.text(st.characters(exclude_characters="\0"), min_size=1),
    st.text(st.characters(exclude_characters="\0"), min_size=1),
)
def test_what_is_printed_is_read(namespace: str, name: str) -> None:
    """Every name that is printed can be pasted."""
    printed = qualified_name(namespace, name)
    assert split_name(printed) == (namespace, name)
    assert normal_name(printed) == printed
    assert split_list(f"{printed}, {printed},a") == [printed, printed, "a"]


@pytest.mark.parametrize("text", ["", "a,", ",a", "a,,b", '"a', 'a,"b', '"a"",b'])
def test_lists_that_are_none(text: str) -> None:
    """An empty name, or a quote that is not closed, is an error."""
    with pytest.raises(PgoutputError, match="separate them by commas"):
        split_list(text)


def test_names_of_other_databases_are_refused() -> None:
    """A third part names a database, of which a log has one."""
    with pytest.raises(PgoutputError, match=r"'shop\.public\.orders' does not name a table"):
        split_name("shop.public.orders")
