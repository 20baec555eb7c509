"""The reads of the columnar kernels: the header fields of all messages with one tag, which were validated before."""

from tools.generate.python.kernel_walk import Names, Steps, number_at, uses
from tools.generate.writer import Writer
from tools.language import Field, Message

__all__ = ["header_fields", "read_header"]


def header_fields(message: Message) -> list[Field]:
    """Return the fields of a message that are columns of the messages batch."""
    return [element for element in message.exposed if isinstance(element, Field) and not element.part]


def read_header(names: Names, message: Message) -> str:
    """Return the function that reads the headers of messages with one tag into columns."""
    fields = header_fields(message)
    steps, write = Writer(), Writer()
    _Read(names, message, steps).all(message.elements[: message.elements.index(fields[-1]) + 1])
    body = str(steps)
    outs = [f"{name}: Any" for field in fields for name in _columns(field)]
    given = ["data: Any", "starts: Any", "ends: Any", *names.batch_signature, *outs]
    with (
        write.block(f"def read_{names.of(message.class_name)}({', '.join(given)}) -> None:"),
        write.block("for row in range(len(starts)):"),
    ):
        write("at, end = starts[row], ends[row]" if uses(body, "end") else "at = starts[row]")
        write(*names.row_values(body), body)
    return f"@kernel\n{write}"


class _Read(Steps):
    """The walk over a validated message, which reads its header fields."""

    checked = False

    def number(self, field: Field, offset: int) -> None:
        """Write the code that reads a fixed field."""
        if self.depth == 1 and field.is_block:
            self.write(f"_{field.name}_START[row] = at{f' + {offset}' if offset else ''}")
            self.write(f"_{field.name}_SIZE[row] = {field.size}")
            self._present(field)
        elif self.depth == 1 and field.constant is None:
            value = number_at(field, offset)
            if field.signed and field.size in (1, 2, 4):  # a column may be wider than its field
                sign = 1 << 8 * field.size - 1
                value = f"({value} ^ {sign:#x}) - {sign:#x}"
            self.write(f"_{field.name}[row] = {value}")
            self._present(field)

    def field(self, field: Field) -> None:
        """Write the code that stores offset and length of bytes."""
        if field.part or self.depth > 1:
            super().field(field)
            return
        self._present(field)
        self.write(f"_{field.name}_START[row] = at")
        super().field(field)
        self.write(f"_{field.name}_SIZE[row] = at - _{field.name}_START[row]{' - 1' if field.is_text else ''}")

    def _present(self, field: Field) -> None:
        whole = next(each for each in self.structure.elements if each.name == field.name)
        if whole.conditional:
            self.write(f"_{field.name}_SENT[row] = True")


def _columns(field: Field) -> list[str]:
    """Return the output arrays of a field."""
    names = [f"_{field.name}"] if field.width else [f"_{field.name}_START", f"_{field.name}_SIZE"]
    return names + ([f"_{field.name}_SENT"] if field.conditional else [])
