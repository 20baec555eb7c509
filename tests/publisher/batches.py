"""Many scenarios as one stream."""

import os
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pgoutput_construct.publisher._feed.feed import About
from pgoutput_construct.publisher._feed.message_feed import Script
from pgoutput_construct.testing.scenario_alterations import WAYS
from pgoutput_construct.testing.scenario_feed import seeded_scenarios
from pgoutput_construct.testing.scenarios import Scenario
from pgoutput_construct.wire import messages as m
from pgoutput_construct.wire.messages import BY_TAG
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["Batch", "Sent", "describing", "script_of"]

Sent = tuple[Lsn, m.PgoutputMessage]
_SEED: Final = "PGOUTPUT_SCENARIOS_SEED"
"""The variable of the environment that makes the scenarios of an earlier run again."""
_LEAST: Final = 3
"""Messages of each kind in a batch, and scenarios with each way to alter tables."""
_ROUNDS: Final = 50


@dataclass(frozen=True)
class Batch:
    """Scenarios that follow each other in one stream."""

    scenarios: Sequence[Scenario]
    seed: int

    @classmethod
    def invent(cls, count: int) -> "Batch":
        """Invent as many as asked, and more where a kind of message is missing."""
        number = int(os.environ.get(_SEED, random.getrandbits(32)))
        found = seeded_scenarios(count, number, 0)
        for more in range(1, _ROUNDS):
            counts = sum((scenario.counts for scenario in found), _ways(found))
            if all(counts[name] >= _LEAST for name in (*(kind.__name__ for kind in BY_TAG.values()), *WAYS)):
                break
            found += seeded_scenarios(10, number + more, len(found))
        return cls(found, number)

    @property
    def sent(self) -> list[Sent]:
        """The stream."""
        return [each for scenario in self.scenarios for each in scenario.sent]

    @property
    def end(self) -> Lsn:
        """The position behind it."""
        return self.scenarios[-1].end

    def __str__(self) -> str:
        counts = sum((scenario.counts for scenario in self.scenarios), Counter[str]())
        transactions = sum(len(scenario.outcomes) for scenario in self.scenarios)
        return (
            f"{len(self.scenarios)} scenarios, {transactions} transactions, {counts.total()} messages "
            f"({_SEED}={self.seed}): {dict(counts)}, {dict(_ways(self.scenarios))}"
        )


def _ways(scenarios: Iterable[Scenario]) -> Counter[str]:
    """Return how many scenarios alter tables in each way."""
    return Counter(way for scenario in scenarios for way in {each.way for _, each in scenario.alterations})


def script_of(sent: Iterable[Sent], server_version: int = 180000) -> Script:
    """Return a stream as what a server of some version serves."""
    script = Script(About(server_version, "7000000000000000000", "postgres", 1, (), {}))
    for lsn, message in sent:
        script.add(lsn, message)
    return script


def describing(scenarios: Iterable[Scenario]) -> list[Sent]:
    """Return a transaction that says which tables there are, as they are in the beginning, and nothing else."""
    relations = [table.fake.relation for scenario in scenarios for table in scenario.first]
    lsn, end, time = Lsn(1), Lsn(2), Timestamp(1)
    within: list[Sent] = [(Lsn(0), relation) for relation in relations]
    return [(lsn, m.Begin(final_lsn=lsn, commit_time=time, xid=500)), *within, (end, m.Commit(lsn, end, time))]
