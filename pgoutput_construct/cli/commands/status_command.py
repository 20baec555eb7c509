"""``pgoutput status``: server, slot, log, readers and tables at a glance."""

import json
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from pgoutput_construct.cli._options import LOG, SECONDS, command
from pgoutput_construct.cli._printing import counted, print_grid, print_lines, sized, unix_seconds
from pgoutput_construct.cli.commands._log_report import (
    describe_copies_in_progress,
    print_copies_in_progress,
    server_lag,
)
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.wire import Timestamp

if TYPE_CHECKING:
    from pgoutput_construct.changelog import ChangeLog

__all__ = ["status_command"]


@command("status", short_help="Show server, slot, log, readers and tables at a glance.")
@click.argument("log", type=LOG)
@click.option("--warehouse", help="The warehouse of pgoutput replicate: a directory, or a URL.")
@click.option("--dsn", help='The server: a connection string of libpq, or a URL; "" takes the environment.')
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with everything.")
@click.option("--check", is_flag=True, help="Exit with status 1 if there is a problem.")
@click.option("--max-lag", type=SECONDS, metavar="SECONDS", help="It is a problem if a table lags more than this.")
def status_command(
    log: str, warehouse: str | None, dsn: str | None, as_json: bool, check: bool, max_lag: float | None
) -> None:
    """Show how far the change log LOG, its table copies, its readers and the tables replicated from it have come.

    With --dsn it also shows the WAL that the log does not have yet, and the state of its slot; with --warehouse each
    table, with the time of the last commit that it has, and its lag: how long ago the first commit in the log was made
    that it does not have. A table of a previous log (--adopt of pgoutput replicate) is marked as such. Problems are
    listed below. Nothing is written, and Spark is not needed.

    \b
    Examples:
      pgoutput status changelog/ --warehouse lake/ --dsn service=shop
      pgoutput status changelog/ --warehouse lake/ --json --check --max-lag 60
    """
    if max_lag is not None and warehouse is None:
        raise click.UsageError("--max-lag is of the tables: give --warehouse")
    from pgoutput_construct.changelog import ChangeLog

    opened = ChangeLog(log)
    report = {
        "log": _log(opened),
        **({} if dsn is None else {"server": _server(dsn, opened)}),
        "readers": list(_readers(opened)),
        **({} if warehouse is None else {"warehouse": _warehouse(warehouse, opened)}),
    }
    problems = list(dict.fromkeys(_problems(report, max_lag)))  # a history has those of its table
    if as_json:
        click.echo(json.dumps({**report, "problems": problems}, default=str))
    else:
        _show(report)
        print_lines(f"note: {note}" for note in _notes(report))
        print_lines(f"problem: {problem}" for problem in problems)
    if check and problems:
        raise click.exceptions.Exit(1)


def _log(log: "ChangeLog") -> dict[str, Any]:
    from pgoutput_construct.changelog._facts.completeness import lacks_of

    sizes = log.store.files()
    commit_time = _commit_time(log, log.index.last_seq)
    return {
        "address": str(log.store),
        "slot": log.options.slot,
        "segments": len(log.segments),
        "bytes": sum(sizes.get(segment.name, 0) for segment in log.segments),
        "last_seq": log.index.last_seq,
        "complete_lsn": str(log.complete_lsn),
        "last_commit": None if commit_time is None else str(Timestamp(commit_time)),
        "last_commit_age": None if commit_time is None else round(time.time() - unix_seconds(commit_time), 1),
        "open_transactions": len(log.open_transactions()),
        "copies_in_progress": describe_copies_in_progress(log),
        "lacks": [str(lack) for lack in lacks_of(log.index)],
    }


def _commit_time(log: "ChangeLog", seq: int) -> int | None:
    """Return the time of the last commit up to a seq: microseconds since 2000, by the server's clock."""
    from pgoutput_construct.changelog._index.planning import last_commit

    found = last_commit(log.index, seq)
    return None if found is None else int(found["commit_time"])


def _server(dsn: str, log: "ChangeLog") -> dict[str, Any]:
    end, lag = server_lag(dsn, log)
    from pgoutput_construct.postgres import slot_health

    found = slot_health(dsn, log.options.slot)
    slot: dict[str, Any] | None = None
    if found:
        [health] = found
        slot = {
            "name": health.name,
            "active": health.active_pid is not None,
            "wal_status": health.wal_status,
            "retained_bytes": health.retained_bytes,
            "problem": health.problem,
        }
    return {"lsn": str(end), "lag_bytes": lag, "slot": slot}


def _readers(log: "ChangeLog") -> Iterator[dict[str, Any]]:
    from pgoutput_construct.changelog.registry import readers

    for reader in readers(log.store):
        unread = max(log.index.last_seq + 1 - reader.next_seq, 0)
        yield {"name": reader.name, "next_seq": reader.next_seq, "unread_rows": unread, "lsn": str(reader.lsn)}


def _warehouse(address: str, log: "ChangeLog") -> dict[str, Any]:
    from pgoutput_construct import lake
    from pgoutput_construct.changelog.reader import LogIdentity, identity_of

    found = lake.status(address)
    recorded = None if found.log is None else LogIdentity.from_json(found.log)
    if recorded is not None and (differences := recorded.differences(identity_of(log))):
        raise PgoutputError(f"{found.address}: its tables are of another log: {'; '.join(differences)}")
    times, lags = dict[int, int | None](), dict[int, float]()
    tables = []
    for each in found.tables:
        if each.seq not in times:
            times[each.seq], lags[each.seq] = _commit_time(log, each.seq), _lag(log, each.seq)
        until, lag = times[each.seq], lags[each.seq]
        tables.append(
            {
                "table": each.table,
                "history": each.history,
                "seq": None if each.previous_log else each.seq,
                "last_commit": None if until is None else str(Timestamp(until)),
                "lag_seconds": None if each.previous_log else lag,
                "trouble": each.trouble,
                "previous_log": each.previous_log,
            }
        )
    return {
        "address": found.address,
        "format": found.format,
        "batch": found.batch,
        "done": found.done,
        "tables": tables,
    }


def _lag(log: "ChangeLog", seq: int) -> float:
    """Return how long ago the first commit after a seq was made, in seconds by this machine's clock; 0 for none."""
    from pgoutput_construct.changelog._index.planning import earliest_after

    first = earliest_after(log.index, seq)
    return 0.0 if first is None else round(max(time.time() - unix_seconds(first), 0.0), 3)


def _problems(report: Mapping[str, Any], max_lag: float | None) -> Iterator[str]:
    if server := report.get("server"):
        if server["slot"] is None:
            yield f"the server has no slot {report['log']['slot']!r}: see --on-lost-slot of pgoutput capture"
        elif server["slot"]["problem"]:
            yield server["slot"]["problem"]
        elif not server["slot"]["active"]:
            yield f"nobody reads the slot {report['log']['slot']!r}, and it retains WAL: start pgoutput capture"
    yield from report["log"]["lacks"]
    for table in report.get("warehouse", {}).get("tables", ()):
        if trouble := table["trouble"]:
            yield trouble if trouble.startswith(f"{table['table']}: ") else f"{table['table']}: {trouble}"
        elif max_lag is not None and not table["previous_log"] and table["lag_seconds"] > max_lag:
            yield f"{table['table']} lags {table['lag_seconds']:,.1f} s: is pgoutput replicate running?"


def _notes(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is no problem, but not obvious: tables that stay as they are."""
    from pgoutput_construct.changelog._facts.copies import snapshot_command

    for table in report.get("warehouse", {}).get("tables", ()):
        if table["previous_log"] and not table["trouble"] and not table["history"]:
            yield (
                f"{table['table']} is of a previous log, and is not updated any more; to update it again, add it to "
                f"the publication, run {snapshot_command(table['table'])}, then pgoutput replicate"
            )


def _show(report: Mapping[str, Any]) -> None:
    print_lines(_summary(report))
    print_copies_in_progress(report["log"]["copies_in_progress"])
    if report["readers"]:
        rows = ((each["name"], each["next_seq"], f"{each['unread_rows']:,}", each["lsn"]) for each in report["readers"])
        columns = ("name", "next seq", "unread rows", "LSN")
        print_grid("Registered readers", columns, rows, right=columns[1:3])
    if warehouse := report.get("warehouse"):
        print_grid("Tables", ("table", "last commit", "lag", "seq", ""), map(_row, warehouse["tables"]), ("seq",))


def _summary(report: Mapping[str, Any]) -> Iterator[str]:
    log = report["log"]
    if server := report.get("server"):
        slot = server["slot"]
        state = "missing" if slot is None else f"{'active' if slot['active'] else 'not active'}, {slot['wal_status']}"
        retained = (
            "" if slot is None or slot["retained_bytes"] is None else f", retains {sized(slot['retained_bytes'])}"
        )
        yield f"server: at {server['lsn']}, slot {log['slot']} {state}{retained}"
    size = f"{counted(log['segments'], 'segment')}, {sized(log['bytes'])}"
    lag = f", a lag of {sized(report['server']['lag_bytes'])}" if "server" in report else ""
    yield f"log: {log['address']}: {size}, complete up to {log['complete_lsn']}{lag}"
    if log["last_commit"]:
        age = f"{log['last_commit_age']:,.1f} s ago by this machine's clock"
        yield f"last commit in the log: {log['last_commit']}, {age}"
    if warehouse := report.get("warehouse"):
        done = "" if warehouse["done"] else ", which is not complete"
        yield f"warehouse: {warehouse['address']}: {warehouse['format']}, batch {warehouse['batch']}{done}"


def _row(table: Mapping[str, Any]) -> tuple[object, ...]:
    name = f"{table['table']} (history)" if table["history"] else table["table"]
    lag = table["lag_seconds"]
    said = "not updated" if lag is None else f"{lag:,.1f} s" if lag else "up to date"
    state = ("of a previous log" if table["previous_log"] else "", "in trouble" if table["trouble"] else "")
    return name, table["last_commit"], said, table["seq"], ", ".join(filter(None, state))
