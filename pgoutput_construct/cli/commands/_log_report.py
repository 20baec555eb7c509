"""The report of ``pgoutput log``: the content of a change log, as JSON and as tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from pgoutput_construct.cli._printing import counted, print_grid, print_lines, sized
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.extras import require
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES
from pgoutput_construct.stream.identifiers import full_name, quote_identifier
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.stream.rows import OPERATIONS, OPS, SNAPSHOT
from pgoutput_construct.wire import Lsn, Timestamp
from pgoutput_construct.wire.messages import RelationColumn
from pgoutput_construct.wire.protocol import RelationColumnFlags, RelationReplicaIdentity

if TYPE_CHECKING:
    from pgoutput_construct.changelog import ChangeLog
    from pgoutput_construct.changelog._facts.copies import TableCopy
    from pgoutput_construct.changelog._facts.partial_copies import PartialCopy

__all__ = [
    "SHOWN",
    "describe_copies_in_progress",
    "describe_log",
    "describe_segments",
    "print_copies_in_progress",
    "print_report",
    "server_lag",
]

_OPERATIONS: Final = {cls.TAG[0]: name for cls, name in OPERATIONS.items()}


def describe_log(log: "ChangeLog") -> dict[str, Any]:
    """Return the report without the segments, as JSON values."""
    from pgoutput_construct.changelog._facts.completeness import lacks_of, present_copies, unpublished_columns
    from pgoutput_construct.changelog.registry import readers

    sizes = log.store.files()
    return {
        "address": str(log.store),
        "segments": len(log.segments),
        "bytes": sum(sizes.get(segment.name, 0) for segment in log.segments),
        "first_seq": log.segments[0].first_seq,
        "last_seq": log.segments[-1].last_seq,
        "messages": len(log),
        "complete_lsn": str(log.complete_lsn),
        **_commits(log),
        "options": asdict(log.options),
        "tables": list(_tables(log)),
        "copies": [_copied(copy) for copy in present_copies(log.index)],
        "copies_in_progress": describe_copies_in_progress(log),
        "lacks": [{**asdict(lack), "text": str(lack)} for lack in lacks_of(log.index)],
        "unpublished_columns": [{**asdict(each), "text": str(each)} for each in unpublished_columns(log.index)],
        "open_transactions": [_open(row) for row in log.open_transactions().to_pylist()],
        "events": [
            {"seq": event.seq, "event": event.name, "lsn": str(event.lsn), "time": str(event.time)}
            | {"details": dict(event.details)}
            for event in log.events()
        ],
        "readers": [{**asdict(reader), "lsn": str(reader.lsn)} for reader in readers(log.store)],
    }


def describe_segments(log: "ChangeLog", last: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the segments, or the ``last`` ones: name, ranges of seq and time, LSN, size in bytes."""
    sizes = log.store.files()
    for index in range(max(len(log.segments) - last, 0) if last is not None else 0, len(log.segments)):
        segment = log.segments[index]
        commits = log.index.entries("transactions", slice(index, index + 1))
        yield {
            "name": segment.name,
            "first_seq": segment.first_seq,
            "last_seq": segment.last_seq,
            "rows": segment.rows,
            "bytes": sizes.get(segment.name, 0),
            "complete_lsn": str(segment.position.complete_lsn),
            **_times(commits),
        }


def _commits(log: "ChangeLog") -> dict[str, Any]:
    transactions = log.transactions()
    outcomes = transactions.group_by("outcome").aggregate([("xid", "count")]).to_pylist()
    return {"transactions": {row["outcome"]: row["xid_count"] for row in outcomes}, **_times(transactions)}


def _times(transactions: Any) -> dict[str, str | None]:
    import pyarrow.compute as pc

    from pgoutput_construct.changelog._index.planning import committed_transactions

    # Of a transaction that was rolled back the time is not sent, or is zero (EndedTransaction).
    found = pc.min_max(committed_transactions(transactions)["commit_time"]).as_py()
    times = {"first_commit": found["min"], "last_commit": found["max"]}
    return {name: None if time is None else str(Timestamp(time)) for name, time in times.items()}


def _tables(log: "ChangeLog") -> Iterator[dict[str, Any]]:
    """Yield the tables: rows by operation, and descriptions that differ from the previous one."""
    from pgoutput_construct.changelog._segment.segment_descriptions import described

    counts = _counts(log)
    found: dict[int, list[Description]] = {oid: [] for oid in counts}
    for description in described(log.index.entries("descriptions").to_pylist()):
        known = found.setdefault(description.relation.relation_oid, [])
        if not known or _content(known[-1]) != _content(description):
            known.append(description)
    for oid, descriptions in found.items():
        name = full_name(descriptions[-1].relation) if descriptions else None
        rows = {op: counts.get(oid, {}).get(op, 0) for op in OPS}
        yield {"table": name, "oid": oid, "rows": rows, "descriptions": [_described(each) for each in descriptions]}


def _counts(log: "ChangeLog") -> dict[int, dict[str, int]]:
    """Return the number of rows by table OID and operation, including rolled-back ones."""
    from pgoutput_construct.changelog._index.row_counts import COPIED

    counts: dict[int, dict[str, int]] = {}
    groups = log.index.entries("rows").group_by(["oid", "span", "tag"]).aggregate([("count", "sum")])
    for row in groups.to_pylist():
        op = SNAPSHOT if row["span"] == COPIED else _OPERATIONS.get(row["tag"])
        if op is None:
            raise ChangeLogError(f"{log.store}: its index has rows of the tag {row['tag']}, which no change has")
        of_table = counts.setdefault(row["oid"], {})
        of_table[op] = of_table.get(op, 0) + row["count_sum"]
    return counts


def _copied(copy: "TableCopy") -> dict[str, Any]:
    snapshot = copy.snapshot
    chunks = copy.last_chunk - copy.first_chunk + 1
    seen = {"lsn": str(snapshot.lsn), "xmin": snapshot.xmin, "xmax": snapshot.xmax, "xip": list(snapshot.xip)}
    seen |= {"place_lsn": str(copy.visibility.place_lsn), "contained": sorted(copy.visibility.contained)}
    seen |= {"sees_until": str(copy.visibility.sees_until)}
    title = full_name(copy)
    counts = {"rows": copy.rows, "void_rows": copy.void.rows, "chunks": chunks}
    return {"table": title, "oid": copy.relation_oid, "seq": copy.seq, **counts, **seen}


def describe_copies_in_progress(log: "ChangeLog") -> list[dict[str, Any]]:
    """Return the copies that are not complete, as JSON values: how far they have come, as the log has it."""
    from pgoutput_construct.changelog._facts.completeness import copies_in_progress

    return [_in_progress(log, copy) for copy in copies_in_progress(log.index).values()]


def _in_progress(log: "ChangeLog", copy: "PartialCopy") -> dict[str, Any]:
    plan, rows = copy.plan, copy.plan.rows_in(log.index)
    pages, speed = copy.read_pages(), copy.pages_per_second
    return {
        "table": full_name(plan),
        "oid": plan.relation_oid,
        "attempts": len(copy.attempts),
        "pages_read": pages.read,
        "pages": pages.pages,
        "percent": pages.percent,
        "pages_up_to_date": copy.current_pages,
        "continued_from_percent": copy.read_pages(len(copy.attempts) - 1).percent,
        "rows": rows,
        "rows_per_second": round(speed * rows / max(pages.read, 1)),
        "seconds_left": round((pages.pages - pages.read) / speed) if speed else None,
        "last_read": str(copy.read_time) if copy.reads else None,
    }


def print_copies_in_progress(copies: Sequence[Mapping[str, Any]]) -> None:
    """Print how far copies have come."""
    if copies:
        columns = (*("table", "pages read", "of", "", "from", "up to date"), "rows", "rows/s", "time left", "last read")
        print_grid("Copies in progress", columns, map(_progress_row, copies), right=columns[1:])


def _progress_row(copy: Mapping[str, Any]) -> tuple[object, ...]:
    left = "" if copy["seconds_left"] is None else f"{copy['seconds_left']:,} s"
    read = (f"{copy['pages_read']:,}", f"{copy['pages']:,}", f"{copy['percent']} %")
    since = f"{copy['continued_from_percent']} %" if copy["attempts"] > 1 else ""
    rows = f"{copy['rows']:,}", f"{copy['rows_per_second']:,}"
    return copy["table"], *read, since, f"{copy['pages_up_to_date']:,}", *rows, left, copy["last_read"]


def _content(description: Description) -> tuple[Any, ...]:
    relation = description.relation
    return relation.namespace, relation.name, relation.replica_identity, relation.columns


def _described(description: Description) -> dict[str, Any]:
    relation = description.relation
    columns = [_column(column, description) for column in relation.columns]
    identity = RelationReplicaIdentity(relation.replica_identity).name.lower()
    return {"seq": description.seq, "table": full_name(relation), "replica_identity": identity, "columns": columns}


def _column(column: RelationColumn, description: Description) -> str:
    builtin, declared = BUILTIN_TYPES.get(column.type_oid), description.types.get(column.type_oid)
    kind = builtin.name if builtin else full_name(declared) if declared else str(column.type_oid)
    key = " key" if column.flags & RelationColumnFlags.KEY else ""
    return f"{quote_identifier(column.name)} {kind}{key}"


def _open(row: dict[str, Any]) -> dict[str, Any]:
    # The frame of what opens a transaction has 0/0 if an Origin follows (WalSndPrepareWrite, last_write).
    lsn = str(Lsn(row["since_lsn"])) if row["since_lsn"] else None
    since = {"since_lsn": lsn, "since_time": str(Timestamp(row["since_time"]))}
    return {"xid": row["xid"], "gid": row["gid"], "streamed": row["streamed"], "first_seq": row["first_seq"], **since}


def server_lag(dsn: str, log: "ChangeLog") -> tuple[Lsn, int]:
    """Return the LSN that a server has reached, and the bytes of WAL up to it that a log does not have yet."""
    require("cli", "postgres")
    from pgoutput_construct.changelog._notes.confirmation_note import reached_lsn
    from pgoutput_construct.postgres import connect, current_lsn

    reached = reached_lsn(log.store, log.segments)
    with connect(dsn, replication=False) as connection:
        end = current_lsn(connection)
    return end, max(end - reached, 0)


SHOWN: Final = 10
"""The number of last segments and events to show."""


def print_report(report: Mapping[str, Any], segments: Iterable[Mapping[str, Any]], everything: bool) -> None:
    """Print a report.

    Args:
        report: The result of ``describe_log``, possibly with a verification and a lag.
        segments: The segments to print.
        everything: Print all events and descriptions, not only the last ones.
    """
    print_lines(_summary(report))
    print_lines(f"  warning: {lack['text']}" for lack in report["lacks"])
    print_lines(f"  note: {each['text']}" for each in report["unpublished_columns"])
    _print_tables(report["tables"])
    _print_copies(report["copies"])
    print_copies_in_progress(report["copies_in_progress"])
    _print_descriptions(report["tables"], everything)
    _print_open(report["open_transactions"])
    _print_events(report["events"], everything)
    _print_readers(report["readers"])
    _print_segments(segments, report["segments"])


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
        yield f"  verified: {counted(found['checked'], 'segment')}, {counted(found['rows'], 'row')}: no problems"
    if "lag_bytes" in report:
        yield f"  lag {sized(report['lag_bytes'])}: the server is at {report['server_lsn']}"


def _print_tables(tables: Sequence[Mapping[str, Any]]) -> None:
    rows = (
        (table["table"], table["oid"], *(f"{table['rows'][op]:,}" for op in OPS), len(table["descriptions"]))
        for table in tables
    )
    columns = ("table", "OID", *OPS, "descriptions")
    print_grid("Tables", columns, rows, right=columns[1:])


def _print_copies(copies: Sequence[Mapping[str, Any]]) -> None:
    if copies:
        columns = ("table", "seq", "rows", "chunks", "lsn", "place_lsn", "sees_until")
        rows = ([f"{each[name]:,}" if name == "rows" else each[name] for name in columns] for each in copies)
        print_grid("Table copies", columns, rows, right=columns[1:])


def _print_descriptions(tables: Sequence[Mapping[str, Any]], everything: bool) -> None:
    rows = (
        (each["table"], each["seq"], each["replica_identity"], ", ".join(each["columns"]))
        for table in tables
        for each in table["descriptions"][0 if everything else -SHOWN :]
    )
    print_grid("Descriptions", ("table", "from seq", "identity", "columns"), rows, right=("from seq",))


def _print_open(transactions: Sequence[Mapping[str, Any]]) -> None:
    if transactions:
        columns = ("xid", "gid", "first_seq", "since_lsn", "since_time")
        rows = ([each[name] for name in columns] for each in transactions)
        print_grid("Open transactions", columns, rows, right=("xid", "first_seq"))


def _print_events(events: Sequence[Mapping[str, Any]], everything: bool) -> None:
    from pgoutput_construct.cli.commands._event_texts import EventTexts

    if events:
        texts = EventTexts(everything)
        written = ((each, texts.text(each["event"], each["details"])) for each in events)
        rows = [(each["seq"], each["time"], each["lsn"], text) for each, text in written if text is not None]
        print_grid("Events", ("seq", "time", "LSN", "event"), rows if everything else rows[-SHOWN:], right=("seq",))


def _print_readers(readers: Sequence[Mapping[str, Any]]) -> None:
    if readers:
        rows = ((each["name"], each["next_seq"], each["lsn"]) for each in readers)
        print_grid("Registered readers", ("name", "next seq", "LSN"), rows, right=("next seq",))


def _print_segments(segments: Iterable[Mapping[str, Any]], number: int) -> None:
    shown = list(segments)
    rows = (
        (each["first_seq"], each["last_seq"], sized(each["bytes"]), each["complete_lsn"], each["last_commit"])
        for each in shown
    )
    title = "Segments" if len(shown) == number else f"The last {len(shown)} of {number:,} segments (--all shows them)"
    columns = ("first seq", "last seq", "size", "complete up to", "last commit")
    print_grid(title, columns, rows, right=columns[:3])
