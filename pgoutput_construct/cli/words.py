"""Words that several commands print."""

from pgoutput_construct.wire.messages import Relation

__all__ = ["counted", "qualified", "sized"]

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 byte``, ``1,024 bytes``."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def sized(size: float) -> str:
    """Return a number of bytes as people read it, in powers of 1024 as PostgreSQL does: ``16 MB``, ``1.5 GB``."""
    power = 0
    while size >= 1000 and power < len(_UNITS) - 1:
        size, power = size / 1024, power + 1
    return f"{size:,.0f} {_UNITS[power]}" if power == 0 or size >= 100 else f"{size:,.1f} {_UNITS[power]}"


def qualified(relation: Relation) -> str:
    """Return ``schema.table``; an empty schema on the wire is pg_catalog."""
    return f"{relation.namespace or 'pg_catalog'}.{relation.name}"
