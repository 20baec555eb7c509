"""Every error of the package: one root class, and where in the bytes or in the message the error occurred."""

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


class _FieldPathError(PgoutputError):
    """An error in one message, with the path of the field and the offset of its bytes."""

    def __init__(self, reason: str, *, message: str | None = None, path: str = "", offset: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        """What is wrong, and what to do about it."""
        self.message = message
        """The message's name, such as ``Relation``; None if the tag is unknown."""
        self.path = path or message or ""
        """The field, such as ``Relation.columns[3].name``."""
        self.offset = offset
        """Bytes from the start of the payload."""

    def __str__(self) -> str:
        at_byte = "" if self.offset is None else f" at byte {self.offset}"
        where = f"{self.path}{at_byte}".strip()
        return f"{where}: {self.reason}" if where else self.reason


class DecodeError(_FieldPathError):
    """Bytes that are not a valid message under this protocol version, streaming option and stream state."""


class EncodeError(_FieldPathError):
    """A value that its message cannot carry under this protocol version, streaming option and stream state."""


class ProtocolError(PgoutputError):
    """A protocol violation: an Insert before its Relation, a Stream Stop without a Stream Start."""


class SpecError(PgoutputError):
    """A specification that breaks a rule of the specification language; the text names file, line and remedy."""


class ChangeLogError(PgoutputError):
    """A change log that cannot be read or written; the text names the segment, and the seq if one is known."""


class ReplicationError(PgoutputError):
    """A server, slot, publication or connection that cannot be used as it is; the text says what to do."""

    def __init__(self, text: str, *, sqlstate: str | None = None, transient: bool = False) -> None:
        super().__init__(text)
        self.sqlstate = sqlstate
        """The server's SQLSTATE (appendix "PostgreSQL Error Codes"); None if the error is not the server's."""
        self.transient = transient
        """Whether a retry may succeed: the connection was lost, or the slot is still in use."""


class EngineError(PgoutputError):
    """A defect of this package: the fast engine refuses what the reference accepts. Please report it with its text."""
