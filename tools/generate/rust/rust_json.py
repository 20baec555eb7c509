"""How values are printed as JSON in Rust: the implementations of ``rt::ToJson``."""

from collections.abc import Iterator
from contextlib import contextmanager

from tools.generate.rust.rust_code import RustCode
from tools.generate.rust.rust_names import ELIDED, condition, rust_name
from tools.generate.typed_layouts import Attribute, Block, Branch, Record, Union, negated
from tools.language import Choice

__all__ = ["RustJson"]


class RustJson:
    """Writes the functions that print records and unions."""

    def __init__(self, code: RustCode) -> None:
        self.code, self.typed, self.write = code, code.typed, code.write

    def record(self, record: Record) -> None:
        """Write the function that prints a record: an object, or the value that it stands for."""
        structure = record.structure
        with self._function(record.name):
            if structure.extended and structure.principal is not None:
                self.write("let layout = json.layout;")
                with self.write.block(f"if {negated(condition(structure.extension))} {{"):
                    self.write(f"return self.{rust_name(structure.principal.name)}.json(json);")
                with self.write.block(f'json.object("{record.name}", |json| {{', "});"):
                    self._fields(record)
            else:
                self._fields(record)

    def union(self, union: Union) -> None:
        """Write the function that prints a choice."""
        with self._function(union.name), self.write.block("match self {"):
            for each in union.branches:
                value = "(value)" if each.kind else ""
                self.write(f"Self::{each.name}{value} => {self._branch(union, each)},")

    @contextmanager
    def _function(self, name: str) -> Iterator[None]:
        """Write the frame of the function for a type; its body goes inside."""
        with (
            self.write.block(f"impl rt::ToJson<Layout> for {self.code.types.named(name, ELIDED)} {{"),
            self.write.block("fn json(&self, json: &mut rt::Json<'_, Layout>) {"),
        ):
            yield
        self.write("")

    def _fields(self, record: Record) -> None:
        self.write("json.open('{');")
        for each in record.attributes:
            if isinstance(each.element, Choice) and not each.element.valued:
                self.write(f'json.field("{each.element.kind_name}", &{_kind(each)});')
            if self.typed.value_bytes(each):
                self.write(f'json.digits("data", {_slice(each)});')
            else:
                self.write(f'json.field("{each.name}", &self.{rust_name(each.name)});')
        self.write("json.close('}');")

    def _branch(self, union: Union, branch: Branch) -> str:
        """Return the expression that prints a branch."""
        if branch.kind is None:
            is_marked = union.choice.valued and branch.alternative.python != "None"
            return f'json.marker("{branch.alternative.name}")' if is_marked else "json.null()"
        return self._marked(branch) if union.choice.valued else self._content(union, branch)

    def _marked(self, branch: Branch) -> str:
        """Return the expression that prints a value whose form tells its branch."""
        name = branch.alternative.name
        if branch.alternative.python == "bytes":
            return f'json.text_or_hex("{name}", value)'
        if branch.alternative.content is not None:
            return f'json.object("{name}", |json| value.json(json))'
        return f'json.hex("{name}", value)'

    def _content(self, union: Union, branch: Branch) -> str:
        """Return the expression that prints the content of a branch, whose tag a field of its own tells."""
        name = self.typed.json_name(union, branch)
        if not name:
            return "value.json(json)"
        named = f'json.object("{name}", |json| value.json(json))'
        term = self.typed.named_itself(self.typed.then(branch))
        if term is None:
            return named
        return f"if {condition(term, layout='json.layout')} {{ value.json(json) }} else {{ {named} }}"


def _slice(attribute: Attribute) -> str:
    """Return the expression of bytes as a slice."""
    own = f"self.{rust_name(attribute.name)}"
    return f"&{own}" if isinstance(attribute.kind, Block) else own


def _kind(attribute: Attribute) -> str:
    """Return the expression of the tag of a choice."""
    own = f"self.{rust_name(attribute.name)}"
    return f"{own}.as_ref().map(|value| value.kind())" if attribute.optional else f"{own}.kind()"
