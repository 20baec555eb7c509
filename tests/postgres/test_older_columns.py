"""Changes are decoded by the columns that their table had then, whatever queries the capture runs before."""

from pathlib import Path

import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.wire import Insert, Relation
from tests.postgres.shop import Shop, messages

pytestmark = pytest.mark.server


def test_a_backlog_is_decoded_by_its_own_columns(server: EmbeddedServer, tmp_path: Path) -> None:
    """A column that was added before the capture began is not in the rows from before it."""
    with Shop.create(server, "older_columns", tmp_path / "log") as shop:
        shop.execute("INSERT INTO item VALUES (1, 'a')", "ALTER TABLE item ADD COLUMN later text DEFAULT 'later'")
        shop.execute("INSERT INTO item VALUES (2, 'b', 'c')")
        shop.capture()
        found = [message for _, message in messages(shop.log()) if isinstance(message, Relation | Insert)]
    columns = [[column.name for column in m.columns] for m in found if isinstance(m, Relation)]
    assert columns == [["id", "name"], ["id", "name", "later"]]
    assert [m.new for m in found if isinstance(m, Insert)] == [(b"1", b"a"), (b"2", b"b", b"c")]
