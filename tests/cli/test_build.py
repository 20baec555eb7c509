"""``pgoutput build``: JSON lines back to the bytes from which they were decoded."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgoutput_construct import EncodeError, PgoutputError, StreamStart, build
from pgoutput_construct.testing.payloads import options_and_messages
from pgoutput_construct.wire.json_lines import Decoded, format_line, parse_line
from pgoutput_construct.wire.protocol import PROTOCOL_VERSIONS, ParseOptions
from tests.cli.conftest import Run
from tests.live.recording import STORE, Recording

recorded = pytest.mark.parametrize("path", sorted(STORE.glob("*.txt")), ids=lambda path: path.stem)
START = {"message": "StreamStart", "xid": 7, "first_segment": 1}
INSERT = {"message": "Insert", "xid": 7, "relation_oid": 9, "new": [None]}
STOP = {"message": "StreamStop"}
ON = ("--proto-version", 2, "--streaming", "on")


def _lines(*values: object) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


@pytest.mark.slow
@recorded
def test_hex_round_trip(run: Run, path: Path) -> None:
    """decode | build gives a file of hexadecimal lines back byte for byte, its header included."""
    assert run("build", stdin=run("decode", path).stdout_bytes).stdout_bytes == path.read_bytes()


@pytest.mark.slow
@recorded
def test_recvlogical_round_trip(run: Run, path: Path, tmp_path: Path) -> None:
    """decode | build gives a file as pg_recvlogical writes it back byte for byte."""
    recording = Recording.load(path)
    source, target = tmp_path / "in.bin", tmp_path / "out.bin"
    source.write_bytes(b"".join(payload + b"\n" for payload in recording.payloads))
    options = ("--proto-version", recording.mode.proto_version, "--streaming", recording.mode.streaming)
    decoded = run("decode", *options, source)
    assert decoded.exit_code == 0
    built = run("build", "--format", "recvlogical", "-o", target, stdin=decoded.stdout_bytes)
    assert (built.exit_code, built.output) == (0, "")
    assert target.read_bytes() == source.read_bytes()
    raw = run("build", "--format", "raw", stdin=decoded.stdout_bytes)
    assert raw.stdout_bytes == b"".join(recording.payloads)


def test_comments_and_empty_lines_round_trip(run: Run) -> None:
    """What stands before a message in a file of lines is kept, also bytes that are not UTF-8."""
    text = b"#\xff\n\n  # two\n45\n\n45\n"
    lines = _lines(STOP | {"before": ["#\udcff", "", "  # two"]}, STOP | {"before": [""]})
    assert run("build", "--proto-version", 2, stdin=lines).stdout_bytes == text


def test_the_state_is_tracked(run: Run) -> None:
    """Without in_stream in the lines, Stream Start and Stream Stop tell it; a line that says it wins."""
    outside = INSERT | {"xid": None}
    built = run("build", *ON, stdin=_lines(outside, START, INSERT, STOP, outside)).stdout.splitlines()
    insert = "49 00000009 4e 0001 6e".replace(" ", "")
    assert built == [insert, "530000000701", "4900000007" + insert[2:], "45", insert]
    said = run("build", *ON, stdin=_lines(INSERT | {"in_stream": True}, INSERT, outside | {"in_stream": False}))
    assert said.stdout.splitlines() == ["4900000007" + insert[2:]] * 2 + [insert]


def test_options_override_those_of_lines(run: Run) -> None:
    """Options of the command line replace those of the lines."""
    lines = _lines(START | {"proto_version": 1})
    assert run("build", stdin=lines).exit_code == 1
    assert run("build", "--proto-version", 2, stdin=lines).stdout == "530000000701\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "line 2: not a line of JSON"),
        (b"\xff", "line 2: not a line of JSON"),
        (b"[" * 100_000, "line 2: the JSON is nested too deeply"),
        (b'{"message": "Begin", "xid": ' + b"9" * 5000 + b"}", "line 2: not a line of JSON"),
        (b"[]", "line 2: a line must be an object"),
        (b'{"message": "StreamStop", "message": "StreamStop"}', "the key 'message' occurs twice"),
        (_lines(STOP | {"x": 1}), "line 2: StreamStop: has no key 'x'"),
        (_lines(STOP | {"in_stream": 1}), "'in_stream' must be of type bool"),
        (_lines(STOP | {"proto_version": True}), "'proto_version' must be of type int"),
        (_lines(STOP | {"proto_version": max(PROTOCOL_VERSIONS) + 1}), "line 2: proto_version must be one of"),
        (_lines(STOP | {"proto_version": 1, "streaming": "on"}), "line 2: --streaming on needs --proto-version 2"),
        (_lines(STOP | {"streaming": None}), "'streaming' must be of type str"),
        (_lines(STOP | {"proto_version": 1}), "line 2: StreamStop"),
        (_lines(STOP | {"before": ["00"]}), "'before' must be an array of comments"),
        (_lines(STOP | {"before": "#"}), "'before' must be an array of comments"),
        (_lines(STOP | {"before": ["#\ud800"]}), "'before' must be an array of comments"),
        (
            _lines(START | {"first_segment": 2, "proto_version": 2}),
            "StreamStart.first_segment at byte 5: must be one of (0, 1), not 2",
        ),
        (_lines(START | {"xid": -1, "proto_version": 2}), "StreamStart.xid at byte 1: must be an int from 0 to"),
        (_lines(INSERT), "Insert.xid"),
        (_lines(INSERT | {"new": ["a", 5]}), "Insert.new[1]: must be one of null"),
    ],
)
def test_bad_lines(run: Run, line: bytes, said: str) -> None:
    """A bad line is named, with status 1 and no traceback; what was before it is written."""
    good = _lines(STOP | {"proto_version": 2})
    result = run("build", stdin=good + line)
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit)
    assert said in result.stderr and result.stderr.count("\n") == 1
    assert result.stdout == "45\n"


@given(options_and_messages(), st.binary(max_size=20))
def test_any_message_as_a_line(pair: tuple[tuple[int, str, bool], object], comment: bytes) -> None:
    """Any message under any options is one line of ASCII that builds the same bytes."""
    options, message = ParseOptions(*pair[0])._asdict(), pair[1]
    before = ["#" + comment.replace(b"\n", b"").decode("utf-8", "surrogateescape")]
    text = format_line(Decoded(message, b"", options, {"before": before}))  # type: ignore[arg-type]
    line = parse_line(text)
    assert text.isascii() and text.count(b"\n") == 1
    assert line.before == before and line.options == options
    assert build(line.message, **options) == build(message, **options)  # type: ignore[arg-type]


@given(st.binary(max_size=60) | st.text().map(str.encode))
def test_any_bytes_as_a_line(text: bytes) -> None:
    """Whatever stands in a line: an error of ours, or a message."""
    try:
        parse_line(text)
    except PgoutputError as error:
        assert isinstance(error, EncodeError)


def test_an_empty_input(run: Run) -> None:
    """No lines are no messages; empty lines are passed over."""
    assert (run("build").exit_code, run("build", stdin=b"\n \n").output) == (0, "")
    assert build(StreamStart(7, 1), 2).hex() == "530000000701"


def test_the_output_is_not_the_input(run: Run, tmp_path: Path) -> None:
    """A file is not built into itself, under whatever name, and no output is emptied for an input that is missing."""
    source, link = tmp_path / "d.jsonl", tmp_path / "link"
    source.write_bytes(_lines(STOP))
    link.symlink_to(source)
    for target in (source, link):
        result = run("build", source, "-o", target)
        assert result.exit_code == 1 and "overwrite its own input: choose another file" in result.output
    assert run("build", tmp_path / "missing", "-o", source).exit_code == 1
    assert source.read_bytes() == _lines(STOP)
