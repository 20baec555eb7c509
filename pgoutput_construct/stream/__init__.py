"""The messages of one stream in order: stream state, relations, transactions, rows of Python values.

Messages come in, in the order of the stream or of a log; out go the state of the stream, the Relation that describes an
OID, the transactions with their outcomes, and rows. The room does not know where the bytes come from. It needs
construct alone; Python values need psycopg (``pgtypes.loader``).

The protocol has one state machine. ``spec/pgoutput.yaml`` defines its states and transitions, ``wire/protocol.py`` is
generated from them (STATES, TRANSITIONS, BOUNDS), and ``state.StreamState`` executes that table. A state is, for
example, ``idle``, ``transaction`` or ``stream``; each message maps the states in which it is permitted to the state
after it. Nothing else in the package answers "is a stream open?", which determines the layout of messages: between
Stream Start and Stream Stop, changes carry an xid.

Invariants:

- A message that the current state does not permit raises ProtocolError and leaves the state unchanged.
- Messages are recognised by what the specification says of them (``bounds.effect_of``), not by name, so messages that a
  later specification adds work without a change here.
- A Relation describes rows from its position on: in a streamed transaction for that transaction alone until it commits
  (``relations``).
- A lost connection may end a log's transaction anywhere. The server sends it again from its start, so what was read of
  it is discarded (``transaction_reader``).

- ``state``: the state machine; start reading here
- ``session``: Session: parses the messages of one connection
- ``bounds``: which messages begin and end transactions, and the fields that identify them
- ``relations``: the Relation of an OID: the latest, or at any position of a log
- ``transaction_reader``: which positions of a log belong to which transaction, and how it ended
- ``rows``: changes as rows of Python values
- ``identifiers``: names of tables, parsed and quoted by SQL's rules

Public: the names below; Session is also ``pgoutput_construct.Session``.
"""

from pgoutput_construct.pgtypes.loader import ValueLoader
from pgoutput_construct.stream.relations import RelationCache
from pgoutput_construct.stream.rows import RowChange, RowReader
from pgoutput_construct.stream.session import Session

__all__ = ["RelationCache", "RowChange", "RowReader", "Session", "ValueLoader"]
