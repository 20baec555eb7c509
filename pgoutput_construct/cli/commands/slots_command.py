"""``pgoutput slots``: the replication slots of a server, with their lag, health and problems."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from pgoutput_construct.cli._options import command
from pgoutput_construct.cli._printing import print_grid, print_lines, sized
from pgoutput_construct.wire import Lsn

if TYPE_CHECKING:
    from pgoutput_construct.postgres import SlotHealth

__all__ = ["slots_command"]

_COLUMNS = ("slot", "database", "confirmed", "lag", "retained", "wal_status", "held by")


@command("slots", short_help="Show a server's replication slots: lag, health, retained WAL.")
@click.argument("dsn")
@click.option("--slot", help="Show only this slot; an error if it does not exist.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per slot.")
@click.option("--check", is_flag=True, help="Exit with status 1 if a slot has a problem.")
@click.option("--max-lag", type=click.IntRange(min=0), metavar="BYTES", help="A larger lag is a problem.")
def slots_command(dsn: str, slot: str | None, as_json: bool, check: bool, max_lag: int | None) -> None:
    """Show the replication slots of a server.

    DSN is a connection string of libpq or a URL; "" takes everything from the environment. For each slot it shows the
    LSN that its reader has confirmed, the WAL since then (lag), the WAL that the server retains for the slot
    (retained), wal_status, and what keeps it from advancing (held by); below the table problems with their remedies.
    With --json it prints everything that the server has about the slot.

    \b
    Examples:
      pgoutput slots service=shop
      pgoutput slots service=shop --slot warehouse --check --max-lag 1000000000
    """
    from pgoutput_construct.postgres import ReplicationError, slot_health

    found = slot_health(dsn, slot)
    if slot is not None and not found:
        raise ReplicationError(f"replication slot {slot!r} does not exist")
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
        *(["nobody reads it, and it retains WAL: start its reader, or drop it"] if _is_abandoned(health) else []),
        *([f"its lag is {sized(lag)}, more than {sized(max_lag)}"] if max_lag is not None and lag > max_lag else []),
    ]


def _is_abandoned(health: "SlotHealth") -> bool:
    return health.active_pid is None and not health.synced and health.wal_status != "lost"


def _values(health: "SlotHealth", problems: Sequence[str]) -> dict[str, Any]:
    # json would write LSNs as integers.
    values = {key: str(value) if isinstance(value, Lsn) else value for key, value in asdict(health).items()}
    # The name in the view pg_replication_slots.
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
