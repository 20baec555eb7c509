"""One table under a snapshot: parts by their checksums, and those that differ row by row.

``SnapshotSource``, ``SourceSnapshot`` and ``ServerTable`` are what is needed of a server;
``postgres.checksums.SourceServer`` implements them, since this room knows no sockets.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame

from pgoutput_construct.changelog._facts.visibility import Snapshot
from pgoutput_construct.columnar.column_masks import Mask
from pgoutput_construct.columnar.row_checksums import NOTHING, ByHash, ByKey, Checksum, Division
from pgoutput_construct.spark._verify.part_checksums import checksums, digests, names_of, rows_of
from pgoutput_construct.spark._verify.verdicts import Difference, TableVerdict, VerificationRecord

_ROW_BY_ROW: Final = 20
"""The most parts of a table that are compared row by row."""
Texts = Sequence[str | None]


class ServerTable(Protocol):
    """A table of the server under a snapshot."""

    @property
    def ordered(self) -> frozenset[str]:
        """The columns by which it can be divided into ranges: Spark orders their values in the same way."""

    def ranges(self, column: str, after: str | None, rows: int, most: int) -> ByKey:
        """Divide the rows after a key into ranges.

        Args:
            column: The column of the key.
            after: The text of the key, None for all rows.
            rows: How many rows a range has.
            most: How many ranges there are at most.
        """

    def checksums(self, division: Division) -> Iterator[tuple[int, Checksum]]:
        """Yield the checksum of each part by its number; parts without rows may be omitted."""

    def digests(self, division: Division, number: int, keys: Sequence[str]) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the texts of the key of each row in a part, and the digest of the row.

        Args:
            division: How the table is divided into parts.
            number: The number of the part.
            keys: The columns of the key.
        """

    def rows(self, division: Division, number: int, requested: Sequence[str]) -> Sequence[Texts]:
        """Return the texts of the columns of those rows in a part that have some digests."""


@dataclass(frozen=True)
class VerifyOptions:
    """How a verification proceeds."""

    wait: float = 600.0
    """Seconds to wait for the log, and for the warehouse, to reach a snapshot."""
    rows: int = 50_000
    """Rows of a part."""
    parts: int = 1000
    """Ranges that are compared before progress is recorded."""
    on_wait: Callable[[str], None] = field(default=lambda text: None)
    """Called with what is being waited for."""
    on_progress: Callable[[str, int, int], None] = field(default=lambda table, rows, total: None)
    """Called with a table, the number of compared rows, and the number of rows in the warehouse."""


@dataclass
class TableComparison:
    """The comparison of one table under a snapshot."""

    source: ServerTable
    rows: DataFrame
    """The rows that the warehouse should have: the columns of the table, and TEXTS."""
    keys: tuple[str, ...]
    """The columns of its key, () for none."""
    options: VerifyOptions
    record: VerificationRecord
    verdict: TableVerdict
    """What was found so far."""
    _total: int = 0

    def run(self) -> TableVerdict:
        """Compare it, part by part."""
        self._total = self.rows.count()
        if len(self.keys) == 1 and self.keys[0] in self.source.ordered:
            return self._by_key(self.keys[0])
        count = max(1, -(-self._total // self.options.rows))
        self._compare(ByHash(self.keys or tuple(names_of(self.rows)), count))
        return self.verdict

    def _by_key(self, key: str) -> TableVerdict:
        before, after = self.record.so_far(self.verdict.table)
        if before is not None:
            now = self.verdict
            self.verdict = replace(before, seq=now.seq, lsn=now.lsn, not_compared=now.not_compared)
        while True:
            ranges = self.source.ranges(key, after, self.options.rows, self.options.parts)
            self._compare(ranges)
            if ranges.to_the_end:
                return self.verdict
            after = ranges.bounds[-1]
            self.record.record(self.verdict, after)

    def _compare(self, division: Division) -> None:
        ours = checksums(self.rows, division)
        different, found, count = [], set(), 0
        for number, sums in self.source.checksums(division):
            found.add(number)
            count += sums.rows
            if sums != ours.get(number, NOTHING):
                different.append(number)
            self.options.on_progress(self.verdict.table, self.verdict.rows + count, self._total)
        different += sorted(ours.keys() - found)
        parts = division.buckets if isinstance(division, ByHash) else len(division.bounds) + division.to_the_end
        verdict = self.verdict
        self.verdict = replace(verdict, rows=verdict.rows + count, parts=verdict.parts + parts)
        for number in different:
            self._differs(division, number)

    def _differs(self, division: Division, number: int) -> None:
        verdict, rows, examples = self.verdict, 0, list(self.verdict.examples)
        if verdict.different_parts < _ROW_BY_ROW:
            rows, more = compare_part(self.source, self.rows, division, number, self.keys)
            examples = [*examples, *more][:EXAMPLES]
        parts, rows = verdict.different_parts + 1, verdict.different_rows + rows
        self.verdict = replace(verdict, different_parts=parts, different_rows=rows, examples=tuple(examples))


EXAMPLES: Final = 10
"""How many differing rows are reported."""


def compare_part(
    source: ServerTable, rows: DataFrame, division: Division, number: int, keys: Sequence[str]
) -> tuple[int, list[Difference]]:
    """Return how many rows of a part differ, and the first of them by key.

    The keys and digests of all rows of the part pass through the driver, and the values of the reported ones.

    Args:
        source: The table of the server.
        rows: The rows of the warehouse.
        division: How the table is divided into parts.
        number: The number of the part.
        keys: The columns of the key.
    """
    found = digests(rows, division, number, keys).collect()
    here, there = (
        Counter((tuple(row["key"]), row["digest"]) for row in found),
        Counter(source.digests(division, number, keys)),
    )
    missing, unexpected = sorted((there - here).elements()), sorted((here - there).elements())
    if not keys:
        some = missing[: EXAMPLES // 2], unexpected[: EXAMPLES // 2]
        count = len(missing) + len(unexpected)
    else:
        known = sorted({key for key, _ in (*missing, *unexpected)})
        count, shown = len(known), set(known[:EXAMPLES])
        some = [each for each in missing if each[0] in shown], [each for each in unexpected if each[0] in shown]
    requested = [[digest for _, digest in side] for side in some]
    ours = source.rows(division, number, requested[0]) if requested[0] else []
    theirs = [row["row"] for row in rows_of(rows, requested[1]).collect()] if requested[1] else []
    return count, list(_differences(names_of(rows), keys, ours, theirs))


def _differences(
    names: Sequence[str], keys: Sequence[str], source: Iterable[Texts], warehouse: Iterable[Texts]
) -> Iterable[Difference]:
    ours, theirs = (_by_key(names, keys, rows) for rows in (source, warehouse))
    for key in sorted({*ours, *theirs}, key=str):
        before, after = ours.get(key), theirs.get(key)
        values_of_key = dict(zip(keys or names, key, strict=True))
        if before is None or after is None:
            yield Difference(values_of_key, "missing" if after is None else "unexpected")
        else:
            differ = tuple(name for name in names if before[name] != after[name])
            values = ({name: side[name] for name in differ} for side in (before, after))
            yield Difference(values_of_key, "changed", differ, *values)


def _by_key(
    names: Sequence[str], keys: Sequence[str], rows: Iterable[Texts]
) -> dict[tuple[str | None, ...], Mapping[str, str | None]]:
    found = (dict(zip(names, row, strict=True)) for row in rows)
    return {tuple(row[name] for name in keys or names): row for row in found}


class SourceSnapshot(Protocol):
    """A snapshot of the server that is held."""

    @property
    def snapshot(self) -> Snapshot:
        """The transactions that it contains; its LSN is after the commits of all of them."""

    def table(
        self, relation_oid: int, columns: pa.Schema, masks: Mapping[str, Mask], sources: Mapping[str, str]
    ) -> ServerTable | str:
        """Return a table by its OID with these columns, masks and other names of some; or what happened to it."""


class SnapshotSource(Protocol):
    """A server."""

    def held(self, salts: Sequence[bytes]) -> AbstractContextManager[SourceSnapshot]:
        """Hold a snapshot while a block runs, and the salts of masks at the server."""
