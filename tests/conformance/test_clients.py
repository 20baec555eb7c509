"""Clients that must pass the suite: our live client, our capture, and PostgreSQL's own subscriptions."""

from collections.abc import Iterator
from typing import Any

import pytest

from pgoutput_construct.conformance import ConformanceCase, Verdict, all_cases, run_case
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from tools.conformance.capture_log import CaptureClient
from tools.conformance.forked import ForkedClient
from tools.conformance.subscription import SUBSCRIBER_SETTINGS, SubscriptionClient

pytestmark = pytest.mark.slow

CAPTURE = CaptureClient()
LIVE = ForkedClient("the live client", "tools.conformance.adapters.live_client")
REFUSED = {"two-phase/not-asked-for"}
"""What the live client refuses: it says that it reads slots without two_phase alone."""


@pytest.fixture(scope="module", params=[16, 18], ids=["pg16", "pg18"])
def subscription(request: pytest.FixtureRequest) -> Iterator[SubscriptionClient]:
    """A subscription of each server."""
    with EmbeddedServer(request.param, SUBSCRIBER_SETTINGS) as server:
        yield SubscriptionClient(server)


WAITS = {
    "feedback/long-transaction",
    "feedback/quiet-database",
    "feedback/quiet-from-the-start",
    "handshake/byte-by-byte",
    "links/half-open",
    "links/silence",
    "reconnects/confirmed-is-not-sent-again",
    "reconnects/server-crashes",
    "reconnects/several-times",
    "sizes/long-transaction",
    "sizes/ten-thousand-relations",
}
"""Cases that take seconds; the model client of test_proofs.py meets them by default."""


PATIENCE = 120.0
"""Seconds without progress: on a busy machine a client takes long to connect."""


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.name, marks=pytest.mark.long if case.name in WAITS else ()) for case in all_cases()],
)
def test_the_live_client_passes(case: ConformanceCase) -> None:
    """Every case that applies to it, but for what it refuses, which it must do clearly."""
    result = run_case(case, LIVE, PATIENCE)
    if case.name in REFUSED:
        assert result.verdict is Verdict.REFUSES
        return
    assert result.is_good, (result.problem, result.expected, result.reported, result.errors)


def _cases(*quick: str) -> list[Any]:
    """All cases; those whose names do not begin with one of these are long."""
    return [
        pytest.param(case, id=case.name, marks=() if case.name.startswith(quick) else pytest.mark.long)
        for case in all_cases()
    ]


@pytest.mark.parametrize(
    "case",
    _cases("damage/commit-of", "damage/prepare-of", "damage/change-without", "damage/stream-without", "two-phase/not"),
)
def test_the_capture_passes(case: ConformanceCase) -> None:
    """Every case that applies to it."""
    result = run_case(case, CAPTURE, PATIENCE)
    assert result.is_good, (result.problem, result.expected, result.reported, result.errors)


@pytest.mark.server
@pytest.mark.parametrize("case", _cases("v1/insert", "v1/type-message", "v1/times", "v1/names"))
def test_subscriptions_pass(subscription: SubscriptionClient, case: ConformanceCase) -> None:
    """What PostgreSQL's own apply worker does not do is not demanded."""
    result = run_case(case, subscription, PATIENCE)
    assert result.is_good, (result.verdict, result.problem, result.expected, result.reported, result.errors)
