"""The interface of all messages in Go, and the functions that parse, build and print any of them."""

from collections.abc import Iterable

from tools.generate.go.go_module import GoModule
from tools.generate.go.go_names import asked_flag, letter_literal
from tools.generate.typed_layouts import asked_option
from tools.language import Message

__all__ = ["GoMessages", "write_parse"]

_ABOUT_PARSE = (
    "ParseMessage parses a message. Truncated, trailing or unknown bytes, values that are not defined, and "
    "messages that are not sent under these options are errors, with the path of the field and the offset. "
    "Bytes and text of the message share the memory of the payload."
)


class GoMessages:
    """Writes what all messages have in common."""

    def __init__(self, module: GoModule) -> None:
        self.module, self.spec, self.write, self.union = module, module.spec, module.write, module.union

    def all(self) -> None:
        """Write the interface, its methods, and the functions that print and build a message."""
        self._interface()
        for number, message in enumerate(self.spec.messages):
            self._methods(number, message.class_name)
        self._print()
        self._build()

    def _interface(self) -> None:
        write = self.write
        write.about(f"{self.union} is any of the messages.")
        with write.definition(f"type {self.union} interface {{"):
            write.about("MessageName returns the name of the message.")
            write("MessageName() string", "", "json(j *wire.JSON, layout *Layout)", "index() int")

    def _methods(self, number: int, name: str) -> None:
        write = self.write
        write.about("MessageName returns the name of the message.")
        with write.definition(f"func (*{name}) MessageName() string {{"):
            write(f'return "{name}"')
        with write.definition(f"func (*{name}) index() int {{"):
            write(f"return {number}")

    def _print(self) -> None:
        write = self.write
        write.about("ToJSON returns a message as JSON, as the golden vectors have it.")
        with write.definition(f"func ToJSON(message {self.union}, layout *Layout) []byte {{"):
            write("j := wire.NewJSON(message.MessageName())", "message.json(j, layout)", "return j.Finish()")

    def _build(self) -> None:
        write = self.write
        layout = "" if self.spec.framed else ", layout *Layout"
        write.about("BuildMessage returns the bytes of a message.")
        with write.definition(f"func BuildMessage(message {self.union}{layout}) ([]byte, error) {{"):
            write("w := wire.NewWriter(message.MessageName())")
            with write.block("switch m := message.(type) {"):
                for message in self.spec.messages:
                    write.case(f"case *{message.class_name}")
                    if message.needs:
                        write(f"w.Since(layout.ProtoVersion, {message.needs})")
                    write(f"m.write(w{self.module.argument(message)})")
            write("return w.Finish()")

    def parse(self) -> None:
        """Write the function that parses a message by its first byte."""
        tags = (letter_literal(chr(message.tag[0])) for message in self.spec.messages)
        self.write.about(_ABOUT_PARSE)
        write_parse(self.module, "payload", "layout *Layout", "r.First()", tags)


def write_parse(module: GoModule, data: str, settings: str, selector: str, labels: Iterable[str]) -> None:
    """Write ParseMessage.

    Args:
        module: The file.
        data: Its parameter with the bytes.
        settings: The declarations of its other parameters.
        selector: What says which message it is.
        labels: Its value for each of the messages.
    """
    write = module.write
    with write.definition(f"func ParseMessage({data} []byte, {settings}) ({module.union}, error) {{"):
        write(f"r := wire.NewReader({data})", f"var message {module.union}")
        with write.block(f"switch {selector} {{"):
            for label, message in zip(labels, module.spec.messages, strict=True):
                write.case(f"case {label}")
                _parse_one(module, message)
            write.case("default")
            write("return nil, r.UnknownTag()")
        with write.block("if err := r.End(); err != nil {"):
            write("return nil, err")
        write("return message, nil")


def _parse_one(module: GoModule, message: Message) -> None:
    """Write the statements that parse one message, once its first bytes are known."""
    write, name = module.write, message.class_name
    write(f'r.Begin("{name}")')
    if message.needs:
        write(f"r.Since(layout.ProtoVersion, {message.needs})")
    if option := asked_option(module.spec, message):
        write(f"r.Asked(layout.{asked_flag(option)})")
    write(f"m := new({name})", f"m.read(r{module.argument(message)})", "message = m")
