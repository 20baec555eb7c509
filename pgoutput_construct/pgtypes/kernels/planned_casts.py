"""Casts of types that the walk over rows can decode: their entries in its plan, and the same decoding by column."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgoutput_construct.compiled.jit import WORD, kernel
from pgoutput_construct.compiled.memory import room
from pgoutput_construct.pgtypes.kernels import row_plan
from pgoutput_construct.pgtypes.kernels.cast import LEFT, NULL, TAKEN, Cast, ColumnValues, Result, array_of
from pgoutput_construct.pgtypes.kernels.row_plan import (
    ENTRIES,
    FORMAT_ENTRIES,
    KIND,
    OFFSET,
    lay_out,
    put_nothing,
    read_array,
    read_value,
)

__all__ = ["INTEGER_TEXT", "TEXT", "Bounds", "PlannedCast", "big_endian", "parsed", "plan_of", "text_after", "within"]

Bounds = Callable[[pa.DataType], tuple[int, int]]


@kernel
def _read(data: Any, starts: Any, lengths: Any, tags: Any, code: int, plan: Any, out: Any, state: Any) -> int:
    missing = 0
    for row in range(len(starts)):
        state[row] = NULL
        if tags[row] == code:
            taken = read_value(code, data, starts[row], lengths[row], plan, 0, row, out)
            state[row] = TAKEN if taken else LEFT
        if state[row] != TAKEN:
            put_nothing(plan, 0, row, out)
            missing += 1
    return missing


@dataclass(frozen=True)
class PlannedCast:
    """The cast of a type in one format."""

    kind: int
    """How its values are decoded: one of the kinds in ``row_plan``, or the size of a big-endian number."""
    bounds: Bounds
    """The lowest and the highest number that is decoded, for an Arrow type; some kinds have other parameters here."""
    more: int = 0
    """The number that is added to each big-endian number, such as the difference of epochs."""
    rest: Cast | None = None
    """The cast of the values that are left; None: they are loaded one by one."""

    def __call__(self, values: ColumnValues, target: pa.DataType) -> Result:
        """Decode values after the walk has located them."""
        plan = np.array([plan_of(target, {values.code: self})])
        plan, content = lay_out(plan, len(values), np.array([values.size // max(len(values), 1) + 1]))
        state = room(len(values))
        missing = _read(*values.given, plan, np.frombuffer(content, np.uint8), state)
        found = read_array(target, plan[0].tolist(), content, len(values), None)
        array, left = array_of(values, target, state, missing, *found.buffers()[1:])
        if left is None or self.rest is None:
            return array, left
        tags = np.where(left, values.tags, NULL)
        rest, left = self.rest(replace(values, tags=tags, count=int(np.count_nonzero(left))), target)
        return pc.coalesce(array, rest), left

    def entries(self, target: pa.DataType, code: int) -> list[int]:
        """Return the plan's entries for values with this tag."""
        low, high = self.bounds(target)
        bits = 8 * self.kind if 0 < self.kind < WORD else 0
        sign = 1 << bits - 1 if bits and low < 0 else 0
        return [code, self.kind, (1 << bits) - 1 if bits else -1, sign, low, high, self.more]


def plan_of(target: pa.DataType, casts: Mapping[int, Cast | None]) -> list[int]:
    """Return the plan's entries for a column, from its casts by the tags of their formats."""
    known = [cast.entries(target, code) for code, cast in casts.items() if isinstance(cast, PlannedCast)]
    if not known:
        return [0] * ENTRIES
    formats = [*known, [0] * FORMAT_ENTRIES][:2]
    width = OFFSET if known[0][KIND] == row_plan.TEXT else max(target.bit_width // 8, 1)
    return [*formats[0], *formats[1], width, *[0] * (ENTRIES - 2 * FORMAT_ENTRIES - 1)]


def parsed(values: ColumnValues, target: pa.DataType) -> Result:
    """Decode texts of floats with Arrow's parser; numbers too large for it become infinity, and are left."""
    array = TEXT(values, pa.string())[0].cast(target)
    endless = pc.is_inf(array).fill_null(False)
    left = endless.to_numpy(zero_copy_only=False)
    return (pc.if_else(endless, None, array), left) if left.any() else (array, None)


def within(low: int, high: int) -> Bounds:
    """Return the same bounds for each Arrow type."""
    return lambda target: (low, high)


def _signed(bits: int) -> tuple[int, int]:
    return -(1 << bits - 1), (1 << bits - 1) - 1


def text_after(version: int) -> PlannedCast:
    """Return the cast of texts after a version byte (jsonb_send()); -1: without one."""
    return PlannedCast(row_plan.TEXT, within(version, 0))


def big_endian(size: int, signed: bool = True) -> PlannedCast:
    """Return the cast of big-endian integers of ``size`` bytes, or of the bits of floats of this size.

    Integers that the Arrow type does not hold are left: a reader may keep a type that is narrower than theirs.
    """

    def bounds(target: pa.DataType) -> tuple[int, int]:
        if signed:
            return _signed(min(8 * size, target.bit_width))
        return 0, min((1 << 8 * size) - 1, _signed(target.bit_width)[1])

    return PlannedCast(size, bounds)


TEXT: Final = text_after(-1)
INTEGER_TEXT: Final = PlannedCast(row_plan.INTEGER, lambda target: _signed(target.bit_width))
