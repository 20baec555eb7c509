"""A copied row is what the stream sends for it, byte by byte, and so is what describes it."""

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog._facts.copies import copies_of
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import capture, create_slot, current_lsn, drop_slot
from pgoutput_construct.wire import Insert, Relation, Type
from tests.live import workload

pytestmark = pytest.mark.server

_NUMBERS = itertools.count()
COMPARED = tuple(cls.TAG for cls in (Insert, Relation, Type))


@pytest.fixture
def database(server: EmbeddedServer) -> Iterator[str]:
    """A database with the tables of the recordings, and a slot from before their rows."""
    name = f"copied{next(_NUMBERS)}"
    with server.connect() as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
    workload.create_schema(lambda: server.connect(dbname=name), server.version)
    with server.connect(dbname=name) as connection:
        connection.execute("CREATE TABLE covering (a int, b text, c int, PRIMARY KEY (a) INCLUDE (b))")
        connection.execute("ALTER PUBLICATION pub ADD TABLE covering")
        create_slot(connection, f"{name}_before")
        connection.execute("INSERT INTO covering VALUES (1, 'b', 2)")
        for statement in _inserts(server.version):
            connection.execute(statement.encode())
    try:
        yield name
    finally:
        with server.connect() as admin:
            for slot in (f"{name}_before", f"{name}_now"):
                drop_slot(admin, slot, missing_ok=True)
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def _inserts(version: int) -> Iterator[str]:
    text = (Path(workload.__file__).parent / "workload.sql").read_text("utf-8")
    for step in itertools.takewhile(lambda step: "INTO altered" not in step.statement, workload.steps(text, version)):
        if step.statement.startswith("INSERT INTO"):
            yield step.statement


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_same_bytes(server: EmbeddedServer, database: str, binary: bool, tmp_path: Path) -> None:
    """Every type, identity, publication and odd name of the recordings, in both formats."""
    dsn = psycopg.conninfo.make_conninfo(server.dsn, dbname=database)
    with server.connect(dbname=database) as connection:
        until = current_lsn(connection)
    given = {"binary": binary, "handle_signals": False, "new_log": True}
    capture(dsn, f"{database}_before", workload.PUBLICATIONS, tmp_path / "sent", until_lsn=until, **given)  # type: ignore[arg-type]
    capture(
        dsn,
        f"{database}_now",
        workload.PUBLICATIONS,
        tmp_path / "copied",
        create_slot=True,
        snapshot=True,
        until_idle=0.1,
        **given,  # type: ignore[arg-type]
    )
    sent = Counter(entry.payload for entry in ChangeLog(tmp_path / "sent") if entry.payload[:1] in COMPARED)
    log = ChangeLog(tmp_path / "copied")
    copied = Counter(entry.payload for entry in log.entries(copied=True) if entry.snapshot is not None)
    described = {payload for payload in copied if payload[:1] != Insert.TAG}
    empty = [copy.name for copy in copies_of(log.index) if not copy.rows]
    assert sorted(empty) == ["altered"]
    rows = {payload: count for payload, count in copied.items() if payload[:1] == Insert.TAG}
    assert rows == {payload: count for payload, count in sent.items() if payload[:1] == Insert.TAG}
    used = {payload[1:5] for payload in rows}  # a partition is described, too, though its rows are those of its root
    assert {p for p in sent if p[:1] == Type.TAG or (p[:1] == Relation.TAG and p[1:5] in used)} <= described
    assert sum(rows.values()) > 30
