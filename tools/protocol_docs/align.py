"""Aligns the fields of a document with those of the specification, so that one change appears as one change."""

from collections.abc import Sequence

from tools.protocol_docs.cells import Cell

__all__ = ["Pair", "align"]

Pair = tuple[Cell | None, Cell | None]
"""A document's field and the specification's; None if one has no counterpart."""

GAP = -1.0
"""The cost of a field without counterpart: two of them cost more than one field whose type has changed."""


def align(document: Sequence[Cell], spec: Sequence[Cell], open_start: bool = False) -> list[Pair]:
    """Return the pairs, in order, of the best alignment; with ``open_start`` fields missing at the start are free."""
    return _Table(document, spec, 0.0 if open_start else GAP).pairs()


class _Table:
    """The best score for every prefix of the document and every prefix of the specification."""

    def __init__(self, document: Sequence[Cell], spec: Sequence[Cell], front: float) -> None:
        self.document = document
        self.spec = spec
        self.front = front
        self.best = [[0.0] * (len(spec) + 1) for _ in range(len(document) + 1)]
        for i in range(len(document) + 1):
            for j in range(len(spec) + 1):
                if i or j:
                    self.best[i][j] = self._step(i, j)[0]

    def _step(self, i: int, j: int) -> tuple[float, int, int]:
        """Return the best way into a cell of the table: its score, and the cell before it."""
        steps = []
        if i and j:
            steps.append((self.best[i - 1][j - 1] + _likeness(self.document[i - 1], self.spec[j - 1]), i - 1, j - 1))
        if j:
            steps.append((self.best[i][j - 1] + (GAP if i else self.front), i, j - 1))
        if i:
            steps.append((self.best[i - 1][j] + GAP, i - 1, j))
        return max(steps, key=lambda step: step[0])

    def pairs(self) -> list[Pair]:
        """Return the pairs on the best path through the table."""
        pairs: list[Pair] = []
        i, j = len(self.document), len(self.spec)
        while i or j:
            _, up, left = self._step(i, j)
            pairs.append((self.document[up] if up < i else None, self.spec[left] if left < j else None))
            i, j = up, left
        return pairs[::-1]


def _likeness(document: Cell, spec: Cell) -> float:
    """Return how similar two fields are: type first, then the words, then the rest."""
    score = 0.0
    if not spec.is_written(document):
        score -= 1.5
    elif isinstance(document.constant, bytes) or isinstance(spec.constant, bytes):
        score += 3 if document.constant == spec.constant else 0
    else:
        score += 2
    if spec.documented and document.whole:
        score += 2 if spec.documented in document.description else -1
    score += 1 if document.conditions == spec.conditions else -1
    if document.annotation:
        score += 1 if document.annotation == spec.annotation else -1
    score += 0.5 if document.under == spec.under else -2.5
    score -= 0.5 * (document.until != spec.until)
    return score + 0.5 * (document.since == spec.since) + 0.5 * (document.repeated == spec.repeated)
