"""The index of a log: what a reader can know without reading payloads.

In: blocks and events while they are written; footers and manifests when a log is opened. Out: transactions that ended
and that are open, the Relations in force, row counts by table and transaction, events, snapshot chunks, positions.

- ``index_builder``: builds the index of a segment (``_segment.segment_index``; start reading there) while that is
  filled; what is open and in force is carried to the next segment. ``row_counts`` counts rows by table, description
  and transaction.
- ``listing``: the consecutive segments of a log, with no gap, while compaction and prune replace and remove files.
- ``manifest``: the footers of many segments in one file. ``indexes`` reads the index of a listing through manifests.
- ``log_index``: the index of a whole log, whose memory does not grow with the transactions that ended.
- ``planning``: the questions of readers about it. ``segment_sizes``: how long rows are, for estimates.

Invariants: an index can be rebuilt from the rows of its segment and the index before it, and equals the stored one
(``changelog.verify`` compares them). A manifest is a cache of footers: it can be deleted at any time, and readers then
read the footers. Nothing here is public; users have ``ChangeLog`` and its methods.
"""
