"""Single payloads as a log takes them."""

import pgoutput_construct as pgo
from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.columnar.descriptions import OUTSIDE

__all__ = ["block_of"]


def block_of(session: pgo.Session, seq: int, payload: bytes) -> Block:
    """Return a payload that stands where ``session`` is; its position and time are its number."""
    scope = OUTSIDE if session.stream_xid is None else session.stream_xid
    states = {name: [state] for name, state in session.state.parameters.items()}
    return Block.from_payloads([payload], [seq], [seq], session.options, states, [scope])
