"""Specifications without a fault, from which the broken ones are made."""

import re

import pytest

from pgoutput_construct import SpecError
from tools.language import load_text

__all__ = ["FRAMED", "SOUND", "assert_refused"]

SOUND = """\
protocol: demo
title: Demo
source: nowhere
versions:
  - {version: 1, server: 10}
  - {version: 2, server: 14}
parameters:
  proto_version: {type: int}
  in_stream: {type: bool}
states:
  - {name: idle}
messages:
  - name: First
    in: [idle]
    blocks:
      - type: header
        fields:
          - {field: Byte1('F'), name: tag}
          - {field: Int32, name: xid, when: in_stream, since: 2}
          - {field: Int8, name: flags, bits: {1: one}}
          - {field: Int16, name: row_count}
      - type: repeat_1
        name: rows
        count: row_count
        class: FirstRow
        blocks:
          - type: header
            fields:
              - {field: String, name: label}
              - {field: Row, name: row}
  - name: Second
    in: [idle]
    blocks:
      - type: header
        fields:
          - {field: Byte1('S'), name: tag}
      - type: choice_1
        name: old
        optional: true
        alternatives:
          - {field: Byte1('K'), name: key, then: Row}
          - {field: Byte1('O'), name: row, then: Row}
      - type: body
        fields:
          - {field: Byte1('N'), name: new_tag}
          - {field: Row, name: new}
parts:
  - name: Row
    blocks:
      - type: choice_1
        name: value
        alternatives:
          - {field: Byte1('n'), name: "null", python: None}
          - field: Byte1('t')
            name: text
            python: bytes
            then: [{field: Int32, name: length}, {field: Byten, name: data, length: length}]
"""

FRAMED = """\
protocol: framed
title: Framed
source: nowhere
states:
  - {name: start}
  - {name: ready}
messages:
  - name: Hello
    sender: client
    in: [start]
    enters: ready
    blocks:
      - type: header
        fields:
          - {field: Int32, name: length, measures: rest}
          - {field: Int16(3), name: version}
      - type: repeat_1
        name: settings
        until: Int8(0)
        class: Setting
        blocks:
          - type: header
            fields:
              - {field: String, name: label}
              - {field: String, name: value}
  - name: Cancel
    sender: client
    in: [start]
    blocks:
      - type: header
        fields:
          - {field: Int32, name: length, measures: rest}
          - {field: Int32(80877102), name: code}
  - name: Refusal
    sender: server
    in: [start]
    blocks:
      - type: header
        fields:
          - {field: Byte1('N'), name: tag}
  - name: Row
    sender: server
    in: [ready]
    blocks:
      - type: header
        fields:
          - {field: Byte1('R'), name: tag}
          - {field: Int32, name: length, measures: rest}
          - {field: Int16, name: value_count}
      - type: repeat_1
        name: row
        count: value_count
        blocks:
          - type: header
            fields:
              - {field: Int32, name: size, signed: true}
              - {field: Byten, name: value, length: size, absent: -1}
  - name: Notice
    in: [ready]
    blocks:
      - type: header
        fields:
          - {field: Byte1('N'), name: tag}
          - {field: Int32, name: length, measures: rest}
      - type: repeat_1
        name: details
        until: Int8(0)
        blocks:
          - {type: header, fields: [{field: Detail, name: detail}]}
      - type: choice_1
        name: end
        alternatives:
          - {field: Byte1('A'), name: some, then: [{field: String, name: more}]}
          - {field: Byte1('Z'), name: nothing}
parts:
  - name: Detail
    blocks:
      - type: header
        fields:
          - {field: Int8, name: kind, values: {S: severity, M: message}}
          - {field: String, name: text}
"""


def assert_refused(old: str, new: str, problem: str, sound: str = SOUND) -> None:
    """Check that ``new`` in place of ``old`` in a ``sound`` one is a SpecError with file, line, problem and remedy."""
    assert old in sound
    with pytest.raises(SpecError) as caught:
        load_text(sound.replace(old, new, 1), "broken.yaml")
    text = str(caught.value)
    assert re.match(r"broken\.yaml:\d+: .+[.?] .+", text, re.DOTALL), text
    assert problem in text
