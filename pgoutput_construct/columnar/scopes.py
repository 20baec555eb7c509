"""The stream state of each payload of a batch: whether it is inside a stream, and of which transaction."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from pgoutput_construct.columnar.batch_arrays import first_bytes, look_up, tag_table
from pgoutput_construct.columnar.descriptions import OUTSIDE
from pgoutput_construct.columnar.index import payload_bounds
from pgoutput_construct.columnar.row_schema import RowError
from pgoutput_construct.compiled.memory import room
from pgoutput_construct.errors import PgoutputError, ProtocolError
from pgoutput_construct.stream.session import Session
from pgoutput_construct.stream.state import CHANGES_SCOPE
from pgoutput_construct.wire.options import options
from pgoutput_construct.wire.protocol import SINCE, STATES, TRANSITIONS

__all__ = ["ScopeReader", "Scopes"]

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Scopes: TypeAlias = tuple[Numbers, dict[str, Flags], list[RowError]]
"""For each payload the xid of its stream (OUTSIDE if none) and its state parameters; the errors of the batch."""

_OPENS: Final = tag_table(cls for cls in CHANGES_SCOPE if any(STATES[s] for s in TRANSITIONS[cls].values()))
_OUTSIDE_ONLY: Final = tag_table(
    cls for cls, steps in TRANSITIONS.items() if cls not in CHANGES_SCOPE and not any(STATES[s] for s in steps)
)


class ScopeReader:
    """Tracks the stream state from batch to batch; parses only the messages that change or contradict it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        """The session that parses them; its state is the one after the last batch."""
        known = frozenset(cls for cls in CHANGES_SCOPE if SINCE.get(cls, 0) <= session.proto_version)
        refusal = options(**session.options).refusal
        self._changes_scope = tag_table(cls for cls in known if refusal(cls) is None)

    def read(self, array: pa.Array) -> Scopes:
        """Return the scopes of the next batch.

        A Stream Stop is still inside its stream. A message that Session refuses is an error: a Stream Stop outside of a
        stream, a Begin or a Commit inside. A Begin or Stream Start there is then followed, as after a lost connection.
        """
        state = self.session.state
        ends, xids, parameters, errors = [], [self._scope()], [state.parameters], []
        for row in self._events(array):
            try:
                self.session.parse(array[row].as_py())
            except ProtocolError as error:
                errors.append(RowError(row, error))
                self.session.follow(array[row].as_py())
            except PgoutputError:
                continue  # the index explains what is wrong with it
            ends.append(row + 1)
            xids.append(self._scope())
            parameters.append(state.parameters)
        bounds = [0, *ends, len(array)]
        states = {name: _repeated([p[name] for p in parameters], bounds, np.bool_) for name in state.parameters}
        return _repeated(xids, bounds, np.int64), states, errors

    def _events(self, array: pa.Array) -> list[int]:
        """Return the payloads that change or contradict the stream state, going by their tags."""
        if not self._changes_scope.any():
            return []
        tags = first_bytes(*payload_bounds(array))
        changes = np.flatnonzero(look_up(tags, self._changes_scope))
        others = np.flatnonzero(look_up(tags, _OUTSIDE_ONLY))
        before = np.searchsorted(changes, others) - 1
        inside = np.append(_OPENS[tags[changes]], self.session.state.in_stream)[before]
        return np.union1d(changes, others[inside]).tolist()

    def _scope(self) -> int:
        return OUTSIDE if self.session.stream_xid is None else self.session.stream_xid


def _repeated(values: Sequence[int], bounds: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array with each value repeated from its bound up to the next one."""
    if len(values) == 1 and bounds[-1] > 1:  # no copy; an array of one entry must be writable
        return np.broadcast_to(np.asarray(values[0], dtype), bounds[-1])
    repeated = room(bounds[-1], dtype)
    for value, (begin, end) in zip(values, pairwise(bounds), strict=True):
        repeated[begin:end] = value
    return repeated
