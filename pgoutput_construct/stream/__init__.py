"""Messages in order: sessions, the relation cache, transactions, rows of Python values."""

from pgoutput_construct.pgtypes.loader import ValueLoader
from pgoutput_construct.stream.relations import RelationCache
from pgoutput_construct.stream.rows import RowChange, RowReader
from pgoutput_construct.stream.session import Session

__all__ = ["RelationCache", "RowChange", "RowReader", "Session", "ValueLoader"]
