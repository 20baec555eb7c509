"""``pgoutput blame``: every transaction of a change log that touched one row."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from pgoutput_construct.cli._options import LOG, LSN_OR_TIME, TABLE, command
from pgoutput_construct.cli._printing import printable, say
from pgoutput_construct.cli._values import COLORS, Values, quoted
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.stream import RelationCache
from pgoutput_construct.wire import Lsn, Timestamp

if TYPE_CHECKING:
    from pgoutput_construct.changelog import ChangeLog
    from pgoutput_construct.forensics import RowTouch

__all__ = ["blame_command", "parse_key"]


@command("blame", short_help="Show every transaction that touched a row.")
@click.argument("log", type=LOG)
@click.option("--table", required=True, type=TABLE, help="The table of the row.")
@click.option(
    "--key",
    "keys",
    required=True,
    multiple=True,
    metavar="[COLUMN=]VALUE",
    help="The key of the row, as PostgreSQL prints it; repeated for several columns, in the table's order or named.",
)
@click.option("--column", help="Show only changes of this column.")
@click.option("--since", type=LSN_OR_TIME, help="Show what committed at this LSN or time, or later.")
@click.option("--until", type=LSN_OR_TIME, help="Show what committed at this LSN or time, or earlier.")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each change.")
@click.option("--raw", is_flag=True, help="Show the bytes of each change: annotated, or in JSON as hexadecimal digits.")
@click.option("--all", "everything", is_flag=True, help="Show long values in full.")
def blame_command(
    log: str,
    *,
    table: str,
    keys: tuple[str, ...],
    column: str | None,
    since: Lsn | Timestamp | None,
    until: Lsn | Timestamp | None,
    as_json: bool,
    raw: bool,
    everything: bool,
) -> None:
    """Show every transaction of the change log LOG that touched a row, in the order of the commits.

    Each change has its transaction (commit time and LSN, xid, origin), its operation, and the values of the row: old ->
    new where they differ. The row is followed over changes of its key, renames of its table, truncates and table copies
    (snapshot). Where several rows had the key one after the other, all of them are shown.

    Values that were not sent come from earlier changes of the row, if the log has these; else the old one is shown as
    (unknown), and an unchanged TOASTed one as (unchanged). The row of a table with REPLICA IDENTITY FULL is found by
    any columns, which are named. Only segments that have changes of the table are read.

    \b
    Examples:
      pgoutput blame changelog/ --table public.orders --key 42
      pgoutput blame changelog/ --table order_lines --key order_id=42 --key line=1 --column quantity
      pgoutput blame changelog/ --table public.orders --key 42 --since 2026-01-31T12:00+00:00 --json | jq .
      pgoutput blame changelog/ --table public.orders --key 42 --raw
    """
    from pgoutput_construct.changelog import ChangeLog
    from pgoutput_construct.forensics import blame
    from pgoutput_construct.forensics._tracked_table import LoggedTables

    opened = ChangeLog(log)
    tables = LoggedTables(opened)
    touches = blame(opened, table, parse_key(opened, table, keys), column=column, since=since, until=until)
    if not touches and since is None and until is None:
        raise PgoutputError(f"{opened.store}: no change of a row of {table} with the key {', '.join(keys)}")
    values = Values()
    for description in tables.history.descriptions:
        values.types.update(description.types)
    shown = _Shown(values, opened, raw, everything)
    for touch in touches:
        (shown.as_line if as_json else shown.as_text)(touch)


def parse_key(log: "ChangeLog", table: str, keys: tuple[str, ...]) -> Any:
    """Return a key: values by column where each names one of the table's, else values alone."""
    from pgoutput_construct.forensics._tracked_table import LoggedTables

    columns = {*LoggedTables(log).named(table)[-1].column_names.values()}
    named = [each.partition("=") for each in keys]
    if all(equals and name in columns for name, equals, _ in named):
        return {name: value for name, _, value in named}
    return keys


class _Shown:
    """Prints changes of a row."""

    def __init__(self, values: Values, log: "ChangeLog", raw: bool, everything: bool) -> None:
        self._values, self._log = values, log
        self._raw, self._everything = raw, everything
        self._header: list[str] = []
        """What is printed of the last transaction."""

    def as_line(self, touch: "RowTouch") -> None:
        """Print a change as a line of JSON."""
        line: dict[str, Any] = {
            "op": touch.op,
            "table": touch.table,
            "key": self._values.row(touch.key, touch.relation),
            "commit_lsn": str(touch.commit_lsn),
            "commit_time": str(touch.commit_time),
            "xid": touch.xid,
            "gid": touch.gid,
            "origin": touch.origin,
            "seq": touch.seq,
            "lsn": str(touch.lsn),
            "old": self._values.row(touch.old, touch.relation),
            "new": self._values.row(touch.new, touch.relation),
            "changed": [*touch.changed],
            "unchanged": [*touch.unchanged],
        }
        click.echo(json.dumps(line | ({"payload": touch.payload.hex()} if self._raw else {})))

    def as_text(self, touch: "RowTouch") -> None:
        """Print a change for people: a line for the transaction, and one for the row."""
        parts = [f"{touch.commit_time}", f"{'copy' if touch.xid is None else 'commit'} {touch.commit_lsn}"]
        parts += [f"xid {touch.xid}"] if touch.xid is not None else []
        parts += [f"prepared {quoted(touch.gid)}"] if touch.gid is not None else []
        parts += [f"origin {quoted(touch.origin)}"] if touch.origin is not None else []
        if parts != self._header:
            say("  ".join(parts), bold=True)
        self._header = parts
        op = click.style(touch.op, fg=COLORS.get(touch.op, "red"))
        pairs = ", ".join(self._pairs(touch))
        click.echo(f"  {op} {printable(touch.table)}{pairs and f' ({pairs})'}  seq {touch.seq}, LSN {touch.lsn}")
        if self._raw and touch.payload:
            self._picture(touch)

    def _pairs(self, touch: "RowTouch") -> Iterator[str]:
        old, new = self._values.row(touch.old, touch.relation), self._values.row(touch.new, touch.relation)
        names = [column.name for column in touch.relation.columns] if touch.relation else [*(new or old or {})]
        for name in names:
            row, is_known = new if new is not None else old or {}, True
            if name in touch.unchanged:
                text = f"(unchanged){' ' + quoted(row[name], self._everything) if name in row else ''}"
            elif name not in row:
                text, is_known = "(unknown)", new is not None
            elif old is not None and new is not None and name in touch.changed:
                before = quoted(old[name], self._everything) if name in old else "(unknown)"
                text = click.style(f"{before} -> {quoted(row[name], self._everything)}", bold=True)
            else:
                text = quoted(row[name], self._everything)
            if is_known:
                yield f"{printable(name)}={text}"

    def _picture(self, touch: "RowTouch") -> None:
        """Print the bytes of a change, annotated as ``pgoutput inspect`` does."""
        from pgoutput_construct.cli.commands._inspect_picture import Picture
        from pgoutput_construct.cli.commands._inspect_rows import Detail, dump
        from pgoutput_construct.cli.commands.inspect_command import labels
        from pgoutput_construct.wire.trace import trace

        traced, relations = trace(touch.payload, **touch.options), RelationCache()
        if touch.relation is not None:
            relations.update(touch.relation)
        detail = Detail(self._everything, labels(traced, relations))
        Picture(f"{traced.name} · seq {touch.seq}", list(dump(traced, detail)), self._everything).print()
