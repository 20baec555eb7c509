"""Options and argument types that commands share: those of START_REPLICATION, LSNs, times, tables, addresses."""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from pgoutput_construct.cli.command_table import COMMANDS
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.extras import require
from pgoutput_construct.stream.identifiers import normal_name, split_column, split_list
from pgoutput_construct.wire import Lsn, Timestamp
from pgoutput_construct.wire.options import LAYOUT_OPTIONS, STATE_PARAMETERS, first_with, noun, options
from pgoutput_construct.wire.protocol import OPTIONS, PROTOCOL_VERSIONS, STATES, TRANSITIONS, ReplicationOptions

__all__ = [
    "COLUMNS",
    "FILE_MODE",
    "KEY_VALUE",
    "LISTEN",
    "LOG",
    "LSN",
    "LSN_OR_TIME",
    "MASKING",
    "OPERATIONS",
    "PARTITIONING",
    "RENAMING",
    "REPLACE_ROWS",
    "SECONDS",
    "TABLE",
    "TABLES",
    "TABLE_FORMATS",
    "TIME",
    "WRITE_MODES",
    "Listen",
    "as_arguments",
    "choose",
    "command",
    "first_options_in",
    "in_arguments",
    "is_log",
    "layout_options",
    "replication_options",
    "retention_options",
    "spark_options",
    "state_options",
]

Command = Callable[..., Any]

TABLE_FORMATS: Final = ("parquet", "delta", "iceberg")
"""The formats of tables: the keys of ``spark.formats.FORMATS``, which imports PySpark."""
WRITE_MODES: Final = ("merge-on-read", "copy-on-write")
"""How batches write them: the values of ``WriteMode``, which is in Spark's rooms, too."""

_REPLICATION: Final = tuple(field.name for field in fields(ReplicationOptions))
_NAMES: Final = "|".join((*LAYOUT_OPTIONS, *STATE_PARAMETERS))
_ALL_NAMES: Final = "|".join((*_REPLICATION, *STATE_PARAMETERS))
_KEYWORD: Final = re.compile(rf"\b(?:({_ALL_NAMES})=(?:'(\w+)'|(\w+))|({_NAMES}) (?=\d)(\d+))")
_CALLS: Final[Mapping[str, str]] = {
    "parse_frame(data).data is the message": "pgoutput inspect --frame shows it",
    "parse reads the data of an XLogData frame": "leave out --frame",
}
"""Advice in errors of the Python API, each with its equivalent on the command line."""


class _Needing(click.Command):
    def invoke(self, ctx: click.Context) -> Any:
        require(*COMMANDS[str(self.name)].extras)
        return super().invoke(ctx)


def command(name: str, **attributes: Any) -> Callable[[Command], click.Command]:
    """Make a command, with the attributes of ``click.command``; before it runs, its extras must be installed.

    ``--help`` needs none of them.
    """
    return click.command(name, cls=_Needing, **attributes)


def retention_options(command: Command) -> Command:
    """Add the options of what maintenance retains: ``retain`` in seconds, ``retain_snapshots``."""
    count = click.option(
        "--retain-snapshots",
        type=click.IntRange(min=1),
        default=100,
        show_default=True,
        metavar="NUMBER",
        help="Delta, Iceberg: maximum number of snapshots that are retained, but for those of the last ten minutes.",
    )
    age = click.option(
        "--retain",
        type=click.FloatRange(min=0),
        default=86_400.0,
        show_default="86400, a day",
        metavar="SECONDS",
        help="Delta, Iceberg: how long replaced snapshots and their files are retained, at least ten minutes.",
    )
    return age(count(command))


def spark_options(command: Command) -> Command:
    """Add the options of Spark's session: ``master``, and ``conf``, pairs of names and values."""
    master = click.option(
        "--master", default="local[*]", show_default=True, help="Spark's master, such as spark://host:7077."
    )
    conf = click.option(
        "--conf",
        multiple=True,
        type=KEY_VALUE,
        metavar="NAME=VALUE",
        help="A property of the Spark session, such as spark.driver.memory=4g; can be repeated.",
    )
    return master(conf(command))


def layout_options(default: str) -> Callable[[Command], Command]:
    """Add an option for each option of START_REPLICATION that decides layouts.

    The command receives those that were given as the mapping ``given``; ``default`` is the help for the others.
    """
    return _wire_options({name: f"{default}, else {_default_of(name)}" for name in LAYOUT_OPTIONS})


def replication_options(command: Command) -> Command:
    """Add an option for each option of START_REPLICATION other than the publications, as ``layout_options`` does."""
    chosen = dict.fromkeys(LAYOUT_OPTIONS, "as in the log, else the best that the server supports")
    return _wire_options({name: chosen.get(name, _default_of(name)) for name in _REPLICATION})(command)


def _wire_options(defaults: Mapping[str, str]) -> Callable[[Command], Command]:
    declarations = {name: _declaration(name, default) for name, default in defaults.items()}
    return lambda command: _with_options(command, "given", declarations)


def _default_of(name: str) -> str:
    """Return PostgreSQL's default of an option."""
    default = OPTIONS[name].default
    return "off" if default is False else str(default)


def state_options(command: Command) -> Command:
    """Add a switch for each parameter that the stream state sets; the command receives the mapping ``states``."""
    help_text = "Whether the message is inside a {}.  [default: determined by the messages before it]"
    switches = {
        name: (_switch(name), {"default": None, "help": help_text.format(noun(name))}) for name in STATE_PARAMETERS
    }
    return _with_options(command, "states", switches)


def choose(given: Mapping[str, Any], known: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the options of the layouts: those given, else those of the input (``known``), else PostgreSQL's defaults.

    Raises PgoutputError for options that PostgreSQL would refuse.
    """
    said = {**{name: OPTIONS[name].default for name in LAYOUT_OPTIONS}, **(known or {}), **given}
    chosen = {name: said[name] for name in LAYOUT_OPTIONS}
    options(**chosen)
    return chosen


def first_options_in(states: Mapping[str, bool]) -> dict[str, Any]:
    """Return the options of the first protocol version in which a stream can have these states; empty for none."""
    on = {name for name, value in states.items() if value}
    openers = [
        message
        for message, steps in TRANSITIONS.items()
        if any(on <= STATES[after] and not on <= STATES[before] for before, after in steps.items())
    ]
    return min(map(first_with, openers), key=lambda given: given["proto_version"], default={})


def as_arguments(chosen: Mapping[str, Any]) -> str:
    """Return options as command line arguments; states only if they are on."""
    shown = {name: value for name, value in chosen.items() if value or name not in STATE_PARAMETERS}
    return " ".join(_argument(name, str(value)) for name, value in shown.items())


def in_arguments(text: str) -> str:
    """Return an error text with Python keywords replaced by options: ``proto_version=2`` by ``--proto-version 2``."""
    for call, advice in _CALLS.items():
        text = text.replace(call, advice)
    text = _KEYWORD.sub(lambda match: _argument(match[1] or match[4], match[2] or match[3] or match[5]), text)
    return text.replace(", --", " --")


def _argument(name: str, value: str) -> str:
    if value in ("True", "False"):
        return _switch(name).split("/")[value == "False"]
    return f"{_dashed(name)} {value}"


def _dashed(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _switch(name: str) -> str:
    """Return a switch and its opposite: ``--in-stream/--outside-stream``."""
    opposite = f"outside_{name.removeprefix('in_')}" if name.startswith("in_") else f"no_{name}"
    return f"{_dashed(name)}/{_dashed(opposite)}"


def _declaration(name: str, default: str) -> tuple[str, dict[str, Any]]:
    option = OPTIONS[name]
    described = option.description and f": {option.description[0].lower()}{option.description[1:]}"
    text = f"The option {name} of START_REPLICATION{described or '.'}"
    if set(option.values) == {False, True}:
        return _switch(name), {"help": f"{text}  [default: {default}]", "default": None}
    attributes: dict[str, Any] = {"help": f"{text}  [default: {default}]"}
    kind: click.ParamType[Any] = click.IntRange(min(PROTOCOL_VERSIONS), max(PROTOCOL_VERSIONS))
    return _dashed(name), attributes | {"type": click.Choice([*map(str, option.values)]) if option.values else kind}


def _with_options(command: Command, into: str, declarations: Mapping[str, tuple[str, dict[str, Any]]]) -> Command:
    """Add options to a command, which receives those that were given in the mapping ``into``."""

    @wraps(command)
    def run(**arguments: Any) -> Any:
        values = {name: arguments.pop(name) for name in declarations}
        return command(**arguments, **{into: {name: value for name, value in values.items() if value is not None}})

    for name, (declaration, attributes) in reversed([*declarations.items()]):
        run = click.option(declaration, name, **attributes)(run)
    return run


class _Parsed(click.ParamType[Any]):
    """An argument type whose values a function parses; its ValueError becomes a usage error."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Listen(NamedTuple):
    """The address at which a server listens."""

    host: str
    port: int


def _parse_lsn_or_time(text: str) -> Lsn | Timestamp:
    try:
        return Lsn(text)
    except PgoutputError:
        pass
    try:
        return _parse_time(text)
    except ValueError:
        raise PgoutputError(f"{text!r} is neither an LSN (16/B374D848) nor a time (2026-01-31T12:00+00:00)") from None


def _parse_time(text: str) -> Timestamp:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise PgoutputError(f"{text!r} is not a time such as 2026-01-31T12:00+00:00") from None
    return Timestamp.from_datetime(time if time.tzinfo else time.replace(tzinfo=UTC))


def _parse_listen(text: str) -> Listen:
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 0xFFFF:
        raise PgoutputError(f"{text!r} is not a port: give a number up to 65535, or HOST:PORT")
    return Listen(host.strip("[]") or "127.0.0.1", int(port))


def is_log(source: str) -> bool:
    """Return whether ``source`` is the address of a change log, a directory or a URL, rather than a file."""
    return "://" in source or (source != "-" and Path(source).is_dir())


def _parse_log(text: str) -> str:
    if not is_log(text):
        raise PgoutputError(f"Directory {text!r} does not exist.")
    return text


def _parse_file_mode(text: str) -> int:
    try:
        return int(text, 8)
    except ValueError:
        raise PgoutputError(f"{text!r} is not a file mode such as 0640") from None


def _parse_tables(text: str) -> tuple[str, ...]:
    return tuple(split_list(text))


LSN: Final = _Parsed("lsn", Lsn)
"""An LSN, as PostgreSQL writes it."""
LOG: Final = _Parsed("log", _parse_log)
"""The address of a change log: an existing directory, or a URL."""
LSN_OR_TIME: Final = _Parsed("time|lsn", _parse_lsn_or_time)
"""An LSN, or a time in ISO 8601; UTC without a zone."""
TIME: Final = _Parsed("time", _parse_time)
"""A time in ISO 8601; UTC without a zone."""


def _parse_key_value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ValueError(f"{text!r} must be NAME=VALUE")
    return name, value


def _parse_partitioning(text: str) -> tuple[str, tuple[str, ...]]:
    table, fields = _parse_key_value(text)
    return normal_name(table), tuple(part.strip() for part in re.split(r",(?![^()]*\))", fields))


_COLUMN_VALUE: Final = re.compile(r'((?:"(?:[^"]|"")*"|[^"=])*)=(.*)', re.DOTALL)


def _parse_columns(text: str) -> tuple[str, ...]:
    names = split_list(text)
    for name in names:
        split_column(name)
    return tuple(names)


def _parse_column_value(text: str) -> tuple[str, str]:
    found = _COLUMN_VALUE.fullmatch(text)
    if found is None:
        raise ValueError("it must be TABLE.COLUMN=VALUE")  # without the text: a mask may have a salt
    split_column(found[1])
    return found[1], found[2]


KEY_VALUE: Final = _Parsed("name=value", _parse_key_value)
PARTITIONING: Final = _Parsed("table=field,...", _parse_partitioning)
COLUMNS: Final = _Parsed("table.column,...", _parse_columns)
"""Columns, separated by commas."""
MASKING: Final = _Parsed("table.column=mask", _parse_column_value)
"""A column and its mask."""
RENAMING: Final = _Parsed("table.column=name", _parse_column_value)
"""A column and another name for it."""
LISTEN: Final = _Parsed("[host:]port", _parse_listen)
TABLE: Final = _Parsed("schema.table", normal_name)
"""A table name as in SQL: quoted if it has upper case or special characters."""
FILE_MODE: Final = _Parsed("mode", _parse_file_mode)
"""A file mode in octal, as for chmod."""
OPERATIONS: Final = _Parsed("operation,...", lambda text: tuple(word.strip() for word in text.split(",")))
"""Operations that a publication publishes, separated by commas."""
TABLES: Final = _Parsed("table,...", _parse_tables)
"""Tables, or whole schemas (schema.*), separated by commas."""
SECONDS: Final = click.FloatRange(min=0, min_open=True)
REPLACE_ROWS: Final = (
    "Send a later copy of a table as TRUNCATE and inserts even if its publications exclude deletes or truncates."
    "  [default: such a copy is not sent, and reported]"
)
"""The help of the option --replace-rows."""
