"""Messages in order: sessions, the relation cache, transactions, rows of Python values."""

from pgoutput_construct.stream.relations import RelationCache
from pgoutput_construct.stream.rows import RowChange, RowReader
from pgoutput_construct.stream.session import Session
from pgoutput_construct.stream.values import ValueLoader

__all__ = ["RelationCache", "RowChange", "RowReader", "Session", "ValueLoader"]
