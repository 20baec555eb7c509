"""The kernels of specifications that are not this one."""

from pathlib import Path

import pytest

from tools.generate.python.kernels import emit_kernels
from tools.language import load_text

SPEC = """
protocol: odd
title: Odd messages
source: nowhere
parameters: {{}}
messages:
  - name: First
    description: The first.
    blocks:
      - type: header
        fields:
          - {{field: Byte1('A'), name: tag, description: Marks it.}}
          - {{field: {one}, name: size, description: A number.}}
          - {{field: String, name: kind, description: A text.}}
  - name: Second
    description: The second.
    blocks:
      - type: header
        fields:
          - {{field: Byte1('B'), name: tag, description: Marks it.}}
          - {{field: {other}, name: size, description: A number.}}
"""


def schema(one: str, other: str) -> str:
    """Return the lines of the messages batch's columns."""
    text = emit_kernels(load_text(SPEC.format(one=one, other=other), "odd.yaml"))
    return text[text.index("MESSAGE_SCHEMA: Final") : text.index('"""The columns of')]


def test_fields_of_one_name_share_the_wider_column() -> None:
    """Numbers of any size, as long as both have a sign or none."""
    assert '("size", pa.uint64())' in schema("Int16", "Int64")
    assert '("size", pa.uint32())' in schema("Int32", "Int8")


def test_fields_that_do_not_fit_have_columns_of_their_own() -> None:
    """Named after their message; so is a field with the name of the column of kinds."""
    found = schema("Int32", "String")
    assert '("size", pa.uint32())' in found
    assert '("second_size", pa.string())' in found
    assert '("first_kind", pa.string())' in found


def test_a_specification_without_rows_has_kernels() -> None:
    """Nothing is indexed of messages without tuples."""
    text = emit_kernels(load_text(SPEC.format(one="Int8", other="Int8"), "odd.yaml"))
    assert "ROW_FIELDS: Final[Mapping[str, type]] = {}" in text
    assert "TUPLES: Final[Mapping[str, Callable[..., bool]]] = {}" in text


@pytest.mark.slow
def test_a_row_has_the_layout_of_its_own_payload() -> None:
    """A state inside of rows is looked up by payload, since rows are some of a batch's payloads."""
    text = Path("spec/pgoutput.yaml").read_text()
    count = "          - {field: Int16, name: column_count, description: Number of columns that follow.}\n"
    extra = "          - {field: Int8, name: extra, when: in_stream, since: 2, description: Something more.}\n"
    head, part = text.split("  - name: TupleData\n")
    changed = part.replace(count, extra + count, 1)
    kernels = emit_kernels(load_text(f"{head}  - name: TupleData\n{changed}", "spec/pgoutput.yaml"))
    find = kernels[kernels.index("def find_tuple_data(") :]
    assert "in_stream = in_stream_by_row[rows[row]]" in find[: find.index("return fits")]
