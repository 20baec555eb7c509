"""What is not a message is refused, with the field's path and the offset in bytes."""

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.testing import ParseOptions
from pgoutput_construct.wire.messages import BY_TAG
from tests.wire.conftest import Engine
from tests.wire.samples import SAMPLES


def test_samples_have_every_kind() -> None:
    """All nineteen kinds are sampled."""
    assert {type(message) for _, _, message in SAMPLES.values()} == set(BY_TAG.values())


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_parses_and_builds(engine: Engine, name: str) -> None:
    """The object and the bytes written by hand are each other's."""
    options, data, message = SAMPLES[name]
    assert engine.parse(data, **options._asdict()) == message
    assert engine.build(message, **options._asdict()) == data


@pytest.mark.parametrize("name", SAMPLES)
def test_every_truncation_is_refused(engine: Engine, name: str) -> None:
    """Every shorter prefix is a DecodeError whose offset lies within it."""
    options, data, _ = SAMPLES[name]
    for size in range(len(data)):
        with pytest.raises(pgo.DecodeError) as caught:
            engine.parse(data[:size], **options._asdict())
        assert caught.value.offset is not None
        assert caught.value.offset <= size


@pytest.mark.parametrize("name", SAMPLES)
def test_every_trailing_byte_is_refused(engine: Engine, name: str) -> None:
    """A byte too many is a DecodeError at the end of the message."""
    options, data, _ = SAMPLES[name]
    with pytest.raises(pgo.DecodeError, match="1 byte follows") as caught:
        engine.parse(data + b"\0", **options._asdict())
    assert caught.value.offset == len(data)


NEEDS = {"Stream Start": 2, "Stream Stop": 2, "Stream Commit": 2}
UNASKED = ["Stream Abort", "Begin Prepare", "Prepare", "Commit Prepared", "Rollback Prepared", "Stream Prepare"]
"""What servers also send to clients whose protocol version does not have it."""


@pytest.mark.parametrize("name", NEEDS)
def test_message_of_a_newer_version_is_refused(engine: Engine, name: str) -> None:
    """A message is neither parsed nor built in a version without it, and the error names the first version with it."""
    _, data, message = SAMPLES[name]
    for version in range(1, NEEDS[name]):
        with pytest.raises(pgo.DecodeError, match=f"proto_version={NEEDS[name]}"):
            engine.parse(data, version)
        with pytest.raises(pgo.EncodeError, match=f"proto_version={NEEDS[name]}"):
            engine.build(message, version)


@pytest.mark.parametrize("version", pgo.PROTOCOL_VERSIONS)
@pytest.mark.parametrize("name", UNASKED)
def test_what_servers_send_unasked_is_accepted_in_every_version(engine: Engine, name: str, version: int) -> None:
    """PostgreSQL 18 sends Stream Abort without streaming; a slot made with two_phase sends the others at version 1."""
    _, data, message = SAMPLES[name]
    assert engine.parse(data, version) == message
    assert engine.build(message, version) == data


DAMAGED = {
    "unknown kind": ("", "7a", "", 0),
    "no bytes": ("", "", "", 0),
    "reserved flags": ("Commit", "43 01", "Commit.flags", 1),
    "reserved flags of a prepare": ("Prepare", "50 80", "Prepare.flags", 1),
    "message flags": ("Message", "4d 02", "Message.flags", 1),
    "replica identity": ("Relation", "52 00004001 00 00 78", "Relation.replica_identity", 7),
    "column flags": (
        "Relation", "52 00004001 00 00 64 0002 00 00 00000000 00000000 02", "Relation.columns[1].flags", 20,
    ),
    "column name": (
        "Relation", "52 00004001 00 00 64 0002 00 00 00000000 00000000 00 6162", "Relation.columns[1].name", 21,
    ),
    "more columns than bytes": ("Relation", "52 00004001 00 00 64 ffff", "Relation.columns[0].flags", 10),
    "truncate options": ("Truncate", "54 00000000 04", "Truncate.options", 5),
    "more relations than bytes": ("Truncate", "54 ffffffff 00", "Truncate.relation_oids[0]", 6),
    "first segment": ("Stream Start", "53 00000001 02", "StreamStart.first_segment", 5),
    "new tag": ("Insert", "49 00004001 4b", "Insert.new_tag", 5),
    "old tag": ("Update", "55 00004001 58", "Update.old_kind", 5),
    "absent old tuple": ("Delete by key", "44 00004001 4e", "Delete.old_kind", 5),
    "kind of value": ("Insert", "49 00004001 4e 0002 6e 78", "Insert.new.columns[1]", 9),
    "a value longer than the rest": ("Insert", "49 00004001 4e 0001 74 ffffffff 00", "Insert.new.columns[0].data", 13),
    "content longer than the rest": ("Message", "4d 00 0000000000000000 00 80000000", "Message.content", 15),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGED)
def test_damage_is_named_with_path_and_offset(engine: Engine, case: str) -> None:
    """Each damaged field is a DecodeError with message, path and offset."""
    sample, hexadecimal, path, offset = DAMAGED[case]
    options = SAMPLES[sample][0] if sample else ParseOptions()
    with pytest.raises(pgo.DecodeError) as caught:
        engine.parse(bytes.fromhex(hexadecimal), **options._asdict())
    error = caught.value
    assert (error.path, error.offset) == (path, offset)
    assert error.message == (path.split(".")[0] or None)
    assert path in str(error)


UNBUILDABLE = {
    "an LSN below zero": (pgo.Begin(-1, pgo.Timestamp(0), 1), "Begin.final_lsn"),  # type: ignore[arg-type]
    "an xid too large": (pgo.Begin(pgo.Lsn(0), pgo.Timestamp(0), 2**32), "Begin.xid"),
    "a time too large": (pgo.Begin(pgo.Lsn(0), pgo.Timestamp(2**63), 1), "Begin.commit_time"),
    "a text for a number": (pgo.Begin("0/1", pgo.Timestamp(0), 1), "Begin.final_lsn"),  # type: ignore[arg-type]
    "a fraction": (pgo.Begin(1.5, pgo.Timestamp(0), 1), "Begin.final_lsn"),  # type: ignore[arg-type]
    "a NUL in a name": (pgo.Origin(pgo.Lsn(0), "a\0b"), "Origin.name"),
    "bytes for a name": (pgo.Origin(pgo.Lsn(0), b"a"), "Origin.name"),  # type: ignore[arg-type]
    "a surrogate that is no byte": (pgo.Origin(pgo.Lsn(0), "\ud800"), "Origin.name"),
    "surrogates that are UTF-8": (pgo.Origin(pgo.Lsn(0), "\udcc3\udca9"), "Origin.name"),
    "no name": (pgo.Origin(pgo.Lsn(0), None), "Origin.name"),  # type: ignore[arg-type]
    "an xid outside a stream": (pgo.Insert(7, 1, ()), "Insert.xid"),
    "a text in a row": (pgo.Insert(None, 1, (b"a", "b")), "Insert.new.columns[1]"),  # type: ignore[arg-type]
    "a bytearray in a row": (pgo.Insert(None, 1, (bytearray(),)), "Insert.new.columns[0]"),  # type: ignore[arg-type]
    "a row that is none": (pgo.Insert(None, 1, 5), "Insert.new.columns"),  # type: ignore[arg-type]
    "no row": (pgo.Insert(None, 1, None), "Insert.new.columns"),  # type: ignore[arg-type]
    "too many columns": (pgo.Insert(None, 1, (None,) * 65536), "Insert.new.column_count"),
    "an old row without a kind": (pgo.Update(None, 1, None, (b"1",), ()), "Update.old"),
    "a kind without an old row": (pgo.Update(None, 1, "K", None, ()), "Update.old.columns"),
    "a kind that is none": (pgo.Update(None, 1, "N", (), ()), "Update.old_kind"),
    "a delete without a kind": (pgo.Delete(None, 1, None, ()), "Delete.old_kind"),  # type: ignore[arg-type]
    "a replica identity that is none": (pgo.Relation(None, 1, "", "t", "x", ()), "Relation.replica_identity"),
    "a column that is none": (pgo.Relation(None, 1, "", "t", "d", (5,)), "Relation.columns[0]"),  # type: ignore[arg-type]
    "a column that is a mapping": (pgo.Relation(None, 1, "", "t", "d", ({"flags": 0},)), "Relation.columns[0]"),  # type: ignore[arg-type]
    "a column's flags": (
        pgo.Relation(None, 1, "", "t", "d", (pgo.RelationColumn(2, "a", 1, -1),)), "Relation.columns[0].flags",
    ),
    "a type modifier too large": (
        pgo.Relation(None, 1, "", "t", "d", (pgo.RelationColumn(0, "a", 1, 2**31),)),
        "Relation.columns[0].type_modifier",
    ),
    "options that are none": (pgo.Truncate(None, 4, ()), "Truncate.options"),
    "content that is text": (pgo.Message(None, 0, pgo.Lsn(0), "", "text"), "Message.content"),  # type: ignore[arg-type]
    "content that has no length": (pgo.Message(None, 0, pgo.Lsn(0), "", None), "Message.content"),  # type: ignore[arg-type]
    "an abort's time without parallel": (pgo.StreamAbort(1, 1, pgo.Lsn(0), pgo.Timestamp(0)), "StreamAbort.abort_lsn"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNBUILDABLE)
def test_value_that_cannot_be_carried_is_refused(engine: Engine, case: str) -> None:
    """Each impossible value is an EncodeError with the field's path."""
    message, path = UNBUILDABLE[case]
    with pytest.raises(pgo.EncodeError) as caught:
        engine.build(message)
    assert caught.value.path == path


def test_fields_of_a_stream_are_needed_inside_it(engine: Engine) -> None:
    """Inside a stream the xid is needed, and under parallel the abort's LSN and time."""
    with pytest.raises(pgo.EncodeError, match=r"Insert\.xid"):
        engine.build(pgo.Insert(None, 1, ()), 2, "on", in_stream=True)
    with pytest.raises(pgo.EncodeError, match=r"StreamAbort\.abort_lsn"):
        engine.build(pgo.StreamAbort(1, 1), 4, "parallel")


@pytest.mark.parametrize("thing", [None, 5, "B", object(), pgo.UNCHANGED, pgo.RelationColumn(0, "a", 1, 1)])
def test_what_is_no_message_is_refused(thing: object) -> None:
    """Neither parse nor build raises anything but its own error."""
    with pytest.raises(pgo.DecodeError):
        pgo.parse(thing)  # type: ignore[arg-type]
    with pytest.raises(pgo.EncodeError):
        pgo.build(thing)  # type: ignore[arg-type]
    with pytest.raises(pgo.EncodeError):
        pgo.build_frame(thing)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_bytes_like_object_is_parsed(kind: type) -> None:
    """Buffers of every kind are taken."""
    _, data, message = SAMPLES["Begin"]
    assert pgo.parse(kind(data)) == message


@pytest.mark.parametrize(
    "options",
    [{"proto_version": 0}, {"proto_version": 99}, {"proto_version": "1"}, {"streaming": "yes"}, {"streaming": True}],
)
def test_unknown_options_are_refused(options: dict[str, object]) -> None:
    """Options that PostgreSQL does not know are PgoutputErrors that list the known ones."""
    with pytest.raises(pgo.PgoutputError, match="must be"):
        pgo.parse(b"E", **options)  # type: ignore[arg-type]


def test_huge_lengths_allocate_nothing(engine: Engine) -> None:
    """Lengths of 4 GiB and counts of 4 billion are compared with the bytes that are left, at once."""
    import tracemalloc

    tracemalloc.start()
    for hexadecimal in (
        "49 00004001 4e 0001 74 ffffffff 00",
        "54 ffffffff 00 00000001",
        "4d 00 0000000000000000 00 ffffffff",
    ):
        with pytest.raises(pgo.DecodeError):
            engine.parse(bytes.fromhex(hexadecimal))
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


class _Hostile:
    """An object whose every method raises."""

    def _raise(self, *_: object) -> None:
        raise RuntimeError("no")

    __index__ = __eq__ = __len__ = __repr__ = __hash__ = __str__ = _raise  # type: ignore[assignment]


HOSTILE = {"raises": _Hostile(), "long": 10**5000, "list": [], "dict": {}, "nan": float("nan")}


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("name", ["Begin", "Insert", "Relation", "Update", "Truncate", "Message"])
def test_no_value_makes_build_raise_anything_else(engine: Engine, name: str, value: object) -> None:
    """Objects that raise from every method, and numbers too long to be printed, are EncodeErrors."""
    options, data, message = SAMPLES[name]
    for field in message.__dataclass_fields__:
        if field == "TAG":
            continue
        values = {other: getattr(message, other) for other in message.__dataclass_fields__ if other != "TAG"}
        try:
            built = engine.build(type(message)(**(values | {field: value})), **options._asdict())
        except pgo.EncodeError:
            continue
        assert type(value) is list, f"{field} took a {type(value)}"
        assert built != data or values[field] == ()


@pytest.mark.parametrize("option", ["proto_version", "streaming", "in_stream"])
def test_no_option_makes_parse_raise_anything_else(option: str) -> None:
    """Unhashable options are refused like others."""
    with pytest.raises(pgo.PgoutputError):
        pgo.parse(b"E", **{option: []})  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["proto_version", "streaming"])
def test_no_option_makes_a_session_raise_anything_else(option: str) -> None:
    """A session checks its options as parse does."""
    with pytest.raises(pgo.PgoutputError):
        pgo.Session(**{option: []})  # type: ignore[arg-type]


def test_released_buffer_is_refused() -> None:
    """A memoryview that was released has no bytes."""
    view = memoryview(b"E")
    view.release()
    with pytest.raises(pgo.DecodeError, match="cannot be read"):
        pgo.parse(view)
