"""Alterations of tables and publications, and what a log must know of each: the cases of test_catalog."""

from dataclasses import dataclass

__all__ = ["CASES", "REATTACHED", "Case", "Numbers"]

Numbers = list[tuple[str, tuple[int, ...]]]
BIG = "INSERT INTO t SELECT i, 'many' FROM generate_series({}, {} + 3000) i"
TABLE = "CREATE TABLE t (id int PRIMARY KEY, name varchar(20))"
ROOT = "CREATE TABLE t (id int, name varchar(20)) PARTITION BY RANGE (id)"
ONE, TWO = (f"CREATE TABLE t_{n} PARTITION OF t FOR VALUES FROM ({n}00) TO ({n}99)" for n in "01")
REATTACHED = "ALTER TABLE t ATTACH PARTITION t_1 FOR VALUES FROM (100) TO (199)"
WITH_KEY = "CREATE TABLE t (id int PRIMARY KEY, name varchar(20)) PARTITION BY RANGE (id)"
OTHER_ORDER = (
    "CREATE TABLE t_0 (gone int, name varchar(20), id int)",
    "ALTER TABLE t_0 DROP gone",
    "ALTER TABLE t ATTACH PARTITION t_0 FOR VALUES FROM (0) TO (99)",
)
PUBLISHED, AGAIN = "ALTER PUBLICATION p ADD TABLE t", "BEGIN; ALTER PUBLICATION p DROP TABLE t; {}; COMMIT"


@dataclass(frozen=True)
class Case:
    """Statements about a table ``t``, and what the log is to know after them."""

    statements: tuple[str, ...]
    numbers: Numbers
    """Of each description that rows have: its columns, and their numbers."""
    missing: tuple[str | None, ...] = ()
    """What older rows have in the columns from the third one on."""
    stale: str | None = None
    """Words of the reason."""
    late: str | None = None
    """The same where no capture ran meanwhile, if it is not the same."""
    late_numbers: Numbers | None = None
    setup: tuple[str, ...] = (TABLE, PUBLISHED)
    """What is done before the first capture."""
    can_copy: bool = True
    """Whether the stale table is one that can be copied."""


INSERT, MORE = "INSERT INTO t (id) VALUES (1)", "INSERT INTO t (id) VALUES (2)"
BEFORE = ("id name", (1, 2))
CASES = {
    "a column renamed": Case((INSERT, "ALTER TABLE t RENAME name TO label", MORE), [BEFORE, ("id label", (1, 2))]),
    "names exchanged": Case(
        (INSERT, "ALTER TABLE t RENAME id TO x", "ALTER TABLE t RENAME name TO id", "INSERT INTO t VALUES (2, 'b')"),
        [BEFORE, ("x id", (1, 2))],
    ),
    "a constant default": Case(
        (INSERT, "ALTER TABLE t ADD extra text DEFAULT 'it''s'", MORE),
        [BEFORE, ("id name extra", (1, 2, 3))],
        ("it's",),
    ),
    "defaults with commas, braces and nothing": Case(
        (
            INSERT,
            "ALTER TABLE t ADD a box DEFAULT '(1,1),(0,0)', ADD b box[] DEFAULT '{(1,1),(0,0);(2,2),(1,1)}', "
            "ADD c int[] DEFAULT '{1,2}', ADD d text DEFAULT '', ADD e text DEFAULT '{\"\\,', "
            "ADD f text DEFAULT 'NULL'",
            MORE,
        ),
        [BEFORE, ("id name a b c d e f", tuple(range(1, 9)))],
        ("(1,1),(0,0)", "{(1,1),(0,0);(2,2),(1,1)}", "{1,2}", "", '{"\\,', "NULL"),
    ),
    "a default that was taken away again": Case(
        (INSERT, "ALTER TABLE t ADD n int DEFAULT 5", "ALTER TABLE t ALTER n DROP DEFAULT", MORE),
        [BEFORE, ("id name n", (1, 2, 3))],
        ("5",),
    ),
    "a default set later": Case(
        (INSERT, "ALTER TABLE t ADD n int", "ALTER TABLE t ALTER n SET DEFAULT 5", MORE),
        [BEFORE, ("id name n", (1, 2, 3))],
        (None,),
    ),
    "a volatile default": Case(
        (INSERT, "ALTER TABLE t ADD n float8 DEFAULT random()", MORE),
        [BEFORE, ("id name n", (1, 2, 3))],
        stale="was rewritten",
    ),
    "a type changed": Case(
        (INSERT, "ALTER TABLE t ALTER name TYPE int USING length(name)", MORE),
        [BEFORE, BEFORE],
        stale="was rewritten",
    ),
    "values changed, but no type": Case(
        (INSERT, "ALTER TABLE t ALTER name TYPE varchar(20) USING 'x' || name", MORE),
        [BEFORE],
        stale="was rewritten",
    ),
    "the same bytes as another type": Case((INSERT, "ALTER TABLE t ALTER name TYPE text", MORE), [BEFORE, BEFORE]),
    "files rewritten, but no values": Case(
        (INSERT, "VACUUM FULL t", MORE, "CLUSTER t USING t_pkey", "INSERT INTO t VALUES (3)", "TRUNCATE t", MORE),
        [BEFORE],
    ),
    "a column dropped, and another one of its name": Case(
        (INSERT, "ALTER TABLE t DROP name", "ALTER TABLE t ADD name varchar(20)", MORE),
        [BEFORE, ("id name", (1, 3))],
        late="was altered several times in a row",
        late_numbers=[],
    ),
    "a name given to another column, and taken away again": Case(
        (
            INSERT,
            "ALTER TABLE t DROP name",
            "ALTER TABLE t ADD name varchar(20)",
            MORE,
            "ALTER TABLE t RENAME name TO label",
            "INSERT INTO t VALUES (3, 'c')",
        ),
        [BEFORE, ("id name", (1, 3)), ("id label", (1, 3))],
        late="was altered several times in a row",
        late_numbers=[BEFORE, ("id label", (1, 3))],
    ),
    "a column that was there for a moment": Case(
        (INSERT, "ALTER TABLE t ADD n int", "ALTER TABLE t DROP n", "ALTER TABLE t ADD m text", MORE),
        [BEFORE, ("id name m", (1, 2, 4))],
    ),
    "several names": Case(
        (
            INSERT,
            "ALTER TABLE t RENAME name TO a",
            MORE,
            "ALTER TABLE t RENAME a TO b",
            "INSERT INTO t VALUES (3, 'c')",
        ),
        [BEFORE, ("id a", (1, 2)), ("id b", (1, 2))],
    ),
    "inside one transaction": Case(
        (
            "BEGIN; INSERT INTO t VALUES (1, 'a'); ALTER TABLE t ADD n int DEFAULT 5; INSERT INTO t VALUES (2, 'b', 6);"
            "ALTER TABLE t RENAME name TO label; INSERT INTO t VALUES (3, 'c', 7); COMMIT",
            "INSERT INTO t VALUES (4, 'd', 8)",
        ),
        [BEFORE, ("id name n", (1, 2, 3)), ("id label n", (1, 2, 3))],
        ("5",),
    ),
    "in a transaction that is rolled back": Case(
        (INSERT, f"BEGIN; ALTER TABLE t ADD n int DEFAULT 5; {BIG.format(10, 10)}; ROLLBACK", MORE), [BEFORE]
    ),
    "in a subtransaction of a stream that is rolled back": Case(
        (
            f"BEGIN; {BIG.format(10, 10)}; SAVEPOINT s; ALTER TABLE t ADD n int DEFAULT 5; {BIG.format(5000, 5000)};"
            f"ROLLBACK TO s; ALTER TABLE t ADD m int DEFAULT 6; {BIG.format(9000, 9000)}; COMMIT",
            MORE,
        ),
        [BEFORE, ("id name m", (1, 2, 3))],
        ("6",),
    ),
    "partitions with columns in another order": Case(
        (INSERT, "ALTER TABLE t ADD n int DEFAULT 5", MORE),
        [BEFORE, ("id name n", (1, 2, 3))],
        ("5",),
        setup=(ROOT, *OTHER_ORDER, PUBLISHED),
    ),
    "a partition created": Case((INSERT, TWO, MORE), [BEFORE], setup=(ROOT, ONE, PUBLISHED)),
    "a partition attached": Case(
        ("INSERT INTO t (id) VALUES (150)", *OTHER_ORDER, MORE),
        [BEFORE],
        setup=(ROOT, TWO, PUBLISHED),
        stale="was given a table as a partition",
    ),
    "a partition detached": Case(
        (INSERT, "ALTER TABLE t DETACH PARTITION t_1"), [BEFORE], setup=(ROOT, ONE, TWO, PUBLISHED), stale="lost a part"
    ),
    "a partition detached and attached again": Case(
        (INSERT, "ALTER TABLE t DETACH PARTITION t_1", "INSERT INTO t_1 VALUES (150)", REATTACHED, MORE),
        [BEFORE],
        setup=(ROOT, ONE, TWO, PUBLISHED),
        stale="lost a part",
        late="was given a table as a partition",
    ),
    "a partition dropped": Case(
        (INSERT, "DROP TABLE t_1"), [BEFORE], setup=(ROOT, ONE, TWO, PUBLISHED), stale="lost a partition"
    ),
    "a partition truncated": Case(
        (INSERT, "TRUNCATE t_1"), [BEFORE], setup=(ROOT, ONE, TWO, PUBLISHED), stale="has a partition that was trunc"
    ),
    "a partitioned table truncated": Case((INSERT, "TRUNCATE t", MORE), [BEFORE], setup=(ROOT, ONE, TWO, PUBLISHED)),
    "a partitioned table truncated, then one of its partitions": Case(
        (INSERT, "TRUNCATE t", "INSERT INTO t (id) VALUES (1), (150)", "TRUNCATE t_1", MORE),
        [BEFORE],
        setup=(ROOT, ONE, TWO, PUBLISHED),
        stale="has a partition that was trunc",
    ),
    "a partitioned table and a partition truncated in one transaction": Case(
        (
            INSERT,
            "BEGIN; SAVEPOINT a; TRUNCATE t; RELEASE a; INSERT INTO t (id) VALUES (1), (150); "
            "SAVEPOINT b; TRUNCATE t_1; RELEASE b; COMMIT",
            MORE,
        ),
        [BEFORE],
        setup=(ROOT, ONE, TWO, PUBLISHED),
        stale="has a partition that was trunc",
    ),
    "a partition truncated after the table, and all of them granted": Case(
        (
            INSERT,
            "TRUNCATE t",
            "INSERT INTO t (id) VALUES (1), (150)",
            "TRUNCATE t_1",
            "GRANT SELECT ON t, t_0, t_1 TO public",
        ),
        [BEFORE],
        setup=(WITH_KEY, ONE, TWO, PUBLISHED),
        stale="has a partition that was trunc",
    ),
    "a partitioned table truncated, and one partition granted": Case(
        (INSERT, "TRUNCATE t", MORE, "GRANT SELECT ON t_0 TO public"),
        [BEFORE],
        setup=(WITH_KEY, ONE, TWO, PUBLISHED),
    ),
    "a partition created and truncated": Case(
        (INSERT, TWO, "INSERT INTO t (id) VALUES (150)", "TRUNCATE t_1", MORE),
        [BEFORE],
        setup=(ROOT, ONE, PUBLISHED),
        stale="has a partition that was trunc",
    ),
    "a partitioned table truncated, with a new partition": Case(
        (INSERT, TWO, "INSERT INTO t (id) VALUES (150)", "TRUNCATE t", MORE),
        [BEFORE],
        setup=(ROOT, ONE, PUBLISHED),
    ),
    "a partitioned table truncated, and one partition analyzed": Case(
        (INSERT, "TRUNCATE t", MORE, "ANALYZE t_0"), [BEFORE], setup=(ROOT, ONE, TWO, PUBLISHED)
    ),
    "published later": Case((INSERT, PUBLISHED, MORE), [BEFORE], setup=(TABLE,)),
    "no longer published": Case(
        (INSERT, "ALTER PUBLICATION p DROP TABLE t", MORE), [BEFORE], stale="is no longer published", can_copy=False
    ),
    "taken out and added again": Case(
        (INSERT, "ALTER PUBLICATION p DROP TABLE t", MORE, PUBLISHED, "INSERT INTO t VALUES (3)"),
        [BEFORE],
        stale="is no longer published; public.",
        late="was taken out of the publication and added again",
    ),
    "deletes no longer published": Case(
        (INSERT, "ALTER PUBLICATION p_t SET (publish = 'insert, update')", "DELETE FROM t; INSERT INTO t VALUES (3)"),
        [BEFORE],
        setup=(TABLE, "CREATE PUBLICATION p_t FOR TABLE t"),
        stale="is published with insert, update, before with delete,",
    ),
    "a row filter": Case(
        (INSERT, AGAIN.format(f"{PUBLISHED} WHERE (id > 0)"), MORE), [BEFORE], stale="has another row filter"
    ),
    "more columns": Case(
        (INSERT, AGAIN.format(f"{PUBLISHED} (id, name)"), MORE),
        [("id", (1,)), BEFORE],
        setup=(TABLE, f"{PUBLISHED} (id)"),
        stale="has more columns",
    ),
    "a published column renamed": Case(
        (INSERT, "ALTER TABLE t RENAME id TO x", "INSERT INTO t VALUES (2)"),
        [("id", (1,)), ("x", (1,))],
        setup=(TABLE, f"{PUBLISHED} (id)"),
    ),
    "a table dropped": Case((INSERT, "DROP TABLE t"), [BEFORE]),
    "a name reused": Case((INSERT, "DROP TABLE t", TABLE, PUBLISHED, MORE), [BEFORE]),
    "a table and its schema renamed": Case(
        (
            INSERT,
            "CREATE SCHEMA t_schema",
            "ALTER TABLE t SET SCHEMA t_schema",
            "INSERT INTO t_schema.t VALUES (2)",
            "ALTER SCHEMA t_schema RENAME TO t_renamed",
            "ALTER TABLE t_renamed.t RENAME name TO label",
            "INSERT INTO t_renamed.t VALUES (3)",
        ),
        [BEFORE, ("id label", (1, 2))],
    ),
}
