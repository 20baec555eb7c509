"""The Kaitai Struct files, compiled by Kaitai's own compiler: they read what parse reads."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import IntEnum
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import kaitaistruct
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.wire.engine import parse_frame
from pgoutput_construct.wire.messages import VALUES
from pgoutput_construct.wire.options import options
from tests.generate.test_odd_layouts import PARAMETERS
from tests.generate.test_odd_layouts import SPEC as ODD
from tests.generate.vectors import SPEC, lines, told
from tests.live.recording import Recording
from tools.generate.kaitai import emit_kaitai
from tools.generate.vectors.golden_vectors import vectors
from tools.generate.vectors.vectors_settings import Setting
from tools.kaitai import compiled, missing_compiler
from tools.language import load_text


@pytest.fixture(scope="module")
def readers() -> dict[str, ModuleType]:
    """Return the modules that the compiler makes of the files, by name."""
    if problem := missing_compiler():
        pytest.skip(problem)
    found = {}
    for name in ("pgoutput", "replication"):
        (text,) = compiled(SPEC / f"{name}.ksy", "python").values()
        found[name] = ModuleType(name)
        exec(compile(text, name, "exec"), vars(found[name]))
    return found


def read(readers: Mapping[str, ModuleType], data: bytes, given: Mapping[str, Any]) -> Any:
    """Read a message by Kaitai, under the options of parse."""
    parameters = options(**given).parameters()
    return readers["pgoutput"].Pgoutput(*parameters.values(), kaitaistruct.KaitaiStream(BytesIO(data)))


def difference(ours: Any, theirs: Any, path: str = "") -> str | None:
    """Return where what Kaitai has read is not what parse gives, None where it is the same."""
    if is_dataclass(ours):
        named = ((f.name, f"{f.name}_field" if hasattr(theirs, f"{f.name}_field") else f.name) for f in fields(ours))
        pairs = ((getattr(ours, one), getattr(theirs, other, None), f"{path}.{one}") for one, other in named)
        return next((found for pair in pairs if (found := difference(*pair))), None)
    if isinstance(ours, tuple):
        items = theirs if isinstance(theirs, list) else getattr(theirs, "columns", [])
        if len(ours) != len(items):
            return f"{path}: {len(ours)} and {len(items)} items"
        triples = ((each, item, f"{path}[{i}]") for i, (each, item) in enumerate(zip(ours, items, strict=True)))
        return next((found for triple in triples if (found := difference(*triple))), None)
    return None if plain(ours, theirs) else f"{path}: {ours!r} and {theirs!r}"


def plain(ours: Any, theirs: Any) -> bool:
    """Return whether a value without parts is the same."""
    if hasattr(theirs, "value_kind"):  # of a row
        kind = next(kind for kind, known in VALUES.items() if ours is known or type(ours) is known)
        return theirs.value_kind.name == kind and (not isinstance(ours, bytes) or theirs.value.data == ours)
    if hasattr(theirs, "raw"):
        return bool(theirs.raw == ours.encode("utf-8", "surrogateescape"))
    if ours is None:
        return theirs is None or theirs.name == "new_tag"
    if isinstance(theirs, IntEnum) and isinstance(ours, str):
        return chr(theirs) == ours
    return bool(theirs == ours)


@pytest.mark.slow
def test_recordings_read_alike(readers: dict[str, ModuleType], recordings: dict[str, Recording]) -> None:
    """All that real servers have sent."""
    for recording in recordings.values():
        mode = {"proto_version": recording.mode.proto_version, "streaming": recording.mode.streaming}
        session = pgo.Session(**mode)
        for payload in recording.payloads:
            given = {**mode, "in_stream": session.in_stream}
            ours = session.parse(payload)
            theirs = read(readers, payload, given)
            assert theirs.tag == payload[0]
            assert difference(ours, theirs.body) is None


def test_vectors_read_alike(readers: dict[str, ModuleType]) -> None:
    """Accepted messages have the same values; refused ones are refused, except for an option unknown to Kaitai."""
    for vector in lines("vectors.jsonl"):
        data = bytes.fromhex(vector["hex"])
        if "fields" in vector:
            assert difference(pgo.parse(data, **told(vector)), read(readers, data, told(vector)).body) is None
        elif vector["refuse"]["reason"] != "option":
            with pytest.raises((kaitaistruct.KaitaiStructError, EOFError)):
                read(readers, data, told(vector))


def test_frames_read_alike(readers: dict[str, ModuleType]) -> None:
    """The envelope too."""
    for vector in lines("vectors-envelope.jsonl"):
        data = bytes.fromhex(vector["hex"])
        reader = readers["replication"].Replication
        if "fields" in vector:
            assert difference(parse_frame(data), reader.from_bytes(data).body) is None
        else:
            with pytest.raises((kaitaistruct.KaitaiStructError, EOFError)):
                reader.from_bytes(data)


def test_a_difference_is_noticed(readers: dict[str, ModuleType]) -> None:
    """Other options, or another value, are distinguished."""
    abort = next(vector for vector in lines("vectors.jsonl") if vector["message"] == "StreamAbort")
    data = bytes.fromhex(abort["hex"])
    ours = pgo.parse(data, **told(abort))
    for at in range(1, len(data)):
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        assert difference(ours, read(readers, changed, told(abort)).body)


@pytest.mark.slow
def test_odd_layouts_are_accepted_alike(tmp_path: Path) -> None:
    """Layouts that PostgreSQL does not have yet: Kaitai accepts and refuses what the vectors do."""
    if problem := missing_compiler():
        pytest.skip(problem)
    (tmp_path / "odd.ksy").write_text(emit_kaitai(load_text(ODD)), "utf-8")
    module = ModuleType("odd")
    exec(*compiled(tmp_path / "odd.ksy", "python").values(), vars(module))
    for parameters in PARAMETERS:
        for vector in vectors(load_text(ODD), [Setting({}, parameters)]):
            data = kaitaistruct.KaitaiStream(BytesIO(bytes.fromhex(vector["hex"])))
            if "fields" in vector:
                assert module.Odd(*parameters.values(), data).end == b""
            else:
                with pytest.raises((kaitaistruct.KaitaiStructError, EOFError)):
                    module.Odd(*parameters.values(), data)


@pytest.mark.slow
def test_two_types_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """Kaitai has one space of names: a part that is called like the type of texts has another one there."""
    if problem := missing_compiler():
        pytest.skip(problem)
    (tmp_path / "odd.ksy").write_text(emit_kaitai(load_text(ODD.replace("Pair", "Text"))), "utf-8")
    module = ModuleType("odd")
    exec(*compiled(tmp_path / "odd.ksy", "python").values(), vars(module))
    assert module.Odd.Text is not module.Odd.Text2


LARGE = """\
protocol: large
title: Large
source: nowhere
messages:
  - name: First
    blocks:
      - type: header
        fields:
          - {field: Byte1('F'), name: tag}
          - {field: Int64, name: code, values: {2: two, 18446744073709551614: nearly all}}
"""


@pytest.mark.slow
@pytest.mark.parametrize(("code", "known"), [(2, True), ((1 << 64) - 2, True), ((1 << 64) - 1, False), (3, False)])
def test_values_beyond_the_numbers_of_javascript(code: int, known: bool, tmp_path: Path) -> None:
    """The compiler, which is JavaScript, takes such a value for no other one."""
    if problem := missing_compiler():
        pytest.skip(problem)
    (tmp_path / "large.ksy").write_text(emit_kaitai(load_text(LARGE)), "utf-8")
    module = ModuleType("large")
    exec(*compiled(tmp_path / "large.ksy", "python").values(), vars(module))
    data = kaitaistruct.KaitaiStream(BytesIO(b"F" + code.to_bytes(8, "big")))
    if known:
        assert module.Large(data).body.code == code
    else:
        with pytest.raises(kaitaistruct.KaitaiStructError):
            module.Large(data)
