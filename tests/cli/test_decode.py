"""``pgoutput decode``: its input formats, its output, and its errors."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from pgoutput_construct import parse
from pgoutput_construct.cli.command_table import COMMANDS, GROUPS
from pgoutput_construct.wire.json_lines import KEYS
from pgoutput_construct.wire.jsonable import to_json
from pgoutput_construct.wire.messages import BY_TAG
from pgoutput_construct.wire.protocol import PROTOCOL_VERSIONS
from tests.cli.conftest import Run
from tests.live.recording import STORE, Recording

Read = Callable[[Result], list[dict[str, Any]]]
START = "530000031d01"
INSERT = "490000031d000040074e0001740000000161"
STOP = "45"


def _without_place(line: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key not in KEYS}


def test_keys_are_not_fields() -> None:
    """No field of a message has the name of a key that the line adds."""
    for cls in BY_TAG.values():
        assert not (KEYS | {"message"}) & set(cls.__dataclass_fields__)


def test_hex_lines(run: Run, messages_of: Read) -> None:
    """Hexadecimal lines, also as psql prints them, with the stream state that the messages tell."""
    text = f"# note \\xff\n\n\\x{START}\n{INSERT.upper()}\r\n  {STOP}"
    result = run("decode", "--proto-version", 2, "--streaming", "on", stdin=text.encode())
    assert (result.exit_code, result.stderr) == (0, "")
    lines = messages_of(result)
    assert [line["message"] for line in lines] == ["StreamStart", "Insert", "StreamStop"]
    assert [line["in_stream"] for line in lines] == [False, True, True]
    assert [line["line"] for line in lines] == [3, 4, 5]
    assert lines[0]["before"] == ["# note \\xff", ""]
    assert lines[1]["xid"] == 0x31D and lines[1]["new"] == ["a"]


@pytest.mark.parametrize("path", sorted(STORE.glob("*.txt")), ids=lambda path: path.stem)
def test_recordings(run: Run, messages_of: Read, path: Path) -> None:
    """A recording brings its options in its header; every payload is the message that parse returns."""
    recording = Recording.load(path)
    lines = messages_of(run("decode", path))
    options = recording.mode.proto_version, recording.mode.streaming
    assert {(line["proto_version"], line["streaming"]) for line in lines} == {options}
    messages = [parse(p, *options, line["in_stream"]) for p, line in zip(recording.payloads, lines, strict=True)]
    assert [_without_place(line) for line in lines] == [to_json(message) for message in messages]


def test_change_log(run: Run, messages_of: Read, change_log: Path, recordings: dict[str, Recording]) -> None:
    """A change log is decoded with its own options and stream states, and says where each message was."""
    result = run("decode", change_log)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = messages_of(result)
    recorded = messages_of(run("decode", STORE / "18-v4-text.txt"))
    assert [_without_place(line) for line in lines] == [_without_place(line) for line in recorded]
    assert [line["seq"] for line in lines] == list(range(len(lines)))
    assert lines[255]["wal_start"] == "0/FF" and lines[255]["send_time"] == "2000-01-01T00:00:00.000255+00:00"
    assert all((line["stream_xid"] is not None) == line["in_stream"] for line in lines)
    rebuilt = run("build", stdin=result.stdout_bytes).stdout.splitlines()
    assert [bytes.fromhex(line) for line in rebuilt] == list(recordings["18-v4-text"].payloads)


def test_change_log_errors(run: Run, change_log: Path) -> None:
    """A message that its options cannot have is named with segment, seq and field; those before are printed."""
    result = run("decode", "--proto-version", 1, "--streaming", "off", change_log)
    assert result.exit_code == 1
    assert "segment-" in result.stderr and "seq " in result.stderr and "Stream" in result.stderr
    assert result.stdout.count("\n") > 0
    segment = next(iter(sorted(change_log.glob("*.parquet"))))
    damaged = bytearray(segment.read_bytes())
    damaged[100] ^= 1
    segment.write_bytes(damaged)
    result = run("decode", change_log)
    assert (result.exit_code, result.stdout) == (1, "")
    assert segment.name in result.stderr and "damaged" in result.stderr


@pytest.mark.parametrize(
    ("stdin", "options", "said"),
    [
        (
            f"{START}\n",
            (),
            "belongs to protocol version 2 and newer, not to version 1: pass --proto-version 2 --streaming on (read",
        ),
        (f"{START}\n", (), "--proto-version 1 --streaming off: these must be the options of START_REPLICATION"),
        ("xyz", (), "standard input: line 1: not an even number of hexadecimal digits"),
        ("4", (), "line 1: not an even number"),
        ("# a\n\n42", (), "line 3: Begin.final_lsn at byte 1: needs 8 bytes"),
        (f"{INSERT}\n", (), "line 1: Insert.new_tag at byte 5: must be b'N'"),
        (STOP, ("--proto-version", 2, "--streaming", "on"), "StreamStop outside a stream"),
        (
            '# {"proto_version": 99}\n45',
            (),
            f"standard input: proto_version must be one of {[*PROTOCOL_VERSIONS]}, not 99",
        ),
        ('# {"streamng": "on"}\n45', (), "line 1: unknown option 'streamng': the options are proto_version"),
        ('# {"proto_version": "4"}\n45', (), "proto_version must be one of"),
        ('# {"streaming": ["on"]}\n45', (), "streaming must be 'off', 'on' or 'parallel'"),
        (START, ("--streaming", "on"), "standard input: --streaming on needs --proto-version 2 or newer, not 1"),
        ('{"message": "StreamStop"}', (), "these are JSON lines: use pgoutput build"),
        ("PAR1", (), "give the directory of its change log"),
        ("\0", (), "message 1 at offset 0: at byte 0: unknown tag"),
        ("42", ("--format", "recvlogical"), "unknown tag b'4'"),
    ],
)
def test_bad_input(run: Run, stdin: str, options: tuple[object, ...], said: str) -> None:
    """Bad input is one line on standard error, status 1, and no traceback."""
    result = run("decode", *options, stdin=stdin.encode())
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit)
    assert said in result.stderr and result.stderr.count("\n") == 1
    assert result.stderr.startswith("Error: ")


def test_messages_before_an_error_are_printed(run: Run, messages_of: Read) -> None:
    """The messages before a bad one are printed."""
    result = run("decode", "--proto-version", 2, "--streaming", "on", stdin=f"{START}\n{INSERT}\n49\n".encode())
    assert result.exit_code == 1 and "standard input: line 3: Insert.xid at byte 1" in result.stderr
    assert [line["message"] for line in messages_of(result)] == ["StreamStart", "Insert"]


def test_missing_files(run: Run, tmp_path: Path) -> None:
    """Missing files and directories without a log are named."""
    for arguments in (("nowhere",), ("--format", "changelog", "nowhere"), (tmp_path,), ("--format", "hex", tmp_path)):
        result = run("decode", *arguments)
        assert result.exit_code == 1 and str(arguments[-1]) in result.stderr


def test_empty_input(run: Run) -> None:
    """No bytes are no messages."""
    for stdin in (b"", b"\n", b"# only a comment\n"):
        result = run("decode", stdin=stdin)
        assert (result.exit_code, result.output) == (0, "")


def test_help(run: Run) -> None:
    """Commands stand in groups, each has a help with examples; wrong usage has status 2."""
    lines = run("--help").output.splitlines()
    heads = [lines.index(f"{group}:") for group in GROUPS]
    assert heads == sorted(heads)
    listed = {line.split()[0] for line in lines[heads[0] :] if line.startswith("  ") and line[2] != " "}
    assert listed == set(COMMANDS)
    for command in COMMANDS:
        assert "Example" in run(command, "--help").output
    assert {"pgoutput", "Python", "construct"} <= {line.split()[0] for line in run("--version").output.splitlines()}
    assert run("nope").exit_code == 2
    assert run("decode", "--proto-version", max(PROTOCOL_VERSIONS) + 1).exit_code == 2
