"""What happened to a row, how to take a transaction back, and a stream cut to what a test needs.

In: a change log. Out: every change of a row with its transaction (``blame``); SQL that takes transactions back
(``undo``); a stream for a test (``fixture``). None of these needs a server or Spark; ``undo`` needs psycopg, which
quotes values. ``fork`` makes a database and the tables of a warehouse as they were at one commit.

- ``_blame``: the changes of one row; start reading here
- ``_undo``: the SQL that takes transactions back; ``_undo_steps`` has one statement per change
- ``_fixture``: some transactions as JSON lines; ``_stream_cut`` is what a server would have sent of them, ``_masks``
  replace values, ``_delta_debugging`` finds the parts that matter
- ``_fork``: the commit, and what ``replay`` and ``replicate`` make as of it
- ``_tracked_table``: a table through renames: its columns, what identifies its rows
- ``_table_changes``: the committed changes of a table in the order in which they make its rows
- ``_row_states``: each row before and after each change
- ``_row_search``: the changes of some rows, found by the bytes of their keys

Invariants: a log is only read; only segments that have changes of the table are read; what the log does not say is
reported as unknown, never guessed. Public: the names below.
"""

from typing import TYPE_CHECKING, Any

from pgoutput_construct.extras import needing

with needing("changelog"):
    from pgoutput_construct.forensics._blame import RowTouch, blame
    from pgoutput_construct.forensics._fixture import Fixture, command_fails, fixture
    from pgoutput_construct.forensics._fork import Fork, ForkPoint, fork

if TYPE_CHECKING:
    from pgoutput_construct.forensics._undo import UndoneTransaction, UndoScript, undo

__all__ = [
    "Fixture",
    "Fork",
    "ForkPoint",
    "RowTouch",
    "UndoScript",
    "UndoneTransaction",
    "blame",
    "command_fails",
    "fixture",
    "fork",
    "undo",
]


def __getattr__(name: str) -> Any:
    """Import ``undo`` on first use; raise MissingExtraError if psycopg is not installed."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needing("postgres"):
        from pgoutput_construct.forensics import _undo
    return getattr(_undo, name)


def __dir__() -> list[str]:
    """Return what is public, also what was not imported yet."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
