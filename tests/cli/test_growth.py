"""An extended specification: its options and states appear on the command line without a line of Python."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.growth.project import Project

pytestmark = pytest.mark.slow

GIVEN = ("--proto-version", "5", "--checksums", "--streaming", "eager")
LINES: list[dict[str, Any]] = [
    {"message": "Begin", "final_lsn": "0/5", "commit_time": "2026-01-01T00:00:00+00:00", "xid": 7},
    {"message": "BulkStart", "size": 2},
    {"message": "Insert", "xid": None, "crc": 9, "part": 3, "relation_oid": 5, "new": [None]},
    {"message": "BulkStop"},
    {"message": "Insert", "xid": None, "crc": 8, "part": None, "relation_oid": 5, "new": [None]},
]


def _message(name: str, tag: str, within: str, enters: str, *fields: dict[str, Any]) -> dict[str, Any]:
    header = {"type": "header", "fields": [{"field": f"Byte1('{tag}')", "name": "tag"}, *fields]}
    return {"name": name, "server": 20, "since": 5, "in": [within], "enters": enters, "blocks": [header]}


def _grow(spec: dict[str, Any]) -> None:
    """Add version 5: an option, a value of an option, a state, two messages, and two fields of Insert."""
    later = {"server": 20, "since": 5}
    spec["versions"].append({"version": 5, "server": 20, "brings": "checks"})
    spec["parameters"] |= {"checked": {"type": "bool"}, "in_bulk": {"type": "bool"}}
    spec["states"].append({"name": "bulk", "sets": "in_bulk"})
    spec["options"].append({"name": "checksums", "type": "switch", "sets": "checked", **later})
    (streaming,) = [option for option in spec["options"] if option["name"] == "streaming"]
    streaming["values"].append({"name": "eager", "sets": "parallel", **later})
    spec["messages"] += [
        _message("Bulk Start", "Q", "transaction", "bulk", {"field": "Int32", "name": "size"}),
        _message("Bulk Stop", "q", "bulk", "transaction"),
    ]
    (insert,) = [message for message in spec["messages"] if message["name"] == "Insert"]
    insert["in"].append("bulk")
    insert["blocks"][0]["fields"][2:2] = [
        {"field": "Int32", "name": "crc", "when": "checked", **later},
        {"field": "Int16", "name": "part", "when": "in_bulk", **later},
    ]


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a copy of the project with the grown specification."""
    project = Project(tmp_path_factory.mktemp("grown"))
    path = project.spec / "pgoutput.yaml"
    spec = yaml.safe_load(path.read_text("utf-8"))
    _grow(spec)
    path.write_text(yaml.safe_dump(spec, sort_keys=False), "utf-8")
    project.generate()
    return project


@pytest.fixture(scope="module")
def digits(grown: Project) -> str:
    """Return the bytes of LINES as lines of hexadecimal digits."""
    return grown.pgoutput("build", *GIVEN, stdin="\n".join(map(json.dumps, LINES)))


def _fields(lines: str) -> Iterator[dict[str, Any]]:
    for line, message in zip(map(json.loads, lines.splitlines()), LINES, strict=True):
        yield {key: line[key] for key in message}


def test_both_ways(grown: Project, digits: str) -> None:
    """The new messages and fields are built and decoded, by options or by the file's header; the state is followed."""
    assert digits.splitlines()[1:4] == ["5100000002", "49000000090003000000054e00016e", "71"]
    decoded = grown.pgoutput("decode", *GIVEN, stdin=digits)
    assert list(_fields(decoded)) == LINES
    assert [json.loads(line)["in_bulk"] for line in decoded.splitlines()] == [False, False, True, True, False]
    assert grown.pgoutput("build", stdin=decoded) == digits
    header = '# {"proto_version": 5, "checksums": true, "streaming": "eager"}\n'
    assert list(_fields(grown.pgoutput("decode", stdin=header + digits))) == LINES


def test_inspect(grown: Project, digits: str) -> None:
    """The state is a switch, under which the first version that has it is the default."""
    insert = digits.splitlines()[2]
    shown = grown.pgoutput("inspect", "--in-bulk", "--checksums", insert)
    assert shown.startswith("Insert · 15 bytes · proto_version 5, streaming off, checksums True, outside a stream")
    assert "inside a bulk" in shown and "crc" in shown and "part" in shown
    assert "inside a bulk" in grown.pgoutput("inspect", *GIVEN, "--index", "3", stdin=digits)


def test_refusals(grown: Project, digits: str) -> None:
    """What the options contradict is said in words of the command line."""
    refused = grown.run("-m", "pgoutput_construct.cli", "decode", "--proto-version", "4", "--checksums", stdin=digits)
    assert refused.stderr == "Error: standard input: --checksums needs --proto-version 5 or newer, not 4\n"
    assert grown.run("-m", "pgoutput_construct.cli", "decode", "--streaming", "often").returncode == 2
