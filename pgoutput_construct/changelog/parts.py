"""What a segment consists of: blocks and events; and how many small blocks become a few."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final, TypeAlias

from pgoutput_construct.changelog.block import Block
from pgoutput_construct.changelog.events import LogEvent

__all__ = ["Part", "coalesced"]

Part: TypeAlias = Block | LogEvent
"""What a segment consists of."""

_SMALL_ROWS: Final = 2048
_SMALL_BYTES: Final = 1 << 20
"""A block up to both is put together with others: each costs as much to index as a thousand rows do."""


def coalesced(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield the same payloads and events in fewer parts: small blocks that follow each other become one."""
    for layout, group in groupby(parts, _layout_of_small):
        found = list(group)
        if layout is not None and len(found) > 1:
            yield Block.concat([part for part in found if isinstance(part, Block)])
        else:
            yield from found


def _layout_of_small(part: Part) -> tuple[object, ...] | None:
    """Return what small blocks must share to be put together; None for what stays as it is."""
    if isinstance(part, LogEvent) or part.chunk is not None:
        return None
    if len(part) > _SMALL_ROWS or part.payloads.nbytes > _SMALL_BYTES:
        return None
    return (*part.index.layout.items(), *part.index.states)
