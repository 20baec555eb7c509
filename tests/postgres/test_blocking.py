"""No call of libpq blocks: psycopg's C implementation holds the GIL in it, so that no thread and no signal gets on."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

WAITS = {"exec_", "exec_params", "exec_prepared", "describe_prepared", "describe_portal", "get_result"}
"""Methods of psycopg.pq.PGconn that wait for the server, with names of their own."""
OF_CONNECTIONS = {"cancel", "connect", "ping", "prepare", "reset"}
"""Those whose names others have too: they count where the object is called so."""
CONNECTIONS = {"pgconn", "_pgconn", "PGconn"}
WITHOUT_WAITING = {"PQgetCopyData", "PQconsumeInput", "PQfreemem"}
"""What is called through ctypes; the first one with the argument async."""
OWNER = "result_of"
"""The function that calls get_result: once libpq has the whole result."""

REFUSALS = 60
REFUSED = f"""
from pgoutput_construct.postgres import ReplicationError, ReplicationStream, StreamOptions, connect
from pgoutput_construct.testing import publisher

options = StreamOptions(slot="used", publications=("p",))
with publisher() as served, ReplicationStream(connect(served.dsn), options):
    for _ in range({REFUSALS}):
        with connect(served.dsn) as connection:
            try:
                ReplicationStream(connection, options)
            except ReplicationError as error:
                assert error.sqlstate == "55006", error
                connection.execute("SELECT 1")  # the connection is usable
                print("refused")
"""


def test_refusals_by_a_publisher_of_this_process() -> None:
    """It answers in another thread: whoever waits for it with the GIL held waits for ever."""
    done = subprocess.run([sys.executable, "-c", REFUSED], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.count("refused") == REFUSALS, done.stderr[-2000:]


@pytest.mark.parametrize("folder", ["pgoutput_construct", "tools"])
def test_no_blocking_calls(folder: str) -> None:
    """Neither in the package nor in what tests it."""
    assert [
        problem for path in sorted((ROOT / folder).rglob("*.py")) for problem in blocking(path.read_text("utf-8"))
    ] == []


@pytest.mark.parametrize(
    "line",
    [
        "pgconn.get_result()",
        "self._pgconn.exec_(b'SELECT 1')",
        "connection.pgconn.reset()",
        "pq.PGconn.connect(b'')",
        "connection.cancel()",
        "pgconn.get_copy_data(0)",
        "_get_copy_data(calls[0], (connection, slot, 0))",
        "library.PQexec(address)",
    ],
)
def test_blocking_calls_are_found(line: str) -> None:
    """Each kind."""
    assert len(blocking(line)) == 1


def blocking(source: str) -> list[str]:
    """Return the calls in a module that may wait in libpq."""
    tree = ast.parse(source)
    owners = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == OWNER]
    permitted = {id(node) for owner in owners for node in ast.walk(owner)}
    return [ast.unparse(node) for node in ast.walk(tree) if id(node) not in permitted and _may_wait(node)]


def _may_wait(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr.startswith("PQ") and node.attr[2:3].islower() and node.attr not in WITHOUT_WAITING
    if not isinstance(node, ast.Call):
        return False
    name, owner = (_name(node.func), _name(node.func.value) if isinstance(node.func, ast.Attribute) else "")
    if name.strip("_") == "get_copy_data":
        given = node.args[-1]
        flag = given.elts[-1] if isinstance(given, ast.Tuple) else given
        return not (isinstance(flag, ast.Constant) and flag.value == 1)
    is_connection = owner in CONNECTIONS or (name == "cancel" and "connection" in owner)
    return name in WAITS or (name in OF_CONNECTIONS and is_connection)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
