"""What is demanded of the changes of a table, and the errors where it is not so."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from pyspark.sql import Column

from pgoutput_construct.changelog._facts.copies import snapshot_command
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.spark._execution import error_column
from pgoutput_construct.spark._log_view.replicated_tables import Table

__all__ = ["NO_DEMAND", "Demand", "OnMissing", "check_on_missing", "demand_of"]


_VALUE: Final = (
    ": the change of the row ",
    " does not send the value of the column '",
    "' (as of unchanged TOASTed ones), and the log does not have the row before it",
)

_ROW: Final = (": the row ", " is changed and is not there")

_EARLIER: Final = (": the row ", " is changed there, or before, and is not there")


@dataclass(frozen=True)
class Demand:
    """What is asked of the changes of a table."""

    values: bool = True
    """A value that a change does not send, and that no row has, is an error; else it is null."""
    rows: bool = False
    """So is every change of a row that is not there: the log has all rows of the table."""
    table: str = ""
    """The table as SQL writes it, for what is said."""

    def refuse_value(self, place: Column, key: Column, name: Column) -> Column:
        """Return what fails since the change at a place, of the row ``key``, leaves the column ``name`` open."""
        return self._refuse(place, _VALUE[0], key, _VALUE[1], name, _VALUE[2])

    def refuse_row(self, place: Column, key: Column) -> Column:
        """Return what fails since the last change of the row ``key``, at a place, or one before it, finds none."""
        return self._refuse(place, _EARLIER[0], key, f"{_EARLIER[1]}{self.remedy}")

    def row_error(self, commit_lsn: int, seq: int, key: str) -> ChangeLogError:
        """Return the error of a change at a place, of the row ``key``, that finds none."""
        return self._error(commit_lsn, seq, _ROW[0], key, f"{_ROW[1]}{self.remedy}")

    @property
    def remedy(self) -> str:
        """Why a row must be there, and what to do where it is not."""
        return (
            ", though the log has all rows of this table: some of its changes are missing, or there twice; copy the "
            f"table again ({snapshot_command(self.table)}), or go on without such rows, and "
            'have them reported (on_missing="report", --on-missing report)'
        )

    def _refuse(self, place: Column, *parts: Column | str) -> Column:
        where = f"{self._title}commit ", place["_commit_lsn"], ", seq ", place["_seq"], " in it"
        return error_column(*where, *parts).cast("boolean")

    def _error(self, commit_lsn: int, seq: int, *parts: str) -> ChangeLogError:
        return ChangeLogError(f"{self._title}commit {commit_lsn}, seq {seq} in it{''.join(parts)}")

    @property
    def _title(self) -> str:
        return f"{self.table}: " if self.table else ""


NO_DEMAND: Final = Demand(values=False)
"""Nothing is asked: what is not known is null."""

OnMissing: TypeAlias = Literal["error", "report"]
"""What becomes of a change of a row that must be there and is not."""


def check_on_missing(on_missing: str) -> None:
    """Raise PgoutputError for what is no OnMissing."""
    if on_missing not in get_args(OnMissing):
        raise PgoutputError(f"on_missing is {on_missing!r}: it is one of {', '.join(get_args(OnMissing))}")


def demand_of(table: Table, on_missing: OnMissing, is_whole: bool) -> Demand:
    """Return what is asked of the changes of a table."""
    return Demand(rows=is_whole, table=table.qualified) if on_missing == "error" else NO_DEMAND
