"""Plans of table copies: the chunks that a table is divided into, and whether a copy that was begun can be resumed.

A copy resumes under another snapshot if its pages are still those that were read, and if the stream says which of its
rows have changed since. Rows with a key are told apart by it (``void_search``). A table without one cannot be updated
while updates are published, unless it has REPLICA IDENTITY FULL: its rows only become more. Nothing tells these apart,
so each part of its pages has two chunks: the rows of transactions before the ``xmin`` of the snapshot, which are final,
and those of later ones, which the next attempt reads again, as a whole.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import md5
from itertools import pairwise, product
from typing import Final

from pgoutput_construct.changelog._facts.partial_copies import (
    CopyPlan,
    LeafFile,
    PartialCopy,
    ReadColumn,
    ReadColumns,
)
from pgoutput_construct.changelog.log_options import LogOptions
from pgoutput_construct.pgtypes.builtin_types import BUILTIN_TYPES, FIRST_USER_OID
from pgoutput_construct.postgres._snapshot.copied_tables import Leaf, PublishedTable
from pgoutput_construct.postgres._snapshot.jobs import Chunk, TableJob
from pgoutput_construct.wire.protocol import OPTIONS, RelationReplicaIdentity

__all__ = ["chunks_of", "columns_of", "new_plan", "obstacle", "stream_terms"]

CHUNK_PAGES: Final = 1024
"""The pages of a chunk, which is read again if its connection is lost, or its capture ends."""
_TID_RANGES_SINCE: Final = 140000
"""Servers before PostgreSQL 14 have no TID range scan: they would read all pages for each chunk."""
_XIDS: Final = 2**30
"""Transactions since the first snapshot after which a copy begins again. Rows have xids of 32 bits, which are compared
up to 2**31 apart; as many may begin while the rest is read."""


def new_plan(
    table: PublishedTable,
    allocate: Callable[[int], int],
    stream: str,
    server_version: int,
    requests: Sequence[str],
) -> CopyPlan:
    """Return how a table is copied.

    Args:
        table: The table.
        allocate: Takes a number of chunks, and returns the number of the first of them.
        stream: What rows depend on besides the table (``stream_terms``).
        server_version: The ``server_version_num``.
        requests: The numbers of the requests that the copy fulfils.
    """
    pages = CHUNK_PAGES if server_version >= _TID_RANGES_SINCE else 2**32
    leaves = tuple(LeafFile(leaf.oid, leaf.filenode, leaf.pages) for leaf in table.leaves)
    parts = len([*_parts(table, leaves, pages)])
    in_halves = parts > 1 and not table.key and not _limits(table, stream)
    chunks = parts * (1 + in_halves)
    first = allocate(chunks)
    named, numbers = (table.oid, table.namespace, table.name), (first, first + chunks - 1)
    return CopyPlan(*named, *numbers, pages, leaves, in_halves, _digest(table, stream), tuple(requests))


def chunks_of(job: TableJob, copy: PartialCopy) -> Iterator[Chunk]:
    """Yield the chunks that an attempt reads, all of them; those first that were never read.

    What was read has to be brought up to date in each attempt.

    Args:
        job: The attempt.
        copy: The copy.
    """
    plan, read_in, snapshot = copy.plan, copy.read_in(), job.snapshot
    parts = _parts(job.table, plan.leaves, plan.chunk_pages)
    chunks = list[Chunk]()
    for number, ((leaf, pages), half) in enumerate(product(parts, range(1 + plan.in_halves)), plan.first_chunk):
        chunk = Chunk(job, number, leaf, pages, was_read=number in read_in)
        end = snapshot.xmin if plan.in_halves else snapshot.xmax
        if half or (plan.in_halves and not chunk.was_read):
            chunk.xids, chunk.all_others = (snapshot.xmin, snapshot.xmax), not half
        elif chunk.was_read:
            chunk.xids = copy.attempts[read_in[number]].snapshot.xmin, end
        chunks.append(chunk)
    yield from sorted(chunks, key=lambda chunk: (chunk.was_read, chunk.number))


_Part = tuple[Leaf | None, tuple[int | None, int | None]]
"""Some pages: the leaf, the first page, and the page after the last one; None for no bound."""


def _parts(table: PublishedTable, files: Sequence[LeafFile], chunk_pages: int) -> Iterator[_Part]:
    """Yield the parts of a table, at least one; the last one of a leaf also has the pages since it was measured.

    Args:
        table: The table.
        files: Its leaves as they were measured.
        chunk_pages: The pages of a part.
    """
    if not table.leaves:
        yield None, (None, None)
    for leaf, file in zip(table.leaves, files, strict=True):
        for pages in pairwise((None, *range(chunk_pages, file.pages, chunk_pages), None)):
            yield leaf, pages


def obstacle(copy: PartialCopy, job: TableJob, stream: str) -> str:
    """Return why a copy that was begun cannot be resumed; "" if it can.

    Args:
        copy: The copy.
        job: The next attempt, with the table as it is now, and the requests that it is to fulfil.
        stream: As for ``new_plan``.
    """
    table, xmax, plan = job.table, job.snapshot.xmax, copy.plan
    files = {leaf.oid: leaf.filenode for leaf in plan.leaves}
    attempts = [copy.attempts[number] for number in {attempt for _, attempt in copy.reads}]
    found: Mapping[str, bool] = {
        "it was rewritten or truncated, or has other partitions": files
        != {leaf.oid: leaf.filenode for leaf in table.leaves},
        "the table, its key, its publication or the options of the stream were altered": plan.digest
        != _digest(table, stream),
        "columns have other types, or are published that were not": not all(
            attempt.columns.fits(job.columns) for attempt in attempts
        ),
        "a copy of it was requested since": not {request.number for request in job.requests}.issubset(plan.requests),
        "too many transactions have begun since": xmax - copy.attempts[0].snapshot.xmin >= _XIDS,
        # A row whose xid is 2**32 before another one looks as if it had that.
        "it has no key, and the xids of the server have wrapped around": plan.in_halves and xmax >= 2**32,
    }
    return _limits(table, stream) or next((reason for reason, is_so in found.items() if is_so), "")


def _limits(table: PublishedTable, stream: str) -> str:
    """Return why no copy of a table can be resumed; "" if it can."""
    names = ",".join(sorted(column.name for column in table.key))
    found: Mapping[str, bool] = {
        "changes of other origins are not sent": not stream,
        "its updates and deletes are not all published": not table.sends_changes,
        "it has REPLICA IDENTITY FULL, and no primary key": not table.key
        and table.replica_identity == RelationReplicaIdentity.FULL,
        "its key is not published as a whole, or a partition has another one": any(
            leaf.key != names for leaf in table.leaves
        ),
        "its key has a type whose texts may change": any(
            column.base_oid >= FIRST_USER_OID or column.base_oid in _NAMED_OBJECTS for column in table.key
        ),
    }
    return next((reason for reason, is_so in found.items() if is_so), "")


_NAMED_OBJECTS: Final = frozenset(
    oid for oid, kind in BUILTIN_TYPES.items() if kind.name.removeprefix("_").startswith("reg")
)
"""The OIDs of ``regproc``, ``regclass`` and the like, whose texts are names of objects, which may be renamed."""


def _digest(table: PublishedTable, stream: str) -> str:
    """Return a digest of all but columns by which the rows of a table are read, and of what tells them apart."""
    key = [(column.number, column.name, column.type_oid) for column in table.key]
    leaves = [(leaf.oid, leaf.joined, leaf.key, leaf.identity) for leaf in table.leaves]
    parts = table.namespace, table.name, table.replica_identity, key, table.filter, leaves, table.terms, stream
    return md5(repr((*parts, table.types)).encode(), usedforsecurity=False).hexdigest()


def columns_of(table: PublishedTable) -> ReadColumns:
    """Return what the values of a table's columns depend on."""
    numbers = [*zip(*(leaf.numbers for leaf in table.leaves), strict=True)] or [()] * len(table.columns)
    forms = (
        ReadColumn(column.number, column.type_oid, tuple(own))
        for column, own in zip(table.columns, numbers, strict=True)
    )
    return ReadColumns(tuple(forms), table.last_column)


def stream_terms(options: LogOptions) -> str:
    """Return what the rows of a copy depend on, of the options of a stream.

    "" if the stream lacks changes, those of other origins: nothing says then which rows have changed.
    """
    if options.origin != OPTIONS["origin"].default:
        return ""
    release = (options.server_version or 0) // 10000
    return repr((options.binary, sorted(options.layout().items()), options.origin, options.slot, release))
