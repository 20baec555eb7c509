"""Options of commands arrive as arguments of the functions that do the work: the value that was given, and no other."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import click
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog.compact import CompactionLimits
from pgoutput_construct.cli.group import cli
from pgoutput_construct.spark import Retention
from pgoutput_construct.wire.options import LAYOUT_OPTIONS, STATE_PARAMETERS
from tests.cli.conftest import Run
from tests.cli.test_replicate import ARRIVING
from tests.spark.logs import write_orders

_OF_BYTES: Final = (*LAYOUT_OPTIONS, *STATE_PARAMETERS)
"""The options of how bytes are read."""
_Options = Mapping[str, tuple[tuple[str, ...], Mapping[Any, Any]]]


class _Called(Exception):  # noqa: N818 - no error: it ends the command where the work would begin
    """The function was called."""


class _Command(NamedTuple):
    """A command, what it calls, and its options."""

    name: str
    arguments: tuple[str, ...]
    """Those that it needs in any case; words in capitals are files."""
    function: str
    """What it calls, with its module."""
    options: _Options
    """By the names of parameters: how they are given, and the keywords with which the function is then called."""
    others: frozenset[str] = frozenset()
    """Parameters that are no arguments of the function: what is shown, and how; other tests have them."""
    without: Mapping[str, Any] = {}
    """What it calls before, and which needs more than a test of arguments has: replaced by these."""
    needs_option: bool = False
    """Whether it needs one of several options."""


def _flags(*names: str) -> _Options:
    return {name: ((f"--{name.replace('_', '-')}",), {name: True}) for name in names}


def _seconds(*names: str) -> _Options:
    return {name: ((f"--{name.replace('_', '-')}", "7.5"), {name: 7.5}) for name in names}


_SPARK: _Options = {
    "master": (("--master", "local[7]"), {0: "local[7]"}),
    "conf": (("--conf", "a=b"), {1: {"a": "b"}}),
}
_SERVERLESS: Mapping[str, Any] = {
    "pgoutput_construct.spark.spark_session": lambda *_, **__: nullcontext(),
    "pgoutput_construct.spark._verify.format_of": lambda _: "parquet",
    "pgoutput_construct.spark._verify.chosen_tables": lambda _, tables: tables or (),
    "pgoutput_construct.postgres.checksums.SourceServer": lambda *_, **__: None,
    "pgoutput_construct.spark._verify.VerifyOptions": lambda wait, **_: wait,
}
"""What ``verify`` needs of a warehouse and a server."""
_FORK: Mapping[str, Any] = {
    "pgoutput_construct.forensics._fork.fork_point": lambda *_: None,
    "pgoutput_construct.publisher.replay.connected": lambda _: nullcontext(),
    "pgoutput_construct.spark.spark_session": lambda *_, **__: None,
}
_AT: _Options = {
    "since": (("--since", "0/5"), {"since": pgo.Lsn(5)}),
    "until": (("--until", "2026-01-31T12:00+00:00"), {"until": pgo.Timestamp.from_text("2026-01-31 12:00+00")}),
}

COMMANDS = (
    _Command(
        "capture",
        ("host=none", "NEW", "--slot", "s", "--publication", "p"),
        "pgoutput_construct.postgres.capture",
        {
            "slot": (("--slot", "t"), {1: "t"}),
            "publications": (("--publication", "q"), {2: ("p", "q")}),
            "failover": (("--failover-slot",), {"failover": True}),
            "create_publication": (("--create-publication", "t,s.*"), {"create_publication": ("t", "s.*")}),
            "publish": (
                ("--publish", "insert", "--create-publication", "t"),
                {"publish": ("insert",), "create_publication": ("t",)},
            ),
            "workers": (("--workers", "3"), {"workers": 3}),
            "snapshot_rate": (("--snapshot-rate", "1.5"), {"snapshot_rate": 1.5e6}),
            "file_mode": (("--file-mode", "0640"), {"file_mode": 0o640}),
            "until_lsn": (("--until-lsn", "0/5"), {"until_lsn": pgo.Lsn(5)}),
            "on_rewrite": (("--on-rewrite", "stop"), {"on_rewrite": "stop"}),
            "on_lost_slot": (("--on-lost-slot", "snapshot"), {"on_lost_slot": "snapshot"}),
            "proto_version": (("--proto-version", "3"), {"proto_version": 3}),
            "streaming": (("--streaming", "parallel"), {"streaming": "parallel"}),
            "origin": (("--origin", "none"), {"origin": "none"}),
            **_flags(
                "create_slot", "new_log", "snapshot", "transactional_heartbeat", "binary", "messages", "two_phase"
            ),
            **_seconds("slot_timeout", "until_idle", "duration", "heartbeat", "reconnect_seconds"),
        },
        frozenset({"metrics", "log_format", "segment_seconds"}),
    ),
    _Command(
        "serve",
        ("LINES",),
        "pgoutput_construct.publisher.Settings",
        {
            "host": (("--host", "::1"), {"host": "::1"}),
            "port": (("--port", "1"), {"port": 1}),
            "user": (("--user", "u"), {"user": "u"}),
            "slots": (("--slots", "x.json"), {"slots_file": "x.json"}),
            "strict_slots": (("--strict-slots",), {"creates_slots": False}),
            "replaces_rows": (("--replace-rows",), {"replaces_rows": True}),
            "password_file": (
                ("--password-file", "SECRET"),
                {"method": "scram-sha-256", "password": "secret"},
            ),
            "auth": (
                ("--auth", "password", "--password-file", "SECRET"),
                {"method": "password", "password": "secret"},
            ),
            "rate": (("--rate", "5"), {"rate": 5}),
            "max_connections": (("--max-connections", "2"), {"max_connections": 2}),
            **_flags("own_pace"),
            **_seconds("wal_sender_timeout"),
        },
        frozenset({"ssl_cert", "ssl_key", "meaning"}),
    ),
    _Command(
        "serve",
        ("LINES",),
        "pgoutput_construct.publisher.About",
        {"server_version": (("--server-version", "16"), {0: 160000})},
    ),
    _Command(
        "serve",
        ("LINES",),
        "pgoutput_construct.cli.commands.serve_command._serve",
        {"until_served": (("--until-served",), {3: True})},
    ),
    _Command(
        "conformance",
        (),
        "pgoutput_construct.cli.commands.conformance_command._results",
        {"jobs": (("--jobs", "3", "client"), {2: 3})},
        frozenset({"lists", "patterns", "level", "timeout", "name", "as_json", "html"}),
        needs_option=True,
    ),
    _Command(
        "blame",
        ("LOG", "--table", "public.orders", "--key", "1"),
        "pgoutput_construct.forensics.blame",
        {"column": (("--column", "note"), {"column": "note"}), **_AT},
        frozenset({"table", "keys", "as_json", "raw", "everything"}),
        {"pgoutput_construct.cli.commands.blame_command.parse_key": lambda *_: ("1",)},
    ),
    _Command(
        "undo",
        ("LOG",),
        "pgoutput_construct.forensics.undo",
        {
            "xid": (("--xid", "7"), {"xid": 7}),
            "lsn": (("--lsn", "0/5"), {"lsn": pgo.Lsn(5)}),
            "since": (("--since", "0/5"), {"since": pgo.Lsn(5)}),
            "until": (("--since", "0/5", "--until", "0/6"), {"since": pgo.Lsn(5), "until": pgo.Lsn(6)}),
            "tables": (("--xid", "7", "--table", "t"), {"xid": 7, "tables": ("public.t",)}),
            "with_triggers": (("--xid", "7", "--with-triggers"), {"xid": 7, "with_triggers": True}),
        },
        frozenset({"partial"}),
        needs_option=True,
    ),
    _Command(
        "fixture",
        ("LOG", "--output", "NEW"),
        "pgoutput_construct.forensics.fixture",
        {
            "tables": (("--table", "t", "--table", "s.u"), {"tables": ("public.t", "s.u")}),
            "where": (("--where", "a=1", "--where", "b=x=y"), {"where": {"a": "1", "b": "x=y"}}),
            "xids": (("--xid", "7", "--xid", "8"), {"xids": (7, 8)}),
            "masks": (("--mask", "*=plain"), {"masks": (("*", "plain"),)}),
            **_AT,
        },
        frozenset({"output", "keys"}),
    ),
    _Command(
        "fixture",
        ("LOG", "--output", "NEW", "--shrink", "true"),
        "pgoutput_construct.forensics.command_fails",
        {
            "shrink": (("--shrink", "false"), {0: "false"}),
            "timeout": (("--timeout", "7.5"), {1: 7.5}),
        },
    ),
    _Command(
        "replay",
        ("LOG", "--into", "dbname=copy"),
        "pgoutput_construct.publisher.replay.replay",
        {
            "into": (("--into", "dbname=other"), {1: "dbname=other"}),
            "until_lsn": (("--until-lsn", "0/5"), {2: pgo.Lsn(5)}),
            "until_time": (
                ("--until-time", "2026-01-31T12:00+00:00"),
                {2: pgo.Timestamp.from_text("2026-01-31 12:00+00")},
            ),
            "replace_rows": (("--replace-rows",), {"replace_rows": True}),
            "host": (("--host", "0.0.0.0"), {"host": "0.0.0.0"}),
        },
        frozenset({"source"}),
    ),
    _Command(
        "demo",
        ("--output", "NEW"),
        "pgoutput_construct.demo.pipeline.DemoOptions",
        {
            "scale": (("--scale", "0.5"), {1: 0.5}),
            "master": (("--master", "local[7]"), {2: "local[7]"}),
            "binary": (("--binary",), {3: True}),
            "version": (("--postgres", "16"), {4: 16}),
            "into": (("--into", "delta"), {5: "delta"}),
        },
        frozenset({"output"}),
    ),
    _Command(
        "maintain",
        ("NEW",),
        "pgoutput_construct.spark.maintain",
        {
            "tables": (("--table", "t", "--table", "s.u"), {2: ("public.t", "s.u")}),
            "retain": (("--retain", "60"), {3: Retention(age=60.0)}),
            "retain_snapshots": (("--retain-snapshots", "3"), {3: Retention(count=3)}),
            "seconds": (("--seconds", "7.5"), {4: 7.5}),
        },
        frozenset({"as_json"}),
        _SERVERLESS,
    ),
    _Command("maintain", ("NEW",), "pgoutput_construct.spark.spark_session", _SPARK, without=_SERVERLESS),
    _Command(
        "verify",
        ("LOG", "--dsn", "host=none", "--warehouse", "NEW"),
        "pgoutput_construct.spark._verify.verify",
        {
            "warehouse": (("--warehouse", "x"), {2: "x"}),
            "tables": (("--table", "t"), {4: ("public.t",)}),
            "wait": (("--wait", "7.5"), {5: 7.5}),
            "masks": (("--mask", "public.t.a=sha256(x)"), {7: {"public.t.a": "sha256(x)"}}),
        },
        frozenset({"as_json"}),
        {**_SERVERLESS, "pgoutput_construct.spark._verify.VerificationRecord": lambda *_: None},
    ),
    _Command(
        "verify",
        ("LOG", "--dsn", "host=none", "--warehouse", "NEW"),
        "pgoutput_construct.spark._verify.VerificationRecord",
        {"resume": (("--resume", "x.json"), {1: "x.json"})},
        without=_SERVERLESS,
    ),
    _Command(
        "verify",
        ("LOG", "--dsn", "host=none", "--warehouse", "NEW"),
        "pgoutput_construct.spark._verify.VerificationRecord.restart",
        {"restart": (("--restart",), {})},
        without=_SERVERLESS,
        needs_option=True,
    ),
    _Command(
        "verify",
        ("LOG", "--warehouse", "NEW", "--dsn", "host=none"),
        "pgoutput_construct.postgres.checksums.SourceServer",
        {"dsn": (("--dsn", "host=other"), {0: "host=other"})},
        without=_SERVERLESS,
    ),
    _Command(
        "verify",
        ("LOG", "--dsn", "host=none", "--warehouse", "NEW"),
        "pgoutput_construct.spark.spark_session",
        _SPARK,
        without=_SERVERLESS,
    ),
    _Command(
        "fork",
        ("LOG", "--at", "0/5", "--into", "dbname=copy"),
        "pgoutput_construct.forensics.fork",
        {
            "at": (("--at", "0/6"), {1: pgo.Lsn(6)}),
            "into": (("--into", "dbname=other"), {2: "dbname=other"}),
            "warehouse": (("--warehouse", "s3://b/w"), {3: "s3://b/w"}),
            "form": (("--format", "delta"), {4: "delta"}),
            "host": (("--host", "::1"), {"host": "::1"}),
        },
        without=_FORK,
    ),
    _Command(
        "fork",
        ("LOG", "--at", "0/5", "--warehouse", "NEW"),
        "pgoutput_construct.spark.spark_session",
        _SPARK,
        without=_FORK,
    ),
    _Command(
        "tables",
        ("LOG", "--output", "NEW"),
        "pgoutput_construct.spark.open_log",
        {
            "types": (("--types", "numeric=string"), {"types": "numeric=string"}),
            "metadata_prefix": (("--metadata-prefix", "pg_"), {"metadata_prefix": "pg_"}),
        },
        without=_SERVERLESS,
    ),
    _Command(
        "tables",
        ("LOG", "--output", "NEW"),
        "pgoutput_construct.spark.write_tables",
        {
            "output": (("--output", "x"), {1: Path("x")}),
            "tables": (("--table", "public.orders"), {2: ["public.orders"]}),
            "overwrite": (("--overwrite",), {3: "overwrite"}),
        },
        without={**_SERVERLESS, "pgoutput_construct.spark.open_log": lambda *_, **__: SimpleNamespace(tables=["t"])},
    ),
    _Command("tables", ("LOG", "--output", "NEW"), "pgoutput_construct.spark.spark_session", _SPARK),
    _Command(
        "snapshot",
        ("host=none", "NEW", "--table", "t"),
        "pgoutput_construct.postgres.snapshot",
        {
            "tables": (("--table", "u"), {2: ("public.t", "public.u")}),
            "workers": (("--workers", "3"), {"workers": 3}),
        },
    ),
    _Command(
        "slots",
        ("host=none",),
        "pgoutput_construct.postgres.slot_health",
        {"slot": (("--slot", "s"), {1: "s"})},
        frozenset({"as_json", "check", "max_lag"}),
    ),
    _Command(
        "log compact",
        ("LOG",),
        "pgoutput_construct.changelog.compact.compact",
        {
            "rows": (("--rows", "50"), {1: CompactionLimits(rows=50)}),
            "least": (("--least", "3"), {1: CompactionLimits(least=3)}),
            "grace": (("--grace", "7.5"), {1: CompactionLimits(grace=7.5)}),
        },
        frozenset({"dry_run", "as_json"}),
    ),
    _Command(
        "log prune",
        ("LOG", "--before", "0/5"),
        "pgoutput_construct.changelog.prune.prune",
        {
            "before": (("--before", "0/6"), {1: pgo.Lsn(6)}),
            "states": (("--without-states",), {"states": False}),
            "dry_run": (("--dry-run",), {"dry_run": True}),
        },
        frozenset({"yes", "as_json"}),
    ),
    _Command(
        "log readers",
        ("LOG", "--add", "r"),
        "pgoutput_construct.changelog.registry.register",
        {
            "add": (("--add", "q"), {1: "q"}),
            "at": (("--at", "0/5"), {2: 77, 3: pgo.Lsn(5)}),
            "wait": (("--wait", "7.5"), {4: 7.5}),
        },
        frozenset({"as_json"}),
        {"pgoutput_construct.changelog.registry.next_seq_at": lambda *_: 77},
    ),
    _Command(
        "log readers",
        ("LOG",),
        "pgoutput_construct.changelog.registry.forget",
        {"remove": (("--remove", "r"), {1: "r"})},
        without={"pgoutput_construct.changelog.registry.readers": lambda _: [SimpleNamespace(name="r")]},
        needs_option=True,
    ),
    _Command("log show", ("LOG",), "", {}, frozenset({"verify", "as_json", "everything", "dsn"})),
    _Command("status", ("LOG",), "", {}, frozenset({"warehouse", "dsn", "as_json", "check", "max_lag"})),
    _Command(
        "tail",
        ("LOG",),
        "",
        {},
        frozenset({"publications", "follow", "from_lsn", "tables", "limit", "as_json", "everything"}),
    ),
    _Command(
        "inspect",
        (),
        "",
        {},
        frozenset({"index", "seq", "frame", "sender", "state", "everything", "svg", "html", *_OF_BYTES}),
    ),
    _Command("build", (), "", {}, frozenset({"form", "output", *LAYOUT_OPTIONS})),
    _Command("decode", (), "", {}, frozenset({"form", *LAYOUT_OPTIONS})),
    _Command(
        "replicate",
        ("LOG", "--into", "parquet", "--warehouse", "NEW", "--once"),
        "pgoutput_construct.spark._replicate.ReplicateOptions",
        {
            "retain": (("--retain", "60"), {"retention": Retention(age=60.0)}),
            "retain_snapshots": (("--retain-snapshots", "3"), {"retention": Retention(count=3)}),
        },
        frozenset({*ARRIVING, "mode", "as_json", "spark", "master", "conf", "metrics"}),
    ),
)
CASES = [pytest.param(command, name, id=f"{command.name}-{name}") for command in COMMANDS for name in command.options]


_PLAIN = (str, int, float, tuple, list, dict, Path, Retention, CompactionLimits, type(None))
"""What has values that can be compared: what arrives otherwise is a log, a store or a function."""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of a transaction."""
    directory = tmp_path_factory.mktemp("log")
    write_orders(directory, range(1))
    return directory


@pytest.fixture
def calls(run: Run, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[Any, Any]]:
    """Run a command up to where it calls its function; return the arguments, by place or name."""
    places = {name: tmp_path / name.lower() for name in ("LINES", "SECRET", "NEW")}
    places["LOG"] = log
    places["LINES"].write_text("")
    places["SECRET"].write_text("secret")

    def call(command: _Command, *options: str) -> dict[Any, Any]:
        found: dict[Any, Any] = {}

        def record(*arguments: Any, **keywords: Any) -> None:
            found.update(enumerate(arguments), **keywords)
            raise _Called

        for function, instead in {**command.without, command.function: record}.items():
            monkeypatch.setattr(function, instead)
        given = (places.get(each, each) for each in (*command.arguments, *options))
        result = run(*command.name.split(), *given)
        assert isinstance(result.exception, _Called), result.output
        return {key: value for key, value in found.items() if isinstance(value, _PLAIN)}

    return call


def _commands(group: click.Group = cli, path: str = "") -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(click.Context(group)):
        found = group.get_command(click.Context(group), name)
        if isinstance(found, click.Group):
            yield from _commands(found, f"{name} ")
        elif found is not None:
            yield f"{path}{name}", found


@cache
def _texts() -> list[str]:
    return [path.read_text() for path in Path(__file__).parents[1].rglob("*.py")]


@pytest.mark.parametrize(("name", "command"), [*_commands()])
def test_each_option_is_named(name: str, command: click.Command) -> None:
    """Here, with the argument that it becomes; or as one of what is shown, which a test of the command gives."""
    options = {each.name: each for each in command.params if isinstance(each, click.Option)}
    entries = [entry for entry in COMMANDS if entry.name == name]
    assert options.keys() == {each for entry in entries for each in (*entry.options, *entry.others)}
    mine = [text for text in _texts() if f'"{name.split(maxsplit=1)[0]}"' in text]
    for each in {each for entry in entries for each in entry.others}:
        flags = [*options[each].opts, *options[each].secondary_opts]
        assert any(f'"{flag}"' in text for flag in flags for text in mine), flags


@pytest.mark.parametrize(("command", "name"), CASES)
def test_each_option_arrives(calls: Callable[..., dict[Any, Any]], command: _Command, name: str) -> None:
    """With its value; what is not given stays as it is without it."""
    given, expected = command.options[name]
    after = calls(command, *given)
    if command.needs_option:
        assert expected.items() <= after.items()
    else:
        before = calls(command)
        changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        assert {key: after.get(key) for key in changed} == expected
