"""How records and unions are printed as JSON in Go: their methods ``json``."""

from collections.abc import Iterator
from contextlib import contextmanager

from tools.generate.go.go_module import GoModule
from tools.generate.go.go_names import condition, exported
from tools.generate.typed_layouts import (
    Alias,
    Block,
    Branch,
    Data,
    Kind,
    Letter,
    ListOf,
    Maybe,
    Named,
    Number,
    Record,
    Text,
    Union,
    negated,
)
from tools.language import Choice

__all__ = ["GoPrinting"]


class GoPrinting:
    """Writes how values are printed; in its methods a value is the expression of one."""

    def __init__(self, module: GoModule) -> None:
        self.module, self.write = module, module.write
        self._aliases = {each.name: each.kind for each in module.typed.types if isinstance(each, Alias)}

    def record(self, record: Record) -> None:
        """Write the method of a record."""
        write, structure = self.write, record.structure
        with write.definition(_method(record.name)):
            if structure.extended:
                self._principal(record)
                write(f'j.Open("{record.name}")')
            self._object(record)
            if structure.extended:
                write("j.End()")

    def _principal(self, record: Record) -> None:
        """Write the statement that prints an extended structure as its principal value, if that is all there is."""
        structure = record.structure
        principal = next(each for each in record.attributes if each.element is structure.principal)
        with self.write.block(f"if {negated(condition(structure.extension))} {{"):
            self._value(principal.kind, f"m.{exported(principal.name)}")
            self.write("return")

    def _object(self, record: Record) -> None:
        write = self.write
        write("j.Object()")
        for each in record.attributes:
            place = f"m.{exported(each.name)}"
            if isinstance(each.element, Choice) and not each.element.valued:
                write(f'j.Key("{each.element.kind_name}")')
                with self._present(place, each.optional) as value:
                    write(f"j.Uint(uint64({value}.Kind))" if each.element.numeric else f"j.Letter({value}.Kind)")
            if self.module.typed.value_bytes(each):
                write('j.Key("data")', f"j.Digits({place}{'[:]' * isinstance(each.kind, Block)})")
                continue
            write(f'j.Key("{each.name}")')
            with self._present(place, each.optional) as value:
                self._value(each.kind, value)
        write("j.End()")

    @contextmanager
    def _present(self, place: str, optional: bool = True) -> Iterator[str]:
        """Yield the expression of a value that may be absent, for the statements that print it if it is there."""
        if not optional:
            yield place
            return
        with self.write.branch(f"if {place}.Valid {{"):
            yield f"{place}.V"
        with self.write.block("} else {"):
            self.write("j.Null()")

    def _value(self, kind: Kind, value: str) -> None:
        """Write the statement that prints a value."""
        write = self.write
        match kind:
            case Number(python="Lsn"):
                write(f"j.LSN({value})")
            case Number(python="Timestamp"):
                write(f"j.Timestamp({value})")
            case Number(python="Float"):
                write(f"j.Float({value})")
            case Number(signed=signed):
                write(f"j.Int(int64({value}))" if signed else f"j.Uint(uint64({value}))")
            case Letter():
                write(f"j.Letter({value})")
            case Text():
                write(f"j.Text({value})")
            case Data():
                write(f'j.Hex("hex", {value})')
            case Block():
                write(f'j.Hex("hex", {value}[:])')
            case Maybe(inside):
                with self._present(value) as found:
                    self._value(inside, found)
            case ListOf(item):
                index = "i" * (1 + value.count("[i"))  # of a list in a list another one
                write("j.Array()")
                with write.block(f"for {index} := range {value} {{"):
                    self._value(item, f"{value}[{index}]")
                write("j.End()")
            case Named(name) if name in self._aliases:
                self._value(self._aliases[name], value)
            case Named():
                write(f"{value}.json(j, layout)")

    def union(self, union: Union) -> None:
        """Write the method of a union."""
        with self.write.definition(_method(union.name)), self.write.block("switch m.Kind {"):
            for each in union.branches:
                self.write.case(f"case {union.name}{each.name}")
                self._branch(union, each, self.module.content(union, each))
            self.write.case("default")
            self.write("j.Null()")

    def _branch(self, union: Union, branch: Branch, value: str) -> None:
        write, alternative, valued = self.write, branch.alternative, union.choice.valued
        if branch.kind is None:
            write(f'j.Marker("{alternative.name}")' if valued and alternative.python != "None" else "j.Null()")
        elif not valued:
            self._content(union, branch, branch.kind, value)
        elif alternative.python == "bytes":
            write(f'j.TextOrHex("{alternative.name}", {value})')
        elif alternative.content is not None:
            write(f'j.Open("{alternative.name}")')
            self._value(branch.kind, value)
            write("j.End()")
        else:
            write(f'j.Hex("{alternative.name}", {value})')

    def _content(self, union: Union, branch: Branch, kind: Kind, value: str) -> None:
        """Write the statements that print the content of a branch, in its class unless it names that itself."""
        write, typed = self.write, self.module.typed
        name = typed.json_name(union, branch)
        if not name:
            self._value(kind, value)
            return
        term = typed.named_itself(typed.then(branch))
        write(f"isNamed := {negated(condition(term)) if term else 'true'}")
        with write.block("if isNamed {"):
            write(f'j.Open("{name}")')
        self._value(kind, value)
        with write.block("if isNamed {"):
            write("j.End()")


def _method(name: str) -> str:
    return f"func (m *{name}) json(j *wire.JSON, layout *Layout) {{"
