"""Emits a specification as a Rust module: structs and enums, with functions that read, write and print them."""

from tools.generate.reserved import distinct, identifier
from tools.generate.rust.rust_code import WIDTH, RustCode
from tools.generate.rust.rust_connection import RustConnection
from tools.generate.rust.rust_json import RustJson
from tools.generate.rust.rust_names import ELIDED, byte_literal, requested, rust_name
from tools.generate.rust.rust_reading import RustReading
from tools.generate.rust.rust_settings import RustSettings
from tools.generate.rust.rust_writing import RustWriting
from tools.generate.text import COMMAND, GENERATED, snake_case
from tools.generate.typed_layouts import Alias, Attribute, Letter, Record, Union, asked_option
from tools.generate.words import availability
from tools.language import Field, Message, Repeat, Spec
from tools.language.elements import Structure

__all__ = ["emit_rust"]


def emit_rust(spec: Spec, union: str) -> str:
    """Return the module; ``union`` is the name of the enum of all messages."""
    code = RustCode(spec, union)
    _RustModule(code).all()
    return str(code.write).rstrip("\n") + "\n"


class _RustModule:
    """Writes a module: the types, with their functions, and the messages."""

    def __init__(self, code: RustCode) -> None:
        self.code, self.spec, self.typed, self.types, self.write = code, code.spec, code.typed, code.types, code.write
        self.reading, self.writing, self.json = RustReading(code), RustWriting(code), RustJson(code)

    def all(self) -> None:
        """Write everything."""
        self._head()
        RustSettings(self.code).all()
        for each in self.typed.types:
            match each:
                case Record():
                    self._record(each)
                case Union():
                    self._union(each)
                case Alias():
                    self._alias(each)
        self._messages()
        self._build()
        if self.spec.framed:
            RustConnection(self.code, self.reading).all()
        else:
            self._parse()

    def _head(self) -> None:
        self.write(f"// {GENERATED}{self.spec.file} by: {COMMAND}. Do not edit.", "")
        self.write(f"//! {self.spec.title}: what they hold, and how they are read and built.", "//!")
        self.write(f"//! Source: {self.spec.described_in}.", "")
        self.write("use alloc::{string::String, vec::Vec};", "", "use crate::runtime as rt;", "")

    # Records.

    def _record(self, record: Record) -> None:
        self._struct(record)
        for each in record.attributes:
            self._meanings(record, each)
        with self.code.implementation(record.name):
            self.reading.record(record)
            self.write("")
            self.writing.record(record)
        self.write("")
        self.json.record(record)
        self._nested(record.structure)

    def _struct(self, record: Record) -> None:
        name = self.types.named(record.name)
        self.code.derived(record.about or record.name, *availability(self.spec, record.message))
        if not record.attributes:
            self.write(f"pub struct {name};", "")
            return
        with self.write.block(f"pub struct {name} {{"):
            for each in record.attributes:
                kind = self.types.of(each.kind)
                self.code.about(each.about or each.name)
                self.write(f"pub {rust_name(each.name)}: {f'Option<{kind}>' if each.optional else kind},")
        self.write("")

    def _meanings(self, record: Record, attribute: Attribute) -> None:
        """Write the constants for the values or the bits of a field, if it has any."""
        field = attribute.element
        if not isinstance(field, Field):
            return
        meanings = field.values or field.bits
        if not meanings:
            return
        is_letter, kind = isinstance(attribute.kind, Letter), self.types.of(attribute.kind)
        names = distinct(identifier(meaning).upper() for meaning in meanings.values())
        self.code.about(f"The {'values' if field.values else 'bits'} of `{record.name}::{attribute.name}`.")
        with self.write.block(f"pub mod {rust_name(f'{snake_case(record.name)}_{attribute.name}')} {{"):
            if is_letter:
                self.write("use crate::runtime as rt;", "")
            for name, (value, meaning) in zip(names, meanings.items(), strict=True):
                self.code.about(f"{meaning[:1].upper()}{meaning[1:]}.")
                text = f"rt::Letter(b'{value}')" if is_letter else value
                self.write(f"pub const {name}: {kind} = {text};")
        self.write("")

    # Unions and aliases.

    def _union(self, union: Union) -> None:
        self._enum(union)
        with self.code.implementation(union.name):
            self.reading.union(union)
            self.write("")
            self.writing.union(union)
            self.write("")
            self._kind(union)
        self.write("")
        self.json.union(union)
        for each in union.choice.alternatives:
            if isinstance(each.then, Structure):
                self._nested(each.then)

    def _enum(self, union: Union) -> None:
        self.code.derived(union.about or union.name)
        with self.write.block(f"pub enum {self.types.named(union.name)} {{"):
            for each in union.branches:
                self.code.about(each.alternative.description or each.alternative.name)
                self.write(f"{each.name}({self.types.of(each.kind)})," if each.kind else f"{each.name},")
        self.write("")

    def _kind(self, union: Union) -> None:
        self.code.about("Return the tag.")
        numeric = union.choice.numeric
        kind = "u8" if numeric else "rt::Letter"
        with self.write.block(f"pub fn kind(&self) -> {kind} {{"), self.write.block("match self {"):
            for each in union.branches:
                pattern = f"Self::{each.name}(_)" if each.kind else f"Self::{each.name}"
                tag = each.alternative.tag[0]
                self.write(f"{pattern} => {tag if numeric else f'rt::Letter({byte_literal(tag)})'},")

    def _alias(self, alias: Alias) -> None:
        self.code.about(alias.about or alias.name)
        self.write(f"pub type {self.types.named(alias.name)} = {self.types.of(alias.kind)};", "")
        self._nested(alias.part)

    def _nested(self, structure: Structure) -> None:
        """Write the functions of a structure that is no record, and of the items of repeats in it."""
        if self.code.nested_name(structure):
            self.reading.nested(structure)
            self.write("")
            self.writing.nested(structure)
            self.write("")
        for element in structure.elements:
            if isinstance(element, Repeat) and element.item.single is not None:  # records write their own
                self._nested(element.item)

    # The messages.

    def _messages(self) -> None:
        """Write the enum of all messages."""
        self.code.derived("Any of the messages.")
        with self.write.block(f"pub enum {self.types.named(self.code.union)} {{"):
            for message in self.spec.messages:
                self.code.about(message.description or message.name)
                self.write(f"{message.class_name}({self.types.named(message.class_name)}),")
        self.write("")
        with self.write.block(f"impl {self.types.named(self.code.union, ELIDED)} {{"):
            self._names()
            self._to_json()
        self.write("")

    def _names(self) -> None:
        names = [message.class_name for message in self.spec.messages]
        self.code.about("The names of the messages, in the order of the specification.")
        with self.write.block(f"pub const NAMES: [&'static str; {len(names)}] = [", "];"):
            self.write(*(f'"{name}",' for name in names))
        self.write("")
        self.code.about("Return the index of its name in `NAMES`.")
        with self.write.block("pub fn index(&self) -> usize {"), self.write.block("match self {"):
            self.write(*(f"Self::{name}(_) => {number}," for number, name in enumerate(names)))
        self.write("")
        self.code.about("Return its name.")
        with self.write.block("pub fn name(&self) -> &'static str {"):
            self.write("Self::NAMES[self.index()]")
        self.write("")

    def _to_json(self) -> None:
        self.code.about("Return it as JSON, as the golden vectors have it.")
        with self.write.block("pub fn to_json(&self, layout: &Layout) -> String {"):
            self.write("let mut json = rt::Json::new(layout);")
            with self.write.block("match self {"):
                for message in self.spec.messages:
                    self.write(f"Self::{message.class_name}(message) => json.message(self.name(), message),")
            self.write("json.finish()")

    def _build(self) -> None:
        parameters = [f"message: &{self.types.named(self.code.union, ELIDED)}"]
        if not self.spec.framed:
            parameters.append("layout: &Layout")
        self.code.about("Build a message.")
        with self.code.function("pub fn build", parameters, "Vec<u8>"):
            self.write("let mut w = rt::Writer::new();")
            if not self.spec.framed and not any(map(self._builds_by_layout, self.spec.messages)):
                self.write("let _ = layout;")
            with self.write.block("match message {"):
                for message in self.spec.messages:
                    self._build_message(message)
            self.write("Ok(w.finish())")
        self.write("")

    def _build_message(self, message: Message) -> None:
        name = message.class_name
        pattern = f"{self.code.union}::{name}(message) =>"
        call = f'rt::inside("{name}", message.write(&mut w{self.code.layout(message)}))?'
        arm = f"{pattern} {call},"
        if message.needs:
            with self.write.block(f"{pattern} {{"):
                self.write(f'rt::since("{name}", layout.proto_version, {message.needs})?;', f"{call};")
        elif len(arm) + 4 * self.write.depth <= WIDTH:
            self.write(arm)
        else:
            with self.write.block(f"{pattern} {{"):
                self.write(call)

    def _parse(self) -> None:
        self.code.about(
            "Parse a message. Truncated, trailing or unknown bytes, values that are not defined, and "
            "messages that are not sent under these options are errors, with the path of the field and the offset."
        )
        with self.reading.parse("payload", "layout: &Layout"):
            self.write("let mut r = rt::Reader::new(payload);")
            if not any(map(self._parses_by_layout, self.spec.messages)):
                self.write("let _ = layout;")
            with self.write.block("let message = match r.first()? {", "};"):
                for message in self.spec.messages:
                    with self.write.block(f"{byte_literal(message.tag[0])} => {{"):
                        self._parse_message(message)
                self.write("_ => return Err(rt::Error::unknown_tag()),")

    def _parse_message(self, message: Message) -> None:
        """Write the checks that a message may come, and the code that reads it."""
        name = message.class_name
        if message.needs:
            self.write(f'rt::since("{name}", layout.proto_version, {message.needs})?;')
        if option := asked_option(self.spec, message):
            self.write(f'rt::asked("{name}", layout.{requested(option)})?;')
        self.reading.message(message)

    def _builds_by_layout(self, message: Message) -> bool:
        return bool(message.needs) or self.typed.needs(message)

    def _parses_by_layout(self, message: Message) -> bool:
        return self._builds_by_layout(message) or asked_option(self.spec, message) is not None
