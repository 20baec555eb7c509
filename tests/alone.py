"""Run with the name of an extra: nothing that it does not bring can be imported, and what it is for works.

python alone.py EXTRA
"""

import re
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from pkgutil import resolve_name
from tempfile import mkdtemp
from types import ModuleType
from typing import ClassVar

DISTRIBUTIONS = packages_distributions()


def brought(requirement: str, extra: str = "") -> Iterator[str]:
    """Yield the distributions that a requirement installs, its own among them."""
    match = re.match(r"([\w.-]+)(?:\[([^]]*)\])?", requirement)
    assert match is not None
    name, extras = match[1].lower().replace("_", "-"), {extra, *(match[2] or "").split(",")} - {""}
    yield name
    try:
        found = requires(name) or []
    except PackageNotFoundError:
        return
    for each in found:
        wanted, _, condition = each.partition(";")
        of_extras = re.findall(r"extra *== *['\"]([^'\"]*)", condition)
        if not of_extras or extras.intersection(of_extras):
            yield from brought(wanted)


class Alone(PathFinder):
    """Finds nothing of distributions that are not among ``allowed``."""

    allowed: ClassVar[set[str]] = set()

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module is, None for one of another distribution."""
        of = {each.lower().replace("_", "-") for each in DISTRIBUTIONS.get(fullname.partition(".")[0], ())}
        return None if of and not of & cls.allowed else super().find_spec(fullname, path, target)


def cli() -> None:
    """Decode on the command line."""
    from pgoutput_construct.cli.__main__ import main

    path = Path(mkdtemp()) / "begin.hex"
    path.write_text("4200000000000000100002d79883d20000000002bc\n", "ascii")
    for arguments in (["--help"], ["decode", str(path)], ["inspect", str(path)]):
        sys.argv = ["pgoutput", *arguments]
        try:
            main()
        except SystemExit as ended:
            assert not ended.code, arguments


def changelog() -> None:
    """Write a log and read it."""
    import pgoutput_construct as pgo
    from pgoutput_construct.changelog import ChangeLog, LogOptions, LogWriter, Position
    from pgoutput_construct.changelog._segment.block import Block

    folder = Path(mkdtemp())
    with LogWriter(folder) as writer:
        writer.use(
            LogOptions(slot="s", publications=("p",), database="d", system_identifier="1", server_version=180000)
        )
        payload = pgo.build(pgo.Begin(pgo.Lsn(1), pgo.Timestamp(1), 7))
        writer.append(Block.from_payloads([payload], [1], [1], {"proto_version": 1}, {"in_stream": [False]}, [-1]))
        writer.publish(Position())
    assert [entry.payload for entry in ChangeLog(folder)] == [payload]


def columnar() -> None:
    """Decode a batch into Arrow, what psycopg loads among it."""
    import pgoutput_construct as pgo
    from pgoutput_construct.columnar import BatchDecoder

    relation = pgo.Relation(None, 7, "public", "t", "d", (pgo.RelationColumn(1, "at", 1114, -1),))
    row = pgo.Insert(None, 7, (b"2025-05-08 06:13:20 BC",))
    decoded = BatchDecoder().decode([pgo.build(relation), pgo.build(row)])
    assert decoded.tables[0].batch.num_rows == 1


def postgres() -> None:
    """Ask for a server that is not there."""
    from pgoutput_construct.postgres import ReplicationError, connect

    try:
        connect("host=127.0.0.1 port=1 connect_timeout=1")
    except ReplicationError:
        return
    raise AssertionError("connected")


def publisher() -> None:
    """Serve with a password."""
    from pgoutput_construct import testing

    with testing.publisher(method="scram-sha-256", user="me", password="x") as running:
        assert running.port


def testing() -> None:
    """Draw messages, streams and scenarios; the publisher asks for its extra."""
    from hypothesis import given, settings

    from pgoutput_construct import testing as strategies

    for strategy in (
        strategies.messages(),
        strategies.streams(proto_version=2, streaming="on"),
        strategies.scenarios(),
    ):
        settings(max_examples=5, database=None, deadline=None)(given(strategy)(lambda drawn: None))()
    try:
        strategies.publisher()
    except ImportError as error:
        assert "pip install 'pgoutput_construct[publisher]'" in str(error), error
    else:
        raise AssertionError("served")


def metrics() -> None:
    """Count."""
    import prometheus_client

    assert prometheus_client


def spark() -> None:
    """Import the room; a session needs Java."""
    from pgoutput_construct.spark import open_log

    assert open_log


lakes = spark


def demo() -> None:
    """Import the room."""
    import pgoutput_construct.demo

    assert pgoutput_construct.demo


def docs() -> None:
    """Import what the documentation shows: the targets of its automodule, autofunction, autoclass and click."""
    pages = [page.read_text("utf-8") for page in (ROOT / "docs").rglob("*.md")]
    targets = {name for text in pages for name in re.findall(r"^\.\. (?:auto\w+|click):: (\S+)", text, re.MULTILINE)}
    assert targets
    for target in sorted(targets):
        resolve_name(target)


ROOT = Path(__file__).parents[1]
USES = {
    each.__name__: each for each in (cli, changelog, columnar, postgres, publisher, testing, metrics, spark, demo, docs)
}
USES["lakes"] = lakes

if __name__ == "__main__":
    extra = sys.argv[1]
    Alone.allowed = {*brought("pgoutput-construct", extra)}
    sys.meta_path[sys.meta_path.index(PathFinder)] = Alone
    USES[extra]()
