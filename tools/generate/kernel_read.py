"""The reads of the columnar kernels: the header fields of all messages of one tag, which were walked before."""

from tools.generate.kernel_walk import Names, Steps, number_at, uses
from tools.generate.writer import Writer
from tools.language import Field, Message, Repeat, Spec

__all__ = ["Reader", "header_fields", "oid_lists"]


def header_fields(message: Message) -> list[Field]:
    """Return the fields of a message that are columns of the messages batch."""
    return [element for element in message.exposed if isinstance(element, Field) and not element.part]


def oid_lists(message: Message) -> list[Repeat]:
    """Return the repeats in which a message that changes rows lists its tables."""
    lists = (e for e in message.exposed if isinstance(e, Repeat) and e.name == "relation_oids")
    return [*lists] if message.group == "change" else []


class Reader:
    """Emits the reads."""

    def __init__(self, spec: Spec) -> None:
        self.names = Names(spec)

    def header(self, message: Message) -> str:
        """Return the function that reads the header of messages of one tag into columns."""
        fields = header_fields(message)
        body = Writer()
        last = message.elements.index(fields[-1])
        _Read(self.names, message, body).all(message.elements[: last + 1])
        outs = [f"{name}: Any" for field in fields for name in _columns(field)]
        return self._function("read", message, outs, body)

    def oids(self, message: Message) -> str:
        """Return the function that reads the OIDs of a message's repeats, each with its row; it counts them."""
        body = Writer()
        _Oids(self.names, message, body).all(message.elements)
        return self._function("list", message, ["rows: Any", "oids: Any"], body)

    def _function(self, verb: str, message: Message, outs: list[str], body: Writer) -> str:
        write, lists = Writer(), verb == "list"
        given = ["data: Any", "starts: Any", "ends: Any", *self.names.batch_signature, *outs]
        head = f"def {verb}_{self.names.of(message.class_name)}({', '.join(given)}) -> {'int' if lists else 'None'}:"
        with write.block(head):
            if lists:
                write("total = 0")
            with write.block("for row in range(len(starts)):"):
                write("at, end = starts[row], ends[row]" if uses(str(body), "end") else "at = starts[row]")
                write(*self.names.row_values(str(body)), str(body))
            if lists:
                write("return total")
        return f"@kernel\n{write}"


class _Read(Steps):
    """The steps over a message that was walked before, which read its header fields."""

    checked = False

    def number(self, field: Field, offset: int) -> None:
        """Write what reads a fixed field."""
        if self.depth == 1 and field.constant is None:
            value = number_at(field, offset)
            if field.signed and field.size in (1, 2, 4):  # a column may be wider than its field
                sign = 1 << 8 * field.size - 1
                value = f"({value} ^ {sign:#x}) - {sign:#x}"
            self.write(f"_{field.name}[row] = {value}")
            self._present(field)

    def field(self, field: Field) -> None:
        """Write what notes where bytes begin, and how many they are."""
        if field.part or self.depth > 1:
            super().field(field)
            return
        self._present(field)
        self.write(f"_{field.name}_START[row] = at")
        super().field(field)
        self.write(f"_{field.name}_SIZE[row] = at - _{field.name}_START[row]{' - 1' if field.is_text else ''}")

    def _present(self, field: Field) -> None:
        if field.conditional:
            self.write(f"_{field.name}_SENT[row] = True")


class _Oids(Steps):
    """The steps over a message that was walked before, which gather the OIDs of its repeats."""

    checked = False

    def __init__(self, names: Names, message: Message, write: Writer) -> None:
        super().__init__(names, message, write)
        self.oids = [repeat.item.principal for repeat in oid_lists(message)]

    def repeat(self, repeat: Repeat) -> None:
        """Write the steps over items here, also over those that have a walk of their own."""
        with self.write.block(f"for _ in range({self.local(repeat.count)}):"):
            self.inner(repeat.item)

    def number(self, field: Field, offset: int) -> None:
        """Write what keeps an OID."""
        if field in self.oids and self.depth > 1:
            self.write("rows[total] = row", f"oids[total] = {number_at(field, offset)}", "total += 1")


def _columns(field: Field) -> list[str]:
    """Return the arrays that a field is read into."""
    names = [f"_{field.name}"] if field.size else [f"_{field.name}_START", f"_{field.name}_SIZE"]
    return names + ([f"_{field.name}_SENT"] if field.conditional else [])
