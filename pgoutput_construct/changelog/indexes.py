"""The index of a whole log, out of its footers; of segments of format 1, which have none, out of their payloads."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from pgoutput_construct.changelog.block import NO_XID, Block
from pgoutput_construct.changelog.build import IndexBuilder
from pgoutput_construct.changelog.columns import parts_of
from pgoutput_construct.changelog.described import Sent
from pgoutput_construct.changelog.footer import DAMAGE, Segment, damaged, read_footer
from pgoutput_construct.changelog.index import SegmentIndex
from pgoutput_construct.changelog.listed import Listing, Run
from pgoutput_construct.changelog.names import SegmentName
from pgoutput_construct.changelog.reading import read_segment

__all__ = ["builder_after", "index_of", "indexes_of"]


def indexes_of(listing: Listing) -> SegmentIndex:
    """Return the index of consecutive segments; raises ChangeLogError for a damaged one.

    Those of format 1 are read as a whole, and must come first.
    """
    runs = list(listing.runs())
    old = [run for run in runs if isinstance(run, Segment) and _has_none(run)]
    return SegmentIndex.concat([*_computed(old), *map(_index_of_run, runs[len(old) :])])


def _index_of_run(run: Run | Segment) -> SegmentIndex:
    return index_of(run) if isinstance(run, Segment) else run.manifest.index(run.rows)


def _has_none(segment: Segment) -> bool:
    return segment.options.log_format == 1


def index_of(segment: Segment) -> SegmentIndex:
    """Return the index in a segment's footer; raise ChangeLogError where it is damaged."""
    content = segment.index
    if content is None:  # a manifest has it, but not all of it
        name = SegmentName(segment.first_seq, segment.last_seq, segment.name)
        content = read_footer(segment.store, name, segment.size).index
    assert content is not None
    try:
        index = SegmentIndex.from_bytes(content)
        if (len(index), index.first_seq, index.last_seq) != (1, segment.first_seq, segment.last_seq):
            raise ValueError(f"its index is of seq {index.first_seq} to {index.last_seq}")
    except DAMAGE as error:
        raise damaged(segment.place, error) from error
    return index


def builder_after(segments: Listing, sent: Mapping[int, Sent] = MappingProxyType({})) -> IndexBuilder:
    """Return what builds the index of what comes after these segments.

    ``sent`` are descriptions in force, by seq, as far as they are known (``IndexBuilder.sent``): others are looked for.
    """
    if not segments:
        return IndexBuilder()
    if _has_none(segments[-1]):
        last = indexes_of(segments)
        return IndexBuilder(last.one(len(last) - 1), lambda seqs: _among(last, set(seqs)))
    return IndexBuilder(index_of(segments[-1]), lambda seqs: _sent_by(segments, seqs, sent))


def _computed(segments: Iterable[Segment]) -> Iterator[SegmentIndex]:
    builder, open_xid = IndexBuilder(), NO_XID
    for segment in segments:
        for part in parts_of(read_segment(segment), segment.options.layout(), open_xid):
            builder.add(part)
            open_xid = part.open_xid if isinstance(part, Block) else open_xid
        yield builder.finish(segment.position.complete_lsn)


def _sent_by(segments: Listing, seqs: Iterable[int], sent: Mapping[int, Sent]) -> Iterator[Sent]:
    """Find descriptions among those that are known, or in the footers of the segments in which they stand."""
    wanted = set(seqs)
    yield from (sent[seq] for seq in wanted.intersection(sent))
    wanted -= sent.keys()
    places = sorted({place for place in map(segments.place, wanted) if place >= 0})
    new = [place for place in places if not _has_none(segments[place])]
    indexed = [index_of(segments[place]) for place in new]
    if len(new) < len(places):
        indexed.append(indexes_of(segments[: places[-1] + 1]))
    for index in indexed:
        yield from _among(index, wanted)


def _among(index: SegmentIndex, wanted: set[int]) -> Iterator[Sent]:
    yield from (row for row in index.entries("descriptions").to_pylist() if row["seq"] in wanted)
