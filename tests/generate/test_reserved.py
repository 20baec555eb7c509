"""Names that are words of a target language: every output is generated from them, and its readers read."""

import shutil
import subprocess
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from types import ModuleType

import kaitaistruct
import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet

from pgoutput_construct import SpecError
from tests.spec_fuzz.package import generated
from tests.wireshark.pcap import write_pcap
from tests.wireshark.sent import start, stream
from tests.wireshark.shown import NEEDS_TSHARK, shown
from tools.generate.kaitai import emit_kaitai
from tools.generate.reserved import RESERVED
from tools.generate.vectors.golden_vectors import emit_vectors
from tools.generate.wireshark.dissector import emit_dissector
from tools.kaitai import compiled, missing_compiler
from tools.language import SPEC, Spec, load, load_text
from tools.language.model import State

pytestmark = pytest.mark.slow

WORDS = sorted({word for words in RESERVED.values() for word in words.split()})
MORE = ["new_field", "class_field", "version", "since", "body", "text", "raw", "object", "string", "kaitai_struct"]
CLASSES = [
    "Object",
    "String",
    "Exception",
    "KaitaiStruct",
    "Self",
    "Class",
    "Delete",
    "Import",
    "Return",
    "End",
    "Array",
]


class Plain(yaml.SafeDumper):
    """Writes each block out."""

    def ignore_aliases(self, data: object) -> bool:
        """Write no aliases."""
        return True


def accepted(names: list[str], make: str) -> list[str]:
    """Return the names that the language permits in a place; it refuses the others, with a remedy."""
    found = []
    for name in names:
        try:
            load_text(make.replace("WORD", name))
        except SpecError as error:
            assert "Choose another name" in str(error) or "does not match" in str(error), error
            continue
        found.append(name)
    return found


FIELD = """\
protocol: words
title: Words
source: nowhere
messages:
  - {name: Word, blocks: [{type: header, fields: [{field: Byte1('W'), name: tag}, {field: Int8, name: 'WORD'}]}]}
"""
MESSAGE = FIELD.replace("name: 'WORD'", "name: x").replace("name: Word", "name: 'WORD'")
PARAMETER = FIELD.replace("messages:", "parameters: {'WORD': {type: bool}}\nmessages:").replace(
    "name: 'WORD'}", "name: x, when: 'WORD'}"
)


def specification() -> Spec:
    """Return one with all words: as fields, counts, branches, bits, values, parameters, parts and messages."""
    names = accepted([*dict.fromkeys([*WORDS, *MORE])], FIELD)
    classes = accepted(CLASSES, MESSAGE)
    flags = accepted([*dict.fromkeys([*WORDS, "body"])], PARAMETER)
    fields: list[dict[str, object]] = [{"field": "Int8", "name": name} for name in names]
    codes = {number: word.replace("_", " ") for number, word in enumerate([*WORDS, "2pc", "2 pc", "…"][:255])}
    bits = {1: "class", 2: "2pc", 4: "name", 8: "…"}
    marked = [{"field": "Int16", "name": "kinds", "values": codes}, {"field": "Int8", "name": "flags", "bits": bits}]
    # flags_class is what the bit would be called in Kaitai Struct.
    marked.append({"field": "Int8", "name": "flags_class"})
    branches = [
        {"field": f"Byte1('{chr(65 + n)}')", "name": word} for n, word in enumerate(["null", "class", "new", "end"])
    ]
    branches.append({"field": "Byte1('Z')", "name": "part", "then": classes[0], "since": 2})
    counted = [
        {"type": "header", "fields": [{"field": "Byte1('0')", "name": "tag"}, {"field": "Int8", "name": "default"}]},
        {
            "type": "repeat_1",
            "name": "switch",
            "count": "default",
            "blocks": [{"type": "header", "fields": fields[:1]}],
        },
        {"type": "choice_1", "name": "case", "alternatives": branches},
        {"type": "body", "fields": [{"field": "Int8", "name": "part_version"}]},
    ]
    chunks = [flags[at : at + 8] for at in range(0, len(flags), 8)]
    given = [[{"field": "Int8", "name": name, "when": name} for name in chunk if name in names] for chunk in chunks]
    several = [message("First", "1", fields), message("Marks", "2", marked)]
    several += [message("Newer", "3", [{"field": "Int8", "name": "version"}], since=2)]
    several += [{"name": "Listed", "blocks": counted}]
    several += [message(name, chr(97 + n), [{"field": "Int8", "name": "x"}]) for n, name in enumerate(classes[1:])]
    several += [message(f"Flags {chr(65 + n)}", chr(65 + n), found) for n, found in enumerate(given[:20]) if found]
    data = {
        "protocol": "words",
        "title": "Words",
        "source": "nowhere",
        "versions": [{"version": 1, "server": 10}, {"version": 2, "server": 14}],
        "parameters": {"proto_version": {"type": "int"}, **{name: {"type": "bool"} for name in flags}},
        "messages": several,
        "parts": [
            {"name": classes[0], "blocks": [{"type": "header", "fields": [{"field": "Int8", "name": "x"}, fields[0]]}]}
        ],
    }
    return load_text(yaml.dump(data, Dumper=Plain, sort_keys=False))


def header(fields: list[dict[str, object]]) -> dict[str, object]:
    """Return a block of fields."""
    return {"type": "header", "fields": fields}


def message(name: str, tag: str, fields: list[dict[str, object]], **more: int) -> dict[str, object]:
    """Return a message with some fields."""
    return {"name": name, **more, "blocks": [header([{"field": f"Byte1('{tag}')", "name": "tag"}, *fields])]}


@pytest.fixture(scope="module")
def spec() -> Spec:
    """Return the specification."""
    return specification()


def test_python_follows(spec: Spec) -> None:
    """The modules are imported, and both engines build and read a message whose fields are such words."""
    with generated(spec) as package:
        cls = package.messages.First
        names = [element.name for element in spec.messages[0].exposed]
        made = cls(**{name: number % 200 for number, name in enumerate(names)})
        parameters = {parameter.name: False for parameter in spec.parameters} | {"proto_version": 1}
        data = package.reference.build(made, parameters)
        assert package.reference.parse(data, parameters) == made
        assert len(data) == len(names) + 1


def test_columns_follow(spec: Spec) -> None:
    """Arrow's and Spark's columns have the names as they are, and Parquet files bring them back."""
    with generated(spec) as package:
        schema = package.kernels.MESSAGE_SCHEMA
    words = {*RESERVED["sql"].split()} & {element.name for element in spec.messages[0].exposed}
    assert {"select", "order", "table", "user"} <= words <= {*schema.names}
    table = pa.table({field.name: pa.array([None], field.type) for field in schema})
    written = pa.BufferOutputStream()
    parquet.write_table(table, written)
    assert parquet.read_table(pa.BufferReader(written.getvalue())).schema.names == schema.names


@NEEDS_TSHARK
def test_lua_follows(spec: Spec, tmp_path: Path) -> None:
    """Wireshark loads the dissector, and shows a message whose fields are such words."""
    words = [word for word in RESERVED["lua"].split() if word not in ("and", "not", "or")]
    spec = replace(spec, states=tuple(State(name) for name in words), options=())
    path = tmp_path / "words.lua"
    path.write_text(
        emit_dissector(spec, *(load(SPEC / name) for name in ("replication.yaml", "protocol.yaml"))), "utf-8"
    )
    data = b"1" + bytes(len(spec.messages[0].elements) - 1)
    segments = stream(start("(proto_version '1')"), [data])
    shown_here = shown(write_pcap(tmp_path / "words.pcap", segments), dissector=path)
    (message,) = [each for each in shown_here if each.name == "First"]
    names = [field.path.rpartition(".")[2] for field in message.fields]
    assert (names, message.experts) == ([element.name for element in spec.messages[0].elements], ())


@pytest.fixture(scope="module")
def readers(spec: Spec, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Kaitai Struct file."""
    if problem := missing_compiler():
        pytest.skip(problem)
    path = tmp_path_factory.mktemp("words") / "words.ksy"
    path.write_text(emit_kaitai(spec), "utf-8")
    return path


def test_kaitai_reads_in_python(spec: Spec, readers: Path) -> None:
    """The reader is imported, and reads each message."""
    module = ModuleType("words")
    exec(*compiled(readers, "python").values(), vars(module))
    count = len(yaml.safe_load(readers.read_text("utf-8"))["params"])
    parameters = [1, *[False] * (count - 1)]
    data = b"1" + bytes(len(spec.messages[0].elements) - 1)
    assert module.Words(*parameters, kaitaistruct.KaitaiStream(BytesIO(data))).end == b""


SYNTAX = {
    "javascript": ["node", "--check"],
    "go": ["gofmt", "-e", "-l"],
    "perl": ["perl", "-I", ".", "-c"],
    "cpp_stl": ["g++", "-std=c++17", "-fsyntax-only", "-I", "."],
    "java": ["javac", "-proc:none", "-implicit:none", "-d", "."],
}
"""The compiler's check of a file; Kaitai's runtime is not installed."""
MISSING = ("kaitai", "Kaitai", "cannot find symbol", "does not exist", "not a member", "has not been declared")


SLOW = ("cpp_stl", "java")


@pytest.mark.parametrize(
    "language", [pytest.param(each, marks=pytest.mark.long if each in SLOW else ()) for each in SYNTAX]
)
def test_kaitai_compiles_to_sources_of_each_language(readers: Path, language: str, tmp_path: Path) -> None:
    """No reserved word of the language is used as a name."""
    command = SYNTAX[language]
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    for name, text in compiled(readers, language).items():
        path = tmp_path / Path(name).name
        path.write_text("package words\n" * (language == "go") + text, "utf-8")
    for path in sorted(tmp_path.glob("*")):
        if path.suffix == ".h" and language == "cpp_stl":
            continue
        done = subprocess.run([*command, path.name], cwd=tmp_path, capture_output=True, text=True, check=False)
        problems = [line for line in done.stderr.splitlines() if "expected" in line or "syntax error" in line.lower()]
        assert not problems, problems[:5]


@pytest.mark.long
def test_vectors_follow(spec: Spec) -> None:
    """The vectors are told."""
    assert emit_vectors(spec).count("\n") > 100
