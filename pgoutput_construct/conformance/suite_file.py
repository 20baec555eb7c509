"""The suite as data, for other languages: ``spec/conformance.jsonl``, a case a line, after a first line about the file.

A case has its name, level, demand and reason; ``options`` to ask for, and those that it ``needs``; the ``server`` that
its publisher stands for, where that is not PostgreSQL 18; and what is played: the ``script``, and its meaning. A large
one is ``packed``: zlib, then base64, of the same as JSON. ``docs/how-to/conformance.md`` says how each is read.
"""

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, Final

from pgoutput_construct.conformance.conformance_case import CaseServer, ConformanceCase, Level, Outcome, Play
from pgoutput_construct.conformance.meaning import ExpectedChange, ExpectedTransaction
from pgoutput_construct.conformance.steps import step_from_json, step_to_json
from pgoutput_construct.wire.engine import build, parse
from pgoutput_construct.wire.messages import Relation
from pgoutput_construct.wire.types import Lsn

__all__ = ["case_from_json", "case_to_json", "suite_lines"]

_HEAD: Final = {
    "generated": "Generated from pgoutput_construct/conformance by: python -m tools.conformance suite. Do not edit.",
    "title": "Conformance suite for clients of logical replication",
}
_MOST: Final = 20_000
"""Characters of what is played, up to which it is written as it is."""
_FLAGS: Final = ("once", "stores", "reads")


def suite_lines(cases: Iterable[ConformanceCase]) -> Iterator[str]:
    """Yield the lines of the file."""
    yield json.dumps(_HEAD)
    for case in cases:
        yield json.dumps(case_to_json(case), ensure_ascii=False)


def case_to_json(case: ConformanceCase) -> dict[str, Any]:
    """Return a case as JSON has it."""
    said = {"case": case.name, "level": case.level, "demand": case.demand, "reason": case.reason}
    needs = {name: list(values) for name, values in case.needs.items()}
    server = {
        field.name: value.hex() if isinstance(value, bytes) else value
        for field in fields(CaseServer)
        if (value := getattr(case.server, field.name)) != field.default
    }
    played = _play_to_json(case.play)
    text = json.dumps(played, ensure_ascii=False)
    packed = {"packed": base64.b64encode(zlib.compress(text.encode(), 9)).decode()} if len(text) > _MOST else played
    return {**said, "options": case.options, "needs": needs, "server": server, **packed}


def case_from_json(shown: Mapping[str, Any]) -> ConformanceCase:
    """Return the case that ``case_to_json`` wrote."""
    played = json.loads(zlib.decompress(base64.b64decode(shown["packed"]))) if "packed" in shown else shown
    server: dict[str, Any] = dict(shown["server"])
    server |= {name: tuple(map(tuple, server[name])) for name in ("refusals", "start_refusals") if name in server}
    server |= {"greeting": bytes.fromhex(server.get("greeting", ""))}
    return ConformanceCase(
        shown["case"],
        Level(shown["level"]),
        shown["demand"],
        shown["reason"],
        lambda _: _play_from_json(played),
        {name: tuple(values) for name, values in shown["needs"].items()},
        CaseServer(**server),
    )


def _play_to_json(play: Play) -> dict[str, Any]:
    return {
        "outcome": play.outcome.value,
        **{name: getattr(play, name) for name in ("refused", "memory") if getattr(play, name) is not None},
        **{name: value for name in _FLAGS if (value := getattr(play, name)) != Play.__dataclass_fields__[name].default},
        "script": [step_to_json(step) for step in play.script],
        "descriptions": {name: [each.hex() for each in found] for name, found in play.descriptions.items()},
        "ends": {str(unit): str(end) for unit, end in play.ends.items()},
        "tables": [build(table).hex() for table in play.tables],
        "transactions": [
            {"unit": each.unit, "changes": [change.to_json() for change in each.changes]} for each in play.transactions
        ],
    }


def _play_from_json(shown: Mapping[str, Any]) -> Play:
    return Play(
        tuple(map(step_from_json, shown["script"])),
        tuple(
            ExpectedTransaction(each["unit"], tuple(map(ExpectedChange.from_json, each["changes"])))
            for each in shown["transactions"]
        ),
        {int(unit): Lsn(end) for unit, end in shown["ends"].items()},
        {name: tuple(map(bytes.fromhex, found)) for name, found in shown["descriptions"].items()},
        tuple(_relation(each) for each in shown["tables"]),
        Outcome(shown["outcome"]),
        **{name: shown[name] for name in ("refused", "memory", *_FLAGS) if name in shown},
    )


def _relation(shown: str) -> Relation:
    found = parse(bytes.fromhex(shown))
    assert isinstance(found, Relation)
    return found
