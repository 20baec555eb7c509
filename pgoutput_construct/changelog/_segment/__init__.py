"""One segment: a Parquet file of consecutive payloads, with checksums, and a footer that describes it.

In: blocks of payloads with their batch index, and events (``segment_writer``). Out: the same rows as an Arrow table,
every check made (``segment_reader``), or the footer without the rows (``footer``).

- ``block``: what a capture hands to the log. Start reading here.
- ``segment_schema``: the columns of the file, and blocks and events as a table of them.
- ``segment_writer``: one table becomes one durable file; values of hundreds of megabytes without the copies that
  pyarrow makes.
- ``footer``: names of segment files; the options, the position, the checksums and the index in Parquet's metadata.
- ``segment_reader``: reads all rows, or the row groups that a reader needs.
- ``segment_index``: what the footer says of the rows, an Arrow table with a row for each segment (see ``_index``).
- ``events``: the rows that are no messages: what the capture learned, and the stream does not say.
- ``segment_descriptions``: which Relations are in force for its rows, carried from segment to segment.
- ``prune_note``: from which seq on the segments of a log are retained.

Invariants: seqs within a segment have no gaps. A file is never changed after it was written; compaction writes a new
one that covers others (``footer.chosen``). Columns have a CRC-32 over their values, Parquet pages one over their
bytes, the footer one over its text, the index one over its bytes: a changed bit is reported with seq and column, and
never read as data. Public: ``Block``, ``Segment``, ``Position`` and ``SCHEMA``, from ``pgoutput_construct.changelog``.
"""
