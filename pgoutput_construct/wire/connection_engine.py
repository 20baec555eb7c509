"""Parse and build the frontend and backend messages of a connection (spec/protocol.yaml).

Unlike replication messages they carry their own length, and the same tag means different messages, by sender and by the
state of the connection.
"""

from functools import cache
from typing import Any, Final, Literal, TypeAlias, get_args

from pgoutput_construct.errors import DecodeError, EngineError
from pgoutput_construct.wire import connection_codec, connection_messages
from pgoutput_construct.wire.codec_runtime import PAD, REJECTIONS
from pgoutput_construct.wire.connection_definitions import DEFINITIONS
from pgoutput_construct.wire.connection_messages import FOLLOWING, ConnectionMessage
from pgoutput_construct.wire.reference import Reference

__all__ = [
    "CONNECTION",
    "CONNECTION_STATES",
    "FIRST_STATE",
    "SENDERS",
    "Role",
    "begun",
    "build_connection",
    "connection_messages",
    "message_size",
    "next_state",
    "parse_connection",
    "states_of",
]

Role: TypeAlias = Literal["server", "client"]
"""Who sends a message."""

SENDERS: Final[tuple[Role, ...]] = get_args(Role)

CONNECTION_STATES: Final = tuple(dict.fromkeys(state for state, _ in FOLLOWING))
"""The states of a connection, the first one first."""
FIRST_STATE: Final = CONNECTION_STATES[0]
"""The state of a connection before its first message."""

CONNECTION: Final = Reference({}, DEFINITIONS)
"""The reference engine of a connection's messages, whose class follows from the sender and the state, too."""


def parse_connection(data: bytes, sender: Role, state: str) -> ConnectionMessage:
    """Return the message that fills ``data`` exactly.

    Args:
        data: The message with its tag and length.
        sender: Which side sent it.
        state: The state of the connection (spec/protocol.yaml): a tag's meaning depends on it.

    Raises:
        DecodeError: Bytes that are not a message which the sender can send in this state, with path and offset.
    """
    cls = _class(data, sender, state)
    try:
        message, end = connection_codec.READERS[cls](data + PAD, 0, len(data))
        if end == len(data):
            return message
    except REJECTIONS:
        pass
    CONNECTION.read(cls, data, {})
    raise EngineError(f"{cls.__name__}: the engines disagree about {data[:80]!r}: please report this")


def build_connection(message: ConnectionMessage) -> bytes:
    """Return the bytes of a message; raise EncodeError, with the path, for a value that it cannot carry."""
    build = connection_codec.BUILDERS.get(type(message))
    if build is not None:
        try:
            return build(message)
        except REJECTIONS:
            pass
    return CONNECTION.build(message, {})


def message_size(data: bytes | bytearray, sender: Role, state: str) -> int | None:
    """Return the size in bytes of the message at the start of ``data``; None if more bytes are needed to know it.

    Args:
        data: The bytes received so far.
        sender: Which side sent them.
        state: The state of the connection.

    Raises:
        DecodeError: A tag that the sender cannot send in this state.
    """
    tagged = _tagged(sender, state)
    if not data and b"" not in tagged:
        return None
    tag = b"" if b"" in tagged else bytes(data[:1])
    if tag not in tagged:
        raise DecodeError(_unknown(tag, sender, state), offset=0)
    at = tagged[tag][0].LENGTH_AT
    if at is None:
        return len(tag)
    length = connection_codec.LENGTH
    return at + length.unpack_from(data, at)[0] if len(data) >= at + length.size else None


def next_state(message: ConnectionMessage, sender: Role, state: str) -> str:
    """Return the state after a message; raise DecodeError if the sender cannot send it in this state."""
    following = FOLLOWING[state, sender].get(type(message))
    if following is None:
        raise DecodeError(f"a {sender} cannot send {type(message).__name__} in the state {state!r}")
    return following


@cache
def _tagged(sender: Role, state: str) -> dict[bytes, list[Any]]:
    """Return what a sender can send in a state, by tag."""
    found: dict[bytes, list[Any]] = {}
    for cls in FOLLOWING[state, sender]:
        found.setdefault(cls.TAG, []).append(cls)
    return found


def _class(data: bytes, sender: Role, state: str) -> type[ConnectionMessage]:
    tagged = _tagged(sender, state)
    tag = b"" if b"" in tagged else data[:1]
    for cls in tagged.get(tag, ()):
        code = len(tag) + connection_codec.LENGTH.size
        if data[code : code + len(cls.CODE)] == cls.CODE:
            return cls
    raise DecodeError(_unknown(data[: len(tag) + 8], sender, state), offset=0)


def begun(data: bytes, sender: Role, state: str) -> type[ConnectionMessage]:
    """Return the class of a message whose end may be missing: the first one that its bytes can begin.

    Args:
        data: The message, or its beginning.
        sender: Which side sent it.
        state: The state of the connection.

    Raises:
        DecodeError: Bytes that do not begin a message which the sender can send in this state.
    """
    tagged = _tagged(sender, state)
    tag = b"" if b"" in tagged else data[:1]
    code = len(tag) + connection_codec.LENGTH.size
    if data and len(data) < code + max((len(cls.CODE) for cls in tagged.get(tag, ())), default=0):
        for cls in tagged.get(tag, ()):
            if cls.CODE.startswith(data[code:]):
                return cls
    return _class(data, sender, state)


def states_of(data: bytes, sender: Role) -> list[str]:
    """Return the states in which a sender can send a message that begins with these bytes.

    Args:
        data: The message, or its beginning.
        sender: Which side sent it.
    """
    return [state for state, role in FOLLOWING if role == sender and _can_begin(data, sender, state)]


def _can_begin(data: bytes, sender: Role, state: str) -> bool:
    try:
        begun(data, sender, state)
    except DecodeError:
        return False
    return True


def _unknown(begin: bytes, sender: Role, state: str) -> str:
    names = ", ".join(cls.__name__ for cls in FOLLOWING[state, sender]) or "nothing"
    return f"no message of a {sender} in the state {state!r} begins with {begin!r}: it can send {names}"
