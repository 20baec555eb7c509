"""Parse and build the frontend and backend messages of a connection (spec/protocol.yaml).

Unlike replication messages they carry their own length, and the same tag means different messages, by sender and by the
state of the connection.
"""

from typing import Final, get_args

from pgoutput_construct.wire import connection_codec, connection_messages
from pgoutput_construct.wire.connection_messages import ConnectionMessage
from pgoutput_construct.wire.spec_engines import ConnectionEngine, Role

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

_ENGINE: Final = ConnectionEngine[ConnectionMessage](connection_messages, connection_codec, "connection_definitions")

SENDERS: Final[tuple[Role, ...]] = get_args(Role)

CONNECTION_STATES: Final = _ENGINE.states
"""The states of a connection, the first one first."""
FIRST_STATE: Final = CONNECTION_STATES[0]
"""The state of a connection before its first message."""

CONNECTION: Final = _ENGINE.reference
"""The reference engine of a connection's messages, whose class follows from the sender and the state, too."""

parse_connection = _ENGINE.parse
build_connection = _ENGINE.build
message_size = _ENGINE.message_size
next_state = _ENGINE.next_state
begun = _ENGINE.begun
states_of = _ENGINE.states_of
