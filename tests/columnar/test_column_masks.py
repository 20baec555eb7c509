"""Masks of columns: what they make of values, and what nobody sees of their salts."""

import pickle
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pgoutput_construct as pgo
from pgoutput_construct.columnar import UNTYPED, rows_schema
from pgoutput_construct.columnar.column_masks import Mask, fingerprint, masked_batch, new_nonce

SALT = "S4LT"
HASH = Mask.parse(f"sha256({SALT})")


def _digest(text: str) -> str:
    return sha256((SALT + text).encode()).hexdigest()


def test_values() -> None:
    """Null stays null; equal values are equal, and others differ where that is asked for."""
    texts = pa.array(["a", None, "b", "a", "", "Straße"], pa.string())
    digests = [None if text is None else _digest(text) for text in texts.to_pylist()]
    assert HASH.values(texts).to_pylist() == digests and HASH.keeps_keys
    assert Mask.parse("text(***)").values(texts).to_pylist() == ["***", None, "***", "***", "***", "***"]
    assert Mask.parse("null").values(texts).to_pylist() == [None] * 6
    assert HASH.values(texts.slice(2, 2)).to_pylist() == digests[2:4]
    assert HASH.values(texts.slice(0, 0)).to_pylist() == []
    assert HASH.text("a") == _digest("a") and Mask.parse("null").text("a") is None


@pytest.mark.parametrize("begin", [0, 2])
def test_batches(begin: int) -> None:
    """Old and new rows are masked, and what types cannot hold: in the column itself. The rest stays as it is."""
    columns = pa.schema([("id", pa.int64()), ("code", pa.string()), ("day", pa.string()), ("other", pa.string())])
    rows: list[dict[str, Any]] = [
        {"id": 9, "code": "x", "other": "y"},
        {"id": 8, "_before": None},
        {"id": 1, "code": "a", "day": None, "other": "o", "_op": "insert", "_unchanged": []},
        {
            "id": 2,
            "code": None,
            "day": None,
            "_untyped": [("code", "\\xff"), ("other", "\\xfe")],
            "_unchanged": ["day"],
        },
        {
            "id": 3,
            "code": "b",
            "_before": {"id": 2, "code": None, "other": "p"},
            "_untyped": [("_before.code", "\\xff")],
        },
        {"_before": {"id": 3, "code": "b", "day": "d", "other": "q"}, "_op": "delete", "_untyped": [("other", "t")]},
    ]
    whole = pa.RecordBatch.from_pylist(rows, rows_schema(columns)).slice(begin)
    found = masked_batch(whole, {"code": HASH, "day": Mask.parse("text(-)")})
    assert found.schema == whole.schema
    found.validate(full=True)
    by_name = {name: found.column(name).to_pylist()[2 - begin :] for name in found.schema.names}
    assert by_name["code"] == [_digest("a"), _digest("\\xff"), _digest("b"), None]
    assert by_name["day"] == [None] * 4 and by_name["id"] == [1, 2, 3, None]
    before = by_name["_before"]
    assert before[:2] == [None, None] and [each["code"] for each in before[2:]] == [_digest("\\xff"), _digest("b")]
    assert [each["day"] for each in before[2:]] == [None, "-"] and [each["other"] for each in before[2:]] == ["p", "q"]
    assert by_name["_untyped"] == [None, [("other", "\\xfe")], None, [("other", "t")]]
    assert by_name["_unchanged"] == [[], ["day"], None, None] and by_name["other"][0] == "o"
    assert masked_batch(whole, {}) is whole


def test_no_untyped_values() -> None:
    """A batch without a text in ``_untyped`` keeps it."""
    batch = pa.RecordBatch.from_pylist([{"v": "a"}], rows_schema(pa.schema([("v", pa.string())])))
    assert masked_batch(batch, {"v": HASH}).column("_untyped").type == UNTYPED


def test_salts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read from the environment or a file; no text of a mask has one, and notes have a fingerprint."""
    monkeypatch.setenv("PGOUTPUT_TEST_SALT", SALT)
    (tmp_path / "salt").write_text(SALT + "\n")
    given = [Mask.parse(each) for each in ("sha256($PGOUTPUT_TEST_SALT)", f"sha256(@{tmp_path / 'salt'})")]
    assert [each.salt for each in given] == [SALT.encode()] * 2 and [each.origin[0] for each in given] == ["$", "@"]
    assert HASH.origin == "" and SALT not in repr([HASH, *given]) + str(HASH)
    assert pickle.loads(pickle.dumps(HASH)).text("a") == _digest("a")
    one, other = new_nonce(), new_nonce()
    assert fingerprint(SALT.encode(), one) == fingerprint(SALT.encode(), one) != fingerprint(SALT.encode(), other)
    assert fingerprint(b"another", one) != fingerprint(SALT.encode(), one)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sha256(", "it is no mask: write"),
        ("sha257(S4LT)", "it is no mask: write"),
        ("S4LT", "it is no mask: write"),
        ("sha256()", "the salt of a mask is empty"),
        ("sha256($PGOUTPUT_NO_SUCH)", "the environment has no variable PGOUTPUT_NO_SUCH"),
        ("sha256(@/no/such)", "/no/such: the salt of a mask cannot be read: No such file"),
    ],
)
def test_refused(text: str, problem: str) -> None:
    """With what to write instead, and without what may be a salt."""
    with pytest.raises(pgo.PgoutputError, match=problem) as raised:
        Mask.parse(text)
    assert SALT not in str(raised.value)
