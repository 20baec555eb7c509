"""The options of START_REPLICATION, checked as pgoutput_startup() does."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pgoutput_construct.errors import EncodeError
from pgoutput_construct.publisher._feed.feed import About
from pgoutput_construct.publisher._server.replication_commands import OFF_WORDS, ON_WORDS, StartReplication
from pgoutput_construct.publisher.refusals import Refusal
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.engine import build
from pgoutput_construct.wire.options import LAYOUT_OPTIONS, STATE_PARAMETERS, combinations, problems
from pgoutput_construct.wire.protocol import OPTIONS, PROTOCOL_VERSIONS, ReplicationOptions
from pgoutput_construct.wire.spec_metadata import Option
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["named_publications", "requested_options", "unknown_publications", "unmade"]

_ON: Final = frozenset((True, "on"))
_OFF: Final = frozenset((False, "off"))
_SWITCHED: Final = {**dict.fromkeys(ON_WORDS, _ON), **dict.fromkeys(OFF_WORDS, _OFF)}
"""The words for a boolean, with the values of options that they mean."""


def requested_options(command: StartReplication, about: About, gets_copies: bool = False) -> ReplicationOptions:
    """Return the options that a client requests; raise Refusal for those that a server of this version rejects.

    Args:
        command: The client's START_REPLICATION.
        about: The server that the feed comes from.
        gets_copies: Whether the client gets copies of tables, in transactions that no server has sent.

    Source: ``parse_output_parameters()`` and ``pgoutput_startup()`` in ``pgoutput.c``.
    """
    major = about.server_version // 10000
    given = {name: _value(name, text, major) for name, text in command.options.items()}
    for needed in ("proto_version", "publication_names"):
        if needed not in given:
            raise Refusal("22023", f'option "{needed}" missing')
    names = _names(str(given.pop("publication_names")))
    _check_version(given["proto_version"], major)
    for problem in problems(given):
        raise Refusal("22023", problem)
    if len(unknown := unknown_publications(names, about)) == len(names):
        hint = f"The publications served are: {', '.join(about.publications)}."
        raise Refusal("42704", f'publication "{unknown[0]}" does not exist', hint=hint)
    options = ReplicationOptions(**given)
    _check_made(options, about, gets_copies)
    return options


def named_publications(command: StartReplication) -> list[str]:
    """Return the publications that a client names; raise Refusal for a list that cannot be parsed."""
    return _names(command.options.get("publication_names") or "")


def unknown_publications(names: Sequence[str], about: About) -> list[str]:
    """Return which of the publications that a client names do not exist.

    If others do, a server notices them when it decodes the first change (LoadPublications() in ``pgoutput.c``).
    """
    return [name for name in names if about.publications and name not in about.publications]


def _value(name: str, text: str | None, major: int) -> Any:
    option = OPTIONS.get(name)
    if option is None or option.server > major:
        raise Refusal("42601", f"unrecognized pgoutput option: {name}")
    if option.values:
        return _choice(name, text, option, major)
    if type(option.default) is int:
        return _number(name, text)
    return text or ""


def _choice(name: str, text: str | None, option: Option, major: int) -> Any:
    """Return a value of an option by name; for a boolean option, any word that defGetBoolean() accepts."""
    known = [value for value, facts in option.values.items() if facts.server <= major]
    is_switch = not _ON.isdisjoint(known)
    word = (text or ("true" if is_switch else "")).lower()
    for value in (*_SWITCHED.get(word, ()), word):
        if value in known:
            return value
    if not is_switch:
        raise Refusal("22023", f'unrecognized {name} value: "{text}"')
    others = "".join(f' or "{value}"' for value in known if value not in _ON | _OFF)
    raise Refusal("42601", f"{name} requires a Boolean value{others}")


def _number(name: str, text: str | None) -> int:
    if text is None or not text.isascii() or not text.isdigit():
        raise Refusal("22023", f"invalid {name}")
    digits = text.lstrip("0") or "0"
    if len(digits) > 10 or int(digits) > 0xFFFF_FFFF:
        raise Refusal("22023", f'{name} "{text:.40}" out of range')
    return int(digits)


def _check_version(version: int, major: int) -> None:
    known = [number for number, server in PROTOCOL_VERSIONS.items() if server <= major]
    if version > max(known):
        problem = f"client sent proto_version={version} but server only supports protocol {max(known)} or lower"
        raise Refusal("0A000", problem)
    if version < min(known):
        problem = f"client sent proto_version={version} but server only supports protocol {min(known)} or higher"
        raise Refusal("0A000", problem)


def unmade(about: About) -> str | None:
    """Return a field that this publisher cannot fill under some options of its server version; None if there is none.

    That is so when a later protocol version has added a field. The text names the message, the field and the options.
    """
    major = about.server_version // 10000
    layouts = {tuple(getattr(each, name) for name in LAYOUT_OPTIONS) for each in combinations()}
    for values in sorted(layouts, key=repr):
        layout = dict(zip(LAYOUT_OPTIONS, values, strict=True))
        servers = [PROTOCOL_VERSIONS[layout["proto_version"]]]
        for name in LAYOUT_OPTIONS:
            option = OPTIONS[name]
            if option.values and layout[name] != option.default:  # a default is no newer than what it is the default of
                servers.append(option.values[layout[name]].server)
        if max(servers) <= major and (problem := _problem(layout, about)):
            options = ", ".join(f"{name}={value!r}" for name, value in layout.items())
            return f"{problem} with {options} (spec/pgoutput.yaml)"
    return None


def _check_made(options: ReplicationOptions, about: About, gets_copies: bool) -> None:
    """Refuse options under which messages have fields that this publisher cannot fill."""
    problem = _problem({name: getattr(options, name) for name in LAYOUT_OPTIONS}, about, gets_copies)
    if problem:
        hint = "Use an older protocol version, or omit the newer options."
        raise Refusal("0A000", f"this publisher cannot send {problem} with these options", hint=hint)


def _problem(layout: Mapping[str, Any], about: About, gets_copies: bool = False) -> str | None:
    """Return the path of a field that this publisher cannot fill under some options; None if there is none."""
    outside: dict[str, Any] = dict.fromkeys(STATE_PARAMETERS, False)
    if about.is_laid_out_by(layout):  # messages are sent as they were received
        made: tuple[m.PgoutputMessage, ...] = _OF_COPIES if gets_copies else ()
    else:
        made = (*_WHOLE, *(_STREAMED if layout["streaming"] != "off" else ()), *_CONVERTED)
    for message in made:
        try:
            build(message, **layout, **outside)
        except EncodeError as error:
            return error.path
    return None


_LSN: Final = Lsn(1)
_TIME: Final = Timestamp(0)
_WHOLE: Final = (m.Begin(_LSN, _TIME, 3), m.Commit(_LSN, _LSN, _TIME))
_STREAMED: Final = (m.StreamStart(3, 1), m.StreamStop(), m.StreamCommit(3, _LSN, _LSN, _TIME))
"""Begins and ends that it builds itself when the client's options differ from those of the feed."""
_CONVERTED: Final = (
    m.Relation(None, 1, "", "t", "d", (m.RelationColumn(0, "c", 23, -1),)),
    m.Insert(None, 1, (None,)),
    m.Truncate(None, 0, (1,)),
)
"""Messages that it rebuilds then."""
_OF_COPIES: Final = (*_WHOLE, _CONVERTED[-1])
"""Messages around the rows of a copy, which no server has sent."""


def _names(text: str) -> list[str]:
    """Return the names in a list of identifiers, as SplitIdentifierString() does."""
    names, rest = list[str](), text.strip()
    while rest:
        if rest.startswith('"'):
            end = _end_of_quotes(rest)
            name, rest = rest[1:end].replace('""', '"'), rest[end + 1 :].lstrip()
        else:
            name, comma, after = rest.partition(",")
            name, rest = name.strip().lower(), comma + after
        names.append(name)
        if rest and not rest.startswith(","):
            raise Refusal("42602", "invalid publication_names syntax")
        rest = rest[1:].lstrip()
    if not names or not all(names):
        raise Refusal("42602", "invalid publication_names syntax")
    return names


def _end_of_quotes(text: str) -> int:
    at = 1
    while (at := text.find('"', at)) >= 0:
        if text[at : at + 2] != '""':
            return at
        at += 2
    raise Refusal("42602", "invalid publication_names syntax")
