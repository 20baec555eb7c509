"""Every error of the package: one root, and where in the bytes or in the message it happened."""

__all__ = [
    "ChangeLogError",
    "DecodeError",
    "EncodeError",
    "EngineError",
    "PgoutputError",
    "ProtocolError",
    "ReplicationError",
    "SpecError",
]


class PgoutputError(ValueError):
    """The root of all errors of this package."""


class _PlacedError(PgoutputError):
    """An error at one place of one message."""

    def __init__(self, reason: str, *, message: str | None = None, path: str = "", offset: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        """What is wrong, and what to do about it."""
        self.message = message
        """The message's name, such as ``Relation``; None when not even the kind is known."""
        self.path = path or message or ""
        """The field, such as ``Relation.columns[3].name``."""
        self.offset = offset
        """Bytes from the start of the payload."""

    def __str__(self) -> str:
        at_byte = "" if self.offset is None else f" at byte {self.offset}"
        place = f"{self.path}{at_byte}".strip()
        return f"{place}: {self.reason}" if place else self.reason


class DecodeError(_PlacedError):
    """Bytes that are not a message of this protocol version, streaming option and stream state."""


class EncodeError(_PlacedError):
    """A value that its message cannot carry under this protocol version, streaming option and stream state."""


class ProtocolError(PgoutputError):
    """A protocol violation: an Insert before its Relation, a Stream Stop without a Stream Start."""


class SpecError(PgoutputError):
    """A specification that breaks a rule of the language; the text names file, line and remedy."""


class ChangeLogError(PgoutputError):
    """A change log that cannot be read or written; the text names the segment, and the seq where there is one."""


class ReplicationError(PgoutputError):
    """The server, a slot, a publication or the connection is not as it must be; the text says what to do."""

    def __init__(self, text: str, *, sqlstate: str | None = None, transient: bool = False) -> None:
        super().__init__(text)
        self.sqlstate = sqlstate
        """The server's five-letter code (appendix "PostgreSQL Error Codes"), None when there is none."""
        self.transient = transient
        """True when trying again later may help: the connection was lost, the slot is still in use."""


class EngineError(PgoutputError):
    """A defect of this package: the fast engine refuses what the reference accepts. Please report it with its text."""
