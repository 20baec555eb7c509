"""Publications that are altered and altered back between two looks at the catalog: what was not sent is copied."""

import pytest

from pgoutput_construct.changelog._facts.completeness import lacks_of
from pgoutput_construct.changelog._facts.copies import copies_of
from pgoutput_construct.errors import ReplicationError
from tests.postgres.copying.conftest import Source

pytestmark = pytest.mark.server

TABLES = (
    "CREATE SCHEMA there",
    "CREATE TABLE public.a (id int PRIMARY KEY, v int)",
    "CREATE TABLE public.b (id int PRIMARY KEY, v int)",
    "INSERT INTO public.a VALUES (1, 1)",
    "INSERT INTO public.b VALUES (1, 1)",
)
INSERTS, ALL = (
    f"ALTER PUBLICATION q SET (publish = '{what}')" for what in ("insert", "insert, update, delete, truncate")
)
UPDATE = "UPDATE {}.a SET v = v + 1"
FOR_TABLES, FOR_ALL, IN_SCHEMA = "FOR TABLE public.a, public.b", "FOR ALL TABLES", "FOR TABLES IN SCHEMA public"
TO_THERE, TO_HERE = "ALTER TABLE public.a SET SCHEMA there", "ALTER TABLE there.a SET SCHEMA public"
BOTH, ONE, NONE = {"a": 1, "b": 1}, {"a": 1, "b": 0}, {"a": 0, "b": 0}

CASES: dict[str, dict[str, tuple[tuple[str, ...], dict[str, int]]]] = {
    FOR_TABLES: {
        "operations": ((INSERTS, UPDATE.format("public"), ALL), BOTH),
        "a table": (
            (
                "ALTER PUBLICATION q DROP TABLE public.a",
                UPDATE.format("public"),
                "ALTER PUBLICATION q ADD TABLE public.a",
            ),
            ONE,
        ),
        "the schema of a table": ((TO_THERE, UPDATE.format("there"), TO_HERE), NONE),
        "another table and schema": (
            (
                "CREATE TABLE there.c (id int PRIMARY KEY)",
                "ALTER PUBLICATION q ADD TABLE there.c",
                "ALTER PUBLICATION q ADD TABLES IN SCHEMA there",
                "ALTER PUBLICATION q DROP TABLES IN SCHEMA there",
                "COMMENT ON PUBLICATION q IS 'commented'",
            ),
            NONE,
        ),
        "the tables' schema": (("ALTER PUBLICATION q ADD TABLES IN SCHEMA public",), NONE),
    },
    FOR_ALL: {"operations": ((INSERTS, UPDATE.format("public"), ALL), BOTH)},
    IN_SCHEMA: {
        "operations": ((INSERTS, UPDATE.format("public"), ALL), BOTH),
        "a schema": (
            (
                "ALTER PUBLICATION q DROP TABLES IN SCHEMA public",
                UPDATE.format("public"),
                "ALTER PUBLICATION q ADD TABLES IN SCHEMA public",
            ),
            BOTH,
        ),
        "the schema of a table": ((TO_THERE, UPDATE.format("there"), TO_HERE), ONE),
        "nothing": (
            (
                "VACUUM FREEZE",
                "VACUUM FULL pg_publication",
                "VACUUM FULL pg_depend",
                "ANALYZE",
                UPDATE.format("public"),
            ),
            NONE,
        ),
        "another schema": (("ALTER PUBLICATION q ADD TABLES IN SCHEMA there", UPDATE.format("public")), NONE),
    },
}
"""By what a publication is made for, what is done to it, one after another, and which tables are copied for each."""


@pytest.mark.parametrize(
    ("publication", "together"),
    [
        pytest.param(FOR_TABLES, True, id="tables-one transaction"),
        pytest.param(FOR_TABLES, False, id="tables-several", marks=pytest.mark.long),
        pytest.param(FOR_ALL, True, id="all-one transaction", marks=pytest.mark.long),
        pytest.param(FOR_ALL, False, id="all-several"),
        pytest.param(IN_SCHEMA, True, id="schema-one transaction", marks=pytest.mark.long),
        pytest.param(IN_SCHEMA, False, id="schema-several"),
    ],
)
def test_altered_and_altered_back(source: Source, publication: str, together: bool) -> None:
    """Tables that the server may not have sent completely meanwhile are copied again, others are not."""
    source.execute(*TABLES, f"CREATE PUBLICATION q {publication}")
    source.capture(publications=["q"])
    for number, (name, (statements, copies)) in enumerate(CASES[publication].items(), 2):
        if together and "VACUUM FREEZE" in statements:  # which runs in no transaction
            continue
        before = _copies(source)
        source.execute(*(["; ".join(("BEGIN", *statements, "COMMIT"))] if together else statements))
        source.execute(f"INSERT INTO public.b VALUES ({number}, {number})")
        source.capture(publications=["q"])
        made = _copies(source)
        assert {table: made.count(table) - before.count(table) for table in "ab"} == copies, name
        source.check({"a": "id v", "b": "id v"})
        assert lacks_of(source.log().index) == [], name


def _copies(source: Source) -> list[str]:
    return [copy.name for copy in copies_of(source.log().index)]


def test_one_of_two_publications_altered(source: Source) -> None:
    """What another publication sent all the time is not copied; what it does not publish is."""
    source.execute(*TABLES, f"CREATE PUBLICATION q {FOR_ALL}", "ALTER PUBLICATION p SET TABLE public.a, public.b")
    source.execute("CREATE PUBLICATION r FOR TABLE public.a WITH (publish = 'insert')")
    for publications, copies in ((["p", "q"], 1), (["r", "q"], 2)):
        source.execute("CREATE TABLE more (id int PRIMARY KEY)", "DROP TABLE more")  # readings with other snapshots
        source.capture(publications=publications)
        source.execute(INSERTS, UPDATE.format("public"), ALL)
        source.capture(publications=publications)
        made = [copy.name for copy in copies_of(source.log().index)]
        assert made.count("a") == copies
        source.check({"a": "id v", "b": "id v"})


def test_a_table_created_while_less_was_published(source: Source) -> None:
    """Without copies it is not complete, although it is new; and the tables that were there are named."""
    source.execute(*TABLES, f"CREATE PUBLICATION q {FOR_ALL}")
    given = {"publications": ["q"], "snapshot": False, "on_rewrite": "stop"}
    source.capture(**given)
    source.execute("INSERT INTO public.b VALUES (2, 2)")
    source.capture(**given)
    source.execute(
        "TRUNCATE public.a, public.b",
        "INSERT INTO public.a VALUES (1, 1)",
        "CREATE TABLE public.c (id int PRIMARY KEY)",
    )
    source.capture(**given)
    assert lacks_of(source.log().index) == []
    source.execute(
        "CREATE TABLE public.d (id int PRIMARY KEY)",
        "INSERT INTO d VALUES (1), (2)",
        INSERTS,
        "DELETE FROM d WHERE id = 1",
        ALL,
    )
    source.execute("CREATE TABLE public.e (id int PRIMARY KEY)", "INSERT INTO d VALUES (3)")
    with pytest.raises(ReplicationError, match=r"public\.a may lack changes: a publication was altered"):
        source.capture(**given)
    reasons = {lack.name: lack.reason for lack in lacks_of(source.log().index)}
    assert reasons["public.d"] == "the log has no snapshot of public.d"
    assert all("may lack changes" in reasons[name] for name in ("public.a", "public.b", "public.c"))
