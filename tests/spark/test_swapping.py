"""A directory that takes the place of another."""

import threading
from pathlib import Path

import pytest

from pgoutput_construct.spark import _parquet_datasets
from pgoutput_construct.spark._parquet_datasets import directory_swap


def _put(place: Path, text: str) -> None:
    place.mkdir()
    (place / "file").write_text(text)


def test_what_is_there_is_never_half(tmp_path: Path) -> None:
    """Who looks again and again sees the old one, then the new one, and always one of them; nothing stays beside it."""
    path, done, seen = tmp_path / "deep" / "data", threading.Event(), set[str]()
    with directory_swap(path) as beside:
        _put(beside, "0")

    def look() -> None:
        while not done.is_set():
            seen.add((path / "file").read_text())

    reader = threading.Thread(target=look)
    reader.start()
    for number in range(1, 200):
        with directory_swap(path) as beside:
            _put(beside, str(number))
    done.set()
    reader.join()
    assert (path / "file").read_text() == "199" and len(seen) > 1
    assert [each.name for each in path.parent.iterdir()] == ["data"]


def test_what_fails_changes_nothing(tmp_path: Path) -> None:
    """The block raises: what was there stays."""
    path = tmp_path / "data"
    _put(path, "old")
    with pytest.raises(ZeroDivisionError), directory_swap(path) as beside:
        _put(beside, "new")
        1 / 0  # noqa: B018
    assert (path / "file").read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_where_nothing_can_be_exchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On systems without that, one goes and the other comes."""
    monkeypatch.setattr(_parquet_datasets, "_try_exchange", lambda *_: False)
    path = tmp_path / "data"
    for text in ("old", "new"):
        with directory_swap(path) as beside:
            _put(beside, text)
    assert (path / "file").read_text() == "new" and len(list(tmp_path.iterdir())) == 1
