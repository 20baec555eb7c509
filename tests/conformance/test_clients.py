"""Clients that must pass the suite: our live client, our capture, our codecs in other languages, and PostgreSQL's own
subscriptions.
"""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pgoutput_construct.conformance import ConformanceCase, ConformanceClient, Verdict, all_cases, run_case
from pgoutput_construct.demo.embedded_server import EmbeddedServer
from tools.conformance import clients
from tools.conformance.capture_log import CaptureClient
from tools.conformance.clients import CLIENTS, UnavailableClientError
from tools.conformance.forked import ForkedClient
from tools.conformance.subscription import SUBSCRIBER_SETTINGS, SubscriptionClient

pytestmark = pytest.mark.slow

CAPTURE = CaptureClient()
PROGRAMS = Path(clients.__file__).parent / "clients"
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


@pytest.fixture(scope="module", params=["rust-codec", "go-codec", "typescript-codec"])
def codec_client(request: pytest.FixtureRequest) -> Iterator[ConformanceClient]:
    """The program over the codec of each language whose tools are there."""
    (entry,) = (entry for entry in CLIENTS if entry.name == request.param)
    try:
        opened = entry.open()
    except UnavailableClientError as error:
        pytest.skip(f"{entry.title}: {error}")
    with opened as client:
        yield client


@pytest.mark.parametrize(
    "case",
    _cases(
        "damage/insert-cut-in-value",
        "feedback/confirms-what",
        "messages/contents",
        "parallel/subtransaction-aborted-last",
        "reconnects/once",
        "two-phase/streamed-with",
        "values/binary-old",
    ),
)
def test_codecs_pass(codec_client: ConformanceClient, case: ConformanceCase) -> None:
    """Every case: they read and build all versions of the protocol."""
    result = run_case(case, codec_client, PATIENCE)
    assert result.verdict is Verdict.PASSES, (result.problem, result.expected, result.reported, result.errors)


@pytest.mark.parametrize(
    ("folder", "command"),
    [
        ("codec_rust", ("rustfmt", "--check", "--edition", "2021", "src/main.rs")),
        ("codec_go", ("gofmt", "-d", ".")),
    ],
)
def test_style(folder: str, command: tuple[str, ...]) -> None:
    """Their programs are formatted as the language's formatter does it; tsc is strict whenever it compiles."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]} on the PATH")
    done = subprocess.run(command, cwd=PROGRAMS / folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.server
@pytest.mark.parametrize("case", _cases("v1/insert", "v1/type-message", "v1/times", "v1/names"))
def test_subscriptions_pass(subscription: SubscriptionClient, case: ConformanceCase) -> None:
    """What PostgreSQL's own apply worker does not do is not demanded."""
    result = run_case(case, subscription, PATIENCE)
    assert result.is_good, (result.verdict, result.problem, result.expected, result.reported, result.errors)
