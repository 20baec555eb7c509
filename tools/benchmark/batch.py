"""The messages of one case in every representation that an engine takes; each is created on first use."""

import struct
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pgoutput_construct as pgo
from pgoutput_construct.stream.relations import Description
from tools.benchmark.cases import Case
from tools.benchmark.errors import BenchmarkError

__all__ = ["Batch"]

_LENGTH = struct.Struct(">I")
_ROWS = pgo.Insert | pgo.Update | pgo.Delete


class Batch:
    """Payloads in their order, each with the stream state in which it is to be parsed."""

    def __init__(self, case: Case, payloads: Sequence[bytes], in_stream: Sequence[bool] | None = None) -> None:
        self.case = case
        self.payloads = payloads
        self.in_stream = _stream_states(payloads) if in_stream is None else in_stream
        self.path: Path | None = None
        """Where ``save`` wrote it, for engines in other processes."""

    def __len__(self) -> int:
        return len(self.payloads)

    @cached_property
    def size(self) -> int:
        """The bytes of all payloads."""
        return sum(map(len, self.payloads))

    @cached_property
    def messages(self) -> list[pgo.PgoutputMessage]:
        """The messages, parsed."""
        options = self.case.proto_version, self.case.streaming
        given = zip(self.payloads, self.in_stream, strict=True)
        return [pgo.parse(payload, *options, inside) for payload, inside in given]

    @cached_property
    def array(self) -> Any:
        """The payloads as one Arrow binary array."""
        import pyarrow as pa

        return pa.array(self.payloads, pa.binary())

    @cached_property
    def states(self) -> Any:
        """The stream states as an Arrow array, None where nothing is streamed."""
        import pyarrow as pa

        return None if self.case.streaming == "off" else pa.array(self.in_stream, pa.bool_())

    def description(self) -> Description:
        """Return what describes the case's one table."""
        found = [message for message in self._relations() if isinstance(message, pgo.Relation)]
        if len({relation.relation_oid for relation in found}) != 1:
            raise BenchmarkError(f"{self.case.name}: the capture must have one table")
        return Description(0, found[-1], {})

    def sample(self, count: int) -> "Batch":
        """Return at most ``count`` messages, taken evenly: all kinds are among them."""
        step = -(-len(self) // count)
        return self if step <= 1 else Batch(self.case, self.payloads[::step], self.in_stream[::step])

    def rows(self) -> "Batch":
        """Return the messages that change rows, alone."""
        given = zip(self.payloads, self.in_stream, strict=True)
        chosen = [(payload, inside) for payload, inside in given if payload[:1] in b"IUD"]
        return Batch(self.case, [payload for payload, _ in chosen], [inside for _, inside in chosen])

    def tally(self) -> dict[str, Any]:
        """Count messages by kind, and the values and bytes of their rows: other parsers must find the same."""
        kinds: dict[str, int] = {}
        sizes: list[int] = []
        for message in self.messages:
            kind = message.TAG.decode()
            kinds[kind] = kinds.get(kind, 0) + 1
            for values in _tuples(message):
                sizes += [len(value) if isinstance(value, bytes) else 0 for value in values]
        return {"messages": len(self.messages), "kinds": kinds, "values": len(sizes), "bytes": sum(sizes)}

    def save(self, path: Path) -> None:
        """Write each payload after its length, in one step: a file that is there is whole."""
        temporary = path.with_suffix(".tmp")
        temporary.write_bytes(b"".join(_LENGTH.pack(len(payload)) + payload for payload in self.payloads))
        temporary.rename(path)
        self.path = path

    @classmethod
    def load(cls, case: Case, path: Path, count: int | None = None) -> "Batch":
        """Read what ``save`` wrote, or the first ``count`` messages of it."""
        data, at = path.read_bytes(), 0
        payloads: list[bytes] = []
        while at < len(data) and len(payloads) != count:
            start = at + _LENGTH.size
            at = start + _LENGTH.unpack_from(data, at)[0]
            payloads.append(data[start:at])
        batch = cls(case, payloads)
        batch.path = path
        return batch

    def _relations(self) -> list[pgo.PgoutputMessage]:
        options = self.case.proto_version, self.case.streaming
        given = zip(self.payloads, self.in_stream, strict=True)
        return [pgo.parse(payload, *options, inside) for payload, inside in given if payload[:1] == b"R"]


def _stream_states(payloads: Sequence[bytes]) -> list[bool]:
    """A message stands inside a stream after a Stream Start, up to the Stream Stop, which itself does, too."""
    inside, states = False, []
    for payload in payloads:
        states.append(inside)
        if payload[:1] in (pgo.StreamStart.TAG, pgo.StreamStop.TAG):
            inside = payload[:1] == pgo.StreamStart.TAG
    return states


def _tuples(message: pgo.PgoutputMessage) -> list[Any]:
    if not isinstance(message, _ROWS):
        return []
    return [values for values in (getattr(message, "old", None), getattr(message, "new", None)) if values is not None]
