"""What a change log holds, as tables for people."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pgoutput_construct.cli.grid import print_grid, print_lines
from pgoutput_construct.cli.values import told
from pgoutput_construct.cli.words import counted, sized
from pgoutput_construct.stream.rows import OPS

__all__ = ["SHOWN", "print_report"]

SHOWN: Final = 10
"""How many of the last segments and events are shown."""


def print_report(report: Mapping[str, Any], segments: Iterable[Mapping[str, Any]], everything: bool) -> None:
    """Print a report, and these segments; of events and descriptions the last ones, or ``everything``."""
    print_lines(_summary(report))
    print_lines(f"  warning: {lack['text']}" for lack in report["lacks"])
    print_lines(f"  note: {each['text']}" for each in report["unpublished_columns"])
    _tables(report["tables"])
    _copies(report["copies"])
    _descriptions(report["tables"], everything)
    _open(report["open_transactions"])
    _events(report["events"] if everything else report["events"][-SHOWN:], everything)
    _readers(report["readers"])
    _segments(segments, report["segments"])


def _summary(report: Mapping[str, Any]) -> Iterator[str]:
    options = dict(report["options"])
    names = ", ".join(options["publications"])
    counts = (counted(report["segments"], "segment"), counted(report["messages"], "message"), sized(report["bytes"]))
    yield f"Change log {report['address']}: {', '.join(counts)}"
    yield f"  seq {report['first_seq']} to {report['last_seq']}, complete up to {report['complete_lsn']}"
    if report["first_commit"] is not None:
        yield f"  commits from {report['first_commit']} to {report['last_commit']}"
    yield "  transactions: " + (
        ", ".join(f"{count:,} {name}" for name, count in report["transactions"].items()) or "none"
    )
    yield f"  slot {options['slot']} of database {options['database']}, publications {names}"
    if "verification" in report:
        found = report["verification"]
        yield f"  verified: {counted(found['checked'], 'segment')}, {counted(found['rows'], 'row')}: nothing is wrong"
    if "lag_bytes" in report:
        yield f"  lag {sized(report['lag_bytes'])}: the server is at {report['server_lsn']}"


def _tables(tables: Sequence[Mapping[str, Any]]) -> None:
    rows = (
        (table["table"], table["oid"], *(f"{table['rows'][op]:,}" for op in OPS), len(table["descriptions"]))
        for table in tables
    )
    columns = ("table", "OID", *OPS, "descriptions")
    print_grid("Tables", columns, rows, right=columns[1:])


def _copies(copies: Sequence[Mapping[str, Any]]) -> None:
    if copies:
        columns = ("table", "seq", "rows", "chunks", "lsn", "place_lsn", "sees_until")
        rows = ([f"{each[name]:,}" if name == "rows" else each[name] for name in columns] for each in copies)
        print_grid("Copies of tables", columns, rows, right=columns[1:])


def _descriptions(tables: Sequence[Mapping[str, Any]], everything: bool) -> None:
    rows = (
        (each["table"], each["seq"], each["replica_identity"], ", ".join(each["columns"]))
        for table in tables
        for each in table["descriptions"][0 if everything else -SHOWN :]
    )
    print_grid("Descriptions", ("table", "from seq", "identity", "columns"), rows, right=("from seq",))


def _open(transactions: Sequence[Mapping[str, Any]]) -> None:
    if transactions:
        columns = ("xid", "gid", "first_seq", "since_lsn", "since_time")
        rows = ([each[name] for name in columns] for each in transactions)
        print_grid("Open transactions", columns, rows, right=("xid", "first_seq"))


def _events(events: Sequence[Mapping[str, Any]], everything: bool) -> None:
    if events:
        columns = ("seq", "time", "lsn", "event")
        rows = ((*(each[name] for name in columns), told(each["details"], everything)) for each in events)
        print_grid("Events", ("seq", "time", "LSN", "event", "details"), rows, right=("seq",))


def _readers(readers: Sequence[Mapping[str, Any]]) -> None:
    if readers:
        rows = ((each["name"], each["next_seq"], each["lsn"]) for each in readers)
        print_grid("Registered readers", ("name", "next seq", "LSN"), rows, right=("next seq",))


def _segments(segments: Iterable[Mapping[str, Any]], number: int) -> None:
    shown = list(segments)
    rows = (
        (each["first_seq"], each["last_seq"], sized(each["bytes"]), each["complete_lsn"], each["last_commit"])
        for each in shown
    )
    title = "Segments" if len(shown) == number else f"The last {len(shown)} of {number:,} segments (--all shows them)"
    columns = ("first seq", "last seq", "size", "complete up to", "last commit")
    print_grid(title, columns, rows, right=columns[:3])
