"""What a log lacks of its tables, said where its changes are shown."""

from typing import TYPE_CHECKING, Final

from pgoutput_construct.cli.words import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgoutput_construct.changelog.wholeness import Lack, UnpublishedColumns

__all__ = ["note_unpublished", "warn_of_lacks"]

_SHOWN: Final = 10


def warn_of_lacks(lacks: "Sequence[Lack]") -> None:
    """Say on standard error what is missing of tables, and what to do."""
    _say("warning", lacks)


def note_unpublished(unpublished: "Sequence[UnpublishedColumns]") -> None:
    """Say on standard error which columns tables are without: no warning, since all else of them is right."""
    _say("note", unpublished)


def _say(kind: str, about: "Sequence[Lack | UnpublishedColumns]") -> None:
    for each in about[:_SHOWN]:
        say(f"{kind}: {each}", err=True)
    if len(about) > _SHOWN:
        say(f"{kind}: and {len(about) - _SHOWN:,} more tables, as pgoutput log LOG shows", err=True)
