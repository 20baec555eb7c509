"""What the page reads is what Python's trace has: paths, offsets and values, of good and of refused payloads."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pgoutput_construct.wire import Lsn, Timestamp, build_frame
from pgoutput_construct.wire.frames import XLogData
from pgoutput_construct.wire.trace import Trace, trace, trace_frame
from tests.generate.vectors import SPEC, lines
from tools.codecs import CODECS, TSC, missing_tools, run_tool
from tools.explorer.build import SOURCE, data

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.slow

_READ = """
given => {
  const settingsOf = ({ kind, ...values }) => explorer.withValues(explorer.settingsOf(kind ?? 'message'), values);
  const cases = JSON.parse(given);
  const text = value => value instanceof Uint8Array ? explorer.hex(value)
    : typeof value === "string" ? explorer.hex(new TextEncoder().encode(value)) : String(value);
  const shown = ({ name, spans, fault, inner }) => ({
    name,
    spans: spans.map(({ path, key, start, end, value }) => [path, key, start, end, text(value)]),
    fault: fault && [fault.path, fault.offset],
    inner: inner && shown(inner.reading),
  });
  const found = cases.map(([digits, given]) => shown(explorer.read(explorer.bytes(digits), settingsOf(given))));
  return JSON.stringify(found);
}
"""
_CHANGE = """
given => {
  const settingsOf = ({ kind, ...values }) => explorer.withValues(explorer.settingsOf(kind ?? 'message'), values);
  const text = value => value instanceof Uint8Array ? new TextDecoder().decode(value) : String(value);
  const other = value => value instanceof Uint8Array ? Uint8Array.of(65, 66) : typeof value === "string" ? "AB"
    : typeof value === "bigint" ? (value === 1n ? 2n : 1n) : value === 1 ? 2 : 1;
  const [keys, wrong] = [new Set(), []];
  for (const [digits, values] of JSON.parse(given)) {
    const settings = settingsOf(values);
    const reading = explorer.read(explorer.bytes(digits), settings);
    for (const span of reading.message === null ? [] : reading.spans) {
      const { change, values, bits, contents, notation } = span.described;
      if (change === undefined || keys.has(span.key) || /^Byte\\d/.test(notation) && contents === undefined) continue;
      keys.add(span.key);
      const isOpen = !values && !bits && !contents;
      const value = isOpen ? other(span.value) : span.value;
      const changed = explorer.read(explorer.changed(reading, span, value), settings);
      const found = changed.spans.find(each => each.path === span.path);
      if (text(found?.value) !== text(value)) wrong.push([digits, span.path, text(value), text(found?.value)]);
      if (!isOpen && explorer.hex(changed.data) !== digits) wrong.push([digits, span.path]);
    }
  }
  return JSON.stringify({ keys: [...keys], wrong: wrong.slice(0, 5) });
}
"""


def _read(page: "Page", cases: Iterable[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Return what the page reads."""
    given = json.dumps([*cases])
    found: list[dict[str, Any]] = json.loads(page.evaluate(_READ, given))  # as text: objects take playwright longer
    return found


def _expected(found: Trace) -> dict[str, Any]:
    fault = found.fault and [found.fault.error.path, found.fault.error.offset]
    spans = [[span.path, span.key, span.start, span.end, _text(span.value)] for span in found.spans]
    return {"name": found.name or "", "spans": spans, "fault": fault, "inner": None}


def _text(value: object) -> str:
    if isinstance(value, int):
        return str(int(value))
    data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    assert isinstance(data, bytes)
    return data.hex()


def _unequal(found: Sequence[Any], expected: Sequence[Any], digits: Iterable[str]) -> list[Any]:
    return [each for each in zip(digits, found, expected, strict=True) if each[1] != each[2]][:3]


def test_messages(page: "Page") -> None:
    """All golden vectors of messages."""
    vectors = [*lines("vectors.jsonl")]
    given = [{word: vector[word] for word in ("proto_version", "streaming", "in_stream")} for vector in vectors]
    digits = [vector["hex"] for vector in vectors]
    traces = [trace(bytes.fromhex(each), **settings) for each, settings in zip(digits, given, strict=True)]
    assert not _unequal(_read(page, zip(digits, given, strict=True)), [*map(_expected, traces)], digits)


def test_frames(page: "Page") -> None:
    """All golden vectors of frames."""
    digits = [vector["hex"] for vector in lines("vectors-envelope.jsonl")]
    found = _read(page, ((each, {"kind": "frame"}) for each in digits))
    for each in found:
        each["inner"] = None  # the vectors carry bytes that are no messages, and by chance begin like one
    assert not _unequal(found, [_expected(trace_frame(bytes.fromhex(each))) for each in digits], digits)


def test_connection(page: "Page") -> None:
    """Fields of messages of the connection follow each other without gaps, up to the end or to the error."""
    vectors = [*lines("vectors-connection.jsonl")]
    cases = ((v["hex"], {"kind": "connection", "sender": v["sender"], "state": v["state"]}) for v in vectors)
    for vector, found in zip(vectors, _read(page, cases), strict=True):
        at = 0
        for _, _, start, end, _ in found["spans"]:
            assert (start, end >= start) == (at, True), vector
            at = end
        refused = vector.get("refuse")
        assert at == (refused["offset"] if refused else len(vector["hex"]) // 2), vector
        assert (found["fault"] and found["fault"][1]) == (refused and refused["offset"])


def test_carried_message(page: "Page") -> None:
    """The message in a frame is read, too."""
    message = bytes.fromhex("490000400f4e00027400000001316e")
    frame = build_frame(XLogData(Lsn(1), Lsn(1), Timestamp(0), message))
    [found] = _read(page, [(frame.hex(), {"kind": "frame"})])
    assert found == {**_expected(trace_frame(frame)), "inner": _expected(trace(message))}


def test_every_cut(page: "Page") -> None:
    """A message that ends after any of its bytes, and one with a byte too many."""
    whole = bytes.fromhex("55000040074b0001740000000232304e00027400000002323175")
    cuts = [*(whole[:size] for size in range(len(whole) + 1)), whole + b"\0"]
    found = _read(page, ((cut.hex(), {}) for cut in cuts))
    assert not _unequal(found, [_expected(trace(cut)) for cut in cuts], [cut.hex() for cut in cuts])


def test_every_field_can_be_changed(page: "Page") -> None:
    """A field of any message has its new value in the bytes that the codec builds; tags may stay as they are."""
    seen = set[str]()
    for kind, name in (("message", ""), ("frame", "-envelope"), ("connection", "-connection")):
        cases = [[each["hex"], {**each, "kind": kind}] for each in lines(f"vectors{name}.jsonl") if "fields" in each]
        found = json.loads(page.evaluate(_CHANGE, json.dumps(cases)))
        assert found["wrong"] == []
        seen.update(found["keys"])
    fields = {key: row for spec in data(SPEC)["specifications"].values() for key, row in spec["fields"].items()}
    can = {key for key, row in fields.items() if "change" in row}
    assert seen == {key for key in can if not re.match(r"Byte\d", fields[key]["notation"]) or "contents" in fields[key]}


def test_program_is_typed(tmp_path: Path) -> None:
    """The program has no errors of types."""
    if problem := missing_tools(CODECS["typescript"]):
        pytest.skip(problem)
    run_tool((str(TSC), "--project", str(SOURCE)), tmp_path)
