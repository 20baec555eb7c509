"""What a log lacks of its tables, said where its changes are shown."""

from typing import TYPE_CHECKING, Final

from pgoutput_construct.cli.words import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgoutput_construct.changelog.wholeness import Lack

__all__ = ["warn_of_lacks"]

_SHOWN: Final = 10


def warn_of_lacks(lacks: "Sequence[Lack]") -> None:
    """Say on standard error what is missing of tables, and what to do."""
    for lack in lacks[:_SHOWN]:
        say(f"warning: {lack}", err=True)
    if len(lacks) > _SHOWN:
        say(f"warning: and {len(lacks) - _SHOWN:,} more tables, as pgoutput log LOG shows", err=True)
