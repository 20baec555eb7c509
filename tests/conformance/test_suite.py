"""The suite itself: its cases are apart from each other, say why, and are played as they are meant."""

import pytest

from pgoutput_construct.conformance import ConformanceCase, Level, all_cases, find_cases
from pgoutput_construct.conformance.conformance_case import Outcome
from pgoutput_construct.conformance.steps import SendMessage, step_from_json, step_to_json
from pgoutput_construct.conformance.suite import GROUPS
from pgoutput_construct.errors import PgoutputError


def test_there_are_enough() -> None:
    """Cases of all groups, each under a name of its own."""
    names = [case.name for case in all_cases()]
    assert len(names) >= 120
    assert len({*names}) == len(names)
    assert all([*group] for group in GROUPS)


@pytest.mark.slow
@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_a_case_says_what_and_why(case: ConformanceCase) -> None:
    """A demand in a sentence, a reason that names a place of PostgreSQL, and a script that its meaning refers to."""
    assert case.demand.endswith(".")
    assert case.reason
    assert case.play.script
    script = case.play.script
    for transaction in case.play.transactions:
        assert transaction.unit in case.play.ends
        for change in transaction.changes:
            assert change.step == -1 or isinstance(script[change.step], SendMessage)
    needed = {name for step in script if isinstance(step, SendMessage) for name in step.needs}
    assert needed <= {*case.play.descriptions}
    if case.play.outcome is Outcome.COMMITTED:
        assert case.play.transactions[-1].changes[0].table == "public.done"
    assert not case.lack(case.options)
    assert [step_from_json(step_to_json(step)) for step in script[:50]] == [*script[:50]]


def test_cases_are_found() -> None:
    """By names, groups and patterns; what matches nothing is an error."""
    assert [case.name for case in find_cases(["v1/insert"])] == ["v1/insert"]
    assert {case.group for case in find_cases(["streams", "rows/un*"])} == {"streams", "rows"}
    assert {case.level for case in find_cases(level=Level.MUST)} == {Level.MUST}
    with pytest.raises(PgoutputError, match="no case matches 'v1/upsert'"):
        find_cases(["v1/upsert"])
