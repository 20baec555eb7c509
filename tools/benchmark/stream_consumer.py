"""A program that follows a slot, as one writes it with the live client of this project."""

from collections.abc import Callable
from itertools import islice
from typing import Any

from pgoutput_construct.postgres import stream

__all__ = ["consume"]


def consume(dsn: str, slot: str, publication: str, transactions: int, take: Callable[[Any], None]) -> None:
    """Pass each change of a slot on, and confirm each transaction, until there were enough.

    Args:
        dsn: The connection string.
        slot: The name of the slot.
        publication: The name of the publication.
        transactions: The number of transactions after which it ends.
        take: Called with each change: its fields are table, op, new, old, unchanged and lsn.
    """
    with stream(dsn, slot, [publication]) as found:
        for transaction in islice(found, transactions):
            for change in transaction:
                take(change)
            found.confirm(transaction)
