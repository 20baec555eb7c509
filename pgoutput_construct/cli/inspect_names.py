"""The names of tables and columns next to the bytes, where a Relation before them tells."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pgoutput_construct.cli.words import printable
from pgoutput_construct.errors import PgoutputError, ProtocolError
from pgoutput_construct.stream.identifiers import full_name
from pgoutput_construct.stream.relations import RelationCache
from pgoutput_construct.stream.state import StreamState
from pgoutput_construct.wire import parse
from pgoutput_construct.wire.messages import PgoutputMessage, Relation
from pgoutput_construct.wire.trace import Trace

__all__ = ["Before", "labels"]

_COLUMN: Final = re.compile(r"(.*\.columns\[(\d+)\]).*")
_TABLE: Final = re.compile(r".*\.relation_oids?(\[\d+\])?")


class Before:
    """What the messages before say: where in the stream the next one stands, and which tables there are."""

    def __init__(self, relations: RelationCache | None = None) -> None:
        self.state = StreamState()
        self.relations = relations or RelationCache()

    def take(self, message: PgoutputMessage) -> None:
        """Take in the next message."""
        self.relations.update(message)
        self.state.follow(message)

    def read(self, payload: bytes, options: Mapping[str, Any]) -> None:
        """Take in the next payload; one that is no message says nothing."""
        try:
            self.take(parse(payload, **{**options, **self.state.parameters}))
        except PgoutputError:
            return


def labels(trace: Trace, relations: RelationCache) -> Mapping[str, str]:
    """Return the names of the tables and columns in a message, by path, as far as they are known."""
    return {} if trace.name == Relation.__name__ else dict(_labels(trace, relations))


def _labels(trace: Trace, relations: RelationCache) -> Iterator[tuple[str, str]]:
    relation: Relation | None = None
    for span in trace.spans:
        if _TABLE.fullmatch(span.path):
            relation = _relation(relations, span.value)
            if relation is not None:
                yield span.path, printable(full_name(relation))
        elif relation is not None and (match := _COLUMN.fullmatch(span.path)):
            index = int(match[2])
            if index < len(relation.columns):
                yield match[1], printable(relation.columns[index].name)


def _relation(relations: RelationCache, oid: int) -> Relation | None:
    try:
        return relations.get(oid)
    except ProtocolError:
        return None
