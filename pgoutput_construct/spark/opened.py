"""What is known of a log and its tables as of a seq, out of its index alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pgoutput_construct.changelog.as_of import index_as_of
from pgoutput_construct.changelog.facts import table_readings
from pgoutput_construct.changelog.lineage import lineage_of
from pgoutput_construct.changelog.log_index import LogIndex
from pgoutput_construct.changelog.reader import ChangeLog, explain
from pgoutput_construct.changelog.wholeness import present_copies
from pgoutput_construct.columnar import chosen_types
from pgoutput_construct.columnar.descriptions import UNDESCRIBED
from pgoutput_construct.errors import ChangeLogError, EngineError, PgoutputError
from pgoutput_construct.spark.finding import find_tables
from pgoutput_construct.spark.plan import Plan, plan_of
from pgoutput_construct.spark.tables import Refused, Table
from pgoutput_construct.spark.usages import find_usages, visible_runs
from pgoutput_construct.stream.identifiers import normal_name
from pgoutput_construct.wire.engine import parse

__all__ = ["Opened", "opened"]


@dataclass(frozen=True)
class Opened:
    """A log as of a seq."""

    log: ChangeLog
    as_of: int
    """Transactions that ended by this seq are there, and what else stands in the log up to it."""
    index: LogIndex
    plan: Plan
    tables: Mapping[str, Table]
    """All tables with committed changes or a copy, by their names: ``schema.table``, quoted where SQL needs it."""
    types: str = ""
    """The types that columns have by choice, as they were given."""
    refused: Mapping[str, Refused] = field(default_factory=dict)
    """The tables besides these that cannot be read."""

    def table(self, name: str) -> Table:
        """Return what is known of a table, named as in SQL; raise ChangeLogError where the log does not have it.

        Raises another PgoutputError where it cannot be read.
        """
        known = normal_name(name)
        if known in self.refused:
            raise self.refused[known].error
        if known not in self.tables:
            raise ChangeLogError(f"the log has no table {known}: it has {', '.join(self.tables) or 'none'}")
        return self.tables[known]


def opened(log: ChangeLog, as_of: int | None = None, types: str = "", *, lets_pass: bool = False) -> Opened:
    """Find out what is known of a log as of a seq, None for all of it; raises as ``spark.open_log`` does.

    ``types`` are as there. It ``lets_pass`` rows that nothing describes, as those that are malformed before they name
    their table.
    """
    choices = chosen_types(types)
    index = log.index if as_of is None else index_as_of(log, as_of)
    plan = plan_of(log, index)
    runs = visible_runs(index, plan)
    is_known = runs.column("description") != UNDESCRIBED
    for run in np.flatnonzero(~is_known).tolist() if not lets_pass else ():
        raise _undescribed(log, plan, int(runs.column("first_seq")[run]), int(runs.column("oid")[run]))
    known = present_copies(index), lineage_of(index), table_readings(index)
    refused: dict[str, Refused] = {}
    tables = find_tables(plan.history, find_usages(runs.take(is_known), plan), *known, choices, refused)
    return Opened(log, index.last_seq if as_of is None else as_of, index, plan, tables, types, refused)


def _undescribed(log: ChangeLog, plan: Plan, seq: int, oid: int) -> ChangeLogError:
    """Return what is wrong with a row that nothing describes: bytes that are no message explain it better."""
    entry = log.entry(seq)
    try:
        parse(entry.payload, **log.segment(seq).options.layout() | entry.states)
        plan.history.index(oid, seq, entry.scope)
    except PgoutputError as error:
        return explain(entry, error)
    raise EngineError(f"seq {seq}: the description of the relation OID {oid} is not found; please report this")
