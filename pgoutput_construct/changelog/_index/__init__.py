"""What a reader knows of a log without its payloads: transactions, descriptions, counts, positions.

``build`` makes the ``index`` of a segment as its blocks come; ``log_index`` is that of a whole log, whose memory does
not grow with the transactions that ended; ``listing`` finds the segments, none missing, whatever compaction and prune
do meanwhile; ``manifest`` keeps many footers in one file; ``planning`` answers what readers ask. Start reading at
``index``.
"""
