"""Kernels are compiled after a first connection has succeeded, and before a stream waits for them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from tests.postgres.shop import Shop

pytestmark = pytest.mark.server

_REFUSED = """
import sys
from pgoutput_construct.postgres import ReplicationError, capture
for log in sys.argv[2:]:
    for dsn in sys.argv[1].split("\\n"):
        try:
            capture(dsn, "s", ["p"], log, reconnect_seconds=0)
        except ReplicationError as error:
            print(error)
"""

_ALL = """
import gc, sys
from numba.core.registry import CPUDispatcher
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.postgres import capture, stream
from pgoutput_construct.postgres._capture.capture_session import compile_kernels
from pgoutput_construct.postgres._live_batches import load_kernels

def compiled():
    kernels = (each for each in gc.get_objects() if isinstance(each, CPUDispatcher))
    return {(kernel.py_func.__qualname__, str(given)) for kernel in kernels for given in kernel.signatures}

def read_live(dsn, admin, values):
    with stream(dsn, "live", ["p"], create_slot=True, values=values) as transactions:
        for statement in STATEMENTS.splitlines()[:7]:
            admin.execute(statement.strip())
        for transaction in transactions:
            changes = [*transaction]
            transactions.confirm(transaction)
            if changes[-1].op == "truncate":
                return

assert not compiled(), "importing alone compiles"
load_kernels()
known = compiled()
STATEMENTS = '''
    INSERT INTO a SELECT i, md5(i::text), i, now() FROM generate_series(6000, 6100) i
    INSERT INTO b VALUES (1, repeat('x', 1000000)::bytea)
    UPDATE a SET v = 'z' WHERE id < 100
    DELETE FROM a WHERE id < 10
    UPDATE b SET id = 2
    TRUNCATE a
    SELECT pg_logical_emit_message(true, 'a', 'b'), pg_logical_emit_message(false, 'a', 'b')
    ALTER TABLE a ADD more text DEFAULT 'x'
    BEGIN; INSERT INTO b SELECT generate_series(1, 3000); SAVEPOINT s; DELETE FROM b WHERE id = 3; ROLLBACK TO s; COMMIT
    BEGIN; INSERT INTO a VALUES (1); PREPARE TRANSACTION 'g'
    COMMIT PREPARED 'g'
'''
SETUP = '''
    CREATE TABLE a (id int PRIMARY KEY, v text, n numeric, t timestamptz)
    INSERT INTO a SELECT i, md5(i::text), i, now() FROM generate_series(1, 500) i
    CREATE TABLE b (id int, v bytea); ALTER TABLE b REPLICA IDENTITY FULL; ALTER TABLE b ALTER v SET STORAGE EXTERNAL
    CREATE PUBLICATION p FOR ALL TABLES
'''
with EmbeddedServer(18, {"max_prepared_transactions": "5"}) as server, server.connect() as admin:
    for statement in filter(None, map(str.strip, SETUP.splitlines())):
        admin.execute(statement)
    for values in "python", "raw":
        read_live(server.dsn, admin, values)
    by_live = compiled() - known
    compile_kernels()
    before = compiled()
    print(len(before))
    modes = {}, {"binary": True, "two_phase": True}, {"proto_version": 1, "streaming": "off"}
    for number, options in enumerate(modes):
        database = f"d{number}"
        admin.execute(f"CREATE DATABASE {database}")
        dsn = f"{server.dsn}?dbname={database}" if "?" not in server.dsn else f"{server.dsn}&dbname={database}"
        given = {"create_slot": True, "snapshot": True, "messages": True, "until_idle": 0.5, **options}
        with server.connect(dbname=database) as connection:
            for statement in filter(None, map(str.strip, SETUP.splitlines())):
                connection.execute(statement)
            for statements in ([], STATEMENTS.splitlines()):
                for statement in filter(None, map(str.strip, statements)):
                    connection.execute(statement)
                capture(dsn, f"s{number}", ["p"], f"{sys.argv[1]}/{number}", **given)
print(*sorted(by_live | (compiled() - before)), sep="\\n")
"""


def test_the_connection_is_tried_first(shop: Shop, tmp_path: Path) -> None:
    """A refused connection is an error before anything is compiled, also for an existing log."""
    shop.execute("INSERT INTO item VALUES (1, 'a')")
    shop.capture()
    kernels = tmp_path / "kernels"
    kernels.mkdir()
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(kernels)}
    nobody = make_conninfo(shop.dsn, user="nobody_of_this_name")
    nowhere = make_conninfo(shop.dsn, host="127.0.0.1", port="1")
    command = [sys.executable, "-c", _REFUSED, f"{nobody}\n{nowhere}", str(tmp_path / "new"), str(shop.directory)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.count("cannot connect to") == 4, done
    assert not [*kernels.rglob("*.nb*")]


def test_nothing_is_compiled_while_a_server_waits(tmp_path: Path) -> None:
    """What a live client, or a capture, calls with arrays of a stream or a copy was called with such arrays before."""
    command = [sys.executable, "-c", _ALL, str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    count, *new = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert int(count) > 20 and not [*filter(None, new)], new
