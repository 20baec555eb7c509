"""The reads of the columnar kernels: the header fields of all messages of one kind, which were walked before."""

from collections.abc import Sequence

from tools.generate.codec_runs import Lines, Run, condition, indented, runs
from tools.generate.kernel_walk import number_at
from tools.generate.text import snake_case
from tools.language import Choice, Field, Message, Repeat, Spec

__all__ = ["Reader"]

STOP = (Repeat, Choice)
"""Nothing behind these is read: what stands there has no place that is known without a walk."""


class Reader:
    """Emits the reads."""

    def __init__(self, spec: Spec) -> None:
        self.parameters = "".join(f", {p.name}: {p.type}" for p in spec.parameters if p.name != "in_stream")

    @staticmethod
    def form(field: Field) -> str:
        """Return how a field is read: number, letter, or bytes with start and length; ``?`` where it may be absent."""
        assert field.type is not None
        letters = bool(field.values) and all(isinstance(value, str) for value in field.values or ())
        form = "letter" if letters else "number" if field.type.bytes else "bytes"
        return form + ("?" if field.conditional else "")

    def message(self, message: Message) -> str:
        """Return the function that reads the header of messages of one kind into columns."""
        fields = [e for e in message.exposed if isinstance(e, Field) and not e.part]
        outs = "".join(f", {name}: Any" for field in fields for name in _columns(field))
        head = (
            f"@kernel\ndef read_{snake_case(message.class_name)}"
            f"(data: Any, places: Any, streams: Any{self.parameters}{outs}) -> None:"
        )
        loop = ["    for row in range(len(places)):", "        at = places[row]"]
        if any("in_stream" in condition(field) for field in message.elements if isinstance(field, Field)):
            loop.append("        in_stream = streams[row]")
        return "\n".join([head, *loop, *indented(indented(self._steps(message)))])

    def _steps(self, message: Message) -> Lines:
        for step in runs(message.elements):
            if isinstance(step, STOP):
                return
            if isinstance(step, Run):
                yield from self._run(step, message)
            elif isinstance(step, Field) and not step.part:
                yield from self._bytes(step)

    def _run(self, run: Run, message: Message) -> Lines:
        if not run.condition:
            yield from self._fixed(run.fields, message)
            return
        yield f"if {run.condition}:"
        yield from indented(self._fixed(run.present(True), message))
        if run.present(False):
            yield "else:"
            yield from indented(self._fixed(run.present(False), message))

    def _fixed(self, fields: Sequence[Field], message: Message) -> Lines:
        offset = 0
        for field in fields:
            at = f"at + {offset}" if offset else "at"
            offset += 1 if isinstance(field.constant, bytes) else (field.type.bytes or 0) if field.type else 0
            if field.name in message.sizes:
                if any(isinstance(e, Field) and e.length == field.name for e in message.elements):
                    yield f"{field.name} = {number_at(field, at)}"
            elif field.constant is None:
                yield f"{field.name}[row] = {number_at(field, at)}"
                if field.conditional:
                    yield f"has_{field.name}[row] = True"
        yield f"at += {offset}"

    def _bytes(self, field: Field) -> Lines:
        if field.conditional:
            yield f"if {condition(field)}:"
            yield f"    has_{field.name}[row] = True"
            yield from indented(self._content(field))
        else:
            yield from self._content(field)

    def _content(self, field: Field) -> Lines:
        yield f"{field.name}_starts[row] = at"
        if field.length:
            yield f"{field.name}_lengths[row] = {field.length}"
            yield f"at += {field.length}"
        else:
            yield f"{field.name}_lengths[row] = find_nul(data, at, len(data)) - at"
            yield f"at += {field.name}_lengths[row] + 1"


def _columns(field: Field) -> list[str]:
    """Return the arrays that a field is read into."""
    assert field.type is not None
    names = [field.name] if field.type.bytes else [f"{field.name}_starts", f"{field.name}_lengths"]
    return names + ([f"has_{field.name}"] if field.conditional else [])
