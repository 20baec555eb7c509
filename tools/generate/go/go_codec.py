"""Emits a specification as a Go package: structs, and functions that read, write and print them."""

from collections.abc import Iterator

from tools.generate.go.go_connection import GoConnection
from tools.generate.go.go_json import GoPrinting
from tools.generate.go.go_messages import GoMessages
from tools.generate.go.go_module import GoModule, kind_type, shared_kind
from tools.generate.go.go_names import exported, letter_literal, type_name
from tools.generate.go.go_reading import GoReading
from tools.generate.go.go_settings import GoSettings
from tools.generate.go.go_writing import GoWriting
from tools.generate.reserved import distinct, identifier
from tools.generate.text import COMMAND, GENERATED
from tools.generate.typed_layouts import Alias, Attribute, Record, Union
from tools.generate.words import availability
from tools.language import Field, Repeat, Spec
from tools.language.elements import Structure

__all__ = ["emit_go"]


def emit_go(spec: Spec, union: str, package: str, module: str) -> str:
    """Return the file.

    Args:
        spec: The specification.
        union: The name of the interface of all messages.
        package: The name of the package.
        module: The path of the module that it is in.
    """
    file = GoModule(spec, union)
    _head(file, package, module)
    GoSettings(file).all()
    _Types(file).all()
    messages = GoMessages(file)
    messages.all()
    if spec.framed:
        GoConnection(file).all()
    else:
        messages.parse()
    return str(file.write).rstrip("\n") + "\n"


def _head(file: GoModule, package: str, module: str) -> None:
    """Write the mark of generated files, what the package is, and the import."""
    write, spec = file.write, file.spec
    title = spec.title[:1].lower() + spec.title[1:]
    write(f"// {GENERATED}{spec.file} by: {COMMAND}. Do not edit.", "")
    write.about(
        f"Package {package} has the {title}: what they hold, and how they are read and built.",
        f"Source: {spec.described_in}.",
    )
    write(f"package {package}", "", f'import "{module}/wire"', "")


class _Types:
    """Writes the types, each with its constants and functions."""

    def __init__(self, module: GoModule) -> None:
        self.module, self.write, self.typed = module, module.write, module.typed
        self.printing = GoPrinting(module)

    def all(self) -> None:
        """Write all types."""
        for each in self.typed.types:
            match each:
                case Record():
                    self._record(each)
                case Union():
                    self._union(each)
                case Alias():
                    self._alias(each)

    def _record(self, record: Record) -> None:
        write, module, name, structure = self.write, self.module, record.name, record.structure
        write.about(_about(name, record.about), *availability(self.module.spec, record.message))
        write.struct(name, ((each.about or each.name, _declared(each)) for each in record.attributes))
        for each in record.attributes:
            self._meanings(name, each)
        with write.definition(f"func (m *{name}) read(r *wire.Reader{module.parameter(structure)}) {{"):
            GoReading(module, structure).elements()
        with write.definition(f"func (m *{name}) write(w *wire.Writer{module.parameter(structure)}) {{"):
            GoWriting(module, structure).elements()
        self.printing.record(record)
        self._functions(structure)

    def _meanings(self, record: str, attribute: Attribute) -> None:
        """Write the constants for the values or bits of a field."""
        field, member, kind = attribute.element, exported(attribute.name), type_name(attribute.kind)
        if not isinstance(field, Field):
            return
        what = "value" if field.values else "bit"
        meanings = field.values or field.bits or {}
        names = distinct(f"{record}{member}{exported(identifier(each))}" for each in meanings.values())
        for name, (value, meaning) in zip(names, meanings.items(), strict=True):
            literal = letter_literal(value) if isinstance(value, str) else value
            self.write.constant(f"{name} is a {what} of {record}.{member}: {meaning}.", f"{name} {kind}", literal)

    def _alias(self, alias: Alias) -> None:
        self.write.about(_about(alias.name, alias.about))
        self.write(f"type {alias.name} = {type_name(alias.kind)}", "")
        self._functions(alias.part)

    def _union(self, union: Union) -> None:
        write, module, name, choice = self.write, self.module, union.name, union.choice
        structure = self.typed.owner(choice)
        write.about(f"{_about(name, union.about)} Kind says which field has it.")
        write.struct(name, self._contents(union))
        for each in union.branches:
            constant, tag = f"{name}{each.name}", each.alternative
            letter = str(tag.key) if tag.numeric else letter_literal(tag.letter)
            about = _about(constant, each.alternative.description or each.name)
            write.constant(about, f"{constant} {kind_type(choice)}", letter)
        with write.definition(f"func (m *{name}) read(r *wire.Reader{module.parameter(choice)}) {{"):
            GoReading(module, structure).union(union)
        with write.definition(f"func (m *{name}) write(w *wire.Writer{module.parameter(choice)}) {{"):
            GoWriting(module, structure).union(union)
        self.printing.union(union)
        for alternative in choice.alternatives:
            if isinstance(alternative.then, Structure):
                self._functions(alternative.then)

    def _contents(self, union: Union) -> Iterator[tuple[str, str]]:
        """Yield the fields of a union: the tag, and one for all contents, or one for each branch with content."""
        yield "The tag.", f"Kind {kind_type(union.choice)}"
        shared = shared_kind(union)
        if shared is not None:
            yield "The content; of some kinds it is empty.", f"Value {type_name(shared)}"
            return
        for each in union.branches:
            if each.kind is not None:
                yield each.alternative.description or each.name, f"{exported(each.name)} {type_name(each.kind)}"

    def _functions(self, structure: Structure) -> None:
        """Write the functions of a structure that is the value of its single element, and of such items in it."""
        name = self.typed.nested.get(id(structure))
        if name is not None:
            write, module, kind = self.write, self.module, type_name(self.typed.inside(structure))
            parameter = module.parameter(structure)
            with write.definition(f"func read{name}(r *wire.Reader{parameter}) (value {kind}) {{"):
                GoReading(module, structure).elements()
                write("return value")
            with write.definition(f"func write{name}(value {kind}, w *wire.Writer{parameter}) {{"):
                GoWriting(module, structure).elements()
        for element in structure.elements:
            if isinstance(element, Repeat) and element.item.single is not None:  # records write their own
                self._functions(element.item)


def _about(name: str, about: str) -> str:
    """Return the comment of something: its description, or its name."""
    return f"{name}: {about or name}"


def _declared(attribute: Attribute) -> str:
    kind = type_name(attribute.kind)
    return f"{exported(attribute.name)} {f'wire.Optional[{kind}]' if attribute.optional else kind}"
