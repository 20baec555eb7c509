"""Emits a specification as a TypeScript module: types, and functions that read, write and print them."""

from collections.abc import Sequence

from tools.generate.reserved import distinct, identifier
from tools.generate.text import COMMAND, GENERATED
from tools.generate.typed_layouts import (
    Alias,
    Attribute,
    Branch,
    Number,
    Record,
    Union,
    asked_option,
    pascal,
)
from tools.generate.typescript.typescript_connection import TypeScriptConnection
from tools.generate.typescript.typescript_context import WIDTH, TypeScriptContext
from tools.generate.typescript.typescript_json import TypeScriptJson
from tools.generate.typescript.typescript_names import bigint_suffix, camel, letter_literal, requested, type_of
from tools.generate.typescript.typescript_reading import TypeScriptReading
from tools.generate.typescript.typescript_settings import TypeScriptSettings
from tools.generate.typescript.typescript_writing import TypeScriptWriting
from tools.generate.words import availability
from tools.language import Field, Message, Repeat, Spec
from tools.language.elements import Structure

__all__ = ["emit_typescript"]


def emit_typescript(spec: Spec, union: str) -> str:
    """Return the module; ``union`` is the name of the type of all messages."""
    context = TypeScriptContext(spec, union)
    _TypeScriptModule(context).all()
    return str(context.write).rstrip("\n") + "\n"


class _TypeScriptModule:
    """Writes the module: each type with its functions, and then what is for all messages."""

    def __init__(self, context: TypeScriptContext) -> None:
        self.context, self.spec, self.write = context, context.spec, context.write
        self.reading = TypeScriptReading(context)
        self.writing = TypeScriptWriting(context)
        self.json = TypeScriptJson(context)

    def all(self) -> None:
        """Write everything."""
        self._head()
        TypeScriptSettings(self.context).all()
        for each in self.context.typed.types:
            match each:
                case Record():
                    self._record(each)
                case Union():
                    self._union(each)
                case Alias():
                    self._alias(each)
        self._messages()
        self.json.messages()
        self._build()
        if self.spec.framed:
            TypeScriptConnection(self.context).all()
        else:
            self._parse()

    def _head(self) -> None:
        write, spec = self.write, self.spec
        write(f"// {GENERATED}{spec.file} by: {COMMAND}. Do not edit.", "")
        what = f"{spec.title}: what they hold, and how they are read and built."
        self.context.about(what, f"Source: {spec.described_in}.", "@module")
        write("")
        write('import * as wire from "./wire.js";', "")

    # The types.

    def _record(self, record: Record) -> None:
        self._interface(record)
        for each in record.attributes:
            if isinstance(each.element, Field) and (each.element.values or each.element.bits):
                self._meanings(record, each, each.element)
        self.reading.record(record)
        self.writing.record(record)
        self.json.record(record)
        self._items(record.structure)

    def _interface(self, record: Record) -> None:
        self.context.about(record.about or record.name, *availability(self.spec, record.message))
        with self.context.declaration(f"export interface {record.name} {{"):
            if record.message:
                self.write(f'message: "{record.name}";')
            for each in record.attributes:
                self.context.about(each.about or each.name)
                self.write(f"{camel(each.name)}: {type_of(each.kind)}{' | null' if each.optional else ''};")

    def _meanings(self, record: Record, attribute: Attribute, field: Field) -> None:
        """Write the constants for the values or the bits of a field."""
        meanings = dict(field.values or field.bits or {})
        names = distinct(identifier(meaning).upper() for meaning in meanings.values())
        suffix = bigint_suffix(attribute.kind.size if isinstance(attribute.kind, Number) else None)
        what = "values" if field.values else "bits"
        self.context.about(f"The {what} of {camel(attribute.name)} of {record.name}.")
        head = f"export const {record.name}{pascal(attribute.name)} = {{"
        with self.context.declaration(head, "} as const;"):
            for name, (value, meaning) in zip(names, meanings.items(), strict=True):
                self.context.about(f"{meaning[:1].upper()}{meaning[1:]}.")
                self.write(f'{name}: "{value}",' if isinstance(value, str) else f"{name}: {value}{suffix},")

    def _alias(self, alias: Alias) -> None:
        self.context.about(alias.about or alias.name)
        self.write(f"export type {alias.name} = {type_of(alias.kind)};", "")
        self._value(alias.part)
        self.json.alias(alias)

    def _union(self, union: Union) -> None:
        self.context.about(f"{union.about or union.name} The tag is its kind.")
        with self.context.indented(f"export type {union.name} ="):
            for each in union.branches:
                self.context.about(each.alternative.description or each.alternative.name)
                self.write(f"| {_branch(each)}{';' if each is union.branches[-1] else ''}")
        self.write("")
        self.reading.union(union)
        self.writing.union(union)
        self.json.union(union)
        for each in union.branches:
            if isinstance(each.alternative.then, Structure):
                self._value(each.alternative.then)

    def _value(self, structure: Structure) -> None:
        """Write the functions of a structure that is the value of its single element, and of those in it."""
        if id(structure) in self.context.typed.nested:
            self.reading.value(structure)
            self.writing.value(structure)
        self._items(structure)

    def _items(self, structure: Structure) -> None:
        for element in structure.elements:
            if isinstance(element, Repeat) and element.item.single is not None:  # records write their own
                self._value(element.item)

    # The messages.

    def _messages(self) -> None:
        names = [message.class_name for message in self.spec.messages]
        self.context.about("Any of the messages.")
        self.write(*_type_of_all(self.context.union, names), "")
        self.context.about("The names of the messages, in the order of the specification.")
        self.context.listed("export const NAMES: readonly string[] = [", names, "];")
        if self.spec.states and (self.spec.versions or self.spec.framed):
            indexes = "Object.fromEntries(NAMES.map((name, index) => [name, index]))"
            name = f'{self.context.union}["message"]'
            line = f"const INDEXES = {indexes} as Record<{name}, number>;"
            broken = [f"const INDEXES = {indexes} as Record<", f"  {name},", "  number", ">;"]
            self.write(*([line] if len(line) <= WIDTH else broken), "")

    def _build(self) -> None:
        write, union = self.write, self.context.union
        layout = "" if self.spec.framed else ", layout: Layout"
        self.context.about("Build a message.")
        with self.context.declaration(f"export function build(message: {union}{layout}): Uint8Array {{"):
            if not self.spec.framed:
                write("void layout;")
            write("const w = new wire.Writer(message.message);")
            with write.block("switch (message.message) {"):
                for message in self.spec.messages:
                    self._build_one(message)
                write("default:", '  w.possible("", false);')
            write("return w.finish();")

    def _build_one(self, message: Message) -> None:
        with self.context.indented(f'case "{message.class_name}":'):
            if message.needs:
                self.write(f'w.possible("", layout.protoVersion >= {message.needs});')
            self.write(f"write{message.class_name}(w, message{self.context.passed(message)});", "break;")

    def _parse(self) -> None:
        write, union = self.write, self.context.union
        self.context.about(
            "Parse a message. Truncated, trailing or unknown bytes, values that are not defined, "
            "and messages that are not sent under these options throw a WireError with the path of the field "
            "and the offset. Bytes of the message share the memory of the payload."
        )
        head = f"export function parse(payload: Uint8Array, layout: Layout, trace?: wire.Trace): {union} {{"
        with self.context.declaration(head):
            write("void layout;", "const r = new wire.Reader(payload, trace);", f"let message: {union};")
            with write.block("switch (r.first()) {"):
                for message in self.spec.messages:
                    self._parse_one(message)
                write("default:", "  return r.unknownTag();")
            write("r.end();", "return message;")

    def _parse_one(self, message: Message) -> None:
        name, write = message.class_name, self.write
        with self.context.indented(f"case {message.tag[0]}: // {message.tag_text}"):
            write(f'r.begin("{name}");')
            if message.needs:
                write(f'if (layout.protoVersion < {message.needs}) r.fail("version", "", 0);')
            if option := asked_option(self.spec, message):
                write(f'if (!layout.{requested(option)}) r.fail("option", "", 0);')
            write(f"message = read{name}(r{self.context.passed(message)});", "break;")


def _type_of_all(union: str, names: Sequence[str]) -> list[str]:
    """Return the type of all messages: in one line, or two, if that has room for it."""
    head, members = f"export type {union} =", " | ".join(names)
    if len(f"{head} {members};") <= WIDTH:
        return [f"{head} {members};"]
    if len(f"  {members};") <= WIDTH:
        return [head, f"  {members};"]
    return [head, *(f"  | {name}" for name in names[:-1]), f"  | {names[-1]};"]


def _branch(branch: Branch) -> str:
    """Return the type of the object of a branch."""
    value = f"; value: {type_of(branch.kind)}" if branch.kind else ""
    return f"{{ kind: {letter_literal(branch.alternative)}{value} }}"
