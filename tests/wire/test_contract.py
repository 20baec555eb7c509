"""The names that users rely on: functions, classes, their fields in wire order, and how values look."""

import copy
import dataclasses
import pickle
import pydoc
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import pytest
from construct import Struct

import pgoutput_construct as pgo

FIELDS = {
    "Begin": "final_lsn commit_time xid",
    "Message": "xid flags lsn prefix content",
    "Commit": "commit_lsn end_lsn commit_time",
    "Origin": "origin_lsn name",
    "Relation": "xid relation_oid namespace name replica_identity columns",
    "RelationColumn": "flags name type_oid type_modifier",
    "Type": "xid type_oid namespace name",
    "Insert": "xid relation_oid new",
    "Update": "xid relation_oid old_kind old new",
    "Delete": "xid relation_oid old_kind old",
    "Truncate": "xid options relation_oids",
    "StreamStart": "xid first_segment",
    "StreamStop": "",
    "StreamCommit": "xid commit_lsn end_lsn commit_time",
    "StreamAbort": "xid subxid abort_lsn abort_time",
    "BeginPrepare": "prepare_lsn end_lsn prepare_time xid gid",
    "Prepare": "prepare_lsn end_lsn prepare_time xid gid",
    "StreamPrepare": "prepare_lsn end_lsn prepare_time xid gid",
    "CommitPrepared": "commit_lsn end_lsn commit_time xid gid",
    "RollbackPrepared": "prepare_end_lsn rollback_end_lsn prepare_time rollback_time xid gid",
    "XLogData": "wal_start wal_end send_time data",
    "PrimaryKeepalive": "wal_end send_time reply_requested",
    "StandbyStatusUpdate": "write_lsn flush_lsn apply_lsn send_time reply_requested",
    "HotStandbyFeedback": "send_time xmin xmin_epoch catalog_xmin catalog_xmin_epoch",
    "PrimaryStatusUpdate": "lsn oldest_full_xid next_full_xid send_time",
    "PrimaryStatusRequest": "send_time",
}


@pytest.mark.parametrize("name", FIELDS)
def test_class_has_its_fields_in_wire_order(name: str) -> None:
    """Each class is frozen and slotted and has the fields of the contract, in wire order; others are keyword-only."""
    cls, contract = getattr(pgo, name), FIELDS[name].split()
    assert [field.name for field in dataclasses.fields(cls) if field.name in contract or not field.kw_only] == contract
    assert cls.__dataclass_params__.frozen
    assert "__slots__" in vars(cls)


def test_a_field_that_may_be_absent_keeps_its_position_and_can_be_omitted() -> None:
    """By position, by name, or omitted: the same message."""
    assert pgo.Insert(None, 1, ()) == pgo.Insert(xid=None, relation_oid=1, new=()) == pgo.Insert(relation_oid=1, new=())
    assert pgo.Update(relation_oid=1, new=()) == pgo.Update(None, 1, None, None, ())
    assert pgo.StreamAbort(1, 2) == pgo.StreamAbort(1, 2, None, None)
    assert pgo.Begin.__match_args__ == ("final_lsn", "commit_time", "xid")
    match pgo.Insert(7, 1, (b"a",)):
        case pgo.Insert(xid, oid, (value,)):
            assert (xid, oid, value) == (7, 1, b"a")
        case _:
            raise AssertionError("the pattern does not fit")


@pytest.mark.parametrize(
    ("call", "missing"),
    [
        (pgo.Insert, "2 required positional arguments: 'relation_oid' and 'new'"),
        (lambda: pgo.Insert(relation_oid=1), "1 required positional argument: 'new'"),
        (lambda: pgo.Truncate(None, 0), "1 required positional argument: 'relation_oids'"),
        (pgo.Type, "3 required positional arguments: 'type_oid', 'namespace', and 'name'"),
        (lambda: pgo.StreamAbort(1), "1 required positional argument: 'subxid'"),  # type: ignore[call-arg]
    ],
)
def test_a_field_that_is_always_there_must_be_given(call: Callable[[], object], missing: str) -> None:
    """A missing one is a TypeError that names it, in Python's own words."""
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value).endswith(f".__init__() missing {missing}")


def test_messages_are_copied_and_replaced_like_other_dataclasses() -> None:
    """copy, deepcopy, pickle and replace return equal messages; replace changes only the given fields."""
    message = pgo.Insert(None, 1, (b"a", pgo.UNCHANGED))
    assert copy.copy(message) == copy.deepcopy(message) == pickle.loads(pickle.dumps(message)) == message
    assert dataclasses.replace(message, xid=5) == pgo.Insert(5, 1, (b"a", pgo.UNCHANGED))
    assert {field.name for field in dataclasses.fields(message)} == set(message.__dataclass_fields__)


@pytest.mark.parametrize("name", FIELDS)
def test_help_describes_every_field(name: str) -> None:
    """What help shows of a class has a line for each field."""
    text = pydoc.plain(pydoc.render_doc(getattr(pgo, name)))
    for field in FIELDS[name].split():
        assert f" {field}: " in text.split("Attributes:")[1].split("Methods defined here")[0]


def test_every_public_name_exists() -> None:
    """Every name in __all__ exists."""
    assert [name for name in pgo.__all__ if not hasattr(pgo, name)] == []


@pytest.mark.parametrize("name", [name for name in FIELDS if name != "RelationColumn"])
def test_definition_is_a_struct_that_parses_and_builds(name: str) -> None:
    """The construct itself is public under the message's name."""
    module = pgo.definitions if hasattr(pgo.definitions, name) else pgo.frame_definitions
    assert isinstance(getattr(module, name), Struct)


def test_definitions_take_parameters_as_keywords() -> None:
    """A definition parses alone, with its parameters as keywords, and builds what it has parsed."""
    data = bytes.fromhex("49 00000007 00004001 4e 0002 6e 74 00000001 35")
    inside = {"proto_version": 2, "in_stream": True, "parallel": False}
    parsed = pgo.definitions.Insert.parse(data, **inside)
    assert (parsed.xid, parsed.relation_oid, parsed.new) == (7, 16385, (None, b"5"))
    assert pgo.definitions.Insert.build(parsed, **inside) == data
    assert pgo.definitions.Insert.build({"xid": 7, "relation_oid": 16385, "new": [None, b"5"]}, **inside) == data


def test_definitions_know_their_parameters() -> None:
    """What is left out is off, at the first version, in other definitions, too; a wrong one is named."""
    data = bytes.fromhex("49 00004001 4e 0002 6e 74 00000001 35")
    assert pgo.definitions.Insert.parse(data).new == (None, b"5")
    assert pgo.definitions.Insert.build({"relation_oid": 16385, "new": (None, b"5")}) == data
    assert Struct("inner" / pgo.definitions.Insert).parse(data).inner.relation_oid == 16385
    assert pgo.definitions.TupleData.parse(data[6:]) == (None, b"5")
    for call in (
        partial(pgo.definitions.Insert.parse, data),
        partial(pgo.definitions.Insert.build, {}),
        pgo.definitions.Begin.sizeof,
    ):
        with pytest.raises(
            pgo.PgoutputError, match=r"unknown parameter 'in_steam' \(did you mean 'in_stream'\?\): the parameters are"
        ):
            call(in_steam=True)


def test_unchanged_and_messages_survive_pickling() -> None:
    """UNCHANGED stays the same object, and Binary stays Binary."""
    message = pgo.Insert(None, 1, (pgo.UNCHANGED, pgo.Binary(b"\0"), b"x", None))
    again = pickle.loads(pickle.dumps(message))
    assert again == message
    assert again.new[0] is pgo.UNCHANGED
    assert type(again.new[1]) is pgo.Binary


def test_values_print_readably() -> None:
    """Markers, binary values and LSNs have a readable repr."""
    assert repr(pgo.UNCHANGED) == str(pgo.UNCHANGED) == "UNCHANGED"
    assert repr(pgo.Binary(b"\1")) == r"Binary(b'\x01')"
    assert repr(pgo.Insert(None, 1, (None,))) == "Insert(xid=None, relation_oid=1, new=(None,))"


def test_errors_are_value_errors_under_one_root() -> None:
    """Everything that is raised is a PgoutputError, which is a ValueError."""
    assert issubclass(pgo.PgoutputError, ValueError)
    for name in ("DecodeError", "EncodeError", "ProtocolError", "SpecError", "ChangeLogError"):
        assert issubclass(getattr(pgo, name), pgo.PgoutputError)


def test_errors_with_a_path_survive_pickling() -> None:
    """An error raised on another machine keeps its path and offset."""
    with pytest.raises(pgo.DecodeError) as caught:
        pgo.parse(b"B")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.path, again.offset) == (str(caught.value), "Begin.final_lsn", 1)


def test_import_loads_nothing_but_construct() -> None:
    """The core imports neither an extra nor a tool."""
    extras = [
        "pyarrow",
        "numba",
        "numpy",
        "psycopg",
        "pyspark",
        "pandas",
        "click",
        "rich",
        "hypothesis",
        "yaml",
        "tools",
    ]
    code = f"import sys, pgoutput_construct; print([m for m in {extras} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
