"""Cases of values, in text and binary format, by the types of columns."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from pgoutput_construct.conformance.case_group import BINARY, TEXT, CaseGroup
from pgoutput_construct.conformance.case_writer import CaseWriter, TypedBinary
from pgoutput_construct.wire import messages as m

__all__ = ["GROUP"]

GROUP = CaseGroup("values", "Values in text and binary format")
_TEXT = "protocol-logicalrep-message-formats-TupleData: 't', the output function's text; worker.c slot_store_data()"
_BINARY = "protocol-logicalrep-message-formats-TupleData: 'b', the send function's bytes; worker.c slot_store_data()"


def _rows(w: CaseWriter, values: Mapping[str, Sequence[Any]]) -> None:
    """Write a table with a column of each type, and rows with their values; those that a list lacks are NULL."""
    columns = {f"c{number}": kind for number, kind in enumerate(values, 1)}
    table = w.table("things", {"id": "int4", **columns}, key=["id"])
    rows = zip_longest(*values.values())
    w.commit(*(table.insert({"id": n, **dict(zip(columns, row, strict=True))}) for n, row in enumerate(rows)))


@GROUP.case("booleans", _TEXT, needs=TEXT)
def booleans(w: CaseWriter) -> None:
    """Report booleans."""
    _rows(w, {"bool": ["t", "f"]})


@GROUP.case("integers", _TEXT, needs=TEXT)
def integers(w: CaseWriter) -> None:
    """Report the least and the greatest integers of 2, 4 and 8 bytes, and OIDs, without a loss of precision."""
    _rows(
        w,
        {
            "int2": ["-32768", "32767", "0"],
            "int4": ["-2147483648", "2147483647", "0"],
            "int8": ["-9223372036854775808", "9223372036854775807", "9007199254740993"],
            "oid": ["0", "4294967295"],
        },
    )


@GROUP.case("numerics", _TEXT, needs=TEXT)
def numerics(w: CaseWriter) -> None:
    """Report numerics exactly: trailing zeros, more digits than a double has, NaN and infinity."""
    digits = "12345678901234567890123456789.01234567890123456789012345678900"
    _rows(w, {"numeric": ["0.1", "1.50", "-0.000000000000000000000001", digits, "NaN", "Infinity", "-Infinity"]})


@GROUP.case("floats", _TEXT, needs=TEXT)
def floats(w: CaseWriter) -> None:
    """Report floating-point numbers, NaN and infinities included."""
    double = ["1.7976931348623157e+308", "5e-324", "-0", "NaN", "Infinity", "-Infinity", "0.1", "1e+20"]
    _rows(w, {"float4": ["3.4028235e+38", "1e-45", "NaN", "-Infinity", "0.1"], "float8": double})


@GROUP.case("characters", _TEXT, needs=TEXT)
def characters(w: CaseWriter) -> None:
    """Report text of each character type, an empty one and blanks at the end included."""
    texts = ["", "null", "NULL", "ends in blanks  ", "0x00", "12:30", "true"]
    _rows(w, {"text": texts, "varchar": texts, "bpchar": ["a    ", "     "], "name": ["a_name"]})


@GROUP.case("bytes", _TEXT, needs=TEXT)
def bytes_(w: CaseWriter) -> None:
    """Report bytea, zero bytes included."""
    _rows(w, {"bytea": ["\\x", "\\x00", "\\x00ff5c78276e", "\\xdeadbeef"]})


@GROUP.case("dates", _TEXT, needs=TEXT)
def dates(w: CaseWriter) -> None:
    """Report dates and times, before Christ, in far years and infinite ones included."""
    _rows(
        w,
        {
            "date": ["2026-01-31", "4713-01-01 BC", "5874897-12-31", "infinity", "-infinity", "0001-01-01"],
            "timestamp": ["2026-01-31 12:30:00.000001", "0044-03-15 00:00:00 BC", "infinity", "294276-12-31 23:59:59"],
            "timestamptz": ["2026-01-31 12:30:00+00", "0044-03-15 00:00:00+00 BC", "-infinity"],
            "time": ["24:00:00", "00:00:00.000001"],
            "timetz": ["12:30:00+05:30", "23:59:59.999999-15:59"],
            "interval": ["1 year 2 mons -3 days +04:05:06.789", "-178000000 years", "00:00:00"],
        },
    )


@GROUP.case("documents", _TEXT, needs=TEXT)
def documents(w: CaseWriter) -> None:
    """Report JSON as it is: order and repeats of members, large numbers, null of JSON as other than NULL."""
    kept = ['{"b": 1,  "a": 2, "b": 3}', "null", '"\\u00e9"', "[]", "123456789012345678901234567890.10"]
    normal = ['{"a": 2, "b": 3}', "null", "123456789012345678901234567890.10", '{"": [1, "2", null]}']
    _rows(w, {"json": kept, "jsonb": normal, "uuid": ["00000000-0000-0000-0000-000000000000"]})


@GROUP.case("arrays", _TEXT, needs=TEXT)
def arrays(w: CaseWriter) -> None:
    """Report arrays: empty ones, NULL elements, quotes, several dimensions and other lower bounds."""
    numbers = ["{}", "{1,NULL,3}", "{{1,2},{3,4}}", "[0:1]={7,8}"]
    texts = ['{a,"b c","",NULL,"NULL"}', '{"say \\"no\\"","C:\\\\new","{}",","}']
    _rows(w, {"_int4": numbers, "_text": texts})


@GROUP.case("others", _TEXT, needs=TEXT)
def others(w: CaseWriter) -> None:
    """Report ranges, network addresses, bit strings, geometric and search types as texts."""
    _rows(
        w,
        {
            "int4range": ["[1,5)", "empty", "(,)"],
            "inet": ["10.0.0.1", "2001:db8::1/64"],
            "bit": ["1"],
            "varbit": ["", "10101"],
            "point": ["(1.5,-2)"],
            "tsvector": ["'cat':2B 'fat':1A"],
            "macaddr": ["08:00:2b:01:02:03"],
        },
    )


@GROUP.case("user-types", _TEXT + "; proto.c logicalrep_write_typ()", needs=TEXT)
def user_types(w: CaseWriter) -> None:
    """Report values of enums, composite types and domains, whose Types precede their Relation."""
    types = {
        "mood": m.Type(type_oid=16501, namespace="public", name="mood"),
        "place": m.Type(type_oid=16502, namespace="public", name="a place"),
        "_mood": m.Type(type_oid=16503, namespace="public", name="_mood"),
        "amount": m.Type(type_oid=16504, namespace="", name="numeric"),
    }
    columns = {"id": "int4", "now": "mood", "spot": "place", "all": "_mood", "paid": "amount"}
    table = w.table("things", columns, key=["id"], types=types)
    w.commit(table.insert({"id": 1, "now": "ok", "spot": '(1,"a ""b""",)', "all": "{ok,sad}", "paid": "1.50"}))
    w.commit(table.update({"id": 1, "now": "sad", "spot": None, "all": "{}", "paid": "NaN"}))


@GROUP.case("binary-numbers", _BINARY, needs=BINARY)
def binary_numbers(w: CaseWriter) -> None:
    """Take booleans, integers, floating-point numbers and numerics in binary format."""
    _rows(
        w,
        {
            "bool": [TypedBinary("t", "01"), TypedBinary("f", "00")],
            "int2": [TypedBinary("-32768", "8000"), TypedBinary("32767", "7fff")],
            "int4": [TypedBinary("-1", "ffffffff"), TypedBinary("2147483647", "7fffffff")],
            "int8": [
                TypedBinary("-9223372036854775808", "8000000000000000"),
                TypedBinary("9007199254740993", "0020000000000001"),
            ],
            "float8": [TypedBinary("0.1", "3fb999999999999a"), TypedBinary("NaN", "7ff8000000000000")],
            "numeric": [
                TypedBinary("12345.678", "0003000100000003000109291a7c"),
                TypedBinary("NaN", "00000000c0000000"),
            ],
        },
    )


@GROUP.case("binary-texts", _BINARY, needs=BINARY)
def binary_texts(w: CaseWriter) -> None:
    """Take text, bytea, uuid and jsonb in binary format, where a jsonb begins with its version."""
    uuid = "11111111-2222-3333-4444-555555555555"
    _rows(
        w,
        {
            "text": [TypedBinary("naïve", "naïve".encode().hex()), TypedBinary("", "")],
            "bytea": [TypedBinary("\\x00ff", "00ff"), TypedBinary("\\x", "")],
            "uuid": [TypedBinary(uuid, uuid.replace("-", ""))],
            "jsonb": [TypedBinary('{"a": 1}', "01" + b'{"a": 1}'.hex())],
        },
    )


@GROUP.case("binary-times", _BINARY, needs=BINARY)
def binary_times(w: CaseWriter) -> None:
    """Take dates and times in binary format, infinity included."""
    _rows(
        w,
        {
            "date": [TypedBinary("2000-01-02", "00000001"), TypedBinary("infinity", "7fffffff")],
            "timestamp": [
                TypedBinary("2000-01-01 00:00:01", "00000000000f4240"),
                TypedBinary("-infinity", "8000000000000000"),
            ],
            "time": [TypedBinary("24:00:00", "000000141dd76000")],
            "interval": [TypedBinary("1 mon 2 days 00:00:03", "00000000002dc6c00000000200000001")],
        },
    )


@GROUP.case("binary-arrays", _BINARY, needs=BINARY)
def binary_arrays(w: CaseWriter) -> None:
    """Take arrays in binary format, a NULL element included."""
    head = "00000001" + "00000001" + "00000017"
    items = "00000003" + "00000001" + "0000000400000001" + "ffffffff" + "0000000400000003"
    _rows(w, {"_int4": [TypedBinary("{1,NULL,3}", head + items), TypedBinary("{}", "000000000000000000000017")]})


@GROUP.case("binary-and-text", "proto.c logicalrep_write_tuple(): 'b' if the type can be sent", needs=BINARY)
def binary_and_text(w: CaseWriter) -> None:
    """Take tuples in which some values are in binary format, others in text format, NULL, or not sent."""
    table = w.table("things", {"id": "int4", "a": "text", "b": "int8", "c": "text"}, key=["id"])
    one = TypedBinary("1", "00000001")
    w.commit(table.insert({"id": one, "a": "text", "b": TypedBinary("2", "0000000000000002"), "c": "long"}))
    w.commit(table.update({"id": one, "a": None, "b": "3", "c": m.UNCHANGED}))


@GROUP.case("binary-user-type", "enum.c enum_send(): the label", needs=BINARY)
def binary_user_type(w: CaseWriter) -> None:
    """Take values of an enum in binary format, which is its label."""
    mood = m.Type(type_oid=16501, namespace="public", name="mood")
    table = w.table("things", {"id": "int4", "now": "mood"}, key=["id"], types={"mood": mood})
    w.commit(table.insert({"id": TypedBinary("1", "00000001"), "now": TypedBinary("ok", "6f6b")}))


@GROUP.case("binary-old-rows", _BINARY, needs=BINARY)
def binary_old_rows(w: CaseWriter) -> None:
    """Take old keys and old rows in binary format."""
    one, two = TypedBinary("1", "00000001"), TypedBinary("2", "00000002")
    keyed = w.table("keyed", {"id": "int4", "note": "text"}, key=["id"])
    whole = w.table("whole", {"id": "int4", "note": "text"})
    a, b = TypedBinary("a", "61"), TypedBinary("b", "62")
    w.commit(keyed.insert({"id": one, "note": a}), whole.insert({"id": one, "note": a}))
    w.commit(
        keyed.update({"id": two, "note": b}, {"id": one}),
        whole.update({"id": one, "note": b}, {"id": one, "note": a}),
        keyed.delete({"id": two}),
        whole.delete({"id": one, "note": b}),
    )
