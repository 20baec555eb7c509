"""The options of the data source are checked before anything is read; without Spark."""

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.spark._source.source_options import OPTIONS, SourceOptions, read_options


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, r"needs either the option path .* or the options dsn and slot"),
        ({"path": "x", "dsn": "y", "slot": "s", "table": "t"}, "either the option path"),
        ({"dsn": "y", "table": "t"}, "needs the option slot"),
        ({"dsn": "y", "slot": "s", "table": "t", "fromLsn": "0/1"}, "begins at the slot"),
        ({"dsn": "y", "slot": "s", "table": "t", "untilLsn": "0/1"}, "begins at the slot"),
        ({"path": "x"}, "needs the option table"),
        ({"path": "x", "tabel": "t"}, r"no option 'tabel': did you mean table\?"),
        ({"path": "x", "table": "t", "zzz": ""}, "no option 'zzz': it has path, view, table"),
        ({"path": "x", "view": "rows"}, "the option view is 'rows': it is one of table, changes"),
        ({"path": "x", "table": "t", "asOfLsn": "1x"}, r"the option asOfLsn is '1x': .*16/B374D848"),
        ({"path": "x", "table": "t", "asOfTime": "noon"}, "the option asOfTime is 'noon'"),
        ({"path": "x", "table": "t", "asOfSeq": "-1"}, "the option asOfSeq is '-1'"),
        ({"path": "x", "table": "t", "asOfSeq": "1", "asOfLsn": "0/1"}, "set only one of the options"),
        ({"path": "x", "table": "t", "maxTransactionsPerTrigger": "0"}, "it must be a positive integer"),
        ({"path": "x", "table": "t", "columns": "[1]"}, "the option columns is"),
        ({"path": "x", "table": "t", "changeColumns": "delta"}, "it is one of pgoutput, spark"),
        ({"path": "x", "view": "events", "changeColumns": "spark"}, "changeColumns applies only to the view table"),
        ({"path": "x", "table": "a.b.c"}, "the option table is 'a.b.c': 'a.b.c' does not name a table"),
    ],
)
def test_options_that_are_wrong(given: dict[str, str], problem: str) -> None:
    """The error names the option, and what it can be."""
    with pytest.raises(pgo.PgoutputError, match=problem):
        read_options(given)


def test_options_that_are_right() -> None:
    """Names are told apart without case; every option has a field, and a text that says what it does."""
    given = {"PATH": "x", "Table": "public.t", "columns": "a, b", "ASOFLSN": "0/10", "maxbytespertrigger": "5"}
    read = read_options(given)
    assert read == SourceOptions("x", table="public.t", columns=("a", "b"), asOfLsn=pgo.Lsn(16), maxBytesPerTrigger=5)
    for name in ("Orders", "public.orders", '"public" . ORDERS', '["public.Orders"]'):
        assert read_options({"path": "x", "table": name}).table == "public.orders"
    assert read_options({"path": "x", "table": "Select"}).table == 'public."select"'
    assert read_options({"path": "x", "table": "t", "columns": '["a,b", "c"]'}).columns == ("a,b", "c")
    assert read_options({"path": "x", "table": "t", "asOfTime": "2026-11-22T10:00:00+02:00"}).asOfTime == (
        pgo.Timestamp.from_text("2026-11-22T08:00:00+00:00")
    )
    assert [option.name for option in OPTIONS] == list(SourceOptions.__dataclass_fields__)
    assert all(option.meaning for option in OPTIONS)
    assert "hidden" not in repr(read_options({"dsn": "password=hidden", "slot": "s", "table": "t"}))
