"""The engines of any specification: its codec decides, its construct definitions explain.

Packages that ``python -m tools.generate --package`` writes use them, and ``connection_engine`` does.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any, Generic, Literal, NoReturn, TypeAlias, TypeVar, get_args

from pgoutput_construct.errors import DecodeError, EngineError, PgoutputError
from pgoutput_construct.wire.codec_runtime import PAD, REJECTIONS, read_prefix, read_whole
from pgoutput_construct.wire.reference import Definitions, Reference, payload_bytes

__all__ = ["ConnectionEngine", "MessageEngine", "Role", "disagree"]

Role: TypeAlias = Literal["server", "client"]
"""Who sends a message."""

_M = TypeVar("_M")
"""Any of the messages of a specification."""


class _SpecEngine(Generic[_M]):
    """The generated modules of a specification."""

    def __init__(self, messages: ModuleType, codec: ModuleType, definitions: str = "definitions") -> None:
        """Take the modules; the one of this name next to ``messages`` is imported when an error must be explained."""
        self._codec = codec
        package = messages.__name__.rpartition(".")[0]
        self.reference = Reference(getattr(messages, "BY_TAG", {}), Definitions(f"{package}.{definitions}"))
        """The reference engine, by the definitions."""
        self._builders = codec.BUILDERS


class MessageEngine(_SpecEngine[_M]):
    """Parses and builds messages that do not have a length; parameters are given in the order of the codec."""

    def __init__(self, messages: ModuleType, codec: ModuleType, versions: Sequence[int] = ()) -> None:
        """Take the modules of the specification, and the versions of its protocol if it has any."""
        super().__init__(messages, codec)
        self._versions = versions

    def parse(self, payload: bytes | bytearray | memoryview, parameters: Mapping[str, Any]) -> _M:
        """Return the message that fills the bytes exactly; raise DecodeError, with path and offset."""
        data = payload_bytes(payload)
        self._check_version(parameters)
        try:
            message: _M = read_whole(self._codec.READERS, data, [*parameters.values()])
        except REJECTIONS:
            disagree(data, self.reference.parse(data, parameters))
        return message

    def parse_prefix(self, data: bytes, start: int, parameters: Mapping[str, Any]) -> tuple[_M, int]:
        """Return the message that starts at ``start``, and its size in bytes; the bytes after it are not read.

        Args:
            data: Bytes that contain a message at ``start``, with anything before and after it.
            start: Offset of its first byte.
            parameters: As of ``parse``.

        Raises:
            IncompleteError: ``data`` ends before the message does; a DecodeError.
            DecodeError: As of ``parse``; offsets count from the start of the message.
        """
        self._check_version(parameters)
        try:
            return read_prefix(self._codec.READERS, data, start, [*parameters.values()])
        except REJECTIONS:
            return self.reference.parse_prefix(data, start, parameters)

    def build(self, message: _M, parameters: Mapping[str, Any]) -> bytes:
        """Return the bytes of a message; raise EncodeError, with the path, for a value that it cannot carry."""
        self._check_version(parameters)
        try:
            data: bytes = self._builders[type(message)](message, *parameters.values())
        except Exception:  # REJECTIONS, and whatever a user's object raises
            disagree(message, self.reference.build(message, parameters))
        return data

    def _check_version(self, parameters: Mapping[str, Any]) -> None:
        if self._versions and (version := parameters.get("proto_version")) not in self._versions:
            known = ", ".join(map(str, self._versions))
            raise PgoutputError(f"proto_version must be one of {known}, not {version!r:.40}")


class ConnectionEngine(_SpecEngine[_M]):
    """Parses and builds messages with a length, whose meaning depends on their sender and on the state."""

    def __init__(self, messages: ModuleType, codec: ModuleType, definitions: str = "definitions") -> None:
        """Take the modules of the specification."""
        super().__init__(messages, codec, definitions)
        self._following: Mapping[tuple[str, str], Mapping[type[_M], str]] = messages.FOLLOWING
        self.states: tuple[str, ...] = tuple(dict.fromkeys(state for state, _ in self._following))
        """The states of a connection, the first one first."""
        self._tagged = cache(self._by_tag)

    def parse(self, data: bytes, sender: Role, state: str) -> _M:
        """Return the message that fills ``data`` exactly.

        Args:
            data: The message with its tag and length.
            sender: Which side sent it.
            state: The state of the connection: a tag's meaning depends on it.

        Raises:
            DecodeError: Bytes that are not a message which the sender can send in this state, with path and offset.
        """
        cls = self._class(data, sender, state)
        try:
            message: _M
            message, end = self._codec.READERS[cls](data + PAD, 0, len(data))
            if end == len(data):
                return message
        except REJECTIONS:
            pass
        return disagree(data, self.reference.read(cls, data, {}))

    def build(self, message: _M) -> bytes:
        """Return the bytes of a message; raise EncodeError, with the path, for a value that it cannot carry."""
        try:
            data: bytes = self._builders[type(message)](message)
        except Exception:  # as above
            disagree(message, self.reference.build(message, {}))
        return data

    def message_size(self, data: bytes | bytearray, sender: Role, state: str) -> int | None:
        """Return the size in bytes of the message at the start of ``data``; None if more bytes are needed to know it.

        Args:
            data: The bytes received so far.
            sender: Which side sent them.
            state: The state of the connection.

        Raises:
            DecodeError: A tag that the sender cannot send in this state.
        """
        tagged = self._tagged(sender, state)
        if not data and b"" not in tagged:
            return None
        tag = b"" if b"" in tagged else bytes(data[:1])
        if tag not in tagged:
            raise DecodeError(self._unknown(tag, sender, state), offset=0)
        at = tagged[tag][0].LENGTH_AT
        if at is None:
            return len(tag)
        length = self._codec.LENGTH
        return at + int(length.unpack_from(data, at)[0]) if len(data) >= at + length.size else None

    def next_state(self, message: _M, sender: Role, state: str) -> str:
        """Return the state after a message; raise DecodeError if the sender cannot send it in this state."""
        following = self._permitted(sender, state).get(type(message))
        if following is None:
            raise DecodeError(f"a {sender} cannot send {type(message).__name__} in the state {state!r}")
        return following

    def begun(self, data: bytes, sender: Role, state: str) -> type[_M]:
        """Return the class of a message whose end may be missing: the first one that its bytes can begin.

        Args:
            data: The message, or its beginning.
            sender: Which side sent it.
            state: The state of the connection.

        Raises:
            DecodeError: Bytes that do not begin a message which the sender can send in this state.
        """
        tagged = self._tagged(sender, state)
        tag = b"" if b"" in tagged else data[:1]
        code = len(tag) + self._codec.LENGTH.size
        if data and len(data) < code + max((len(cls.CODE) for cls in tagged.get(tag, ())), default=0):
            for cls in tagged.get(tag, ()):
                if cls.CODE.startswith(data[code:]):
                    found: type[_M] = cls
                    return found
        return self._class(data, sender, state)

    def states_of(self, data: bytes, sender: Role) -> list[str]:
        """Return the states in which a sender can send a message that begins with these bytes.

        Args:
            data: The message, or its beginning.
            sender: Which side sent it.
        """
        return [state for state in self.states if self._can_begin(data, sender, state)]

    def _can_begin(self, data: bytes, sender: Role, state: str) -> bool:
        try:
            self.begun(data, sender, state)
        except DecodeError:
            return False
        return True

    def _permitted(self, sender: Role, state: str) -> Mapping[type[_M], str]:
        """Return what a sender can send in a state, each with the state that follows."""
        for what, given, known in (("sender", sender, get_args(Role)), ("state", state, self.states)):
            if given not in known:
                raise PgoutputError(f"{what} must be one of {', '.join(known)}, not {given!r:.40}")
        return self._following[state, sender]

    def _by_tag(self, sender: Role, state: str) -> dict[bytes, list[Any]]:
        """Return what a sender can send in a state, by tag."""
        found: dict[bytes, list[Any]] = {}
        for cls in self._permitted(sender, state):
            found.setdefault(cls.TAG, []).append(cls)  # type: ignore[attr-defined]
        return found

    def _class(self, data: bytes, sender: Role, state: str) -> type[_M]:
        tagged = self._tagged(sender, state)
        tag = b"" if b"" in tagged else data[:1]
        code = len(tag) + self._codec.LENGTH.size
        for cls in tagged.get(tag, ()) if data else ():
            if data[code : code + len(cls.CODE)] == cls.CODE:
                found: type[_M] = cls
                return found
        raise DecodeError(self._unknown(data[: len(tag) + 8], sender, state), offset=0)

    def _unknown(self, begin: bytes, sender: Role, state: str) -> str:
        names = ", ".join(cls.__name__ for cls in self._permitted(sender, state)) or "nothing"
        return f"no message of a {sender} in the state {state!r} begins with {begin!r}: it can send {names}"


def disagree(given: object, accepted: object) -> NoReturn:
    """Raise EngineError for what the codec refuses, and the definitions accept."""
    text = given.hex() if isinstance(given, bytes) else repr(given)
    problem = "the codec refuses what the definitions accept; please report this"
    raise EngineError(f"{problem}: {text:.2000} gives {accepted!r:.2000}")
