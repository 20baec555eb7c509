"""Scenarios as this package reads them: equal to what they mean, and a wrong byte is noticed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

import pgoutput_construct as pgo
from pgoutput_construct.changelog import ChangeLog
from pgoutput_construct.changelog._facts.lineage import lineage_of
from pgoutput_construct.changelog._index.planning import relation_history
from pgoutput_construct.publisher.log_feed import LogFeed
from pgoutput_construct.testing.scenarios import Scenario, TransactionEnd, scenarios
from pgoutput_construct.wire.messages import BY_TAG
from tests.publisher.batches import Batch
from tests.publisher.facts import facts_of
from tests.publisher.reading import LAYOUT, Reading, expected, feed_of, payloads_of, read
from tests.spark.logs import log_options, write_log

_COLUMNS = ("xid", "gid", "outcome", "commit_lsn", "end_lsn", "commit_time")

_SEEN_IN_ABORTS = {"xid"}
"""A change, and what describes it, may lose its subtransaction without harm where that is not rolled back."""
UNCHECKED: Mapping[type, set[str]] = {
    pgo.Begin: {"commit_time"},  # the Commit says it again
    pgo.Origin: {"origin_lsn"},
    pgo.Message: {"xid", "flags", "lsn"},
    pgo.Relation: _SEEN_IN_ABORTS | {"replica_identity"},  # the flags of columns say it, too; other letters are refused
    pgo.Type: _SEEN_IN_ABORTS,
    pgo.Insert: _SEEN_IN_ABORTS,
    pgo.Update: _SEEN_IN_ABORTS | {"old_kind"},  # other letters are refused
    pgo.Delete: _SEEN_IN_ABORTS | {"old_kind"},
    pgo.Truncate: _SEEN_IN_ABORTS | {"options"},
    # What PREPARE wrote is compared by a server that has the transaction prepared, when it ends.
    pgo.BeginPrepare: {"prepare_lsn", "end_lsn", "prepare_time"},
    pgo.Prepare: {"prepare_lsn", "end_lsn", "prepare_time"},
    pgo.StreamPrepare: {"prepare_lsn", "end_lsn", "prepare_time"},
    pgo.RollbackPrepared: {"prepare_time"},
}
"""Fields whose wrong values this package accepts; tests/publisher has PostgreSQL's reaction to some."""


@given(scenarios())
def test_a_scenario_is_read_as_it_is_meant(scenario: Scenario) -> None:
    """Its messages come back from their bytes; its transactions end, and come to the rows, that the model has."""
    positions, messages = zip(*scenario.sent, strict=True)
    session = pgo.Session(**LAYOUT)
    assert [session.parse(payload) for payload in payloads_of(messages)] == list(messages)
    assert read(feed_of(payloads_of(messages), positions), [scenario]) == expected([scenario])


@pytest.fixture(scope="module")
def batch() -> Batch:
    """Some scenarios for all tests of this file."""
    return Batch.invent(100)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [50, 100_000])
def test_a_log_of_scenarios_is_read_as_it_is_meant(batch: Batch, rows: int, tmp_path: Path) -> None:
    """Transactions in the index of a log, and their rows, are those of the model, wherever its segments are cut."""
    write_log(tmp_path, payloads_of(message for _, message in batch.sent), log_options(**LAYOUT, two_phase=True), rows)
    meant = expected(batch.scenarios)
    reading, ended = read(LogFeed(tmp_path), batch.scenarios), ChangeLog(tmp_path).transactions().to_pylist()
    outcomes = [TransactionEnd(*(each[name] for name in _COLUMNS)) for each in ended]
    assert replace(reading, outcomes=outcomes) == meant, str(batch)


@pytest.mark.slow
def test_a_log_knows_which_column_is_which(batch: Batch, tmp_path: Path) -> None:
    """By the catalog, renamed columns keep their identity, and a new column with an old name is another one."""
    payloads = payloads_of(message for _, message in batch.sent)
    write_log(tmp_path, payloads, log_options(**LAYOUT, two_phase=True), 500, facts=facts_of(batch.scenarios))
    meant: dict[tuple[int, str, tuple[str, ...]], set[tuple[int, ...]]] = {}
    for scenario in batch.scenarios:
        for table in (*scenario.first, *(alteration.table for _, alteration in scenario.alterations)):
            meant.setdefault((table.oid, table.name, tuple(table.fake.columns)), set()).add(table.numbers)
    index = ChangeLog(tmp_path).index
    lineage = lineage_of(index)
    for description in relation_history(index).descriptions:
        relation = description.relation
        wanted = meant[relation.relation_oid, relation.name, tuple(column.name for column in relation.columns)]
        # What is not certain, since nothing has the description, is None.
        assert lineage.numbers(description) in {None, *wanted}, f"{relation}: {batch}"


@pytest.mark.parametrize("cls", sorted(BY_TAG.values(), key=str), ids=lambda cls: cls.__name__)
def test_a_wrong_byte_is_noticed(batch: Batch, cls: type) -> None:
    """A wrong byte in a field makes of a stream something else than was meant, or it is refused; so is a wrong tag."""
    missing = {field.name for field in fields(cls)} - UNCHECKED.get(cls, set())
    for scenario in (each for each in batch.scenarios if each.counts[cls.__name__]):
        positions, messages = zip(*scenario.sent, strict=True)
        payloads, meant = payloads_of(messages), expected([scenario])
        for seq in (seq for seq, message in enumerate(messages) if type(message) is cls):
            before, after = payloads[:seq], payloads[seq + 1 :]
            assert _notice([*before, b"~" + payloads[seq][1:], *after], positions, scenario, meant)
            for wrong in _wrong(payloads[seq]):
                if _notice([*before, wrong, *after], positions, scenario, meant):
                    missing -= _changed(wrong, messages[seq])
            if not missing:
                return
    raise AssertionError(f"nobody noticed a wrong byte in {missing} of {cls.__name__}: {batch}")


def _wrong(payload: bytes) -> Iterator[bytes]:
    for place in range(1, len(payload)):
        yield payload[:place] + bytes([payload[place] ^ 1]) + payload[place + 1 :]


def _notice(payloads: Sequence[bytes], positions: Sequence[pgo.Lsn], scenario: Scenario, meant: Reading) -> bool:
    try:
        return read(feed_of(payloads, positions), [scenario]) != meant
    except (pgo.PgoutputError, StopIteration):
        return True


def _changed(payload: bytes, message: Any) -> set[str]:
    """Return the fields in which a payload is not a message; none where it is refused."""
    try:
        other = pgo.parse(payload, **LAYOUT, in_stream=getattr(message, "xid", None) is not None)
    except pgo.PgoutputError:
        return set()
    return {field.name for field in fields(message) if getattr(other, field.name) != getattr(message, field.name)}
