"""Histories of a live server's tables: the rows that have not ended are those of the source, after every batch."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.spark._replicate import read_current, replicate
from tests.postgres.shop import Shop
from tests.spark.replicate.rounds import open_differences
from tests.table_formats import ALL_FORMATS

pytestmark = [pytest.mark.server, pytest.mark.spark]

ROUNDS: tuple[Mapping[str, str], ...] = (
    {
        "moments": """CREATE TABLE moments (at timestamp, part float8, v int, PRIMARY KEY (at, part));
            INSERT INTO moments SELECT '2024-01-01'::timestamp + i * interval '1 microsecond', 0, i
            FROM generate_series(1, 5) i;
            INSERT INTO moments VALUES ('infinity', 0, 1), ('-infinity', 0, 2), ('infinity', 1, 3);
            UPDATE moments SET v = 10 WHERE v = 1""",
        "same": """CREATE TABLE same (a int, b text);
            ALTER TABLE same REPLICA IDENTITY FULL;
            INSERT INTO same VALUES (1, 'x'), (1, 'x'), (2, NULL);
            UPDATE same SET a = a""",
        "added": """CREATE TABLE added (a int, b text);
            ALTER TABLE added REPLICA IDENTITY FULL;
            INSERT INTO added VALUES (1, 'x'), (1, 'x'), (2, 'y'), (3, 'z')""",
        "emptied": """CREATE TABLE emptied (a int);
            ALTER TABLE emptied REPLICA IDENTITY FULL;
            INSERT INTO emptied VALUES (1), (1), (2)""",
        "otherwise": """CREATE TABLE otherwise (id int PRIMARY KEY, code int NOT NULL UNIQUE, v text);
            INSERT INTO otherwise SELECT i, 100 + i, 'row' FROM generate_series(1, 6) i""",
        "moved": """CREATE TABLE moved (id int PRIMARY KEY, n int, big text);
            ALTER TABLE moved ALTER big SET STORAGE EXTERNAL;
            INSERT INTO moved SELECT i, 0, repeat('b', 3000 + i) FROM generate_series(1, 4) i""",
        "altered": """CREATE TABLE altered (id int PRIMARY KEY, at timestamp, n text, m int);
            INSERT INTO altered VALUES (1, 'infinity', '1', 1), (2, '2024-01-01', '2', 2), (3, NULL, 'x', 3)""",
        "replaced": """CREATE TABLE replaced (id int PRIMARY KEY, c timestamptz[]);
            INSERT INTO replaced VALUES (1, '{infinity}'), (2, NULL)""",
        "stripped": """CREATE TABLE stripped (c int);
            ALTER TABLE stripped REPLICA IDENTITY FULL;
            INSERT INTO stripped VALUES (1), (NULL)""",
        "bare": "CREATE TABLE bare (); INSERT INTO bare DEFAULT VALUES",
        "dated": """CREATE TABLE dated (a int);
            ALTER TABLE dated REPLICA IDENTITY FULL;
            INSERT INTO dated VALUES (1), (2), (3)""",
    },
    {
        "moments": """UPDATE moments SET v = v + 20 WHERE v IN (1, 2, 3);
            UPDATE moments SET at = at + interval '1 microsecond', part = '-0' WHERE v = 5;
            DELETE FROM moments WHERE v = 4""",
        "same": "UPDATE same SET a = a; DELETE FROM same WHERE ctid IN (SELECT ctid FROM same WHERE a = 1 LIMIT 1)",
        "added": """ALTER TABLE added ADD COLUMN c int DEFAULT 7;
            UPDATE added SET b = 'changed' WHERE a = 2;
            DELETE FROM added WHERE ctid IN (SELECT ctid FROM added WHERE a = 1 LIMIT 1)""",
        "emptied": "TRUNCATE emptied; INSERT INTO emptied VALUES (1), (1); DELETE FROM emptied WHERE ctid = '(0,1)'",
        "otherwise": """DELETE FROM otherwise WHERE id = 1;
            UPDATE otherwise SET v = 'by id' WHERE id = 2;
            ALTER TABLE otherwise REPLICA IDENTITY USING INDEX otherwise_code_key;
            DELETE FROM otherwise WHERE id = 3;
            UPDATE otherwise SET id = 40, v = 'by code' WHERE id = 4;
            ALTER TABLE otherwise REPLICA IDENTITY FULL;
            UPDATE otherwise SET v = 'by row' WHERE id = 40""",
        "moved": """UPDATE moved SET id = id + 10 WHERE id < 3;
            UPDATE moved SET id = id + 10, n = 1 WHERE id = 11""",
        "altered": """UPDATE altered SET m = 4 WHERE id = 1;
            ALTER TABLE altered ALTER at TYPE timestamptz, ALTER n TYPE bytea USING n::bytea, ALTER m TYPE bigint;
            UPDATE altered SET m = 5 WHERE id = 2""",
        "replaced": """ALTER TABLE replaced DROP COLUMN c; ALTER TABLE replaced ADD COLUMN c integer;
            DELETE FROM replaced WHERE id = 1""",
        "stripped": "ALTER TABLE stripped DROP COLUMN c",
        "bare": "INSERT INTO bare DEFAULT VALUES",
        "dated": """ALTER TABLE dated ADD COLUMN at timestamp DEFAULT '2024-01-01',
                ADD COLUMN all_at timestamp[] DEFAULT '{2024-01-01,NULL}';
            UPDATE dated SET a = 4 WHERE a = 1;
            DELETE FROM dated WHERE a = 2""",
    },
    {
        "moments": "UPDATE moments SET v = 0",
        "same": "UPDATE same SET a = a",
        "added": "DELETE FROM added WHERE a = 3; INSERT INTO added VALUES (9, 'x', NULL)",
        "emptied": "DELETE FROM emptied",
        "otherwise": "ALTER TABLE otherwise REPLICA IDENTITY DEFAULT; UPDATE otherwise SET v = 'by id' WHERE id > 5",
        "moved": "UPDATE moved SET id = 1, n = 2 WHERE id = 21; DELETE FROM moved WHERE id = 12",
        "altered": """ALTER TABLE altered ALTER n TYPE text USING 'x', ALTER m TYPE int;
            DELETE FROM altered WHERE id = 3""",
        "replaced": "INSERT INTO replaced VALUES (1, 2); UPDATE replaced SET c = 3 WHERE id = 2",
        "stripped": "INSERT INTO stripped DEFAULT VALUES",
        "bare": "ALTER TABLE bare ADD COLUMN a int DEFAULT 7; INSERT INTO bare VALUES (1)",
        "dated": "UPDATE dated SET at = '2024-01-02' WHERE a = 3",
    },
)
"""What happens to each table before each batch."""


@pytest.fixture
def shop(server18: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    """A database of its own."""
    with Shop.create(server18, "histories", tmp_path / "log") as shop:
        yield shop


@pytest.mark.long
@pytest.mark.parametrize("into", ALL_FORMATS)
def test_what_has_not_ended_is_the_source(lake: Any, shop: Shop, tmp_path: Path, into: str) -> None:
    """Keys of microseconds and infinity, equal rows, columns with defaults, other identities, keys that move, types."""
    for number, scripts in enumerate(ROUNDS, 1):
        statements = [part for script in scripts.values() for part in script.split(";\n")]
        shop.execute(*statements)
        shop.capture(snapshot=True)
        replicate(lake, shop.directory, tmp_path / "wh", into, history=True)
        assert not (found := open_differences(lake, shop, tmp_path / "wh", ROUNDS[0])), f"round {number}: {found}"
        stripped = read_current(lake, tmp_path / "wh", "public.stripped")
        assert (stripped.columns[:-3], stripped.count()) == (["c"] if number == 1 else [], max(number, 2))
    replicate(lake, shop.directory, tmp_path / "once", into, history=True)
    assert not (found := open_differences(lake, shop, tmp_path / "once", ROUNDS[0])), f"once: {found}"
