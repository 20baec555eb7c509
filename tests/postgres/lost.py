"""The table of a shop into which was only inserted: its OID, and the rows that a log has of it."""

from tests.postgres.shop import Shop
from tools.faults.obstacles import ids

__all__ = ["ids", "oid_of"]


def oid_of(shop: Shop) -> int:
    """Ask for the OID of the table."""
    with shop.connect() as connection:
        (oid,) = connection.execute("SELECT 'item'::regclass::oid::bigint").fetchone() or (0,)
        return int(oid)
