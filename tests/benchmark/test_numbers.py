"""What is computed from the times."""

from contextlib import ExitStack
from typing import Any

import pytest

from tools.benchmark import measure as module
from tools.benchmark.batch import Batch
from tools.benchmark.cases import CASES, HEADLINE
from tools.benchmark.engines import choose
from tools.benchmark.errors import BenchmarkError, Unavailable
from tools.benchmark.goals import Outcome, outcomes
from tools.benchmark.measure import Engine, Result, Results, measure, timed
from tools.benchmark.memory import Memory
from tools.benchmark.progress import Progress
from tools.benchmark.scaling import Point, growth

QUIET = Progress(quiet=True)


def result(engine: str, *samples: float) -> Result:
    """What an engine took in the headline case."""
    return Result(HEADLINE.name, engine, "parse", 1000, 142_000, samples)


def test_medians_and_rates() -> None:
    """The median of the rounds, the distance of the quartiles, and rates a second."""
    found = result("codec", 100.0, 200.0, 400.0, 300.0, 10_000.0)
    assert found.ns == 300
    assert found.spread == pytest.approx((400 - 200) / 300)
    assert found.messages_per_second == pytest.approx(1e9 / 300)
    assert found.bytes_per_second == pytest.approx(142e9 / 300)
    assert result("codec", 5.0).spread == 0


def test_a_ratio_is_taken_round_by_round() -> None:
    """A round in which the machine was busy with something else does not change it."""
    results = Results([result("pypgoutput", 800, 8000, 900), result("codec", 100, 1000, 100)])
    assert results.ratio((HEADLINE.name, "pypgoutput"), (HEADLINE.name, "codec")) == 8
    assert results.ratio((HEADLINE.name, "pypgoutput"), ("binary", "codec")) is None


@pytest.mark.parametrize(
    ("measured", "at_most", "verdict"),
    [(8, False, "aim"), (6, False, "must"), (5.9, False, "missed"), (None, False, "not measured"),
     (4, True, "must"), (2.5, True, "aim"), (8.1, True, "missed")],
)  # fmt: skip
def test_verdicts(measured: float | None, at_most: bool, verdict: str) -> None:
    """Both ways round: as much as possible, as little as possible."""
    must, aim = (8, 2.5) if at_most else (6, 8)
    assert Outcome("", measured, must, aim, at_most).verdict == verdict


def test_outcomes() -> None:
    """Every goal is there, with a number or with the reason why there is none."""
    results = Results([result("pypgoutput", 800.0), result("codec", 100.0)], [("memory", "rows", "no numba")])
    found = {outcome.title: outcome for outcome in outcomes(results, [], [])}
    assert found["codec parse against pypgoutput"].measured == 8
    assert found["columnar rows against pypgoutput"].why_not == "rows: not asked for"
    assert found["codec parse, binary format against text"].why_not == "codec: not asked for"
    assert found["peak memory while decoding rows, in batches"].why_not == "no numba"
    memory = Memory("rows", 100, 120, 300, 1.0)
    points = [Point("rows", "message", 10, 100.0), Point("rows", "message", 100, 300.0)]
    found = {outcome.title: outcome for outcome in outcomes(results, [memory], points)}
    assert found["peak memory while decoding rows, in batches"].measured == 3
    assert found["rows: growth of the cost a message"].verdict == "missed"


def test_growth() -> None:
    """A cost that falls with the size does not grow; one size says nothing."""
    costs = [400.0, 100.0, None, 150.0, 120.0]
    points = [Point("x", "message", 10**n, ns) for n, ns in enumerate(costs)]
    assert growth(points) == 1.5
    assert growth(points[:1]) is None


def test_engines_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round begins with another one; who cannot take part is named, and the others are measured."""
    monkeypatch.setattr(module, "SHORTEST_SAMPLE", 1)
    turns: list[str] = []

    def engine(name: str) -> Engine:
        def run() -> int:
            turns.append(name)
            return 50

        return Engine(name, "parse", "ours", "", lambda _batch, _stack: run)

    def refuse(_batch: Batch, _stack: ExitStack) -> Any:
        raise Unavailable("no tool")

    results = Results()
    batch = Batch(CASES[0], [b"B"] * 10)
    measure(batch, [engine("a"), Engine("x", "parse", "peers", "", refuse), engine("b")], 2, results, QUIET)
    assert turns == ["a", "b", "a", "b", "b", "a"]  # once to warm up, then two rounds
    assert [found.samples for found in results.results] == [(5, 5), (5, 5)]
    assert results.skipped == [(CASES[0].name, "x", "no tool")]


def test_a_wrong_count_ends_the_run() -> None:
    """An engine that loses messages must not look fast."""
    with pytest.raises(BenchmarkError, match="9 messages came out, 10 went in"):
        timed(lambda: 9, 10)()


def test_samples_are_taken_evenly() -> None:
    """A slow engine gets messages from everywhere, with their stream states."""
    batch = Batch(CASES[0], [bytes([n]) for n in range(100)], [n % 2 == 1 for n in range(100)])
    few = batch.sample(15)
    assert [payload[0] for payload in few.payloads] == list(range(0, 100, 7))
    assert few.in_stream == [n % 2 == 1 for n in range(0, 100, 7)]
    assert batch.sample(100) is batch


def test_engines_are_chosen_by_name_or_group() -> None:
    """No name means all of them."""
    known = [Engine(name, "parse", group, "", lambda b, s: int) for name, group in (("a", "ours"), ("b", "peers"))]
    assert [engine.name for engine in choose(known, ["peers"])] == ["b"]
    assert [engine.name for engine in choose(known, ["a"])] == ["a"]
    assert choose(known, []) == known
