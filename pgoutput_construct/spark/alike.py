"""Rows that were described with different columns, told apart by those that they share, one change after the other."""

from collections import deque
from collections.abc import Iterable, Sequence

from pgoutput_construct.spark.replay import Current, Event, Row, Texts

__all__ = ["AlikeRows"]


class AlikeRows(Current):
    """Rows by their values, as far as both they and the old rows of the present changes were described with them.

    A column that was added or dropped since is not compared: the old row of a message has another value in it than
    the stored one, or none.
    """

    def __init__(self, shapes: Sequence[frozenset[int]]) -> None:
        """``shapes`` are the columns, by place, that rows of each shape have."""
        self._shapes = shapes
        self._now: int | None = None
        self._unfound: list[Row] = []
        self._stored: dict[tuple[int, ...], dict[Texts, deque[tuple[Row, int, list[str | None]]]]] = {}
        """By the places that are compared now, the most first; then by the texts there."""

    def rows(self) -> Iterable[Row]:
        """Return the rows that are left, and those that were to go and were not there, which say so."""
        left = [row for by_texts in self._stored.values() for found in by_texts.values() for row, _, _ in found]
        return [*left, *self._unfound]

    def change(self, number: int, event: Event) -> None:
        """Take in an insert or a delete; the delete of a row that is not there does nothing."""
        if event.shape != self._now:
            self._go_on_with(event.shape)
        if not event.gone:
            self._put(Row(number, said=(False,)), event.shape, event.key)
            return
        for places, by_texts in self._stored.items():
            texts = _at(places, event.key)
            if texts in by_texts:
                by_texts[texts].popleft()
                if not by_texts[texts]:
                    del by_texts[texts]
                return
        self._unfound.append(Row(number, said=(True,)))

    def _go_on_with(self, shape: int) -> None:
        """Compare by the columns of the changes that come now."""
        stored = [each for by_texts in self._stored.values() for found in by_texts.values() for each in found]
        self._now, self._stored = shape, {}
        for each in stored:
            self._put(*each)

    def _put(self, row: Row, shape: int, texts: list[str | None]) -> None:
        assert self._now is not None
        places = tuple(sorted(self._shapes[shape] & self._shapes[self._now]))
        if places not in self._stored:
            self._stored[places] = {}
            self._stored = dict(sorted(self._stored.items(), key=lambda item: -len(item[0])))
        self._stored[places].setdefault(_at(places, texts), deque()).append((row, shape, texts))


def _at(places: tuple[int, ...], texts: list[str | None]) -> Texts:
    return tuple(text for place in places for text in (texts[2 * place], texts[2 * place + 1]))
