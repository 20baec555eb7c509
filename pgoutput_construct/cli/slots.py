"""``pgoutput slots``: the logical slots of a server, how far behind they are, and what is wrong with them."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from pgoutput_construct.cli.commands import COMMANDS
from pgoutput_construct.cli.grid import print_grid, print_lines
from pgoutput_construct.cli.words import sized
from pgoutput_construct.extras import require

if TYPE_CHECKING:
    from pgoutput_construct.postgres import SlotHealth

__all__ = ["slots_command"]

_COLUMNS = ("slot", "database", "reader", "confirmed", "lag", "retained", "wal_status")


@click.command("slots", short_help="Show a server's logical slots: lag, health, what they hold.")
@click.argument("dsn")
@click.option("--slot", help="Show only this one; it is an error where there is none.")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each slot.")
@click.option("--check", is_flag=True, help="End with exit status 1 if a slot has a problem.")
@click.option("--max-lag", type=click.IntRange(min=0), metavar="BYTES", help="More lag than this is a problem.")
def slots_command(dsn: str, slot: str | None, as_json: bool, check: bool, max_lag: int | None) -> None:
    """Show the logical replication slots of a server.

    DSN is a connection string of libpq or a URL; "" takes everything from the environment. Of each slot: who reads
    it, up to where that is confirmed, how much WAL is behind that (lag), how much WAL the server keeps because of the
    slot (retained), wal_status, and below the table what is wrong and what keeps WAL from being released. With --json
    everything that the server knows.

    \b
    Examples:
      pgoutput slots service=shop
      pgoutput slots service=shop --slot warehouse --check --max-lag 1000000000
    """
    require(*COMMANDS["slots"].extras)
    from pgoutput_construct.errors import ReplicationError
    from pgoutput_construct.postgres import connect, slot_health

    with connect(dsn, replication=False) as connection:
        found = slot_health(connection, slot)
    if slot is not None and not found:
        raise ReplicationError(f"there is no logical replication slot {slot!r}")
    problems = {health.name: _problems(health, max_lag) for health in found}
    if as_json:
        for health in found:
            click.echo(json.dumps(_values(health, problems[health.name]), default=str))
    else:
        _show(found, problems)
    if check and any(problems.values()):
        raise click.exceptions.Exit(1)


def _problems(health: "SlotHealth", max_lag: int | None) -> list[str]:
    found = list(health.problems)
    if max_lag is not None and (health.lag_bytes or 0) > max_lag:
        found.append(f"its lag is {sized(health.lag_bytes or 0)}, more than {sized(max_lag)}")
    return found


def _values(health: "SlotHealth", problems: Sequence[str]) -> dict[str, Any]:
    # LSNs are integers, which json would write as such.
    values = {
        key: str(value) if key.endswith("_lsn") and value is not None else value
        for key, value in asdict(health).items()
    }
    return {**values, "problems": [*problems]}


def _show(found: Sequence["SlotHealth"], problems: dict[str, list[str]]) -> None:
    print_grid("Logical replication slots", _COLUMNS, map(_row, found), right=("lag", "retained"))
    print_lines(f"{name}: {problem}" for name, each in problems.items() for problem in each)
    holders = {health.holder for health in found if health.holder}
    print_lines(f"the oldest open transaction, which keeps WAL: {holder}" for holder in holders)


def _row(health: "SlotHealth") -> Sequence[object]:
    reader = f"{health.reader or 'pid'} ({health.active_pid})" if health.active_pid else _idle(health)
    sizes = (_size(health.lag_bytes), _size(health.retained_bytes))
    return health.name, health.database, reader, health.confirmed_lsn, *sizes, health.wal_status


def _idle(health: "SlotHealth") -> str:
    since = f" since {health.inactive_since:%Y-%m-%d %H:%M:%S%z}" if health.inactive_since else ""
    return f"nobody{since}"


def _size(size: int | None) -> str:
    return "" if size is None else sized(size)
