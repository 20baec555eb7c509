"""Fuzzing finds what it is for, and finds nothing in a short run of each part."""

import random
from importlib.util import find_spec
from typing import Any

import pytest

from pgoutput_construct.wire import codec
from pgoutput_construct.wire.engine import engine
from tools.fuzz import bulk, message_targets
from tools.fuzz.__main__ import main
from tools.fuzz.errors import Finding
from tools.fuzz.mutate import mutated, pool
from tools.fuzz.seeds import payloads
from tools.fuzz.targets import TARGETS, seeds

INPUTS = {"inspect": 12, "footer": 12, "stream": 12, "log": 6}
"""How many inputs of targets that take long; of the others there are more."""
MANY = 60


def test_what_is_reported_as_covered_exists() -> None:
    """Modules of the package that were renamed are renamed in the targets."""
    modules = {module for target in TARGETS.values() for module in target.covered}
    assert [module for module in sorted(modules) if find_spec(module) is None] == []


def test_the_same_number_gives_the_same_payloads() -> None:
    """A batch can be had again by its number, and another number gives another one."""
    seeds_of = pool([seed.payload for seed in payloads()[::9]])
    first = mutated(seeds_of, 500, 7)
    assert first.equals(mutated(seeds_of, 500, 7)) and not first.equals(mutated(seeds_of, 500, 8))


def test_kernels_and_codec_agree_in_bulk(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A batch under each combination of options, and one of frames; messages of all kinds are among the accepted."""
    monkeypatch.setattr(bulk, "BATCH", 5000)
    assert main(["bulk", "--payloads", "65000", "--seed", "3"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("65,000 payloads") and told.endswith("0 disagreements of the kernels with the codec\n")
    assert ": Begin " in told and " 0," not in told


@pytest.mark.parametrize("fault", ["accepts", "reads"])
def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """A codec that accepts trailing bytes after Truncate, or reads another option, is reported with the payload."""
    read: Any = codec._read_truncate

    def faulty(data: bytes, at: int, size: int, *parameters: int) -> tuple[Any, int]:
        message, end = read(data, at, size, *parameters)
        if fault == "accepts":
            return message, max(end, size)
        return type(message)(message.xid, message.options ^ 1, message.relation_oids), end

    monkeypatch.setattr(bulk, "BATCH", 2000)
    monkeypatch.setattr("tools.fuzz.compare.engine", lambda **options: _Faulty(faulty, options))
    report = bulk.run(2000, 0)
    assert report.problems and all(": 54" in problem for problem in report.problems)


class _Faulty:
    """An engine whose reader of Truncate is another."""

    def __init__(self, faulty: Any, given: dict[str, Any]) -> None:
        found = engine(**given)
        self.options = found.options

        def read(data: bytes, at: int, size: int) -> Any:
            return faulty(data, at, size, *found.options.values)

        self._readers = {**found._readers, ord("T"): read}


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_targets_find_nothing_in_a_short_run(name: str) -> None:
    """Some seeds, as they are and changed in a few bytes."""
    chosen = random.Random(name)
    known = seeds(name)
    for _ in range(INPUTS.get(name, MANY)):
        data = bytearray(chosen.choice(known))
        for _ in range(chosen.randrange(4)):
            data[chosen.randrange(len(data))] = chosen.choice([0, 1, 0x7F, 0xFF, chosen.randrange(256)])
        TARGETS[name].read(bytes(data))


def test_a_disagreement_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target raises where one engine refuses what others accept."""
    monkeypatch.setitem(codec.READERS, ord("E"), lambda *given: (None, -1))  # type: ignore[misc, arg-type]
    with pytest.raises(Finding, match="codec and definitions"):
        message_targets.read_message(bytes([3]) + b"E")


def test_without_atheris_nothing_is_fuzzed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Guided fuzzing fails, with the reason and the remedy, where its modules are not installed."""
    monkeypatch.setattr("tools.fuzz.guided.find_spec", lambda name: None)
    assert main(["guided"]) == 2
    assert "skipped: atheris and coverage cannot be imported: pip install" in capsys.readouterr().err


def test_without_tools_no_language_is_compared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing that could disagree is no success."""
    monkeypatch.setattr("tools.codecs.shutil.which", lambda _: None)
    assert main(["languages"]) == 2
    assert "the codec in go needs go, gofmt on the PATH: skipped" in (printed := capsys.readouterr().err)
    assert printed.endswith("Error: no language has the tools of its codec: rust, go, typescript\n")


@pytest.mark.parametrize("mode", ["languages", "bulk"])
def test_no_payloads_are_refused(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The option is named."""
    with pytest.raises(SystemExit, match="2"):
        main([mode, "--payloads", "0"])
    assert "argument --payloads: 0 is less than 1" in capsys.readouterr().err
