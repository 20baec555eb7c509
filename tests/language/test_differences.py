"""What differs between versions and releases: computed from the specification, for the page and the command."""

import pytest

from tools.language import SPEC, load, load_text
from tools.language.conditions import Every, Flag, Not, Some, either
from tools.language.differences import CHANGED, ENDED, NEW, differences, in_release, in_version, items

GROWN = """\
protocol: demo
title: Demo
source: demo
versions: [{version: 1, server: 10}, {version: 2, server: 14}, {version: 3, server: 20}]
parameters:
  proto_version: {type: int}
  parallel: {type: bool}
parts:
  - name: Origins
    blocks:
      - type: header
        fields: [{field: Int32, name: first}, {field: Int32, name: second, since: 3}]
messages:
  - name: First
    server: 10
    blocks:
      - type: header
        fields:
          - {field: Byte1('F'), name: tag}
          - {field: Int32, name: xid, until: 2}
          - {field: Int64, name: xid, since: 3}
          - {field: Int8, name: flags, bits: {1: old, 2: {meaning: more, since: 3}}}
          - {field: Int16, name: size, until: 2}
          - {field: Int16, name: size, since: 3, when: parallel}
          - {field: Origins, name: origins, since: 2}
          - {field: Int16, name: count}
      - type: repeat_1
        name: rows
        count: count
        class: Row
        blocks:
          - type: choice_1
            name: value
            alternatives:
              - {field: Byte1('a'), name: one}
              - field: Byte1('b')
                name: two
                since: 3
                then: [{field: Int32, name: number}]
  - name: Second
    server: 14
    since: 2
    blocks:
      - type: header
        fields:
          - {field: Byte1('S'), name: tag}
          - {field: Int32, name: added, since: 3}
          - {field: Int8, name: always}
options:
  - {name: proto_version, type: number, server: 10}
  - name: streaming
    server: 10
    values: [{name: "off", server: 10}, {name: parallel, server: 20, since: 3, sets: parallel}]
"""


def _differences(before: int, after: int) -> list[tuple[str, str, str, str]]:
    spec = load_text(GROWN)
    found = differences(spec, in_version(before), in_version(after))
    return [(each.mark, each.item.kind, each.item.name, each.item.text) for each in found]


def test_a_version_brings_and_ends() -> None:
    """Fields, variants, bits, branches, values of options; but not what is inside of something new."""
    assert _differences(2, 3) == [
        (ENDED, "field", "First.xid", "Int32"),
        (NEW, "field", "First.xid", "Int64"),
        (NEW, "bit", "First.flags", "2: more"),
        (CHANGED, "field", "First.size", "Int16"),
        (NEW, "branch", "First.rows[].value=two", "Byte1('b')"),
        (NEW, "field", "Second.added", "Int32"),
        (NEW, "field", "Origins.second", "Int32"),
        (NEW, "value", "streaming = parallel", ""),
    ]


def test_a_part_comes_with_what_refers_to_it() -> None:
    """A part has no version of its own; what a message has from its beginning comes with the message."""
    assert _differences(1, 2) == [
        (NEW, "field", "First.origins", "Origins"),
        (NEW, "message", "Second", ""),
        (NEW, "part", "Origins", ""),
    ]


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 3), (1, 3)])
def test_backwards_new_is_ended(before: int, after: int) -> None:
    """The order of the versions decides nothing else."""
    marks = {NEW: ENDED, ENDED: NEW, CHANGED: CHANGED}
    assert _differences(after, before) == [(marks[mark], *rest) for mark, *rest in _differences(before, after)]
    assert _differences(before, before) == []


def test_a_release_has_what_its_versions_have() -> None:
    """Without a server of its own, something is of the server of its version; nothing ends with a release."""
    found = list(differences(load_text(GROWN), in_release(10), in_release(20)))
    assert [(each.mark, each.item.name) for each in found] == [
        (NEW, "First.xid"),
        (NEW, "First.flags"),
        (NEW, "First.origins"),
        (NEW, "First.rows[].value=two"),
        (NEW, "Second"),
        (NEW, "Origins"),
        (NEW, "streaming = parallel"),
    ]


def test_releases_of_postgresql() -> None:
    """PostgreSQL 14 brought streaming, messages and binary values; 19 the status of the primary."""
    spec = load(SPEC / "pgoutput.yaml")
    found = {each.item.name for each in differences(spec, in_release(13), in_release(14))}
    assert {"Stream Start", "Message", "TupleData.columns[].value=binary", "messages", "Insert.xid"} <= found
    assert "Message.xid" not in found and not list(differences(spec, in_release(12), in_release(13)))
    envelope = load(SPEC / "replication.yaml")
    assert [each.item.name for each in differences(envelope, in_release(18), in_release(19))] == [
        "Primary Status Update",
        "Primary Status Request",
    ]


def test_items_are_unique() -> None:
    """Each item is listed once, after what it is in."""
    for name in ("pgoutput.yaml", "replication.yaml", "protocol.yaml"):
        found = items(load(SPEC / name))
        keys = [(item.kind, item.name, item.text) for item in found]
        assert len(set(keys)) == len(keys)
        assert all(found.index(item.parent) < index for index, item in enumerate(found) if item.parent)


NAMES = [f"flag_{letter}" for letter in "abcdefghi"]
"""More parameters than are tried in all combinations."""
FIELDS = [f"{{field: Inner, name: of_{name}, when: {name}, since: 2}}" for name in NAMES]
MANY = f"""\
protocol: demo
title: Demo
source: demo
versions: [{{version: 1}}, {{version: 2}}]
parameters: {{proto_version: {{type: int}}, {", ".join(f"{name}: {{type: bool}}" for name in NAMES)}}}
parts:
  - name: Inner
    blocks: [{{type: header, fields: [{{field: Int8, name: number}}]}}]
messages:
  - name: First
    blocks:
      - type: header
        fields: [{{field: Byte1('F'), name: tag}}, {", ".join(FIELDS)}]
"""


def test_conditions_with_many_parameters() -> None:
    """They differ between versions like others, and none is certain that was not tried."""
    found = differences(load_text(MANY), in_version(1), in_version(2))
    assert [each.item.name for each in found if each.mark == NEW] == [*(f"First.of_{name}" for name in NAMES), "Inner"]
    flags = tuple(map(Flag, NAMES))
    assert either([Not(flags[0]), Every(flags)]) == Some((Not(flags[0]), Every(flags)))
