"""The codecs in other languages read and build what the golden vectors say, and refuse what and where Python does."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pgoutput_construct import __version__
from pgoutput_construct.errors import DecodeError
from pgoutput_construct.wire.connection_engine import parse_connection
from pgoutput_construct.wire.engine import parse, parse_frame
from tests.codecs.golden import golden_vectors, misread, settings_of
from tools.codecs import CODECS, Codec, answers, built, message_line, missing_tools, run_tool
from tools.fuzz import other_languages
from tools.language import SPEC
from tools.npm import PRETTIER, TYPESCRIPT

pytestmark = pytest.mark.slow


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


NO_NUMBERS = ("four", "+4", "-1", "-0", "4294967296", "18446744073709551620", "", "4.0", "4e0", "0x4", "1_0", "\u0664")
"""What parse_output_parameters() refuses as proto_version, and signs, which strtoul() accepts there."""
VECTORS = [*golden_vectors(SPEC)]


def _unequal(found: Sequence[Any], wanted: Sequence[Any]) -> list[tuple[str, Any, Any]]:
    rows = zip(VECTORS, found, wanted, strict=True)
    return [(line, one, other) for (line, _), one, other in rows if one != other][:5]


def test_vectors(program: list[str]) -> None:
    """What is a message has these fields, and is built again byte for byte; the others are refused, for that reason."""
    assert not misread(program, VECTORS)


def test_paths(program: list[str]) -> None:
    """Errors have the path and the offset that Python's have."""
    found = [(each.get("path"), each.get("offset")) for each in answers(program, (line for line, _ in VECTORS))]
    assert not _unequal(found, [_location(vector) for _, vector in VECTORS])


def _location(vector: Mapping[str, Any]) -> tuple[str | None, int | None]:
    """Return the path and the offset of Python's error; None if it has none."""
    data = bytes.fromhex(vector["hex"])
    try:
        if "sender" in vector:
            parse_connection(data, vector["sender"], vector["state"])
        elif "streaming" in vector:
            parse(data, **settings_of(vector))
        else:
            parse_frame(data)
    except DecodeError as error:
        return error.path, error.offset
    return None, None


def test_programs_are_built_into_relative_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Relative to where the caller is, though the compiler runs elsewhere."""
    ran = list[tuple[str, ...]]()
    monkeypatch.setattr("tools.codecs.run_tool", lambda command, *_: ran.append(tuple(command)))
    monkeypatch.chdir(tmp_path)
    assert built(CODECS["go"], Path("kept")) == [str(tmp_path / "kept" / "check")]
    assert ran == [("go", "build", "-o", str(tmp_path / "kept" / "check"), "./cmd/check")]


def test_options(program: list[str]) -> None:
    """An option or a value that no layout depends on is refused by name."""
    wrong = [("streaming", "maybe"), ("publication_names", "p"), ('"\\\x01\x7f\u20ac', "")]
    wrong += [("proto_version", number) for number in NO_NUMBERS]
    found = answers(program, (message_line({name: value}, "") for name, value in wrong))
    expected = [{"refuse": "value", "path": name, "offset": None} for name, _ in wrong]
    assert [*found] == expected


def test_numbers_of_options(program: list[str]) -> None:
    """They have 32 bits, as in PostgreSQL; whether a server has such a version is another question."""
    begin = next(line.rpartition(" ")[2] for line, vector in VECTORS if vector.get("message") == "Begin")
    given = ("4", "04", "00000000004", "4294967295")
    found = answers(program, (message_line({"proto_version": number}, begin) for number in given))
    assert [each.get("message") for each in found] == ["Begin"] * len(given)


WRONG_LINES = {
    "message 4g": "not a number of hexadecimal digits for whole bytes: 4g",
    "frame 123": "not a number of hexadecimal digits for whole bytes: 123",
    "message in_stream=maybe 49": "not a setting: in_stream=maybe",
    "connection server somewhere 5a": "not a state: somewhere",
    "connection nobody idle 5a": "not a sender: nobody",
    "connection server 5a": "not a line: connection server 5a",
    "frame 1 2a": "not a line: frame 1 2a",
    "message": "not a line: message",
    'frame "\\\x01\x7f\u20ac': 'not a number of hexadecimal digits for whole bytes: "\\\x01\x7f\u20ac',
    "": "not a line: ",
}
"""Lines that a program cannot read, and what it answers."""


def test_wrong_lines(program: list[str]) -> None:
    """They are answered with what is wrong, not as if they were others."""
    assert [*answers(program, WRONG_LINES)] == [{"error": error} for error in WRONG_LINES.values()]


def test_no_std() -> None:
    """The crate uses core and alloc alone; it has no target without std to be compiled for here."""
    sources = {path: path.read_text("utf-8") for path in (SPEC / "rust" / "src").iterdir()}
    assert "#![no_std]" in sources[SPEC / "rust" / "src" / "lib.rs"]
    assert [path.name for path, text in sources.items() if re.search(r"\bstd::|extern crate std", text)] == []


def test_lengths_of_64_bits_in_rust() -> None:
    """They are not cut to the 32 bits of smaller targets, for which nothing is compiled here."""
    generated = [SPEC / "rust" / "src" / f"{name}.rs" for name in ("pgoutput", "replication", "connection")]
    assert [path.name for path in generated if " as usize" in path.read_text("utf-8")] == []


def test_options_without_types(tmp_path: Path) -> None:
    """In TypeScript a value that is none of the option's is refused, as the types would have it."""
    codec = CODECS["typescript"]
    if problem := missing_tools(codec):
        pytest.skip(problem)
    built(codec, tmp_path)
    lines = [
        'import { pgoutput } from "./dist/index.js";',
        'for (const streaming of ["off", undefined, "On", null, 1]) {',
        "  try { new pgoutput.Session({ protoVersion: 4, streaming }); console.log(streaming); }",
        "  catch (error) { console.log(error.path); }",
        "}",
    ]
    (tmp_path / "sessions.mjs").write_text("\n".join(lines), "utf-8")
    printed = run_tool(("node", "sessions.mjs"), tmp_path).split()
    assert printed == ["off", "undefined", *["streaming"] * 3]


def test_versions() -> None:
    """Those of the crate and the package are the project's; the tools of TypeScript are those that tests use."""
    package = json.loads((SPEC / "typescript" / "package.json").read_text("utf-8"))
    assert package["version"] == __version__
    assert package["devDependencies"] == {each.package: each.version for each in (PRETTIER, TYPESCRIPT)}
    for name in ("Cargo.toml", "Cargo.lock"):
        assert f'\nversion = "{__version__}"\n' in (SPEC / "rust" / name).read_text("utf-8")


@pytest.mark.long
def test_mutants(tmp_path: Path) -> None:
    """Messages, frames and messages of connections that were changed are decided as Python decides them."""
    if all(problems := [missing_tools(codec) for codec in CODECS.values()]):
        pytest.skip("; ".join(problems))
    report = other_languages.run(350_000, 0, tmp_path)
    assert len(report.languages) == problems.count("") and not report.problems
    assert report.accepted > report.payloads / 20


CHECKS = {
    "rust": (
        ("cargo", "fmt", "--check"),
        ("cargo", "clippy", "--offline", "--all-targets", "--", "-D", "warnings"),
        ("cargo", "test", "--offline", "--quiet"),
    ),
    "go": (("go", "vet", "./..."), ("go", "test", "./...")),
}
"""What else the tools of a language check; of TypeScript, tsc is strict whenever it compiles."""


@pytest.mark.parametrize("name", CHECKS)
def test_tools(name: str, tmp_path: Path) -> None:
    """The code is formatted as the language's formatter does it, its linter finds nothing, and its examples run."""
    codec = CODECS[name]
    if problem := missing_tools(codec):
        pytest.skip(problem)
    for command in CHECKS[name]:
        run_tool(command, codec.folder(), {"CARGO_TARGET_DIR": str(tmp_path)})
    if codec.name == "go":
        assert not run_tool(("gofmt", "-l", "."), codec.folder())


FORMATTED = ("spec/typescript/src", "spec/typescript/check.mjs", "spec/typescript/harness.mjs", "docs/explorer/src")


def test_typescript_is_formatted() -> None:
    """What is written by hand and what is generated, as prettier does it with the width of the package."""
    if problem := PRETTIER.missing("python -m tools.codecs"):
        pytest.skip(problem)
    given = (str(PRETTIER.path), "--config", "spec/typescript/package.json", "--check", *FORMATTED)
    assert "All matched files use Prettier code style!" in run_tool(given, SPEC.parent)


def test_the_example_in_typescript(tmp_path: Path) -> None:
    """README's prints what its comments say; those in Rust and Go are tests in their languages."""
    codec = CODECS["typescript"]
    if problem := missing_tools(codec):
        pytest.skip(problem)
    built(codec, tmp_path)
    text = (codec.folder() / "README.md").read_text("utf-8").partition("```js\n")[2].partition("```")[0]
    (tmp_path / "example.mjs").write_text(text.replace("pgoutput-codec", "./dist/index.js"), "utf-8")
    printed = run_tool(("node", "example.mjs"), tmp_path)
    assert printed.startswith("16385 [") and printed.endswith("truncated Insert.new.columns[0].length 9\n")
