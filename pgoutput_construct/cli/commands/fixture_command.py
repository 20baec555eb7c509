"""``pgoutput fixture``: a stream of production, cut and masked for a test."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgoutput_construct.cli._options import KEY_VALUE, LOG, LSN_OR_TIME, SECONDS, TABLE, command
from pgoutput_construct.cli._printing import counted, say
from pgoutput_construct.cli._progress import progress_line
from pgoutput_construct.cli.commands.blame_command import parse_key
from pgoutput_construct.extras import require
from pgoutput_construct.wire import Lsn, Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from pgoutput_construct.forensics import Fixture

__all__ = ["fixture_command"]


@command("fixture", short_help="Cut a change log to a masked stream for a test.")
@click.argument("log", type=LOG)
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write, such as case.jsonl.",
)
@click.option("--table", "tables", multiple=True, type=TABLE, help="Only changes of this table; can be repeated.")
@click.option(
    "--key", "keys", multiple=True, metavar="[COLUMN=]VALUE", help="Only one row of the table, as for pgoutput blame."
)
@click.option(
    "--where",
    multiple=True,
    type=KEY_VALUE,
    metavar="COLUMN=VALUE",
    help="Only rows that have this value before or after the change, as PostgreSQL prints it; can be repeated.",
)
@click.option(
    "--xid", "xids", multiple=True, type=click.IntRange(min=1), help="Only this transaction; can be repeated."
)
@click.option("--since", type=LSN_OR_TIME, help="Only what ended at this LSN or time, or later.")
@click.option("--until", type=LSN_OR_TIME, help="Only what ended at this LSN or time, or earlier.")
@click.option(
    "--mask",
    "masks",
    multiple=True,
    type=KEY_VALUE,
    metavar="COLUMN=MASK",
    help="The mask of SCHEMA.TABLE.COLUMN, of a table's or all columns (an asterisk): token, plain, null, text(VALUE); "
    "can be repeated, the last one of a column counts.  [default: token for all]",
)
@click.option(
    "--shrink",
    metavar="COMMAND",
    help="Leave out whatever this command fails without; {file} is the path of the fixture, {dsn} serves it.",
)
@click.option(
    "--timeout",
    type=SECONDS,
    default=60.0,
    show_default=True,
    help="Seconds after which the command hangs.",
)
def fixture_command(
    log: str,
    *,
    output: Path,
    tables: tuple[str, ...],
    keys: tuple[str, ...],
    where: tuple[tuple[str, str], ...],
    xids: tuple[int, ...],
    since: Lsn | Timestamp | None,
    until: Lsn | Timestamp | None,
    masks: tuple[tuple[str, str], ...],
    shrink: str | None,
    timeout: float,
) -> None:
    """Cut the change log LOG to the changes that meet all conditions, mask their values, and write them as JSON lines.

    pgoutput serve, and the publisher of pgoutput_construct.testing, serve the file to a client under test. Transactions
    keep their form, streamed or prepared; those without such a change are left out, as are copies of tables.

    Every value is masked unless a mask says plain: equal values are replaced by equal tokens, so keys remain
    consistent. LSNs, times and transaction IDs stay, and so do the names of tables and columns.

    With --shrink, transactions, then changes, then columns are left out as long as the command still fails: its exit
    status is not 0, or it hangs.

    \b
    Examples:
      pgoutput fixture changelog/ --xid 742 --output case.jsonl
      pgoutput fixture changelog/ --table public.orders --key 42 --mask 'public.orders.status=plain' -o case.jsonl
      pgoutput fixture changelog/ --table orders --where status=paid --since 2026-01-31T12:00+00:00 -o case.jsonl
      pgoutput fixture changelog/ --since 16/B374D848 -o case.jsonl --shrink 'my_client --dsn "{dsn}" --check'
    """
    from pgoutput_construct.changelog import ChangeLog
    from pgoutput_construct.forensics import command_fails, fixture

    if keys and len(tables) != 1:
        raise click.UsageError("--key needs one --table")
    if shrink is not None and "{dsn}" in shrink:
        require("publisher")
    opened = ChangeLog(log)
    key = parse_key(opened, tables[0], keys) if keys else None
    found = fixture(opened, tables=tables, key=key, where=dict(where), xids=xids, since=since, until=until, masks=masks)
    if shrink is not None:
        found = _shrunk(found, command_fails(shrink, timeout))
    found.save(output)
    say(f"{output}: {counted(found.transactions, 'transaction')}, {counted(found.changes, 'change')}")


def _shrunk(found: "Fixture", fails: "Callable[[Fixture], bool]") -> "Fixture":
    trials = 0
    with progress_line() as show:

        def report(trial: "Fixture") -> Any:
            nonlocal trials
            trials += 1
            show(f"trial {trials:,}: {counted(trial.transactions, 'transaction')}, {counted(trial.changes, 'change')}")

        return found.shrunk(fails, report)
