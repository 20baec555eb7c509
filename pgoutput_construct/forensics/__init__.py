"""What happened to a row, how to take a transaction back, and a stream cut to what a test needs.

In: a change log. Out: every change of a row with its transaction (``blame``); SQL that takes transactions back
(``undo``). Nothing here needs a server or Spark; ``undo`` needs psycopg, which quotes values.

- ``_blame``: the changes of one row; start reading here
- ``_undo``: the SQL that takes transactions back; ``_undo_steps`` has one statement per change, ``_undo_script`` the
  text around them
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
    from pgoutput_construct.forensics._blame import MISSING, RowTouch, blame

if TYPE_CHECKING:
    from pgoutput_construct.forensics._undo import UndoneTransaction, UndoScript, undo

__all__ = ["MISSING", "RowTouch", "UndoScript", "UndoneTransaction", "blame", "undo"]


def __getattr__(name: str) -> Any:
    """Import ``undo`` on first use; raise MissingExtraError if psycopg is not installed."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needing("postgres"):
        from pgoutput_construct.forensics import _undo
    return getattr(_undo, name)
