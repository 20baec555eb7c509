"""What makes an action on a table's rows fail: changes that cannot be right, said with the table and the remedy."""

from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as Spark's documentation has it

from pgoutput_construct.changelog.copies import snapshot_command
from pgoutput_construct.errors import ChangeLogError

__all__ = ["AS_IT_COMES", "Demand", "prefixed", "refuse"]

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

    def value_error(self, commit_lsn: int, seq: int, key: str, name: str) -> ChangeLogError:
        """Return the error that ``refuse_value`` fails with."""
        return self._error(commit_lsn, seq, _VALUE[0], key, _VALUE[1], name, _VALUE[2])

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
        return refuse(*where, *parts).cast("boolean")

    def _error(self, commit_lsn: int, seq: int, *parts: str) -> ChangeLogError:
        return ChangeLogError(f"{self._title}commit {commit_lsn}, seq {seq} in it{''.join(parts)}")

    @property
    def _title(self) -> str:
        return f"{self.table}: " if self.table else ""


AS_IT_COMES: Final = Demand(values=False)
"""Nothing is asked: what is not known is null."""


def refuse(*parts: Column | str) -> Column:
    """Return a column that fails with a ChangeLogError when it is evaluated."""
    texts = (F.lit(part) if isinstance(part, str) else part.cast("string") for part in (prefixed(""), *parts))
    return F.raise_error(F.concat_ws("", *texts))


def prefixed(text: str) -> str:
    """Return the text of a ChangeLogError: named as an error of an executor is, so that plain_errors finds it."""
    return f"{ChangeLogError.__module__}.{ChangeLogError.__name__}: {text}"
