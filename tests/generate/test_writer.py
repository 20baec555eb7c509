"""The writer of generated Python: depth follows the blocks."""

import pytest

from tools.generate.writer import Writer


def test_lines_are_as_deep_as_their_blocks() -> None:
    """Blocks in blocks, and back out again; a line of several lines moves as one, its empty lines stay empty."""
    write = Writer()
    write("a = 1", "b = 2")
    with write.block("if a:"):
        with write.block("for c in b:"):
            write('"""Two lines.\n\n  Indented.\n"""')
        write("d = 3")
    write("e = 4")
    expected = ["a = 1", "b = 2", "if a:", "    for c in b:", '        """Two lines.', "", "          Indented."]
    assert str(write).splitlines() == [*expected, '        """', "    d = 3", "e = 4"]


def test_an_empty_block_is_valid_python() -> None:
    """A block in which nothing was written does nothing."""
    write = Writer()
    with write.block("if a:"):
        pass
    assert str(write) == "if a:\n    pass"


def test_depth_survives_an_error() -> None:
    """What is written after a block that raised stands where it began."""
    write = Writer()
    with pytest.raises(ValueError), write.block("if a:"):
        raise ValueError
    write("b = 1")
    assert str(write).splitlines()[-1] == "b = 1"
