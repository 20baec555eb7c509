"""What the engines of a generated package must agree on."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from pgoutput_construct.errors import DecodeError, EncodeError
from pgoutput_construct.wire.codec_runtime import REJECTIONS, read_whole
from pgoutput_construct.wire.trace import _trace
from pgoutput_construct.wire.types import Float, bare
from tests.spec_fuzz.checked_reads import Window
from tests.spec_fuzz.package import Package
from tools.generate.python.kernel_read import header_fields

__all__ = ["Engines"]

REFUSED = "refused"
BEFORE, AFTER = b"\x00\x01before", b"\xff\x00after\x00"
"""What stands around a payload in its batch."""
Parameters = Mapping[str, Any]


def outcome(call: Callable[[], Any]) -> str:
    """Return what a call gives, types of values included, or that it refuses."""
    try:
        return repr(call())
    except (DecodeError, EncodeError, *REJECTIONS):
        return REFUSED


class Engines:
    """The engines of one package under given parameters."""

    def __init__(self, package: Package, parameters: Parameters) -> None:
        self.package = package
        self.parameters = parameters
        self.given = tuple(parameters[parameter.name] for parameter in package.spec.parameters)

    def check_message(self, message: Any) -> bytes:
        """Check all that is true of a message that can be sent; return its bytes."""
        data = self.package.reference.build(message, self.parameters)
        built: bytes = self.package.codec.BUILDERS[type(message)](message, *self.given)
        assert built == data, f"codec builds {built.hex()}, definitions {data.hex()}"
        assert self.check_bytes(data) == repr(message), "what comes back is another message"
        self.check_headers(message, data)
        self.check_values(message, data)
        self.check_trace(data)
        return data

    def check_bytes(self, data: bytes) -> str:
        """Check that the engines accept or refuse the same, and give the same; return what they give."""
        reference = outcome(lambda: self.package.reference.parse(data, self.parameters))
        fast = outcome(lambda: read_whole(self.package.codec.READERS, data, self.given))
        assert fast == reference, f"{data.hex()}: codec parses {fast}, definitions {reference}"
        valid = self.index(data)[0]
        assert valid == (reference != REFUSED), f"{data.hex()}: kernels say {valid}, definitions {reference}"
        return reference

    def check_built(self, message: Any) -> None:
        """Check that the engines build the same from a message that may be none, or refuse it both."""
        reference = outcome(lambda: self.package.reference.build(message, self.parameters))
        fast = outcome(lambda: self.package.codec.BUILDERS[type(message)](message, *self.given))
        assert fast == reference, f"{message!r}: codec builds {fast}, definitions {reference}"

    def check_prefix(self, data: bytes, more: bytes) -> None:
        """Check that a message at the front of other bytes is found, whatever follows it."""
        message, size = self.package.reference.parse_prefix(BEFORE + data + more, len(BEFORE), self.parameters)
        assert (repr(message), size) == (repr(self.package.reference.parse(data, self.parameters)), len(data))

    def check_trace(self, data: bytes) -> None:
        """Check that the fields cover every byte, and that the specification knows each of them."""
        fields = self.package.fields.FIELDS
        trace = _trace(self.package.reference, data, self.parameters, fields)
        assert trace.fault is None, f"{data.hex()}: {trace.fault}"
        unknown = [span.key for span in trace.spans if span.key not in fields]
        assert not unknown, f"{unknown} are none of {list(fields)}"
        ends = [0, *(span.end for span in trace.spans)]
        assert [span.start for span in trace.spans] == ends[:-1]
        assert ends[-1] == len(data)

    def index(self, data: bytes) -> tuple[bool, dict[str, list[Any]]]:
        """Return whether the kernels accept a payload, and what they keep of it."""
        kernels = self.package.kernels
        window = Window(data, BEFORE, AFTER)
        kept: dict[str, list[Any]] = {
            name: [-1 if dtype is np.int64 else 0] for name, dtype in kernels.ROW_FIELDS.items()
        }
        tags, valid = [0], [False]
        given = [window, [window.start], [window.end], *self.kernel_parameters(kernels.index)]
        kernels.index(*given, tags, valid, *kept.values())
        return valid[0], kept

    def check_compiled(self, payloads: Sequence[bytes]) -> None:
        """Check that the compiled index accepts what the definitions accept, in one batch."""
        kernels, count = self.package.kernels, len(payloads)
        bounds = np.cumsum([0, *map(len, payloads)])
        data = np.frombuffer(b"".join(payloads) + b"\0", np.uint8)
        given = [np.full(count, v[0]) if isinstance(v, list) else v for v in self.kernel_parameters(kernels.index)]
        valid = np.zeros(count, np.bool_)
        kept = [np.full(count, -1 if dtype is np.int64 else 0, dtype) for dtype in kernels.ROW_FIELDS.values()]
        kernels.index(data, bounds[:-1].copy(), bounds[1:].copy(), *given, np.zeros(count, np.uint8), valid, *kept)
        for payload, accepted in zip(payloads, valid.tolist(), strict=True):
            expected = outcome(partial(self.package.reference.parse, payload, self.parameters))
            assert accepted == (expected != REFUSED), f"{payload.hex()}: kernels say {accepted}, definitions {expected}"

    def kernel_parameters(self, function: Any) -> list[Any]:
        """Return the parameters as the kernels take them: a state's by row, the others once."""
        by_row = {f"{name}_by_row": [self.parameters[name]] for name in self.package.kernels.ROW_PARAMETERS}
        known = {**by_row, **self.parameters}
        return [known[name] for name in inspect.signature(function).parameters if name in known]

    def check_headers(self, message: Any, data: bytes) -> None:
        """Check that the header fields which the kernels read are those of the message."""
        name, read, fields = self.package.kernels.READERS[data[0]]
        assert name == type(message).__name__
        if read is None:
            return
        window = Window(data, BEFORE, AFTER)
        columns = [[[None] for _ in range(_width(form))] for _, form in fields]
        outs = [out for column in columns for out in column]
        read(window, [window.start], [window.end], *self.kernel_parameters(read), *outs)
        structure = next(message for message in self.package.spec.messages if message.class_name == name)
        names = [field.name for field in header_fields(structure)]
        for (_, form), column, field in zip(fields, columns, names, strict=True):
            value = getattr(message, field)
            if form.endswith("?"):
                present = bool(column.pop()[0])
                assert present == (value is not None), f"{name}.{field} is {value!r}, has_{field} {present}"
            if value is not None:
                read_value = _header(form.rstrip("?"), [out[0] for out in column], window)
                expected = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
                if isinstance(expected, int) and read_value is not None:  # arrays view them as signed or not
                    read_value, expected = (number % self.modulus(data[:1], field) for number in (read_value, expected))
                assert read_value == expected, f"{name}.{field} is {value!r}, kernels read {read_value!r}"

    def modulus(self, tag: bytes, field: str) -> int:
        """Return how many numbers a field of a message can hold."""
        message = next(message for message in self.package.spec.messages if message.tag == tag)
        element: Any = next(element for element in message.elements if element.name == field)
        return 1 << 8 * int(element.type.bytes)

    def check_values(self, message: Any, data: bytes) -> None:
        """Check that the values of the rows in a message are found where they are."""
        kernels = self.package.kernels
        _, kept = self.index(data)
        window = Window(data, BEFORE, AFTER)
        for element in next(m for m in self.package.spec.messages if m.class_name == type(message).__name__).exposed:
            find = kernels.TUPLES.get(getattr(element, "part", None))
            if find is None or element.name not in kernels.ROW_FIELDS:
                continue
            row = bare(getattr(message, element.name))
            place = kept[element.name][0]
            assert (row is None) == (place == -1), f"{element.name} is {row!r}, its place {place}"
            if row is not None:
                self._check_row(find, window, place, row)

    def _check_row(self, find: Any, window: Window, place: int, row: Any) -> None:
        tags, starts, lengths = (np.full((max(len(row), 1), 1), -1, object) for _ in range(3))
        counts, seen, sizes = [-1], np.zeros((len(tags), 256), int), np.zeros(len(tags), int)
        # The row is the second payload's: in the states of the first one it could have another layout.
        parameters = self.kernel_parameters(find)
        parameters = [[not each[0], *each] if isinstance(each, list) else each for each in parameters]
        given = [window, [1], [place], *parameters]
        plan = np.zeros((1, len(tags)), int)
        fits = find(*given, len(row), plan, None, counts, tags, starts, lengths, seen, sizes)
        assert (fits, counts) == (True, [len(row)]), f"the row at {place} has not the {len(row)} values of {row!r}"
        for column, value in enumerate(row):
            start, length = starts[column, 0], lengths[column, 0]
            found, expected = window.data[start : start + length], bare(value)
            expected = expected if isinstance(expected, bytes) else b""
            assert found == expected, f"value {column} of {row!r} reads {found!r}"
            assert (seen[column, tags[column, 0]], sizes[column]) == (1, length), f"value {column} is not counted"


def _width(form: str) -> int:
    return (2 if form.startswith("bytes") else 1) + form.endswith("?")


def _header(form: str, values: list[Any], window: Window) -> Any:
    if form == "bytes":
        start, length = values
        return window.data[start : start + length]
    if form == "float" and values[0] is not None:
        return Float.from_bits(values[0] % (1 << 64))
    return bytes([values[0]]) if form == "letter" and values[0] is not None else values[0]
