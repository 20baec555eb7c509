"""The functions of the TypeScript module that return messages as JSON."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tools.generate.typed_layouts import (
    Alias,
    Attribute,
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
from tools.generate.typescript.typescript_context import TypeScriptContext, condition
from tools.generate.typescript.typescript_names import camel, letter_literal
from tools.language import Choice

__all__ = ["TypeScriptJson"]

_PRINTED: Final = {"Lsn": "wire.lsnText({})", "Timestamp": "wire.timestampText({})", "Float": "wire.jsonFloat({})"}
"""How numbers with a meaning of their own are printed, by their Python type."""


class TypeScriptJson:
    """Writes the functions that return JSON; ``m`` is the value in them."""

    def __init__(self, context: TypeScriptContext) -> None:
        self.context, self.typed, self.write = context, context.typed, context.write

    def messages(self) -> None:
        """Write the function for all messages."""
        write, union = self.write, self.context.union
        self.context.about("Return a message as JSON, as the golden vectors have it; numbers of 64 bits are bigint.")
        with self.context.declaration(f"export function toJson(message: {union}, layout: Layout): wire.Json {{"):
            write("return { message: message.message, ...(jsonFields(message, layout) as object) };")
        head = f"function jsonFields(message: {union}, layout: Layout): wire.Json {{"
        with self.context.declaration(head), write.block("switch (message.message) {"):
            for each in self.context.spec.messages:
                write(f'case "{each.class_name}":', f"  return json{each.class_name}(message, layout);")

    def record(self, record: Record) -> None:
        """Write the function for a record; an extended one is its principal value under some parameters."""
        extended = record.structure.extended
        has_inner = any(isinstance(each.kind, Named | ListOf) for each in record.attributes)
        with self._function(record.name, "m" if record.attributes else "_m"):
            if not has_inner and not extended:
                self.write("void layout;")
            if extended:
                self._principal(record)
            start, end = (f"return {{ {record.name}: {{", "} };") if extended else ("return {", "};")
            with self.write.block(start, end):
                for each in record.attributes:
                    self._attribute(each)

    def alias(self, alias: Alias) -> None:
        """Write the function for a part that is the value of its single element."""
        with self._function(alias.name):
            self.write(f"return {_json(alias.kind, 'm')};")

    def union(self, union: Union) -> None:
        """Write the function for a union."""
        with self._function(union.name):
            self.write("void layout;")
            with self.write.block("switch (m.kind) {"):
                for each in union.branches:
                    self.write(f"case {letter_literal(each.alternative)}:", f"  return {self._branch(union, each)};")

    @contextmanager
    def _function(self, name: str, argument: str = "m") -> Iterator[None]:
        with self.context.declaration(f"function json{name}({argument}: {name}, layout: Layout): wire.Json {{"):
            yield

    def _principal(self, record: Record) -> None:
        principal = next(each for each in record.attributes if each.element is record.structure.principal)
        value = _json(principal.kind, f"m.{camel(principal.name)}")
        self.write(f"if ({negated(condition(record.structure.extension))}) return {value};")

    def _attribute(self, attribute: Attribute) -> None:
        """Write the properties of an attribute: the kind of a choice, if that has one of its own, and the value."""
        element, value = attribute.element, f"m.{camel(attribute.name)}"
        if isinstance(element, Choice) and not element.valued:
            kind = f"{value}?.kind ?? null" if attribute.optional else f"{value}.kind"
            self.write(f"{element.kind_name}: {kind},")
        if self.typed.value_bytes(attribute):
            self.write(f"data: wire.jsonDigits({value}),")
            return
        kind_of_value = Maybe(attribute.kind) if attribute.optional else attribute.kind
        self.write(f"{attribute.name}: {_json(kind_of_value, value)},")

    def _branch(self, union: Union, branch: Branch) -> str:
        """Return the JSON of a branch."""
        alternative, valued = branch.alternative, union.choice.valued
        if branch.kind is None:
            return f"{{ {alternative.name}: true }}" if valued and alternative.python != "None" else "null"
        if not valued:
            return self._content(union, branch, _json(branch.kind, "m.value"))
        if alternative.python == "bytes":
            return f'wire.jsonTextOrHex("{alternative.name}", m.value)'
        if alternative.content is not None:
            return f"{{ {alternative.name}: {_json(branch.kind, 'm.value')} }}"
        return f'wire.jsonHex("{alternative.name}", m.value)'

    def _content(self, union: Union, branch: Branch, value: str) -> str:
        """Return the JSON of a content, under the name of its class unless that is known."""
        name = self.typed.json_name(union, branch)
        if not name:
            return value
        term = self.typed.named_itself(self.typed.then(branch))
        named = f"{{ {name}: {value} }}"
        return f"{condition(term)} ? {value} : {named}" if term else named


def _json(kind: Kind, value: str) -> str:
    """Return the JSON of a value."""
    match kind:
        case Number(_, _, python):
            text = _PRINTED.get(python, "{}").format(value)
        case Letter():
            text = value
        case Text():
            text = f"wire.jsonText({value})"
        case Data() | Block():
            text = f'wire.jsonHex("hex", {value})'
        case Maybe(inside):
            text = f"{value} === null ? null : {_json(inside, value)}"
        case ListOf(item):
            each = _json(item, "item")
            text = f"{value}.map((item) => {f'({each})' if isinstance(item, Maybe) else each})"
        case Named(name):
            text = f"json{name}({value}, layout)"
    return text
