"""Header fields of messages, read by a generated kernel into Arrow columns."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pgoutput_construct.columnar.batch_arrays import strings
from pgoutput_construct.pgtypes.kernels.cast import ColumnValues

__all__ = ["HeaderColumn", "read_columns", "read_header"]


def read_header(
    read: Any, fields: Iterable[tuple[str, str]], schema: pa.Schema, given: Any, count: int
) -> list[tuple[str, pa.Array]]:
    """Return the header fields of ``count`` messages of one class, by name.

    Args:
        read: The kernel, and
        fields: its fields, both from an entry of READERS.
        schema: The MESSAGE_SCHEMA of the same module.
        given: The kernel's arguments: bytes and bounds of the messages, and the parameters of the layouts.
        count: The number of messages.
    """
    return [(column.name, column.arrow(given[0])) for column in read_columns(read, fields, schema, given, count)]


def read_columns(
    read: Any, fields: Iterable[tuple[str, str]], schema: pa.Schema, given: Any, count: int
) -> list["HeaderColumn"]:
    """Return the same as numpy arrays; of fields that are bytes, offsets and lengths instead of a copy."""
    columns = [HeaderColumn(name, form, count, schema.field(name).type) for name, form in fields]
    if read is not None:
        read(*given, *(out for column in columns for out in column.outs))
    return columns


class HeaderColumn:
    """One header field of the messages of one class."""

    def __init__(self, name: str, form: str, count: int, target: pa.DataType) -> None:
        self.name = name
        self.form = form.rstrip("?")
        if self.form == "bytes":
            self.values: list[NDArray[Any]] = [np.zeros(count, np.int64), np.zeros(count, np.int64)]
        else:
            self.values = [np.zeros(count, np.uint8 if self.form == "letter" else target.to_pandas_dtype())]
        self.present = np.zeros(count, np.bool_) if form.endswith("?") else None
        outs = [self.values[0].view(np.int64)] if self.form == "float" else self.values  # kernels copy its bits
        self.outs = [*outs, *([] if self.present is None else [self.present])]
        self.target = target

    def arrow(self, data: NDArray[np.uint8]) -> pa.Array:
        """Return the field as an Arrow array, null if a message does not have it; ``data`` are the messages' bytes."""
        mask = None if self.present is None else ~self.present
        if self.form == "bytes":
            absent = np.zeros(len(self.values[0]), np.uint8) if mask is None else mask.view(np.uint8)
            starts, lengths = self.values
            there = int(np.count_nonzero(absent == 0))
            values = ColumnValues(data, starts, lengths, absent, 0, there, int(lengths.sum()))
            return strings(values, self.target)
        if self.form == "letter":
            return pa.array(self.values[0].view("S1").astype(str), pa.string(), mask=mask)
        return pa.array(self.values[0], self.target, mask=mask)
