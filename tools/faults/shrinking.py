"""Shrinks a failing history to the statements that matter, and writes it as a test."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pgoutput_construct.forensics._delta_debugging import minimized
from tools.faults.generated_histories import SNAPSHOT, History, Step

if TYPE_CHECKING:
    from tools.faults.history_runs import Settings

__all__ = ["as_test", "shrunk"]

_WIDTH: Final = 112
_ENDS: Final = ("COMMIT", "ROLLBACK", "PREPARE TRANSACTION")


def shrunk(
    history: History, lives: Collection[str], fails: Callable[[History], bool], seconds: float
) -> tuple[History, bool]:
    """Return a history that fails like another one, with fewer steps and statements; and whether it did so once more.

    Args:
        history: One that fails.
        lives: Those whose tables are not as they should be, if that is known: the others are left out first.
        fails: Whether a history fails in the same way.
        seconds: After this time what is found is returned.
    """
    end = time.monotonic() + seconds

    def is_over() -> bool:
        return time.monotonic() > end

    def of(some: Collection[str]) -> History:
        return replace(history, steps=tuple(step for step in history.steps if step.life in ("", *some)))

    # Lives have nothing to do with each other: without all but one there are few statements left.
    if not lives or not fails(of(lives)):
        every = list(dict.fromkeys(step.life for step in history.steps if step.life))
        lives = minimized(every, lambda some: fails(of(some)), is_over)
        if lives == every and not fails(history):
            return history, False
    best = of(lives)
    steps = minimized(best.steps, lambda some: fails(replace(best, steps=tuple(some))), is_over)
    best = replace(best, steps=tuple(steps))
    pieces = [Step(s.feature, (each,), s.life, s.session) for s in steps for each in s.statements or ("",)]
    pieces = minimized(pieces, lambda some: fails(replace(best, steps=_joined(some))), is_over)
    return replace(best, steps=_joined(pieces)), True


def _joined(pieces: Sequence[Step]) -> tuple[Step, ...]:
    """Return steps of single statements as steps; those of one transaction are one step."""
    found: list[Step] = []
    open_sessions: set[int] = set()
    for piece in pieces:
        (statement,) = piece.statements
        if not statement or piece.feature == SNAPSHOT:
            found.append(replace(piece, statements=(statement,) if statement else ()))
            continue
        before = found[-1] if found else None
        if before and piece.session in open_sessions and (before.session, before.life) == (piece.session, piece.life):
            found[-1] = replace(before, statements=(*before.statements, statement))
        else:
            found.append(piece)
        if statement == "BEGIN":
            open_sessions.add(piece.session)
        elif statement.startswith(_ENDS) and not statement.startswith("ROLLBACK TO"):
            open_sessions.discard(piece.session)
    return tuple(found)


def as_test(history: History, difference: str, settings: "Settings") -> str:
    """Return a test that performs a history as it was performed, ready to be put into a file, with what differed."""
    name = "".join(each if each.isalnum() else "_" for each in history.name)
    fixture = f"server{history.version}"
    lines = [
        f"def test_history_{name}({fixture}: EmbeddedServer, spark: Any, tmp_path: Path) -> None:",
        f'    """Seed {history.name}."""',
        f"    # {difference[:_WIDTH]}",
        "    steps = (",
        *(f"        {_written(step)}," for step in history.steps),
        "    )",
        f"    history = History({history.name!r}, {history.version}, {history.publication!r}, steps, "
        f"{dict(history.options)!r}, {history.is_live!r}, {dict(history.replication)!r})",
        f"    settings = {settings!r}",
        f"    assert perform(history, {fixture}, spark, tmp_path, settings).failures == []",
    ]
    return "\n".join(lines)


def _written(step: Step) -> str:
    given = [repr(step.feature)]
    if step.statements:
        given.append("(" + "".join(f"{each!r}, " for each in step.statements).rstrip(" ") + ")")
    if step.session:
        given.append(f"session={step.session}")
    return f"Step({', '.join(given)})"
