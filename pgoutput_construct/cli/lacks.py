"""What a log lacks of its tables, said where its changes are shown."""

from typing import TYPE_CHECKING, Final

import click

from pgoutput_construct.cli.values import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgoutput_construct.changelog.wholeness import Lack

__all__ = ["warn_of_lacks"]

_SHOWN: Final = 10


def warn_of_lacks(lacks: "Sequence[Lack]") -> None:
    """Say on standard error what is missing of tables, and what to do."""
    for lack in lacks[:_SHOWN]:
        click.echo(f"warning: {printable(str(lack))}", err=True)
    if len(lacks) > _SHOWN:
        click.echo(f"warning: and {len(lacks) - _SHOWN:,} more tables, as pgoutput log LOG shows", err=True)
