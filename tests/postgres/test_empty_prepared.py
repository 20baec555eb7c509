"""Transactions that are prepared without a change: versions of PostgreSQL send different messages for them."""

from pathlib import Path

import pytest

from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.stream.state import ControlMessage
from pgoutput_construct.stream.transaction_reader import TransactionReader
from pgoutput_construct.wire import CommitPrepared, Prepare, RollbackPrepared
from tests.postgres.shop import Shop, messages
from tools.faults.committed_spans import spans_of_reader

LOCKS = "SELECT FROM item WHERE id = 1 FOR UPDATE"
"""Gives a transaction an xid, and nothing that is decoded."""


def test_transactions_prepared_without_changes(server: EmbeddedServer, tmp_path: Path) -> None:
    """18 sends Prepare without Begin Prepare, 16 only what becomes of it, 19 nothing; the log's readers take all."""
    with Shop.create(server, "empty_prepared", tmp_path / "log") as shop:
        shop.execute("INSERT INTO item VALUES (1, 'a')")
        for end in ("COMMIT", "ROLLBACK"):
            shop.execute("BEGIN", LOCKS, "PREPARE TRANSACTION 'empty'", f"{end} PREPARED 'empty'")
        shop.execute("INSERT INTO item VALUES (2, 'b')")
        shop.capture()
        reader, classes = TransactionReader(), []
        for entry, message in messages(shop.log()):
            reader.read(ControlMessage(entry.seq, entry.stream_xid, message))
            classes += [type(message)] if isinstance(message, Prepare | CommitPrepared | RollbackPrepared) else []
        prepare = [Prepare] if server.version == 18 else []
        sent = [*prepare, CommitPrepared, *prepare, RollbackPrepared] if server.version < 19 else []
        assert classes == sent
        # What has no changes is where its Prepare, or its Commit Prepared, stands.
        assert len(spans_of_reader(reader).xid) == (3 if sent else 2)


pytestmark = [pytest.mark.server, pytest.mark.differs_by_version]
