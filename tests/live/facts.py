"""What a recording must contain: a table of facts about single messages."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pgoutput_construct as pgo
from tests.live.items import Item

__all__ = ["FACTS", "Fact"]


@dataclass(frozen=True, slots=True)
class Fact:
    """Something seen in some message of every recording whose traits hold all of ``needs``."""

    name: str
    test: Callable[[Item], bool]
    needs: frozenset[str] = frozenset()
    only: bool = False
    """True: it is never seen in another recording."""


def _fact(name: str, test: Callable[[Item], bool], *needs: str, only: bool = False) -> Fact:
    return Fact(name, test, frozenset(needs), only)


def _of(kinds: str, test: Callable[[Any], bool] = lambda message: True) -> Callable[[Item], bool]:
    return lambda item: item.kind in kinds and test(item.message)


def _in_stream(kinds: str, test: Callable[[Any], bool] = lambda message: True) -> Callable[[Item], bool]:
    return lambda item: item.in_stream and item.kind in kinds and test(item.message)


def _value(test: Callable[[Any], bool]) -> Callable[[Item], bool]:
    return lambda item: any(map(test, item.values))


def _is_text(value: Any) -> bool:
    return isinstance(value, bytes) and not isinstance(value, pgo.Binary)


def _is(text: bytes) -> Callable[[Any], bool]:
    return lambda value: _is_text(value) and value == text


def _has(field: str, expected: object) -> Callable[[Any], bool]:
    return lambda message: getattr(message, field) == expected


def _flags(message: Any) -> set[int]:
    return {column.flags for column in message.columns}


ODD_TABLE = 'Straße "x". 表'
ODD_COLUMNS = ("a b", "c.d", "it's", 'quo"te', "ключ")

FACTS = (
    # Rows
    _fact("NULL", _value(lambda value: value is None)),
    _fact("empty value", _value(lambda value: value == b"")),
    _fact("text value", _value(_is_text)),  # in binary mode too: aclitem has no binary output
    _fact("binary value", _value(lambda value: isinstance(value, pgo.Binary)), "binary", only=True),
    _fact("bytea with every byte", _value(lambda value: value == bytes(range(256))), "binary", only=True),
    *(
        _fact(f"value {text!r}", _value(_is(text)), "text")
        for text in (
            b"NaN",
            b"infinity",
            b"-infinity",
            b"0044-03-15 BC",
            b"{1,NULL,-3}",
            "glücklich".encode(),
        )
    ),
    _fact("unchanged TOAST in an update", _of("U", lambda m: pgo.UNCHANGED in m.new)),
    _fact("update turned insert with unchanged TOAST", _of("I", lambda m: pgo.UNCHANGED in m.new)),
    _fact("update without an old row", _of("U", lambda m: m.old_kind is None and m.old is None)),
    _fact("update with the old key", _of("U", lambda m: m.old_kind == "K")),
    _fact("update with the old row", _of("U", lambda m: m.old_kind == "O")),
    _fact("delete with the key", _of("D", lambda m: m.old_kind == "K")),
    _fact("delete with the row", _of("D", lambda m: m.old_kind == "O")),
    _fact("row without columns", _of("I", lambda m: m.new == ())),
    # Relations and types
    *(_fact(f"replica identity {letter}", _of("R", _has("replica_identity", letter))) for letter in "dnfi"),
    _fact("every column is key", _of("R", lambda m: m.replica_identity == "f" and _flags(m) == {1})),
    _fact("no column is key", _of("R", lambda m: m.replica_identity == "d" and _flags(m) == {0})),
    _fact("relation without columns", _of("R", lambda m: m.columns == ())),
    _fact("odd names", _of("R", lambda m: m.namespace == "Odd schema.ü" and m.name == ODD_TABLE)),
    _fact("odd column names", _of("R", lambda m: tuple(c.name for c in m.columns) == ODD_COLUMNS)),
    _fact("odd type name", _of("Y", lambda m: m.namespace == "Odd schema.ü" and m.name == 'mood. "ü"')),
    _fact("enum", _of("Y", lambda m: m.name == "mood")),
    _fact("domain under its base type's name", _of("Y", lambda m: (m.namespace, m.name) == ("", "varchar"))),
    _fact("composite", _of("Y", lambda m: m.name == "point_3d")),
    _fact("array of composites", _of("Y", lambda m: m.name == "_point_3d")),
    _fact("type modifier", _of("R", lambda m: any(c.type_modifier > 0 for c in m.columns))),
    _fact("partition root", _of("R", lambda m: m.name == "rooted")),
    _fact("partition leaf", _of("R", lambda m: m.name == "leafed_2")),
    _fact("column list", _of("R", lambda m: m.name == "listed" and len(m.columns) == 2)),
    _fact("generated not sent", _of("R", lambda m: m.name == "generated" and len(m.columns) == 2), "server 16"),
    _fact(
        "stored generated sent",
        _of("R", lambda m: m.name == "generated" and len(m.columns) == 3),
        "server 18",
    ),
    # Truncate, Message, Origin
    *(_fact(f"truncate with options {options}", _of("T", _has("options", options))) for options in range(4)),
    _fact("truncate of several tables", _of("T", lambda m: len(m.relation_oids) > 1)),
    _fact("transactional message", _of("M", lambda m: m.flags == 1)),
    _fact("message outside transactions", _of("M", lambda m: m.flags == 0 and m.xid is None)),
    _fact("raw bytes in a message", _of("M", lambda m: m.prefix == "prefix ü" and m.content == b"\x00\xff\x80")),
    _fact("empty message", _of("M", lambda m: m.prefix == "" and m.content == b"")),
    _fact("origin with its position", _of("O", lambda m: str(m.origin_lsn) == "16/B374D848"), "whole"),
    _fact(
        "origin's time",
        _of("BS", lambda m: str(getattr(m, "commit_time", "")).startswith("2001-02-03")),
        "whole",
    ),
    # Streams
    *(
        _fact(f"{kind} in a stream", _in_stream(kind, lambda m: m.xid is not None), "streaming", only=True)
        for kind in "RYIUDTM"
    ),
    _fact("origin in a stream", _in_stream("O", lambda m: m.origin_lsn == 0), "streaming", only=True),
    _fact("first segment", _of("S", lambda m: m.first_segment == 1), "streaming", only=True),
    _fact("later segment", _of("S", lambda m: m.first_segment == 0), "streaming", only=True),
    _fact("stream commit", _of("c"), "streaming", only=True),
    _fact(
        "a change of a subtransaction",
        lambda i: i.in_stream and i.kind in "IUDRYT" and i.message.xid != i.stream_xid,
        "streaming",
        only=True,
    ),
    _fact("abort of a subtransaction", _of("A", lambda m: m.xid != m.subxid), "streaming"),
    _fact("abort of a transaction", _of("A", lambda m: m.xid == m.subxid), "streaming", only=True),
    _fact("abort's pair", _of("A", lambda m: m.abort_lsn and m.abort_time), "parallel", only=True),
    _fact(
        "abort without the pair",
        _of("A", lambda m: m.abort_lsn is None and m.abort_time is None),
        "not parallel",
    ),
    # PostgreSQL 18 sends a savepoint's abort although nothing of it was sent and streaming is off.
    _fact("abort unasked", _of("A"), "server 18"),
    # Two-phase commit
    _fact("begin prepare", _of("b"), "two-phase", "whole", only=True),
    _fact("prepare", _of("P"), "two-phase", "whole", only=True),
    _fact("stream prepare", _of("p"), "two-phase", "streaming", only=True),
    _fact("commit prepared", _of("K"), "two-phase", only=True),
    _fact("rollback prepared", _of("r"), "two-phase", only=True),
    _fact("odd gid", _of("K", lambda m: m.gid == "gid ü 'quoted'"), "two-phase", only=True),
)
"""Every fact that recordings are checked for."""
