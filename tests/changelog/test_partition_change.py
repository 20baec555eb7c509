"""Which leaves of a partitioned table were truncated by themselves, as far as two readings of the catalog say it."""

from collections.abc import Mapping
from typing import NamedTuple

import pytest

from pgoutput_construct.changelog._facts.catalog_readings import TableReading
from pgoutput_construct.changelog._facts.stale_tables import partition_change
from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.wire import Lsn

ROOT, ONE, TWO, FOREIGN = 100, 101, 102, 103


class Leaves(NamedTuple):
    """What one reading says of the leaves, by OID."""

    files: Mapping[int, int]
    writers: Mapping[int, int] = {}
    looked_at: frozenset[int] = frozenset()


CREATED = Leaves({ONE: ONE, TWO: TWO})
ALL = Leaves({ONE: 201, TWO: 202}, {ONE: 700, TWO: 700})
CASES = {
    "the table": (CREATED, ALL, False),
    "a leaf": (CREATED, Leaves({ONE: 201, TWO: TWO}, {ONE: 700}), True),
    "the table, then a leaf": (CREATED, Leaves({ONE: 203, TWO: 202}, {ONE: 701, TWO: 700}), True),
    "the table again": (ALL, Leaves({ONE: 203, TWO: 204}, {ONE: 702, TWO: 702}), False),
    "the table earlier, now a leaf": (ALL, Leaves({ONE: 203, TWO: 202}, {ONE: 701, TWO: 700}), True),
    "the table, which then was analyzed in part": (CREATED, ALL._replace(looked_at=frozenset({ONE})), False),
    "nothing, rewritten one by one": (
        CREATED,
        Leaves({ONE: 201, TWO: 202}, {ONE: 700, TWO: 701}, frozenset({ONE, TWO})),
        False,
    ),
    "a leaf, and another was rewritten": (
        CREATED,
        Leaves({ONE: 201, TWO: 202}, {ONE: 700, TWO: 701}, frozenset({TWO})),
        True,
    ),
    "the table, as an older log has it": (CREATED, Leaves(ALL.files), False),
    "a leaf, as an older log has it": (CREATED, Leaves({ONE: 201, TWO: TWO}), True),
    "a leaf that is new": (Leaves({ONE: ONE}), Leaves({ONE: ONE, TWO: 202}, {TWO: 700}), True),
    "the table, with a leaf that is new": (Leaves({ONE: ONE}), ALL, False),
    "the table, and then a new leaf": (Leaves({ONE: ONE}), Leaves({ONE: 201, TWO: 202}, {ONE: 700, TWO: 701}), True),
    "the table before a leaf was new": (Leaves({ONE: ONE}), Leaves({ONE: 201, TWO: TWO}, {ONE: 700}), False),
    "nothing, with a new foreign table": (CREATED, Leaves({**CREATED.files, FOREIGN: 0}), False),
    "the table, with a foreign one": (
        Leaves({**CREATED.files, FOREIGN: 0}),
        Leaves({**ALL.files, FOREIGN: 0}, ALL.writers),
        False,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_was_truncated(name: str) -> None:
    """A leaf that was truncated by itself is distinguished from one that was truncated with the table."""
    before, after, by_itself = CASES[name]
    found = partition_change(_reading(before), _reading(after))
    assert (found is not None) == by_itself
    assert found is None or found.reason == "public.t has a partition that was truncated by itself"


def _reading(leaves: Leaves) -> TableReading:
    return TableReading(
        snapshot=Snapshot(800, 800, (), Lsn(1)),
        oid=ROOT,
        namespace="public",
        name="t",
        filenodes=leaves.files,
        rewritten=leaves.writers,
        truncated=frozenset(leaves.files) - leaves.looked_at,
    )
