"""Each case is proven able to fail: by a client that does everything else right."""

import time
from fnmatch import fnmatchcase

import pytest

from pgoutput_construct.conformance import (
    ClientTask,
    ConformanceCase,
    RunningClient,
    Verdict,
    all_cases,
    run_case,
)
from tests.conformance.model_client import Lost, ModelClient, ThreadClient
from tests.conformance.proofs import PROOFS

pytestmark = pytest.mark.slow

QUICK = {group: name for name in PROOFS if "*" not in name for group in [name.partition("/")[0]]}
"""One case of each group, which runs in each run of the tests."""


def _wrong_client(name: str) -> type[ModelClient]:
    return next(kind for pattern, kind in PROOFS.items() if fnmatchcase(name, pattern))


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_the_model_passes(case: ConformanceCase) -> None:
    """The client that does everything right."""
    result = run_case(case, ThreadClient(ModelClient), 60.0)
    assert result.verdict is Verdict.PASSES, (result.problem, result.expected, result.reported, result.errors)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=() if case.name in QUICK.values() else pytest.mark.long)
        for case in all_cases()
    ],
)
def test_a_client_that_is_wrong_in_this_way_fails(case: ConformanceCase) -> None:
    """That of the table."""
    result = run_case(case, ThreadClient(_wrong_client(case.name)), 3.0)
    assert not result.is_good


class _Reconnects(ModelClient):
    """Leaves each connection before the server has answered."""

    def until(self, wanted: bytes) -> None:
        raise Lost


def test_a_client_that_reconnects_for_ever() -> None:
    """It hangs, although something happens all the time."""
    (case,) = (each for each in all_cases() if each.name == "v1/insert")
    result = run_case(case, ThreadClient(_Reconnects), 60.0)
    assert (result.verdict, result.problem) == (Verdict.HANGS, "it connected more than 100 times")


class _StartsLate(ThreadClient):
    """Runs while whoever starts it is still waiting for it."""

    def start(self, task: ClientTask) -> RunningClient:
        running = super().start(task)
        time.sleep(0.2)
        return running


def test_a_client_that_confirms_before_it_is_known() -> None:
    """What it has reported by then counts."""
    (case,) = (each for each in all_cases() if each.name == "feedback/open-transaction")
    result = run_case(case, _StartsLate(ModelClient), 60.0)
    assert result.verdict is Verdict.PASSES, result.problem


def test_each_proof_is_of_a_case() -> None:
    """No line of the table is left over."""
    names = [case.name for case in all_cases()]
    assert not [pattern for pattern in PROOFS if not any(fnmatchcase(name, pattern) for name in names)]
