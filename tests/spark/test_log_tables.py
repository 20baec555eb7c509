"""Tables over all their alterations."""

import pyarrow as pa
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.spark._log_view.added_columns import DEFAULT_PREFIX, Prefix
from pgoutput_construct.spark._log_view.log_tables import Usage, find_tables
from tests.stream.test_relations import history


def relation(oid: int, name: str, *columns: tuple[str, int], identity: str = "d") -> pgo.Relation:
    """A Relation whose first column is its key."""
    found = tuple(pgo.RelationColumn(int(i == 0), *column, -1) for i, column in enumerate(columns))
    return pgo.Relation(None, oid, "public", name, identity, found)


def test_union_of_columns() -> None:
    """The latest order first, then what was dropped; types become wide enough; the name is the last one."""
    versions = [
        relation(1, "t", ("id", 21), ("gone", 25), ("n", 23)),
        relation(1, "u", ("n", 25), ("id", 20), ("new", 16)),
        relation(2, "unused", ("id", 23)),
    ]
    timeline = history(*((seq, None, version) for seq, version in enumerate(versions)))
    tables = find_tables(timeline, [Usage(0, 1, 2, (9, 0), (9, 1)), Usage(1, 0, 1, (5, 0), (5, 0))])
    assert list(tables) == ["public.u"]
    table = tables["public.u"]
    types = [pa.string(), pa.int64(), pa.bool_(), pa.string()]
    assert list(table.columns) == [pa.field(*pair) for pair in zip(["n", "id", "new", "gone"], types, strict=True)]
    assert (table.current, table.key_columns) == (("n", "id", "new"), ("n",))
    assert (set(table.names), table.segment_indexes, table.rows) == ({0, 1}, (0, 1), 3)


def test_replica_identities() -> None:
    """The full row is no key."""
    timeline = history((0, None, relation(1, "t", ("id", 23), identity="f")))
    assert find_tables(timeline, [Usage(0, 0, 1, (1, 0), (1, 0))])["public.t"].key_columns == ()


@pytest.mark.parametrize(("name", "sensitive"), [("_op", True), ("_before.x", True), ("ID", False), ("_OP", False)])
def test_names_that_collide(name: str, sensitive: bool) -> None:
    """A clear error that names table and remedy; with another prefix it is read."""
    timeline = history((0, None, relation(1, "t", ("id", 23), (name, 23))))
    names = find_tables(timeline, [Usage(0, 0, 1, (1, 0), (1, 0))])["public.t"].columns.names
    with pytest.raises(pgo.ChangeLogError, match=r"public\.t: .*(--metadata-prefix|caseSensitive)"):
        DEFAULT_PREFIX.check("public.t", names, sensitive)
    if not sensitive:
        DEFAULT_PREFIX.check("public.t", names, True)
    Prefix("__").check("public.t", names, True)
    with pytest.raises(pgo.ChangeLogError, match=r"'pg_seq' has the name of an added column.*than 'pg_'"):
        Prefix("pg_").check("public.t", [*names, "pg_seq"], True)
