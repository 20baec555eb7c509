"""The options of the data source: one table of them, and how their texts are read."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from pgoutput_construct.changelog._index.log_index import LogPoint
from pgoutput_construct.columnar import chosen_types
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.spark._log_view.added_columns import PREFIX, check_prefix
from pgoutput_construct.stream.identifiers import normal_name
from pgoutput_construct.wire import Lsn, Timestamp

VIEWS: Final[Mapping[str, str]] = {
    "table": "the changes of one table, typed",
    "changes": "the changes of all tables, with old and new rows as maps of text",
    "transactions": "the committed transactions",
    "messages": "the messages as sent, with the fields of their classes",
    "events": "the events that the capture recorded in addition to the messages",
    "quarantine": "the malformed rows, with the reasons",
    "batches": "one row per micro-batch: its range of seqs",
}
"""The views of a log."""


def _word(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"it is one of {', '.join(words)}")
        return text

    return read


def _number(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("it must be a positive integer")
    return number


def _seq(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("it is the seq of a row of the log")
    return int(text)


def _lsn(text: str) -> Lsn:
    """Read an LSN as PostgreSQL writes it, or as a number, as in ``_commit_lsn``."""
    return Lsn(int(text)) if text.isdecimal() else Lsn(text)


def _names(text: str) -> tuple[str, ...]:
    names = json.loads(text) if text.lstrip().startswith("[") else text.split(",")
    if not all(isinstance(name, str) for name in names):
        raise ValueError("names are separated by commas, or a JSON array of texts")
    return tuple(name if text.startswith("[") else name.strip() for name in names)


def _types(text: str) -> str:
    chosen_types(text)
    return text


def _table(text: str) -> str:
    names = _names(text) if text.startswith("[") else (text,)
    if len(names) != 1:
        raise ValueError("it is one table, or a JSON array of it")
    return normal_name(names[0])


def _time(text: str) -> Timestamp:
    parsed = datetime.fromisoformat(text)
    return Timestamp.from_datetime(parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC))


class SourceOption(NamedTuple):
    """One option."""

    name: str
    read: Callable[[str], Any]
    """Makes its value of a text; raises ValueError for an invalid one."""
    default: str | None
    """The text of its default."""
    meaning: str


OPTIONS: Final = (
    SourceOption("path", str, None, "the log: a directory, or a URL such as s3://bucket/folder"),
    SourceOption("view", _word(*VIEWS), "table", f"the view to read: {', '.join(VIEWS)}"),
    SourceOption(
        "table", _table, None, "the table of the view table: schema.table, in double quotes where SQL requires them"
    ),
    SourceOption("columns", _names, None, "decode only these columns of the table: a,b or a JSON array"),
    SourceOption("types", _types, "", "alternative types of columns, such as numeric=decimal(38,10),uuid=binary"),
    SourceOption("metadataPrefix", check_prefix, PREFIX, "prefix of the metadata columns in the view table"),
    SourceOption(
        "changeColumns",
        _word("pgoutput", "spark"),
        "pgoutput",
        "columns of a change in the view table: pgoutput (_op, _before ...), or spark: one row per image, with "
        "_change_type, _commit_version and _commit_timestamp",
    ),
    SourceOption("asOfSeq", LogPoint.parse, None, "read the log as of this seq"),
    SourceOption("asOfLsn", _lsn, None, "read the log as of this LSN, inclusive, such as 0/16B3748"),
    SourceOption(
        "asOfTime",
        _time,
        None,
        "read the log as of this timestamp: all commits before the first later one; ISO 8601, UTC without a zone",
    ),
    SourceOption("fromLsn", _lsn, None, "only transactions that committed at this LSN or later"),
    SourceOption("untilLsn", _lsn, None, "only transactions that committed at this LSN or earlier"),
    SourceOption("fromSeq", _seq, None, "only transactions that ended at this seq or later; the start of a stream"),
    SourceOption("maxTransactionsPerTrigger", _number, None, "maximum transactions per micro-batch"),
    SourceOption(
        "maxBytesPerTrigger",
        _number,
        None,
        "maximum payload bytes per micro-batch of a log; a single transaction may exceed it",
    ),
    SourceOption(
        "schemaChange", _word("fail", "ignore"), "fail", "if the table of a stream was altered: fail, or ignore"
    ),
    SourceOption("reader", str, None, "name of a stream as a registered reader: prune retains what it has not read"),
    SourceOption("dsn", str, None, "live, instead of path: a server's connection string; omit the password"),
    SourceOption("slot", str, None, "live: a slot of pgoutput, without two_phase and without other readers"),
    SourceOption(
        "publications", _names, None, "live: names, a,b or a JSON array (default: all publications of the database)"
    ),
    SourceOption(
        "badRecords",
        _word("fail", "quarantine"),
        "fail",
        "malformed rows: fail, or quarantine (read them in the view quarantine)",
    ),
)
"""The options."""


@dataclass(frozen=True)
class SourceOptions:
    """Parsed options."""

    path: str | None = field(default=None, repr=False)
    view: str = "table"
    table: str | None = None
    columns: tuple[str, ...] | None = None
    types: str = ""
    metadataPrefix: str = PREFIX  # noqa: N815 - as Spark writes options
    changeColumns: str = "pgoutput"  # noqa: N815
    asOfSeq: LogPoint | None = None  # noqa: N815
    asOfLsn: Lsn | None = None  # noqa: N815
    asOfTime: Timestamp | None = None  # noqa: N815
    fromLsn: Lsn | None = None  # noqa: N815
    untilLsn: Lsn | None = None  # noqa: N815
    fromSeq: int | None = None  # noqa: N815
    maxTransactionsPerTrigger: int | None = None  # noqa: N815
    maxBytesPerTrigger: int | None = None  # noqa: N815
    schemaChange: str = "fail"  # noqa: N815
    reader: str | None = None
    dsn: str | None = field(default=None, repr=False)
    slot: str | None = None
    publications: tuple[str, ...] | None = None
    badRecords: str = "fail"  # noqa: N815


def read_options(given: Mapping[str, str]) -> SourceOptions:
    """Read options, whose names are case-insensitive; raise PgoutputError that names the invalid one."""
    known = {option.name.lower(): option for option in OPTIONS}
    texts = {name.lower(): text for name, text in given.items()}
    for name in texts.keys() - known.keys():
        close = [known[each].name for each in get_close_matches(name, known, 1)]
        hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(each.name for each in OPTIONS)}"
        raise PgoutputError(f"the data source pgoutput has no option {name!r}: {hint}")
    options = {option.name: _value(option, texts.get(name, option.default)) for name, option in known.items()}
    _check(options)
    return SourceOptions(**options)


def _check(options: Mapping[str, Any]) -> None:
    """Raise PgoutputError for options that exclude each other."""
    is_live = options["dsn"] is not None
    if is_live == (options["path"] is not None):
        raise PgoutputError(
            "the data source pgoutput needs either the option path (a change log's directory or address), or the "
            "options dsn and slot"
        )
    if is_live and (options["slot"] is None or options["view"] != "table"):
        raise PgoutputError(
            "a live read needs the option slot, and has only the view table; for other views capture into a change log"
        )
    if options["view"] == "table" and not options["table"]:
        raise PgoutputError("the data source pgoutput needs the option table, such as public.orders, or another view")
    for name in ("metadataPrefix", "changeColumns"):
        if options["view"] != "table" and options[name] != getattr(SourceOptions, name):
            raise PgoutputError(f"the option {name} applies only to the view table")
    if sum(options[name] is not None for name in _POSITIONS) > 1:
        raise PgoutputError(f"set only one of the options {', '.join(_POSITIONS)}")
    if is_live and any(options[name] is not None for name in (*_POSITIONS, "fromLsn", "untilLsn", "fromSeq", "reader")):
        raise PgoutputError("a live read begins at the slot's LSN: omit positions, or read a change log")
    if is_live and options["maxBytesPerTrigger"] is not None:
        raise PgoutputError("a live read does not know the sizes of transactions: use maxTransactionsPerTrigger")


_POSITIONS: Final = ("asOfSeq", "asOfLsn", "asOfTime")


def _value(option: SourceOption, text: str | None) -> Any:
    if text is None:
        return None
    try:
        return option.read(text)
    except (ValueError, TypeError) as error:
        raise PgoutputError(f"the option {option.name} is {text!r}: {error}") from error
