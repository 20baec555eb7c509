"""What a family of types defines; ``type_registry`` collects the families.

A family's module is imported without pyarrow, numba, psycopg and pyspark. Functions that need one of them import it
inside, and are called only where it is installed.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pgoutput_construct.pgtypes.value_codec import Codec

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column
    from pyspark.sql import types as T  # noqa: N812 - as Spark's documentation has it

    from pgoutput_construct.pgtypes.kernels.cast import Cast

__all__ = ["ArrowKind", "ArrowTypes", "CannotHold", "Compiled", "Family", "SqlText"]


class CannotHold(Exception):  # noqa: N818 - not an error: the value goes to ``_untyped``
    """The column's Arrow type cannot represent a value."""


def _itself(value: Any, target: "pa.DataType") -> Any:
    return value


class ArrowKind(NamedTuple):
    """Arrow types of one kind, such as integers, and which Python values they hold."""

    is_kind: "Callable[[pa.DataType], bool]"
    """Whether a type is of this kind."""
    holds: "Callable[[Any, pa.DataType], bool]"
    """Whether a type can represent a value, as psycopg loads it or ``fit`` returns it."""
    fit: "Callable[[Any, pa.DataType], Any]" = _itself
    """Converts a value of a narrower type for a wider or a chosen one; raises CannotHold."""


def _none(*arguments: Any) -> None:
    return None


class ArrowTypes(NamedTuple):
    """The Arrow types of a family."""

    types: "Mapping[str, pa.DataType]"
    """The Arrow types by name (the key ``arrow`` of spec/builtin_types.yaml)."""
    kinds: Sequence[ArrowKind] = ()
    """The kinds of Arrow types for values of this family."""
    unify: "Callable[[pa.DataType, pa.DataType], pa.DataType | None]" = _none
    """Returns the type that can represent the values of two different types, or None."""
    choose: "Callable[[str, str], pa.DataType | None]" = _none
    """Returns the type that a reader chooses, given the built-in type's name and the text of the choice; or None."""


class Compiled(NamedTuple):
    """The kernels of a type, for some Arrow types; values of any type in text format can be read as string."""

    holds: "Callable[[pa.DataType], bool]"
    """For which Arrow types; an altered column may have a wider one than its type's own."""
    text: "Cast"
    """The cast of text format."""
    binary: "Cast | None"
    """The cast of binary format, None if there is none."""


class SqlText(NamedTuple):
    """An SQL expression for the canonical text of ``{value}``, which is not NULL."""

    text: str
    of_elements: str = ""
    """A condition: whether Arrow's type can represent every element of a list ``{value}``; empty: always."""


class Family(NamedTuple):
    """Related types. A type belongs to one family."""

    codecs: Mapping[str, Codec]
    """The codecs by typname."""
    without_codec: Collection[str] = ()
    """Types whose text depends on a locale (money) or the catalog (regclass), and those without a send function."""
    arrow: Callable[[], ArrowTypes | None] = _none
    """Returns the family's Arrow types; needs pyarrow. Without them, values are strings: PostgreSQL's text."""
    compiled: Callable[[], Mapping[str, Sequence[Compiled]]] = dict
    """Returns kernels by typname, the one for the type's own Arrow type first; needs numba. Values of other types are
    read one by one."""
    sql: "Callable[[str, pa.DataType], SqlText | None]" = _none
    """Returns the canonical text (``canonical_text``) for a typname and an Arrow type; None: PostgreSQL's own text."""
    spark: "Mapping[str, Callable[[Column, T.DataType], Column]]" = {}  # noqa: RUF012 - never mutated
    """Write PostgreSQL's text of a value in Spark, by the name of Spark's type; a cast to string does for others."""
