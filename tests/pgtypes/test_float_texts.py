"""The bits of floating-point numbers as text."""

import math
import struct

import pyarrow as pa

from pgoutput_construct.pgtypes.numbers import float_bits, in_lists


def test_bits() -> None:
    """As the server sends them; of slices, lists and no values too."""
    numbers = [1.5, None, -0.0, math.inf, math.nan, 5e-324]
    for kind, form in ((pa.float64(), ">d"), (pa.float32(), ">f")):
        found = float_bits(pa.array([0.0, *numbers], kind).slice(1)).to_pylist()
        expected = [None if each is None else struct.pack(form, each).hex() for each in numbers]
        assert found == [*expected[:4], "NaN", expected[5]]
    lists = pa.array([[9.0], [1.5, None], None, [], [math.nan]], pa.list_(pa.float64())).slice(1)
    assert in_lists(float_bits, lists).to_pylist() == [["3ff8000000000000", None], None, [], ["NaN"]]
    assert len(float_bits(pa.array([], pa.float64()))) == 0
