"""Somebody's own protocol: what follows from its specification, as the page about it says, and what is refused."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pgoutput_construct import SpecError
from pgoutput_construct.errors import DecodeError
from tests.codecs.golden import GoldenVector, misread, settings_of
from tests.generate.vectors import problem
from tools.codecs import CODECS, Codec, answers, built, message_line, missing_tools, run_tool
from tools.generate import __main__ as command
from tools.generate.own_protocol import render_own
from tools.npm import PRETTIER

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/own-protocol.md").read_text("utf-8")
JOBS, TYPES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
[PROGRAM] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

PLAIN = """\
protocol: chat
title: Chat
source: nowhere
messages:
  - name: Say
    blocks:
      - type: header
        fields: [{field: Byte1('S'), name: tag}, {field: Byte2, name: room}, {field: String, name: text}]
  - name: Leave
    blocks: [{type: header, fields: [{field: Byte1('L'), name: tag}]}]
"""
STATES = """\
protocol: chat
title: Chat
source: nowhere
versions: [{version: 3}]
parameters: {proto_version: {type: int}, in_batch: {type: bool}}
states: [{name: idle}, {name: batch, sets: in_batch}]
messages:
  - name: Begin Batch
    in: [idle]
    enters: batch
    blocks: [{type: header, fields: [{field: Byte1('b'), name: tag}]}]
  - name: End Batch
    in: [batch]
    enters: idle
    blocks: [{type: header, fields: [{field: Byte1('e'), name: tag}]}]
  - name: Say
    blocks:
      - type: header
        fields:
          - {field: Byte1('S'), name: tag}
          - {field: Int16, name: number, when: in_batch}
          - {field: String, name: text}
"""
CONNECTION = """\
protocol: chat
title: Chat
source: nowhere
states: [{name: greeting}, {name: talking}]
messages:
  - name: Hello
    sender: client
    in: [greeting]
    enters: talking
    blocks:
      - {type: header, fields: [{field: Int32, name: length, measures: rest}, {field: String, name: user}]}
  - name: Say
    in: [talking]
    blocks:
      - type: header
        fields: [{field: Byte1('S'), name: tag}, {field: Int32, name: length, measures: rest}]
      - type: repeat_1
        name: lines
        until: Int8(0)
        blocks: [{type: header, fields: [{field: String, name: line}]}]
"""
VALUES = """\
protocol: rows
title: Rows
source: nowhere
states: [{name: open}]
messages:
  - name: Row
    blocks:
      - type: header
        fields: [{field: Int8(0), name: tag}, {field: Int8, name: value_count}]
      - type: repeat_1
        name: cells
        count: value_count
        blocks:
          - type: choice_1
            name: value
            alternatives:
              - {field: Byte1('n'), name: nothing, python: None}
              - {field: Byte1('u'), name: unchanged, python: UNCHANGED}
              - field: Byte1('t')
                name: text
                python: bytes
                then: [{field: Int8, name: size}, {field: Byten, name: content, length: size}]
              - field: Byte1('z')
                name: packed
                python: Packed
                then:
                  - {field: Int16, name: raw_size}
                  - {field: Int8, name: size}
                  - {field: Byten, name: content, length: size}
              - field: Byte1('k')
                name: keyed
                python: Keyed
                then: [{field: Byte4, name: key}, {field: String, name: of}]
"""
_STEPS = [*range(14)]
DEEP = PLAIN.replace("{field: String, name: text}", "{field: Part0, name: part0}") + "parts:\n"
DEEP += "".join(
    f"  - {{name: Part{n}, blocks: [{{type: header, fields: [{{field: Int8, name: a}}, {{field: {inner}}}]}}]}}\n"
    for n, inner in zip(_STEPS, [*(f"Part{n}, name: part{n}" for n in _STEPS[1:]), "Int16, name: last"], strict=True)
)
"""Parts in parts: more than the steps for which Go has room."""
OTHERS = {"plain": PLAIN, "values": VALUES, "states": STATES, "connection": CONNECTION}


def generate(folder: Path, text: str, *arguments: str) -> Path:
    """Generate the files of a specification; return the folder that they are in."""
    (folder / "spec").mkdir(exist_ok=True)
    (folder / "spec/own.yaml").write_text(text, "utf-8")
    given = ["--spec", str(folder / "spec"), "--into", str(folder / "out"), "--package", "job_queue", *arguments]
    assert command.main(given) == 0
    return folder / "out"


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the page's example."""
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "spec").mkdir()
    (folder / "spec/types.yaml").write_text(TYPES, "utf-8")
    return generate(folder, JOBS)


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Forget the package after the test."""
    yield monkeypatch
    for name in [name for name in sys.modules if name.partition(".")[0] == "job_queue"]:
        del sys.modules[name]


def vectors(folder: Path) -> list[dict[str, Any]]:
    """Return the golden vectors of a folder."""
    return [json.loads(line) for line in (folder / "vectors.jsonl").read_text("utf-8").splitlines()[1:]]


def asked(folder: Path) -> list[GoldenVector]:
    """Return the vectors with the lines that ask a program for them."""
    rows = vectors(folder)
    if "sender" in rows[0]:
        return [("connection {sender} {state} {hex}".format(**row), row) for row in rows]
    return [(message_line(settings_of(row), row["hex"]), row) for row in rows]


def wrong_in_python(folder: Path, imports: pytest.MonkeyPatch) -> list[str]:
    """Return what the package of a folder does wrong with the vectors: it parses them and builds them again."""
    imports.syspath_prepend(str(folder))
    import job_queue  # type: ignore[import-not-found]

    def read(given: dict[str, Any], data: bytes, _: dict[str, Any]) -> dict[str, Any]:
        message = job_queue.parse(data, **given)
        found: dict[str, Any] = job_queue.to_json(message)
        assert job_queue.from_json(json.loads(json.dumps(found))) == message
        assert job_queue.build(message, **({} if "sender" in given else given)) == data
        return found

    return [wrong for row in vectors(folder) if (wrong := problem(row, partial(read, settings_of(row))))]


def test_the_example_on_the_page(jobs: Path, imports: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Its program prints what its comments say."""
    imports.syspath_prepend(str(jobs))
    exec(compile(PROGRAM, "<page>", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert printed == [line.partition("  # ")[2] for line in PROGRAM.splitlines() if "  # " in line]


def test_vectors_in_python(jobs: Path, imports: pytest.MonkeyPatch) -> None:
    """The package accepts and refuses what the golden vectors say, and builds the same bytes."""
    assert len(vectors(jobs)) > 400
    assert wrong_in_python(jobs, imports) == []


def test_a_version_that_does_not_exist(jobs: Path, imports: pytest.MonkeyPatch) -> None:
    """It is refused by name."""
    imports.syspath_prepend(str(jobs))
    import job_queue

    with pytest.raises(ValueError, match="proto_version must be one of 1, 2, not 3"):
        job_queue.parse(b"C\0\0\0\1", proto_version=3)
    with pytest.raises(DecodeError):
        job_queue.parse(b"C\0\0\0\1")
    assert job_queue.parse(b"C\0\0\0\1", proto_version=2) == job_queue.Cancel(job=1)


@pytest.mark.slow
@pytest.mark.parametrize("language", CODECS)
def test_vectors_in_other_languages(language: str, jobs: Path, tmp_path: Path) -> None:
    """The codecs compile under their own names, and answer as the golden vectors say."""
    codec = CODECS[language]
    if missing := missing_tools(codec):
        pytest.skip(missing)
    assert not misread(built(codec, tmp_path, jobs), asked(jobs))


@pytest.mark.parametrize("kind", OTHERS)
def test_other_kinds_in_python(kind: str, tmp_path: Path, imports: pytest.MonkeyPatch) -> None:
    """Without versions, with states, and with lengths."""
    folder = generate(tmp_path, OTHERS[kind])
    assert wrong_in_python(folder, imports) == []
    if kind == "connection":
        import job_queue

        hello = job_queue.build(job_queue.Hello(user="me"))
        assert job_queue.message_size(hello[:4], "client", job_queue.FIRST_STATE) == len(hello)
        assert job_queue.next_state(job_queue.Hello(user="me"), "client", "greeting") == "talking"


@pytest.mark.slow
@pytest.mark.parametrize("language", CODECS)
@pytest.mark.parametrize("kind", OTHERS)
def test_other_kinds_in_other_languages(kind: str, language: str, tmp_path: Path) -> None:
    """The same specifications; formatters and linters find nothing."""
    codec = CODECS[language]
    if missing := missing_tools(codec):
        pytest.skip(missing)
    folder = generate(tmp_path, OTHERS[kind])
    assert not misread(built(codec, tmp_path / "built", folder), asked(folder))
    check_tools(codec, folder, tmp_path / "built")


@pytest.mark.slow
def test_paths_through_many_parts(tmp_path: Path) -> None:
    """Errors have the whole path, in Go as in Python."""
    codec = CODECS["go"]
    if missing := missing_tools(codec):
        pytest.skip(missing)
    folder = generate(tmp_path, DEEP)
    [answer] = answers(built(codec, tmp_path / "built", folder), ["message 53" + "00" * 17])
    path = ".".join(["Say", *(f"part{number}" for number in _STEPS), "last"])
    assert answer == {"refuse": "truncated", "offset": 17, "path": path}


def check_tools(codec: Codec, folder: Path, target: Path) -> None:
    """Check what the tools of a language say of its codec."""
    if codec.name == "rust":
        linted = ("cargo", "clippy", "--offline", "--all-targets", "--", "-D", "warnings")
        for line in (("cargo", "fmt", "--check"), linted):
            run_tool(line, folder / "rust", {"CARGO_TARGET_DIR": str(target)})
    elif codec.name == "go":
        run_tool(("go", "vet", "./..."), folder / "go")
        assert not run_tool(("gofmt", "-l", "."), folder / "go")
    elif not PRETTIER.missing(""):
        given = ("--config", str(ROOT / "spec/typescript/package.json"), "--check", "src", "check.mjs")
        run_tool((str(PRETTIER.path), *given), folder / "typescript")


@pytest.mark.slow
def test_types(jobs: Path, tmp_path: Path) -> None:
    """mypy finds nothing in the package, nor in the program of the page."""
    shutil.copytree(jobs / "job_queue", tmp_path / "job_queue")
    (tmp_path / "program.py").write_text(PROGRAM, "utf-8")
    (tmp_path / "chat").mkdir()
    folder = generate(tmp_path / "chat", CONNECTION)
    shutil.move(folder / "job_queue", tmp_path / "chat_queue")
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = true\n[mypy-construct.*]\nignore_missing_imports = true\n")
    line = [sys.executable, "-m", "mypy", "-p", "job_queue", "-p", "chat_queue", "-m", "program"]
    found = subprocess.run(
        [*line, "--cache-dir", str(tmp_path / "cache")], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert found.stdout.startswith("Success"), found.stdout + found.stderr


@pytest.mark.slow
def test_check(jobs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It notices a stale file, a missing one, and one that nothing writes any more; generating mends them."""
    arguments = ["--spec", str(jobs.parent / "spec"), "--into", str(jobs), "--package", "job_queue"]
    assert command.main([*arguments, "--check"]) == 0
    with (jobs / "job_queue/codec.py").open("a") as file:
        file.write("# changed\n")
    (jobs / "reference.md").unlink()
    shutil.copy(jobs / "job_queue/messages.py", jobs / "job_queue/former.py")
    assert command.main([*arguments, "--check"]) == 1
    printed = capsys.readouterr().err
    assert all(
        word in printed for word in ("stale: job_queue/codec.py", "missing: reference.md", "orphaned: job_queue")
    )
    assert command.main(arguments) == 0
    assert command.main([*arguments, "--check"]) == 0
    assert not (jobs / "job_queue/former.py").exists()


def test_files_of_others_are_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that was not generated stays, and nothing is written."""
    (tmp_path / "out/go").mkdir(parents=True)
    (tmp_path / "out/go/go.mod").write_text("module mine\n")
    (tmp_path / "own.yaml").write_text(PLAIN)
    arguments = ["--spec", str(tmp_path), "--into", str(tmp_path / "out"), "--package", "job_queue"]
    assert command.main(arguments) == 2
    assert "go.mod: was not generated" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "out").rglob("*")] == ["go", "go.mod"]


BROKEN = {
    "an unknown type": (PLAIN.replace("Byte2", "Float8"), "own.yaml:8: unknown notation 'Float8'"),
    "no messages": (PLAIN.partition("messages:")[0] + "messages: []\n", "own.yaml:4: messages"),
    "no tag": (PLAIN.replace("Byte1('S')", "Int8"), "own.yaml:5: message Say does not start with its tag"),
    "an option": (PLAIN + "options: [{name: fast, type: switch}]\n", "own.yaml:11: 'options' is about"),
    "a server": (PLAIN.replace("name: Leave", "name: Leave\n    server: 10"), "own.yaml:10: 'server' is about"),
    "a group": (PLAIN.replace("name: Leave", "name: Leave\n    group: end"), "own.yaml:10: 'group' is about"),
    "a carried specification": (PLAIN + "carries: other.yaml\n", "own.yaml:11: 'carries' is about"),
    "a parameter that nothing sets": (STATES.replace(", sets: in_batch", ""), "own.yaml:5: no state sets the"),
    "a parameter without versions": (
        PLAIN.replace("name: Leave", "name: Leave\n    enters: b")
        + "parameters: {loud: {type: bool}}\nstates: [{name: a}, {name: b, sets: loud}]\n",
        "own.yaml:12: the parameter 'loud' is in a specification without versions",
    ),
    "versions without a parameter": (
        PLAIN.replace("messages:", "versions: [{version: 3}]\nmessages:"),
        "own.yaml:4: the versions have no parameter, ",
    ),
    "versions of messages with a length": (
        CONNECTION.replace("states:", "versions: [{version: 1}]\nstates:"),
        "own.yaml:4: messages with a length depend on versions, ",
    ),
    "the name of the union": (PLAIN.replace("Leave", "Job Queue Message"), "own.yaml:9: the class JobQueueMessage"),
    "an item that hides a name of the package": (
        CONNECTION.replace("name: lines", "name: lines\n        class: JsonFormat").replace(
            "{field: String, name: line}", "{field: String, name: line}, {field: Int8, name: colour}"
        ),
        "own.yaml:17: the class JsonFormat would hide a name of the generated package",
    ),
    "a value that hides a name of the package": (
        VALUES.replace("python: Packed", "python: JsonFormat"),
        "own.yaml:23: the class JsonFormat would hide a name of the generated package",
    ),
    "a constant that hides a name of the package": (
        VALUES.replace("python: UNCHANGED", "python: VERSIONS"),
        "own.yaml:18: the class VERSIONS would hide a name of the generated package",
    ),
    "a constant that hides a table": (VALUES.replace("UNCHANGED", "VALUE_TAGS"), "the class VALUE_TAGS would hide"),
    "a message that hides a construct": (PLAIN.replace("Leave", "Has Bit"), "the class HasBit would hide a name"),
    "a part that nothing uses": (
        PLAIN + "parts: [{name: Room, blocks: [{type: body, fields: [{field: Int8, name: a}]}]}]\n",
        "own.yaml:11: no message has the part Room",
    ),
    "a name of Rust": (PLAIN.replace("Leave", "Option"), "Option, which generated code uses in Rust"),
    "a name of TypeScript": (PLAIN.replace("Leave", "Uint8 Array"), "Uint8Array, which generated code uses in"),
    "a parameter in Go": (
        STATES.replace("Begin Batch", "In Batch"),
        "own.yaml:8: the type InBatch would be called InBatch in Go, as the parameter",
    ),
    **{
        f"a parameter called {name}": (
            STATES.replace("in_batch", name),
            f"own.yaml:5: the parameter {name} would be called {found}, which generated code uses in {language}",
        )
        for name, found, language in (
            ("session", "Session", "Go"),
            ("sets", "SETS", "Rust"),
            ("transitions", "TRANSITIONS", "Rust"),
            ("names", "NAMES", "TypeScript"),
            ("indexes", "INDEXES", "TypeScript"),
        )
    },
    "a message without fields in Rust": (
        STATES.replace("End Batch", "SETS"),
        "own.yaml:12: the type SETS would be called SETS, which generated code uses in Rust",
    ),
    "a parameter in Rust": (
        STATES.replace("in_batch", "loud").replace("End Batch", "LOUD"),
        "own.yaml:12: the type LOUD would be called LOUD in Rust, as the parameter loud is",
    ),
    "a state in Go": (CONNECTION.replace("Hello", "State Talking"), "own.yaml:6: the type StateTalking would be"),
    "no YAML": ("a: [", "own.yaml:"),
    "a list": ("- a\n", "own.yaml:1"),
}
"""A specification, and what its error says."""


@pytest.mark.parametrize("name", BROKEN)
def test_broken_specifications(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are refused with file and line."""
    text, said = BROKEN[name]
    (tmp_path / "own.yaml").write_text(text)
    assert command.main(["--spec", str(tmp_path), "--into", str(tmp_path), "--package", "job_queue"]) == 2
    assert said in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["own.yaml"]


def test_folders(tmp_path: Path) -> None:
    """A folder has one specification, and types.yaml is not one."""
    with pytest.raises(SpecError, match=r"missing: there is no such folder\. "):
        render_own(tmp_path / "missing", "job_queue")
    (tmp_path / "types.yaml").write_text(TYPES)
    with pytest.raises(SpecError, match=r"no specification\. "):
        render_own(tmp_path, "job_queue")
    (tmp_path / "types.yaml").write_text(TYPES.replace("UInt32", "Float"))
    (tmp_path / "one.yaml").write_text(JOBS)
    with pytest.raises(SpecError, match=r"types\.yaml:4: "):
        render_own(tmp_path, "job_queue")
    (tmp_path / "two.yml").write_text(JOBS)
    with pytest.raises(SpecError, match=r"several specifications: one\.yaml, two\.yml\. "):
        render_own(tmp_path, "job_queue")


@pytest.mark.parametrize("name", ["Queue", "my-queue", "queue", "match", "crate", "func", "wire", "a__b", "go"])
def test_names_of_packages(name: str, tmp_path: Path) -> None:
    """What no package of Python, Rust or Go can be called is refused."""
    (tmp_path / "own.yaml").write_text(PLAIN)
    with pytest.raises(SpecError, match=rf"--package {name}: the name is "):
        render_own(tmp_path, name)


def test_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder of another protocol needs the name of a package, and that needs both folders."""
    (tmp_path / "own.yaml").write_text(PLAIN)
    assert command.main(["--spec", str(tmp_path)]) == 2
    assert "Give --package NAME" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.main(["--package", "job_queue"])


@pytest.mark.parametrize("check", [[], ["--check"]])
def test_files_in_place_of_folders(check: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are named."""
    (tmp_path / "own.yaml").write_text(PLAIN)
    arguments = ["--spec", str(tmp_path), "--package", "job_queue", *check, "--into"]
    with pytest.raises(SystemExit) as caught:
        command.main([*arguments, str(tmp_path / "own.yaml")])
    assert caught.value.code == 2
    assert "own.yaml: it is a file. Give a folder" in capsys.readouterr().err
    (tmp_path / "out/reference.md").mkdir(parents=True)
    assert command.main([*arguments, str(tmp_path / "out")]) == 2
    assert "reference.md: Is a directory" in capsys.readouterr().err
