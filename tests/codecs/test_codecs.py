"""The codecs in other languages read and build what the golden vectors say, and refuse what and where Python does."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pgoutput_construct.errors import DecodeError
from pgoutput_construct.wire.connection_engine import parse_connection
from pgoutput_construct.wire.engine import parse, parse_frame
from tools.codecs import CODECS, Codec, answers, built, missing_tools, run_tool

_SPEC = Path(__file__).parents[2] / "spec"


@pytest.fixture(scope="module", params=[*CODECS])
def codec(request: pytest.FixtureRequest) -> Codec:
    """Each of the languages whose tools are there."""
    codec = CODECS[request.param]
    if problem := missing_tools(codec):
        pytest.skip(problem)
    return codec


@pytest.fixture(scope="module")
def program(codec: Codec, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The program of a language that answers lines of bytes."""
    return built(codec, tmp_path_factory.mktemp(codec.name))


def _vectors() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield all vectors, each with its line for a program."""
    for name, words in (
        ("vectors", ("message {proto_version} {streaming} {in_stream:d} {hex}")),
        ("vectors-envelope", "frame {hex}"),
        ("vectors-connection", "connection {sender} {state} {hex}"),
    ):
        for line in (_SPEC / f"{name}.jsonl").read_text("utf-8").splitlines()[1:]:
            vector = json.loads(line)
            yield words.format(**vector), vector


VECTORS = [*_vectors()]


def _unequal(found: Sequence[Any], wanted: Sequence[Any]) -> list[tuple[str, Any, Any]]:
    rows = zip(VECTORS, found, wanted, strict=True)
    return [(line, one, other) for (line, _), one, other in rows if one != other][:5]


def test_vectors(program: list[str]) -> None:
    """What is a message has these fields, and is built again byte for byte; the others are refused, for that reason."""
    wanted = [v["refuse"] if "refuse" in v else {"message": v["message"], **v["fields"]} for _, v in VECTORS]
    found = [
        {"reason": each["refuse"], "offset": each["offset"]} if "refuse" in each else each
        for each in answers(program, (line for line, _ in VECTORS))
    ]
    assert not _unequal(found, wanted)


def test_paths(program: list[str]) -> None:
    """Errors have the path and the offset that Python's have."""
    found = [(each.get("path"), each.get("offset")) for each in answers(program, (line for line, _ in VECTORS))]
    assert not _unequal(found, [_place(vector) for _, vector in VECTORS])


def _place(vector: Mapping[str, Any]) -> tuple[str | None, int | None]:
    """Return the path and the offset of Python's error; None where there is none."""
    data = bytes.fromhex(vector["hex"])
    try:
        if "sender" in vector:
            parse_connection(data, vector["sender"], vector["state"])
        elif "streaming" in vector:
            parse(data, vector["proto_version"], vector["streaming"], vector["in_stream"])
        else:
            parse_frame(data)
    except DecodeError as error:
        return error.path, error.offset
    return None, None


CHECKS = {
    "rust": (("cargo", "fmt", "--check"), ("cargo", "clippy", "--offline", "--all-targets", "--", "-D", "warnings")),
    "go": (("go", "vet", "./..."),),
    "typescript": (),
}
"""What else the tools of a language check; tsc is strict whenever it compiles."""


def test_style(codec: Codec, tmp_path: Path) -> None:
    """The code is formatted as the language's formatter does it, and its linter finds nothing."""
    for command in CHECKS[codec.name]:
        run_tool(command, codec.folder(), {"CARGO_TARGET_DIR": str(tmp_path)})
    if codec.name == "go":
        assert not run_tool(("gofmt", "-l", "."), codec.folder())
