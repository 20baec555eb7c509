"""What must be true of the changes of a table, and the errors where it is not: rows exist, values are known."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from pyspark.sql import Column

from pgoutput_construct.changelog._facts.copies import snapshot_command
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.spark._execution import error_column
from pgoutput_construct.spark._log_view.replicated_tables import Table

_VALUE: Final = (
    ": row ",
    ": an update does not send the value of the column '",
    "' (an unchanged TOASTed value), and the log does not have the row before it",
)
_ROW: Final = (": row ", ": UPDATE or DELETE of a row that does not exist")
_UNSENT_ROW: Final = (
    ": UPDATE or DELETE of a partition's row, of which the server did not send the old row: its root has REPLICA "
    "IDENTITY FULL, the partition another one; run ALTER TABLE ... REPLICA IDENTITY FULL on each partition, then copy "
    "the table again "
)
_EARLIER: Final = (": row ", ": UPDATE or DELETE, here or before, of a row that does not exist")


@dataclass(frozen=True)
class Demand:
    """What must be true of the changes of a table."""

    values: bool = True
    """Whether an unsent value that no row has is an error; else it is null."""
    rows: bool = False
    """Whether a change of a row that does not exist is an error: the log has all rows of the table."""
    table: str = ""
    """The table as SQL writes it, for messages."""

    def refuse_value(self, position: Column, key: Column, name: Column) -> Column:
        """Return a failing column: the change at ``position``, of the row ``key``, did not send the column ``name``."""
        remedy = f": copy the table again ({snapshot_command(self.table)})" if self.table else ""
        return self._refuse(position, _VALUE[0], key, _VALUE[1], name, _VALUE[2] + remedy)

    def refuse_row(self, position: Column, key: Column) -> Column:
        """Return a failing column: the change at ``position``, or an earlier one, of the row ``key`` found no row."""
        return self._refuse(position, _EARLIER[0], key, f"{_EARLIER[1]}{self.remedy}")

    def row_error(self, commit_lsn: int, seq: int, key: str) -> ChangeLogError:
        """Return the error of a change at a position, of the row ``key``, that found no row."""
        return self._error(commit_lsn, seq, _ROW[0], key, f"{_ROW[1]}{self.remedy}")

    def unsent_row_error(self, commit_lsn: int, seq: int) -> ChangeLogError:
        """Return the error of a change at a position whose old row was not sent, although it is needed to find it."""
        return self._error(commit_lsn, seq, f"{_UNSENT_ROW}({snapshot_command(self.table)})")

    @property
    def remedy(self) -> str:
        """Why the row should exist, and what to do."""
        return (
            "; the log should be complete for this table, so changes are missing or duplicated: copy the table again "
            f"({snapshot_command(self.table)}), or have such changes reported, and continue without their rows "
            '(on_missing="report", --on-missing report)'
        )

    def _refuse(self, position: Column, *parts: Column | str) -> Column:
        where = f"{self._title}commit ", position["_commit_lsn"], ", seq ", position["_seq"], " in it"
        return error_column(*where, *parts).cast("boolean")

    def _error(self, commit_lsn: int, seq: int, *parts: str) -> ChangeLogError:
        return ChangeLogError(f"{self._title}commit {commit_lsn}, seq {seq} in it{''.join(parts)}")

    @property
    def _title(self) -> str:
        return f"{self.table}: " if self.table else ""


NO_DEMAND: Final = Demand(values=False)
"""Nothing is an error: unknown values are null."""
OnMissing: TypeAlias = Literal["error", "report"]
"""What happens to a change of a row that should exist and does not."""


def check_on_missing(on_missing: str) -> None:
    """Raise PgoutputError for what is no OnMissing."""
    if on_missing not in get_args(OnMissing):
        raise PgoutputError(f"on_missing is {on_missing!r}: it is one of {', '.join(get_args(OnMissing))}")


def demand_of(table: Table, on_missing: OnMissing, is_whole: bool) -> Demand:
    """Return what must be true of the changes of a table.

    Args:
        table: The table.
        on_missing: With ``report`` nothing is an error.
        is_whole: Whether the log has all rows of the table.
    """
    return Demand(rows=is_whole, table=table.qualified) if on_missing == "error" else NO_DEMAND
