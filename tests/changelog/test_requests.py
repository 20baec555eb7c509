"""Requests for copies of tables, as files in a log."""

from pathlib import Path

import pytest

from pgoutput_construct.changelog._notes.copy_requests import ask, fulfil, requests, was_fulfilled
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.errors import ChangeLogError


def test_requested_and_fulfilled(tmp_path: Path) -> None:
    """A request is listed until it is fulfilled; a damaged one is reported."""
    store = LocalStore(tmp_path)
    assert requests(store) == []
    first = ask(store, [("public", 'ord"ers'), ("s", "t")], workers=3)
    second = ask(store, [("public", "items")], "it was rewritten")
    assert {request.number: request for request in requests(store)} == {r.number: r for r in (first, second)}
    fulfil(store, first)
    assert requests(store) == [second] and was_fulfilled(store, first) and not was_fulfilled(store, second)
    store.write("requests/request-x.json", b'{"tables": 1}')
    with pytest.raises(ChangeLogError, match=r"request-x\.json: damaged"):
        requests(store)
