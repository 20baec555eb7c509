"""The texts of floating-point numbers as PostgreSQL writes them, for executors."""

from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from pgoutput_construct.pgtypes.float_bits import in_lists
from pgoutput_construct.pgtypes.numbers import float_text

__all__ = ["float_texts", "lists_of_float_texts"]

_FORMS: Final = {4: "!f", 8: "!d"}
"""How ``struct`` reads them, by their bytes."""


def float_texts(values: pa.Array) -> pa.Array:
    """Return the texts of floating-point numbers, as float4out() and float8out() write them."""
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
    size = numbers.itemsize
    data = numbers.astype(numbers.dtype.newbyteorder(">")).tobytes()
    written = map(partial(float_text, _FORMS[size]), (data[at : at + size] for at in range(0, len(data), size)))
    return pa.array(list(written), pa.string(), mask=np.asarray(values.is_null()))


def lists_of_float_texts(values: pa.Array) -> pa.Array:
    """Return the same of lists of numbers."""
    return in_lists(values, float_texts)
