"""Run in a copy of the project that has the change ``renamed``: programs of today, and the package itself.

python renamed.py
"""

import dataclasses
import warnings
from typing import Any, Final

from hypothesis import HealthCheck, given, settings

import pgoutput_construct as pgo
from pgoutput_construct import testing
from pgoutput_construct.columnar import BatchDecoder
from pgoutput_construct.publisher._feed.feed import About
from pgoutput_construct.publisher._server.stream_request import unmade
from pgoutput_construct.stream.rows import RowReader

LSN: Final = pgo.Lsn(16)
TIME: Final = pgo.Timestamp(800_000_000_000_000)
GROWN: Final[Any] = pgo
"""The package with arguments that it does not have today."""
COLUMN: Final[Any] = pgo.RelationColumn(1, "id", 23, -1)
RELATION: Final[Any] = pgo.Relation(None, 7, "public", "t", "d", (COLUMN,))
STREAM: Final[list[Any]] = [
    pgo.Begin(LSN, TIME, 700),
    RELATION,
    pgo.Insert(None, 7, (b"1",)),
    pgo.Commit(LSN, pgo.Lsn(32), TIME),
]


def check_replaced() -> None:
    """dataclasses.replace takes former names, and warns where it is called."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        column = dataclasses.replace(COLUMN, type_modifier=3)
        relation = dataclasses.replace(RELATION, namespace="other", name="u")
        assert column.type_modifier == 3 and relation.namespace == "other"
    assert column == pgo.RelationColumn(1, "id", 23, 3)
    assert relation == pgo.Relation(None, 7, "other", "u", "d", (COLUMN,))
    assert [each.category for each in caught] == [DeprecationWarning] * 5
    assert {each.filename for each in caught} == {__file__}, caught[0]


def check_places() -> None:
    """What a version no longer has is given by place, as before."""
    assert pgo.parse(pgo.build(STREAM[0])) == STREAM[0] and STREAM[0].final_lsn == LSN
    assert pgo.build(GROWN.Begin(xid=700), proto_version=5) == b"B" + (700).to_bytes(4, "big")
    assert pgo.build(GROWN.Insert(relation_oid=7), proto_version=5) == b"I" + (7).to_bytes(4, "big")


def check_publisher() -> None:
    """It can be started, and says in words which field it has nothing for."""
    about = About(200000, "1", "postgres", 1, (), {})
    said = "Begin.final_lsn with proto_version=5, streaming='off' (spec/pgoutput.yaml)"
    assert unmade(about) == said, unmade(about)


def check_readers() -> None:
    """The package reads what was renamed, and warns nobody of itself."""
    rows = RowReader()
    assert [change.new for message in STREAM for change in rows.read(message)] == [{"id": 1}]
    tables = BatchDecoder().decode([pgo.build(message) for message in STREAM]).tables
    assert [table.batch.column("id").to_pylist() for table in tables] == [[1]]


@settings(max_examples=30, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(testing.streams(4, "on"))
def check_streams(stream: Any) -> None:
    """Streams are drawn, and come back."""
    session = pgo.Session(4, "on")
    assert all(session.parse(sent.payload) == sent.message for sent in stream)


if __name__ == "__main__":
    warnings.simplefilter("error", DeprecationWarning)
    check_replaced()
    check_places()
    check_publisher()
    check_readers()
    check_streams()
