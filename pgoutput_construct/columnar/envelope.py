"""Frames of a connection, split by a kernel into the payloads of one batch and the header fields of their frames."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.columnar import frame_kernels
from pgoutput_construct.columnar.batch_arrays import strings
from pgoutput_construct.columnar.header_columns import read_columns
from pgoutput_construct.errors import DecodeError, PgoutputError
from pgoutput_construct.pgtypes.kernels.cast import ColumnValues
from pgoutput_construct.wire import XLogData, parse_frame
from pgoutput_construct.wire.engine import frame_parameters

__all__ = ["FrameBatch", "Frames", "split_frames"]

Numbers = NDArray[np.int64]
_TAG: Final = XLogData.TAG[0]
_NO_OPTIONS: Final[Mapping[str, Any]] = {}
_, _READ, _FIELDS = frame_kernels.READERS[_TAG]


@dataclass(frozen=True, slots=True)
class Frames:
    """Raw frames, in the order received."""

    data: NDArray[np.uint8]
    """Their bytes, one frame after the other."""
    ends: Numbers
    """The offset at which each frame ends."""
    lasting: bool = False
    """Whether the buffer will not be reused: then a payload may refer to it instead of being copied."""

    @classmethod
    def of(cls, *frames: bytes) -> "Frames":
        """Return frames that are bytes."""
        return cls(np.frombuffer(b"".join(frames), np.uint8), np.cumsum([*map(len, frames)], dtype=np.int64), True)

    @property
    def starts(self) -> Numbers:
        """The offset at which each frame starts."""
        return np.append(0, self.ends[:-1]) if len(self) else self.ends

    def __len__(self) -> int:
        return len(self.ends)

    def __iter__(self) -> Iterator[bytes]:
        return (self.data[start:end].tobytes() for start, end in zip(self.starts, self.ends, strict=True))


@dataclass(frozen=True)
class FrameBatch:
    """Consecutive frames, split; the arrays have one entry for each payload that is not empty."""

    payloads: pa.Array
    """The messages in the frames."""
    wal_start: Numbers
    """As sent by the server; negative for an LSN of 2**63 or more."""
    send_time: Numbers
    """The server's clock at transmission, in microseconds since 2000-01-01 UTC."""
    others: tuple[tuple[int, Any], ...] = ()
    """The frames of other kinds, parsed, each with the number of payloads before it."""
    empty: int = 0
    """The number of frames with an empty payload."""
    error: PgoutputError | None = None
    """The error of the first malformed frame; it and the frames after it are not included."""


def split_frames(frames: Frames, options: Mapping[str, Any] = _NO_OPTIONS) -> FrameBatch:
    """Split frames, at least one. A single payload is not copied if the frames are ``lasting``.

    ``options`` are those of START_REPLICATION that determine layouts, as keywords of parse_frame.
    """
    parameters = frame_parameters(**options)
    data, starts, ends = frames.data, frames.starts, frames.ends
    tags, valid = np.zeros(len(frames), np.uint8), np.zeros(len(frames), np.bool_)
    frame_kernels.index(data, starts, ends, *parameters, tags, valid)
    good = len(frames) if valid.all() else int(np.argmin(valid))
    rows = np.flatnonzero(tags[:good] == _TAG)
    given = data, starts[rows], ends[rows], *parameters
    columns = read_columns(_READ, _FIELDS, frame_kernels.MESSAGE_SCHEMA, given, len(rows))
    values = {column.name: column.values for column in columns}
    full = np.flatnonzero(values["data"][1])
    others = np.flatnonzero(tags[:good] != _TAG)
    before = np.searchsorted(rows[full], others)
    return FrameBatch(
        _payloads(frames, *(bounds[full] for bounds in values["data"])),
        values["wal_start"][0][full].view(np.int64),
        values["send_time"][0][full],
        tuple(
            (count, parse_frame(data[starts[row] : ends[row]].tobytes(), **options))
            for count, row in zip(before.tolist(), others.tolist(), strict=True)
        ),
        len(rows) - len(full),
        None if good == len(frames) else _error(data[starts[good] : ends[good]].tobytes(), options),
    )


def _payloads(frames: Frames, starts: Numbers, lengths: Numbers) -> pa.Array:
    if len(starts) != 1 or not frames.lasting:
        tags = np.zeros(len(starts), np.uint8)
        values = ColumnValues(frames.data, starts, lengths.astype(np.int32), tags, 0, len(starts), int(lengths.sum()))
        return strings(values, pa.binary())
    bounds = np.append(starts, starts + lengths).astype(np.int32)  # a frame has 1 GB at most
    return pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(bounds), pa.py_buffer(frames.data)])


def _error(frame: bytes, options: Mapping[str, Any]) -> PgoutputError:
    try:
        parse_frame(frame, **options)
    except PgoutputError as error:
        return error
    return DecodeError(
        f"the kernel rejects a frame of {len(frame)} bytes which the definitions accept: please report it"
    )
