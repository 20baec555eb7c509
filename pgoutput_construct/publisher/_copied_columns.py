"""The rows of a table copy that was made in several attempts, with the columns that the last one had.

A copy resumes after an ALTER TABLE that does not rewrite rows (``postgres/_snapshot/copy_plans``): then its earlier
rows are described with other columns. A subscriber is to get one table: the columns of the last attempt, those that it
lacks with the value that the server has for such rows (pg_attribute.attmissingval).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from pgoutput_construct.changelog._facts.copies import TableCopy
from pgoutput_construct.changelog._facts.lineage import lineage_of
from pgoutput_construct.changelog._facts.numbering import ColumnId, column_ids
from pgoutput_construct.changelog._index.log_index import LogIndex
from pgoutput_construct.columnar.descriptions import copy_scope
from pgoutput_construct.publisher._feed.feed import Fed
from pgoutput_construct.stream.relations import Description, RelationHistory
from pgoutput_construct.wire.messages import Insert

__all__ = ["CopiedColumns"]

_Sources: TypeAlias = Sequence[tuple[int | None, bytes | None]]
"""Of each column the index of its value in a row, and the value of rows that have none."""


@dataclass(frozen=True)
class CopiedColumns:
    """The columns of the rows of one copy."""

    scope: int
    """The scope of the last description."""
    seq: int
    """Its seq."""
    sources: Mapping[int, _Sources]
    """Where the values of rows are that have another description, by the seq of that."""

    @classmethod
    def from_copy(cls, copy: TableCopy, history: RelationHistory, index: LogIndex) -> "CopiedColumns":
        """Return the columns of the rows of a copy.

        Args:
            copy: The copy.
            history: The descriptions of the log.
            index: The index of the log.
        """
        sent = index.entries("descriptions")
        oids, seqs = (sent[name].to_numpy() for name in ("oid", "seq"))
        chunks = copy_scope(0) - sent["stream_xid"].fill_null(0).to_numpy()
        is_mine = (oids == copy.relation_oid) & (chunks >= copy.first_chunk) & (chunks <= copy.last_chunk)
        scopes = dict(zip(seqs[is_mine].tolist(), map(copy_scope, chunks[is_mine].tolist()), strict=True))
        described = [each for each in history.descriptions if each.seq in scopes]
        last = described[-1]
        others = [each for each in described if each.relation.columns != last.relation.columns]
        return cls(scopes[last.seq], last.seq, _sources([*others, last], index) if others else {})

    def projected(self, fed: Fed, description: Description) -> Fed:
        """Return a row with these columns; ``description`` is that of the row."""
        sources, message = self.sources.get(description.seq), fed.message
        if sources is None or not isinstance(message, Insert):
            return fed
        values = tuple(missing if index is None else message.new[index] for index, missing in sources)
        return fed._replace(message=replace(message, new=values), seq=self.seq, scope=self.scope)


def _sources(described: Sequence[Description], index: LogIndex) -> dict[int, _Sources]:
    lineage = lineage_of(index)
    columns = ([column.name for column in each.relation.columns] for each in described)
    *others, last = column_ids(zip(columns, map(lineage.numbers, described), strict=True))
    oid, found = described[-1].relation.relation_oid, dict[int, _Sources]()
    missing: dict[ColumnId, bytes] = {
        column: text.encode()
        for column in last
        if isinstance(column, int) and (text := lineage.missing(oid, column)) is not None
    }
    for each, own in zip(described, others, strict=False):
        indexes = {column: index for index, column in enumerate(own)}
        found[each.seq] = [(indexes.get(column), missing.get(column)) for column in last]
    return found
