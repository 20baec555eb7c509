"""The codec of any layout is typed as strictly as that of today's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.generate.python.codec import emit_codec
from tools.generate.python.messages import emit_messages
from tools.language import SPEC as FOLDER
from tools.language import load_text

pytestmark = pytest.mark.slow

SPEC = """\
protocol: odd
title: Odd
source: nowhere
versions: [{version: 1, server: 10}, {version: 2, server: 14}]
parameters: {proto_version: {type: int}, wide: {type: bool}}
messages:
  - name: First
    blocks:
      - type: header
        fields:
          - {field: Byte1('F'), name: tag}
          - {field: Int8, name: info, bits: {1: origin, 2: marks}, since: 2}
          - {field: Int16, name: origin, when: {bit: 1, of: info}}
          - {field: String, name: origin_name, when: {bit: 1, of: info}}
          - {field: Int16, name: mark_count, when: {bit: 2, of: info}}
      - type: repeat_1
        name: marks
        count: mark_count
        when: {bit: 2, of: info}
        class: Mark
        blocks:
          - type: header
            fields: [{field: Int8, name: number}, {field: String, name: text, since: 2}]
      - type: header
        fields:
          - {field: Int8, name: name_count, since: 2}
      - type: repeat_2
        name: names
        count: name_count
        since: 2
        blocks: [{type: header, fields: [{field: String, name: label}]}]
      - type: header
        fields:
          - {field: Nested, name: nested}
          - {field: Int32, name: length, when: wide}
          - {field: Byten, name: data, length: length, when: wide}
          - {field: Int16, name: second_count}
      - type: repeat_3
        name: seconds
        count: second_count
        class: Second
        blocks:
          - type: header
            fields: [{field: Int8, name: number}, {field: Pair, name: pair, since: 2}]
parts:
  - name: Nested
    blocks:
      - type: header
        fields: [{field: Int8, name: flags, bits: {1: one}, since: 2}]
      - type: choice_1
        name: either
        alternatives:
          - field: Byte1('A')
            name: text
            then: [{field: String, name: text}]
          - {field: Byte1('B'), name: pair, then: Pair}
          - {field: Byte1('C'), name: none}
      - type: choice_2
        name: other
        alternatives:
          - field: Byte1('A')
            name: number
            then: [{field: Int8, name: number}]
          - {field: Byte1('B'), name: pair, then: Pair}
      - type: body
        fields: [{field: Int8, name: more, when: {bit: 1, of: flags}}]
  - name: Pair
    blocks: [{type: header, fields: [{field: Int32, name: x}, {field: String, name: y}]}]
"""
"""Bits of a field that is not always there, items that gain a field, repeats with conditions, and choices of types."""


def test_any_layout_is_strictly_typed(tmp_path: Path) -> None:
    """Mypy finds nothing in it."""
    spec = load_text(SPEC)
    codec = emit_codec(spec, messages="odd_messages")
    (tmp_path / "odd_messages.py").write_text(emit_messages(spec, union="PgoutputMessage"), "utf-8")
    here = codec.replace("from pgoutput_construct.wire import odd_messages as m", "import odd_messages as m")
    (tmp_path / "odd_codec.py").write_text(here, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "odd_codec.py", "odd_messages.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": f"{tmp_path}:{FOLDER.parent}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
