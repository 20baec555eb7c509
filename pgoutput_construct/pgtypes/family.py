"""What a family of types says of its types, for ``registry`` to gather.

A family's module is imported without pyarrow, numba, psycopg and pyspark: whatever needs one of them imports it inside
a function, which is called by those who have it.
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


class CannotHold(Exception):  # noqa: N818 - no error: the value goes elsewhere
    """A value that the column's Arrow type cannot hold."""


def _itself(value: Any, target: "pa.DataType") -> Any:
    return value


class ArrowKind(NamedTuple):
    """Arrow types of one kind, such as integers, and which Python values they hold."""

    is_kind: "Callable[[pa.DataType], bool]"
    """Whether a type is of this kind."""
    holds: "Callable[[Any, pa.DataType], bool]"
    """Whether a value, as psycopg loads it or ``fit`` returns it, goes into a type as it is."""
    fit: "Callable[[Any, pa.DataType], Any]" = _itself
    """Converts a value of another type to what a wider type wants, or one that was chosen; raises CannotHold."""


def _none(*arguments: Any) -> None:
    return None


class ArrowTypes(NamedTuple):
    """A family in Arrow."""

    types: "Mapping[str, pa.DataType]"
    """The types of columns, by their names (the key ``arrow`` of spec/builtin_types.yaml)."""
    kinds: Sequence[ArrowKind] = ()
    """The kinds that values of this family are read into."""
    unify: "Callable[[pa.DataType, pa.DataType], pa.DataType | None]" = _none
    """Returns the type that holds the values of two different types, None where the family knows none."""
    choose: "Callable[[str, str], pa.DataType | None]" = _none
    """Returns the type that a reader may choose, by the name of the built-in type and the words of the choice."""


class Compiled(NamedTuple):
    """How kernels read the values of a type; columns of any type are text in Arrow's strings."""

    holds: "Callable[[pa.DataType], bool]"
    """For which Arrow types: a column that was altered may have a wider one than its type's own."""
    text: "Cast"
    """The cast of text format."""
    binary: "Cast | None"
    """The cast of binary format, None for none."""


class SqlText(NamedTuple):
    """The canonical text of a value in SQL; ``{value}`` stands for the value, which is not NULL."""

    text: str
    of_elements: str = ""
    """A condition that a list ``{value}`` meets if Arrow's type holds each of its elements; empty: it does."""


class Family(NamedTuple):
    """Types that have something in common. A type belongs to one family."""

    codecs: Mapping[str, Codec]
    """How values are written, by the type's name in pg_type."""
    without_codec: Collection[str] = ()
    """Types whose text a locale decides (money), or a catalog (regclass), and those without a send function."""
    arrow: Callable[[], ArrowTypes | None] = _none
    """Returns the family in Arrow; needs pyarrow. Without it, values are strings: PostgreSQL's text."""
    compiled: Callable[[], Mapping[str, Sequence[Compiled]]] = dict
    """Returns kernels by the type's name, the one for its own Arrow type first; needs numba. Other values are read one
    by one."""
    sql: "Callable[[str, pa.DataType], SqlText | None]" = _none
    """Returns the canonical text (``canonical``) of values of a type, by its name, in an Arrow type; None where that is
    PostgreSQL's own."""
    spark: "Mapping[str, Callable[[Column, T.DataType], Column]]" = {}  # noqa: RUF012 - nobody writes to it
    """Write PostgreSQL's text of a value in Spark, by the name of Spark's type; a cast to string does for others."""
