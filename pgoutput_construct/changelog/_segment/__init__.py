"""One segment: a Parquet file of consecutive payloads, with checksums, and a footer that describes it.

A ``block`` is what a capture hands to the log; ``columns`` is the schema of the file; ``segments`` writes it, with
``large_payload`` for values of hundreds of megabytes; ``reading`` reads it with every check; ``footer`` is what it says
of itself. Start reading at ``block``.
"""
