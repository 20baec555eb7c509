"""Shops that lose their slots, and their table with inserts only: its OID, and the rows of a log."""

from pgoutput_construct.postgres import slot_health
from tests.postgres.shop import Shop, wait_until
from tools.faults.obstacles import ids

__all__ = ["ids", "invalidate", "oid_of"]


def oid_of(shop: Shop) -> int:
    """Ask for the OID of the table."""
    with shop.connect() as connection:
        (oid,) = connection.execute("SELECT 'item'::regclass::oid::bigint").fetchone() or (0,)
        return int(oid)


def invalidate(shop: Shop, row: int) -> None:
    """Let the server remove what the slot needs, with a row in it."""
    kept = {"max_slot_wal_keep_size": "1MB", "wal_keep_size": "0"}
    shop.execute(*(f"ALTER SYSTEM SET {name} = '{value}'" for name, value in kept.items()), "SELECT pg_reload_conf()")
    try:
        shop.execute(f"INSERT INTO item VALUES ({row}, 'b')")
        for _ in range(3):
            shop.execute("SELECT pg_logical_emit_message(true, 'a', 'b')", "SELECT pg_switch_wal()")
        shop.execute("CHECKPOINT")
        wait_until(lambda: any(slot.lost for slot in slot_health(shop.dsn, shop.slot)))
    finally:
        shop.execute(*(f"ALTER SYSTEM RESET {name}" for name in kept), "SELECT pg_reload_conf()")
