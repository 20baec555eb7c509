"""Which columns the tables of a warehouse have in addition to their own: chosen once, and kept in its notes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from pgoutput_construct.spark._replicate.dataset_columns import DELETED_AT, STATE


@dataclass(frozen=True)
class ColumnLayout:
    """The added columns of tables; those of histories are always the same."""

    soft_delete: bool = False
    """Whether deleted rows stay, with the timestamp of the commit that deleted them."""

    @property
    def added(self) -> tuple[str, ...] | None:
        """The added columns, as replays call them; None for those that every table had in earlier versions."""
        return (*STATE, DELETED_AT) if self.soft_delete else None

    @classmethod
    def from_notes(cls, notes: Mapping[str, Any]) -> "ColumnLayout":
        """Return the layout in the notes of a warehouse; those of earlier versions have none."""
        return cls(**notes)

    def to_notes(self) -> dict[str, Any]:
        """Return it for the notes of a warehouse."""
        return asdict(self)

    def chosen(self, soft_delete: bool | None) -> "ColumnLayout":
        """Return the layout after a run that is given options; None keeps what is."""
        return ColumnLayout(self.soft_delete if soft_delete is None else soft_delete)


DEFAULT_LAYOUT: Final = ColumnLayout()
"""The layout of a new warehouse, unless it is chosen."""
