"""``pgoutput inspect``: dumps of valid and invalid messages from all kinds of sources."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import Result

import pgoutput_construct as pgo
from pgoutput_construct.cli.commands._inspect_picture import ON_WHITE
from pgoutput_construct.wire import connection_messages
from pgoutput_construct.wire.connection_engine import build_connection
from pgoutput_construct.wire.connection_messages import ConnectionMessage
from pgoutput_construct.wire.trace import trace
from tests.cli.conftest import Run
from tests.live.recording import STORE, Recording
from tests.wire.samples import SAMPLES

INSERT = "49 00004001 4e 0004 6e 75 74 00000001 35 62 00000002 0005"


def _rows(result: Result) -> Iterator[list[str]]:
    """Yield the cells of each row below the head."""
    lines = result.stdout.splitlines()
    starts = [lines[1].index(word) for word in ("bytes", "field", "type", "value", "meaning")]
    for line in lines[2:]:
        yield [line[start:end].rstrip() for start, end in zip([0, *starts], [*starts, None], strict=True)]


def _bytes(result: Result) -> bytes:
    return bytes.fromhex("".join(row[1] for row in _rows(result)))


def _options(options: tuple[object, ...]) -> list[object]:
    proto_version, streaming, in_stream = options
    inside = "--in-stream" if in_stream else "--outside-stream"
    return ["--proto-version", proto_version, "--streaming", streaming, inside]


def test_picture(run: Run) -> None:
    """Offset, bytes, field, type, value and meaning, nested fields indented."""
    result = run("inspect", INSERT)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(
        "Insert · 23 bytes · proto_version 1, streaming off, outside a stream\noffset  bytes"
    )
    rows = [row[:5] for row in _rows(result)]
    assert rows == [
        ["     0", "49", "tag", "Byte1('I')", "'I'"],
        ["     1", "00 00 40 01", "relation_oid", "Int32 (Oid)", "16385"],
        ["     5", "4e", "new_tag", "Byte1('N')", "'N'"],
        ["", "", "new", "TupleData", ""],
        ["     6", "00 04", "  column_count", "Int16", "4"],
        ["     8", "6e", "  columns[0]", "Byte1('n')", "'n'"],
        ["     9", "75", "  columns[1]", "Byte1('u')", "'u'"],
        ["    10", "74", "  columns[2]", "Byte1('t')", "'t'"],
        ["    11", "00 00 00 01", "    length", "Int32", "1"],
        ["    15", "35", "    data", "Byten", "'5'"],
        ["    16", "62", "  columns[3]", "Byte1('b')", "'b'"],
        ["    17", "00 00 00 02", "    length", "Int32", "2"],
        ["    21", "00 05", "    data", "Byten", "b'\\x00\\x05'"],
    ]
    assert [row[5] for row in _rows(result)][5:7] == ["NULL.", "An unchanged TOASTed value, which is not sent."]


@pytest.mark.parametrize("name", SAMPLES)
def test_samples(run: Run, name: str) -> None:
    """Every kind is shown with all of its bytes, and the words of the specification."""
    options, data, _ = SAMPLES[name]
    result = run("inspect", "--all", data.hex(), *_options(options))
    assert (result.exit_code, result.stderr) == (0, "")
    assert _bytes(result) == data
    found = trace(data, **options._asdict())
    for span in found.spans:
        described = found.fields[span.key]
        assert (
            described.meaning(span.value) if described.notation == "Byte1" else described.description
        ) in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_cut_samples(run: Run, name: str) -> None:
    """A message cut anywhere is shown to the fault; the rest is there, unread."""
    options, data, _ = SAMPLES[name]
    for size in range(len(data)):
        result = run("inspect", "--all", data[:size].hex() or "''", *_options(options))
        if size:
            assert result.exit_code == 1 and _bytes(result) == data[:size]
            assert "fault" in result.stdout and result.stderr.startswith("Error: ")


def test_fault(run: Run) -> None:
    """The invalid byte, the error, the bytes after it, and the options with which it was read."""
    result = run("inspect", "49 00004001 4e 0002 6e 78 01 02")
    assert result.exit_code == 1
    *_, fault, rest = _rows(result)
    assert fault[:5] == ["     9", "78", "  columns[1]", "Byte1", "fault"] and "must be one of n, u, t, b" in fault[5]
    assert rest == ["    10", "01 02", "", "", "", "2 bytes not read"]
    error = f"Error: Insert.new.columns[1] at byte 9: {fault[5]}"
    assert result.stderr == f"{error} (read with --proto-version 1 --streaming off)\n"


def test_readable_values(run: Run) -> None:
    """Positions, times, letters and bits are read out."""
    begin = run("inspect", SAMPLES["Begin"][1].hex()).stdout
    assert "16/B374D848" in begin and str(SAMPLES["Begin"][2].commit_time) in begin  # type: ignore[union-attr]
    relation = run("inspect", SAMPLES["Relation"][1].hex()).stdout
    assert "default: Replica identity" in relation and "key: Bit 1" in relation and "'public'" in relation
    assert "cascade, restart identity: " in run("inspect", SAMPLES["Truncate"][1].hex()).stdout


@pytest.mark.slow
def test_wide_rows_are_summarised(run: Run) -> None:
    """The middle of many columns and of long values is left out, and --all shows it."""
    data = pgo.build(pgo.Insert(None, 1, tuple(b"%d" % i * 20 for i in range(800))))
    short, whole = (run("inspect", "-", *more, stdin=data.hex().encode()) for more in ((), ("--all",)))
    assert (short.exit_code, whole.exit_code) == (0, 0)
    assert len(short.stdout.splitlines()) < 60
    assert re.search(r"columns\[8\] to \[798\] +791 items, [0-9,]+ bytes: --all shows them", short.stdout)
    assert "columns[799]" in short.stdout and "… 44 more" in short.stdout
    assert _bytes(whole) == data
    long = pgo.build(pgo.Message(None, 0, pgo.Lsn(1), "p", b"x" * 5000)).hex()
    assert "… 4,984 more" in run("inspect", long).stdout and "… (5,002 characters)" in run("inspect", long).stdout
    assert "".join(row[4] for row in _rows(run("inspect", long, "--all"))).endswith(repr("x" * 5000))


def test_fault_in_a_wide_row_is_shown(run: Run) -> None:
    """Neither the fault nor the column before it is left out."""
    data = pgo.build(pgo.Insert(None, 1, (None,) * 40))[:-10] + b"xnn"
    result = run("inspect", data.hex())
    assert result.exit_code == 1
    assert "columns[8] to [29]" in result.stdout and re.search(r"columns\[30\] +Byte1 +fault", result.stdout)


def test_stream_state(run: Run) -> None:
    """Inside a stream, digits are read by the first version that has streams; other options can be given."""
    digits = "490000031d000040074e0000"
    assert "proto_version 2, streaming on, inside a stream" in run("inspect", "--in-stream", digits).stdout
    assert "xid" in run("inspect", "--in-stream", digits, "--proto-version", 4, "--streaming", "parallel").stdout
    assert run("inspect", digits).exit_code == 1
    assert run("inspect", "--in-stream", "--proto-version", 1, digits).exit_code == 1


@pytest.mark.slow
def test_hex_file(run: Run) -> None:
    """A recording brings its options; the messages before tell the stream state and the names."""
    recording = Recording.load(STORE / "18-v4-text.txt")
    session, seen = pgo.Session(4, "parallel"), set()
    for number, payload in enumerate(recording.payloads, 1):
        inside, kind = session.in_stream, payload[:1]
        session.parse(payload)
        if (kind, inside) not in seen and number < 300:
            seen.add((kind, inside))
            result = run("inspect", STORE / "18-v4-text.txt", "--index", number, "--all")
            assert result.exit_code == 0 and _bytes(result) == payload
            assert ("inside a stream" in result.stdout.splitlines()[0]) == inside
            if kind in b"IUD":
                assert re.search(r"relation_oid \(public\.\w+\)", result.stdout)
                assert re.search(r"columns\[0\] \(\w+\)", result.stdout)
    assert len(seen) > 15
    past = run("inspect", STORE / "18-v4-text.txt", "--index", 10_000)
    assert past.exit_code == 1 and "no message 10000: the file has" in past.stderr


def test_recvlogical_file(run: Run, tmp_path: Path) -> None:
    """A message of a file without lengths; also an invalid one, but nothing after it."""
    recording = Recording.load(STORE / "16-v1-text.txt")
    good = recording.payloads[:5]
    path = tmp_path / "changes.bin"
    path.write_bytes(b"".join(payload + b"\n" for payload in good) + b"\nI\0\0\0\1X\nB")
    for number, payload in enumerate(good, 1):
        assert _bytes(run("inspect", path, "--index", number, "--all")) == payload
    result = run("inspect", path, "--index", 6)
    assert result.exit_code == 1 and _bytes(result) == b"I\0\0\0\1X\nB"
    assert "message 6: Insert.new_tag at byte 5" in result.stderr
    assert run("inspect", path, "--index", 7).stdout == ""
    (tmp_path / "raw").write_bytes(good[0])
    assert _bytes(run("inspect", tmp_path / "raw")) == good[0]


@pytest.mark.slow
def test_change_log(run: Run, change_log: Path, recordings: dict[str, Recording]) -> None:
    """An entry of a change log by its seq, with its options, its stream state, and the names of what it is about."""
    payloads = recordings["18-v4-text"].payloads
    for kind in b"BRIUDTSEcA":
        seq = next(number for number in range(210, len(payloads)) if payloads[number][0] == kind)
        result = run("inspect", change_log, "--seq", seq, "--all")
        assert (result.exit_code, result.stderr) == (0, "")
        assert _bytes(result) == payloads[seq] and f"seq {seq}, WAL 0/{seq:X}" in result.stdout
        if kind in b"IUDT":
            assert re.search(r"relation_oids?(\[0\])? \(\w+\.\w+\)", result.stdout)
        if kind in b"IUD":
            assert re.search(r"columns\[0\] \(\w+\)", result.stdout)
    missing = run("inspect", change_log, "--seq", 99_999)
    assert missing.exit_code == 1 and "there is no entry with seq 99999" in missing.stderr


def test_frame(run: Run) -> None:
    """A frame with the message in it, offsets through both; other frames; a message in it that is none."""
    payload = SAMPLES["Insert"][1]
    data = pgo.build_frame(pgo.XLogData(pgo.Lsn(1), pgo.Lsn(2), pgo.Timestamp(3), payload))
    result = run("inspect", "--frame", data.hex())
    assert result.exit_code == 0 and result.stdout.startswith("XLogData with Insert · 48 bytes")
    assert _bytes(result) == data and "    25  49" in result.stdout and "      column_count" in result.stdout
    status = pgo.build_frame(pgo.StandbyStatusUpdate(pgo.Lsn(1), pgo.Lsn(2), pgo.Lsn(3), pgo.Timestamp(4), 1))
    assert "reply at once: 1 asks" in run("inspect", "--frame", status.hex()).stdout
    bad = run("inspect", "--frame", data[:-1].hex())
    assert bad.exit_code == 1 and _bytes(bad) == data[:-1] and "needs 2 bytes" in bad.stderr
    assert run("inspect", "--frame", "77 00").exit_code == 1
    lines = "\n".join(frame.hex() for frame in (status, data)).encode()
    assert _bytes(run("inspect", "--frame", "--index", 2, stdin=lines)) == data


OK = "52 00000008 00000000"


def _connection(*messages: ConnectionMessage) -> list[str]:
    return [build_connection(message).hex() for message in messages]


def test_connection(run: Run) -> None:
    """A message of the connection, with its state, the end of a list, and the state that was given."""
    result = run("inspect", "--sender", "server", OK)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("AuthenticationOk · 9 bytes · sent by the server, state authentication\n")
    assert _bytes(result) == bytes.fromhex(OK)
    [start] = _connection(connection_messages.StartupMessage(0, (connection_messages.StartupParameter("user", "me"),)))
    result = run("inspect", "--sender", "client", start)
    assert result.exit_code == 0 and _bytes(result).hex() == start
    assert [row[2:] for row in _rows(result)][-1] == ["  end", "Int8(0)", "0", "Ends parameters."]
    other = run("inspect", "--sender", "server", "--state", "idle", OK)
    assert other.exit_code == 1 and "no message of a server in the state 'idle'" in other.stderr


def test_a_cut_message_of_a_connection_is_shown(run: Run) -> None:
    """What was received is shown up to its end, and the error names the length that counts more bytes."""
    result = run("inspect", "--sender", "server", "52 00000017 0000000a 534352")
    assert result.exit_code == 1 and _bytes(result).hex() == "52000000170000000a534352"
    assert [(row[2], row[4]) for row in _rows(result)][2:-1] == [("request", "10"), ("mechanisms[0]", "fault")]
    assert result.stderr == (
        "Error: AuthenticationSASL.length at byte 1: is 23 bytes, but 11 bytes are left"
        " (read with --sender server --state authentication)\n"
    )
    rest = run("inspect", "--sender", "server", f"{OK} 5a")
    assert rest.exit_code == 1 and [row[5] for row in _rows(rest)][-1] == "1 byte not read"


def test_what_a_connection_carries(run: Run) -> None:
    """A CopyData, the frame in it and the message in that; offsets and errors are those of all bytes."""
    relation = pgo.Relation(None, 1, "s", "t", "d", (pgo.RelationColumn(0, "a", 23, -1),))
    frames = [
        pgo.XLogData(pgo.Lsn(1), pgo.Lsn(2), pgo.Timestamp(3), pgo.build(message))
        for message in (relation, pgo.Insert(None, 1, (b"5",)))
    ]
    lines = _connection(*(connection_messages.CopyData(pgo.build_frame(frame)) for frame in frames))
    given = ("inspect", "--sender", "server", "--index", 2)
    result = run(*given, stdin="\n".join(lines).encode())
    assert (result.exit_code, _bytes(result).hex()) == (0, lines[1])
    assert result.stdout.startswith("CopyData with XLogData with Insert · 44 bytes · sent by the server, state query,")
    assert "s.t" in result.stdout and "columns[0] (a)" in result.stdout
    data = bytes.fromhex(lines[1])
    cut = data[:1] + (len(data) - 2).to_bytes(4, "big") + data[5:-1]
    bad = run(*given, stdin=f"{lines[0]}\n{cut.hex()}".encode())
    assert bad.exit_code == 1 and _bytes(bad) == cut and re.search(r"data +Byten +fault", bad.stdout)
    error = "Insert.new.columns[0].data at byte 13: needs 1 byte, but only 0 bytes are left"
    assert f"{error} (at byte 43 of the whole message)" in bad.stderr
    short = run(*given, stdin=f"{lines[0]}\n{lines[1][:-2]}".encode())
    assert short.exit_code == 1 and "columns[0] (a)" in short.stdout and "CopyData.length at byte 1" in short.stderr


@pytest.mark.parametrize(("sender", "state"), [("server", "copy_out"), ("client", "copy_in")])
def test_rows_of_a_copy(run: Run, sender: str, state: str) -> None:
    """The CopyData of a plain COPY has no frame, whatever its bytes; a message before it cannot name tables."""
    row, frame = b"1\tapple\n", pgo.build_frame(pgo.PrimaryKeepalive(pgo.Lsn(1), pgo.Timestamp(2), 0))
    lines = _connection(*(connection_messages.CopyData(data) for data in (row, frame)))
    for index, line in enumerate(lines, 1):
        given = ("inspect", "--all", "--sender", sender, "--state", state, "--index", index)
        result = run(*given, stdin="\n".join(lines).encode())
        assert (result.exit_code, result.stderr, _bytes(result).hex()) == (0, "", line)
        assert result.stdout.startswith(f"CopyData · {len(line) // 2} bytes · sent by the {sender}, state {state} ·")


def test_bytes_that_may_begin_several_messages(run: Run) -> None:
    """The error is where they end."""
    result = run("inspect", "--sender", "server", "5200000008")
    assert result.exit_code == 1 and re.search(r"request +Int32\(0\) +fault", result.stdout)
    assert "AuthenticationOk.request at byte 5: needs 4 bytes, but only 0 bytes are left" in result.stderr


def _saved(run: Run, tmp_path: Path) -> tuple[str, str]:
    """Return the picture of INSERT as SVG and as HTML."""
    svg, page = tmp_path / "a.svg", tmp_path / "a.html"
    assert run("inspect", INSERT, "--svg", svg, "--html", page).exit_code == 0
    return svg.read_text("utf-8"), page.read_text("utf-8")


def test_saved_pictures(run: Run, tmp_path: Path) -> None:
    """SVG and HTML show the same, and load nothing from elsewhere."""
    svg, page = _saved(run, tmp_path)
    words = " ".join(ElementTree.fromstring(svg).itertext())
    for text in (words, page):
        assert "column_count" in text and "00 00 40 01" in text
    assert not re.findall(r"(?:url|href|src)\W{0,3}https?:", svg + page)


def test_cells_of_a_picture_have_coordinates(run: Run, tmp_path: Path) -> None:
    """Offsets end at one place, fields are indented, and no cell depends on white space to stand where it does."""
    cells = ElementTree.fromstring(_saved(run, tmp_path)[0]).findall("{*}text")
    assert all(cell.text and cell.text == cell.text.strip() for cell in cells)
    places = {cell.text: float(cell.attrib["x"]) for cell in cells}
    ends = {cell.text: float(cell.attrib["x"]) + float(cell.attrib["textLength"]) for cell in cells}
    assert round(ends["6"], 1) == round(ends["10"], 1) == round(ends["offset"], 1)
    assert places["new"] == places["tag"] == places["field"] < places["column_count"] < places["data"]
    assert places["column_count"] == places["columns[0]"] and places["data"] == places["length"]


def test_a_saved_page_names_itself(run: Run, tmp_path: Path) -> None:
    """The page has a title and says its encoding; its lines keep their white space."""
    page = _saved(run, tmp_path)[1]
    assert "<title>Insert · 23 bytes · proto_version 1, streaming off, outside a stream</title>" in page
    assert '<meta charset="utf-8">' in page
    lines = re.sub("<[^>]+>", "", page[page.index("<pre>") :]).splitlines()[1:-3]
    shown = run("inspect", INSERT).stdout.splitlines()
    assert [unescape(line) for line in lines] == shown


@pytest.mark.parametrize("colour", ON_WHITE.values())
def test_saved_colours_are_readable(colour: str) -> None:
    """Each colour stands out from white by 4.5 to 1, which WCAG 2 asks of text."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    assert 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05) >= 4.5


def test_colours(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Colours are for terminals, unless NO_COLOR is set."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[" in run("inspect", INSERT).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in run("inspect", INSERT).stdout
    monkeypatch.delenv("FORCE_COLOR")
    monkeypatch.delenv("NO_COLOR")
    assert "\x1b[" not in run("inspect", INSERT).stdout


def test_names_cannot_draw(run: Run) -> None:
    """A table or column whose name has control characters is shown with them escaped."""
    relation = pgo.Relation(None, 1, "s", "t\x1b[31m", "d", (pgo.RelationColumn(0, "a\nb", 23, -1),))
    lines = [pgo.build(relation).hex(), pgo.build(pgo.Insert(None, 1, (b"\x1b[2J",))).hex()]
    for index in (1, 2):
        shown = run("inspect", "--index", index, stdin="\n".join(lines).encode()).stdout
        assert "\x1b" not in shown and "\\x1b" in shown


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["xyz"], 2, "neither a file, nor a directory, nor hexadecimal digits"),
        (["123"], 1, "not an even number of hexadecimal digits"),
        ([""], 1, "empty payload"),
        (["45", "--seq", "1"], 2, "--seq needs a change log"),
        (["."], 2, "a change log needs --seq"),
        ([".", "--seq", "1", "--frame"], 2, "a change log stores messages, not frames"),
        (
            [".", "--seq", "1", "--sender", "client"],
            2,
            "--sender needs hexadecimal digits: a change log stores messages",
        ),
        (["45", "--state", "idle"], 2, "--state needs --sender"),
        (["45", "--frame", "--sender", "server"], 2, "give one of them"),
        (["", "--sender", "server"], 1, "no message of a server in the state"),
        (["45", "--streaming", "on"], 1, "--streaming on needs --proto-version 2"),
        (["--in-stream", "--proto-version", "1", "45"], 1, "--streaming on needs --proto-version 2 or newer, not 1"),
    ],
)
def test_invalid_arguments(run: Run, arguments: list[str], status: int, says: str) -> None:
    """Each mistake is one line that says what to do."""
    result = run("inspect", *arguments)
    assert result.exit_code == status
    assert says in " ".join(result.stderr.split())
