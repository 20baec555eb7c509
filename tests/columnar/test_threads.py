"""Several threads give what one gives, in the same order."""

import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pgoutput_construct.columnar import BatchDecoder, columns_schema, index, index_batch, table
from pgoutput_construct.columnar.threads import in_order
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.pgtypes.builtin_types import TYPE_NAMES
from tests.columnar.decode import decode_rows
from tests.columnar.test_decode import described
from tests.live.recording import Recording


def test_answers_come_in_order() -> None:
    """Whichever is ready first, the caller works too; no more than two items a thread are taken ahead."""

    def work(number: int) -> tuple[int, int]:
        time.sleep(0.02 if number % 3 == 0 else 0.01)
        return number, threading.get_ident()

    found = list(in_order(work, range(20), 3))
    assert [number for number, _ in found] == list(range(20))
    assert len({thread for _, thread in found}) == 3
    ahead: list[int] = []
    answers = in_order(work, (ahead.append(number) or number for number in range(100)), 2)  # type: ignore[func-returns-value]
    assert next(answers)[0] == 0
    assert len(ahead) <= 6
    answers.close()  # type: ignore[attr-defined]


def test_an_error_comes_in_its_place() -> None:
    """What came before it comes first."""
    answers = in_order(lambda number: 1 // number, [3, 1, 0, 1], 2)
    assert [next(answers), next(answers)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        next(answers)


@pytest.mark.parametrize("threads", [1, 2])
def test_no_error_is_taken_for_the_end(threads: int) -> None:
    """An iterator that ends unexpectedly within the work does not end the answers."""
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(in_order(lambda number: next(iter(range(number))), [1, 0, 1], threads))


def test_threads_after_a_fork() -> None:
    """A forked process has none of its parent's threads, and starts its own."""
    assert list(in_order(abs, [-1, 2], 2)) == [1, 2]
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # ends a child that waits for threads that are not there
        os._exit(list(in_order(abs, [-1, 2], 2)) != [1, 2])
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("name", ["18-v4-text", "18-v1-text"])
def test_rows_are_the_same(recordings: dict[str, Recording], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Index, rows and errors of a recording, in blocks so small that threads have work."""
    monkeypatch.setattr(table, "BLOCK_ROWS", 7)
    monkeypatch.setattr(index, "_LEAST", 5)
    recording = recordings[name]
    payloads = [payload[:-1] if at % 50 == 0 else payload for at, payload in enumerate(recording.payloads)]
    found = []
    for threads in (1, 3):
        decoded = BatchDecoder(recording.mode.proto_version, recording.mode.streaming, threads=threads).decode(payloads)
        parts = [(part.rows.tolist(), part.batch.to_pylist()) for part in decoded.tables]
        rows = [pair for numbers, values in parts for pair in zip(numbers, values, strict=True)]
        found.append(repr((rows, [(error.row, str(error)) for error in decoded.errors])))
    assert found[0] == found[1]


def test_an_index_of_threads_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread walks a part of the batch."""
    monkeypatch.setattr(index, "_LEAST", 2)
    payloads = pa.array([b"B" + bytes(20), b"", b"I\0\0\0\1N\0\1n", b"E", b"C" + bytes(25), b"D\0\0\0\1K\0\1n", b"X"])
    one, three = index_batch(payloads), index_batch(payloads, threads=3)
    assert np.array_equal(one.valid, three.valid)
    assert np.array_equal(one.tags, three.tags)
    assert {name: column.tolist() for name, column in one.rows.items()} == {
        name: column.tolist() for name, column in three.rows.items()
    }


@pytest.mark.parametrize("threads", [0, -1, "2", None, 1.5, True])
def test_no_number_of_threads(threads: Any) -> None:
    """Everything that takes threads refuses the same."""
    description = described(("c", TYPE_NAMES["int4"].oid, -1))
    for call in (
        lambda: BatchDecoder(threads=threads),
        lambda: index_batch([], threads=threads),
        lambda: decode_rows([], None, description, columns_schema(description), threads=threads),
    ):
        with pytest.raises(PgoutputError, match="threads must be an int of at least 1"):
            call()
