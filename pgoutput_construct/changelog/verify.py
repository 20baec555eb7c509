"""Verifies a log: all checksums, that no segment is missing, and that the indexes match the payloads."""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pgoutput_construct.changelog._index.index_builder import IndexBuilder
from pgoutput_construct.changelog._index.indexes import index_of
from pgoutput_construct.changelog._index.listing import list_log
from pgoutput_construct.changelog._index.log_index import NUMBERS, LogIndex
from pgoutput_construct.changelog._index.manifest import LEFT_OUT, manifest_names, read_manifest
from pgoutput_construct.changelog._index.planning import sent_by_seq
from pgoutput_construct.changelog._notes.confirmation_note import Note, read_note
from pgoutput_construct.changelog._segment.block import NO_XID, Block
from pgoutput_construct.changelog._segment.footer import DAMAGE, Segment, chosen, damaged, read_footer, read_tail
from pgoutput_construct.changelog._segment.segment_index import COLUMNS, SegmentIndex
from pgoutput_construct.changelog._segment.segment_reader import read_segment
from pgoutput_construct.changelog._segment.segment_schema import parts_of
from pgoutput_construct.changelog._segment.size_limits import open_parquet
from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.store import Address, LogStore, MissingFileError
from pgoutput_construct.changelog.registry import readers
from pgoutput_construct.errors import ChangeLogError

__all__ = ["Verification", "verify"]


@dataclass(frozen=True)
class Verification:
    """What was checked, and what is wrong."""

    segments: int = 0
    """The number of segments in the log."""
    checked: int = 0
    """The number of segments that were read, with all checksums verified and the index compared with the rows."""
    rows: int = 0
    """Rows in the checked segments."""
    manifests: int = 0
    """The number of manifests that were compared with the footers."""
    covered: int = 0
    """Files covered by larger segments, which the next compaction removes."""
    problems: tuple[str, ...] = field(default=())
    """What is wrong: file, reason, and what to do."""


OnProgress = Callable[[Verification], None]


def verify(address: Address | LogStore, on_progress: OnProgress | None = None) -> Verification:
    """Read a whole log, and compare everything that it stores twice.

    Args:
        address: The address of the log: a path, a URL, or a store.
        on_progress: Called after each segment.

    Returns:
        The report, with the problems found.

    Raises:
        ChangeLogError: There is no log, or the store cannot be read.
    """
    store = open_store(address)
    names, covered = chosen(store.files())
    if not names:
        raise ChangeLogError(f"{store}: no change log here (no segment-*.parquet)")
    run = _Verification(store, on_progress or (lambda found: None))
    run.found = Verification(len(names), covered=len(covered))
    run.run()
    return run.found


@dataclass
class _Verification:
    store: LogStore
    on_progress: OnProgress
    found: Verification = field(default_factory=Verification)
    _lost: list[range] = field(default_factory=list)
    """The seqs that were pruned or could not be read."""

    def run(self) -> None:
        note = self._note()  # before the segments are listed, since a capture may write both meanwhile
        segments = self._listed()
        self._notes(note, segments)
        self._segments(segments)
        self._manifests()

    def problem(self, text: str) -> None:
        self.found = replace(self.found, problems=(*self.found.problems, text))

    def _listed(self) -> list[Segment]:
        """Return the segments; if some are missing or damaged, those whose footers can be read."""
        try:
            return list(list_log(self.store))
        except ChangeLogError as error:
            self.problem(str(error))
        files, segments = self.store.files(), list[Segment]()
        for name in chosen(files)[0]:
            try:
                segments.append(read_footer(self.store, name, files[name.name]))
            except ChangeLogError as error:
                if str(error) not in self.found.problems:
                    self.problem(str(error))
        return segments

    def _note(self) -> Note:
        try:
            return read_note(self.store)
        except ChangeLogError as error:
            self.problem(str(error))
            return Note()

    def _notes(self, note: Note, segments: list[Segment]) -> None:
        try:
            if segments:
                note.check_end(segments[-1].last_seq + 1, self.store)
            readers(self.store)
        except ChangeLogError as error:
            self.problem(str(error))

    def _segments(self, segments: list[Segment]) -> None:
        """Compare each index with one that is built again from the rows."""
        builder: IndexBuilder | None = IndexBuilder()
        open_xid, next_seq, segment_index = NO_XID, 0, 0
        while segment_index < len(segments):
            segment = segments[segment_index]
            if segment.first_seq != next_seq:
                self._lost.append(range(next_seq, segment.first_seq))
                builder = None
            try:
                table, stored = read_segment(segment), index_of(segment)
                after = _builder_after(segment, segments) if builder is None else builder
            except MissingFileError as error:
                segments, segment_index = self._listed_again(segment, error)
                next_seq = segment.first_seq
                continue
            except ChangeLogError as error:
                self.problem(str(error))
                self._lost.append(range(segment.first_seq, segment.last_seq + 1))
                builder, next_seq, segment_index = None, segment.last_seq + 1, segment_index + 1
                continue
            self._compare_statistics(segment, table)
            if builder is not None:
                index, open_xid = _rebuilt(builder, segment, table, open_xid)
                self._compare(segment, stored, index)
            else:  # after a gap: the next one is built upon this one's stored index
                builder, open_xid = after, NO_XID
            next_seq, segment_index = segment.last_seq + 1, segment_index + 1
            self.found = replace(self.found, checked=self.found.checked + 1, rows=self.found.rows + segment.rows)
            self.on_progress(self.found)

    def _listed_again(self, missing: Segment, error: MissingFileError) -> tuple[list[Segment], int]:
        """List the log again after a segment disappeared, and return the index of the segment with its seqs, or after.

        A segment that begins earlier is not compared, since its rows before were added to the builder already.
        """
        segments = self._listed()
        segment_index = bisect_left(segments, missing.first_seq, key=lambda segment: segment.last_seq)
        is_lost = segment_index < len(segments) and segments[segment_index].name == missing.name
        if is_lost or segment_index == len(segments):
            self.problem(str(error))
        self.found = replace(self.found, segments=self.found.checked + len(segments) - segment_index)
        return segments, segment_index + is_lost

    def _compare(self, segment: Segment, stored: SegmentIndex, index: SegmentIndex) -> None:
        if wrong := differences(stored, index, self._lost):
            self.problem(f"segment {segment.path}: its index does not match its rows: {', '.join(wrong)}")

    def _compare_statistics(self, segment: Segment, table: pa.Table) -> None:
        """Compare Parquet's statistics with the rows: other readers skip rows by them, and no checksum covers them."""
        try:
            tail = read_tail(segment.store, segment.name)
        except MissingFileError:  # compacted since
            return
        try:
            wrong = _wrong_statistics(open_parquet(pa.BufferReader(tail)).metadata, table)
        except DAMAGE as error:
            self.problem(str(damaged(segment.path, error)))
            return
        if wrong:
            self.problem(f"segment {segment.path}: damaged: its statistics do not match its rows: {', '.join(wrong)}")

    def _manifests(self) -> None:
        files = self.store.files()
        known = {name.name: name for name in chosen(files)[0]}
        for name in manifest_names(files):
            try:
                manifest = read_manifest(self.store, name.name)
            except MissingFileError:  # merged into a larger one since
                continue
            except ChangeLogError as error:
                self.problem(str(error))
                continue
            self.found = replace(self.found, manifests=self.found.manifests + 1)
            for row, segment in enumerate(manifest.segments(self.store, slice(None))):
                if files.get(segment.name) != segment.size or segment.name not in known:
                    continue  # replaced or removed since: then the manifest does not count
                try:
                    footer = read_footer(self.store, known[segment.name], segment.size)
                except ChangeLogError:
                    continue  # reported above
                try:
                    wrong = _wrong(index_of(footer), manifest.index(slice(row, row + 1)))
                except ChangeLogError as error:
                    self.problem(str(error))
                    break
                if wrong or footer != segment:
                    columns = ", ".join(wrong) or "footer"
                    path = self.store.path_of(name.name)
                    self.problem(
                        f"{path}: does not match the footer of {segment.name}: {columns}; remove it: it is a cache"
                    )


def _wrong_statistics(metadata: pq.FileMetaData, table: pa.Table) -> list[str]:
    """Return the columns whose statistics in the metadata do not match the rows."""
    wrong, first = dict[str, None](), 0
    for group in (metadata.row_group(number) for number in range(metadata.num_row_groups)):
        rows = table.slice(first, group.num_rows)
        first += group.num_rows
        for column_index, name in enumerate(table.column_names):
            described, column = group.column(column_index), rows[name]
            is_right = described.path_in_schema == name and described.num_values == len(column)
            if is_right and (said := described.statistics) is not None:
                least = pc.min_max(column).as_py() if said.has_min_max else {"min": None, "max": None}
                found = (least["min"], least["max"], column.null_count)
                is_right = found == (*((said.min, said.max) if said.has_min_max else (None, None)), said.null_count)
            if not is_right:
                wrong[name] = None
    return [*wrong]


def _wrong(index: SegmentIndex, known: LogIndex) -> list[str]:
    """Return the columns in which a manifest differs from the index of a segment."""
    stored, found = (each.table.select(["ended", *NUMBERS, "marked"]) for each in (known, LogIndex.over(index)))
    derived = [name for name in found.column_names if stored[name].to_pylist() != found[name].to_pylist()]
    return [*differences(index, known, without=LEFT_OUT), *derived]


def differences(
    index: SegmentIndex, other: SegmentIndex, lost: Sequence[range] = (), without: tuple[str, ...] = ()
) -> list[str]:
    """Return the columns in which two indexes of the same rows differ; the order within a column does not matter.

    Args:
        index: An index.
        other: Another one.
        lost: Seqs that are missing: descriptions in force that were sent there are not compared.
        without: Columns to skip.
    """
    names = [name for name in COLUMNS if name not in without]
    return [name for name in names if _entries(index, name, lost) != _entries(other, name, lost)]


def _entries(index: SegmentIndex, name: str, lost: Sequence[range]) -> list[str]:
    rows = index.entries(name).to_pylist()
    return sorted(repr(row) for row in rows if name != "in_force" or not any(row["seq"] in part for part in lost))


def _builder_after(segment: Segment, segments: list[Segment]) -> IndexBuilder:
    """Return a builder for the segment after this one; pruned descriptions are found where they are still needed."""
    sent: dict[int, Mapping[str, Any]] = {}
    for each in segments:
        with suppress(ChangeLogError):  # reported where it is read
            sent |= sent_by_seq(index_of(each))
    return IndexBuilder(index_of(segment), lambda seqs: [sent[seq] for seq in seqs if seq in sent])


def _rebuilt(builder: IndexBuilder, segment: Segment, table: pa.Table, open_xid: int) -> tuple[SegmentIndex, int]:
    """Return the index built from a segment's rows, and the transaction that is open after them."""
    for part in parts_of(table, segment.options.layout(), open_xid):
        builder.add(part)
        open_xid = part.open_xid if isinstance(part, Block) else open_xid
    return builder.finish(segment.position.complete_lsn), open_xid
