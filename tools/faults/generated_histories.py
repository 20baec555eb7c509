"""Generates random histories of a database: the statements of many tables, interleaved into one list of steps."""

import random
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tools.faults.generated_lives import LIVES, Life
from tools.faults.generated_types import USER_TYPES

__all__ = ["CAPTURE", "CONTROLS", "NOTE", "PUBLICATION", "REPLICATE", "SNAPSHOT", "History", "Step", "generated"]

CAPTURE: Final = "capture"
"""Capture everything up to here."""
NOTE: Final = "note"
"""Record the contents of all tables, to be compared with the history as of this time later."""
REPLICATE: Final = "replicate"
"""Capture and replicate everything, and compare."""
SNAPSHOT: Final = "snapshot"
"""Copy the table named by the statement again."""
CONTROLS: Final = (CAPTURE, NOTE, REPLICATE, SNAPSHOT)
"""Steps that the run executes; all others are executed by the server."""
PUBLICATION: Final = "p"
OTHER_SCHEMA: Final = "other"


@dataclass(frozen=True)
class Step:
    """Consecutive statements of one session, or a step of the run."""

    feature: str
    """The feature that it exercises, or one of CONTROLS."""
    statements: tuple[str, ...] = ()
    """Each is executed by itself; after an error the rest is skipped and the transaction rolled back."""
    life: str = ""
    """The life that it belongs to; "" for those of the whole history."""
    session: int = 0
    """The connection; a transaction that one step begins in it may be ended by another one."""


@dataclass(frozen=True)
class History:
    """The steps of a database's history, and how they are captured and replicated."""

    name: str
    """Its seed and number."""
    version: int
    """The release of PostgreSQL."""
    publication: str
    """The text of CREATE PUBLICATION after the name."""
    steps: tuple[Step, ...]
    options: Mapping[str, Any]
    """Keywords of ``capture``."""
    is_live: bool = False
    """Whether a capture runs all the time, instead of from one CAPTURE to the next."""
    replication: Mapping[str, Any] = field(default_factory=dict)
    """Keywords of ``replicate``."""

    @property
    def setup(self) -> tuple[str, ...]:
        """The statements that create the types and the publication, before the slot is created."""
        made = f"CREATE PUBLICATION {PUBLICATION} {self.publication}".strip()
        return (f"CREATE SCHEMA {OTHER_SCHEMA}", *USER_TYPES, made)


_ALL: Final = "FOR ALL TABLES"
_LISTED: Final = ""
_ROOTS: Final = "WITH (publish_via_partition_root = true)"
_PUBLICATIONS: Final = (
    (_ALL, 14),
    (f"{_ALL} {_ROOTS}", 14),
    (f"FOR TABLES IN SCHEMA public, {OTHER_SCHEMA}", 15),
    (_LISTED, 15),
    (_ROOTS, 15),
    (f"{_ALL} WITH (publish_generated_columns = stored)", 18),
)
"""Texts of publications, each with the first release that has it; if none are listed, each life adds its tables."""


def generated(
    name: str,
    version: int,
    tables: int,
    without: Collection[str] = (),
    only: Collection[str] = (),
    notes: int = 6,
    batches: int = 3,
) -> History:
    """Return the history of this name: the same each time.

    Args:
        name: The seed of everything random.
        version: The release of PostgreSQL, which may lack types and statements.
        tables: The minimum number of tables.
        without: Lives and features to exclude.
        only: The lives to include; all if empty.
        notes: How often the contents of the tables are recorded.
        batches: The maximum number of replications in between.
    """
    chance = random.Random(name)
    publication = chance.choice([text for text, since in _PUBLICATIONS if since <= version])
    is_listed = publication in (_LISTED, _ROOTS)
    lives = _drawn_lives(chance, version, tables, is_listed, {"without": without, "only": only})
    steps = _dealt([[Step(*each) for each in life.steps] for life in lives], chance)
    kept = [step for step in steps if step.feature not in without]
    steps = tuple(_with_controls(kept, chance, notes, batches))
    return History(name, version, publication, steps, *_capture(chance, version), _replication(chance))


def _drawn_lives(
    chance: random.Random, version: int, tables: int, is_listed: bool, chosen: Mapping[str, Collection[str]]
) -> list[Life]:
    makers = [
        (make, weight)
        for name, (make, weight) in LIVES.items()
        if name not in chosen["without"] and (not chosen["only"] or name in chosen["only"])
    ]
    found: list[Life] = []
    while sum(life.tables for life in found) < tables:
        make: Callable[[Life], None] = chance.choices(*zip(*makers, strict=True))[0]
        life = Life(f"t{len(found)}", random.Random(chance.getrandbits(64)), version, PUBLICATION, is_listed)
        make(life)
        found.append(life)
    return found


def _dealt(hands: list[list[Step]], chance: random.Random) -> Iterable[Step]:
    """Yield the steps of all lives interleaved evenly, those of each life in order."""
    places = [(place + chance.random(), number) for number, hand in enumerate(hands) for place in range(len(hand))]
    left = [iter(hand) for hand in hands]
    longest = max(map(len, hands), default=1)
    begins = [chance.uniform(0, longest - len(hand)) for hand in hands]
    for _, number in sorted((place + begins[number], number) for place, number in places):
        yield next(left[number])


def _with_controls(steps: list[Step], chance: random.Random, notes: int, batches: int) -> list[Step]:
    found = list(steps)
    controls = [CAPTURE] * chance.randrange(4) + [NOTE] * notes + [REPLICATE] * min(chance.randrange(1, 4), batches)
    for control in controls:
        found.insert(chance.randrange(len(found) // 8, len(found) + 1), Step(control))
    return found


def _capture(chance: random.Random, version: int) -> tuple[dict[str, Any], bool]:
    """Draw how a history is captured: options of the protocol, and whether the capture runs all the time."""
    streaming = chance.choice(["off", "on", "parallel"] if version >= 16 else ["off", "on"])
    return {"streaming": streaming, "two_phase": version >= 15 and chance.random() < 0.5}, chance.random() < 0.4


def _replication(chance: random.Random) -> dict[str, Any]:
    """Draw how a history is replicated: the prefix of our columns, and the limits of a batch."""
    drawn: dict[str, Any] = {}
    if chance.random() < 0.3:
        drawn["metadata_prefix"] = "pg_"
    limit = chance.random()
    if limit < 0.15:
        drawn["batch_transactions"] = chance.choice([100, 200])
    elif limit < 0.3:
        drawn["batch_bytes"] = chance.choice([100_000, 300_000])
    return drawn
