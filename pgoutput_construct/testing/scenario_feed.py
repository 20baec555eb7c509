"""The scenarios of a seed as a publisher's feed, and the expected tables as JSON, for subscribers in any language."""

from collections.abc import Collection, Sequence
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from pgoutput_construct.publisher._feed.feed import About
from pgoutput_construct.publisher._feed.message_feed import Script
from pgoutput_construct.publisher.published_tables import ListedTable, listed_tables
from pgoutput_construct.testing.fake_tables import Change
from pgoutput_construct.testing.scenario_tables import ScenarioTable
from pgoutput_construct.testing.scenarios import Scenario, scenarios
from pgoutput_construct.wire.messages import Insert

__all__ = ["ScenarioFeed", "expected_state", "seeded_scenarios"]

_SYSTEM: Final = "7000000000000000000"


def seeded_scenarios(count: int, number: int, first: int = 0) -> list[Scenario]:
    """Return scenarios that follow each other in one stream.

    Args:
        count: The number of scenarios.
        number: The seed; with the same release of Hypothesis it always gives the same scenarios.
        first: The number of the first scenario.
    """
    found: list[Scenario] = []

    @seed(number)
    @settings(max_examples=count, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.data())
    def collect(data: st.DataObject) -> None:
        found.append(data.draw(scenarios(first + len(found))))

    collect()
    return found


class ScenarioFeed(Script):
    """The feed of a publisher that serves scenarios."""

    def __init__(self, found: Sequence[Scenario], server_version: int = 180000) -> None:
        """Concatenate the streams; ``server_version`` is the version that the publisher claims, such as 160004."""
        super().__init__(About(server_version, _SYSTEM, "postgres", 1, (), {}))
        self._first = [table.fake for scenario in found for table in scenario.first]
        for lsn, message in (each for scenario in found for each in scenario.sent):
            self.add(lsn, message)

    def published(self, publications: Collection[str]) -> Sequence[ListedTable]:
        """Return the tables as they are at the start; a subscriber applies the stream's alterations."""
        return listed_tables((table.relation for table in self._first), publications)


def expected_state(found: Sequence[Scenario]) -> dict[str, Any]:
    """Return, as JSON values, how to set up a subscriber of scenarios, and the expected content of its tables.

    Keys are ``statements``, which create the tables at a subscriber, ``end``, the LSN after the stream, and ``tables``,
    each with ``schema``, ``name``, ``columns`` and ``rows``: values in text format, None for NULL.
    """
    return {
        "statements": [statement for scenario in found for statement in scenario.definitions],
        "end": str(found[-1].end),
        "tables": [_expected_table(scenario, table) for scenario in found for table in scenario.tables],
    }


def _expected_table(scenario: Scenario, table: ScenarioTable) -> dict[str, Any]:
    names = list(table.fake.columns)
    rows = [_texts(table.fake.insert(row)) for row in scenario.rows[table.name]]
    return {"schema": table.fake.namespace, "name": table.name, "columns": names, "rows": rows}


def _texts(insert: Change) -> list[str | None]:
    assert isinstance(insert.message, Insert)
    return [value.decode() if isinstance(value, bytes) else None for value in insert.message.new]
