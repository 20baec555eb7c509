"""The current rows of a table with a key: each is followed from key to key."""

from collections.abc import Iterable, Mapping

from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.spark.replay import Current, Event, Row, Texts
from pgoutput_construct.stream.rows import OPERATIONS
from pgoutput_construct.wire.messages import Insert

__all__ = ["KeyedRows"]

_INSERT = OPERATIONS[Insert]


class KeyedRows(Current):
    """Rows by their keys."""

    def __init__(self, places: Mapping[str, int]) -> None:
        """``places`` are those of the columns among what is fetched; columns that the table no longer has have none."""
        self._places = places
        self._state: dict[Texts, Row] = {}

    def rows(self) -> Iterable[Row]:
        """Return the rows that are left."""
        return self._state.values()

    def change(self, number: int, event: Event) -> None:
        """Take in the next event; raise ChangeLogError when it leaves a value open that the log does not have."""
        before = None if event.op == _INSERT else self._state.pop(tuple(event.old), None)
        if event.new is None:
            return
        row = Row(number)
        for name in event.unchanged or ():
            self._carry(row, before, name, event)
        self._state[tuple(event.new)] = row

    def _carry(self, row: Row, before: Row | None, name: str, event: Event) -> None:
        place = self._places.get(name)
        if place is None:
            return
        if before is None:
            raise ChangeLogError(
                f"commit {event.commit_lsn}, seq {event.seq} in it: the update of the row {event.old} does not "
                f"send the TOASTed column {name!r}, and the log does not have the row before it"
            )
        row.elsewhere[place] = before.elsewhere.get(place, before.event)
