"""What the stream does not say, and the log holds as events: tables, columns, publications, table copies.

``events`` are the rows of the log for them; ``facts`` reads what the catalog said; ``described`` is which description
is in force for each change; ``lineage`` follows a column through renames; ``copies`` are the table copies, and
``visibility`` decides which changes count in addition to one (the theory stands there); ``completeness`` says what a
log lacks. Start reading at ``visibility``.
"""
