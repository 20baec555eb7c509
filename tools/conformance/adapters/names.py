"""Names as the suite has them."""

import re
from typing import Final

__all__ = ["plain_name"]

_PART: Final = re.compile(r'"((?:[^"]|"")*)"|([^.]+)')


def plain_name(name: str) -> str:
    """Return a name as in SQL without its quotes: ``public.Orders`` of ``public."Orders"``."""
    return ".".join(plain or quoted.replace('""', '"') for quoted, plain in _PART.findall(name))
