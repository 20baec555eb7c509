"""A store that cannot be reached is not damage: its own error is reported, and nobody is advised to remove a guard."""

import ast
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import pytest

import pgoutput_construct
from pgoutput_construct import lake
from pgoutput_construct.changelog import registry
from pgoutput_construct.changelog._notes import confirmation_note, copy_requests
from pgoutput_construct.changelog._segment.prune_note import read_pruned
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.store import LogStore
from pgoutput_construct.changelog.reader import ensure_id
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._notes import Warehouse
from pgoutput_construct.publisher.slots import Slots
from pgoutput_construct.spark._verify.verdicts import VerificationRecord

PACKAGE = Path(pgoutput_construct.__file__).parent
COMMIT = {"table": "a.b", "oid": 1, "batch": 1, "seq": 1, "last": {"commit_lsn": None, "seq": 0}, "shape": "0f"}
REQUEST = copy_requests.CopyRequest((("public", "t"),), number="1")
NOTES: dict[str, Callable[[LogStore], object]] = {
    ".confirmed.json": confirmation_note.read_note,
    ".identity.json": ensure_id,
    "_datasets/t.json": lambda store: Warehouse(store).dataset("t"),
    "_shapes/0f.json": lambda store: Warehouse(store).version_of_commit(json.dumps(COMMIT)),
    "_verify.json": VerificationRecord,
    "_warehouse.json": lambda store: Warehouse(store).progress(),
    "pruned.json": read_pruned,
    "readers/r.json": lambda store: registry.advance(store, "r", 9),
    "requests/request-1.json": lambda store: copy_requests._read(store, f"requests/request-{REQUEST.number}.json"),
}


class Answers(BaseHTTPRequestHandler):
    """An object store that answers every request with one status."""

    status = 500

    def _answer(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD = do_PUT = _answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def refusing(status: int) -> Iterator[str]:
    """Yield the address of a log in such an object store."""
    handler = type("Handler", (Answers,), {"status": status})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever).start()
        query = f"endpoint_override=127.0.0.1:{server.server_port}&scheme=http&region=us-east-1"
        try:
            yield f"s3://key:secret@bucket/log?{query}"
        finally:
            server.shutdown()


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that every user can enter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def check(read: Callable[[], object]) -> None:
    """Check that reading raises the error of the store, and not that of damage."""
    with pytest.raises(PgoutputError) as caught:
        read()
    assert re.search("cannot be (read|listed): .*; (check|grant)", str(caught.value)), caught.value
    assert not re.search("damaged|invalid|unreadable|remove", str(caught.value)), caught.value


@pytest.mark.parametrize("name", NOTES)
def test_a_note_that_this_user_may_not_read(name: str, shared: Path) -> None:
    """EACCES: it says so, and advises to grant permission."""
    note = shared / name
    note.parent.mkdir(exist_ok=True)
    note.write_text("{}")
    note.chmod(0)
    before = os.geteuid()
    os.seteuid(before or 65534)  # root may read everything
    try:
        check(lambda: NOTES[name](open_store(shared)))
    finally:
        os.seteuid(before)


@pytest.mark.parametrize("name", NOTES)
def test_a_note_that_cannot_be_reached(name: str, tmp_path: Path) -> None:
    """A loop of symbolic links, as on a broken mount."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).symlink_to(tmp_path / name)
    check(lambda: NOTES[name](open_store(tmp_path)))


def test_notes_in_an_object_store_that_denies_access() -> None:
    """Each note, the claim of a capture, a warehouse without Spark, and the slots of a publisher."""
    with refusing(403) as address:
        store = open_store(address)
        for read in NOTES.values():
            check(lambda read=read: read(store))  # type: ignore[misc]
        check(lambda: store.lock("capture"))
        check(lambda: lake.tables(address))
        with pytest.raises(PgoutputError, match="cannot be read: ") as caught:
            Slots(address).open()
        assert "invalid" not in str(caught.value)


@pytest.mark.slow
def test_notes_in_an_object_store_that_fails() -> None:
    """It answers 500 for as long as the client tries again."""
    with refusing(500) as address:
        check(lambda: read_pruned(open_store(address)))


def test_the_tables_of_a_warehouse_that_cannot_be_reached(tmp_path: Path) -> None:
    """Without Spark, too; and whether a file exists is not known of a store that does not say."""
    (tmp_path / "_warehouse.json").write_text('{"format": "parquet"}')
    (tmp_path / "_datasets").symlink_to(tmp_path / "_datasets")
    check(lambda: lake.tables(tmp_path))
    check(lambda: open_store(tmp_path).has("_datasets/x"))


class Function(NamedTuple):
    """A function of the package; one of a class has its name in front."""

    module: str
    name: str


STORE_CALLS = {name for name in vars(LogStore) if callable(getattr(LogStore, name)) and name != "path_of"}


@cache
def modules() -> dict[str, ast.Module]:
    """Return the syntax tree of each module of the package."""
    paths = [*PACKAGE.rglob("*.py")]
    return {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): ast.parse(path.read_text()) for path in paths
    }


def functions(tree: ast.Module) -> Iterator[tuple[str, str, ast.FunctionDef]]:
    """Yield class (or nothing), name and definition of functions and methods."""
    for node in tree.body:
        for inner in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(inner, ast.FunctionDef):
                yield node.name + "." if isinstance(node, ast.ClassDef) else "", inner.name, inner


@cache
def known_names(module: str) -> dict[str, Function]:
    """Return the functions of the package that a module knows, by their names in it."""
    tree = modules()[module]
    found = {name: Function(module, owner + name) for owner, name, _ in functions(tree) if not owner}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pgoutput_construct"):
            found |= {each.asname or each.name: Function(node.module or "", each.name) for each in node.names}
    return found


def calls(nodes: list[Any], module: str, owner: str) -> Iterator[Function | None]:
    """Yield the functions of the package that are called; None for a method of a store."""
    known = known_names(module)
    for call in (each for node in nodes for each in ast.walk(node) if isinstance(each, ast.Call)):
        match call.func:
            case ast.Name(name) if name in known:
                yield known[name]
            case ast.Attribute(ast.Name(store) | ast.Attribute(_, store), name) if name in STORE_CALLS:
                if store.endswith("store"):
                    yield None
    for each in (each for node in nodes for each in ast.walk(node)):
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == "self":
            yield Function(module, owner + each.attr)  # a property may read


@cache
def reaching() -> set[Function | None]:
    """Return the functions that read or write a store, directly or through others; and None."""
    found: set[Function | None] = {None}
    called = {
        Function(module, owner + name): {*calls([node], module, owner)}
        for module, tree in modules().items()
        for owner, name, node in functions(tree)
    }
    for module, tree in modules().items():
        for node in tree.body:  # to make an object is to call these
            if isinstance(node, ast.ClassDef):
                made = {Function(module, f"{node.name}.{name}") for name in ("__init__", "__post_init__")}
                called[Function(module, node.name)] = {*made}
        if module.endswith(".__init__"):
            package = module.removesuffix(".__init__")
            called |= {Function(package, name): {function} for name, function in known_names(module).items()}
    while new := {each for each, inner in called.items() if each not in found and inner & found}:
        found |= new
    return found


def caught(handler: ast.ExceptHandler | ast.withitem) -> set[str]:
    """Return the names of what a handler, or ``suppress()``, catches; the constants of tuples that are caught, too."""
    node = handler.type if isinstance(handler, ast.ExceptHandler) else handler.context_expr
    return {each.id for each in ast.walk(node or ast.Name("")) if isinstance(each, ast.Name)}


def guarded_blocks(tree: ast.AST, wide: set[str]) -> Iterator[tuple[int, list[Any]]]:
    """Yield line and statements of what an ``except`` guards that takes ValueError and with it all errors of ours."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Try):
            for handler in node.handlers:
                if "PgoutputError" in caught(handler) and not caught(handler) & wide:
                    break
                if caught(handler) & wide:
                    yield handler.lineno, node.body
        elif isinstance(node, ast.With) and any(
            "suppress" in caught(each) and caught(each) & wide for each in node.items
        ):
            yield node.lineno, node.body


@pytest.mark.slow
def test_no_handler_of_damage_takes_an_error_of_the_store() -> None:
    """PgoutputError is a ValueError: where ValueError is caught, no store is read or written.

    Or an ``except PgoutputError`` comes before it. Parsing, of which an error of ours may be the damage, comes after.
    """
    wide = {"ValueError"}
    for tree in modules().values():
        for node in tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Tuple | ast.BinOp):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                names = {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}
                wide |= {target.id} if isinstance(target, ast.Name) and "ValueError" in names else set()
    assert "DAMAGE" in wide and len(reaching()) > 100
    made = {("changelog.reader", "ChangeLog"), ("changelog", "ChangeLog"), ("changelog.writer", "LogWriter")}
    assert {Function(f"pgoutput_construct.{module}", name) for module, name in made} <= reaching()
    found = [
        f"{module}, line {line}"
        for module, tree in modules().items()
        for owner, _, function in functions(tree)
        for line, body in guarded_blocks(function, wide)
        if {*calls(body, module, owner)} & reaching()
    ]
    assert not found, f"an error of a store is taken for damage: {found}"
