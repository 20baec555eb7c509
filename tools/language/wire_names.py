"""The classes of the envelope and of a connection that programs use: a message may be renamed, and keeps its role.

A class is found by what does not change, its bytes: who sends it, its tag, and the constant after its length. If the
message has another name now, generated code has the class under both.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from tools.language.errors import SpecError
from tools.language.model import Message, Spec

__all__ = ["WIRE_NAME_RULES", "in_role", "renamed"]

Raise = Callable[[int, str, str], Exception]


class Role(NamedTuple):
    """By what a message is recognised."""

    sender: str | None
    """``server`` or ``client``; None for both."""
    tag: bytes
    code: bytes = b""
    """The constant after its length."""
    has_length: bool = False


def _server(tag: bytes, code: bytes = b"") -> Role:
    return Role("server", tag, code, True)


def _client(tag: bytes, code: bytes = b"") -> Role:
    return Role("client", tag, code, True)


_ROLES: Final[Mapping[str, Mapping[str, Role]]] = {
    "replication": {
        "XLogData": Role("server", b"w"),
        "PrimaryKeepalive": Role("server", b"k"),
        "StandbyStatusUpdate": Role("client", b"r"),
        "HotStandbyFeedback": Role("client", b"h"),
    },
    "connection": {
        "StartupMessage": _client(b"", b"\0\3"),
        "SSLRequest": _client(b"", b"\x04\xd2\x16\x2f"),
        "CancelRequest": _client(b"", b"\x04\xd2\x16\x2e"),
        "EncryptionAccepted": Role("server", b"S"),
        "EncryptionRefused": Role("server", b"N"),
        "AuthenticationOk": _server(b"R", b"\0\0\0\0"),
        "AuthenticationCleartextPassword": _server(b"R", b"\0\0\0\3"),
        "AuthenticationSASL": _server(b"R", b"\0\0\0\x0a"),
        "AuthenticationSASLContinue": _server(b"R", b"\0\0\0\x0b"),
        "AuthenticationSASLFinal": _server(b"R", b"\0\0\0\x0c"),
        "PasswordMessage": _client(b"p"),
        "GSSResponse": _client(b"p"),
        "SASLInitialResponse": _client(b"p"),
        "SASLResponse": _client(b"p"),
        "NegotiateProtocolVersion": _server(b"v"),
        "ParameterStatus": _server(b"S"),
        "BackendKeyData": _server(b"K"),
        "ReadyForQuery": _server(b"Z"),
        "Query": _client(b"Q"),
        "RowDescription": _server(b"T"),
        "DataRow": _server(b"D"),
        "CommandComplete": _server(b"C"),
        "EmptyQueryResponse": _server(b"I"),
        "ErrorResponse": _server(b"E"),
        "NoticeResponse": _server(b"N"),
        "CopyBothResponse": _server(b"W"),
        "CopyData": Role(None, b"d", has_length=True),
        "ClientCopyDone": _client(b"c"),
        "ServerCopyDone": _server(b"c"),
        "CopyFail": _client(b"f"),
        "Parse": _client(b"P"),
        "Bind": _client(b"B"),
        "Describe": _client(b"D"),
        "Execute": _client(b"E"),
        "Close": _client(b"C"),
        "Flush": _client(b"H"),
        "FunctionCall": _client(b"F"),
        "Sync": _client(b"S"),
        "Terminate": _client(b"X"),
    },
}
"""By the name of the protocol, the classes that the package uses."""


def renamed(spec: Spec) -> dict[str, str]:
    """Return the classes of messages that have another name now, each with that name."""
    return {name: message.class_name for name in _lacking(spec) if (message := _in_role(spec, name)) is not None}


def in_role(spec: Spec, name: str) -> Message:
    """Return the message that a class is for, whatever it is called; raise SpecError if it is for none."""
    found = next((each for each in spec.messages if each.class_name == name), None) or _in_role(spec, name)
    if found is None:
        raise SpecError(f"{spec.protocol} has no message for the class {name}, which the package uses: add one")
    return found


def _lacking(spec: Spec) -> list[str]:
    names = {each.class_name for each in spec.messages}
    return [name for name in _ROLES.get(spec.protocol, ()) if name not in names]


def _in_role(spec: Spec, name: str) -> Message | None:
    roles = _ROLES.get(spec.protocol, {})
    role = roles.get(name)
    known = [each for each in spec.messages if each.class_name not in roles and _role(each) == role]
    return known[0] if len(known) == 1 else None


def _role(message: Message) -> Role:
    return Role(message.sender, message.tag, message.code_bytes, message.length is not None)


def _known(spec: Spec, error: Raise) -> None:
    """A message that the package uses is there, once, and no other one has its name."""
    for name in _lacking(spec):
        if _in_role(spec, name) is None:
            role = _ROLES[spec.protocol][name]
            what = f"a message of the {role.sender or 'server and the client'} with the tag {role.tag!r}"
            remedy = f"Call it {name}, or let there be just one such message with another name."
            raise error(1, f"there is no {name} any more, {what}, which programs use", remedy)
    names = set(spec.class_names())
    for name, now in renamed(spec).items():
        if name in names:
            line = in_role(spec, name).line
            raise error(line, f"{now} was called {name}, and that is another class now", "Choose another name for it.")


WIRE_NAME_RULES = (_known,)
