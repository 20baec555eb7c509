"""What describes many rows at once."""

import numpy as np
import pytest

from pgoutput_construct.columnar.descriptions import OUTSIDE, UNDESCRIBED, copy_scope, find_descriptions
from pgoutput_construct.stream.relations import RelationHistory
from pgoutput_construct.stream.state import ControlMessage
from pgoutput_construct.wire.messages import Relation

OID = 2**32 - 1


@pytest.mark.parametrize("xid", [5, 2**31 - 1, 2**31, 2**32 - 1])
def test_scopes_are_apart(xid: int) -> None:
    """Streams of any xid, rows outside of streams, and copies have separate descriptions."""
    history = RelationHistory()
    scopes = [None, xid, copy_scope(0), copy_scope(2**31 - 1)]
    for seq, scope in enumerate(scopes):
        relation = Relation(relation_oid=OID, namespace="", name="t", replica_identity="d", columns=())
        history.read(ControlMessage(seq, scope, relation))
    numbers = np.array([OUTSIDE if scope is None else scope for scope in scopes])
    oids, seqs = np.full(4, OID), np.full(4, 9)
    assert find_descriptions(history, oids, numbers, seqs).tolist() == [0, 1, 2, 3]
    for index in range(4):
        one = slice(index, index + 1)
        assert find_descriptions(history, oids[one], numbers[one], seqs[one]).tolist() == [index]
        before = find_descriptions(history, oids[one], numbers[one], np.array([index - 1]))
        assert before.tolist() == [UNDESCRIBED]
