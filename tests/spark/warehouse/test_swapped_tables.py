"""A table that is filled under another name, and then takes the name of one that is dropped."""

from pathlib import Path
from typing import Any

import pytest

from pgoutput_construct.demo.server import EmbeddedServer
from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.postgres import snapshot
from pgoutput_construct.spark.warehouse import read_current, replicate
from tests.postgres.shop import Shop

pytestmark = [pytest.mark.server, pytest.mark.spark]

CREATED = (
    "CREATE TABLE t (id int PRIMARY KEY, v text)",
    "CREATE TABLE n (id int PRIMARY KEY, v text)",
    "INSERT INTO n VALUES (1, 'new'), (2, 'new')",
    "INSERT INTO t VALUES (1, 'old')",
)
SWAP = "DO $$ BEGIN DROP TABLE t; ALTER TABLE n RENAME TO t; END $$"


def test_a_table_that_took_the_name_of_another(lake: Any, server18: EmbeddedServer, tmp_path: Path) -> None:
    """Where the old one has changes among those of the new one, the table is refused until it is copied."""
    with Shop.create(server18, "swapped", tmp_path / "log") as shop:
        shop.execute(*CREATED)
        shop.capture()
        replicate(lake, shop.directory, tmp_path / "wh", "parquet")
        shop.execute("INSERT INTO t VALUES (2, 'old')", SWAP)
        shop.execute("INSERT INTO t VALUES (3, 'new')")
        shop.capture()
        with pytest.raises(ChangeLogError, match=r"public\.t: .* took the name of another one.*pgoutput snapshot"):
            replicate(lake, shop.directory, tmp_path / "wh", "parquet")
        snapshot(shop.dsn, shop.directory, ["public.t"])
        done = replicate(lake, shop.directory, tmp_path / "wh", "parquet")
        assert done is not None and not done.troubled
        found = read_current(lake, tmp_path / "wh", "public.t").select("id", "v")
        assert sorted(map(tuple, found.collect())) == [(1, "new"), (2, "new"), (3, "new")]


def test_one_that_was_filled_after_the_other(lake: Any, server18: EmbeddedServer, tmp_path: Path) -> None:
    """The table that has the name now was filled after all rows of the one that was dropped."""
    with Shop.create(server18, "taken_over", tmp_path / "log") as shop:
        shop.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'old')")
        shop.capture()
        replicate(lake, shop.directory, tmp_path / "wh", "parquet")
        shop.execute("CREATE TABLE n (id int PRIMARY KEY, v text)", "INSERT INTO n VALUES (1, 'new'), (2, 'new')", SWAP)
        shop.capture()
        replicate(lake, shop.directory, tmp_path / "wh", "parquet")
        found = read_current(lake, tmp_path / "wh", "public.t").select("id", "v")
        assert sorted(map(tuple, found.collect())) == [(1, "new"), (2, "new")]
