"""One table under a snapshot: its parts by their checksums, and those that differ row by row."""

from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import DataFrame

from pgoutput_construct.columnar.row_checksums import NOTHING, ByHash, Division
from pgoutput_construct.spark.verifying.pace import Pace
from pgoutput_construct.spark.verifying.parts import checksums, names_of
from pgoutput_construct.spark.verifying.report import TableVerdict
from pgoutput_construct.spark.verifying.resuming import Record
from pgoutput_construct.spark.verifying.rows import EXAMPLES, compare_part
from pgoutput_construct.spark.verifying.source import SourceTable

__all__ = ["Comparison"]

_ROW_BY_ROW: Final = 20
"""How many parts of a table are compared row by row."""


@dataclass
class Comparison:
    """One table under a snapshot."""

    source: SourceTable
    rows: DataFrame
    """What the warehouse should have: the table's columns, and TEXTS."""
    keys: tuple[str, ...]
    """The columns of its key; none where it has none."""
    pace: Pace
    record: Record
    verdict: TableVerdict
    """What was found so far."""
    _total: int = 0

    def run(self) -> TableVerdict:
        """Compare it, part by part."""
        self._total = self.rows.count()
        if len(self.keys) == 1 and self.keys[0] in self.source.ordered:
            return self._by_key(self.keys[0])
        count = max(1, -(-self._total // self.pace.rows))
        self._compare(ByHash(self.keys or tuple(names_of(self.rows)), count))
        return self.verdict

    def _by_key(self, key: str) -> TableVerdict:
        before, after = self.record.so_far(self.verdict.table)
        if before is not None:
            self.verdict = replace(before, seq=self.verdict.seq, lsn=self.verdict.lsn)
        while True:
            ranges = self.source.ranges(key, after, self.pace.rows, self.pace.parts)
            self._compare(ranges)
            if ranges.to_the_end:
                return self.verdict
            after = ranges.bounds[-1]
            self.record.note(self.verdict, after)

    def _compare(self, division: Division) -> None:
        ours = checksums(self.rows, division)
        different, seen, count = [], set(), 0
        for number, sums in self.source.checksums(division):
            seen.add(number)
            count += sums.rows
            if sums != ours.get(number, NOTHING):
                different.append(number)
            self.pace.compared(self.verdict.table, self.verdict.rows + count, self._total)
        different += sorted(ours.keys() - seen)
        parts = division.buckets if isinstance(division, ByHash) else len(division.bounds) + division.to_the_end
        told = self.verdict
        self.verdict = replace(told, rows=told.rows + count, parts=told.parts + parts)
        for number in different:
            self._differs(division, number)

    def _differs(self, division: Division, number: int) -> None:
        told, rows, examples = self.verdict, 0, list(self.verdict.examples)
        if told.different_parts < _ROW_BY_ROW:
            rows, more = compare_part(self.source, self.rows, division, number, self.keys)
            examples = [*examples, *more][:EXAMPLES]
        parts, rows = told.different_parts + 1, told.different_rows + rows
        self.verdict = replace(told, different_parts=parts, different_rows=rows, examples=tuple(examples))
