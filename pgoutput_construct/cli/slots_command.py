"""``pgoutput slots``: the replication slots of a server, how far behind they are, and what is wrong with them."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from pgoutput_construct.cli._printing import print_grid, print_lines, sized
from pgoutput_construct.cli.command_table import COMMANDS
from pgoutput_construct.extras import require
from pgoutput_construct.wire import Lsn

if TYPE_CHECKING:
    from pgoutput_construct.postgres import SlotHealth

__all__ = ["slots_command"]

_COLUMNS = ("slot", "database", "confirmed", "lag", "retained", "wal_status", "held by")


@click.command("slots", short_help="Show a server's replication slots: lag, health, what they hold.")
@click.argument("dsn")
@click.option("--slot", help="Show only this one; it is an error where there is none.")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each slot.")
@click.option("--check", is_flag=True, help="End with exit status 1 if a slot has a problem.")
@click.option("--max-lag", type=click.IntRange(min=0), metavar="BYTES", help="More lag than this is a problem.")
def slots_command(dsn: str, slot: str | None, as_json: bool, check: bool, max_lag: int | None) -> None:
    """Show the replication slots of a server.

    DSN is a connection string of libpq or a URL; "" takes everything from the environment. Of each slot: up to where
    its reader has confirmed, how much WAL is behind that (lag), how much WAL the server keeps because of the slot
    (retained), wal_status, and what holds it where it is; below the table what is wrong, and what to do. With --json
    everything that the server says of it.

    \b
    Examples:
      pgoutput slots service=shop
      pgoutput slots service=shop --slot warehouse --check --max-lag 1000000000
    """
    require(*COMMANDS["slots"].extras)
    from pgoutput_construct.postgres import ReplicationError, slot_health

    found = slot_health(dsn, slot)
    if slot is not None and not found:
        raise ReplicationError(f"there is no replication slot {slot!r}")
    problems = {health.name: _problems(health, max_lag) for health in found}
    if as_json:
        for health in found:
            click.echo(json.dumps(_values(health, problems[health.name]), default=str))
    else:
        _show(found, problems)
    if check and any(problems.values()):
        raise click.exceptions.Exit(1)


def _problems(health: "SlotHealth", max_lag: int | None) -> list[str]:
    lag = health.lag_bytes or 0
    return [
        *([health.problem] if health.problem else []),
        *(["nobody reads it, and it keeps WAL: start its reader, or drop it"] if _is_abandoned(health) else []),
        *([f"its lag is {sized(lag)}, more than {sized(max_lag)}"] if max_lag is not None and lag > max_lag else []),
    ]


def _is_abandoned(health: "SlotHealth") -> bool:
    return health.active_pid is None and not health.synced and health.wal_status != "lost"


def _values(health: "SlotHealth", problems: Sequence[str]) -> dict[str, Any]:
    # LSNs are integers, which json would write as such.
    values = {key: str(value) if isinstance(value, Lsn) else value for key, value in asdict(health).items()}
    # As the view pg_replication_slots names it.
    values["confirmed_flush_lsn"] = values.pop("confirmed_lsn")
    return {**values, "problems": [*problems]}


def _show(found: Sequence["SlotHealth"], problems: dict[str, list[str]]) -> None:
    print_grid("Replication slots", _COLUMNS, map(_row, found), right=("lag", "retained"))
    print_lines(f"{name}: {problem}" for name, each in problems.items() for problem in each)


def _row(health: "SlotHealth") -> Sequence[object]:
    sizes = (_size(health.lag_bytes), _size(health.retained_bytes))
    return health.name, health.database, health.confirmed_lsn, *sizes, health.wal_status, health.held_by


def _size(size: int | None) -> str:
    return "" if size is None else sized(size)
