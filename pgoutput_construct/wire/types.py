"""Value types (Lsn, Timestamp, Float), and the base classes of the generated message classes."""

import re
import struct
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, ClassVar, Final, Self

from pgoutput_construct.errors import PgoutputError

__all__ = [
    "POSTGRES_EPOCH",
    "QUIET_NAN",
    "REQUIRED",
    "UNIX_TO_POSTGRES",
    "Extended",
    "FieldedBytes",
    "Float",
    "FormattedBytes",
    "Lsn",
    "Marker",
    "Timestamp",
    "bare",
    "require",
]

_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")
POSTGRES_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""The epoch of PostgreSQL's dates and timestamps (POSTGRES_EPOCH_JDATE)."""
UNIX_TO_POSTGRES: Final = int(POSTGRES_EPOCH.timestamp()) * 1_000_000
"""Microseconds from the Unix epoch, 1970-01-01 UTC, to PostgreSQL's."""
_MICROSECOND = timedelta(microseconds=1)
_INFINITY = 2**63 - 1
_MINUS_INFINITY = -(2**63)


class _Printed:
    """Makes the pretty printers of IPython and Hypothesis print the repr, not the bare number of an int subclass."""

    __slots__ = ()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


class Lsn(_Printed, int):
    """A log sequence number: a byte position in the WAL, 0 to 2**64 - 1 (PostgreSQL's XLogRecPtr).

    An int that prints as PostgreSQL's pg_lsn does, ``16/B374D848``, and is constructed from that text or from an int.

    >>> Lsn("16/B374D848") + 8 == Lsn("16/B374D850")
    True
    >>> print(Lsn(97500059720))
    16/B374D848
    """

    __slots__ = ()

    def __new__(cls, value: int | str = 0) -> "Lsn":
        """Raise PgoutputError for text that is not an LSN; the range of an int is checked when a message is built."""
        if isinstance(value, int):
            return super().__new__(cls, value)
        if not isinstance(value, str):
            raise PgoutputError(f"an LSN must be an int, or a str such as '16/B374D848', not {value!r:.40}")
        match = _LSN.fullmatch(value)
        if match is None:
            raise PgoutputError(f"{value!r} is not an LSN: write two hexadecimal numbers such as 16/B374D848")
        return super().__new__(cls, int(match[1], 16) << 32 | int(match[2], 16))

    def __str__(self) -> str:
        return f"{self >> 32:X}/{self & 0xFFFFFFFF:X}"

    def __repr__(self) -> str:
        return f"Lsn('{self}')"


class Timestamp(_Printed, int):
    """Microseconds since 2000-01-01 00:00 UTC (PostgreSQL's TimestampTz), signed 64 bits.

    It prints as ISO 8601, as ``infinity`` or ``-infinity``, or as the number if datetime cannot hold the year.

    >>> print(Timestamp(0))
    2000-01-01T00:00:00+00:00
    >>> Timestamp.from_text("2000-01-02T00:00:00+00:00").to_datetime()
    datetime.datetime(2000, 1, 2, 0, 0, tzinfo=datetime.timezone.utc)
    """

    __slots__ = ()

    @classmethod
    def from_datetime(cls, value: datetime) -> "Timestamp":
        """Convert an aware datetime; raise PgoutputError for one without a time zone."""
        if value.tzinfo is None:
            raise PgoutputError(f"{value!r} has no time zone: give one, such as datetime.UTC")
        return cls((value - POSTGRES_EPOCH) // _MICROSECOND)

    @classmethod
    def now(cls) -> "Timestamp":
        """Return the current time by this machine's clock."""
        return cls.from_datetime(datetime.now(UTC))

    @classmethod
    def from_text(cls, text: str) -> "Timestamp":
        """Parse the text that ``str`` returns; raise PgoutputError for anything else."""
        if not isinstance(text, str):
            raise PgoutputError(f"a timestamp's text must be a str, not {type(text).__name__}")
        special = {"infinity": _INFINITY, "-infinity": _MINUS_INFINITY}.get(text)
        if special is not None:
            return cls(special)
        try:
            return cls(text) if re.fullmatch(r"-?\d+", text) else cls.from_datetime(datetime.fromisoformat(text))
        except ValueError as error:
            raise PgoutputError(f"{text!r} is not a timestamp: write ISO 8601 with a zone, or microseconds") from error

    def to_datetime(self) -> datetime:
        """Convert to an aware datetime in UTC; raise PgoutputError outside the years 1 to 9999."""
        try:
            return POSTGRES_EPOCH + timedelta(microseconds=self)
        except OverflowError:
            raise PgoutputError(
                f"{int(self)} microseconds since 2000 is outside the years that datetime holds"
            ) from None

    def __str__(self) -> str:
        if self in (_INFINITY, _MINUS_INFINITY):
            return "infinity" if self > 0 else "-infinity"
        try:
            return self.to_datetime().isoformat()
        except PgoutputError:
            return int.__repr__(self)

    def __repr__(self) -> str:
        return f"Timestamp({int.__repr__(self)})"


class Float(_Printed, float):
    """A number in floating point, of 64 bits (PostgreSQL's float8), with all of its bits, those of a NaN too.

    NaN equals NaN, whatever its bits, and zero equals minus zero, as in PostgreSQL: messages can be compared.

    >>> Float("nan") == Float.from_bits(0xFFF8000000000000), Float(0.5) == 0.5
    (True, True)
    """

    __slots__ = ()

    @classmethod
    def from_bits(cls, bits: int) -> "Float":
        """Return the number that an integer without a sign is, by the format of IEEE 754."""
        return cls(struct.unpack(">d", bits.to_bytes(8, "big"))[0])

    @property
    def bits(self) -> int:
        """Its bits as an integer without a sign."""
        return int.from_bytes(struct.pack(">d", self), "big")

    def __eq__(self, other: object) -> bool:
        both = float.__ne__(self, self) and isinstance(other, float) and float.__ne__(other, other)
        return both or float.__eq__(self, other) is True

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash("nan") if float.__ne__(self, self) else float.__hash__(self)

    def __str__(self) -> str:
        text = float.__repr__(self)
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text, text)

    def __repr__(self) -> str:
        if float.__ne__(self, self) and self.bits != QUIET_NAN:
            return f"Float.from_bits({self.bits:#x})"
        text = float.__repr__(self)
        return f"Float({text})" if text[-1].isdigit() else f"Float({text!r})"


QUIET_NAN: Final = 0x7FF8000000000000
"""The bits of the NaN that PostgreSQL's get_float8_nan() returns."""


class Marker(Enum):
    """A placeholder for a value that was not sent, such as UNCHANGED; an enum, so that unpickling keeps identity."""

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


class FormattedBytes(bytes):
    """Base class of bytes in another format than text, such as Binary; equal to plain bytes with the same content."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({bytes(self)!r})"


class FieldedBytes(FormattedBytes):
    """Base class of bytes with further fields, as attributes that count for equality."""

    FIELDS: ClassVar[tuple[str, ...]]
    """The names of the further fields."""

    @classmethod
    def _made(cls, data: bytes, **fields: Any) -> Self:
        """Return bytes with the fields as attributes."""
        made = bytes.__new__(cls, data)
        vars(made).update(fields)
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[bytes], dict[str, Any]]:
        return (bytes(self),), {name: getattr(self, name) for name in self.FIELDS}

    def __eq__(self, other: object) -> bool:
        alike = type(other) is not type(self) or vars(self) == vars(other)
        return alike and bytes.__eq__(self, other) is True

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = bytes.__hash__

    def __repr__(self) -> str:
        fields = "".join(f", {name}={getattr(self, name)!r}" for name in self.FIELDS)
        return f"{type(self).__name__}({bytes(self)!r}{fields})"


class Extended:
    """Base class of a part, such as a tuple, to which a later option adds fields around its principal value.

    Under options that add nothing, messages hold the principal value alone: programs written before stay correct.
    """

    __slots__ = ()
    PRINCIPAL: ClassVar[str]
    """The name of the field that holds the principal value."""


def bare(item: Any) -> Any:
    """Return the principal value of an Extended; anything else unchanged."""
    while isinstance(item, Extended):
        item = getattr(item, item.PRINCIPAL)
    return item


class _Required:
    """The default of a required field that follows an optional one, where Python demands some default."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final[Any] = _Required()
"""The default of required fields that follow optional ones."""


def require(message: object, *names: str) -> None:
    """Raise TypeError, as Python does for a missing argument, if one of the fields was not given."""
    missing = [repr(name) for name in names if getattr(message, name) is REQUIRED]
    if missing:
        several = "s" * (len(missing) > 1)
        text = ", ".join(missing[:-1]) + "," * (len(missing) > 2) + " and " * (len(missing) > 1) + missing[-1]
        call = f"{type(message).__name__}.__init__()"
        raise TypeError(f"{call} missing {len(missing)} required positional argument{several}: {text}")
